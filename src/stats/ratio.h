/* ratio.h - how many times: ratios of x to y with intervals.
 *
 * Ratios are symmetric under exchange where percentages are not: 2x slower and 2x faster
 * are 2 and 1/2.  For paired rounds use tp_log_ratio(), the estimate of the benchmark
 * gate: its interval needs no distribution at all. */
#ifndef TP_STATS_RATIO_H
#define TP_STATS_RATIO_H

#include "stats/descriptive.h"

/* Ratio of means with Fieller's interval.  g = t^2 v2 / (n2 m2^2); with g >= 1 the mean
 * of y cannot be told from 0 and the interval is unbounded (undefined, with the reason). */
typedef struct {
    double ratio, g, df;
    tp_interval ci;
    const char *why;
} tp_ratio_means_result;
tp_ratio_means_result tp_ratio_means(const double *x, size_t nx, const double *y, size_t ny,
                                     double level);

/* Ratio of geometric means: Welch on logarithms; every value must be positive. */
typedef struct {
    double ratio, t, df, p_two;
    tp_interval ci;
    const char *why;      /* of all */
    const char *why_test; /* of t, df, p and ci */
} tp_ratio_geomeans_result;
TP_CHECKED tp_status tp_ratio_geomeans(const double *x, size_t nx, const double *y, size_t ny,
                                       double level, tp_ratio_geomeans_result *ret, tp_error *err);

/* Pairs: d_i = ln(x_i / y_i). */
typedef struct {
    size_t n;
    double median_log_ratio, ratio; /* exp of the median */
    double geomean_ratio;           /* exp of the mean */
    tp_interval sign_ci;            /* of the ratio, from order statistics of d: exact */
    double sign_coverage;
    tp_interval t_ci; /* of the geometric mean ratio, from t on d */
    double p_two;     /* of that t: NaN where t_ci is undefined */
    const char *why;
} tp_log_ratio_result;
TP_CHECKED tp_status tp_log_ratio(const double *x, const double *y, size_t n, double level,
                                  tp_log_ratio_result *ret, tp_error *err);

#endif
