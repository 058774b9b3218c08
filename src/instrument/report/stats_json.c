/* stats_json.c - answers as JSON: values, nulls with their reasons, and what is asked for. */
#include "instrument/report/stats_json.h"

#include <math.h>
#include <string.h>

static void enter(tp_answer *a, const char *key)
{
    if (key)
        tp_json_w_key(a->w, key);
    TP_ASSERT(a->depth < TP_ANSWER_DEPTH);
    if (!key && a->depth > 0)
        a->place[a->depth - 1]++;
    a->path[a->depth] = key;
    a->place[a->depth] = 0;
    a->depth++;
}

void tp_answer_object(tp_answer *a, const char *key)
{
    enter(a, key);
    tp_json_w_begin(a->w, '{');
}

void tp_answer_object_end(tp_answer *a)
{
    a->depth--;
    tp_json_w_end(a->w, '}');
}

void tp_answer_begin_array(tp_answer *a, const char *key)
{
    enter(a, key);
    tp_json_w_begin(a->w, '[');
}

void tp_answer_end_array(tp_answer *a)
{
    a->depth--;
    tp_json_w_end(a->w, ']');
}

/* "two_sample.welch", "rows[3].k" */
static void note(tp_answer *a, const char *key, const char *why)
{
    tp_buf path = {0};
    for (int i = 0; i < a->depth; i++) {
        if (a->path[i])
            tp_buf_addf(&path, "%s%s", i ? "." : "", a->path[i]);
        else if (i > 0)
            tp_buf_addf(&path, "[%zu]", a->place[i - 1] - 1);
    }
    if (key)
        tp_buf_addf(&path, "%s%s", a->depth ? "." : "", key);
    else if (a->depth > 0)
        tp_buf_addf(&path, "[%zu]", a->place[a->depth - 1] - 1);
    tp_buf_add(&a->reasons, tp_buf_str(&path), path.len + 1);
    tp_buf_add(&a->reasons, why, strlen(why) + 1);
    tp_buf_release(&path);
}

void tp_answer_null(tp_answer *a, const char *key, const char *why)
{
    if (key)
        tp_json_w_key(a->w, key);
    else if (a->depth > 0)
        a->place[a->depth - 1]++;
    tp_json_w_null(a->w);
    note(a, key, why ? why : "undefined");
}

static void put_number(tp_answer *a, double v)
{
    if (isinf(v))
        tp_json_w_str(a->w, v > 0 ? "inf" : "-inf");
    else
        tp_json_w_f64(a->w, v + 0.0);
}

void tp_answer_number(tp_answer *a, const char *key, double v, const char *why)
{
    if (isnan(v)) {
        tp_answer_null(a, key, why);
        return;
    }
    if (key)
        tp_json_w_key(a->w, key);
    else if (a->depth > 0)
        a->place[a->depth - 1]++;
    put_number(a, v);
}

void tp_answer_count(tp_answer *a, const char *key, uint64_t n)
{
    tp_json_w_put_i64(a->w, key, (int64_t)n);
}

void tp_answer_bool(tp_answer *a, const char *key, bool v) { tp_json_w_put_bool(a->w, key, v); }

const char *tp_answer_level_key(tp_answer *a, const char *key, char buffer[64])
{
    snprintf(buffer, 64, "%s%s", key, a->level_text);
    return buffer;
}

void tp_answer_pair(tp_answer *a, const char *key, tp_interval ci)
{
    if (ci.why || isnan(ci.lo) || isnan(ci.hi)) {
        tp_answer_null(a, key, ci.why);
        return;
    }
    tp_json_w_put_begin(a->w, key, '[');
    put_number(a, ci.lo);
    put_number(a, ci.hi);
    tp_json_w_end(a->w, ']');
}

void tp_answer_interval(tp_answer *a, const char *key, tp_interval ci)
{
    char buffer[64];
    tp_answer_pair(a, tp_answer_level_key(a, key, buffer), ci);
}

static void put_reasons(tp_answer *a)
{
    const char *at = tp_buf_str(&a->reasons), *end = at + a->reasons.len;
    tp_json_w_put_begin(a->w, "reasons", '{');
    while (at < end) {
        tp_json_w_key(a->w, at);
        at += strlen(at) + 1;
        tp_json_w_str(a->w, at);
        at += strlen(at) + 1;
    }
    tp_json_w_end(a->w, '}');
}

void tp_answer_open(tp_answer *a)
{
    snprintf(a->level_text, sizeof a->level_text, "%.6g", 100 * a->o.level);
    tp_json_w_begin(a->w, '{');
}

void tp_answer_close(tp_answer *a)
{
    put_reasons(a);
    tp_json_w_end(a->w, '}');
}

/* ---- columns ---- */

static void put_names(tp_json_w *w, const tp_stats_column *c, size_t n)
{
    tp_json_w_put_begin(w, "names", n == 2 ? '{' : '[');
    if (n == 2) {
        tp_json_w_put_str(w, "x", c[1].name);
        tp_json_w_put_str(w, "y", c[0].name);
    }
    for (size_t i = 0; i < n && n != 2; i++)
        tp_json_w_str(w, c[i].name);
    tp_json_w_end(w, n == 2 ? '}' : ']');
}

static tp_status put_groups(tp_answer *a, const tp_stats_column *c, size_t n, tp_error *err)
{
    tp_group *groups = tp_arena_try_alloc(a->arena, n, sizeof *groups, _Alignof(tp_group));
    if (!groups)
        return tp_fail(err, TP_ERR_NOMEM, "%s: no room for the groups", a->name);
    for (size_t i = 0; i < n; i++)
        groups[i] = (tp_group){c[i].x, c[i].n};
    return tp_answer_groups(a, groups, n, err);
}

static tp_status put_one(tp_answer *a, const tp_stats_column *c, bool resample, tp_error *err)
{
    TP_TRY(tp_answer_describe(a, "describe", c->x, c->n, err));
    return resample ? tp_answer_resampled(a, c->x, c->n, NULL, 0, false, err) : TP_OK;
}

static tp_status put_two(tp_answer *a, const tp_stats_column *x, const tp_stats_column *y,
                         bool is_paired, bool resample, tp_error *err)
{
    TP_TRY(tp_answer_describe(a, "describe_x", x->x, x->n, err));
    TP_TRY(tp_answer_describe(a, "describe_y", y->x, y->n, err));
    TP_TRY(tp_answer_two(a, x->x, x->n, y->x, y->n, err));
    if (is_paired)
        TP_TRY(tp_answer_paired(a, x->x, y->x, x->n, err));
    return resample ? tp_answer_resampled(a, x->x, x->n, y->x, y->n, is_paired, err) : TP_OK;
}

static tp_status put_columns(tp_answer *a, tp_stats_kind kind, bool resample,
                             const tp_stats_column *c, size_t n, const tp_stats_column *at,
                             tp_error *err)
{
    switch (kind) {
    case TP_STATS_ONE:
        return put_one(a, &c[0], resample, err);
    case TP_STATS_TWO:
    case TP_STATS_PAIRED:
        return put_two(a, &c[1], &c[0], kind == TP_STATS_PAIRED, resample, err);
    case TP_STATS_GROUPS:
        return put_groups(a, c, n, err);
    case TP_STATS_SERIES:
        return tp_answer_series(a, at ? at->x : NULL, c[0].x, c[0].n, err);
    }
    return TP_OK;
}

static tp_answer_options options_of(const tp_stats_style *s)
{
    return (tp_answer_options){
        .level = s->level, .seed = s->seed, .n_resamples = s->n_resamples ? s->n_resamples : 9999};
}

tp_status tp_stats_json(tp_stats_kind kind, const tp_stats_style *style, const tp_stats_column *c,
                        size_t n, const tp_stats_column *at, tp_buf *out, tp_error *err)
{
    tp_arena arena;
    tp_json_w w;
    tp_answer a = {.w = &w, .name = c[0].name, .arena = &arena, .o = options_of(style)};
    tp_json_w_init(&w, out, 2);
    TP_TRY(tp_arena_init(&arena, (size_t)1 << 36, err));
    tp_answer_open(&a);
    put_names(&w, c, n);
    tp_status status = put_columns(&a, kind, style->n_resamples > 0, c, n, at, err);
    if (status == TP_OK) {
        tp_answer_close(&a);
        tp_buf_addc(out, '\n');
    }
    tp_buf_release(&a.reasons);
    tp_arena_release(&arena);
    return status;
}

/* ---- shares and plans ---- */

static void put_share(tp_answer *a, int64_t x, int64_t n)
{
    tp_proportion_result r = tp_proportion(x, n, a->o.level);
    tp_answer_count(a, "x", (uint64_t)x);
    tp_answer_count(a, "n", (uint64_t)n);
    tp_answer_number(a, "phat", (double)x / (double)n, NULL);
    tp_answer_pair(a, "wilson", r.wilson);
    tp_answer_pair(a, "wilson_cc", r.wilson_cc);
    tp_answer_pair(a, "clopper_pearson", r.clopper_pearson);
    tp_answer_pair(a, "agresti_coull", r.agresti_coull);
    tp_answer_pair(a, "jeffreys", r.jeffreys);
}

tp_status tp_stats_json_shares(const tp_stats_style *style, const int64_t *x, const int64_t *n,
                               size_t k, tp_buf *out, tp_error *err)
{
    tp_json_w w;
    tp_answer a = {.w = &w, .name = "--share", .o = options_of(style)};
    TP_TRY(tp_stats_check_shares(x, n, k, err));
    tp_json_w_init(&w, out, 2);
    tp_answer_open(&a);
    if (k == 1) {
        put_share(&a, x[0], n[0]);
    } else {
        tp_newcombe_result r = tp_newcombe(x[1], n[1], x[0], n[0], style->level);
        tp_answer_number(&a, "diff", r.diff, NULL);
        tp_answer_pair(&a, "newcombe", r.ci);
        tp_answer_begin_array(&a, "shares");
        for (size_t i = 0; i < k; i++) {
            tp_answer_object(&a, NULL);
            put_share(&a, x[i], n[i]);
            tp_answer_object_end(&a);
        }
        tp_answer_end_array(&a);
    }
    tp_answer_close(&a);
    tp_buf_addc(out, '\n');
    tp_buf_release(&a.reasons);
    return TP_OK;
}

tp_status tp_stats_json_plan(const tp_stats_style *style, const tp_stats_plan *plan, tp_buf *out,
                             tp_error *err)
{
    tp_json_w w;
    tp_stats_plan p = *plan;
    TP_TRY(tp_stats_solve_plan(style, &p, err));
    tp_json_w_init(&w, out, 2);
    tp_json_w_begin(&w, '{');
    tp_json_w_put_bool(&w, "paired", p.paired);
    tp_json_w_put_i64(&w, "sides", p.sides);
    tp_json_w_put_f64(&w, "alpha", round((1 - style->level) * 1e12) * 1e-12);
    tp_json_w_put_f64(&w, "effect", p.effect);
    tp_json_w_put_f64(&w, "n", p.n);
    tp_json_w_put_f64(&w, "power", p.power);
    tp_json_w_end(&w, '}');
    tp_buf_addc(out, '\n');
    return TP_OK;
}
