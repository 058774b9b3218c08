/* run_compare.c - two runs, or two groups of runs, metric by metric.
 *
 * Two runs: differences at the steps that both have; their mean with an interval from batches.  The
 * interval is of these two runs; what another seed would give it cannot know.  Groups: each run is
 * one observation, its mean over the steps that all have, and Welch's t test asks between the
 * groups. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sized.h"
#include "base/strings.h"
#include "base/vec.h"
#include "instrument/analyze/runs/align.h"
#include "stats/adjust.h"
#include "stats/curves.h"
#include "stats/descriptive.h"
#include "stats/two_sample.h"
#include "stats/verdict.h"
#include "text/json/tree.h"

typedef struct {
    char *key, *a, *b; /* a or b NULL: not set there */
} difference;

struct tp_run_comparison {
    tp_compared_metric *metrics;
    size_t n, cap;
    difference *settings;
    size_t n_settings, cap_settings;
    double level, margin;
    tp_align align;
};

/* ---- one metric ---- */

static void compare_pair(tp_compared_metric *x, double *a, const double *b, size_t n, double level)
{
    x->mean_a = tp_mean(a, n);
    x->mean_b = tp_mean(b, n);
    for (size_t i = 0; i < n; i++)
        a[i] = b[i] - a[i];
    tp_batch_mean d = tp_batch_mean_of(a, n, tp_lag1_beside_lines(a, n, 1), level);
    x->effect = d.mean;
    x->ci_lo = d.ci.lo;
    x->ci_hi = d.ci.hi;
    x->p = d.p;
    x->n = n;
    snprintf(x->method, sizeof x->method, "paired steps, %zu batches, t%s", d.batches,
             tp_batch_df_text(&d));
    if (d.ci.why)
        snprintf(x->why, sizeof x->why, "fewer than 3 steps in common");
}

/* Nothing was drawn: all runs of a side have the same values everywhere, as memory that is planned
 * and rates that are set have. */
static bool is_fixed(const tp_aligned *s)
{
    bool is = s->n >= 3 && s->n_a > 1 && s->n_b > 1;
    for (size_t r = 1; r < s->n_a + s->n_b && is; r++)
        is = r == s->n_a ||
             memcmp(s->value + r * s->n, s->value + (r - 1) * s->n, s->n * sizeof *s->value) == 0;
    return is;
}

static void compare_groups(tp_compared_metric *x, const tp_aligned *s, double level)
{
    TP_FREED double *means = tp_vec_new(s->n_a + s->n_b, sizeof *means);
    for (size_t r = 0; r < s->n_a + s->n_b; r++)
        means[r] = tp_mean(s->value + r * s->n, s->n);
    x->mean_a = tp_mean(means, s->n_a);
    x->mean_b = tp_mean(means + s->n_a, s->n_b);
    tp_t_test t = tp_welch(means + s->n_a, s->n_b, means, s->n_a, level);
    x->effect = x->mean_b - x->mean_a;
    x->ci_lo = t.ci.lo;
    x->ci_hi = t.ci.hi;
    x->p = t.p.two;
    x->n = s->n_a + s->n_b;
    snprintf(x->method, sizeof x->method, "means of %zu and %zu runs, Welch", s->n_a, s->n_b);
    if (t.why && x->effect == 0) {
        x->ci_lo = x->ci_hi = 0, x->p = 1;
    } else if (t.why && is_fixed(s)) {
        x->ci_lo = x->ci_hi = x->effect, x->p = 0;
        snprintf(x->method, sizeof x->method, "the runs of a side are alike at all %zu steps",
                 s->n);
    } else if (t.why)
        snprintf(x->why, sizeof x->why, "needs two runs or more that differ on each side");
}

/* One run that ended early leaves only its part of all others: a group is judged by half of its
 * runs' length or more. */
static void say_short(tp_compared_metric *x, const tp_aligned *s, tp_align align)
{
    bool is_group = s->n_a > 1 || s->n_b > 1, is_b = s->ends_first >= s->n_a;
    if (s->n == 0 || !is_group || x->why[0] || !(s->end < 0.9 * s->longest))
        return;
    snprintf(x->why, sizeof x->why, "run %zu of %s ends at %s %.6g of %.6g: compared up to there",
             s->ends_first - (is_b ? s->n_a : 0) + 1, is_b ? "B" : "A",
             align == TP_ALIGN_STEPS    ? "step"
             : align == TP_ALIGN_TOKENS ? "token"
                                        : "second",
             s->end, s->longest);
    if (s->end < 0.5 * s->longest) /* nothing is shown of the runs */
        x->p = NAN;
}

static void compare_metric(tp_compared_metric *x, tp_aligned *s, double level, tp_align align)
{
    x->effect = x->ci_lo = x->ci_hi = x->p = x->p_adjusted = x->mean_a = x->mean_b = NAN;
    x->odd_a = s->odd_a;
    x->odd_b = s->odd_b;
    if (s->n == 0)
        snprintf(x->why, sizeof x->why, "no %s in common",
                 align == TP_ALIGN_STEPS    ? "step"
                 : align == TP_ALIGN_TOKENS ? "tokens"
                                            : "time");
    else if (s->n_a == 1 && s->n_b == 1)
        compare_pair(x, s->value, s->value + s->n, s->n, level);
    else
        compare_groups(x, s, level);
    x->direction = tp_metric_direction(x->name);
    say_short(x, s, align);
}

/* ---- verdicts ---- */

/* NaN where the other side has none is worse, whatever the rest says. */
static const char *verdict_of(const tp_compared_metric *x, double alpha, double margin)
{
    double near = margin * fabs(x->mean_a);
    if (x->direction && (x->odd_a > 0) != (x->odd_b > 0))
        return tp_change_name(x->odd_b ? TP_CHANGE_WORSE : TP_CHANGE_BETTER);
    if (isnan(x->p_adjusted))
        return tp_change_name(TP_CHANGE_NOT_SHOWN);
    if (x->ci_lo >= -near && x->ci_hi <= near)
        return tp_change_name(TP_CHANGE_SAME);
    if (x->p_adjusted >= alpha)
        return tp_change_name(TP_CHANGE_NOT_SHOWN);
    if (!x->direction)
        return "changed";
    return tp_change_name((x->effect > 0) == (x->direction > 0) ? TP_CHANGE_BETTER
                                                                : TP_CHANGE_WORSE);
}

static tp_status judge(tp_run_comparison *c, tp_error *err)
{
    TP_FREED double *p = tp_vec_new(c->n, sizeof *p);
    for (size_t i = 0; i < c->n; i++)
        p[i] = c->metrics[i].p;
    TP_TRY(c->n ? tp_adjust(TP_ADJUST_HOLM, p, c->n, p, err) : TP_OK);
    for (size_t i = 0; i < c->n; i++) {
        tp_compared_metric *x = &c->metrics[i];
        x->p_adjusted = p[i];
        x->verdict = verdict_of(x, 1 - c->level, c->margin);
        if (x->odd_a != x->odd_b)
            snprintf(x->why, sizeof x->why, "values that are NaN or infinite: %zu in A, %zu in B",
                     x->odd_a, x->odd_b);
    }
    return TP_OK;
}

/* ---- settings ---- */

static const char *setting_of(const tp_metrics *m, const char *key)
{
    for (size_t i = 0; i < tp_metrics_settings(m); i++) {
        const char *value, *k = tp_metrics_setting(m, i, &value);
        if (strcmp(k, key) == 0)
            return value;
    }
    return NULL;
}

/* Numbers by value, in lists too: 1.0e-3 is 0.0010. */
static bool is_same_setting(const char *a, const char *b)
{
    enum { LONGEST = 1000, ROOM = 1 << 18 };
    const tp_json *x, *y;
    TP_CLEANUP(tp_arena_release) tp_arena arena = {0};
    if (strcmp(a, b) == 0)
        return true;
    size_t n = strlen(a), m = strlen(b);
    return n < LONGEST && m < LONGEST && tp_arena_init(&arena, ROOM, NULL) == TP_OK &&
           tp_json_parse(&arena, "a", a, n, NULL, &x, NULL) == TP_OK &&
           tp_json_parse(&arena, "b", b, m, NULL, &y, NULL) == TP_OK && tp_json_same(x, y);
}

static void add_difference(tp_run_comparison *c, const char *key, const char *a, const char *b)
{
    difference *d = TP_VEC_PUSH(c->settings, c->n_settings, c->cap_settings);
    d->key = tp_strdup(key);
    d->a = tp_strdup(a);
    d->b = tp_strdup(b);
}

static void compare_settings(tp_run_comparison *c, const tp_metrics *a, const tp_metrics *b)
{
    const char *value;
    for (size_t i = 0; i < tp_metrics_settings(a); i++) {
        const char *key = tp_metrics_setting(a, i, &value), *other = setting_of(b, key);
        if (!other || !is_same_setting(value, other))
            add_difference(c, key, value, other);
    }
    for (size_t i = 0; i < tp_metrics_settings(b); i++) {
        const char *key = tp_metrics_setting(b, i, &value);
        if (!setting_of(a, key))
            add_difference(c, key, NULL, value);
    }
}

/* ---- the whole ---- */

static bool has_runs(tp_metrics *const *runs, size_t n)
{
    bool has = runs && n;
    for (size_t i = 0; has && i < n; i++)
        has = runs[i] != NULL;
    return has;
}

static tp_status read_options(tp_compare_options *ret, const tp_compare_options *theirs,
                              tp_error *err)
{
    TP_TRY(tp_sized_read(ret, sizeof *ret, theirs, "tp_compare_options", err));
    ret->level = ret->level != 0 ? ret->level : 0.95;
    if ((unsigned)ret->align > TP_ALIGN_TIME)
        return tp_fail(err, TP_ERR_ARG, "align is %d, which is nothing", (int)ret->align);
    ret->margin = ret->margin != 0 ? ret->margin : 0.01;
    if (!(ret->level > 0 && ret->level < 1))
        return tp_fail(err, TP_ERR_ARG, "level is %g; expected a number between 0 and 1",
                       ret->level);
    if (!(ret->margin > 0) || isinf(ret->margin))
        return tp_fail(err, TP_ERR_ARG, "margin is %g; expected a number above 0", ret->margin);
    return TP_OK;
}

/* A hash is a name for what was there: differences of two say nothing. */
static bool is_quantity(const char *tag) { return !tp_str_ends(tag, "_fingerprint"); }

tp_status tp_runs_compare(tp_metrics *const *a, size_t n_a, tp_metrics *const *b, size_t n_b,
                          const tp_compare_options *options, tp_run_comparison **ret, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    tp_compare_options o;
    if (!has_runs(a, n_a) || !has_runs(b, n_b) || !ret)
        return tp_fail(err, TP_ERR_ARG, "tp_runs_compare: both sides need a run");
    TP_TRY(read_options(&o, options, err));
    tp_run_comparison *c = tp_vec_new(1, sizeof *c);
    c->level = o.level;
    c->margin = o.margin;
    c->align = o.align;
    for (size_t i = 0; i < tp_metrics_count(a[0]); i++) {
        const char *tag = tp_metrics_tag(a[0], i);
        TP_OWN(tp_aligned) s = {0};
        if (!is_quantity(tag) || !tp_align_metric(a, n_a, b, n_b, tag, c->align, &s))
            continue;
        tp_compared_metric *x = TP_VEC_PUSH(c->metrics, c->n, c->cap);
        x->name = tp_strdup(tag);
        x->name_b = strcmp(s.tag_b, tag) == 0 ? NULL : tp_strdup(s.tag_b);
        compare_metric(x, &s, c->level, c->align);
    }
    compare_settings(c, a[0], b[0]);
    TP_HAND_OVER(c->n ? judge(c, err)
                      : tp_fail(err, TP_ERR_CONFIG, "'%s' and '%s' have no metric in common",
                                tp_metrics_name(a[0]), tp_metrics_name(b[0])),
                 ret, c, tp_run_comparison_free(c));
}

void tp_run_comparison_free(tp_run_comparison *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->n; i++) {
        free((char *)(uintptr_t)c->metrics[i].name);
        free((char *)(uintptr_t)c->metrics[i].name_b);
    }
    for (size_t i = 0; i < c->n_settings; i++) {
        free(c->settings[i].key);
        free(c->settings[i].a);
        free(c->settings[i].b);
    }
    free(c->metrics);
    free(c->settings);
    free(c);
}

size_t tp_run_comparison_count(const tp_run_comparison *c) { return c->n; }

const tp_compared_metric *tp_run_comparison_metric(const tp_run_comparison *c, size_t index)
{
    return index < c->n ? &c->metrics[index] : NULL;
}

tp_align tp_run_comparison_align(const tp_run_comparison *c) { return c->align; }

double tp_run_comparison_level(const tp_run_comparison *c) { return c->level; }

size_t tp_run_comparison_settings(const tp_run_comparison *c) { return c->n_settings; }

const char *tp_run_comparison_setting(const tp_run_comparison *c, size_t index, const char **ret_a,
                                      const char **ret_b)
{
    if (index >= c->n_settings)
        return NULL;
    *ret_a = c->settings[index].a;
    *ret_b = c->settings[index].b;
    return c->settings[index].key;
}

static const char *align_name(tp_align align)
{
    static const char *const names[] = {"steps", "tokens", "time"};
    return names[align];
}

static void put_interval(tp_json_w *w, double lo, double hi)
{
    tp_json_w_put_begin(w, "ci95", '[');
    if (isnan(lo) || isnan(hi)) {
        tp_json_w_null(w);
        tp_json_w_null(w);
    } else {
        tp_json_w_f64(w, lo);
        tp_json_w_f64(w, hi);
    }
    tp_json_w_end(w, ']');
}

char *tp_run_comparison_json(const tp_run_comparison *c)
{
    tp_buf out = {0};
    tp_json_w w = tp_json_w_open(&out, 2, '{');
    tp_json_w_put_begin(&w, "metrics", '[');
    for (size_t i = 0; i < c->n; i++) {
        const tp_compared_metric *x = &c->metrics[i];
        tp_json_w_begin(&w, '{');
        tp_json_w_put_str(&w, "name", x->name);
        tp_json_w_put_known(&w, "effect", x->effect);
        put_interval(&w, x->ci_lo, x->ci_hi);
        tp_json_w_put_known(&w, "p_adjusted", x->p_adjusted);
        tp_json_w_put_str(&w, "verdict", x->verdict);
        tp_json_w_put_known(&w, "p", x->p);
        tp_json_w_put_known(&w, "mean_a", x->mean_a);
        tp_json_w_put_known(&w, "mean_b", x->mean_b);
        tp_json_w_put_i64(&w, "n", (int64_t)x->n);
        tp_json_w_put_str(&w, "method", x->method[0] ? x->method : NULL);
        tp_json_w_put_str(&w, "why", x->why[0] ? x->why : NULL);
        tp_json_w_put_str(&w, "name_b", x->name_b);
        tp_json_w_end(&w, '}');
    }
    tp_json_w_end(&w, ']');
    tp_json_w_put_str(&w, "adjustment", "holm");
    tp_json_w_put_str(&w, "aligned_by", align_name(c->align));
    tp_json_w_put_f64(&w, "level", c->level);
    tp_json_w_put_f64(&w, "margin", c->margin);
    tp_json_w_put_begin(&w, "settings", '[');
    for (size_t i = 0; i < c->n_settings; i++) {
        tp_json_w_begin(&w, '{');
        tp_json_w_put_str(&w, "key", c->settings[i].key);
        tp_json_w_put_str(&w, "a", c->settings[i].a);
        tp_json_w_put_str(&w, "b", c->settings[i].b);
        tp_json_w_end(&w, '}');
    }
    tp_json_w_end(&w, ']');
    tp_json_w_close(&w, '}');
    return out.data;
}
