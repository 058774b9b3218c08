/* format_trackers.c - one value per benchmark and metric, for services that keep history:
 * github-action-benchmark (direction belongs to the file) and Bencher. */
#include "base/platform.h"
#include "base/strings.h"
#include "instrument/bench/formats.h"

#include <math.h>
#include <string.h>

/* ---- github-action-benchmark ---- */

static bool is_shown(const tp_bench_result *result, const tp_bench_metric *m)
{
    return result->verdict != TP_BENCH_FAILED && m->n_b > 0 && isfinite(m->side_b.median);
}

static void write_tracker(const tp_bench_report *r, tp_direction direction, tp_buf *out)
{
    tp_json_w w = tp_json_w_open(out, 2, '[');
    for (size_t i = 0; i < r->n_results; i++) {
        const tp_bench_result *result = &r->results[i];
        for (size_t k = 0; k < result->n_metrics; k++) {
            const tp_bench_metric *m = &result->metrics[k];
            const tp_summary *s = &m->side_b;
            char text[600];
            if (m->metric.direction != direction || !is_shown(result, m))
                continue;
            tp_json_w_begin(&w, '{');
            tp_json_w_key(&w, "name");
            snprintf(text, sizeof text, "%s - %s", result->name, m->metric.name);
            tp_json_w_str(&w, text);
            tp_json_w_put_str(&w, "unit", m->metric.unit);
            tp_json_w_put_f64(&w, "value", s->median);
            if (m->metric.kind == TP_METRIC_NOISY && isfinite(s->lower)) {
                tp_json_w_key(&w, "range");
                snprintf(text, sizeof text, "\xc2\xb1 %.3g %%",
                         50 * (s->upper - s->lower) / s->median);
                tp_json_w_str(&w, text);
            }
            tp_json_w_key(&w, "extra");
            snprintf(text, sizeof text, "median of %zu round%s", m->n_b,
                     tp_plural((uint64_t)m->n_b));
            tp_json_w_str(&w, text);
            tp_json_w_end(&w, '}');
        }
    }
    tp_json_w_close(&w, ']');
}

void tp_write_tracker_smaller(const tp_bench_report *r, tp_buf *out)
{
    write_tracker(r, TP_LOWER_IS_BETTER, out);
}

void tp_write_tracker_bigger(const tp_bench_report *r, tp_buf *out)
{
    write_tracker(r, TP_HIGHER_IS_BETTER, out);
}

bool tp_is_tracker(const tp_json *root)
{
    return root && root->type == TP_JSON_ARRAY && root->child && tp_json_get(root->child, "value");
}

/* Whether the unit tells which way is better: of rates, of times, and of costs of one operation. */
static bool direction_of(const char *unit, tp_direction *ret)
{
    static const char *const rates[] = {"fps",  "ops",  "qps",  "rps",  "tps",  "bps",  "kbps",
                                        "Kbps", "Mbps", "Gbps", "kBps", "KBps", "MBps", "GBps"};
    /* With the micro sign, and with the Greek letter. */
    static const char *const times[] = {"ns", "us", "\xc2\xb5s", "\xce\xbcs",
                                        "ms", "s",  "sec",       "seconds"};
    bool is_rate = tp_str_ends(unit, "/s") || tp_str_ends(unit, "/sec");
    bool is_cost = tp_str_ends(unit, "/op") || tp_str_ends(unit, "/iter");
    for (size_t i = 0; i < TP_COUNTOF(rates); i++)
        is_rate |= strcmp(unit, rates[i]) == 0;
    for (size_t i = 0; i < TP_COUNTOF(times); i++)
        is_cost |= strcmp(unit, times[i]) == 0;
    *ret = is_rate ? TP_HIGHER_IS_BETTER : TP_LOWER_IS_BETTER;
    return is_rate || is_cost;
}

/* `named`: the direction of the whole file, NULL where nobody said it. */
static tp_status read_entry(const char *file, const tp_json *e, const tp_direction *named,
                            tp_bench_report *r, tp_error *err)
{
    const char *name = tp_json_str(tp_json_get(e, "name"));
    const char *unit = tp_json_str(tp_json_get(e, "unit"));
    double value;
    if (!name || !unit || !tp_bench_number(tp_json_get(e, "value"), &value))
        return tp_fail(err, TP_ERR_FORMAT, "%s:%u: an entry needs name, unit and value", file,
                       e->line);
    /* "NAME - METRIC" is how we write it. */
    const char *dash = NULL, *metric = "value";
    for (const char *p = name; (p = strstr(p, " - ")); p++)
        dash = p;
    char *plain = tp_arena_strndup(&r->arena, name, dash ? (size_t)(dash - name) : strlen(name));
    metric = dash ? dash + 3 : metric;
    tp_bench_result *result = tp_bench_report_find(r, plain);
    if (!result) {
        result = tp_bench_report_add(r, plain, TP_BENCH_MAX_METRICS);
        result->n_metrics = 0;
        result->rounds = 1;
    }
    if (tp_result_metric(result, metric) || result->n_metrics == TP_BENCH_MAX_METRICS)
        return tp_fail(err, TP_ERR_FORMAT, "%s:%u: a second entry '%s'", file, e->line, name);
    tp_bench_metric *m = &result->metrics[result->n_metrics++];
    tp_direction direction;
    bool is_known = direction_of(unit, &direction);
    tp_bench_metric_set(r, m, metric, unit, named ? *named : direction, TP_METRIC_NOISY,
                        tp_bench_report_values(r, &value, 1), 1);
    m->metric.is_count = tp_bench_unit_counts(unit);
    if (!named && !is_known) {
        tp_bench_metric_unjudged(m);
        m->note = "shown, not judged: which way is better is not said; name the file "
                  "smaller-is-better:FILE or bigger-is-better:FILE";
    }
    return TP_OK;
}

static tp_status read_tracker(const char *name, const tp_json *root, const tp_direction *named,
                              tp_bench_report *ret, tp_error *err)
{
    if (root->type != TP_JSON_ARRAY || root->n > TP_BENCH_MAX_RESULTS)
        return tp_fail(err, TP_ERR_FORMAT, "%s: has to be a list of at most %d", name,
                       TP_BENCH_MAX_RESULTS);
    ret->tool = "github-action-benchmark";
    for (const tp_json *e = root->child; e; e = e->next)
        TP_TRY(read_entry(name, e, named, ret, err));
    return TP_OK;
}

tp_status tp_read_tracker(const char *name, const tp_json *root, tp_bench_report *ret,
                          tp_error *err)
{
    return read_tracker(name, root, NULL, ret, err);
}

tp_status tp_read_tracker_smaller(const char *name, const tp_json *root, tp_bench_report *ret,
                                  tp_error *err)
{
    return read_tracker(name, root, &(tp_direction){TP_LOWER_IS_BETTER}, ret, err);
}

tp_status tp_read_tracker_bigger(const char *name, const tp_json *root, tp_bench_report *ret,
                                 tp_error *err)
{
    return read_tracker(name, root, &(tp_direction){TP_HIGHER_IS_BETTER}, ret, err);
}

/* ---- Bencher ---- */

static void put(tp_json_w *w, const char *key, double v)
{
    if (!isfinite(v))
        return;
    tp_json_w_put_f64(w, key, v);
}

void tp_write_bencher(const tp_bench_report *r, tp_buf *out)
{
    tp_json_w w = tp_json_w_open(out, 2, '{');
    for (size_t i = 0; i < r->n_results; i++) {
        const tp_bench_result *result = &r->results[i];
        if (result->verdict == TP_BENCH_FAILED || result->n_metrics == 0)
            continue;
        tp_json_w_put_begin(&w, result->name, '{');
        for (size_t k = 0; k < result->n_metrics; k++) {
            const tp_bench_metric *m = &result->metrics[k];
            /* Bencher's built-in measure of time is "latency", in nanoseconds. */
            bool is_time = m == tp_result_time(result);
            double scale = is_time ? 1e9 : 1;
            if (!is_shown(result, m))
                continue;
            tp_json_w_put_begin(&w, is_time ? "latency" : m->metric.name, '{');
            put(&w, "value", m->side_b.median * scale);
            put(&w, "lower_value", m->side_b.lower * scale);
            put(&w, "upper_value", m->side_b.upper * scale);
            tp_json_w_end(&w, '}');
        }
        tp_json_w_end(&w, '}');
    }
    tp_json_w_close(&w, '}');
}

bool tp_is_bencher(const tp_json *root)
{
    const tp_json *measure =
        root && root->type == TP_JSON_OBJECT && root->child ? root->child : NULL;
    measure = measure && measure->type == TP_JSON_OBJECT ? measure->child : NULL;
    return measure && tp_json_get(measure, "value");
}

static tp_status read_measures(const char *file, const tp_json *b, tp_bench_report *r,
                               tp_error *err)
{
    if (b->type != TP_JSON_OBJECT || b->n > TP_BENCH_MAX_METRICS ||
        tp_bench_report_find(r, b->key.data))
        return tp_fail(err, TP_ERR_FORMAT,
                       "%s:%u: each benchmark has to be an object of its own with at most %d "
                       "measures",
                       file, b->line, TP_BENCH_MAX_METRICS);
    tp_bench_result *result = tp_bench_report_add(r, b->key.data, b->n);
    size_t k = 0;
    result->rounds = 1;
    for (const tp_json *m = b->child; m; m = m->next, k++) {
        double value;
        bool is_time = strcmp(m->key.data, "latency") == 0;
        tp_bench_metric *metric = &result->metrics[k];
        if (!tp_bench_number(tp_json_get(m, "value"), &value))
            return tp_fail(err, TP_ERR_FORMAT, "%s:%u: a measure needs a value", file, m->line);
        value *= is_time ? 1e-9 : 1;
        if (is_time)
            tp_bench_metric_set(r, metric, tp_bench_time_name, "s", TP_LOWER_IS_BETTER,
                                TP_METRIC_NOISY, NULL, 0);
        else
            tp_bench_metric_by_name(r, metric, m->key.data, true);
        metric->b = tp_bench_report_values(r, &value, 1);
        metric->n_b = 1;
    }
    return TP_OK;
}

tp_status tp_read_bencher(const char *name, const tp_json *root, tp_bench_report *ret,
                          tp_error *err)
{
    if (root->type != TP_JSON_OBJECT || root->n > TP_BENCH_MAX_RESULTS)
        return tp_fail(err, TP_ERR_FORMAT, "%s: has to be an object of at most %d benchmarks", name,
                       TP_BENCH_MAX_RESULTS);
    ret->tool = "Bencher";
    for (const tp_json *b = root->child; b; b = b->next)
        TP_TRY(read_measures(name, b, ret, err));
    return TP_OK;
}
