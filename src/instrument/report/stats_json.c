/* stats_json.c - what `temper stats` is asked for, as JSON. */
#include "instrument/report/stats_json.h"

#include <math.h>
#include <string.h>

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

static tp_status put_groups(tp_stats_writer *a, const tp_stats_column *c, size_t n, tp_error *err)
{
    tp_group *groups = tp_arena_try_alloc(a->arena, n, sizeof *groups, _Alignof(tp_group));
    if (!groups)
        return tp_fail(err, TP_ERR_NOMEM, "%s: no room for the groups", a->name);
    for (size_t i = 0; i < n; i++)
        groups[i] = (tp_group){c[i].x, c[i].n};
    return tp_stats_writer_groups(a, groups, n, err);
}

static tp_status put_one(tp_stats_writer *a, const tp_stats_column *c, bool resample, tp_error *err)
{
    TP_TRY(tp_stats_writer_describe(a, "describe", c->x, c->n, err));
    return resample ? tp_stats_writer_resampled(a, c->x, c->n, NULL, 0, false, err) : TP_OK;
}

/* What the text says beside the tests: is it within the margin, and what would have been seen? */
static void put_two_asked(tp_stats_writer *a, const tp_stats_style *s, const tp_stats_column *x,
                          const tp_stats_column *y, bool is_paired)
{
    tp_t_test t = tp_stats_t_test(s, y, x, is_paired);
    double bound = s->margin * fabs(tp_mean(y->x, y->n));
    tp_tost_result r = tp_tost(&t, bound);
    tp_stats_writer_object(a, "detectable");
    tp_stats_writer_number(a, "power", s->power, NULL);
    tp_stats_writer_number(a, "difference", tp_stats_detectable(s, &t),
                           "too few values for a test, or none differ");
    tp_stats_writer_object_end(a);
    if (!(s->margin > 0) || !tp_stats_writer_object_or(a, "equivalence", r.why))
        return;
    tp_stats_writer_number(a, "margin", s->margin, NULL);
    tp_stats_writer_number(a, "bound", bound, NULL);
    tp_stats_writer_number(a, "p", r.p, NULL);
    tp_stats_writer_bool(a, "shown", r.p < 1 - s->level);
    tp_stats_writer_object_end(a);
}

static tp_status put_two(tp_stats_writer *a, const tp_stats_style *s, const tp_stats_column *x,
                         const tp_stats_column *y, bool is_paired, tp_error *err)
{
    TP_TRY(tp_stats_writer_describe(a, "describe_x", x->x, x->n, err));
    TP_TRY(tp_stats_writer_describe(a, "describe_y", y->x, y->n, err));
    TP_TRY(tp_stats_writer_two(a, x->x, x->n, y->x, y->n, err));
    if (is_paired)
        TP_TRY(tp_stats_writer_paired(a, x->x, y->x, x->n, err));
    put_two_asked(a, s, x, y, is_paired);
    return s->n_resamples ? tp_stats_writer_resampled(a, x->x, x->n, y->x, y->n, is_paired, err)
                          : TP_OK;
}

static tp_status put_series(tp_stats_writer *a, const tp_stats_style *s, const tp_stats_column *y,
                            const tp_stats_column *at, tp_error *err)
{
    static const char *const wanders = "between the points successive values resemble each other";
    tp_stats_changes c;
    TP_TRY(tp_stats_writer_series(a, at ? at->x : NULL, y->x, y->n, err));
    TP_TRY(tp_stats_find_changes(s, y->x, y->n, &c, err));
    tp_stats_writer_object(a, "changes");
    tp_stats_writer_number(a, "alpha", c.alpha, NULL);
    tp_stats_writer_count(a, "n_searched", c.n_searched);
    tp_stats_writer_bool(a, "judged", !c.wander);
    tp_stats_writer_number(a, "lag1", c.lag1, "too few values, or all are equal");
    tp_stats_writer_begin_array(a, "points");
    for (size_t i = 0; i < c.n_found; i++) {
        const tp_changepoint *p = &c.found[i];
        tp_stats_writer_object(a, NULL);
        tp_stats_writer_count(a, "index", p->index);
        tp_stats_writer_number(a, "at", at ? at->x[p->index] : (double)p->index, NULL);
        tp_stats_writer_number(a, "median_before", p->median_before, NULL);
        tp_stats_writer_number(a, "median_after", p->median_after, NULL);
        tp_stats_writer_number(a, "p", c.wander ? (double)NAN : p->p, wanders);
        tp_stats_writer_object_end(a);
    }
    tp_stats_writer_end_array(a);
    tp_stats_writer_object_end(a);
    return TP_OK;
}

static tp_status put_columns(tp_stats_writer *a, tp_stats_kind kind, const tp_stats_style *s,
                             const tp_stats_column *c, size_t n, const tp_stats_column *at,
                             tp_error *err)
{
    switch (kind) {
    case TP_STATS_ONE:
        return put_one(a, &c[0], s->n_resamples > 0, err);
    case TP_STATS_TWO:
    case TP_STATS_PAIRED:
        return put_two(a, s, &c[1], &c[0], kind == TP_STATS_PAIRED, err);
    case TP_STATS_GROUPS:
        return put_groups(a, c, n, err);
    case TP_STATS_SERIES:
        return put_series(a, s, &c[0], at, err);
    }
    return TP_OK;
}

static tp_stats_writer_options options_of(const tp_stats_style *s)
{
    return (tp_stats_writer_options){
        .level = s->level, .seed = s->seed, .n_resamples = s->n_resamples ? s->n_resamples : 9999};
}

static void put_notes(tp_json_w *w, const char *notes)
{
    if (!notes || !*notes)
        return;
    tp_json_w_put_begin(w, "notes", '[');
    for (size_t n; (n = strcspn(notes, "\n")) > 0; notes += n + (notes[n] != 0))
        tp_json_w_strn(w, notes, n);
    tp_json_w_end(w, ']');
}

tp_status tp_stats_json(tp_stats_kind kind, const tp_stats_style *style, const tp_stats_column *c,
                        size_t n, const tp_stats_column *at, tp_buf *out, tp_error *err)
{
    TP_OWN(tp_arena) arena = {0};
    tp_json_w w;
    tp_stats_writer a = {.w = &w, .name = c[0].name, .arena = &arena, .o = options_of(style)};
    tp_json_w_init(&w, out, 2);
    TP_TRY(tp_arena_init(&arena, (size_t)1 << 36, err));
    tp_stats_writer_open(&a);
    put_names(&w, c, n);
    put_notes(&w, style->notes);
    tp_status status = put_columns(&a, kind, style, c, n, at, err);
    if (status == TP_OK) {
        tp_stats_writer_close(&a);
        tp_buf_addc(out, '\n');
    }
    tp_buf_release(&a.reasons);
    return status;
}

/* ---- shares and plans ---- */

static void put_share(tp_stats_writer *a, int64_t x, int64_t n)
{
    tp_proportion_result r = tp_proportion(x, n, a->o.level);
    tp_stats_writer_count(a, "x", (uint64_t)x);
    tp_stats_writer_count(a, "n", (uint64_t)n);
    tp_stats_writer_number(a, "phat", (double)x / (double)n, NULL);
    tp_stats_writer_pair(a, "wilson", r.wilson);
    tp_stats_writer_pair(a, "wilson_cc", r.wilson_cc);
    tp_stats_writer_pair(a, "clopper_pearson", r.clopper_pearson);
    tp_stats_writer_pair(a, "agresti_coull", r.agresti_coull);
    tp_stats_writer_pair(a, "jeffreys", r.jeffreys);
}

tp_status tp_stats_json_shares(const tp_stats_style *style, const int64_t *x, const int64_t *n,
                               size_t k, tp_buf *out, tp_error *err)
{
    tp_json_w w;
    tp_stats_writer a = {.w = &w, .name = "--share", .o = options_of(style)};
    TP_TRY(tp_stats_check_shares(x, n, k, err));
    tp_json_w_init(&w, out, 2);
    tp_stats_writer_open(&a);
    if (k == 1) {
        put_share(&a, x[0], n[0]);
    } else {
        tp_newcombe_result r = tp_newcombe(x[1], n[1], x[0], n[0], style->level);
        tp_stats_writer_number(&a, "diff", r.diff, NULL);
        tp_stats_writer_pair(&a, "newcombe", r.ci);
        tp_stats_writer_begin_array(&a, "shares");
        for (size_t i = 0; i < k; i++) {
            tp_stats_writer_object(&a, NULL);
            put_share(&a, x[i], n[i]);
            tp_stats_writer_object_end(&a);
        }
        tp_stats_writer_end_array(&a);
    }
    tp_stats_writer_close(&a);
    tp_buf_addc(out, '\n');
    tp_buf_release(&a.reasons);
    return TP_OK;
}

tp_status tp_stats_json_plan(const tp_stats_style *style, const tp_stats_plan *plan, tp_buf *out,
                             tp_error *err)
{
    tp_stats_plan p = *plan;
    TP_TRY(tp_stats_solve_plan(style, &p, err));
    tp_json_w w = tp_json_w_open(out, 2, '{');
    tp_json_w_put_bool(&w, "paired", p.paired);
    tp_json_w_put_i64(&w, "sides", p.sides);
    tp_json_w_put_f64(&w, "alpha", round((1 - style->level) * 1e12) / 1e12);
    tp_json_w_put_f64(&w, "effect", p.effect);
    tp_json_w_put_f64(&w, "n", p.n);
    tp_json_w_put_f64(&w, "power", p.power);
    tp_json_w_close(&w, '}');
    return TP_OK;
}
