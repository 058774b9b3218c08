/* baselines.c - levels of metrics read, written and compared with. */
#include "instrument/bench/baselines.h"

#include <math.h>
#include <string.h>

#include "instrument/bench/formats.h"
#include "instrument/bench/metric_rows.h"
#include "stats/stats.h"

enum { LEAST_ROUNDS = 5, BYTES_PER_MB = 1 << 20 };

static const size_t arena_bytes = (size_t)1 << 30;

tp_status tp_baselines_init(tp_baselines *b, tp_error *err)
{
    *b = (tp_baselines){0};
    return tp_arena_init(&b->arena, arena_bytes, err);
}

void tp_baselines_release(tp_baselines *b)
{
    tp_arena_release(&b->arena);
    *b = (tp_baselines){0};
}

tp_bench_baseline *tp_baselines_find(const tp_baselines *b, const char *name)
{
    for (size_t i = 0; i < b->n; i++) {
        if (strcmp(b->items[i].name, name) == 0)
            return &b->items[i];
    }
    return NULL;
}

static tp_bench_baseline *add(tp_baselines *b, const char *name)
{
    tp_bench_baseline *item = TP_ARENA_PUSH(&b->arena, b->items, b->n, b->capacity);
    *item = (tp_bench_baseline){
        .name = tp_arena_strdup(&b->arena, name),
        .tolerance = NAN,
        .version = "",
        .timestamp = "",
        .host = "",
        .commit = "",
        .metrics = tp_arena_array(&b->arena, tp_baseline_metric, TP_BENCH_MAX_METRICS)};
    return item;
}

static tp_baseline_metric *metric_of(const tp_bench_baseline *item, const char *name)
{
    for (size_t i = 0; i < item->n_metrics; i++) {
        if (strcmp(item->metrics[i].metric.name, name) == 0)
            return &item->metrics[i];
    }
    return NULL;
}

/* The geometric mean of sessions, and the deviation of their logarithms: NaN where they are too
 * few.  Relative to the first, so that equal ones have their own value for a mean. */
static double describe_sessions(const double *sessions, size_t n, double *ret_sd)
{
    double logs[TP_BASELINE_SESSIONS];
    for (size_t i = 0; i < n; i++)
        logs[i] = log(sessions[i] / sessions[0]);
    *ret_sd = n >= TP_BASELINE_LEAST_SESSIONS ? tp_sd(logs, n) : NAN;
    return n ? sessions[0] * exp(tp_mean(logs, n)) : NAN;
}

/* ---- reading ---- */

typedef struct {
    const char *file;
    tp_baselines *b;
    tp_error *err;
} reader;

static const char *text_of(const reader *in, const tp_json *v)
{
    const char *text = tp_json_str(v);
    return text ? tp_arena_strdup(&in->b->arena, text) : "";
}

/* A level that a comparison can divide by; absent or null is NaN. */
static tp_status read_level(const reader *in, const tp_json *entry, const char *key, double *ret)
{
    const tp_json *v = tp_json_get(entry, key);
    double level = NAN;
    *ret = NAN;
    if (!v || v->type == TP_JSON_NULL)
        return TP_OK;
    if (!tp_bench_number(v, &level) || !isfinite(level) || level <= 0)
        return tp_fail(
            in->err, TP_ERR_FORMAT,
            "%s:%u: %s of '%s' is %s, which nothing can be compared with; record it anew "
            "with --update-baseline or take the entry out",
            in->file, v->line, key, entry->key.data,
            v->type == TP_JSON_NUMBER || v->type == TP_JSON_STRING ? v->text.data : "no number");
    *ret = level;
    return TP_OK;
}

/* From 0 on and below `limit`, as the message says; absent or null is NaN. */
static tp_status read_fraction(const reader *in, const tp_json *entry, const char *key,
                               double limit, const char *meaning, double *ret)
{
    const tp_json *v = tp_json_get(entry, key);
    *ret = NAN;
    if (!v || v->type == TP_JSON_NULL)
        return TP_OK;
    if (!tp_bench_number(v, ret) || !(*ret >= 0 && *ret < limit))
        return tp_fail(in->err, TP_ERR_FORMAT, "%s:%u: %s of '%s' is %s", in->file, v->line, key,
                       entry->key.data, meaning);
    return TP_OK;
}

static tp_status read_list(const reader *in, const tp_json *list, size_t most, const double **ret,
                           size_t *ret_n)
{
    size_t n = 0;
    *ret = NULL;
    *ret_n = 0;
    if (!list || list->type != TP_JSON_ARRAY)
        return TP_OK;
    if (list->n > TP_BENCH_MAX_SAMPLES)
        return tp_fail(in->err, TP_ERR_FORMAT, "%s:%u: more than %d samples", in->file, list->line,
                       TP_BENCH_MAX_SAMPLES);
    size_t skip = list->n > most ? list->n - most : 0; /* the latest count */
    double *values = tp_arena_array(&in->b->arena, double, list->n + 1);
    for (const tp_json *v = list->child; v; v = v->next) {
        double x;
        if (!tp_bench_number(v, &x) || !isfinite(x) || x < 0)
            return tp_fail(in->err, TP_ERR_FORMAT, "%s:%u: a sample that is no number of its kind",
                           in->file, v->line);
        if (skip > 0)
            skip--;
        else
            values[n++] = x;
    }
    *ret = values;
    *ret_n = n;
    return TP_OK;
}

static tp_status read_metric(const reader *in, const tp_json *m, tp_bench_baseline *item)
{
    const char *class = tp_json_str(tp_json_get(m, "class"));
    tp_baseline_metric *out = &item->metrics[item->n_metrics];
    tp_metric metric = {.name = tp_arena_strdup(&in->b->arena, m->key.data),
                        .unit = text_of(in, tp_json_get(m, "unit"))};
    if (!tp_direction_parse(tp_json_str(tp_json_get(m, "direction")), &metric.direction))
        return tp_fail(in->err, TP_ERR_FORMAT,
                       "%s:%u: metric '%s' of '%s' has no direction (lower or higher)", in->file,
                       m->line, m->key.data, item->name);
    if (class && !tp_metric_class_parse(class, &metric.kind))
        return tp_fail(in->err, TP_ERR_FORMAT,
                       "%s:%u: the class of metric '%s' of '%s' is noisy or exact, not '%.40s'",
                       in->file, m->line, m->key.data, item->name, class);
    *out = (tp_baseline_metric){.metric = metric};
    if (metric.kind == TP_METRIC_EXACT) { /* a count may be 0 */
        if (!tp_bench_number(tp_json_get(m, "median"), &out->level) || !(out->level >= 0))
            return tp_fail(in->err, TP_ERR_FORMAT, "%s:%u: metric '%s' of '%s' has no median",
                           in->file, m->line, m->key.data, item->name);
    } else
        TP_TRY(read_level(in, m, "median", &out->level));
    TP_TRY(read_list(in, tp_json_get(m, "sessions"), TP_BASELINE_SESSIONS, &out->sessions,
                     &out->n_sessions));
    for (size_t i = 0; i < out->n_sessions; i++) {
        if (out->sessions[i] <= 0 && metric.kind == TP_METRIC_NOISY)
            return tp_fail(in->err, TP_ERR_FORMAT, "%s:%u: a session of '%s' with the value 0",
                           in->file, m->line, item->name);
    }
    out->sd_between = NAN;
    if (metric.kind == TP_METRIC_NOISY)
        describe_sessions(out->sessions, out->n_sessions, &out->sd_between);
    if (!isnan(out->level))
        item->n_metrics++;
    return TP_OK;
}

/* The level that everybody's readers know goes before ours. */
static void set_known(tp_bench_baseline *item, const tp_metric *metric, double level)
{
    tp_baseline_metric *m = metric_of(item, metric->name);
    if (isnan(level))
        return;
    if (!m && item->n_metrics == TP_BENCH_MAX_METRICS)
        return;
    if (!m) {
        m = &item->metrics[item->n_metrics++];
        *m = (tp_baseline_metric){.metric = *metric, .sd_between = NAN};
    }
    m->level = level;
    m->metric.unit = metric->unit;
}

static bool is_same_level(double a, double b) { return fabs(a / b - 1) < 1e-9; }

/* A level is the mean of its sessions, or the last of them in older files; one that somebody set
 * has no sessions yet. */
static void drop_foreign_sessions(tp_baseline_metric *m)
{
    double sd;
    if (m->metric.kind == TP_METRIC_EXACT || m->n_sessions == 0 ||
        is_same_level(m->level, m->sessions[m->n_sessions - 1]) ||
        is_same_level(m->level, describe_sessions(m->sessions, m->n_sessions, &sd)))
        return;
    m->n_sessions = 0;
    m->sd_between = NAN;
}

static tp_status read_entry(const reader *in, const tp_json *entry)
{
    static const tp_metric throughput = {.name = "throughput",
                                         .unit = "tokens/s",
                                         .direction = TP_HIGHER_IS_BETTER},
                           memory = TP_PEAK_MEMORY_ROW;
    const tp_json *metrics = tp_json_get(entry, "metrics");
    double tokens, megabytes, sd;
    if (entry->type != TP_JSON_OBJECT)
        return tp_fail(in->err, TP_ERR_FORMAT, "%s:%u: the baseline '%s' has to be an object",
                       in->file, entry->line, entry->key.data);
    if (metrics && (metrics->type != TP_JSON_OBJECT || metrics->n > TP_BENCH_MAX_METRICS))
        return tp_fail(in->err, TP_ERR_FORMAT, "%s:%u: metrics have to be an object of at most %d",
                       in->file, metrics->line, TP_BENCH_MAX_METRICS);
    const char *name = tp_json_str(tp_json_get(entry, "name"));
    if (name && strcmp(name, entry->key.data) != 0)
        return tp_fail(in->err, TP_ERR_FORMAT,
                       "%s:%u: the baseline '%s' has the name '%.80s'; both have to be the same",
                       in->file, entry->line, entry->key.data, name);
    tp_bench_baseline *item = add(in->b, entry->key.data);
    TP_TRY(read_level(in, entry, "throughput_tokens_per_sec", &tokens));
    TP_TRY(read_level(in, entry, "peak_memory_mb", &megabytes));
    TP_TRY(read_fraction(in, entry, "tolerance", 1, "a fraction from 0 on and below 1, as 0.05",
                         &item->tolerance));
    TP_TRY(read_fraction(in, entry, "sd_between", INFINITY,
                         "a deviation of logarithms, from 0 on, or null", &sd));
    item->version = text_of(in, tp_json_get(entry, "version"));
    item->timestamp = text_of(in, tp_json_get(entry, "timestamp"));
    item->host = text_of(in, tp_json_get(entry, "host"));
    item->commit = text_of(in, tp_json_get(entry, "commit"));
    TP_TRY(read_list(in, tp_json_get(entry, "samples"), TP_BENCH_MAX_SAMPLES, &item->samples,
                     &item->n_samples));
    for (const tp_json *m = metrics ? metrics->child : NULL; m; m = m->next)
        TP_TRY(read_metric(in, m, item));
    set_known(item, &throughput, tokens);
    set_known(item, &memory, megabytes * BYTES_PER_MB);
    for (size_t i = 0; i < item->n_metrics; i++)
        drop_foreign_sessions(&item->metrics[i]);
    tp_baseline_metric *speed = metric_of(item, throughput.name);
    if (!isnan(tokens) && speed && isnan(speed->sd_between))
        speed->sd_between = sd;
    if (item->n_metrics == 0)
        return tp_fail(in->err, TP_ERR_FORMAT,
                       "%s:%u: the baseline '%s' has no throughput_tokens_per_sec and no "
                       "peak_memory_mb",
                       in->file, entry->line, item->name);
    return TP_OK;
}

tp_status tp_baselines_read(const char *name, const char *text, size_t n, tp_baselines *ret,
                            tp_error *err)
{
    TP_OWN(tp_arena) arena = {0};
    const tp_json *root;
    tp_baselines b;
    tp_json_options options = {.allow_nan = true, .max_bytes = 64 << 20};
    TP_TRY(tp_arena_init(&arena, 64 * n + (1 << 20), err));
    tp_status status = tp_json_parse(&arena, name, text, n, &options, &root, err);
    if (status == TP_OK && (root->type != TP_JSON_OBJECT || root->n > TP_BENCH_MAX_RESULTS))
        status = tp_fail(err, TP_ERR_FORMAT,
                         "%s: baselines are one object of at most %d entries, by name", name,
                         TP_BENCH_MAX_RESULTS);
    if (status == TP_OK)
        status = tp_baselines_init(&b, err);
    if (status != TP_OK)
        return status;
    reader in = {.file = name, .b = &b, .err = err};
    for (const tp_json *e = root->child; e && status == TP_OK; e = e->next)
        status = read_entry(&in, e);
    tp_arena_release(&arena);
    TP_HAND_OVER(status, ret, b, tp_baselines_release(&b));
}

/* ---- writing ---- */

static void put_text(tp_json_w *w, const char *key, const char *v)
{
    tp_json_w_put_str(w, key, v && *v ? v : NULL);
}

static void put_metric(tp_json_w *w, const tp_baseline_metric *m)
{
    tp_json_w_put_begin(w, m->metric.name, '{');
    put_text(w, "unit", m->metric.unit);
    put_text(w, "direction", tp_direction_name(m->metric.direction));
    put_text(w, "class", tp_metric_class_name(m->metric.kind));
    tp_json_w_put_finite(w, "median", m->level);
    tp_json_w_put_f64_line(w, "sessions", m->sessions, m->n_sessions);
    tp_json_w_put_finite(w, "sd_between", m->sd_between);
    tp_json_w_end(w, '}');
}

void tp_baselines_write(const tp_baselines *b, tp_buf *out)
{
    tp_json_w w = tp_json_w_open(out, 2, '{');
    for (size_t i = 0; i < b->n; i++) {
        const tp_bench_baseline *item = &b->items[i];
        const tp_baseline_metric *tokens = metric_of(item, "throughput");
        const tp_baseline_metric *memory = metric_of(item, "peak_memory");
        bool in_tokens = tokens && strcmp(tokens->metric.unit, "tokens/s") == 0;
        tp_json_w_put_begin(&w, item->name, '{');
        put_text(&w, "name", item->name);
        tp_json_w_put_finite(&w, "throughput_tokens_per_sec", in_tokens ? tokens->level : NAN);
        /* 0 is no level to compare with; the exact metric below has it. */
        tp_json_w_put_finite(&w, "peak_memory_mb",
                             memory && memory->level > 0 ? memory->level / BYTES_PER_MB : NAN);
        tp_json_w_put_finite(&w, "tolerance", item->tolerance);
        put_text(&w, "version", item->version);
        put_text(&w, "timestamp", item->timestamp);
        tp_json_w_put_f64_line(&w, "samples", item->samples, item->n_samples);
        tp_json_w_put_finite(&w, "sd_between", item->n_metrics ? item->metrics[0].sd_between : NAN);
        put_text(&w, "host", item->host);
        put_text(&w, "commit", item->commit);
        tp_json_w_put_begin(&w, "metrics", '{');
        for (size_t k = 0; k < item->n_metrics; k++)
            put_metric(&w, &item->metrics[k]);
        tp_json_w_end(&w, '}');
        tp_json_w_end(&w, '}');
    }
    tp_json_w_close(&w, '}');
}

/* ---- comparing ---- */

static bool has_rounds(const tp_bench_metric *m, char *why, size_t cap)
{
    if (!m->is_median)
        return tp_rule_check(&m->metric, m->b, m->n_b, LEAST_ROUNDS, why, cap);
    snprintf(why, cap, "only a median of %s is in the file, and a baseline needs the rounds",
             m->metric.name);
    return false;
}

static void compare_metric(tp_bench_report *r, const tp_bench_baseline *item,
                           const tp_baseline_metric *before, tp_bench_result *result,
                           tp_bench_metric *m)
{
    char why[200];
    bool exact = m->metric.kind == TP_METRIC_EXACT;
    tp_rule rule = r->rule;
    if (!isnan(item->tolerance) && !rule.is_tolerance_given)
        rule.tolerance = item->tolerance;
    /* The tolerance of an entry is meant for the two figures that every reader knows. */
    if (exact && strcmp(m->metric.name, "peak_memory") == 0)
        rule.exact_tolerance = rule.tolerance;
    if (!has_rounds(m, why, sizeof why)) {
        tp_result_fail(r, result, "%s", why);
        return;
    }
    m->a = tp_bench_report_values(r, &before->level, 1);
    m->n_a = 1;
    m->side_a = tp_summarise(m->a, 1);
    m->is_compared = true;
    if (exact)
        tp_rule_exact(&rule, &m->metric, before->level, m->b[0], &m->comparison);
    else
        tp_rule_baseline(&rule, &m->metric,
                         &(tp_stored_level){.level = before->level,
                                            .n_sessions = before->n_sessions,
                                            .sd_between = before->sd_between,
                                            .assumed = *item->host ? TP_BASELINE_SD_SAME_HOST
                                                                   : TP_BASELINE_SD_UNKNOWN_HOST},
                         m->b, m->n_b, &m->comparison);
}

static void compare_result(const tp_bench_baseline *item, tp_bench_report *r,
                           tp_bench_result *result)
{
    bool any = false;
    if (*item->host && strcmp(item->host, r->host.fingerprint) != 0) {
        result->verdict = TP_BENCH_NEW;
        result->note = tp_bench_report_printf(
            r, "its baseline is of another host (%.8s; this one is %.8s): not comparable",
            item->host, r->host.fingerprint);
        return;
    }
    if (!*item->host)
        result->note = "its baseline names no host: sessions are taken to differ by 25 %";
    for (size_t k = 0; k < item->n_metrics && result->verdict != TP_BENCH_FAILED; k++) {
        tp_bench_metric *m = tp_result_need(r, result, &item->metrics[k].metric);
        if (m && !m->metric.is_informative) {
            compare_metric(r, item, &item->metrics[k], result, m);
            any = true;
        }
    }
    if (!any && result->verdict == TP_BENCH_NONE)
        result->verdict = TP_BENCH_NEW;
}

tp_status tp_baselines_compare(const tp_baselines *b, tp_bench_report *r,
                               bool (*matches)(void *user, const char *name), void *user,
                               tp_error *err)
{
    for (size_t i = 0; i < r->n_results; i++) {
        tp_bench_result *result = &r->results[i];
        const tp_bench_baseline *item = tp_baselines_find(b, result->name);
        if (result->verdict == TP_BENCH_FAILED)
            continue;
        if (item)
            compare_result(item, r, result);
        else {
            result->verdict = TP_BENCH_NEW;
            result->note = "there is no baseline for it; --update-baseline records one";
        }
    }
    for (size_t i = 0; i < b->n; i++) {
        if ((matches && !matches(user, b->items[i].name)) ||
            tp_bench_report_find(r, b->items[i].name))
            continue;
        tp_bench_report_add(r, b->items[i].name, 0)->verdict = TP_BENCH_MISSING;
    }
    return tp_gate_settle(r, err);
}

/* ---- updating ---- */

static tp_status check_result(const tp_baselines *b, const tp_bench_report *r,
                              const tp_bench_result *result, tp_error *err)
{
    char why[200];
    const tp_bench_baseline *item = tp_baselines_find(b, result->name);
    if (result->message)
        return tp_fail(err, TP_ERR_CONFIG, "no baseline from a failed measurement: '%s': %s",
                       result->name, result->message);
    if (item && *item->host && strcmp(item->host, r->host.fingerprint) != 0)
        return tp_fail(err, TP_ERR_CONFIG,
                       "the baseline of '%s' was recorded on another host (%.8s, this is %.8s): "
                       "keep one file per host, or take the entry out first",
                       result->name, item->host, r->host.fingerprint);
    for (size_t k = 0; k < result->n_metrics; k++) {
        const tp_bench_metric *m = &result->metrics[k];
        if (!m->metric.is_informative && !has_rounds(m, why, sizeof why))
            return tp_fail(err, TP_ERR_CONFIG, "no baseline from degenerate values: '%s': %s",
                           result->name, why);
    }
    return TP_OK;
}

/* Sessions of before that count on: none of an exact figure, whose history is that of the program,
 * of one that has changed since, or of another unit or direction. */
static size_t sessions_kept(const tp_baseline_metric *before, const tp_bench_metric *m)
{
    tp_bench_verdict verdict = m->is_compared ? m->comparison.verdict : TP_BENCH_NONE;
    bool has_changed = verdict == TP_BENCH_REGRESSION || verdict == TP_BENCH_IMPROVED;
    size_t most = TP_BASELINE_SESSIONS - 1;
    if (m->metric.kind == TP_METRIC_EXACT || has_changed || !before->metric.unit ||
        strcmp(before->metric.unit, m->metric.unit) != 0 ||
        before->metric.direction != m->metric.direction)
        return 0;
    return before->n_sessions < most ? before->n_sessions : most;
}

static void update_metric(tp_baselines *b, tp_bench_baseline *item, const tp_bench_metric *m)
{
    tp_baseline_metric *to = metric_of(item, m->metric.name);
    if (!to && item->n_metrics == TP_BENCH_MAX_METRICS)
        return;
    if (!to) {
        to = &item->metrics[item->n_metrics++];
        *to = (tp_baseline_metric){0};
    }
    size_t keep = sessions_kept(to, m), skip = to->n_sessions - keep;
    to->metric = m->metric;
    to->metric.name = tp_arena_strdup(&b->arena, m->metric.name);
    to->metric.unit = tp_arena_strdup(&b->arena, m->metric.unit);
    if (m->metric.kind == TP_METRIC_EXACT) {
        to->level = m->b[0];
        to->n_sessions = 0;
        to->sd_between = NAN;
        return;
    }
    double *sessions = tp_arena_array(&b->arena, double, keep + 1);
    if (keep)
        memcpy(sessions, to->sessions + skip, keep * sizeof *sessions);
    sessions[keep] = m->side_b.median;
    to->sessions = sessions;
    to->n_sessions = keep + 1;
    to->level = describe_sessions(sessions, keep + 1, &to->sd_between);
}

static void drop_unmeasured(tp_bench_baseline *item, const tp_bench_result *result)
{
    size_t n = 0;
    for (size_t k = 0; k < item->n_metrics; k++) {
        const tp_bench_metric *m = tp_result_metric(result, item->metrics[k].metric.name);
        if (m && !m->metric.is_informative)
            item->metrics[n++] = item->metrics[k];
    }
    item->n_metrics = n;
}

tp_status tp_baselines_update(tp_baselines *b, const tp_bench_report *r, tp_error *err)
{
    for (size_t i = 0; i < r->n_results; i++) {
        if (r->results[i].n_metrics > 0 || r->results[i].message)
            TP_TRY(check_result(b, r, &r->results[i], err));
    }
    for (size_t i = 0; i < r->n_results; i++) {
        const tp_bench_result *result = &r->results[i];
        if (result->n_metrics == 0)
            continue; /* a baseline whose benchmark was not measured stays */
        tp_bench_baseline *item = tp_baselines_find(b, result->name);
        item = item ? item : add(b, result->name);
        if (isnan(item->tolerance) || r->rule.is_tolerance_given)
            item->tolerance = r->rule.tolerance;
        item->version = tp_arena_strdup(&b->arena, r->version);
        item->timestamp = tp_arena_strdup(&b->arena, r->started);
        item->host = tp_arena_strdup(&b->arena, r->host.fingerprint);
        item->commit = r->has_commit ? tp_arena_printf(&b->arena, "%s%s", r->commit.id,
                                                       r->commit.is_dirty ? "+dirty" : "")
                                     : "";
        double *samples = tp_arena_array(&b->arena, double, result->metrics[0].n_b + 1);
        memcpy(samples, result->metrics[0].b, result->metrics[0].n_b * sizeof *samples);
        item->samples = samples;
        item->n_samples = result->metrics[0].n_b;
        drop_unmeasured(item, result);
        for (size_t k = 0; k < result->n_metrics; k++) {
            if (!result->metrics[k].metric.is_informative)
                update_metric(b, item, &result->metrics[k]);
        }
    }
    return TP_OK;
}
