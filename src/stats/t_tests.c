/* t_tests.c - Student's, Welch's and paired t tests, TOST, the F test of variances, Pearson's
 * correlation. */
#include <math.h>

#include "stats/moments.h"
#include "stats/special.h"
#include "stats/special_internal.h"
#include "stats/two_sample.h"

static tp_t_test undefined(double diff, const char *why)
{
    return (tp_t_test){.t = NAN,
                       .df = NAN,
                       .diff = diff,
                       .se = NAN,
                       .p = tp_p_undefined(),
                       .ci = tp_interval_undefined(why),
                       .why = why};
}

static tp_t_test finish(long double diff, long double se, long double df, double level)
{
    if (!(se > 0))
        return undefined((double)diff, "no variance: all values (or differences) are equal");
    long double t = diff / se;
    long double half = se * tp_t_isf_long(0.5L * (1 - (long double)level), df);
    return (tp_t_test){.t = (double)t,
                       .df = (double)df,
                       .diff = (double)diff,
                       .se = (double)se,
                       .p = {tp_t_two_sided((double)t, (double)df), tp_t_sf((double)t, (double)df),
                             tp_t_cdf((double)t, (double)df)},
                       .ci = {.lo = (double)(diff - half), .hi = (double)(diff + half)}};
}

typedef struct {
    tp_moments x, y;
    long double diff;
} both;

static both moments_of_both(const double *x, size_t nx, const double *y, size_t ny)
{
    int e = tp_scale_exponent_two(x, nx, y, ny);
    both b = {.x = tp_moments_of(x, nx, e), .y = tp_moments_of(y, ny, e)};
    b.diff = tp_moments_difference(&b.x, &b.y);
    return b;
}

tp_t_test tp_student(const double *x, size_t nx, const double *y, size_t ny, double level)
{
    if (nx == 0 || ny == 0)
        return undefined(NAN, "a sample is empty");
    both b = moments_of_both(x, nx, y, ny);
    if (nx + ny < 3)
        return undefined((double)b.diff, "needs at least three values in all");
    long double df = (long double)(nx + ny) - 2;
    long double pooled = (tp_moments_sum_of_squares(&b.x) + tp_moments_sum_of_squares(&b.y)) / df;
    long double se = sqrtl(pooled * (1 / (long double)nx + 1 / (long double)ny));
    return finish(b.diff, se, df, level);
}

static tp_t_test welch(long double diff, long double vx, long double nx, long double vy,
                       long double ny, double level)
{
    long double a = vx / nx, b = vy / ny, sum = a + b;
    if (!(sum > 0))
        return undefined((double)diff, "no variance: both samples are constant");
    /* Shares instead of squares of variances, which would overflow. */
    long double share = a / sum, rest = b / sum;
    long double df = 1 / (share * share / (nx - 1) + rest * rest / (ny - 1));
    return finish(diff, sqrtl(sum), df, level);
}

tp_t_test tp_welch(const double *x, size_t nx, const double *y, size_t ny, double level)
{
    if (nx == 0 || ny == 0)
        return undefined(NAN, "a sample is empty");
    both b = moments_of_both(x, nx, y, ny);
    if (nx < 2 || ny < 2)
        return undefined((double)b.diff, "each sample needs at least two values");
    return welch(b.diff, tp_moments_var(&b.x), (long double)nx, tp_moments_var(&b.y),
                 (long double)ny, level);
}

tp_t_test tp_paired_t(const double *x, const double *y, size_t n, double level)
{
    if (n == 0)
        return undefined(NAN, "there are no pairs");
    tp_moments m = tp_moments_of_differences(x, y, n, tp_scale_exponent_two(x, n, y, n));
    long double diff = tp_moments_mean(&m);
    if (n < 2)
        return undefined((double)diff, "needs at least two pairs");
    return finish(diff, sqrtl(tp_moments_var(&m) / (long double)n), (long double)n - 1, level);
}

tp_t_test tp_one_sample_t(const double *x, size_t n, double mean, double level)
{
    if (n == 0)
        return undefined(NAN, "there are no values");
    tp_moments m = tp_moments_of(x, n, tp_scale_exponent_two(x, n, &mean, 1));
    tp_two shift = tp_two_of(ldexp(mean, -m.exponent));
    long double diff = ldexpl(tp_two_long(tp_two_sub(m.mean, shift)), m.exponent);
    if (n < 2)
        return undefined((double)diff, "needs at least two values");
    return finish(diff, sqrtl(tp_moments_var(&m) / (long double)n), (long double)n - 1, level);
}

tp_tost_result tp_tost(const tp_t_test *test, double margin)
{
    if (test->why || !(margin > 0))
        return (tp_tost_result){.p = NAN,
                                .p_lower = NAN,
                                .p_upper = NAN,
                                .why = test->why ? test->why : "the margin is not positive"};
    tp_tost_result r = {.p_lower = tp_t_sf((test->diff + margin) / test->se, test->df),
                        .p_upper = tp_t_cdf((test->diff - margin) / test->se, test->df)};
    r.p = fmax(r.p_lower, r.p_upper);
    return r;
}

tp_variance_ratio_result tp_variance_ratio(const double *x, size_t nx, const double *y, size_t ny)
{
    if (nx < 2 || ny < 2)
        return (tp_variance_ratio_result){NAN, NAN, "each sample needs at least two values"};
    both b = moments_of_both(x, nx, y, ny);
    long double vx = tp_moments_var(&b.x), vy = tp_moments_var(&b.y);
    if (!(vx > 0 && vy > 0))
        return (tp_variance_ratio_result){NAN, NAN, "a sample is constant"};
    double f = (double)(vx / vy), df1 = (double)nx - 1, df2 = (double)ny - 1;
    double p = 2 * fmin(tp_f_sf(f, df1, df2), tp_f_cdf(f, df1, df2));
    return (tp_variance_ratio_result){f, fmin(p, 1), NULL};
}

double tp_pearson(const double *x, const double *y, size_t n)
{
    if (n < 2)
        return NAN;
    int ex = tp_scale_exponent(x, n), ey = tp_scale_exponent(y, n);
    tp_moments mx = tp_moments_of(x, n, ex), my = tp_moments_of(y, n, ey);
    if (!(mx.s2.hi > 0 && my.s2.hi > 0))
        return NAN;
    tp_two sum = {0, 0};
    for (size_t i = 0; i < n; i++) {
        tp_two dx = tp_two_add_d(tp_two_negate(mx.mean), ldexp(x[i], -ex));
        tp_two dy = tp_two_add_d(tp_two_negate(my.mean), ldexp(y[i], -ey));
        sum = tp_two_add(sum, tp_two_mul(dx, dy));
    }
    double r = tp_two_value(tp_two_div(sum, tp_two_mul(tp_two_sqrt(mx.s2), tp_two_sqrt(my.s2))));
    return fmax(-1, fmin(1, r));
}
