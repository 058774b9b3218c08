/* ratio.c - ratios of means (Fieller), of geometric means, and of pairs. */
#include "stats/ratio.h"

#include <math.h>

#include "stats/moments.h"
#include "stats/order.h"
#include "stats/special.h"
#include "stats/special_internal.h"
#include "stats/two_sample.h"

tp_ratio_means_result tp_ratio_means(const double *x, size_t nx, const double *y, size_t ny,
                                     double level)
{
    tp_ratio_means_result r = {.ratio = NAN, .g = NAN, .df = NAN};
    tp_t_test t = tp_welch(x, nx, y, ny, level);
    if (nx == 0 || ny == 0) {
        r.why = "a sample is empty";
        r.ci = tp_interval_undefined(r.why);
        return r;
    }
    int e = tp_scale_exponent_two(x, nx, y, ny);
    tp_moments mx = tp_moments_of(x, nx, e), my = tp_moments_of(y, ny, e);
    if (my.mean.hi == 0) {
        r.why = "the mean of y is 0";
        r.ci = tp_interval_undefined(r.why);
        return r;
    }
    /* The ratio minus 1 keeps the digits of a ratio near 1. */
    long double m2 = tp_moments_mean(&my);
    long double ratio = 1 + tp_moments_difference(&mx, &my) / m2;
    if (fabsl(ratio) < 0.5L)
        ratio = tp_moments_mean(&mx) / m2;
    r.ratio = (double)ratio;
    if (t.why) {
        r.ci = tp_interval_undefined(t.why);
        return r;
    }
    long double a = tp_moments_var(&mx) / (long double)nx,
                b = tp_moments_var(&my) / (long double)ny;
    long double share = a / (a + b), rest = b / (a + b);
    long double df =
        1 / (share * share / ((long double)nx - 1) + rest * rest / ((long double)ny - 1));
    long double q = tp_t_isf_long(0.5L * (1 - (long double)level), df);
    long double sx = sqrtl(a) / m2, sy = sqrtl(b) / m2; /* relative standard errors */
    long double g = q * q * sy * sy;
    r.df = (double)df;
    r.g = (double)g;
    if (g >= 1) {
        r.ci = tp_interval_undefined("the mean of y cannot be told from 0: unbounded");
        return r;
    }
    long double half = q * sqrtl(sx * sx + ratio * ratio * sy * sy - g * sx * sx);
    r.ci = (tp_interval){.lo = (double)((ratio - half) / (1 - g)),
                         .hi = (double)((ratio + half) / (1 - g))};
    return r;
}

static bool all_positive(const double *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!(x[i] > 0))
            return false;
    return true;
}

typedef struct {
    long double mean, var;
} log_moments;

static log_moments logs_of(const double *x, size_t n, double reference)
{
    log_moments m = {0, 0};
    for (size_t i = 0; i < n; i++)
        m.mean += tp_log_quotient(x[i], reference);
    m.mean /= (long double)n;
    for (size_t i = 0; i < n; i++) {
        long double d = tp_log_quotient(x[i], reference) - m.mean;
        m.var += d * d;
    }
    m.var = n < 2 ? NAN : m.var / ((long double)n - 1);
    return m;
}

tp_status tp_ratio_geomeans(const double *x, size_t nx, const double *y, size_t ny, double level,
                            tp_ratio_geomeans_result *ret, tp_error *err)
{
    tp_ratio_geomeans_result r = {.ratio = NAN, .t = NAN, .df = NAN, .p_two = NAN};
    TP_TRY(tp_check_finite("x", x, nx, err));
    TP_TRY(tp_check_finite("y", y, ny, err));
    if (nx == 0 || ny == 0 || !all_positive(x, nx) || !all_positive(y, ny)) {
        r.why = r.why_test = nx && ny ? "not every value is positive" : "a sample is empty";
        r.ci = tp_interval_undefined(r.why);
        *ret = r;
        return TP_OK;
    }
    log_moments a = logs_of(x, nx, x[0]), b = logs_of(y, ny, x[0]);
    long double diff = a.mean - b.mean;
    r.ratio = (double)expl(diff);
    long double vx = a.var / (long double)nx, vy = b.var / (long double)ny, sum = vx + vy;
    if (nx < 2 || ny < 2 || !(sum > 0)) {
        r.why_test = nx < 2 || ny < 2 ? "each sample needs at least two values"
                                      : "no variance: both samples are constant";
        r.ci = tp_interval_undefined(r.why_test);
        *ret = r;
        return TP_OK;
    }
    long double share = vx / sum, rest = vy / sum;
    long double df =
        1 / (share * share / ((long double)nx - 1) + rest * rest / ((long double)ny - 1));
    long double se = sqrtl(sum), half = se * tp_t_isf_long(0.5L * (1 - (long double)level), df);
    r.t = (double)(diff / se);
    r.df = (double)df;
    r.p_two = tp_t_two_sided(r.t, r.df);
    r.ci = (tp_interval){.lo = (double)expl(diff - half), .hi = (double)expl(diff + half)};
    *ret = r;
    return TP_OK;
}

static void log_ratio_intervals(double *d, size_t n, double level, tp_log_ratio_result *r)
{
    tp_moments m = tp_moments_of(d, n, 0);
    long double mean = tp_moments_mean(&m);
    r->geomean_ratio = (double)expl(mean);
    if (n < 2)
        r->t_ci = tp_interval_undefined("needs at least two pairs");
    else if (!(m.s2.hi > 0))
        r->t_ci = tp_interval_undefined("no variance: every ratio is the same");
    else {
        long double se = sqrtl(tp_moments_var(&m) / (long double)n);
        long double half = se * tp_t_isf_long(0.5L * (1 - (long double)level), (long double)n - 1);
        r->p_two = tp_t_two_sided((double)(mean / se), (double)(n - 1));
        r->t_ci = (tp_interval){.lo = (double)expl(mean - half), .hi = (double)expl(mean + half)};
    }
    tp_sort(d, n);
    r->median_log_ratio = tp_median_sorted(d, n);
    r->ratio = exp(r->median_log_ratio);
    tp_median_interval ci = tp_median_interval_sorted(d, n, level);
    r->sign_coverage = ci.coverage;
    r->sign_ci =
        ci.why ? tp_interval_undefined(ci.why) : (tp_interval){.lo = exp(ci.lo), .hi = exp(ci.hi)};
}

tp_status tp_log_ratio(const double *x, const double *y, size_t n, double level,
                       tp_log_ratio_result *ret, tp_error *err)
{
    tp_log_ratio_result r = {.n = n,
                             .median_log_ratio = NAN,
                             .ratio = NAN,
                             .geomean_ratio = NAN,
                             .sign_coverage = NAN,
                             .p_two = NAN};
    TP_TRY(tp_check_finite("x", x, n, err));
    TP_TRY(tp_check_finite("y", y, n, err));
    if (n == 0 || !all_positive(x, n) || !all_positive(y, n)) {
        r.why = n ? "not every value is positive" : "there are no pairs";
        r.sign_ci = r.t_ci = tp_interval_undefined(r.why);
        *ret = r;
        return TP_OK;
    }
    TP_FREED double *d = tp_scratch(n);
    for (size_t i = 0; i < n; i++)
        d[i] = (double)tp_log_quotient(x[i], y[i]);
    log_ratio_intervals(d, n, level, &r);
    *ret = r;
    return TP_OK;
}
