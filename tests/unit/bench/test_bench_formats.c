/* Files of other tools: what we write is what tests/data/bench holds (checked once with the
 * tools themselves, see docs/formats/bench.md), and what we read means what it says.
 * TEMPER_UPDATE_GOLDEN=1 rewrites the files. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/files.h"
#include "instrument/bench/formats.h"

#define FOLDER TP_SOURCE_DIR "/tests/data/bench/"

static const double old_speed[] = {1000, 1010, 990, 1005, 995, 1002, 998, 1001, 1000, 999};
static const double new_speed[] = {900, 905, 895, 902, 898, 901, 899, 900, 903, 897};
static const double same_speed[] = {1001, 1009, 991, 1004, 996, 1003, 997, 1000, 1001, 998};

static void set_values(tp_bench_report *r, tp_bench_metric *m, const double *a, const double *b,
                       double scale, bool inverse)
{
    double x[10], y[10];
    for (int i = 0; i < 10; i++) {
        x[i] = inverse ? scale / a[i] : scale * a[i];
        y[i] = inverse ? scale / b[i] : scale * b[i];
    }
    m->a = tp_bench_report_values(r, x, 10);
    m->b = tp_bench_report_values(r, y, 10);
    m->n_a = m->n_b = 10;
    m->side_a = tp_summarise(m->a, 10);
    m->side_b = tp_summarise(m->b, 10);
    m->is_compared = true;
    if (m->metric.kind == TP_METRIC_EXACT)
        tp_rule_exact(&r->rule, &m->metric, m->a[0], m->b[0], &m->comparison);
    else
        tp_rule_paired(&r->rule, &m->metric, m->a, m->b, "ABBABAABAB", 10, &m->comparison);
}

static void add_benchmark(tp_bench_report *r, const char *name, const double *b, double memory)
{
    static const double one[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    tp_bench_result *result = tp_bench_report_add(r, name, 3);
    double more[10];
    for (int i = 0; i < 10; i++)
        more[i] = memory;
    result->work = 10;
    result->work_unit = "steps";
    result->rounds = 10;
    result->warm_up = 2;
    result->seed = 1;
    result->order = "ABBABAABAB";
    result->seconds = 12.5;
    result->metrics[0].metric =
        (tp_metric){.name = "throughput", .unit = "tokens/s", .direction = TP_HIGHER_IS_BETTER};
    set_values(r, &result->metrics[0], old_speed, b, 1, false);
    result->metrics[1].metric = (tp_metric){.name = "time", .unit = "s", .is_informative = true};
    set_values(r, &result->metrics[1], old_speed, b, 2, true);
    result->metrics[2].metric =
        (tp_metric){.name = "peak_memory", .unit = "bytes", .kind = TP_METRIC_EXACT};
    set_values(r, &result->metrics[2], one, more, 1 << 20, false);
}

/* Twelve digits: logarithms differ in the last one from one C library to the next. */
static void round_comparisons(tp_bench_report *r)
{
    for (size_t i = 0; i < r->n_results; i++) {
        for (size_t k = 0; k < r->results[i].n_metrics; k++) {
            tp_bench_comparison *c = &r->results[i].metrics[k].comparison;
            for (double *v = &c->ratio; v <= &c->sd_between; v++) {
                char text[40];
                snprintf(text, sizeof text, "%.12g", *v);
                *v = fabs(*v) < 1e-12 ? 0 : strtod(text, NULL);
            }
        }
    }
}

static void make_report(tp_bench_report *r)
{
    assert_int_equal(tp_bench_report_init(r, NULL), TP_OK);
    r->version = "0.1.0";
    r->started = "2026-01-02T03:04:05Z";
    r->has_commit = true;
    r->commit = (tp_commit){.id = "0123456789abcdef0123456789abcdef01234567",
                            .branch = "main",
                            .time = "2026-01-01T00:00:00+00:00",
                            .project = "temper",
                            .is_dirty = true};
    r->host = (tp_host){.fingerprint = "00112233445566778899aabbccddeeff",
                        .name = "host",
                        .cpu = "A <fast> CPU & more",
                        .isa = "avx2",
                        .processors = 2,
                        .memory_gib = 16,
                        .governor = "performance",
                        .turbo = "off",
                        .kernel = "6.1.0",
                        .libc = "glibc 2.36",
                        .compiler = "12.2.0",
                        .gpu = "none"};
    r->is_host_known = true;
    r->side_a = "v1 | old";
    r->side_b = "v2";
    r->rule = (tp_rule){.alpha = 0.05, .tolerance = 0.05, .family = 1};
    r->seed = 1;
    add_benchmark(r, "train/llama/f32", same_speed, 1);
    add_benchmark(r, "train/gpt2/f32", new_speed, 2);
    tp_result_fail(r, tp_bench_report_add(r, "data/load", 0),
                   "100%% broken: \"x\" < y\nsecond line");
    tp_bench_report_add(r, "gone, away", 0)->verdict = TP_BENCH_MISSING;
    tp_bench_report_add(r, "brand/new", 0)->verdict = TP_BENCH_NEW;
    assert_int_equal(tp_gate_settle(r, NULL), TP_OK);
    round_comparisons(r);
    tp_gate_options options = {0};
    r->exit_status = tp_gate_conclude(r, &options).exit_status;
}

static void every_format_is_written_as_recorded(void **state)
{
    tp_bench_report r;
    make_report(&r);
    for (size_t i = 0; i < tp_n_bench_formats; i++) {
        const tp_bench_format *f = &tp_bench_formats[i];
        char path[512];
        tp_buf found = {0}, wanted = {0};
        snprintf(path, sizeof path, FOLDER "%s", f->file);
        f->write(&r, &found);
        if (getenv("TEMPER_UPDATE_GOLDEN"))
            assert_int_equal(tp_file_write_atomic(path, found.data, found.len, NULL), TP_OK);
        assert_int_equal(tp_file_read(path, 1 << 20, &wanted, NULL), TP_OK);
        assert_string_equal(found.data, wanted.data);
        tp_buf_release(&found);
        tp_buf_release(&wanted);
    }
    tp_bench_report_release(&r);
}

static void load(const char *file, const char *format, tp_bench_report *ret)
{
    char path[512];
    tp_buf text = {0};
    tp_error err = {0};
    snprintf(path, sizeof path, FOLDER "%s", file);
    assert_int_equal(tp_file_read(path, 1 << 20, &text, NULL), TP_OK);
    if (tp_bench_read(file, text.data, text.len, format ? tp_bench_format_find(format) : NULL, ret,
                      &err) != TP_OK)
        fail_msg("%s", err.message);
    tp_buf_release(&text);
}

static void what_is_read_is_what_was_written(void **state)
{
    static const struct {
        const char *file, *metric;
        size_t n;
        double median;
    } cases[] = {{"bench.json", "throughput", 10, 900},  {"benchmark.json", "time", 10, 2.0 / 900},
                 {"google.json", "time", 10, 2.0 / 900}, {"hyperfine.json", "time", 10, 2.0 / 900},
                 {"bench.txt", "throughput", 10, 900},   {"smaller.json", "time", 1, 2.0 / 900},
                 {"bigger.json", "throughput", 1, 900},  {"bencher.json", "time", 1, 2.0 / 900}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tp_bench_report r;
        load(cases[i].file, NULL, &r);
        tp_bench_result *result = tp_bench_report_find(&r, "train/gpt2/f32");
        assert_non_null(result);
        tp_bench_metric *m = tp_result_metric(result, cases[i].metric);
        assert_non_null(m);
        assert_int_equal(m->n_b, cases[i].n);
        assert_true(fabs(m->side_b.median / cases[i].median - 1) < 1e-5);
        tp_bench_report_release(&r);
    }
}

static void our_own_format_loses_nothing(void **state)
{
    tp_bench_report a, b;
    make_report(&a);
    load("bench.json", NULL, &b);
    assert_int_equal(a.n_results, b.n_results);
    assert_string_equal(a.host.fingerprint, b.host.fingerprint);
    assert_string_equal(a.commit.id, b.commit.id);
    assert_true(b.commit.is_dirty);
    for (size_t i = 0; i < a.n_results; i++) {
        const tp_bench_result *x = &a.results[i], *y = &b.results[i];
        assert_string_equal(x->name, y->name);
        assert_int_equal(x->n_metrics, y->n_metrics);
        for (size_t k = 0; k < x->n_metrics; k++) {
            assert_memory_equal(x->metrics[k].a, y->metrics[k].a, 10 * sizeof(double));
            assert_memory_equal(x->metrics[k].b, y->metrics[k].b, 10 * sizeof(double));
            assert_int_equal(x->metrics[k].metric.kind, y->metrics[k].metric.kind);
            assert_int_equal(x->metrics[k].metric.direction, y->metrics[k].metric.direction);
        }
    }
    assert_int_equal(b.results[2].verdict, TP_BENCH_FAILED);
    tp_bench_report_release(&a);
    tp_bench_report_release(&b);
}

/* ---- comparing stored files ---- */

static int compare_texts(const char *old_text, const char *new_text, tp_bench_report *current,
                         bool allow_missing)
{
    tp_bench_report base;
    tp_error err = {0};
    tp_gate_options options = {.allow_missing = allow_missing};
    if (tp_bench_read("old", old_text, strlen(old_text), NULL, &base, &err) != TP_OK ||
        tp_bench_read("new", new_text, strlen(new_text), NULL, current, &err) != TP_OK)
        fail_msg("%s", err.message);
    assert_int_equal(tp_gate_compare_stored(&base, current, NULL, NULL, NULL), TP_OK);
    tp_bench_report_release(&base);
    return tp_gate_conclude(current, &options).exit_status;
}

#define HYPERFINE(name, times) \
    "{\"results\": [{\"command\": \"" name "\", \"times\": [" times "]}]}"
#define TEN "1.0, 1.01, 0.99, 1.02, 0.98, 1.0, 1.01, 0.99, 1.0, 1.0"
#define TEN_SLOW "1.2, 1.21, 1.19, 1.22, 1.18, 1.2, 1.21, 1.19, 1.2, 1.2"

static void stored_files_are_compared_with_their_exit_status(void **state)
{
    tp_bench_report r;
    assert_int_equal(compare_texts(HYPERFINE("a", TEN), HYPERFINE("a", TEN), &r, false), 0);
    assert_int_equal(r.results[0].verdict, TP_BENCH_PASS);
    tp_bench_report_release(&r);

    assert_int_equal(compare_texts(HYPERFINE("a", TEN), HYPERFINE("a", TEN_SLOW), &r, false), 1);
    assert_int_equal(r.results[0].verdict, TP_BENCH_REGRESSION);
    tp_bench_report_release(&r);

    /* vanished: the old one is missing, the new one has no baseline */
    assert_int_equal(compare_texts(HYPERFINE("a", TEN), HYPERFINE("b", TEN), &r, false), 1);
    assert_int_equal(r.results[0].verdict, TP_BENCH_NEW);
    assert_int_equal(r.results[1].verdict, TP_BENCH_MISSING);
    assert_string_equal(r.results[1].name, "a");
    tp_bench_report_release(&r);
    assert_int_equal(compare_texts(HYPERFINE("a", TEN), HYPERFINE("b", TEN), &r, true), 0);
    tp_bench_report_release(&r);

    assert_int_equal(
        compare_texts(HYPERFINE("a", TEN), HYPERFINE("a", "1, NaN, 1, 1, 1"), &r, false), 3);
    assert_string_equal(r.results[0].message, "time is NaN in round 2");
    tp_bench_report_release(&r);

    assert_int_equal(compare_texts(HYPERFINE("a", TEN), HYPERFINE("a", "1, 1, 1"), &r, false), 3);
    assert_string_equal(r.results[0].message, "time has 3 rounds, at least 5 are needed");
    tp_bench_report_release(&r);

    assert_int_equal(compare_texts(HYPERFINE("a", TEN), HYPERFINE("a", "1, 0, 1, 1, 1"), &r, false),
                     3);
    tp_bench_report_release(&r);
}

static void a_file_of_times_judges_times(void **state)
{
    tp_bench_report base, current;
    load("benchmark.json", NULL, &base);
    load("bench.json", NULL, &current);
    assert_int_equal(tp_gate_compare_stored(&base, &current, NULL, NULL, NULL), TP_OK);
    const tp_bench_result *result = tp_bench_report_find(&current, "train/gpt2/f32");
    assert_int_equal(result->verdict, TP_BENCH_PASS);
    assert_true(result->metrics[1].is_compared);
    assert_false(result->metrics[0].is_compared);
    tp_bench_report_release(&base);
    tp_bench_report_release(&current);
}

/* ---- what is refused ---- */

static void expect_refusal(const char *text, const char *message)
{
    tp_bench_report r;
    tp_error err = {0};
    assert_int_not_equal(tp_bench_read("f", text, strlen(text), NULL, &r, &err), TP_OK);
    if (!strstr(err.message, message))
        fail_msg("'%s' lacks '%s'", err.message, message);
}

static void what_is_not_understood_is_named(void **state)
{
    expect_refusal("", "neither JSON nor benchmark lines");
    expect_refusal("hello\n", "neither JSON nor benchmark lines");
    expect_refusal("{\"a\": 1}", "not a benchmark file that is known");
    expect_refusal("{\"schema\": \"temper-bench-1\"}", "\"benchmarks\" has to be a list");
    expect_refusal("{\"schema\": \"temper-bench-1\", \"benchmarks\": [{}]}", "without a name");
    expect_refusal("{\"schema\": \"temper-bench-1\", \"benchmarks\": [\n{\"name\": \"a\", "
                   "\"metrics\": [{\"name\": \"m\"}]}]}",
                   "f:2: a metric needs a name and a direction");
    expect_refusal("{\"results\": [{\"command\": \"a\", \"times\": [true]}]}",
                   "f:1: a sample that is no number");
    expect_refusal("{\"context\": {}, \"benchmarks\": [{\"name\": \"a\", \"run_type\": "
                   "\"aggregate\"}]}",
                   "only aggregates");
    expect_refusal("BenchmarkX 1 2\n", "f:1: expected pairs of value and unit");
}

static void lines_of_go_are_read_with_their_units(void **state)
{
    static const char text[] = "goos: linux\nUnit widgets better=higher assume=exact\n"
                               "BenchmarkParse/big-8   \t 100\t  2000 ns/op\t 12 B/op\t7 widgets\n"
                               "BenchmarkParse/big-8   \t 100\t  3000 ns/op\t 12 B/op\t7 widgets\n"
                               "PASS\nok  \tpkg\t1.2s\n";
    tp_bench_report r;
    assert_int_equal(tp_bench_read("f", text, strlen(text), NULL, &r, NULL), TP_OK);
    assert_int_equal(r.n_results, 1);
    assert_string_equal(r.results[0].name, "Parse/big");
    const tp_bench_metric *time = tp_result_metric(&r.results[0], "time");
    assert_int_equal(time->n_b, 2);
    assert_true(fabs(time->b[1] - 3e-6) < 1e-15);
    const tp_bench_metric *widgets = tp_result_metric(&r.results[0], "widgets");
    assert_int_equal(widgets->metric.direction, TP_HIGHER_IS_BETTER);
    assert_int_equal(widgets->metric.kind, TP_METRIC_EXACT);
    tp_bench_report_release(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_format_is_written_as_recorded),
        cmocka_unit_test(what_is_read_is_what_was_written),
        cmocka_unit_test(our_own_format_loses_nothing),
        cmocka_unit_test(stored_files_are_compared_with_their_exit_status),
        cmocka_unit_test(a_file_of_times_judges_times),
        cmocka_unit_test(what_is_not_understood_is_named),
        cmocka_unit_test(lines_of_go_are_read_with_their_units),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
