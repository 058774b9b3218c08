/* descriptive.c - location, spread, shape and intervals of one sample. */
#include "stats/descriptive.h"

#include <math.h>

#include "stats/moments.h"
#include "stats/order.h"
#include "stats/special.h"
#include "stats/special_internal.h"

static const char *const one_value = "needs at least two values";
static const char *const all_equal = "all values are equal";

double tp_mean(const double *x, size_t n)
{
    if (n == 0)
        return NAN;
    int e = tp_scale_exponent(x, n);
    tp_two sum = {0, 0};
    for (size_t i = 0; i < n; i++)
        sum = tp_two_add_d(sum, e ? ldexp(x[i], -e) : x[i]);
    return ldexp(tp_two_value(tp_two_div_d(sum, (double)n)), e);
}

double tp_variance(const double *x, size_t n)
{
    if (n < 2)
        return NAN;
    tp_moments m = tp_moments_of(x, n, tp_scale_exponent(x, n));
    return (double)tp_moments_var(&m);
}

double tp_sd(const double *x, size_t n)
{
    if (n < 2)
        return NAN;
    tp_moments m = tp_moments_of(x, n, tp_scale_exponent(x, n));
    return (double)sqrtl(tp_moments_var(&m));
}

double tp_lag1(const double *x, size_t n)
{
    tp_moments m = tp_moments_of(x, n, tp_scale_exponent(x, n));
    if (n < 2 || !(m.s2.hi > 0))
        return NAN;
    return tp_two_value(tp_two_div(tp_moments_lagged(x, n, &m), m.s2));
}

double tp_effective_n(size_t n, double lag1)
{
    if (isnan(lag1) || n == 0)
        return NAN;
    return fmax(1, (double)n * (1 - lag1) / (1 + lag1));
}

double tp_lag1_unbiased(double lag1, size_t n, int terms)
{
    return lag1 + (terms + (terms + 2) * lag1) / (double)n;
}

void tp_batch_means(const double *x, size_t n, size_t n_batches, double *ret)
{
    size_t length = n / n_batches;
    for (size_t i = 0; i < n_batches; i++)
        ret[i] = tp_mean(x + i * length, length);
}

static tp_interval interval_long(long double center, long double half)
{
    return (tp_interval){.lo = (double)(center - half), .hi = (double)(center + half)};
}

tp_interval tp_skew_interval(const tp_description *d, double level)
{
    if (d->t_ci.why || !(level > 0 && level < 1))
        return d->t_ci;
    double z = tp_normal_isf(0.5 * (1 - level)), n = (double)d->n;
    double skew = isnan(d->skew_G1) ? 0 : d->skew_G1;
    double shift = skew * (2 * z * z + 1) / (6 * sqrt(n));
    return (tp_interval){.lo = d->mean + d->sem * (shift - z),
                         .hi = d->mean + d->sem * (shift + z)};
}

tp_interval tp_t_interval(double mean, double sem, double df, double level)
{
    if (!(df > 0) || isnan(mean) || isnan(sem) || !(level > 0 && level < 1))
        return tp_interval_undefined(one_value);
    return interval_long(mean,
                         (long double)sem * tp_t_isf_long(0.5L * (1 - (long double)level), df));
}

static double trimmed_mean_sorted(const double *sorted, size_t n, size_t cut)
{
    return n > 2 * cut ? tp_mean(sorted + cut, n - 2 * cut) : NAN;
}

static void describe_order(const double *sorted, size_t n, tp_description *d)
{
    tp_two q1 = tp_quantile_exact(sorted, n, 0.25), q3 = tp_quantile_exact(sorted, n, 0.75);
    size_t cut = n / 10;
    d->min = sorted[0];
    d->max = sorted[n - 1];
    d->range = d->max - d->min;
    d->median = tp_median_sorted(sorted, n);
    d->q1 = tp_two_value(q1);
    d->q3 = tp_two_value(q3);
    d->iqr = tp_two_value(tp_two_sub(q3, q1));
    d->p05 = tp_quantile_sorted(sorted, n, 0.05);
    d->p95 = tp_quantile_sorted(sorted, n, 0.95);
    d->p99 = tp_quantile_sorted(sorted, n, 0.99);
    d->trimmed_mean_10 = trimmed_mean_sorted(sorted, n, cut);
    d->median_ci = tp_median_interval_sorted(sorted, n, d->level);
}

static void describe_spread(const tp_moments *m, tp_description *d)
{
    long double n = (long double)m->n, mean = tp_moments_mean(m);
    long double squares = tp_moments_sum_of_squares(m);
    d->sum = (double)(mean * n);
    d->mean = (double)mean;
    d->sd_pop = (double)sqrtl(squares / n);
    if (m->n < 2) {
        d->why_spread = d->why_cv = one_value;
        d->t_ci = tp_interval_undefined(one_value);
        return;
    }
    long double sd = sqrtl(squares / (n - 1)), sem = sd / sqrtl(n);
    d->var = (double)(squares / (n - 1));
    d->sd = (double)sd;
    d->sem = (double)sem;
    d->t_ci = interval_long(mean, sem * tp_t_isf_long(0.5L * (1 - (long double)d->level), n - 1));
    if (mean == 0)
        d->why_cv = "the mean is 0";
    else
        d->cv = (double)(sd / mean);
}

static void describe_shape(const double *x, const tp_moments *m, tp_description *d)
{
    long double n = (long double)m->n;
    if (m->n < 2 || !(m->s2.hi > 0)) {
        d->why_shape = d->why_G1 = d->why_G2 = m->n < 2 ? one_value : all_equal;
        return;
    }
    long double m2 = tp_two_long(m->s2) / n;
    long double g1 = tp_two_long(m->s3) / n / (m2 * sqrtl(m2));
    long double g2 = tp_two_long(m->s4) / n / (m2 * m2) - 3;
    d->skew_g1 = (double)g1;
    d->kurt_g2 = (double)g2;
    d->lag1 = tp_two_value(tp_two_div(tp_moments_lagged(x, m->n, m), m->s2));
    d->n_eff = tp_effective_n(m->n, d->lag1);
    if (m->n < 3)
        d->why_G1 = "needs at least three values";
    else
        d->skew_G1 = (double)(g1 * sqrtl(n * (n - 1)) / (n - 2));
    if (m->n < 4)
        d->why_G2 = "needs at least four values";
    else
        d->kurt_G2 = (double)((n - 1) / ((n - 2) * (n - 3)) * ((n + 1) * g2 + 6));
}

/* Logarithms relative to the first value keep their digits when all are close. */
static void describe_logs(const double *x, size_t n, tp_description *d)
{
    if (!(d->min > 0)) {
        d->why_positive = d->why_geo_sd = "not every value is positive";
        return;
    }
    long double sum = 0, inverse = 0, squares = 0;
    for (size_t i = 0; i < n; i++) {
        sum += tp_log_quotient(x[i], x[0]);
        inverse += (long double)x[0] / (long double)x[i];
    }
    long double mean = sum / (long double)n;
    d->geomean = (double)(expl(mean) * (long double)x[0]);
    d->harmean = (double)((long double)n / inverse * (long double)x[0]);
    if (n < 2) {
        d->why_geo_sd = one_value;
        return;
    }
    for (size_t i = 0; i < n; i++) {
        long double e = tp_log_quotient(x[i], x[0]) - mean;
        squares += e * e;
    }
    d->geo_sd = (double)expl(sqrtl(squares / ((long double)n - 1)));
}

static tp_description blank(size_t n, double level)
{
    const double u = NAN;
    return (tp_description){.n = n,
                            .level = level,
                            .sum = u,
                            .mean = u,
                            .min = u,
                            .max = u,
                            .range = u,
                            .median = u,
                            .q1 = u,
                            .q3 = u,
                            .iqr = u,
                            .p05 = u,
                            .p95 = u,
                            .p99 = u,
                            .var = u,
                            .sd = u,
                            .sem = u,
                            .cv = u,
                            .sd_pop = u,
                            .mad = u,
                            .mad_sigma = u,
                            .skew_g1 = u,
                            .kurt_g2 = u,
                            .skew_G1 = u,
                            .kurt_G2 = u,
                            .trimmed_mean_10 = u,
                            .lag1 = u,
                            .n_eff = u,
                            .geomean = u,
                            .harmean = u,
                            .geo_sd = u};
}

tp_status tp_describe(const double *x, size_t n, double level, tp_description *ret, tp_error *err)
{
    tp_description d = blank(n, level);
    if (!(level > 0 && level < 1))
        return tp_fail(err, TP_ERR_ARG, "a level of %g is not between 0 and 1", level);
    TP_TRY(tp_check_finite("x", x, n, err));
    if (n == 0) {
        static const char *const none = "there are no values";
        d.sum = 0;
        d.why_spread = d.why_cv = d.why_shape = d.why_G1 = d.why_G2 = none;
        d.why_positive = d.why_geo_sd = none;
        d.t_ci = tp_interval_undefined(none);
        d.median_ci = (tp_median_interval){.lo = NAN, .hi = NAN, .coverage = NAN, .why = none};
        *ret = d;
        return TP_OK;
    }
    TP_FREED double *sorted = tp_sorted_copy(x, n);
    tp_moments m = tp_moments_all(x, n, tp_scale_exponent(x, n));
    describe_order(sorted, n, &d);
    describe_spread(&m, &d);
    describe_shape(x, &m, &d);
    describe_logs(x, n, &d);
    d.mad = tp_mad_in_place(sorted, n);
    d.mad_sigma = 1.482602218505602 * d.mad;
    *ret = d;
    return TP_OK;
}
