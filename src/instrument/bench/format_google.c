/* format_google.c - the JSON of Google Benchmark, one entry per repetition.
 *
 * compare.py pairs entries by run_name and uses every repetition, so each of our rounds
 * becomes one.  Other metrics go along as counters. */
#include "instrument/bench/formats.h"

#include <math.h>
#include <string.h>

#include "base/platform.h"

static const char own_executable[] = "temper bench";

/* ---- writing ---- */

static void put_int(tp_json_w *w, const char *key, size_t v)
{
    tp_json_w_put_i64(w, key, (int64_t)v);
}

static void put_context(tp_json_w *w, const tp_bench_report *r)
{
    tp_json_w_put_begin(w, "context", '{');
    tp_json_w_put_str(w, "date", r->started);
    tp_json_w_put_str(w, "host_name", r->host.name);
    tp_json_w_put_str(w, "executable", own_executable);
    put_int(w, "num_cpus", (size_t)r->host.processors);
    put_int(w, "mhz_per_cpu", 0);
    tp_json_w_put_bool(w, "cpu_scaling_enabled",
                       strcmp(r->host.governor, "performance") != 0 &&
                           strcmp(r->host.governor, "unknown") != 0);
    tp_json_w_put_begin(w, "caches", '[');
    tp_json_w_end(w, ']');
    tp_json_w_put_begin(w, "load_avg", '[');
    tp_json_w_end(w, ']');
    tp_json_w_put_str(w, "library_version", r->version);
    tp_json_w_put_str(w, "library_build_type", "release");
    put_int(w, "json_schema_version", 1);
    tp_json_w_end(w, '}');
}

static void put_head(tp_json_w *w, const tp_bench_report *r, size_t index, size_t round, size_t n)
{
    const tp_bench_result *result = &r->results[index];
    tp_json_w_begin(w, '{');
    tp_json_w_put_str(w, "name", result->name);
    put_int(w, "family_index", index);
    put_int(w, "per_family_instance_index", 0);
    tp_json_w_put_str(w, "run_name", result->name);
    tp_json_w_put_str(w, "run_type", "iteration");
    put_int(w, "repetitions", n);
    put_int(w, "repetition_index", round);
    put_int(w, "threads", 1);
}

static void put_round(tp_json_w *w, const tp_bench_report *r, size_t index, size_t round,
                      const tp_bench_metric *time)
{
    const tp_bench_result *result = &r->results[index];
    put_head(w, r, index, round, time->n_b);
    put_int(w, "iterations", result->work ? result->work : 1);
    tp_json_w_put_f64(w, "real_time", time->b[round] * 1e9);
    tp_json_w_put_f64(w, "cpu_time", time->b[round] * 1e9);
    tp_json_w_put_str(w, "time_unit", "ns");
    for (size_t k = 0; k < result->n_metrics; k++) {
        const tp_bench_metric *m = &result->metrics[k];
        if (m != time && round < m->n_b && isfinite(m->b[round]))
            tp_json_w_put_f64(w, m->metric.name, m->b[round]);
    }
    tp_json_w_end(w, '}');
}

void tp_write_google(const tp_bench_report *r, tp_buf *out)
{
    tp_json_w w = tp_json_w_open(out, 2, '{');
    put_context(&w, r);
    tp_json_w_put_begin(&w, "benchmarks", '[');
    for (size_t i = 0; i < r->n_results; i++) {
        const tp_bench_metric *time = tp_result_time(&r->results[i]);
        if (r->results[i].verdict == TP_BENCH_FAILED) {
            put_head(&w, r, i, 0, 1);
            tp_json_w_put_bool(&w, "error_occurred", true);
            tp_json_w_put_str(&w, "error_message", r->results[i].message);
            put_int(&w, "iterations", 0);
            tp_json_w_put_f64(&w, "real_time", 0);
            tp_json_w_put_f64(&w, "cpu_time", 0);
            tp_json_w_put_str(&w, "time_unit", "ns");
            tp_json_w_end(&w, '}');
            continue;
        }
        for (size_t k = 0; time && k < time->n_b; k++)
            put_round(&w, r, i, k, time);
    }
    tp_json_w_end(&w, ']');
    tp_json_w_close(&w, '}');
}

/* ---- reading ---- */

bool tp_is_google(const tp_json *root)
{
    const tp_json *list = tp_json_get(root, "benchmarks");
    return tp_json_get(root, "context") && list && list->type == TP_JSON_ARRAY;
}

static double unit_seconds(const char *unit)
{
    if (!unit || strcmp(unit, "ns") == 0)
        return 1e-9;
    return strcmp(unit, "us") == 0   ? 1e-6
           : strcmp(unit, "ms") == 0 ? 1e-3
           : strcmp(unit, "s") == 0  ? 1
                                     : NAN;
}

static bool has_name(const tp_json *list, const char *stem, size_t n, const char *end)
{
    for (const tp_json *b = list->child; b; b = b->next) {
        const char *name = tp_json_str(tp_json_get(b, "name"));
        if (name && strncmp(name, stem, n) == 0 && strcmp(name + n, end) == 0)
            return true;
    }
    return false;
}

/* Up to version 1.4.1 entries do not say that they are aggregates: fits are known by their members,
 * means by their names beside that of what they are of, or beside each other. */
static bool is_old_aggregate(const tp_json *list, const tp_json *b)
{
    static const char *const ends[] = {"_mean", "_median", "_stddev"};
    const char *name = tp_json_str(tp_json_get(b, "name"));
    if (tp_json_get(b, "cpu_coefficient") || tp_json_get(b, "big_o") || tp_json_get(b, "rms"))
        return true;
    for (size_t i = 0; name && i < TP_COUNTOF(ends); i++) {
        size_t n = strlen(name) - strlen(ends[i]);
        if (tp_str_ends(name, ends[i]))
            return has_name(list, name, n, "") ||
                   (has_name(list, name, n, ends[0]) && has_name(list, name, n, ends[2]));
    }
    return false;
}

static bool is_repetition(const tp_json *list, const tp_json *b)
{
    const char *type = tp_json_str(tp_json_get(b, "run_type"));
    return type ? strcmp(type, "iteration") == 0 : !is_old_aggregate(list, b);
}

static bool has_repetitions(const tp_json *list)
{
    for (const tp_json *b = list->child; b; b = b->next)
        if (is_repetition(list, b))
            return true;
    return false;
}

static tp_status read_time(const char *file, const tp_json *b, double *ret, tp_error *err)
{
    double v, scale = unit_seconds(tp_json_str(tp_json_get(b, "time_unit")));
    if (!tp_bench_number(tp_json_get(b, "real_time"), &v) || isnan(scale))
        return tp_fail(err, TP_ERR_FORMAT, "%s:%u: real_time and time_unit (ns, us, ms, s) needed",
                       file, b->line);
    *ret = v * scale;
    return TP_OK;
}

/* Every other number of an entry is a counter. */
static bool is_counter(const tp_json *entry, const tp_json *member)
{
    static const char *const fixed[] = {"family_index", "per_family_instance_index",
                                        "repetitions",  "repetition_index",
                                        "threads",      "iterations",
                                        "real_time",    "cpu_time"};
    if (member->type != TP_JSON_NUMBER || tp_json_get(entry, member->key.data) != member)
        return false;
    for (size_t i = 0; i < TP_COUNTOF(fixed); i++) {
        if (strcmp(fixed[i], member->key.data) == 0)
            return false;
    }
    return true;
}

/* A benchmark being read: the values of its metrics, the first of which is the time. */
typedef struct {
    tp_bench_report *report;
    tp_bench_result *result;
    tp_sample_list lists[TP_BENCH_MAX_METRICS];
    bool is_ours;
} run;

static tp_status read_counter(run *in, const tp_json *c, tp_error *err)
{
    double v;
    tp_bench_result *result = in->result;
    tp_bench_metric *m = tp_result_metric(result, c->key.data);
    if (!tp_json_f64(c, &v))
        return TP_OK;
    if (m == &result->metrics[0] || (!m && result->n_metrics == TP_BENCH_MAX_METRICS)) {
        tp_bench_note_left_out(in->report, result, c->key.data);
        return TP_OK;
    }
    if (!m) {
        m = &result->metrics[result->n_metrics++];
        tp_bench_metric_by_name(in->report, m, c->key.data, in->is_ours);
    }
    return tp_bench_metric_add(in->report, m, &in->lists[m - result->metrics], v, err);
}

static tp_status read_entry(const char *file, run *in, const tp_json *b, tp_error *err)
{
    double time = 0;
    TP_TRY(read_time(file, b, &time, err));
    TP_TRY(tp_bench_metric_add(in->report, &in->result->metrics[0], &in->lists[0], time, err));
    in->result->rounds++;
    for (const tp_json *c = b->child; c; c = c->next) {
        if (is_counter(b, c))
            TP_TRY(read_counter(in, c, err));
    }
    return TP_OK;
}

static void begin_run(run *in, const char *name)
{
    in->result = tp_bench_report_add(in->report, name, TP_BENCH_MAX_METRICS);
    in->result->n_metrics = 1;
    tp_bench_metric_set(in->report, &in->result->metrics[0], tp_bench_time_name, "s",
                        TP_LOWER_IS_BETTER, TP_METRIC_NOISY, NULL, 0);
}

/* SkipWithMessage(): what was not run was not measured. */
static bool is_skipped(const tp_json *entry)
{
    bool skipped = false;
    return tp_json_bool(tp_json_get(entry, "skipped"), &skipped) && skipped;
}

/* All entries of the run that starts at `first`, which is the first of its name. */
static tp_status read_run(const char *file, const tp_json *list, const tp_json *first,
                          const char *name, bool is_ours, tp_bench_report *r, tp_error *err)
{
    run in = {.report = r, .is_ours = is_ours};
    const char *message = NULL;
    bool failed = false;
    begin_run(&in, name);
    for (const tp_json *b = first; b; b = b->next) {
        const char *other = tp_json_str(tp_json_get(b, "run_name"));
        bool wrong = false;
        other = other ? other : tp_json_str(tp_json_get(b, "name"));
        if (!other || strcmp(other, name) != 0 || !is_repetition(list, b) || is_skipped(b))
            continue;
        if (tp_json_bool(tp_json_get(b, "error_occurred"), &wrong) && wrong) {
            message = tp_json_str(tp_json_get(b, "error_message"));
            failed = true;
            continue;
        }
        TP_TRY(read_entry(file, &in, b, err));
    }
    if (failed) {
        in.result->n_metrics = 0;
        tp_result_fail(r, in.result, "%s", message ? message : "an error occurred");
    }
    if (is_ours)
        tp_bench_judge_speed(in.result);
    return TP_OK;
}

tp_status tp_read_google(const char *name, const tp_json *root, tp_bench_report *ret, tp_error *err)
{
    const tp_json *list = tp_json_get(root, "benchmarks");
    if (!list || list->type != TP_JSON_ARRAY)
        return tp_fail(err, TP_ERR_FORMAT, "%s: \"benchmarks\" has to be a list", name);
    if (list->n > 0 && !has_repetitions(list))
        return tp_fail(err, TP_ERR_FORMAT,
                       "%s: only aggregates; run without --benchmark_report_aggregates_only", name);
    const tp_json *context = tp_json_get(root, "context");
    const char *program = tp_json_str(tp_json_get(context, "executable"));
    const char *when = tp_json_str(tp_json_get(context, "date"));
    bool is_ours = program && strcmp(program, own_executable) == 0;
    ret->tool = "Google Benchmark";
    ret->started = when ? tp_arena_strdup(&ret->arena, when) : "";
    for (const tp_json *b = list->child; b; b = b->next) {
        const char *called = tp_json_str(tp_json_get(b, "run_name"));
        called = called ? called : tp_json_str(tp_json_get(b, "name"));
        if (!called)
            return tp_fail(err, TP_ERR_FORMAT, "%s:%u: an entry without a name", name, b->line);
        if (!is_repetition(list, b) || is_skipped(b) || tp_bench_report_find(ret, called))
            continue;
        if (ret->n_results == TP_BENCH_MAX_RESULTS)
            return tp_fail(err, TP_ERR_FORMAT, "%s: more than %d benchmarks", name,
                           TP_BENCH_MAX_RESULTS);
        TP_TRY(read_run(name, list, b, called, is_ours, ret, err));
    }
    return TP_OK;
}
