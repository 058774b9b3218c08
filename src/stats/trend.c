/* trend.c - Mann-Kendall with corrections, and least squares. */
#include "stats/trend.h"

#include <math.h>

#include "stats/descriptive.h"
#include "stats/moments.h"
#include "stats/order.h"
#include "stats/special.h"
#include "stats/special_internal.h"
#include "stats/trend_internal.h"

/* Knight's algorithm: S from the inversions of y in the order of x. */
static void kendall(const double *x, const double *y, size_t n, tp_mann_kendall_result *r)
{
    TP_FREED tp_point *v = tp_points_sorted(x, y, n);
    TP_FREED double *in_order = tp_scratch(2 * n);
    for (size_t i = 0; i < n; i++)
        in_order[i] = v[i].y;
    tp_ties tx = x ? tp_ties_of(v, n, false) : (tp_ties){0, 0, 0};
    tp_ties both = x ? tp_ties_of(v, n, true) : (tp_ties){0, 0, 0};
    double discordant = (double)tp_count_inversions(in_order, n);
    tp_ties ty = tp_ties_of_sorted(in_order, n);
    double m = (double)n, pairs = 0.5 * m * (m - 1);
    r->s = pairs - tx.pairs - ty.pairs + both.pairs - 2 * discordant;
    r->var_s = (m * (m - 1) * (2 * m + 5) - tx.cubes - ty.cubes) / 18;
    if (tx.pairs > 0)
        r->var_s += 2 * tx.pairs * ty.pairs / (m * (m - 1));
    if (tx.triple > 0 && n > 2)
        r->var_s += tx.triple * ty.triple / (9 * m * (m - 1) * (m - 2));
    if (n > 1)
        r->tau_a = r->s / pairs;
    double untied = (pairs - tx.pairs) * (pairs - ty.pairs);
    if (untied > 0)
        r->tau_b = r->s / sqrt(untied);
    else
        r->why_tau_b = n > 1 ? "all values are equal" : "needs at least two values";
}

static double z_of(double s, double var) { return (s - (s > 0) + (s < 0)) / sqrt(var); }

/* `line`: of the same series. */
static void correct(const tp_theil_sen_result *line, tp_mann_kendall_result *r)
{
    if (r->n < 4)
        r->why_corrected = "needs at least four values";
    else if (line->why)
        r->why_corrected = line->why;
    else if (!(line->correction > 0))
        r->why_corrected = "the autocorrelations leave no variance";
    if (r->why_corrected)
        return;
    r->correction = line->correction;
    r->corrected_z = z_of(r->s, r->var_s * r->correction);
    r->corrected_p_two = fmin(1, 2 * tp_normal_sf(fabs(r->corrected_z)));
    r->corrected_p_increasing = tp_normal_sf(r->corrected_z);
}

tp_status tp_trend_of(const double *x, const double *y, size_t n, double level,
                      tp_mann_kendall_result *ret_test, tp_theil_sen_result *ret_slope,
                      tp_error *err)
{
    tp_mann_kendall_result r = {.n = n,
                                .var_s = NAN,
                                .z = NAN,
                                .p_two = NAN,
                                .p_increasing = NAN,
                                .tau_a = NAN,
                                .tau_b = NAN,
                                .correction = NAN,
                                .corrected_z = NAN,
                                .corrected_p_two = NAN,
                                .corrected_p_increasing = NAN};
    TP_TRY(tp_theil_sen_corrected(x, y, n, level, ret_slope, err));
    kendall(x, y, n, &r);
    if (r.var_s > 0) {
        r.z = z_of(r.s, r.var_s);
        r.p_two = fmin(1, 2 * tp_normal_sf(fabs(r.z)));
        r.p_increasing = tp_normal_sf(r.z);
        correct(ret_slope, &r);
    } else {
        r.why = r.why_corrected = n < 2 ? "needs at least two values" : "all values are equal";
    }
    *ret_test = r;
    return TP_OK;
}

double tp_mann_kendall_p(const tp_mann_kendall_result *m)
{
    return fmax(m->p_two, m->corrected_p_two); /* NaN: not corrected */
}

tp_status tp_mann_kendall(const double *x, const double *y, size_t n, double alpha,
                          tp_mann_kendall_result *ret, tp_error *err)
{
    tp_theil_sen_result line;
    return tp_trend_of(x, y, n, 1 - alpha, ret, &line, err);
}

typedef struct {
    tp_two slope, mean_x, mean_y, sxx, syy;
    int ex, ey;
} line_sums;

static line_sums sums_of_line(const double *x, const double *y, size_t n)
{
    line_sums s = {.ex = x ? tp_scale_exponent(x, n) : 0, .ey = tp_scale_exponent(y, n)};
    tp_moments my = tp_moments_of(y, n, s.ey);
    s.mean_y = my.mean;
    s.syy = my.s2;
    s.mean_x = tp_two_of(0.5 * (double)(n - 1));
    if (x)
        s.mean_x = tp_moments_of(x, n, s.ex).mean;
    tp_two sxy = {0, 0};
    for (size_t i = 0; i < n; i++) {
        tp_two dx = tp_two_add_d(tp_two_negate(s.mean_x), ldexp(tp_x_at(x, i), -s.ex));
        tp_two dy = tp_two_add_d(tp_two_negate(s.mean_y), ldexp(y[i], -s.ey));
        s.sxx = tp_two_add(s.sxx, tp_two_mul(dx, dx));
        sxy = tp_two_add(sxy, tp_two_mul(dx, dy));
    }
    s.slope = s.sxx.hi > 0 ? tp_two_div(sxy, s.sxx) : tp_two_of(NAN);
    return s;
}

static long double residual_squares(const double *x, const double *y, size_t n, const line_sums *s)
{
    tp_two sum = {0, 0};
    for (size_t i = 0; i < n; i++) {
        tp_two dx = tp_two_add_d(tp_two_negate(s->mean_x), ldexp(tp_x_at(x, i), -s->ex));
        tp_two e = tp_two_add_d(tp_two_negate(s->mean_y), ldexp(y[i], -s->ey));
        e = tp_two_sub(e, tp_two_mul(s->slope, dx));
        sum = tp_two_add(sum, tp_two_mul(e, e));
    }
    return tp_two_long(sum);
}

tp_line tp_fit_line(const double *x, const double *y, size_t n, double level)
{
    tp_line r = {NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, .why = NULL};
    if (n < 2) {
        r.why = r.why_test = "needs at least two points";
        r.ci = tp_interval_undefined(r.why);
        return r;
    }
    line_sums s = sums_of_line(x, y, n);
    if (!(s.sxx.hi > 0)) {
        r.why = r.why_test = "every x is the same";
        r.ci = tp_interval_undefined(r.why);
        return r;
    }
    long double slope = ldexpl(tp_two_long(s.slope), s.ey - s.ex);
    tp_two intercept = tp_two_sub(s.mean_y, tp_two_mul(s.slope, s.mean_x));
    r.slope = (double)slope;
    r.intercept = (double)ldexpl(tp_two_long(intercept), s.ey);
    if (n < 3) {
        r.why_test = "needs at least three points";
        r.ci = tp_interval_undefined(r.why_test);
        return r;
    }
    long double sse = residual_squares(x, y, n, &s), df = (long double)n - 2;
    long double sd = sqrtl(sse / df), se = ldexpl(sd / sqrtl(tp_two_long(s.sxx)), s.ey - s.ex);
    r.se_slope = (double)se;
    r.residual_sd = (double)ldexpl(sd, s.ey);
    r.df = (double)df;
    if (s.syy.hi > 0)
        r.r2 = (double)(1 - sse / tp_two_long(s.syy));
    if (!(se > 0)) {
        r.why_test = "the points lie on a line";
        r.ci = tp_interval_undefined(r.why_test);
        return r;
    }
    long double half = se * tp_t_isf_long(0.5L * (1 - (long double)level), df);
    r.t = (double)(slope / se);
    r.p_two = tp_t_two_sided(r.t, r.df);
    r.ci = (tp_interval){.lo = (double)(slope - half), .hi = (double)(slope + half)};
    return r;
}

tp_status tp_block_medians(const double *y, size_t n, size_t n_blocks, double *ret, tp_error *err)
{
    if (n_blocks == 0 || n_blocks > n)
        return tp_fail(err, TP_ERR_ARG, "%zu blocks of %zu values; choose from 1 to %zu", n_blocks,
                       n, n);
    for (size_t b = 0; b < n_blocks; b++) {
        size_t from = b * n / n_blocks, to = (b + 1) * n / n_blocks;
        TP_TRY(tp_median(y + from, to - from, &ret[b], err));
    }
    return TP_OK;
}
