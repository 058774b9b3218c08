/* test_locked_memory.c - what is locked is not asked for again, what was refused is told. */
#include <linux/capability.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/locked_memory.h"

enum { LIMIT = 256 << 10, PART = 160 << 10, CANNOT_LOOK = 99 };

/* Root may lock whatever it likes, unless it gives that up. */
static bool is_limited(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {0};
    const struct rlimit limit = {LIMIT, LIMIT};
    return setrlimit(RLIMIT_MEMLOCK, &limit) == 0 && syscall(SYS_capset, &head, none) == 0;
}

static void *pages(void)
{
    return mmap(NULL, PART, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static int look(void)
{
    char why[128] = "";
    if (!is_limited())
        return CANNOT_LOOK;
    tp_locked_memory_use(true);
    if (tp_locked_memory_refused(PART, why, sizeof why))
        return CANNOT_LOOK;
    if (!tp_locked_memory_ask(pages(), PART))
        return 1;
    if (tp_locked_memory_refused(PART, why, sizeof why)) /* there is no room for it twice */
        return 2;
    if (!tp_locked_memory_refused(2 * PART, why, sizeof why))
        return 3;
    if (tp_locked_memory_ask(pages(), PART))
        return 4;
    if (!tp_locked_memory_refused(PART, why, sizeof why) ||
        strcmp(why, "mlock: Cannot allocate memory (ulimit -l: 256 KiB)") != 0)
        return 5;
    return tp_locked_memory_in_use() == PART ? 0 : 6;
}

static void what_is_locked_is_not_asked_for_again(void **state)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* they lock nothing */
#endif
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(look());
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == CANNOT_LOOK)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_locked_is_not_asked_for_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
