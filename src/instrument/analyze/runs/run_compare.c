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
#include "base/vec.h"
#include "instrument/analyze/runs/curve.h"
#include "stats/adjust.h"
#include "stats/descriptive.h"
#include "stats/two_sample.h"
#include "stats/verdict.h"
#include "text/json/json.h"

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

typedef struct {
    tp_curve *a, *b;
    size_t n_a, n_b;
} sides;

static const tp_curve *side_at(const sides *s, size_t i)
{
    return i < s->n_a ? &s->a[i] : &s->b[i - s->n_a];
}

/* Values of every run at the steps that all have: row r of *ret, `n` columns. */
static double *common_steps(const sides *s, size_t *ret_n)
{
    size_t runs = s->n_a + s->n_b, n = 0, most = s->a[0].n;
    double *values = tp_vec_new(runs * most, sizeof *values);
    size_t *at = tp_vec_new(runs, sizeof *at);
    for (size_t i = 0; i < most; i++) {
        bool everywhere = true;
        for (size_t r = 0; r < runs && everywhere; r++) {
            const tp_curve *c = side_at(s, r);
            while (at[r] < c->n && c->step[at[r]] < s->a[0].step[i])
                at[r]++;
            everywhere = at[r] < c->n && c->step[at[r]] == s->a[0].step[i];
        }
        if (!everywhere)
            continue;
        for (size_t r = 0; r < runs; r++)
            values[r * most + n] = side_at(s, r)->value[at[r]];
        n++;
    }
    for (size_t r = 1; r < runs; r++)
        memmove(values + r * n, values + r * most, n * sizeof *values);
    free(at);
    *ret_n = n;
    return values;
}

/* Between two of its points; the ends stand for what is beyond them. */
static double value_at(const tp_curve *c, double x)
{
    size_t i = 0;
    while (i < c->n && c->step[i] < x)
        i++;
    if (i == 0 || i == c->n)
        return c->value[i ? c->n - 1 : 0];
    double share = (x - c->step[i - 1]) / (c->step[i] - c->step[i - 1]);
    return c->value[i - 1] + share * (c->value[i] - c->value[i - 1]);
}

/* The same at the places of the first run that lie within all of them. */
static double *common_places(const sides *s, size_t *ret_n)
{
    size_t runs = s->n_a + s->n_b, n = 0, most = s->a[0].n;
    double *values = tp_vec_new(runs * most, sizeof *values), begin = -INFINITY, end = INFINITY;
    for (size_t r = 0; r < runs; r++) {
        const tp_curve *c = side_at(s, r);
        begin = c->n ? fmax(begin, c->step[0]) : INFINITY;
        end = c->n ? fmin(end, c->step[c->n - 1]) : -INFINITY;
    }
    for (size_t i = 0; i < most; i++) {
        double x = s->a[0].step[i];
        if (!(x >= begin && x <= end))
            continue;
        for (size_t r = 0; r < runs; r++)
            values[r * most + n] = value_at(side_at(s, r), x);
        n++;
    }
    for (size_t r = 1; r < runs; r++)
        memmove(values + r * n, values + r * most, n * sizeof *values);
    *ret_n = n;
    return values;
}

static void compare_pair(tp_compared_metric *x, double *a, const double *b, size_t n, double level)
{
    x->mean_a = tp_mean(a, n);
    x->mean_b = tp_mean(b, n);
    for (size_t i = 0; i < n; i++)
        a[i] = b[i] - a[i];
    tp_batch_mean d = tp_batch_mean_of(a, n, level);
    x->effect = d.mean;
    x->ci_lo = d.ci.lo;
    x->ci_hi = d.ci.hi;
    x->p = d.p;
    x->n = n;
    snprintf(x->method, sizeof x->method, "paired steps, %zu batches, t", d.batches);
    if (d.ci.why)
        snprintf(x->why, sizeof x->why, "fewer than 3 steps in common");
}

static void compare_groups(tp_compared_metric *x, const sides *s, const double *values, size_t n,
                           double level)
{
    double *means = tp_vec_new(s->n_a + s->n_b, sizeof *means);
    for (size_t r = 0; r < s->n_a + s->n_b; r++)
        means[r] = tp_mean(values + r * n, n);
    x->mean_a = tp_mean(means, s->n_a);
    x->mean_b = tp_mean(means + s->n_a, s->n_b);
    tp_t_test t = tp_welch(means + s->n_a, s->n_b, means, s->n_a, level);
    x->effect = x->mean_b - x->mean_a;
    x->ci_lo = t.ci.lo;
    x->ci_hi = t.ci.hi;
    x->p = t.p.two;
    x->n = s->n_a + s->n_b;
    snprintf(x->method, sizeof x->method, "means of %zu and %zu runs, Welch", s->n_a, s->n_b);
    if (t.why && x->effect == 0)
        x->ci_lo = x->ci_hi = 0, x->p = 1;
    else if (t.why)
        snprintf(x->why, sizeof x->why, "needs two runs or more that differ on each side");
    free(means);
}

static size_t odd_values(const tp_curve *c, size_t n)
{
    size_t odd = 0;
    for (size_t i = 0; i < n; i++)
        odd += c[i].n_odd;
    return odd;
}

static void compare_metric(tp_compared_metric *x, const sides *s, double level, tp_align align)
{
    size_t n;
    double *values = align == TP_ALIGN_STEPS ? common_steps(s, &n) : common_places(s, &n);
    x->effect = x->ci_lo = x->ci_hi = x->p = x->p_adjusted = x->mean_a = x->mean_b = NAN;
    x->odd_a = odd_values(s->a, s->n_a);
    x->odd_b = odd_values(s->b, s->n_b);
    if (n == 0)
        snprintf(x->why, sizeof x->why,
                 align == TP_ALIGN_STEPS    ? "no step in common"
                 : align == TP_ALIGN_TOKENS ? "no tokens in common"
                                            : "no time in common");
    else if (s->n_a == 1 && s->n_b == 1)
        compare_pair(x, values, values + n, n, level);
    else
        compare_groups(x, s, values, n, level);
    x->direction = tp_metric_direction(x->name);
    free(values);
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
    double *p = tp_vec_new(c->n, sizeof *p);
    for (size_t i = 0; i < c->n; i++)
        p[i] = c->metrics[i].p;
    tp_status status = c->n ? tp_adjust(TP_ADJUST_HOLM, p, c->n, p, err) : TP_OK;
    for (size_t i = 0; i < c->n && status == TP_OK; i++) {
        tp_compared_metric *x = &c->metrics[i];
        x->p_adjusted = p[i];
        x->verdict = verdict_of(x, 1 - c->level, c->margin);
        if (x->odd_a != x->odd_b)
            snprintf(x->why, sizeof x->why, "values that are NaN or infinite: %zu in A, %zu in B",
                     x->odd_a, x->odd_b);
    }
    free(p);
    return status;
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

static void add_difference(tp_run_comparison *c, const char *key, const char *a, const char *b)
{
    difference *d = TP_VEC_PUSH(c->settings, c->n_settings, c->cap_settings);
    d->key = strdup(key);
    d->a = a ? strdup(a) : NULL;
    d->b = b ? strdup(b) : NULL;
}

static void compare_settings(tp_run_comparison *c, const tp_metrics *a, const tp_metrics *b)
{
    const char *value;
    for (size_t i = 0; i < tp_metrics_settings(a); i++) {
        const char *key = tp_metrics_setting(a, i, &value), *other = setting_of(b, key);
        if (!other || strcmp(value, other) != 0)
            add_difference(c, key, value, other);
    }
    for (size_t i = 0; i < tp_metrics_settings(b); i++) {
        const char *key = tp_metrics_setting(b, i, &value);
        if (!setting_of(a, key))
            add_difference(c, key, NULL, value);
    }
}

/* ---- the whole ---- */

/* Tokens that were trained on up to each step; n is 0 where the run does not tell. */
static tp_curve tokens_of(tp_metrics *m)
{
    static const char *const sums[] = {"num_tokens", "train/num_tokens"};
    static const char *const of_steps[] = {"train/global_valid_toks", "train/total_num_tokens"};
    for (size_t k = 0; k < 2; k++) {
        size_t index = tp_metrics_find(m, sums[k]);
        if (index != SIZE_MAX)
            return tp_curve_at(m, index);
    }
    for (size_t k = 0; k < 2; k++) {
        size_t index = tp_metrics_find(m, of_steps[k]);
        if (index == SIZE_MAX)
            continue;
        tp_curve c = tp_curve_at(m, index);
        for (size_t i = 1; i < c.n; i++)
            c.value[i] += c.value[i - 1];
        return c;
    }
    return (tp_curve){0};
}

/* Seconds since the first record of the run. */
static tp_curve seconds_of(tp_metrics *m, size_t index)
{
    const tp_metric_point *p;
    double begin = INFINITY;
    for (size_t i = 0; i < tp_metrics_count(m); i++)
        if (tp_metrics_curve(m, i, &p))
            begin = fmin(begin, p[0].wall_time);
    size_t n = tp_metrics_curve(m, index, &p);
    tp_curve c = {.step = tp_vec_new(n, sizeof *c.step), .value = tp_vec_new(n, sizeof *c.value)};
    for (size_t i = 0; i < n && isfinite(begin); i++)
        if (isfinite(p[i].wall_time)) {
            c.step[c.n] = (double)p[i].step;
            c.value[c.n++] = p[i].wall_time - begin;
        }
    return c;
}

/* Put tokens or seconds in the place of steps; what has none, or does not go on, is left out. */
static void place(tp_metrics *m, size_t index, tp_align align, tp_curve *c)
{
    size_t n = 0;
    if (align == TP_ALIGN_STEPS)
        return;
    tp_curve places = align == TP_ALIGN_TOKENS ? tokens_of(m) : seconds_of(m, index);
    for (size_t i = 0; i < c->n; i++) {
        double x = tp_curve_before(&places, c->step[i]);
        if (isnan(x) || (n && x <= c->step[n - 1]))
            continue;
        c->step[n] = x;
        c->value[n++] = c->value[i];
    }
    c->n = n;
    tp_curve_release(&places);
}

static bool load(tp_metrics *const *runs, size_t n, const char *tag, tp_align align, tp_curve *ret)
{
    for (size_t i = 0; i < n; i++) {
        size_t index = tp_metrics_find(runs[i], tag);
        if (index == SIZE_MAX)
            return false;
        ret[i] = tp_curve_at(runs[i], index);
        place(runs[i], index, align, &ret[i]);
    }
    return true;
}

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
    tp_curve *curves = tp_vec_new(n_a + n_b, sizeof *curves);
    for (size_t i = 0; i < tp_metrics_count(a[0]); i++) {
        const char *tag = tp_metrics_tag(a[0], i);
        sides s = {curves, curves + n_a, n_a, n_b};
        if (load(a, n_a, tag, c->align, s.a) && load(b, n_b, tag, c->align, s.b)) {
            tp_compared_metric *x = TP_VEC_PUSH(c->metrics, c->n, c->cap);
            x->name = strdup(tag);
            compare_metric(x, &s, c->level, c->align);
        }
        for (size_t k = 0; k < n_a + n_b; k++)
            tp_curve_release(&curves[k]);
    }
    free(curves);
    compare_settings(c, a[0], b[0]);
    tp_status status = c->n ? judge(c, err)
                            : tp_fail(err, TP_ERR_CONFIG, "'%s' and '%s' have no metric in common",
                                      tp_metrics_path(a[0]), tp_metrics_path(b[0]));
    if (status == TP_OK)
        *ret = c;
    else
        tp_run_comparison_free(c);
    return status;
}

void tp_run_comparison_free(tp_run_comparison *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->n; i++)
        free((char *)(uintptr_t)c->metrics[i].name);
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
    tp_json_w w;
    tp_json_w_init(&w, &out, 2);
    tp_json_w_begin(&w, '{');
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
    tp_json_w_end(&w, '}');
    tp_buf_addc(&out, '\n');
    return out.data;
}
