/* trend.h - does a series rise or fall, and how fast?
 *
 * Mann-Kendall asks with ranks, Theil-Sen answers with the median of all pair slopes;
 * both shrug off outliers.  Autocorrelation makes the plain test too eager: the Hamed-Rao
 * (1998) figures inflate the variance by the significant autocorrelations of the ranks
 * of the detrended series.  A leak: p_increasing < alpha AND lo > the slope that matters.
 * `x` may be NULL everywhere: 0, 1, 2, ... */
#ifndef TP_STATS_TREND_H
#define TP_STATS_TREND_H

#include "stats/common.h"

typedef struct {
    size_t n;
    double s, var_s; /* S, and its variance under no trend, tie-corrected */
    double z;        /* (S - sgn S) / sqrt var */
    double p_two, p_increasing;
    double tau_a, tau_b;
    const char *why, *why_tau_b;
    /* Hamed-Rao: var = var_s times the correction n / n* */
    double correction, corrected_z, corrected_p_two, corrected_p_increasing;
    const char *why_corrected;
} tp_mann_kendall_result;
/* Of the larger variance, as the interval of tp_trend_of() is: a correction below 1 is not used. */
double tp_mann_kendall_p(const tp_mann_kendall_result *m);
enum { TP_MANN_KENDALL_LAGS = 1000 }; /* autocorrelations looked at */
TP_CHECKED tp_status tp_mann_kendall(const double *x, const double *y, size_t n, double alpha,
                                     tp_mann_kendall_result *ret, tp_error *err);

typedef struct {
    size_t n_pairs; /* slopes of pairs with different x */
    double slope;
    double intercept_separate; /* median y - slope median x */
    double intercept_joint;    /* median (y - slope x) */
    size_t rank_lo, rank_hi;   /* of the interval's ends among the slopes, from 0 */
    double lo, hi;
    /* by tp_trend_of(): of the variance under them (NaN: not known), and the ends where it is above
     * 1, else those */
    double correction, corrected_lo, corrected_hi;
    size_t n_counted; /* passes that counted the slopes up to a value: the cost of a search */
    const char *why, *why_ci;
} tp_theil_sen_result;
TP_CHECKED tp_status tp_theil_sen(const double *x, const double *y, size_t n, double level,
                                  tp_theil_sen_result *ret, tp_error *err);

/* Both, the slope searched for once, with the interval that the corrected variance gives. */
TP_CHECKED tp_status tp_trend_of(const double *x, const double *y, size_t n, double level,
                                 tp_mann_kendall_result *ret_test, tp_theil_sen_result *ret_slope,
                                 tp_error *err);

/* Ordinary least squares. */
typedef struct {
    double slope, intercept, se_slope, t, df, p_two, r2, residual_sd;
    tp_interval ci; /* of the slope */
    const char *why, *why_test;
} tp_line;
tp_line tp_fit_line(const double *x, const double *y, size_t n, double level);

/* Medians of `n_blocks` consecutive blocks, as equal in length as n allows: a shorter
 * series with less autocorrelation. */
TP_CHECKED tp_status tp_block_medians(const double *y, size_t n, size_t n_blocks, double *ret,
                                      tp_error *err);

#endif
