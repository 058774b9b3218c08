/* format_pytest.c - the JSON of pytest-benchmark 4 and 5: times in seconds, with data.
 *
 * Its quartiles are its own: method 2/3 of statistics with the median's halves (Tukey's
 * hinges for even n, both methods averaged for odd), and `outliers` counts "beyond one
 * standard deviation;beyond 1.5 IQR". */
#include "instrument/bench/formats.h"

#include <math.h>
#include <string.h>

#include "stats/order.h"
#include "stats/stats.h"

static const char own_implementation[] = "temper"; /* of Python, in the machine_info we write */

/* ---- writing ---- */

typedef struct {
    double q1, q3, iqr, low, high; /* low, high: the ends of Tukey's whiskers */
    size_t beyond_sd, beyond_iqr;
} box;

/* Median of the lower or the upper half, the middle value left out. */
static double half_median(const double *sorted, size_t n, bool upper, bool with_middle)
{
    size_t half = n / 2 + (with_middle && n % 2);
    return tp_median_sorted(upper ? sorted + n - half : sorted, half);
}

static box box_of(const double *values, size_t n, const tp_summary *s)
{
    box b = {.q1 = s->median, .q3 = s->median, .low = s->min, .high = s->max};
    TP_FREED double *sorted = tp_sorted_copy(values, n);
    if (n < 2)
        return b;
    b.q1 = (half_median(sorted, n, false, false) + half_median(sorted, n, false, true)) / 2;
    b.q3 = (half_median(sorted, n, true, false) + half_median(sorted, n, true, true)) / 2;
    b.iqr = b.q3 - b.q1;
    double low = b.q1 - 1.5 * b.iqr, high = b.q3 + 1.5 * b.iqr;
    for (size_t i = 0; i < n; i++) {
        b.beyond_sd += fabs(sorted[i] - s->mean) > s->sd;
        b.beyond_iqr += sorted[i] < low || sorted[i] > high;
    }
    for (size_t i = n; i-- > 0;)
        b.low = sorted[i] >= low ? sorted[i] : b.low;
    for (size_t i = 0; i < n; i++)
        b.high = sorted[i] <= high ? sorted[i] : b.high;
    return b;
}

static void put_stats(tp_json_w *w, const tp_bench_metric *time)
{
    const tp_summary *s = &time->side_b;
    box b = box_of(time->b, time->n_b, s);
    char outliers[48];
    snprintf(outliers, sizeof outliers, "%zu;%zu", b.beyond_sd, b.beyond_iqr);
    tp_json_w_put_begin(w, "stats", '{');
    tp_json_w_put_f64(w, "min", s->min);
    tp_json_w_put_f64(w, "max", s->max);
    tp_json_w_put_f64(w, "mean", s->mean);
    tp_json_w_put_f64(w, "stddev", isnan(s->sd) ? 0 : s->sd);
    tp_json_w_put_i64(w, "rounds", (int64_t)time->n_b);
    tp_json_w_put_f64(w, "median", s->median);
    tp_json_w_put_f64(w, "iqr", b.iqr);
    tp_json_w_put_f64(w, "q1", b.q1);
    tp_json_w_put_f64(w, "q3", b.q3);
    tp_json_w_put_f64(w, "iqr_outliers", (double)b.beyond_iqr);
    tp_json_w_put_f64(w, "stddev_outliers", (double)b.beyond_sd);
    tp_json_w_put_str(w, "outliers", outliers);
    tp_json_w_put_f64(w, "ld15iqr", b.low);
    tp_json_w_put_f64(w, "hd15iqr", b.high);
    tp_json_w_put_f64(w, "ops", 1 / s->mean);
    tp_json_w_put_f64(w, "total", s->mean * (double)time->n_b);
    tp_json_w_put_f64s(w, "data", time->b, time->n_b);
    tp_json_w_put_i64(w, "iterations", 1);
    tp_json_w_end(w, '}');
}

static void put_extra(tp_json_w *w, const tp_bench_result *result)
{
    tp_json_w_put_begin(w, "extra_info", '{');
    for (size_t i = 0; i < result->n_metrics; i++) {
        const tp_bench_metric *m = &result->metrics[i];
        if (strcmp(m->metric.name, tp_bench_time_name) != 0 && isfinite(m->side_b.median))
            tp_json_w_put_f64(w, m->metric.name, m->side_b.median);
    }
    tp_json_w_end(w, '}');
}

static void put_benchmark(tp_json_w *w, const tp_bench_result *result, const tp_bench_metric *time)
{
    tp_json_w_begin(w, '{');
    tp_json_w_put_null(w, "group");
    tp_json_w_put_str(w, "name", result->name);
    tp_json_w_put_str(w, "fullname", result->name);
    tp_json_w_put_null(w, "params");
    tp_json_w_put_null(w, "param");
    put_extra(w, result);
    tp_json_w_put_begin(w, "options", '{');
    tp_json_w_put_bool(w, "disable_gc", false);
    tp_json_w_put_str(w, "timer", "clock_gettime");
    tp_json_w_put_i64(w, "min_rounds", (int64_t)time->n_b);
    tp_json_w_put_f64(w, "max_time", result->seconds);
    tp_json_w_put_f64(w, "min_time", 0);
    tp_json_w_put_bool(w, "warmup", result->warm_up > 0);
    tp_json_w_end(w, '}');
    put_stats(w, time);
    tp_json_w_end(w, '}');
}

static void put_machine(tp_json_w *w, const tp_bench_report *r)
{
    tp_json_w_put_begin(w, "machine_info", '{');
    tp_json_w_put_str(w, "node", r->host.name);
    tp_json_w_put_str(w, "processor", "");
    tp_json_w_put_str(w, "machine", "x86_64");
    tp_json_w_put_str(w, "python_compiler", r->host.compiler);
    tp_json_w_put_str(w, "python_implementation", own_implementation);
    tp_json_w_put_str(w, "python_implementation_version", r->version);
    tp_json_w_put_str(w, "python_version", r->version);
    tp_json_w_put_begin(w, "python_build", '[');
    tp_json_w_str(w, r->version);
    tp_json_w_str(w, r->host.fingerprint);
    tp_json_w_end(w, ']');
    tp_json_w_put_str(w, "release", r->host.kernel);
    tp_json_w_put_str(w, "system", "Linux");
    tp_json_w_put_begin(w, "cpu", '{');
    tp_json_w_put_str(w, "brand_raw", r->host.cpu);
    tp_json_w_put_i64(w, "count", r->host.processors);
    tp_json_w_end(w, '}');
    tp_json_w_end(w, '}');
}

static void put_commit(tp_json_w *w, const tp_bench_report *r)
{
    const tp_commit *c = &r->commit;
    tp_json_w_put_begin(w, "commit_info", '{');
    tp_json_w_put_str(w, "id", r->has_commit ? c->id : "unversioned");
    tp_json_w_put_str(w, "time", r->has_commit ? c->time : NULL);
    tp_json_w_put_str(w, "author_time", r->has_commit ? c->time : NULL);
    tp_json_w_put_bool(w, "dirty", r->has_commit && c->is_dirty);
    tp_json_w_put_str(w, "project", r->has_commit ? c->project : "unknown");
    tp_json_w_put_str(w, "branch", r->has_commit ? c->branch : "(unknown)");
    tp_json_w_end(w, '}');
}

void tp_write_pytest(const tp_bench_report *r, tp_buf *out)
{
    tp_json_w w = tp_json_w_open(out, 4, '{');
    put_machine(&w, r);
    put_commit(&w, r);
    tp_json_w_put_begin(&w, "benchmarks", '[');
    for (size_t i = 0; i < r->n_results; i++) {
        const tp_bench_metric *time = tp_result_time(&r->results[i]);
        if (time && r->results[i].verdict != TP_BENCH_FAILED)
            put_benchmark(&w, &r->results[i], time);
    }
    tp_json_w_end(&w, ']');
    /* Python's isoformat() has no Z. */
    char datetime[40];
    snprintf(datetime, sizeof datetime, "%s", r->started);
    size_t n = strlen(datetime);
    if (n && datetime[n - 1] == 'Z')
        memcpy(datetime + n - 1, "+00:00", 7);
    tp_json_w_put_str(&w, "datetime", datetime);
    tp_json_w_put_str(&w, "version", "5.1.0");
    tp_json_w_close(&w, '}');
}

/* ---- reading ---- */

bool tp_is_pytest(const tp_json *root)
{
    const tp_json *list = tp_json_get(root, "benchmarks");
    return tp_json_get(root, "machine_info") && list && list->type == TP_JSON_ARRAY;
}

static bool has_data(const tp_json *stats)
{
    const tp_json *data = tp_json_get(stats, "data");
    return data && data->type == TP_JSON_ARRAY;
}

static tp_status read_times(const char *file, const tp_json *stats, tp_bench_report *r,
                            const double **ret, size_t *ret_n, tp_error *err)
{
    double v;
    if (has_data(stats))
        return tp_bench_values(file, tp_json_get(stats, "data"), r, ret, ret_n, err);
    if (!tp_bench_number(tp_json_get(stats, "median"), &v))
        return tp_fail(err, TP_ERR_FORMAT, "%s:%u: stats without data and without median", file,
                       stats->line);
    *ret = tp_bench_report_values(r, &v, *ret_n = 1);
    return TP_OK;
}

/* Numbers of `extra_info`: one for all rounds, which is shown and cannot be judged. */
static void read_extra(const tp_json *extra, tp_bench_report *r, tp_bench_result *result,
                       bool is_ours)
{
    double v;
    for (const tp_json *x = extra ? extra->child : NULL; x; x = x->next) {
        if (x->type != TP_JSON_NUMBER || !tp_json_f64(x, &v))
            continue;
        if (result->n_metrics == TP_BENCH_MAX_METRICS || tp_result_metric(result, x->key.data)) {
            tp_bench_note_left_out(r, result, x->key.data);
            continue;
        }
        tp_bench_metric *m = &result->metrics[result->n_metrics++];
        tp_bench_metric_by_name(r, m, x->key.data, is_ours);
        m->metric.is_informative = true;
        m->note = "shown, not judged: one value for all rounds";
        m->b = tp_bench_report_values(r, &v, 1);
        m->n_b = 1;
    }
}

static tp_status read_benchmark(const char *file, const tp_json *b, bool is_ours,
                                tp_bench_report *r, tp_error *err)
{
    const char *name = tp_json_str(tp_json_get(b, "fullname"));
    const tp_json *stats = tp_json_get(b, "stats");
    const double *times;
    size_t n;
    name = name ? name : tp_json_str(tp_json_get(b, "name"));
    if (!name || !stats || stats->type != TP_JSON_OBJECT)
        return tp_fail(err, TP_ERR_FORMAT, "%s:%u: a benchmark needs a name and stats", file,
                       b->line);
    if (tp_bench_report_find(r, name))
        return tp_fail(err, TP_ERR_FORMAT, "%s:%u: a second benchmark named '%s'", file, b->line,
                       name);
    TP_TRY(read_times(file, stats, r, &times, &n, err));
    tp_bench_result *result = tp_bench_report_add(r, name, TP_BENCH_MAX_METRICS);
    result->n_metrics = 1;
    result->rounds = n;
    tp_bench_metric_set(r, &result->metrics[0], tp_bench_time_name, "s", TP_LOWER_IS_BETTER,
                        TP_METRIC_NOISY, times, n);
    if (!has_data(stats))
        tp_bench_metric_median(&result->metrics[0]);
    read_extra(tp_json_get(b, "extra_info"), r, result, is_ours);
    return TP_OK;
}

static void read_commit(const tp_json *c, tp_bench_report *r)
{
    const char *id = tp_json_str(tp_json_get(c, "id"));
    if (!id || strcmp(id, "unversioned") == 0 || strcmp(id, "unknown") == 0)
        return;
    r->has_commit = true;
    snprintf(r->commit.id, sizeof r->commit.id, "%s", id);
    tp_json_bool(tp_json_get(c, "dirty"), &r->commit.is_dirty);
}

tp_status tp_read_pytest(const char *name, const tp_json *root, tp_bench_report *ret, tp_error *err)
{
    const tp_json *list = tp_json_get(root, "benchmarks");
    const char *when = tp_json_str(tp_json_get(root, "datetime"));
    if (!list || list->type != TP_JSON_ARRAY || list->n > TP_BENCH_MAX_RESULTS)
        return tp_fail(err, TP_ERR_FORMAT, "%s: \"benchmarks\" has to be a list of at most %d",
                       name, TP_BENCH_MAX_RESULTS);
    const char *python =
        tp_json_str(tp_json_get(tp_json_get(root, "machine_info"), "python_implementation"));
    bool is_ours = python && strcmp(python, own_implementation) == 0;
    ret->tool = "pytest-benchmark";
    ret->started = when ? tp_arena_strdup(&ret->arena, when) : "";
    read_commit(tp_json_get(root, "commit_info"), ret);
    for (const tp_json *b = list->child; b; b = b->next)
        TP_TRY(read_benchmark(name, b, is_ours, ret, err));
    return TP_OK;
}
