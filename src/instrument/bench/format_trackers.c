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

static const char own_extra[] = "median of "; /* and how many rounds: tells entries of ours */

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
            snprintf(text, sizeof text, "%s%zu round%s", own_extra, m->n_b,
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

static bool is_list(const tp_json *v) { return v && v->type == TP_JSON_ARRAY; }

/* What the action keeps of a suite in the branch of its pages: a list, the newest entry last. */
static const tp_json *newest(const tp_json *suite)
{
    const tp_json *ret = is_list(suite) && suite->n ? tp_json_at(suite, suite->n - 1) : NULL;
    return is_list(tp_json_get(ret, "benches")) ? ret : NULL;
}

bool tp_is_tracker(const tp_json *root)
{
    const tp_json *suites = tp_json_get(root, "entries");
    if (suites)
        return suites->child && newest(suites->child);
    return is_list(root) && root->child && tp_json_get(root->child, "value");
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

/* "NAME - METRIC" is how we write it: the length of NAME.  In entries of others, whose `extra` is
 * another, all is name: what else is in the file does not matter. */
static size_t plain_length(const tp_json *e, const char *name)
{
    const char *extra = tp_json_str(tp_json_get(e, "extra")), *dash = NULL;
    bool is_own = extra && tp_str_starts(extra, own_extra);
    for (const char *p = name; is_own && (p = strstr(p, " - ")); p++)
        dash = p;
    return dash ? (size_t)(dash - name) : strlen(name);
}

/* The action takes a number in a string as well, and needs no unit. */
static bool value_of(const tp_json *e, double *ret)
{
    const tp_json *v = tp_json_get(e, "value");
    const char *text = tp_json_str(v);
    return tp_bench_number(v, ret) || (text && tp_bench_decimal(text, ret));
}

/* Entries of one list; `named`: the direction of all, NULL where nobody said it. */
typedef struct {
    const char *file;
    const tp_json *list;
    const char *suite; /* in front of names where there are several; or NULL */
    const tp_direction *named;
    tp_bench_report *report;
} entries;

static tp_status read_entry(const entries *in, const tp_json *e, tp_error *err)
{
    tp_bench_report *r = in->report;
    const char *name = tp_json_str(tp_json_get(e, "name")), *metric = "value";
    const char *unit = tp_json_str(tp_json_get(e, "unit"));
    double value;
    if (!name || !value_of(e, &value))
        return tp_fail(err, TP_ERR_FORMAT, "%s:%u: an entry needs a name and a value", in->file,
                       e->line);
    size_t n = plain_length(e, name);
    if (name[n])
        metric = name + n + 3;
    const char *plain = tp_bench_report_printf(r, "%s%s%.*s", in->suite ? in->suite : "",
                                               in->suite ? "/" : "", (int)n, name);
    tp_bench_result *result = tp_bench_report_find(r, plain);
    if (!result && r->n_results == TP_BENCH_MAX_RESULTS)
        return tp_fail(err, TP_ERR_FORMAT, "%s: more than %d benchmarks", in->file,
                       TP_BENCH_MAX_RESULTS);
    if (!result) {
        result = tp_bench_report_add(r, plain, TP_BENCH_MAX_METRICS);
        result->n_metrics = 0;
        result->rounds = 1;
    }
    if (result->n_metrics == TP_BENCH_MAX_METRICS)
        return tp_fail(err, TP_ERR_FORMAT, "%s:%u: '%.80s' has more than %d metrics", in->file,
                       e->line, plain, TP_BENCH_MAX_METRICS);
    if (tp_result_metric(result, metric))
        return tp_fail(err, TP_ERR_FORMAT, "%s:%u: two entries are called '%.80s'; rename one",
                       in->file, e->line, name);
    tp_bench_metric *m = &result->metrics[result->n_metrics++];
    tp_direction direction;
    bool is_known = direction_of(unit ? unit : "", &direction);
    tp_bench_metric_set(r, m, metric, unit ? unit : "", in->named ? *in->named : direction,
                        TP_METRIC_NOISY, tp_bench_report_values(r, &value, 1), 1);
    m->metric.is_count = unit && tp_bench_unit_counts(unit);
    if (!in->named && !is_known) {
        tp_bench_metric_unjudged(m);
        m->note = "shown, not judged: which way is better is not said; name the file "
                  "smaller-is-better:FILE or bigger-is-better:FILE";
    }
    return TP_OK;
}

static tp_status read_entries(const entries *in, tp_error *err)
{
    if (!is_list(in->list) || in->list->n > TP_BENCH_MAX_RESULTS)
        return tp_fail(err, TP_ERR_FORMAT, "%s: has to be a list of at most %d", in->file,
                       TP_BENCH_MAX_RESULTS);
    for (const tp_json *e = in->list->child; e; e = e->next)
        TP_TRY(read_entry(in, e, err));
    return TP_OK;
}

/* The tool that measured a suite may tell the direction of all. */
static const tp_direction *direction_of_tool(const char *tool)
{
    static const tp_direction lower = TP_LOWER_IS_BETTER, higher = TP_HIGHER_IS_BETTER;
    return !tool                                        ? NULL
           : strcmp(tool, "customSmallerIsBetter") == 0 ? &lower
           : strcmp(tool, "customBiggerIsBetter") == 0  ? &higher
                                                        : NULL;
}

/* A list, or {"entries": {SUITE: [..]}}, of which the newest entry of each suite counts. */
static tp_status read_tracker(const char *name, const tp_json *root, const tp_direction *named,
                              tp_bench_report *ret, tp_error *err)
{
    const tp_json *suites = tp_json_get(root, "entries");
    entries in = {.file = name, .list = root, .named = named, .report = ret};
    ret->tool = "github-action-benchmark";
    if (!suites)
        return read_entries(&in, err);
    for (const tp_json *suite = suites->child; suite; suite = suite->next) {
        const tp_json *last = newest(suite);
        if (!last)
            return tp_fail(err, TP_ERR_FORMAT, "%s:%u: a suite needs a list with \"benches\"", name,
                           suite->line);
        in.list = tp_json_get(last, "benches");
        in.suite = suites->n > 1 ? suite->key.data : NULL;
        in.named = named ? named : direction_of_tool(tp_json_str(tp_json_get(last, "tool")));
        TP_TRY(read_entries(&in, err));
    }
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
