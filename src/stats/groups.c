/* groups.c - Welch's and Fisher's ANOVA, Brown-Forsythe, Kruskal-Wallis, and all pairs by Welch
 * tests. */
#include "stats/groups.h"

#include <math.h>
#include <string.h>

#include "stats/adjust.h"
#include "stats/descriptive.h"
#include "stats/effect.h"
#include "stats/moments.h"
#include "stats/order.h"
#include "stats/special.h"
#include "stats/two_sample.h"

static int common_exponent(const tp_group *groups, size_t k)
{
    double largest = 0;
    for (size_t j = 0; j < k; j++)
        for (size_t i = 0; i < groups[j].n; i++)
            largest = fmax(largest, fabs(groups[j].x[i]));
    return tp_scale_exponent(&largest, 1);
}

static size_t count_all(const tp_group *groups, size_t k)
{
    size_t n = 0;
    for (size_t j = 0; j < k; j++)
        n += groups[j].n;
    return n;
}

static size_t smallest(const tp_group *groups, size_t k)
{
    size_t least = SIZE_MAX;
    for (size_t j = 0; j < k; j++)
        least = groups[j].n < least ? groups[j].n : least;
    return least;
}

/* Sums of squares in twofold precision, scaled. */
typedef struct {
    tp_two between, within;
    int exponent;
} squares;

static squares sums_of_squares(const tp_group *groups, size_t k, size_t n)
{
    squares s = {.exponent = common_exponent(groups, k)};
    tp_two total = {0, 0};
    for (size_t j = 0; j < k; j++) {
        tp_moments m = tp_moments_of(groups[j].x, groups[j].n, s.exponent);
        s.within = tp_two_add(s.within, m.s2);
        total = tp_two_add(total, tp_two_mul_d(m.mean, (double)groups[j].n));
    }
    tp_two grand = tp_two_div_d(total, (double)n);
    for (size_t j = 0; j < k; j++) {
        tp_moments m = tp_moments_of(groups[j].x, groups[j].n, s.exponent);
        tp_two d = tp_two_sub(m.mean, grand);
        s.between = tp_two_add(s.between, tp_two_mul_d(tp_two_mul(d, d), (double)groups[j].n));
    }
    return s;
}

tp_anova_result tp_anova(const tp_group *groups, size_t k)
{
    tp_anova_result r = {NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, .why = NULL};
    size_t n = count_all(groups, k);
    if (k < 2 || smallest(groups, k) == 0 || n <= k) {
        r.why = r.why_size = k < 2                      ? "needs at least two groups"
                             : smallest(groups, k) == 0 ? "a group is empty"
                                                        : "no group has two values";
        return r;
    }
    squares s = sums_of_squares(groups, k, n);
    long double df1 = (long double)k - 1, df2 = (long double)(n - k);
    long double b = tp_two_long(s.between), w = tp_two_long(s.within), msw = w / df2;
    r.df_between = (double)df1;
    r.df_within = (double)df2;
    r.ss_between = (double)ldexpl(b, 2 * s.exponent);
    r.ss_within = (double)ldexpl(w, 2 * s.exponent);
    r.ms_between = (double)ldexpl(b / df1, 2 * s.exponent);
    r.ms_within = (double)ldexpl(msw, 2 * s.exponent);
    r.residual_sd = (double)ldexpl(sqrtl(msw), s.exponent);
    if (w > 0) {
        r.f = (double)(b / df1 / msw);
        r.p = tp_f_sf(r.f, r.df_between, r.df_within);
    } else {
        r.why = "no variance within the groups";
    }
    if (b + w > 0) {
        r.eta2 = (double)(b / (b + w));
        r.omega2 = (double)((b - df1 * msw) / (b + w + msw));
        r.epsilon2 = (double)((b - df1 * msw) / (b + w));
    } else {
        r.why_size = "all values are equal";
    }
    return r;
}

static tp_f_test no_f(const char *why) { return (tp_f_test){NAN, NAN, NAN, NAN, why}; }

tp_f_test tp_welch_anova(const tp_group *groups, size_t k)
{
    if (k < 2)
        return no_f("needs at least two groups");
    if (smallest(groups, k) < 2)
        return no_f("every group needs at least two values");
    int e = common_exponent(groups, k);
    long double weights = 0, mean = 0, between = 0, spread = 0;
    tp_two reference = {0, 0}; /* means are taken relative to the first one */
    for (int pass = 0; pass < 2; pass++) {
        for (size_t j = 0; j < k; j++) {
            tp_moments m = tp_moments_of(groups[j].x, groups[j].n, e);
            long double n = (long double)m.n, w = n * (n - 1) / tp_two_long(m.s2);
            if (!(m.s2.hi > 0))
                return no_f("a group is constant");
            if (pass == 0 && j == 0)
                reference = m.mean;
            long double d = tp_two_long(tp_two_sub(m.mean, reference));
            if (pass == 0) {
                weights += w;
                mean += w * d;
            } else {
                long double rest = 1 - w / weights;
                between += w * (d - mean) * (d - mean);
                spread += rest * rest / (n - 1);
            }
        }
        if (pass == 0)
            mean /= weights;
    }
    long double kk = (long double)k, square = kk * kk - 1;
    tp_f_test r = {.df1 = (double)(kk - 1), .df2 = (double)(square / (3 * spread))};
    r.f = (double)(between / (kk - 1) / (1 + 2 * (kk - 2) / square * spread));
    r.p = tp_f_sf(r.f, r.df1, r.df2);
    return r;
}

tp_f_test tp_brown_forsythe(const tp_group *groups, size_t k)
{
    size_t n = count_all(groups, k), at = 0;
    if (k < 2 || smallest(groups, k) == 0)
        return no_f(k < 2 ? "needs at least two groups" : "a group is empty");
    TP_FREED double *z = tp_scratch(2 * n);
    TP_FREED tp_group *shifted = tp_new(k, sizeof *shifted);
    for (size_t j = 0; j < k; j++) {
        size_t m = groups[j].n;
        double *sorted = z + n;
        memcpy(sorted, groups[j].x, m * sizeof *sorted);
        tp_sort(sorted, m);
        tp_two median = tp_quantile_exact(sorted, m, 0.5);
        for (size_t i = 0; i < m; i++)
            z[at + i] = fabs(tp_two_value(tp_two_add_d(tp_two_negate(median), groups[j].x[i])));
        shifted[j] = (tp_group){z + at, m};
        at += m;
    }
    tp_anova_result a = tp_anova(shifted, k);
    return a.why ? no_f(a.why) : (tp_f_test){a.f, a.df_between, a.df_within, a.p, NULL};
}

tp_status tp_kruskal(const tp_group *groups, size_t k, tp_kruskal_result *ret, tp_error *err)
{
    tp_kruskal_result r = {NAN, NAN, NAN, NAN, NAN, NAN, NAN, NULL};
    size_t n = count_all(groups, k), at = 0;
    double ties, sum = 0;
    if (k < 2 || smallest(groups, k) == 0) {
        r.why = k < 2 ? "needs at least two groups" : "a group is empty";
        *ret = r;
        return TP_OK;
    }
    TP_FREED double *x = tp_scratch(2 * n);
    double *ranks = x + n;
    for (size_t j = 0; j < k; j++) {
        memcpy(x + at, groups[j].x, groups[j].n * sizeof *x);
        at += groups[j].n;
    }
    TP_TRY(tp_midranks(x, n, ranks, &ties, err));
    double total = (double)n;
    at = 0;
    for (size_t j = 0; j < k; j++) { /* deviations of mean ranks: nothing cancels */
        double d = tp_mean(ranks + at, groups[j].n) - 0.5 * (total + 1);
        sum += (double)groups[j].n * d * d;
        at += groups[j].n;
    }
    r.df = (double)k - 1;
    r.h_uncorrected = 12 / (total * (total + 1)) * sum;
    r.tie_correction = 1 - ties / (total * (total * total - 1));
    if (r.tie_correction > 0) {
        r.h = r.h_uncorrected / r.tie_correction;
        r.p = tp_chi2_sf(r.h, r.df);
        r.epsilon2 = r.h / (total - 1);
        if (n > k)
            r.eta2 = (r.h - (double)k + 1) / (total - (double)k);
    } else {
        r.why = "all values are equal";
    }
    *ret = r;
    return TP_OK;
}

/* Of ascending values. */
static double cliffs_delta(const tp_group *a, const tp_group *b)
{
    size_t below = 0, up_to = 0; /* of b, beside a value of a */
    double sum = 0;
    for (size_t i = 0; i < a->n; i++) {
        while (below < b->n && b->x[below] < a->x[i])
            below++;
        while (up_to < b->n && b->x[up_to] <= a->x[i])
            up_to++;
        sum += (double)below - (double)(b->n - up_to);
    }
    return a->n && b->n ? sum / ((double)a->n * (double)b->n) : NAN;
}

/* `sorted`: the same groups with their values in `room`, ascending. */
static void sort_groups(const tp_group *groups, size_t k, double *room, tp_group *sorted)
{
    for (size_t i = 0; i < k; room += groups[i++].n) {
        memcpy(room, groups[i].x, groups[i].n * sizeof *room);
        tp_sort(room, groups[i].n);
        sorted[i] = (tp_group){room, groups[i].n};
    }
}

tp_status tp_pairwise_welch(const tp_group *groups, size_t k, double level, tp_pairwise *ret,
                            tp_error *err)
{
    size_t n_pairs = k * (k - 1) / 2, at = 0;
    if (k < 2)
        return TP_OK;
    TP_FREED double *p = tp_scratch(3 * n_pairs), *room = tp_scratch(count_all(groups, k) + 1);
    TP_FREED tp_group *sorted = tp_new(k, sizeof *sorted);
    sort_groups(groups, k, room, sorted);
    for (size_t i = 0; i < k; i++)
        for (size_t j = i + 1; j < k; j++, at++) {
            const tp_group *a = &groups[i], *b = &groups[j];
            tp_t_test t = tp_welch(a->x, a->n, b->x, b->n, level);
            tp_t_test pooled = tp_student(a->x, a->n, b->x, b->n, level);
            ret[at] = (tp_pairwise){.i = i,
                                    .j = j,
                                    .diff = t.diff,
                                    .t = t.t,
                                    .df = t.df,
                                    .p = t.p.two,
                                    .ci = t.ci,
                                    .why = t.why};
            ret[at].cohens_d = pooled.t * sqrt(1 / (double)a->n + 1 / (double)b->n);
            ret[at].hedges_g = ret[at].cohens_d * tp_hedges_j((double)a->n + (double)b->n - 2);
            ret[at].cliffs_delta = cliffs_delta(&sorted[i], &sorted[j]);
            p[at] = t.p.two;
        }
    TP_TRY(tp_adjust(TP_ADJUST_HOLM, p, n_pairs, p + n_pairs, err));
    TP_TRY(tp_adjust(TP_ADJUST_BH, p, n_pairs, p + 2 * n_pairs, err));
    for (size_t i = 0; i < n_pairs; i++) {
        ret[i].p_holm = p[n_pairs + i];
        ret[i].p_bh = p[2 * n_pairs + i];
    }
    return TP_OK;
}
