/* test_limits.c - limits of containers, read from trees of files made for the purpose. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/files.h"
#include "base/limits.h"

static char root[64];

static int make_root(void **state)
{
    (void)state;
    snprintf(root, sizeof root, "/tmp/temper-limits-XXXXXX");
    return !mkdtemp(root) || setenv("TEMPER_SYSTEM_ROOT", root, 1) != 0;
}

static int remove_root(void **state)
{
    (void)state;
    unsetenv("TEMPER_SYSTEM_ROOT");
    return tp_dir_remove(root, NULL) != TP_OK;
}

static void put(const char *path, const char *text)
{
    char whole[512], dir[512];
    snprintf(whole, sizeof whole, "%s%s", root, path);
    snprintf(dir, sizeof dir, "%s", whole);
    *strrchr(dir, '/') = 0;
    assert_int_equal(tp_dir_make(dir, NULL), TP_OK);
    assert_int_equal(tp_file_write_atomic(whole, text, strlen(text), NULL), TP_OK);
}

static tp_limit memory(void)
{
    tp_limits limits;
    tp_limits_memory(&limits);
    return *tp_limits_least(&limits);
}

static tp_limit processors(void)
{
    tp_limits limits;
    tp_limits_processors(&limits);
    return *tp_limits_least(&limits);
}

static void without_files_the_machine_is_the_limit(void **state)
{
    (void)state;
    assert_true(memory().value > 1e6);
    assert_string_equal(memory().source, "physical memory");
    assert_true(processors().value >= 1);
}

static void the_least_on_the_way_to_the_root_counts(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "0::/pod/box/run\n");
    put("/sys/fs/cgroup/cgroup.controllers", "cpu memory\n");
    put("/sys/fs/cgroup/pod/box/run/memory.max", "max\n");
    put("/sys/fs/cgroup/pod/box/run/cpu.max", "max 100000\n");
    put("/sys/fs/cgroup/pod/box/memory.max", "62914560\n");
    put("/sys/fs/cgroup/pod/memory.max", "73400320\n");
    put("/sys/fs/cgroup/pod/cpu.max", "50000 100000\n");
    assert_true(memory().value == 62914560);
    assert_string_equal(memory().source, "cgroup memory.max of /pod/box");
    assert_true(processors().value == 0.5);
    assert_string_equal(processors().source, "cgroup cpu.max of /pod");
    assert_int_equal(tp_cpu_count(), 1);
    put("/sys/fs/cgroup/pod/box/run/memory.high", "52428800\n");
    assert_true(memory().value == 52428800);
    assert_string_equal(memory().source, "cgroup memory.high of /pod/box/run");
}

static void inside_a_container_the_root_is_its_own(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "0::/\n");
    put("/sys/fs/cgroup/cgroup.controllers", "\n");
    put("/sys/fs/cgroup/memory.max", "104857600\n");
    assert_true(memory().value == 104857600);
    assert_string_equal(memory().source, "cgroup memory.max of /");
}

static void version_one_has_other_files(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "5:memory:/docker/abc\n3:cpu,cpuacct:/docker/abc\n0::/\n");
    put("/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "67108864\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    put("/sys/fs/cgroup/cpu,cpuacct/cgroup.procs", "1\n");
    put("/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "100000\n");
    put("/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_period_us", "100000\n");
    put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
    assert_true(memory().value == 67108864);
    assert_string_equal(memory().source, "cgroup memory.limit_in_bytes of /docker/abc");
    assert_true(processors().value == 1);
    assert_int_equal(tp_cpu_count(), 1);
}

static void the_path_of_the_host_is_not_there_in_a_container(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "5:memory:/docker/abc\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "67108864\n");
    assert_true(memory().value == 67108864);
    assert_string_equal(memory().source, "cgroup memory.limit_in_bytes of /");
}

static void nonsense_is_no_limit(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "no colon\n1:\n0::/a\n:::\n");
    put("/sys/fs/cgroup/cgroup.controllers", "\n");
    put("/sys/fs/cgroup/a/memory.max", "12x\n");
    put("/sys/fs/cgroup/a/memory.high", "-5\n");
    put("/sys/fs/cgroup/a/cpu.max", "100000 0\n");
    put("/sys/fs/cgroup/memory.max", "\n");
    assert_string_equal(memory().source, "physical memory");
}

static void what_is_in_memory_is_counted_in_pages(void **state)
{
    (void)state;
    assert_true(isnan(tp_limits_resident()));
    put("/proc/self/statm", "5000 1000 200 1 0 700 0\n");
    assert_true(tp_limits_resident() == 1000 * (double)sysconf(_SC_PAGESIZE));
    put("/proc/self/statm", "5000\n");
    assert_true(isnan(tp_limits_resident()));
    double before = tp_process_cpu_s(), own = tp_thread_cpu_s();
    assert_true(before > 0 && tp_process_cpu_s() >= before && tp_process_cpu_s() >= own);
}

#define LIMITS_TEST(f) cmocka_unit_test_setup_teardown(f, make_root, remove_root)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LIMITS_TEST(without_files_the_machine_is_the_limit),
        LIMITS_TEST(the_least_on_the_way_to_the_root_counts),
        LIMITS_TEST(inside_a_container_the_root_is_its_own),
        LIMITS_TEST(version_one_has_other_files),
        LIMITS_TEST(the_path_of_the_host_is_not_there_in_a_container),
        LIMITS_TEST(nonsense_is_no_limit),
        LIMITS_TEST(what_is_in_memory_is_counted_in_pages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
