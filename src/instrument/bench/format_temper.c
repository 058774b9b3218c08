/* format_temper.c - schema temper-bench-1: docs/formats/bench.md. */
#include "instrument/bench/formats.h"

#include <math.h>
#include <string.h>

/* ---- writing ---- */

static void put_i64(tp_json_w *w, const char *key, uint64_t v)
{
    tp_json_w_put_i64(w, key, (int64_t)v);
}

static void put_summary(tp_json_w *w, const char *key, const tp_summary *s)
{
    tp_json_w_put_begin(w, key, '{');
    put_i64(w, "n", s->n);
    tp_json_w_put_finite(w, "median", s->median);
    tp_json_w_put_finite(w, "median_lower_95", s->lower);
    tp_json_w_put_finite(w, "median_upper_95", s->upper);
    tp_json_w_put_finite(w, "mean", s->mean);
    tp_json_w_put_finite(w, "sd", s->sd);
    tp_json_w_put_finite(w, "min", s->min);
    tp_json_w_put_finite(w, "max", s->max);
    tp_json_w_end(w, '}');
}

static const char *const how_names[] = {[TP_COMPARED_PAIRED] = "paired",
                                        [TP_COMPARED_UNPAIRED] = "unpaired",
                                        [TP_COMPARED_BASELINE] = "unpaired-baseline",
                                        [TP_COMPARED_EXACT] = "exact"};

static void put_comparison(tp_json_w *w, const tp_bench_comparison *c)
{
    tp_json_w_put_begin(w, "comparison", '{');
    tp_json_w_put_str(w, "verdict", tp_bench_verdict_name(c->verdict));
    tp_json_w_put_str(w, "word", tp_bench_verdict_word(c->verdict));
    tp_json_w_put_str(w, "reason", c->reason);
    tp_json_w_put_str(w, "how", how_names[c->how]);
    put_i64(w, "n", c->n);
    put_i64(w, "ties", c->n_ties);
    tp_json_w_put_finite(w, "tolerance", c->tolerance);
    tp_json_w_put_finite(w, "alpha", c->alpha);
    tp_json_w_put_finite(w, "ratio", c->ratio);
    tp_json_w_put_finite(w, "ratio_lower", c->ratio_lower);
    tp_json_w_put_finite(w, "ratio_upper", c->ratio_upper);
    tp_json_w_put_finite(w, "log_worse", c->center);
    tp_json_w_put_finite(w, "log_worse_lower", c->lower);
    tp_json_w_put_finite(w, "log_worse_upper", c->upper);
    tp_json_w_put_finite(w, "mean_log_worse", c->mean);
    tp_json_w_put_finite(w, "mean_log_worse_lower", c->mean_lower);
    tp_json_w_put_finite(w, "mean_log_worse_upper", c->mean_upper);
    tp_json_w_put_finite(w, "hodges_lehmann_log_worse", c->hodges_lehmann);
    tp_json_w_put_finite(w, "bca_median_log_worse_lower", c->boot_median_lower);
    tp_json_w_put_finite(w, "bca_median_log_worse_upper", c->boot_median_upper);
    tp_json_w_put_finite(w, "bca_mean_log_worse_lower", c->boot_mean_lower);
    tp_json_w_put_finite(w, "bca_mean_log_worse_upper", c->boot_mean_upper);
    tp_json_w_put_finite(w, "p", c->p);
    tp_json_w_put_finite(w, "p_holm", c->p_holm);
    tp_json_w_put_finite(w, "log_e_worse", c->log_e_worse);
    tp_json_w_put_finite(w, "log_e_within", c->log_e_within);
    tp_json_w_put_finite(w, "mde", c->mde);
    tp_json_w_put_finite(w, "half_width", c->half_width);
    tp_json_w_put_finite(w, "lag1", c->lag1);
    tp_json_w_put_finite(w, "n_effective", c->n_effective);
    tp_json_w_put_finite(w, "order_effect", c->order_effect);
    tp_json_w_put_finite(w, "order_effect_lower_95", c->order_lower);
    tp_json_w_put_finite(w, "order_effect_upper_95", c->order_upper);
    tp_json_w_put_finite(w, "sd_within", c->sd_within);
    tp_json_w_put_finite(w, "sd_between", c->sd_between);
    tp_json_w_put_bool(w, "sd_between_assumed", c->is_sd_assumed);
    tp_json_w_put_bool(w, "below_floor", c->is_below_floor);
    tp_json_w_put_str(w, "point_rule", tp_bench_verdict_name(c->point));
    tp_json_w_put_finite(w, "point_ratio", c->point_ratio);
    tp_json_w_end(w, '}');
}

static void put_metric(tp_json_w *w, const tp_bench_metric *m)
{
    tp_json_w_begin(w, '{');
    tp_metric_write(&m->metric, w);
    tp_json_w_put_str(w, "note", m->note);
    tp_json_w_put_f64_line(w, "samples", m->b, m->n_b);
    put_summary(w, "summary", &m->side_b);
    if (m->n_a > 0) {
        tp_json_w_put_f64_line(w, "baseline_samples", m->a, m->n_a);
        put_summary(w, "baseline_summary", &m->side_a);
    }
    if (m->is_compared)
        put_comparison(w, &m->comparison);
    tp_json_w_end(w, '}');
}

/* Every attempt at a round, in order of time: what it ran under, and why it does not count. */
static void put_attempts(tp_json_w *w, const tp_bench_result *result)
{
    tp_json_w_put_begin(w, "attempts", '[');
    for (size_t i = 0; i < result->n_attempts; i++) {
        const tp_round_conditions *c = &result->attempts[i];
        tp_json_w_begin(w, '{');
        tp_json_w_put_finite(w, "steal_share", c->steal_share);
        tp_json_w_put_finite(w, "switches_per_s", c->switches_per_s);
        tp_json_w_put_i64_if(w, "throttles", c->throttles != TP_READING_UNKNOWN, c->throttles);
        tp_json_w_put_str(w, "disturbed", c->reason ? tp_disturbance_name(c->reason) : NULL);
        tp_json_w_put_bool(w, "rejected", c->is_rejected);
        tp_json_w_end(w, '}');
    }
    tp_json_w_end(w, ']');
}

static void put_result(tp_json_w *w, const tp_bench_result *result)
{
    tp_json_w_begin(w, '{');
    tp_json_w_put_str(w, "name", result->name);
    tp_json_w_put_str(w, "verdict", tp_bench_verdict_name(result->verdict));
    tp_json_w_put_str(w, "word", tp_bench_verdict_word(result->verdict));
    tp_json_w_put_str(w, "message", result->message);
    tp_json_w_put_str(w, "note", result->note);
    put_i64(w, "work", result->work);
    tp_json_w_put_str(w, "work_unit", result->work_unit);
    put_i64(w, "rounds", result->rounds);
    put_i64(w, "warm_up", result->warm_up);
    put_i64(w, "seed", result->seed);
    tp_json_w_put_str(w, "order", result->order);
    tp_json_w_put_bool(w, "sequential", result->is_sequential);
    tp_json_w_put_finite(w, "seconds", result->seconds);
    if (result->n_attempts)
        put_attempts(w, result);
    tp_json_w_put_begin(w, "metrics", '[');
    for (size_t i = 0; i < result->n_metrics; i++)
        put_metric(w, &result->metrics[i]);
    tp_json_w_end(w, ']');
    tp_json_w_end(w, '}');
}

static void put_commit(tp_json_w *w, const tp_bench_report *r)
{
    tp_json_w_key(w, "commit");
    if (!r->has_commit) {
        tp_json_w_null(w);
        return;
    }
    tp_json_w_begin(w, '{');
    tp_json_w_put_str(w, "id", r->commit.id);
    tp_json_w_put_str(w, "branch", r->commit.branch);
    tp_json_w_put_str(w, "time", r->commit.time);
    tp_json_w_put_str(w, "project", r->commit.project);
    tp_json_w_put_bool(w, "dirty", r->commit.is_dirty);
    tp_json_w_end(w, '}');
}

static void put_totals(tp_json_w *w, const tp_bench_report *r)
{
    tp_gate_options options = {0};
    tp_gate_summary s = tp_gate_conclude(r, &options);
    tp_json_w_put_begin(w, "verdicts", '{');
    for (int v = TP_BENCH_PASS; v < TP_BENCH_COUNT; v++)
        put_i64(w, tp_bench_verdict_name((tp_bench_verdict)v), s.by_verdict[v]);
    tp_json_w_end(w, '}');
    put_i64(w, "point_rule_regressions", s.n_point_regressions);
}

void tp_write_temper(const tp_bench_report *r, tp_buf *out)
{
    tp_json_w w = tp_json_w_open(out, 1, '{');
    tp_json_w_put_str(&w, "schema", TP_BENCH_SCHEMA);
    tp_json_w_put_str(&w, "tool", r->tool);
    tp_json_w_put_str(&w, "version", r->version);
    tp_json_w_put_str(&w, "started", r->started);
    put_commit(&w, r);
    tp_json_w_key(&w, "host");
    if (r->is_host_known)
        tp_host_write(&r->host, &w);
    else
        tp_json_w_null(&w);
    tp_json_w_put_begin(&w, "rule", '{');
    tp_json_w_put_finite(&w, "alpha", r->rule.alpha);
    tp_json_w_put_finite(&w, "tolerance", r->rule.tolerance);
    tp_json_w_put_finite(&w, "exact_tolerance", r->rule.exact_tolerance);
    put_i64(&w, "family", r->rule.family);
    put_i64(&w, "seed", r->seed);
    tp_json_w_end(&w, '}');
    tp_json_w_put_str(&w, "baseline", r->side_a);
    tp_json_w_put_str(&w, "measured", r->side_b);
    put_totals(&w, r);
    tp_json_w_put_i64_if(&w, "exit_status", r->exit_status >= 0, r->exit_status);
    tp_json_w_put_begin(&w, "benchmarks", '[');
    for (size_t i = 0; i < r->n_results; i++)
        put_result(&w, &r->results[i]);
    tp_json_w_end(&w, ']');
    tp_json_w_close(&w, '}');
}

/* ---- reading ---- */

bool tp_is_temper(const tp_json *root)
{
    const char *schema = tp_json_str(tp_json_get(root, "schema"));
    return schema && strcmp(schema, TP_BENCH_SCHEMA) == 0;
}

static const char *copy_of(tp_bench_report *r, const tp_json *v)
{
    const char *text = tp_json_str(v);
    return text ? tp_arena_strdup(&r->arena, text) : NULL;
}

static tp_status read_metric(const char *file, const tp_json *m, tp_bench_report *r,
                             tp_bench_metric *ret, tp_error *err)
{
    const char *name = tp_json_str(tp_json_get(m, "name"));
    const char *unit = tp_json_str(tp_json_get(m, "unit"));
    const char *class = tp_json_str(tp_json_get(m, "class"));
    tp_direction direction;
    if (!name || !tp_direction_parse(tp_json_str(tp_json_get(m, "direction")), &direction))
        return tp_fail(err, TP_ERR_FORMAT,
                       "%s:%u: a metric needs a name and a direction (lower or higher)", file,
                       m->line);
    tp_metric_class kind = TP_METRIC_NOISY;
    if (class && !tp_metric_class_parse(class, &kind))
        return tp_fail(err, TP_ERR_FORMAT,
                       "%s:%u: the class of '%s' is noisy or exact, not '%.40s'", file, m->line,
                       name, class);
    const double *values;
    size_t n;
    TP_TRY(tp_bench_values(file, tp_json_get(m, "samples"), r, &values, &n, err));
    tp_bench_metric_set(r, ret, name, unit ? unit : "", direction, kind, values, n);
    tp_json_bool(tp_json_get(m, "informative"), &ret->metric.is_informative);
    tp_json_bool(tp_json_get(m, "count"), &ret->metric.is_count);
    tp_json_f64(tp_json_get(m, "floor"), &ret->metric.floor);
    ret->note = copy_of(r, tp_json_get(m, "note"));
    return tp_bench_values(file, tp_json_get(m, "baseline_samples"), r, &ret->a, &ret->n_a, err);
}

static size_t read_count(const tp_json *v)
{
    int64_t n;
    return tp_json_i64(v, &n) && n > 0 ? (size_t)n : 0;
}

static tp_status read_result(const char *file, const tp_json *b, tp_bench_report *r, tp_error *err)
{
    const char *name = tp_json_str(tp_json_get(b, "name"));
    const tp_json *metrics = tp_json_get(b, "metrics");
    if (!name || !*name)
        return tp_fail(err, TP_ERR_FORMAT, "%s:%u: a benchmark without a name", file, b->line);
    if (tp_bench_report_find(r, name))
        return tp_fail(err, TP_ERR_FORMAT, "%s:%u: a second benchmark named '%s'", file, b->line,
                       name);
    if (metrics && (metrics->type != TP_JSON_ARRAY || metrics->n > TP_BENCH_MAX_METRICS))
        return tp_fail(err, TP_ERR_FORMAT, "%s:%u: metrics have to be a list of at most %d", file,
                       metrics->line, TP_BENCH_MAX_METRICS);
    tp_bench_result *result = tp_bench_report_add(r, name, metrics ? metrics->n : 0);
    result->n_metrics = 0;
    result->message = copy_of(r, tp_json_get(b, "message"));
    /* Of the measurement, not of what it was not compared with then. */
    const char *verdict = tp_json_str(tp_json_get(b, "verdict"));
    if (!verdict || (strcmp(verdict, tp_bench_verdict_name(TP_BENCH_NEW)) != 0 &&
                     strcmp(verdict, tp_bench_verdict_name(TP_BENCH_MISSING)) != 0))
        result->note = copy_of(r, tp_json_get(b, "note"));
    result->work_unit = copy_of(r, tp_json_get(b, "work_unit"));
    result->work = read_count(tp_json_get(b, "work"));
    result->rounds = read_count(tp_json_get(b, "rounds"));
    result->warm_up = read_count(tp_json_get(b, "warm_up"));
    result->seed = read_count(tp_json_get(b, "seed"));
    result->order = copy_of(r, tp_json_get(b, "order"));
    if (result->message)
        result->verdict = TP_BENCH_FAILED;
    for (const tp_json *m = metrics ? metrics->child : NULL; m; m = m->next) {
        tp_bench_metric *metric = &result->metrics[result->n_metrics];
        TP_TRY(read_metric(file, m, r, metric, err));
        if (tp_result_metric(result, metric->metric.name))
            return tp_fail(err, TP_ERR_FORMAT, "%s:%u: a second metric '%.80s' of '%s'", file,
                           m->line, metric->metric.name, name);
        result->n_metrics++;
    }
    return TP_OK;
}

static void read_commit(const tp_json *c, tp_bench_report *r)
{
    const char *id = tp_json_str(tp_json_get(c, "id"));
    const char *branch = tp_json_str(tp_json_get(c, "branch"));
    const char *time = tp_json_str(tp_json_get(c, "time"));
    const char *project = tp_json_str(tp_json_get(c, "project"));
    r->has_commit = id != NULL;
    snprintf(r->commit.id, sizeof r->commit.id, "%s", id ? id : "");
    snprintf(r->commit.branch, sizeof r->commit.branch, "%s", branch ? branch : "unknown");
    snprintf(r->commit.time, sizeof r->commit.time, "%s", time ? time : "unknown");
    snprintf(r->commit.project, sizeof r->commit.project, "%s", project ? project : "unknown");
    tp_json_bool(tp_json_get(c, "dirty"), &r->commit.is_dirty);
}

tp_status tp_read_temper(const char *name, const tp_json *root, tp_bench_report *ret, tp_error *err)
{
    const tp_json *benchmarks = tp_json_get(root, "benchmarks"), *host = tp_json_get(root, "host");
    const char *started = copy_of(ret, tp_json_get(root, "started"));
    const char *version = copy_of(ret, tp_json_get(root, "version"));
    if (!benchmarks || benchmarks->type != TP_JSON_ARRAY || benchmarks->n > TP_BENCH_MAX_RESULTS)
        return tp_fail(err, TP_ERR_FORMAT, "%s: \"benchmarks\" has to be a list of at most %d",
                       name, TP_BENCH_MAX_RESULTS);
    ret->started = started ? started : "";
    ret->version = version ? version : "unknown";
    ret->is_host_known = host && host->type == TP_JSON_OBJECT;
    tp_host_read(host, &ret->host);
    read_commit(tp_json_get(root, "commit"), ret);
    for (const tp_json *b = benchmarks->child; b; b = b->next)
        TP_TRY(read_result(name, b, ret, err));
    return TP_OK;
}
