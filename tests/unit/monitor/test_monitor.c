/* test_monitor.c - figures of a machine that is made of files; what is not there is unknown. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/files.h"
#include "instrument/monitor/sampler.h"
#include "temper/monitor.h"

static char root[64];

static int make_root(void **state)
{
    (void)state;
    snprintf(root, sizeof root, "/tmp/temper-monitor-XXXXXX");
    if (!mkdtemp(root))
        return -1;
    return setenv("TEMPER_SYSTEM_ROOT", root, 1);
}

static int remove_root(void **state)
{
    (void)state;
    unsetenv("TEMPER_SYSTEM_ROOT");
    return tp_dir_remove(root, NULL) != TP_OK;
}

static void put(const char *path, const char *text)
{
    char whole[256], folder[256];
    tp_error err = {0};
    snprintf(whole, sizeof whole, "%s%s", root, path);
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(whole, '/') - whole), whole);
    if (tp_dir_make(folder, &err) != TP_OK ||
        tp_file_write_atomic(whole, text, strlen(text), &err) != TP_OK)
        fail_msg("%s", err.message);
}

static double figure(const tp_metric_figure *figures, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(figures[i].def->name, name) == 0)
            return figures[i].value;
    return NAN;
}

static void figures_come_from_the_files(void **state)
{
    (void)state;
    tp_reading a, b;
    tp_metric_figure f[TP_SAMPLER_MOST];
    put("/proc/stat", "cpu  100 0 100 700 0 0 0 100\n");
    put("/proc/pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=1000000\n");
    put("/sys/class/powercap/intel-rapl:0/energy_uj", "1000000\n");
    put("/sys/class/thermal/thermal_zone0/temp", "41000\n");
    put("/sys/class/thermal/thermal_zone1/temp", "63500\n");
    put("/proc/self/cgroup", "0::/pod\n");
    put("/sys/fs/cgroup/pod/cpu.stat", "usage_usec 5\nthrottled_usec 250000\n");
    put("/proc/self/statm", "5000 1000 200 1 0 700 0\n");
    put("/proc/meminfo", "MemTotal:  1000 kB\nMemFree: 1 kB\nMemAvailable:    250 kB\n");
    tp_reading_take(&a, TP_READ_TRAINING | TP_READ_MEMORY);
    put("/proc/stat", "cpu  150 0 130 780 0 0 0 140\n");
    put("/proc/pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=3000000\n");
    put("/sys/class/powercap/intel-rapl:0/energy_uj", "41000000\n");
    put("/sys/fs/cgroup/pod/cpu.stat", "usage_usec 5\nthrottled_usec 1250000\n");
    tp_reading_take(&b, TP_READ_TRAINING | TP_READ_MEMORY);
    a.clock_s = 10;
    b.clock_s = 20;
    a.process_s = 3;
    b.process_s = 8;
    size_t n = tp_sampler_figures(0, &a, &b, 2, 1e9, f);
    assert_true(figure(f, n, "system/process_busy_share") == 0.25);
    assert_true(figure(f, n, "system/machine_busy_share") == 0.4);
    assert_true(figure(f, n, "system/steal_share") == 0.2);
    assert_true(fabs(figure(f, n, "system/pressure_cpu_share") - 0.2) < 1e-12);
    assert_true(figure(f, n, "system/temperature_celsius") == 63.5);
    assert_true(figure(f, n, "system/power_watts") == 4);
    assert_true(figure(f, n, "system/throttled_share") == 0.1);
    assert_true(isnan(figure(f, n, "system/throttles"))); /* nothing there tells */
    assert_true(isnan(figure(f, n, "system/pressure_io_share")));
    n = tp_sampler_figures(2, &a, &b, 2, 8192000, f);
    assert_true(figure(f, n, "memory/used_share") == 0.75); /* of the machine; the process: 0.5 */
    assert_true(figure(f, n, "memory/available_bytes") == 256000);
    assert_true(isnan(figure(f, n, "memory/swapped_bytes")));
    n = tp_sampler_figures(2, &a, &b, 2, 4096000, f);
    assert_true(figure(f, n, "memory/used_share") == 1);
}

static void a_counter_that_went_down_tells_nothing(void **state)
{
    (void)state;
    tp_reading a, b;
    tp_metric_figure f[TP_SAMPLER_MOST];
    put("/sys/class/powercap/intel-rapl:0/energy_uj", "262143000000\n");
    tp_reading_take(&a, TP_READ_TRAINING);
    put("/sys/class/powercap/intel-rapl:0/energy_uj", "5\n");
    tp_reading_take(&b, TP_READ_TRAINING);
    assert_true(isnan(figure(f, tp_sampler_figures(0, &a, &b, 1, 1, f), "system/power_watts")));
}

static void *read_reports(void *user)
{
    tp_monitor_report r = {.size = sizeof r};
    for (int i = 0; i < 20000; i++)
        tp_monitor_read_report(user, &r);
    return NULL;
}

/* For a thread sanitizer. */
static void reports_are_read_while_it_stops(void **state)
{
    (void)state;
    tp_monitor *m;
    pthread_t reader;
    assert_int_equal(tp_monitor_start(NULL, &m, NULL), TP_OK);
    assert_int_equal(pthread_create(&reader, NULL, read_reports, m), 0);
    tp_monitor_stop(m);
    pthread_join(reader, NULL);
    tp_monitor_report a = {.size = sizeof a}, b = {.size = sizeof b};
    tp_monitor_read_report(m, &a);
    tp_monitor_read_report(m, &b);
    assert_true(a.elapsed_s > 0 && a.elapsed_s == b.elapsed_s);
    tp_monitor_close(m);
}

static void a_pause_is_followed_by_a_whole_period(void **state)
{
    (void)state;
    assert_true(tp_sampler_next(10, 2, 10.5) == 12);
    assert_true(tp_sampler_next(10, 2, 11.5) == 12);
    assert_true(tp_sampler_next(10, 2, 12) == 14);
    assert_true(tp_sampler_next(10, 2, 100) == 102);
}

static void samples_come_until_it_stops(void **state)
{
    (void)state;
    tp_monitor *m;
    tp_error err = {0};
    tp_monitor_sample s;
    tp_monitor_report r = {.size = sizeof r};
    const tp_monitor_options options = {
        .size = sizeof options, .training_s = INFINITY, .inference_s = INFINITY, .memory_s = 0.01};
    assert_int_equal(tp_monitor_start(&options, &m, &err), TP_OK);
    tp_monitor_at(m, 7);
    for (int n = 0; n < 3;)
        if (tp_monitor_take(m, &s)) {
            assert_string_equal(s.group, "memory");
            n++;
        }
    assert_int_equal(s.step, 7);
    tp_monitor_stop(m);
    tp_monitor_read_report(m, &r);
    assert_true(r.samples >= 3 && r.cost_s > 0 && r.cost_s < r.elapsed_s);
    tp_monitor_close(m);
    const tp_monitor_options wrong = {.size = sizeof wrong, .training_s = -1};
    assert_int_equal(tp_monitor_start(&wrong, &m, &err), TP_ERR_ARG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(figures_come_from_the_files, make_root, remove_root),
        cmocka_unit_test_setup_teardown(a_counter_that_went_down_tells_nothing, make_root,
                                        remove_root),
        cmocka_unit_test(a_pause_is_followed_by_a_whole_period),
        cmocka_unit_test(samples_come_until_it_stops),
        cmocka_unit_test(reports_are_read_while_it_stops),
    };
    return cmocka_run_group_tests_name("monitor", tests, NULL, NULL);
}
