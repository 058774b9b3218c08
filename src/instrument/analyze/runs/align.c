/* align.c - the values of a metric at the same steps, after as many tokens, after as long. */
#include "instrument/analyze/runs/align.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

/* ---- at what: steps, tokens, seconds ---- */

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

/* By the run's own name for it, unless that is another metric of the first run. */
static size_t find_same(const tp_metrics *first, const tp_metrics *m, const char *tag)
{
    size_t index = tp_curve_same(m, tag);
    const char *name = index == SIZE_MAX ? tag : tp_metrics_tag(m, index);
    return strcmp(name, tag) == 0 || tp_metrics_find(first, name) == SIZE_MAX ? index : SIZE_MAX;
}

static bool load(const tp_metrics *first, tp_metrics *const *runs, size_t n, const char *tag,
                 tp_align align, tp_curve *ret)
{
    for (size_t i = 0; i < n; i++) {
        size_t index = find_same(first, runs[i], tag);
        if (index == SIZE_MAX)
            return false;
        ret[i] = tp_curve_at(runs[i], index);
        place(runs[i], index, align, &ret[i]);
    }
    return true;
}

/* ---- where all are ---- */

/* Rows of `most` values become rows of x->n. */
static void close_up(tp_aligned *x, size_t most)
{
    for (size_t r = 1; r < x->n_a + x->n_b; r++)
        memmove(x->value + r * x->n, x->value + r * most, x->n * sizeof *x->value);
}

/* The steps that all have. */
static void common_steps(const tp_curve *c, tp_aligned *x)
{
    size_t runs = x->n_a + x->n_b, most = c[0].n, *at = tp_vec_new(runs, sizeof *at);
    for (size_t i = 0; i < most; i++) {
        bool everywhere = true;
        for (size_t r = 0; r < runs && everywhere; r++) {
            while (at[r] < c[r].n && c[r].step[at[r]] < c[0].step[i])
                at[r]++;
            everywhere = at[r] < c[r].n && c[r].step[at[r]] == c[0].step[i];
        }
        if (!everywhere)
            continue;
        for (size_t r = 0; r < runs; r++)
            x->value[r * most + x->n] = c[r].value[at[r]];
        x->place[x->n++] = c[0].step[i];
    }
    free(at);
}

/* Between two of its points, of which *at is the second; places come in rising order. */
static double value_at(const tp_curve *c, double x, size_t *at)
{
    while (*at < c->n && c->step[*at] < x)
        ++*at;
    size_t i = *at;
    if (i == 0 || i == c->n)
        return c->value[i ? c->n - 1 : 0];
    double share = (x - c->step[i - 1]) / (c->step[i] - c->step[i - 1]);
    return c->value[i - 1] + share * (c->value[i] - c->value[i - 1]);
}

/* The places of the first run that lie within all of them. */
static void common_places(const tp_curve *c, tp_aligned *x)
{
    size_t runs = x->n_a + x->n_b, most = c[0].n, *at = tp_vec_new(runs, sizeof *at);
    double begin = -INFINITY, end = INFINITY;
    for (size_t r = 0; r < runs; r++) {
        begin = c[r].n ? fmax(begin, c[r].step[0]) : INFINITY;
        end = c[r].n ? fmin(end, c[r].step[c[r].n - 1]) : -INFINITY;
    }
    for (size_t i = 0; i < most; i++) {
        double where = c[0].step[i];
        if (!(where >= begin && where <= end))
            continue;
        for (size_t r = 0; r < runs; r++)
            x->value[r * most + x->n] = value_at(&c[r], where, &at[r]);
        x->place[x->n++] = where;
    }
    free(at);
}

static void see_ends(const tp_curve *c, tp_aligned *x)
{
    x->end = INFINITY;
    x->longest = -INFINITY;
    for (size_t r = 0; r < x->n_a + x->n_b; r++) {
        double end = c[r].n ? c[r].step[c[r].n - 1] : -INFINITY;
        x->ends_first = end < x->end ? r : x->ends_first;
        x->end = fmin(x->end, end);
        x->longest = fmax(x->longest, end);
    }
}

static size_t odd_values(const tp_curve *c, size_t n)
{
    size_t odd = 0;
    for (size_t i = 0; i < n; i++)
        odd += c[i].n_odd;
    return odd;
}

bool tp_align_metric(tp_metrics *const *a, size_t n_a, tp_metrics *const *b, size_t n_b,
                     const char *tag, tp_align align, tp_aligned *ret)
{
    TP_FREED tp_curve *c = tp_vec_new(n_a + n_b, sizeof *c);
    bool has_all = load(a[0], a, n_a, tag, align, c) && load(a[0], b, n_b, tag, align, c + n_a);
    *ret = (tp_aligned){.n_a = n_a, .n_b = n_b, .tag_b = n_b ? c[n_a].tag : NULL};
    if (has_all) {
        size_t most = c[0].n;
        ret->place = tp_vec_new(most, sizeof *ret->place);
        ret->value = tp_vec_new((n_a + n_b) * most, sizeof *ret->value);
        see_ends(c, ret);
        ret->odd_a = odd_values(c, n_a);
        ret->odd_b = odd_values(c + n_a, n_b);
        if (align == TP_ALIGN_STEPS)
            common_steps(c, ret);
        else
            common_places(c, ret);
        close_up(ret, most);
    }
    for (size_t i = 0; i < n_a + n_b; i++)
        tp_curve_release(&c[i]);
    return has_all;
}

void tp_aligned_release(tp_aligned *x)
{
    free(x->place);
    free(x->value);
    *x = (tp_aligned){0};
}
