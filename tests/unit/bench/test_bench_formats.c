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
        if (!f->write)
            continue;
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

static double median_of(const tp_bench_report *r, const char *metric)
{
    const tp_bench_result *result = tp_bench_report_find(r, "train/gpt2/f32");
    assert_non_null(result);
    const tp_bench_metric *m = tp_result_metric(result, metric);
    assert_non_null(m);
    return m->side_b.median;
}

static void our_metrics_survive_in_the_formats_of_times(void **state)
{
    static const char *const files[] = {"google.json", "benchmark.json"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        tp_bench_report r;
        load(files[i], NULL, &r);
        assert_true(median_of(&r, "throughput") == 900);
        assert_true(median_of(&r, "peak_memory") == 2 << 20);
        const tp_bench_metric *speed = tp_result_metric(&r.results[0], "throughput");
        assert_int_equal(speed->metric.direction, TP_HIGHER_IS_BETTER);
        assert_int_equal(speed->metric.is_informative, i == 1); /* one value, not one per round */
        assert_int_equal(speed->note != NULL, i == 1);
        /* time is judged where no speed is */
        assert_int_equal(tp_result_metric(&r.results[0], "time")->metric.is_informative, i == 0);
        tp_bench_report_release(&r);
    }
}

/* ---- comparing stored files ---- */

static int compare_named(const char *name, const char *old_text, const char *new_text,
                         tp_bench_report *current, bool allow_missing)
{
    tp_bench_report base;
    tp_error err = {0};
    tp_gate_options options = {.allow_missing = allow_missing};
    const tp_bench_format *format = name ? tp_bench_format_find(name) : NULL;
    if (tp_bench_read("old", old_text, strlen(old_text), format, &base, &err) != TP_OK ||
        tp_bench_read("new", new_text, strlen(new_text), format, current, &err) != TP_OK)
        fail_msg("%s", err.message);
    current->rule.by_point = name != NULL; /* formats of single values */
    assert_int_equal(tp_gate_compare_stored(&base, current, NULL, NULL, NULL), TP_OK);
    tp_bench_report_release(&base);
    return tp_gate_conclude(current, &options).exit_status;
}

static int compare_texts(const char *old_text, const char *new_text, tp_bench_report *current,
                         bool allow_missing)
{
    return compare_named(NULL, old_text, new_text, current, allow_missing);
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

#define GO(name, rest) "Benchmark" name " 100 1000 ns/op" rest "\n"
#define FIVE_GO(name, rest) \
    GO(name, rest) GO(name, rest) GO(name, rest) GO(name, rest) GO(name, rest)

static void counts_of_go_may_be_0(void **state)
{
    static const char none[] = FIVE_GO("Y-8", " 0 B/op 0 allocs/op");
    static const char some[] = FIVE_GO("Y-8", " 64 B/op 3 allocs/op");
    static const char now_and_then[] = GO("Y-8", " 0 B/op 0 allocs/op")
        GO("Y-8", " 1 B/op 0 allocs/op") FIVE_GO("Y-8", " 0 B/op 0 allocs/op");
    static const char about[] =
        FIVE_GO("Y-8", " 1000 B/op 3 allocs/op") FIVE_GO("Y-8", " 1002 B/op 3 allocs/op");
    static const struct {
        const char *before, *after;
        int status;
        tp_bench_verdict verdict;
    } cases[] = {
        {none, none, 0, TP_BENCH_PASS},         {none, some, 1, TP_BENCH_REGRESSION},
        {some, none, 0, TP_BENCH_IMPROVED},     {some, some, 0, TP_BENCH_PASS},
        {none, now_and_then, 0, TP_BENCH_PASS}, {now_and_then, none, 0, TP_BENCH_PASS},
        {about, about, 0, TP_BENCH_PASS},       {now_and_then, some, 1, TP_BENCH_REGRESSION},
        {none, about, 1, TP_BENCH_REGRESSION},  {about, none, 0, TP_BENCH_IMPROVED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tp_bench_report r;
        assert_int_equal(compare_texts(cases[i].before, cases[i].after, &r, false),
                         cases[i].status);
        assert_int_equal(r.results[0].verdict, cases[i].verdict);
        tp_bench_report_release(&r);
    }
    tp_bench_report r;
    assert_int_equal(compare_texts(none, none, &r, false), 0);
    const tp_bench_metric *bytes = tp_result_metric(&r.results[0], "B/op");
    assert_int_equal(bytes->metric.kind, TP_METRIC_EXACT);
    assert_int_equal(bytes->metric.direction, TP_LOWER_IS_BETTER);
    tp_bench_report_release(&r);
    /* a Unit line says otherwise */
    assert_int_equal(compare_texts("Unit B/op assume=nothing\n" FIVE_GO("Y", " 0 B/op"),
                                   "Unit B/op assume=nothing\n" FIVE_GO("Y", " 0 B/op"), &r, false),
                     3);
    tp_bench_report_release(&r);
}

/* Of a unit of one's own only the file says which way is better, wherever it says so. */
static void units_without_a_direction_are_not_judged(void **state)
{
    static const char before[] = FIVE_GO("Y", " 80 qps"), after[] = FIVE_GO("Y", " 120 qps");
    tp_bench_report r;
    assert_int_equal(compare_texts(before, after, &r, false), 0);
    const tp_bench_metric *qps = tp_result_metric(&r.results[0], "qps");
    assert_true(qps->metric.is_informative && !qps->is_compared);
    assert_non_null(strstr(qps->note, "which way is better"));
    tp_bench_report_release(&r);
    assert_int_equal(compare_texts(FIVE_GO("Y", " 80 qps") "Unit qps better=higher\n",
                                   FIVE_GO("Y", " 120 qps") "Unit qps better=higher\n", &r, false),
                     0);
    qps = tp_result_metric(&r.results[0], "qps");
    assert_int_equal(qps->metric.direction, TP_HIGHER_IS_BETTER);
    assert_int_equal(qps->comparison.verdict, TP_BENCH_IMPROVED);
    tp_bench_report_release(&r);
}

#define TRACKED(unit, value) "[{\"name\": \"x - m\", \"unit\": \"" unit "\", \"value\": " value "}]"

static void the_direction_of_a_tracker_is_that_of_its_name(void **state)
{
    static const struct {
        const char *format, *before, *after;
        tp_bench_verdict verdict;
    } cases[] = {
        {"bigger-is-better", TRACKED("%", "90"), TRACKED("%", "50"), TP_BENCH_REGRESSION},
        {"bigger-is-better", TRACKED("%", "50"), TRACKED("%", "90"), TP_BENCH_PASS},
        {"bigger-is-better", TRACKED("s", "2"), TRACKED("s", "1"), TP_BENCH_REGRESSION},
        {"smaller-is-better", TRACKED("points", "1"), TRACKED("points", "2"), TP_BENCH_REGRESSION},
        {"smaller-is-better", TRACKED("x/s", "2"), TRACKED("x/s", "1"), TP_BENCH_PASS},
        {"github-action", TRACKED("x/s", "2"), TRACKED("x/s", "1"), TP_BENCH_REGRESSION},
        {"github-action", TRACKED("fps", "2"), TRACKED("fps", "1"), TP_BENCH_REGRESSION},
        {"github-action", TRACKED("ms", "1"), TRACKED("ms", "2"), TP_BENCH_REGRESSION},
        {"github-action", TRACKED("qps", "2"), TRACKED("qps", "1"), TP_BENCH_REGRESSION},
        {"github-action", TRACKED("MBps", "2"), TRACKED("MBps", "1"), TP_BENCH_REGRESSION},
        {"github-action", TRACKED("\xce\xbcs", "1"), TRACKED("\xce\xbcs", "2"),
         TP_BENCH_REGRESSION},
        {"github-action", TRACKED("seconds", "1"), TRACKED("seconds", "2"), TP_BENCH_REGRESSION},
        {"github-action", TRACKED("ps", "1"), TRACKED("ps", "2"), TP_BENCH_NEW},
        {"github-action", TRACKED("steps", "1"), TRACKED("steps", "2"), TP_BENCH_NEW},
        {"github-action", TRACKED("%", "50"), TRACKED("%", "90"), TP_BENCH_NEW},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tp_bench_report r;
        bool is_new = cases[i].verdict == TP_BENCH_NEW;
        compare_named(cases[i].format, cases[i].before, cases[i].after, &r, false);
        assert_int_equal(r.results[0].verdict, cases[i].verdict);
        assert_int_equal(r.results[0].metrics[0].metric.is_informative, is_new);
        if (is_new)
            assert_non_null(strstr(r.results[0].metrics[0].note, "bigger-is-better:FILE"));
        tp_bench_report_release(&r);
    }
}

#define OWN(metric, unit, value)                                               \
    "{\"name\": \"x - " metric "\", \"unit\": \"" unit "\", \"value\": " value \
    ", \"extra\": \"median of 1 round\"}"

static void figures_of_different_units_are_not_compared(void **state)
{
    tp_bench_report r;
    tp_buf text = {0};
    assert_int_equal(compare_texts("[" OWN("m", "ms", "1000") "," OWN("k", "s", "3") "]",
                                   "[" OWN("m", "us", "2") "," OWN("k", "s", "3") "]", &r, false),
                     1);
    assert_int_equal(r.results[0].verdict, TP_BENCH_MISSING);
    tp_write_junit(&r, &text);
    assert_non_null(strstr(text.data, "MISSING: m was in ms and is in us"));
    tp_buf_release(&text);
    assert_string_equal(r.results[0].note,
                        "m was in ms and is in us: figures of different units are not compared");
    assert_false(r.results[0].metrics[0].is_compared);
    tp_bench_report_release(&r);
}

#define DIRECTED(way)                                                                   \
    "{\"schema\": \"temper-bench-1\", \"benchmarks\": [{\"name\": \"a\", \"metrics\": " \
    "[{\"name\": "                                                                      \
    "\"m\", \"unit\": \"points\", \"direction\": \"" way "\", \"samples\": [" TEN "]}]}]}"

static void figures_of_different_directions_are_not_compared(void **state)
{
    tp_bench_report r;
    assert_int_equal(compare_texts(DIRECTED("higher"), DIRECTED("lower"), &r, false), 1);
    assert_int_equal(r.results[0].verdict, TP_BENCH_MISSING);
    assert_non_null(strstr(r.results[0].note, "m was better when higher and is better when lower"));
    tp_bench_report_release(&r);
}

/* One of two files may say which way is better for both. */
static void a_direction_that_one_side_names_holds(void **state)
{
    static const char good[] = TRACKED("%", "90"), bad[] = TRACKED("%", "50");
    for (int named = 0; named < 2; named++) {
        tp_bench_report base, r;
        const tp_bench_format *bigger = tp_bench_format_find("bigger-is-better");
        assert_int_equal(tp_bench_read("a", good, strlen(good), named ? NULL : bigger, &base, NULL),
                         TP_OK);
        assert_int_equal(tp_bench_read("b", bad, strlen(bad), named ? bigger : NULL, &r, NULL),
                         TP_OK);
        r.rule.by_point = true;
        assert_int_equal(tp_gate_compare_stored(&base, &r, NULL, NULL, NULL), TP_OK);
        assert_int_equal(r.results[0].verdict, TP_BENCH_REGRESSION);
        assert_null(r.results[0].metrics[0].note);
        tp_bench_report_release(&base);
        tp_bench_report_release(&r);
    }
}

/* A regression of one metric does not hide that another could not be compared. */
static void a_note_stands_beside_a_regression(void **state)
{
    tp_bench_report r;
    tp_buf text = {0};
    compare_texts("[" OWN("m", "ms", "1") "," OWN("k", "s", "3") "]",
                  "[" OWN("m", "us", "2") "," OWN("k", "s", "9") "]", &r, false);
    r.rule.by_point = true;
    assert_int_equal(tp_gate_settle(&r, NULL), TP_OK);
    assert_int_equal(r.results[0].verdict, TP_BENCH_REGRESSION);
    tp_write_junit(&r, &text);
    assert_non_null(strstr(text.data, "m was in ms and is in us"));
    tp_buf_release(&text);
    tp_bench_report_release(&r);
}

static void a_command_that_crashed_has_failed(void **state)
{
    static const char crashed[] =
        "{\"results\": [{\"command\": \"a\", \"times\": [" TEN "], \"exit_codes\": [0, 0, 139]}]}";
    tp_bench_report r;
    assert_int_equal(compare_texts(HYPERFINE("a", TEN), crashed, &r, false), 3);
    assert_string_equal(r.results[0].message, "the command returned 139 in run 3; "
                                              "--ignore-failure compares it anyway");
    tp_bench_report_release(&r);
    assert_int_equal(compare_texts(crashed, HYPERFINE("a", TEN), &r, false), 3);
    tp_bench_report_release(&r);
}

#define COUNTED(counters)                                                                  \
    "{\"name\": \"x\", \"run_name\": \"x\", \"run_type\": \"iteration\", \"threads\": 1, " \
    "\"iterations\": 9, \"real_time\": 100, \"cpu_time\": 7, \"time_unit\": \"ns\", " counters "}"
#define GOOGLE(c)                                                                               \
    "{\"context\": {}, \"benchmarks\": [" COUNTED(c) "," COUNTED(c) "," COUNTED(c) "," COUNTED( \
        c) "," COUNTED(c) "," COUNTED(c) "]}"

static void counters_are_read(void **state)
{
    static const char fast[] = GOOGLE("\"items_per_second\": 2e6, \"misses\": 0, \"label\": \"l\"");
    static const char slow[] = GOOGLE("\"items_per_second\": 1e6, \"misses\": 9, \"label\": \"l\"");
    tp_bench_report r;
    assert_int_equal(compare_texts(fast, slow, &r, false), 1);
    assert_int_equal(r.results[0].n_metrics, 3);
    const tp_bench_metric *rate = tp_result_metric(&r.results[0], "items_per_second");
    assert_int_equal(rate->comparison.verdict, TP_BENCH_REGRESSION);
    const tp_bench_metric *misses = tp_result_metric(&r.results[0], "misses");
    assert_false(misses->is_compared);
    assert_non_null(strstr(misses->note, "which way is better"));
    assert_int_equal(misses->n_b, 6);
    tp_bench_report_release(&r);
    assert_int_equal(compare_texts(fast, fast, &r, false), 0);
    tp_bench_report_release(&r);
    /* the 12th metric and a second time have no place, which is said */
    assert_int_equal(
        compare_texts(fast, GOOGLE("\"time\": 1, \"items_per_second\": 2e6"), &r, false), 0);
    assert_non_null(strstr(r.results[0].note, "'time' is not read"));
    tp_bench_report_release(&r);
}

static void what_google_skipped_was_not_measured(void **state)
{
    static const char text[] =
        "{\"context\": {}, \"benchmarks\": [{\"name\": \"A\", \"run_type\": \"iteration\", "
        "\"skipped\": true, \"skip_message\": \"no GPU\", \"iterations\": 0, \"real_time\": 0, "
        "\"time_unit\": \"ns\"}, {\"name\": \"B\", \"run_type\": \"iteration\", \"iterations\": 5, "
        "\"real_time\": 3.5, \"time_unit\": \"us\"}]}";
    tp_bench_report r;
    assert_int_equal(compare_texts(text, text, &r, false), 0);
    assert_int_equal(r.n_results, 1);
    assert_string_equal(r.results[0].name, "B");
    tp_bench_report_release(&r);
}

/* What a result was not compared with when it was stored is no matter of the next comparison. */
static void a_stored_new_result_is_new_no_more(void **state)
{
    static const char text[] =
        "{\"schema\": \"temper-bench-1\", \"benchmarks\": [{\"name\": \"a\", \"verdict\": \"NEW\", "
        "\"note\": \"there is no baseline for it\", \"metrics\": [{\"name\": \"time\", \"unit\": "
        "\"s\", "
        "\"direction\": \"lower\", \"samples\": [" TEN "]}]}]}";
    tp_bench_report r;
    assert_int_equal(compare_texts(text, text, &r, false), 0);
    assert_null(r.results[0].note);
    tp_bench_report_release(&r);
}

static void a_byte_order_mark_is_no_text(void **state)
{
    tp_bench_report r;
    assert_int_equal(compare_texts("\xef\xbb\xbf" HYPERFINE("a", TEN),
                                   "\xef\xbb\xbf" HYPERFINE("a", TEN), &r, false),
                     0);
    tp_bench_report_release(&r);
}

/* The rule that decides is the one that all formats tell of. */
static void the_plain_rule_gives_the_verdicts(void **state)
{
    tp_bench_report base, r;
    tp_gate_options options = {0};
    tp_buf text = {0};
    const char *before = HYPERFINE("a", "1"), *after = HYPERFINE("a", "1.06");
    assert_int_equal(tp_bench_read("old", before, strlen(before), NULL, &base, NULL), TP_OK);
    assert_int_equal(tp_bench_read("new", after, strlen(after), NULL, &r, NULL), TP_OK);
    r.rule = (tp_rule){.alpha = 0.05, .tolerance = 0.05, .family = 1, .by_point = true};
    assert_int_equal(tp_gate_compare_stored(&base, &r, NULL, NULL, NULL), TP_OK);
    assert_int_equal(r.results[0].verdict, TP_BENCH_REGRESSION);
    assert_int_equal(tp_gate_conclude(&r, &options).exit_status, 1);
    tp_write_junit(&r, &text);
    assert_non_null(strstr(text.data, "failures=\"1\" errors=\"0\" skipped=\"0\""));
    assert_null(strstr(text.data, "timestamp"));
    tp_buf_release(&text);
    tp_bench_report_release(&base);
    tp_bench_report_release(&r);
}

static void junit_is_well_formed_whatever_the_names_hold(void **state)
{
    tp_bench_report r;
    tp_buf text = {0};
    assert_int_equal(tp_bench_report_init(&r, NULL), TP_OK);
    r.started = "2026-01-02T03:04:05Z";
    tp_bench_report_add(&r, "a\xef\xbf\xbe|\xef\xbf\xbf|\x01|\xff|<", 0)->verdict = TP_BENCH_NEW;
    tp_write_junit(&r, &text);
    assert_non_null(strstr(text.data, " name=\"a|||\xef\xbf\xbd|&lt;\""));
    assert_non_null(strstr(text.data, "timestamp=\"2026-01-02T03:04:05\""));
    tp_buf_release(&text);
    tp_bench_report_release(&r);
}

#define SWEEP(n, times) \
    "{\"command\": \"run\", \"times\": [" times "], \"parameters\": {\"n\": \"" n "\"}}"

static void parameters_tell_results_of_one_command_apart(void **state)
{
    static const char upwards[] = "{\"results\": [" SWEEP("1", TEN) "," SWEEP("2", TEN_SLOW) "]}";
    static const char downwards[] = "{\"results\": [" SWEEP("2", TEN_SLOW) "," SWEEP("1", TEN) "]}";
    tp_bench_report r;
    assert_int_equal(compare_texts(upwards, downwards, &r, false), 0);
    assert_int_equal(r.n_results, 2);
    assert_string_equal(r.results[0].name, "run n=2");
    assert_string_equal(r.results[1].name, "run n=1");
    tp_bench_report_release(&r);
}

/* What is written of two commands: each has its own times of the processor. */
static void sides_of_hyperfine_have_their_own_means(void **state)
{
    static const double one[] = {1, 1}, two[] = {2, 2};
    tp_bench_report r;
    tp_buf text = {0};
    assert_int_equal(tp_bench_report_init(&r, NULL), TP_OK);
    r.side_a = "first";
    r.side_b = "second";
    tp_bench_result *result = tp_bench_report_add(&r, "command", 2);
    const char *const names[] = {"time", "user_time"};
    for (size_t k = 0; k < 2; k++) {
        tp_bench_metric *m = &result->metrics[k];
        tp_bench_metric_set(&r, m, names[k], "s", TP_LOWER_IS_BETTER, TP_METRIC_NOISY, two, 2);
        m->a = one;
        m->n_a = 2;
        m->side_a = tp_summarise(one, 2);
        m->side_b = tp_summarise(two, 2);
    }
    tp_bench_format_find("hyperfine")->write(&r, &text);
    const char *second = strstr(text.data, "\"second\"");
    assert_non_null(second);
    assert_true(strstr(text.data, "\"user\": 1") < second);
    assert_non_null(strstr(second, "\"user\": 2"));
    assert_null(strstr(text.data, "\"system\"")); /* nobody measured it */
    assert_null(strstr(text.data, "\"exit_codes\""));
    tp_buf_release(&text);
    tp_bench_report_release(&r);
}

/* What is written in Go's lines comes back: names, units, and what is only shown. */
static void lines_of_go_of_ours_lose_nothing(void **state)
{
    static const char *const names[] = {"train/x", "Alpha/X", "_low", "two words-8", "50%20"};
    static const double values[] = {1, 2, 3, 4, 5}, none[] = {0, 0, 0, 0, 0};
    static const tp_metric metrics[] = {
        {.name = "throughput", .unit = "points", .direction = TP_HIGHER_IS_BETTER},
        {.name = "time", .unit = "s", .is_informative = true},
        {.name = "system_time", .unit = "s", .is_informative = true},
        {.name = "resident", .unit = "bytes", .floor = 1 << 20},
        {.name = "p 99", .unit = "milli-s per run", .kind = TP_METRIC_EXACT}};
    tp_bench_report written, read;
    tp_gate_options options = {0};
    tp_buf text = {0};
    assert_int_equal(tp_bench_report_init(&written, NULL), TP_OK);
    for (size_t i = 0; i < 5; i++) {
        tp_bench_result *result = tp_bench_report_add(&written, names[i], 5);
        result->rounds = 5;
        for (size_t k = 0; k < 5; k++) {
            result->metrics[k].metric = metrics[k];
            result->metrics[k].b = k == 2 || k == 4 ? none : values;
            result->metrics[k].n_b = 5;
        }
    }
    tp_write_gobench(&written, &text);
    assert_int_equal(tp_bench_read("f", text.data, text.len, NULL, &read, NULL), TP_OK);
    assert_int_equal(read.n_results, 5);
    for (size_t i = 0; i < 5; i++) {
        const tp_bench_result *result = &read.results[i];
        assert_string_equal(result->name, names[i]);
        assert_int_equal(result->n_metrics, 5);
        for (size_t k = 0; k < 5; k++) {
            const tp_metric *m = &result->metrics[k].metric;
            assert_string_equal(m->name, metrics[k].name);
            assert_string_equal(m->unit, metrics[k].unit);
            assert_int_equal(m->direction, metrics[k].direction);
            assert_int_equal(m->kind, metrics[k].kind);
            assert_int_equal(m->is_informative, metrics[k].is_informative);
            assert_true(m->floor == metrics[k].floor);
        }
    }
    /* ... and is not worse than itself */
    tp_bench_report again;
    assert_int_equal(tp_bench_read("f", text.data, text.len, NULL, &again, NULL), TP_OK);
    again.rule.tolerance = 0.9;
    assert_int_equal(tp_gate_compare_stored(&read, &again, NULL, NULL, NULL), TP_OK);
    assert_true(tp_gate_conclude(&again, &options).by_verdict[TP_BENCH_FAILED] == 0);
    tp_buf_release(&text);
    tp_bench_report_release(&written);
    tp_bench_report_release(&read);
    tp_bench_report_release(&again);
}

/* What a worker judges is judged, whatever Temper itself does with a metric of that name, and
 * whatever another benchmark of the file does with it. */
static void lines_of_go_of_ours_judge_what_was_judged(void **state)
{
    static const double values[] = {1, 2, 3, 4, 5};
    static const tp_metric metrics[2][5] = {
        {{.name = "decode", .unit = "tokens/s", .direction = TP_HIGHER_IS_BETTER},
         {.name = "resident", .unit = "bytes"},
         {.name = "time", .unit = "s"},
         {.name = "latency", .unit = "ms", .is_informative = true},
         {.name = "throughput", .unit = "x/s", .direction = TP_HIGHER_IS_BETTER}},
        {{.name = "latency", .unit = "ms", .floor = 3},
         {.name = "cost", .unit = "cents", .kind = TP_METRIC_EXACT, .is_informative = true}},
    };
    tp_bench_report written, read;
    tp_buf text = {0};
    assert_int_equal(tp_bench_report_init(&written, NULL), TP_OK);
    for (size_t i = 0; i < 2; i++) {
        tp_bench_result *result = tp_bench_report_add(&written, i ? "w/b" : "w/a", i ? 2 : 5);
        result->rounds = 5;
        for (size_t k = 0; k < result->n_metrics; k++) {
            result->metrics[k].metric = metrics[i][k];
            result->metrics[k].b = values;
            result->metrics[k].n_b = 5;
        }
    }
    tp_write_gobench(&written, &text);
    assert_int_equal(tp_bench_read("f", text.data, text.len, NULL, &read, NULL), TP_OK);
    for (size_t k = 0; k < 5; k++) {
        assert_false(read.results[0].metrics[k].metric.is_informative);
        assert_true(read.results[0].metrics[k].metric.floor == 0);
    }
    assert_false(read.results[1].metrics[0].metric.is_informative);
    assert_true(read.results[1].metrics[1].metric.is_informative);
    tp_bench_report_release(&read);
    tp_buf_release(&text);
    /* a time beside other figures is shown only, where it was so */
    written.results[0].metrics[2].metric.is_informative = true;
    written.results[0].n_metrics = 3;
    tp_write_gobench(&written, &text);
    assert_int_equal(tp_bench_read("f", text.data, text.len, NULL, &read, NULL), TP_OK);
    assert_true(read.results[0].metrics[2].metric.is_informative);
    tp_bench_report_release(&read);
    tp_buf_release(&text);
    tp_bench_report_release(&written);
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
    expect_refusal("{\"results\": []}", "f has no benchmarks");
    expect_refusal(
        "{\"schema\": \"temper-bench-1\", \"benchmarks\": [{\"name\": \"a\", \"metrics\": "
        "[{\"name\": \"m\", \"direction\": \"lower\"},\n{\"name\": \"m\", \"direction\": "
        "\"lower\"}]}]}",
        "f:2: a second metric 'm' of 'a'");
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
    expect_refusal("pkg: x\nUnit qps better=sideways\n", "f:2: 'better=sideways' of unit 'qps'");
    expect_refusal("Unit qps assume=much\n", "f:1: 'assume=much' of unit 'qps'");
    expect_refusal("{\"results\": [" SWEEP("1", "1") ",\n" SWEEP("1", "1") "]}",
                   "f:2: a second result of 'run n=1' with the same parameters");
    expect_refusal(
        "{\"schema\": \"temper-bench-1\", \"benchmarks\": [{\"name\": \"a\", \"metrics\": "
        "[{\"name\": \"m\", \"direction\": \"lower\", \"class\": \"foo\"}]}]}",
        "f:1: the class of 'm' is noisy or exact, not 'foo'");
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
    assert_string_equal(r.results[0].name, "Parse/big-8");
    const tp_bench_metric *time = tp_result_metric(&r.results[0], "time");
    assert_int_equal(time->n_b, 2);
    assert_true(fabs(time->b[1] - 3e-6) < 1e-15);
    const tp_bench_metric *widgets = tp_result_metric(&r.results[0], "widgets");
    assert_int_equal(widgets->metric.direction, TP_HIGHER_IS_BETTER);
    assert_int_equal(widgets->metric.kind, TP_METRIC_EXACT);
    tp_bench_report_release(&r);
}

static void expect_names(const char *text, const char *const *names, size_t n)
{
    tp_bench_report r;
    assert_int_equal(tp_bench_read("f", text, strlen(text), NULL, &r, NULL), TP_OK);
    assert_int_equal(r.n_results, n);
    for (size_t i = 0; i < n; i++)
        assert_string_equal(r.results[i].name, names[i]);
    tp_bench_report_release(&r);
}

static void benchmarks_of_go_are_kept_apart(void **state)
{
    expect_names(GO("Y", "") GO("Y-4", "") GO("Y-8", ""), (const char *const[]){"Y", "Y-4", "Y-8"},
                 3);
    expect_names(GO("Sort/n-10", "") GO("Sort/n-1000", "") GO("Sort/n-10", ""),
                 (const char *const[]){"Sort/n-10", "Sort/n-1000"}, 2);
    expect_names("pkg: a\n" GO("Y-4", "") "pkg: b/c\n" GO("Y-4", "") "pkg: a\n" GO("Y-4", ""),
                 (const char *const[]){"a.Y-4", "b/c.Y-4"}, 2);
    expect_names("pkg: a\n" GO("Y-4", "") "pkg: a\n" GO("Y-4", ""), (const char *const[]){"Y-4"},
                 1);
    expect_names("tool: temper\n" GO("Train/x-2", ""), (const char *const[]){"train/x"}, 1);
    /* as benchstat does, by every key that is another for some of them */
    expect_names("goos: linux\ngoarch: amd64\n" GO("Y-4", "") "goarch: arm64\nok: 1\n" GO(
                     "Y-4", "") "goos: linux\ngoarch: amd64\nok:\n" GO("Y-4", ""),
                 (const char *const[]){"Y-4 goarch:amd64", "Y-4 goarch:arm64 ok:1"}, 2);
    expect_names("note: a\nnote: before\nNote: x\nno te: y\nnote:z\n" GO(
                     "Y", "") "note: after\nnote: before\n" GO("Y", ""),
                 (const char *const[]){"Y"}, 1);
    /* a key without a value has none from there on */
    expect_names("pkg: a\n" GO("X", "") "pkg:\n" GO("Y", "") "pkg: b\n" GO("X", ""),
                 (const char *const[]){"a.X", "Y", "b.X"}, 3);
    /* a line of a log is none of a benchmark */
    expect_names(
        "BenchmarkBad-8 5 connections opened\n" GO("X-8", "") "BenchmarkX-8 5 0x10 ns/op\n",
        (const char *const[]){"X-8"}, 1);
}

static void read_or_fail(const char *text, tp_bench_report *ret)
{
    tp_error err = {0};
    if (tp_bench_read("f", text, strlen(text), NULL, ret, &err) != TP_OK)
        fail_msg("%s", err.message);
}

/* What else is in a file makes no other benchmark of one that both have. */
static void benchmarks_of_go_match_by_their_keys(void **state)
{
#define AMD "goos: linux\ngoarch: amd64\n"
#define ARM "goos: linux\ngoarch: arm64\n"
    static const struct {
        const char *before, *after;
        size_t n_pass, n_new, n_missing;
    } cases[] = {
        {AMD FIVE_GO("Y-8", ""), AMD FIVE_GO("Y-8", "") ARM FIVE_GO("Y-8", ""), 1, 1, 0},
        {AMD FIVE_GO("Y-8", ""), ARM FIVE_GO("Y-8", "") AMD FIVE_GO("Y-8", ""), 1, 1, 0},
        {AMD FIVE_GO("Y-8", "") ARM FIVE_GO("Y-8", ""), AMD FIVE_GO("Y-8", ""), 1, 0, 1},
        {AMD "pkg: a\n" FIVE_GO("Y-8", "") "pkg: b\n" FIVE_GO("Y-8", ""),
         AMD "pkg: a\n" FIVE_GO("Y-8", "") ARM FIVE_GO("Y-8", ""), 1, 1, 1},
        {AMD FIVE_GO("Y-8", ""), AMD FIVE_GO("Z-8", "") ARM FIVE_GO("Y-8", ""), 0, 2, 1},
        {AMD "ok: 1\n" FIVE_GO("Y-8", ""), FIVE_GO("Y-8", "") AMD "ok: 1\n" FIVE_GO("Y-8", ""), 1,
         1, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tp_bench_report r;
        size_t n[TP_BENCH_COUNT] = {0};
        compare_texts(cases[i].before, cases[i].after, &r, false);
        for (size_t k = 0; k < r.n_results; k++)
            n[r.results[k].verdict]++;
        assert_int_equal(n[TP_BENCH_PASS], cases[i].n_pass);
        assert_int_equal(n[TP_BENCH_NEW], cases[i].n_new);
        assert_int_equal(n[TP_BENCH_MISSING], cases[i].n_missing);
        tp_bench_report_release(&r);
    }
}

/* Up to version 1.4.1 nothing says what is a repetition. */
static void old_aggregates_of_google_are_none(void **state)
{
#define OLD(name, time) \
    "{\"name\": \"" name "\", \"iterations\": 9, \"real_time\": " time ", \"time_unit\": \"ns\"}"
    tp_bench_report r;
    read_or_fail(
        "{\"context\": {\"date\": \"2018-06-02 17:44:46\"}, \"benchmarks\": [" OLD(
            "S",
            "10") "," OLD("S",
                          "11") "," OLD("S_mean",
                                        "10.5") "," OLD("S_median",
                                                        "10.5") "," OLD("S_stddev",
                                                                        "0.7") "," OLD("of_mean",
                                                                                       "5") ", "
                                                                                            "{\"nam"
                                                                                            "e\": "
                                                                                            "\"S_"
                                                                                            "BigO\""
                                                                                            ", "
                                                                                            "\"cpu_"
                                                                                            "coeffi"
                                                                                            "cient"
                                                                                            "\": "
                                                                                            "1.2, "
                                                                                            "\"big_"
                                                                                            "o\": "
                                                                                            "\"N\"}"
                                                                                            ", "
                                                                                            "{\"nam"
                                                                                            "e\": "
                                                                                            "\"S_"
                                                                                            "RMS\","
                                                                                            " \"rms"
                                                                                            "\": "
                                                                                            "0.03}]"
                                                                                            "}",
        &r);
    assert_int_equal(r.n_results, 2);
    assert_string_equal(r.results[0].name, "S");
    assert_int_equal(r.results[0].metrics[0].n_b, 2);
    assert_string_equal(r.results[1].name, "of_mean");
    assert_string_equal(r.started, "2018-06-02 17:44:46");
    tp_bench_report_release(&r);
    expect_refusal("{\"context\": {}, \"benchmarks\": [" OLD("S_mean", "1") "," OLD(
                       "S_median", "1") "," OLD("S_stddev", "1") "]}",
                   "only aggregates");
}

static void entries_of_trackers_keep_their_names(void **state)
{
#define ENTRY(name) "{\"name\": \"" name "\", \"unit\": \"ms/op\", \"value\": 1.5}"
    tp_bench_report r;
    /* " - " is part of the name, whatever else is there */
    read_or_fail("[" ENTRY("m - 1") "," ENTRY("m - 2") "," ENTRY("x") "]", &r);
    assert_int_equal(r.n_results, 3);
    assert_string_equal(r.results[0].name, "m - 1");
    assert_string_equal(r.results[0].metrics[0].metric.name, "value");
    tp_bench_report_release(&r);
    /* but for entries of ours */
    read_or_fail("[" OWN("m", "ms", "1") "," OWN("k", "s", "3") "," ENTRY("x - y") "]", &r);
    assert_int_equal(r.n_results, 2);
    assert_string_equal(r.results[0].name, "x");
    assert_string_equal(r.results[0].metrics[1].metric.name, "k");
    assert_string_equal(r.results[1].name, "x - y");
    tp_bench_report_release(&r);
    tp_buf many = {0};
    for (int i = 0; i < 13; i++)
        tp_buf_addf(&many,
                    "%c{\"name\": \"x - %d\", \"value\": 1, \"extra\": \"median of 2 rounds\"}\n",
                    i ? ',' : '[', i);
    tp_buf_addc(&many, ']');
    expect_refusal(tp_buf_str(&many), "f:13: 'x' has more than 12 metrics");
    tp_buf_release(&many);
    expect_refusal("[" ENTRY("a") ",\n" ENTRY("a") "]", "f:2: two entries are called 'a'");
    read_or_fail("[{\"name\": \"a\", \"value\": \"31\"}, {\"name\": \"b\", \"value\": 2}]", &r);
    assert_true(r.results[0].metrics[0].b[0] == 31 && r.results[0].metrics[0].is_undirected);
    tp_bench_report_release(&r);
    expect_refusal("[{\"name\": \"a\", \"value\": \"0x1f\"}]", "an entry needs a name and a value");
}

/* benchmark-data.json, as github-action-benchmark keeps it. */
static void the_newest_entries_of_suites_are_read(void **state)
{
    tp_bench_report r;
    read_or_fail("{\"lastUpdate\": 1, \"repoUrl\": \"\", \"entries\": {\"A\": [{\"tool\": \"go\", "
                 "\"benches\": []}, "
                 "{\"tool\": \"customBiggerIsBetter\", \"benches\": [{\"name\": \"x\", \"value\": "
                 "5, \"unit\": \"points\"}]}]}}",
                 &r);
    assert_int_equal(r.n_results, 1);
    assert_string_equal(r.results[0].name, "x");
    assert_int_equal(r.results[0].metrics[0].metric.direction, TP_HIGHER_IS_BETTER);
    assert_false(r.results[0].metrics[0].is_undirected);
    tp_bench_report_release(&r);
    read_or_fail("{\"entries\": {\"A\": [{\"benches\": [" ENTRY(
                     "x") "]}], \"B\": [{\"benches\": [" ENTRY("x") "]}]}}",
                 &r);
    assert_int_equal(r.n_results, 2);
    assert_string_equal(r.results[1].name, "B/x");
    tp_bench_report_release(&r);
    expect_refusal("{\"entries\": {\"A\": [{\"benches\": []}], \n\"B\": []}}",
                   "f:2: a suite needs a list");
}

/* As pytest-benchmark saves by default: one value against many shows nothing, on either side. */
static void a_median_alone_is_one_value(void **state)
{
#define SAVED(data)                                                                           \
    "{\"machine_info\": {}, \"benchmarks\": [{\"name\": \"t\", \"stats\": {\"median\": 1.5, " \
    "\"rounds\": 900" data "}}]}"
    tp_bench_report with, without;
    for (int k = 0; k < 2; k++) {
        read_or_fail(SAVED(", \"data\": [1, 1.1, 1.2, 1, 1.1, 1.2]"), &with);
        read_or_fail(SAVED(""), &without);
        tp_bench_report *base = k ? &with : &without, *current = k ? &without : &with;
        assert_int_equal(tp_gate_compare_stored(base, current, NULL, NULL, NULL), TP_OK);
        assert_int_equal(current->results[0].verdict, TP_BENCH_INCONCLUSIVE);
        assert_non_null(
            strstr(current->results[0].metrics[0].note, "only a median is in the file"));
        tp_bench_report_release(&with);
        tp_bench_report_release(&without);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_format_is_written_as_recorded),
        cmocka_unit_test(what_is_read_is_what_was_written),
        cmocka_unit_test(our_own_format_loses_nothing),
        cmocka_unit_test(stored_files_are_compared_with_their_exit_status),
        cmocka_unit_test(our_metrics_survive_in_the_formats_of_times),
        cmocka_unit_test(counts_of_go_may_be_0),
        cmocka_unit_test(units_without_a_direction_are_not_judged),
        cmocka_unit_test(the_direction_of_a_tracker_is_that_of_its_name),
        cmocka_unit_test(figures_of_different_units_are_not_compared),
        cmocka_unit_test(figures_of_different_directions_are_not_compared),
        cmocka_unit_test(a_direction_that_one_side_names_holds),
        cmocka_unit_test(a_note_stands_beside_a_regression),
        cmocka_unit_test(a_command_that_crashed_has_failed),
        cmocka_unit_test(lines_of_go_of_ours_lose_nothing),
        cmocka_unit_test(lines_of_go_of_ours_judge_what_was_judged),
        cmocka_unit_test(counters_are_read),
        cmocka_unit_test(what_google_skipped_was_not_measured),
        cmocka_unit_test(a_stored_new_result_is_new_no_more),
        cmocka_unit_test(a_byte_order_mark_is_no_text),
        cmocka_unit_test(the_plain_rule_gives_the_verdicts),
        cmocka_unit_test(junit_is_well_formed_whatever_the_names_hold),
        cmocka_unit_test(parameters_tell_results_of_one_command_apart),
        cmocka_unit_test(sides_of_hyperfine_have_their_own_means),
        cmocka_unit_test(a_file_of_times_judges_times),
        cmocka_unit_test(what_is_not_understood_is_named),
        cmocka_unit_test(lines_of_go_are_read_with_their_units),
        cmocka_unit_test(benchmarks_of_go_are_kept_apart),
        cmocka_unit_test(benchmarks_of_go_match_by_their_keys),
        cmocka_unit_test(old_aggregates_of_google_are_none),
        cmocka_unit_test(entries_of_trackers_keep_their_names),
        cmocka_unit_test(the_newest_entries_of_suites_are_read),
        cmocka_unit_test(a_median_alone_is_one_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
