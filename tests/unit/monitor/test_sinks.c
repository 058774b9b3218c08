/* test_sinks.c - what sinks write, byte by byte, and what becomes of one that cannot write. */
#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/files.h"
#include "base/platform.h"
#include "engine/train/run.h"
#include "instrument/ingest/runs/event_record.h"
#include "instrument/ingest/runs/event_write.h"
#include "instrument/monitor/sinks.h"
#include "temper/log.h"

static char root[64];
static int n_warnings;
static char warning[1024];

static void keep_warning(void *user, tp_log_level level, const char *component, const char *text)
{
    (void)user;
    if (level < TP_LOG_WARNING)
        return;
    n_warnings++;
    snprintf(warning, sizeof warning, "%s: %s", component, text);
}

static int make_root(void **state)
{
    (void)state;
    snprintf(root, sizeof root, "/tmp/temper-sinks-XXXXXX");
    n_warnings = 0;
    tp_log_set_sink(keep_warning, NULL);
    return mkdtemp(root) == NULL;
}

static int remove_root(void **state)
{
    (void)state;
    tp_log_set_sink(NULL, NULL);
    return tp_dir_remove(root, NULL) != TP_OK;
}

static const char *at(const char *name)
{
    static char path[2][256];
    static int next;
    char *p = path[next++ % 2];
    snprintf(p, sizeof path[0], "%s/%s", root, name);
    return p;
}

static char *read_text(const char *name)
{
    static tp_buf text;
    assert_int_equal(tp_file_read(at(name), 0, &text, NULL), TP_OK);
    return text.data;
}

/* ---- event files ---- */

static void expect_bytes(const tp_buf *have, const char *hex)
{
    char text[512] = "";
    for (size_t i = 0; i < have->len; i++)
        sprintf(text + 2 * i, "%02x", (unsigned char)have->data[i]);
    assert_string_equal(text, hex);
}

static void records_are_those_of_tensorboard(void **state)
{
    (void)state;
    tp_buf out = {0}, summary = {0};
    tp_event_put_version(&out, 1700000000.0);
    expect_bytes(&out, "1800000000000000a37f4b220900000040fc54d9411a0d"
                       "627261696e2e4576656e743a32eced8f9d");
    tp_buf_clear(&out);
    tp_event_add_scalar(&summary, "train/loss", 0.5f, NULL);
    tp_event_put_summary(&out, 1700000001.0, 7, &summary);
    expect_bytes(&out, "2000000000000000"
                       "29eda9500900004040fc54d94110072a130a110a0a747261696e2f6c6f73731500"
                       "00003f5469987d");
    tp_buf_release(&out);
    tp_buf_release(&summary);
}

/* As TensorBoard's own summary_pb2 serialises it. */
static void the_first_value_of_a_tag_describes_it(void **state)
{
    (void)state;
    tp_buf summary = {0};
    tp_event_add_scalar(&summary, "a", 1, "b.");
    expect_bytes(&summary, "0a1b0a0161150000803f4a110a090a077363616c6172731a02622e2001");
    tp_buf_release(&summary);
}

static void lengths_and_steps_may_take_several_bytes(void **state)
{
    (void)state;
    tp_buf out = {0}, summary = {0};
    char tag[301];
    memset(tag, 'x', 300);
    tag[300] = 0;
    tp_event_add_scalar(&summary, tag, 3, NULL);
    tp_event_put_summary(&out, 5, INT64_C(1) << 40, &summary);
    uint64_t length;
    assert_true(tp_event_header(out.data, &length));
    assert_int_equal(length, out.len - 16);
    tp_event event;
    assert_true(tp_event_parse((tp_slice){out.data + 12, (size_t)length}, &event));
    assert_int_equal(event.step, INT64_C(1) << 40);
    assert_true(event.wall == 5 && event.has_summary);
    tp_buf_release(&out);
    tp_buf_release(&summary);
}

/* ---- a run with one sink ---- */

static tp_metric_bus bus;
static tp_sinks sinks;

static void open_sink(int kind, const char *path, int attempt, int64_t step)
{
    const char *paths[TP_SINKS] = {NULL};
    const tp_sink_run run = {.id = "0123abcd0123abcd0123abcd0123abcd",
                             .name = "a \"b\"\\\n\xff",
                             .attempt = attempt,
                             .step = step,
                             .max_steps = 9,
                             .metrics = &bus};
    bus = (tp_metric_bus){0};
    paths[kind] = path;
    tp_sinks_open(&sinks, paths, &run, &bus);
}

static void record(int64_t step, double loss)
{
    tp_metric_begin(&bus, "train", step);
    tp_metric_put(&bus, "train/loss", loss);
    tp_metric_put(&bus, "train/epoch", NAN);
    tp_metric_end(&bus);
}

/* The event files there, in the order of their names. */
static int list_events(const char *name, struct dirent ***ret)
{
    int n = scandir(at(name), ret, NULL, alphasort);
    assert_true(n >= 2);
    return n - 2; /* "." and ".." come first */
}

typedef struct {
    int n_versions, n_starts, n_values;
    int64_t start, last;
} file_seen;

static void see_value(void *user, const tp_event_value *v)
{
    file_seen *f = user;
    f->n_values++;
    assert_true(v->kind == TP_EVENT_SIMPLE);
}

static file_seen read_events(const char *path)
{
    file_seen f = {0};
    tp_buf text = {0};
    assert_int_equal(tp_file_read(path, 0, &text, NULL), TP_OK);
    for (size_t p = 0; p < text.len;) {
        uint64_t n = 0;
        tp_event event;
        assert_true(text.len - p >= 16 && tp_event_header(text.data + p, &n));
        assert_true(n <= text.len - p - 16);
        tp_slice data = {text.data + p + 12, (size_t)n};
        assert_int_equal(tp_event_u32(data.data + n), tp_event_checksum(data.data, n));
        assert_true(tp_event_parse(data, &event));
        f.n_versions += event.version.data != NULL;
        f.n_starts += event.has_session_start;
        f.start = event.has_session_start ? event.step : f.start;
        f.last = event.step;
        assert_true(tp_event_values(data, see_value, &f));
        p += n + 16;
    }
    tp_buf_release(&text);
    return f;
}

static void every_attempt_has_a_file_that_comes_later(void **state)
{
    (void)state;
    struct dirent **names;
    open_sink(TP_SINK_TENSORBOARD, at("tb"), 1, 0);
    record(1, 0.5);
    record(2, 0.25);
    tp_sinks_close(&sinks);
    open_sink(TP_SINK_TENSORBOARD, at("tb"), 2, 1);
    record(2, 0.125);
    tp_sinks_close(&sinks);
    open_sink(TP_SINK_TENSORBOARD, at("tb"), 3, 0);
    tp_sinks_close(&sinks);

    assert_int_equal(list_events("tb", &names), 3);
    static const file_seen expected[] = {{1, 1, 4, 0, 2}, {1, 1, 2, 2, 2}, {1, 1, 0, 0, 0}};
    for (int i = 0; i < 3; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", at("tb"), names[i + 2]->d_name);
        char end[32];
        snprintf(end, sizeof end, ".%d.0123abcd", i + 1); /* the attempt, the run */
        assert_true(tp_str_ends(path, end));
        file_seen f = read_events(path);
        assert_memory_equal(&f, &expected[i], sizeof f);
    }
    for (int i = 0; i < 5; i++)
        free(names[i]);
    free(names);
    assert_int_equal(n_warnings, 0);
}

static void a_folder_of_another_run_is_left_alone(void **state)
{
    (void)state;
    struct dirent **names;
    assert_int_equal(tp_dir_make(at("tb"), NULL), TP_OK);
    assert_int_equal(tp_file_write_atomic(at("tb/x.tfevents"), "", 0, NULL), TP_OK);
    open_sink(TP_SINK_TENSORBOARD, at("tb"), 2, 0);
    record(1, 0.5);
    record(2, 0.5);
    tp_sinks_close(&sinks);
    assert_int_equal(n_warnings, 1);
    assert_non_null(strstr(warning, "holds event files of another run"));
    assert_non_null(strstr(warning, "logger.tensorboard.log_dir"));
    assert_int_equal(list_events("tb", &names), 1);
    for (int i = 0; i < 3; i++)
        free(names[i]);
    free(names);
}

static void limit_files(rlim_t most)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = most;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void a_full_disk_is_told_once_and_leaves_whole_records(void **state)
{
    (void)state;
    struct dirent **names;
    struct rlimit before;
    char path[512];
    open_sink(TP_SINK_TENSORBOARD, at("tb"), 1, 0);
    record(1, 0.5);
    assert_int_equal(list_events("tb", &names), 1);
    snprintf(path, sizeof path, "%s/%s", at("tb"), names[2]->d_name);
    for (int i = 0; i < 3; i++)
        free(names[i]);
    free(names);

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_IGN);
    limit_files((rlim_t)tp_file_size(path) + 20);
    record(2, 0.5);
    record(3, 0.5);
    limit_files(before.rlim_cur);
    record(4, 0.5);
    tp_sinks_close(&sinks);
    assert_int_equal(n_warnings, 1);
    assert_non_null(strstr(warning, "tensorboard: cannot write"));
    assert_non_null(strstr(warning, "left out"));
    const file_seen expected = {1, 1, 2, 0, 1};
    file_seen f = read_events(path);
    assert_memory_equal(&f, &expected, sizeof f);
}

/* ---- Prometheus ---- */

static void names_are_those_that_prometheus_takes(void **state)
{
    (void)state;
    char name[TP_PROMETHEUS_NAME], other[TP_PROMETHEUS_NAME];
    for (size_t i = 0; i < TP_METRIC_DEFS; i++) {
        tp_prometheus_name(&tp_metric_defs[i], name);
        assert_true(strlen(name) < TP_PROMETHEUS_NAME - 1);
        assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyz_0123456789"), strlen(name));
        for (size_t k = 0; k < i; k++) {
            tp_prometheus_name(&tp_metric_defs[k], other);
            assert_string_not_equal(name, other);
        }
    }
}

static void names_end_in_base_units(void **state)
{
    (void)state;
    static const struct {
        tp_metric_def def;
        const char *name;
    } cases[] = {
        {{"train/loss", "nats", ""}, "temper_train_loss_nats"},
        {{"memory/peak_bytes", "bytes", ""}, "temper_memory_peak_bytes"},
        {{"timing/train/total_step_time", "s", ""}, "temper_timing_train_total_step_time_seconds"},
        {{"train/is_oob_ratio", "share", ""}, "temper_train_is_oob_ratio"},
        {{"train/accuracy", "share", ""}, "temper_train_accuracy_ratio"},
        {{"performance/tokens_per_sec", "tokens/s", ""}, "temper_performance_tokens_per_second"},
        {{"validation-default/loss", "", ""}, "temper_validation_default_loss"},
    };
    for (size_t i = 0; i < TP_COUNTOF(cases); i++) {
        char name[TP_PROMETHEUS_NAME];
        tp_prometheus_name(&cases[i].def, name);
        assert_string_equal(name, cases[i].name);
    }
}

static void the_text_is_replaced_at_the_end(void **state)
{
    (void)state;
    open_sink(TP_SINK_PROMETHEUS, at("run.prom"), 1, 4);
    assert_non_null(
        strstr(read_text("run.prom"), "\ntemper_running{run=\"a \\\"b\\\"\\\\\\n\\\\xff\"} 1\n"));
    record(5, 0.1);
    tp_metric_begin(&bus, "validation", 5);
    tp_metric_put(&bus, "validation/val_loss", -INFINITY);
    tp_metric_end(&bus);
    tp_sinks_close(&sinks);

    const char *text = read_text("run.prom");
    assert_non_null(strstr(text, "\n# HELP temper_step Steps done.\n# TYPE temper_step gauge\n"
                                 "temper_step{run=\"a \\\"b\\\"\\\\\\n\\\\xff\"} 5\n"));
    assert_non_null(strstr(text, "\ntemper_running{run=\"a \\\"b\\\"\\\\\\n\\\\xff\"} 0\n"));
    assert_non_null(strstr(text, "\ntemper_max_steps{run=\"a \\\"b\\\"\\\\\\n\\\\xff\"} 9\n"));
    assert_non_null(strstr(text, "\ntemper_train_epoch{run=\"a \\\"b\\\"\\\\\\n\\\\xff\"} NaN\n"));
    assert_non_null(
        strstr(text, "\ntemper_train_loss_nats{run=\"a \\\"b\\\"\\\\\\n\\\\xff\"} 0.1\n"));
    assert_non_null(strstr(
        text, "\ntemper_validation_val_loss_nats{run=\"a \\\"b\\\"\\\\\\n\\\\xff\"} -Inf\n"));
    assert_null(strstr(text, "train_grad_norm"));
    assert_int_equal(n_warnings, 0);
}

static void a_file_that_cannot_be_is_told_once(void **state)
{
    (void)state;
    open_sink(TP_SINK_PROMETHEUS, at("nowhere/run.prom"), 1, 0);
    record(1, 0.5);
    record(2, 0.5);
    tp_sinks_close(&sinks);
    assert_int_equal(n_warnings, 1);
    assert_non_null(strstr(warning, "prometheus: "));
    assert_non_null(strstr(warning, "nowhere/run.prom"));
}

/* ---- the run's own file ---- */

/* Records of 64 KiB, so that a few hundred are more than is kept. */
static void metrics_that_are_lost_are_counted(void **state)
{
    enum { FIGURES = 64 };
    static char name[1024];
    tp_run *run;
    tp_metric_def def = {.name = memset(name, 'm', sizeof name - 1)};
    tp_metric_figure figures[FIGURES];
    const tp_metric_record record = {.axis = "train", .points = figures, .n = FIGURES};
    for (int i = 0; i < FIGURES; i++)
        figures[i] = (tp_metric_figure){&def, i};
    if (access("/dev/full", W_OK) != 0)
        skip();
    assert_int_equal(tp_run_open(at("run"), false, &run, NULL), TP_OK);
    assert_int_equal(symlink("/dev/full", at("run/metrics.jsonl")), 0);
    assert_int_equal(tp_run_begin(run, NULL), TP_OK);
    for (int i = 0; i < 200; i++)
        tp_run_write_metrics(run, &record);
    assert_int_equal(n_warnings, 1);
    assert_non_null(strstr(warning, "they are kept for later"));
    for (int i = 0; i < 100; i++)
        tp_run_write_metrics(run, &record);
    assert_int_equal(n_warnings, 2);
    assert_non_null(strstr(warning, "16 MiB of metrics wait: those that follow are lost"));
    tp_run_close(run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_are_those_of_tensorboard),
        cmocka_unit_test(the_first_value_of_a_tag_describes_it),
        cmocka_unit_test(lengths_and_steps_may_take_several_bytes),
        cmocka_unit_test_setup_teardown(every_attempt_has_a_file_that_comes_later, make_root,
                                        remove_root),
        cmocka_unit_test_setup_teardown(a_folder_of_another_run_is_left_alone, make_root,
                                        remove_root),
        cmocka_unit_test_setup_teardown(a_full_disk_is_told_once_and_leaves_whole_records,
                                        make_root, remove_root),
        cmocka_unit_test(names_are_those_that_prometheus_takes),
        cmocka_unit_test(names_end_in_base_units),
        cmocka_unit_test_setup_teardown(the_text_is_replaced_at_the_end, make_root, remove_root),
        cmocka_unit_test_setup_teardown(a_file_that_cannot_be_is_told_once, make_root, remove_root),
        cmocka_unit_test_setup_teardown(metrics_that_are_lost_are_counted, make_root, remove_root),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
