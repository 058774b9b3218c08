/* descriptive.h - one sample in numbers.
 *
 * Sums are exact to the last digit: twofold (double-double) arithmetic on values scaled
 * by a power of two, so neither a large common offset nor values near 1e200 or 1e-300
 * cost digits.  sd has the divisor n - 1 everywhere; sd_pop (divisor n) is apart.
 * Quantiles are type 7 of Hyndman and Fan: h = (n - 1) p, linear in between. */
#ifndef TP_STATS_DESCRIPTIVE_H
#define TP_STATS_DESCRIPTIVE_H

#include "stats/common.h"

/* The distribution-free interval of the median: order statistics x_(k) .. x_(n+1-k),
 * counted from 1, with the largest k whose coverage is at least the level:
 * P(Bin(n, 1/2) <= k - 1) <= (1 - level) / 2.  Coverage = 1 - 2 P(Bin <= k - 1). */
typedef struct {
    size_t k_lo, k_hi; /* 0 when undefined (95 % needs n >= 6) */
    double lo, hi, coverage;
    const char *why;
} tp_median_interval;

typedef struct {
    size_t n;
    double level; /* of the intervals */
    double sum, mean, min, max, range;
    double median, q1, q3, iqr, p05, p95, p99;
    double var, sd, sem, cv;         /* n - 1; sem = sd / sqrt n; cv = sd / mean */
    double sd_pop;                   /* divisor n */
    double mad, mad_sigma;           /* median |x - median|; times 1.4826 it estimates sd */
    double skew_g1, kurt_g2;         /* m3 / m2^1.5 and m4 / m2^2 - 3 */
    double skew_G1, kurt_G2;         /* their adjusted forms; n >= 3 and n >= 4 */
    double trimmed_mean_10;          /* without floor(n / 10) values at each end */
    double lag1;                     /* sum (x_i - m)(x_{i+1} - m) / sum (x_i - m)^2 */
    double n_eff;                    /* n (1 - lag1) / (1 + lag1), at least 1 */
    double geomean, harmean, geo_sd; /* only when every value is positive */
    tp_interval t_ci;                /* of the mean: mean -+ t(n - 1) sem */
    tp_median_interval median_ci;

    const char *why_spread; /* of var, sd, sem, cv, t_ci */
    const char *why_cv;     /* as why_spread, or a mean of 0 */
    const char *why_shape;  /* of skew_g1, kurt_g2, lag1, n_eff */
    const char *why_G1, *why_G2;
    const char *why_positive; /* of geomean, harmean */
    const char *why_geo_sd;
} tp_description;

/* n = 0 describes nothing: all NaN.  `level` is 0.95 and the like. */
TP_CHECKED tp_status tp_describe(const double *x, size_t n, double level, tp_description *ret,
                                 tp_error *err);

/* Single numbers, without allocation; NaN when undefined. */
double tp_mean(const double *x, size_t n);
double tp_variance(const double *x, size_t n); /* n - 1; infinite when it overflows */
double tp_sd(const double *x, size_t n);       /* fits even where the variance does not */
double tp_lag1(const double *x, size_t n);
double tp_effective_n(size_t n, double lag1);
/* The lag-1 autocorrelation of what `terms` coefficients of least squares leave of n values comes
 * out too small by (terms + (terms + 2) r) / n: 1, a mean; 2, a line (Marriott and Pope 1954). */
double tp_lag1_unbiased(double lag1, size_t n, int terms);

/* Sorted (ascending) arrays. */
void tp_sort(double *x, size_t n);
double tp_quantile_sorted(const double *sorted, size_t n, double p);
double tp_median_sorted(const double *sorted, size_t n);
tp_median_interval tp_median_interval_sorted(const double *sorted, size_t n, double level);

TP_CHECKED tp_status tp_median(const double *x, size_t n, double *ret, tp_error *err);
/* Median of |x - median(x)|. */
TP_CHECKED tp_status tp_mad(const double *x, size_t n, double *ret, tp_error *err);

/* The k of the interval above, 0 when there is none, and its exact coverage.  For a
 * one-sided bound at level L ask for the two-sided level 2 L - 1. */
size_t tp_median_interval_rank(size_t n, double level, double *ret_coverage);

/* Ranks 1..n, tied values sharing their mean rank; ret_ties = sum over ties of t^3 - t
 * (may be NULL). */
TP_CHECKED tp_status tp_midranks(const double *x, size_t n, double *ret_ranks, double *ret_ties,
                                 tp_error *err);

/* Means of `n_batches` consecutive batches of equal length (a remainder at the end is
 * left out): what makes an interval of an autocorrelated series honest.  ret has
 * n_batches doubles; n >= n_batches >= 1. */
void tp_batch_means(const double *x, size_t n, size_t n_batches, double *ret);

/* mean -+ t_{df} sem at `level`. */
tp_interval tp_t_interval(double mean, double sem, double df, double level);
/* Of the mean, corrected for skewness to second order: mean + sem (+-z + G1 (2 z^2 + 1) /
 * (6 sqrt n)), to which the BCa interval tends with many values (Hall 1988, Annals of Statistics
 * 16, section 3; Efron 1987): the difference is of order sem / n. */
tp_interval tp_skew_interval(const tp_description *d, double level);

#endif
