/* two_sample.h - is x different from y, and how sure is that?
 *
 * Everything is x minus y.  Without a reason to do otherwise use tp_welch() for
 * independent samples and tp_paired_t() with tp_wilcoxon() for pairs (same seed, same
 * prompt, same round): pairing removes what both sides share.  Sizes of effects with
 * their intervals are in effect.h, ratios in ratio.h. */
#ifndef TP_STATS_TWO_SAMPLE_H
#define TP_STATS_TWO_SAMPLE_H

#include "stats/common.h"

typedef struct {
    double t, df, diff, se;
    tp_p_values p;
    tp_interval ci; /* of the difference */
    const char *why;
} tp_t_test;

/* Equal variances: s_p^2 = ((n1-1)v1 + (n2-1)v2) / (n1+n2-2), df = n1 + n2 - 2. */
tp_t_test tp_student(const double *x, size_t nx, const double *y, size_t ny, double level);
/* Unequal variances: se^2 = v1/n1 + v2/n2 with the df of Welch and Satterthwaite. */
tp_t_test tp_welch(const double *x, size_t nx, const double *y, size_t ny, double level);
/* Student's t on the n differences x[i] - y[i]. */
tp_t_test tp_paired_t(const double *x, const double *y, size_t n, double level);
tp_t_test tp_one_sample_t(const double *x, size_t n, double mean, double level);

/* Two one-sided tests that |difference| < margin: p = the larger of the two; the samples
 * are equivalent at alpha when p < alpha, that is, when the 1 - 2 alpha interval lies
 * inside -+ margin. */
typedef struct {
    double p, p_lower, p_upper; /* against -margin and against +margin */
    const char *why;
} tp_tost_result;
tp_tost_result tp_tost(const tp_t_test *test, double margin);

/* One asymptotic version of a rank test. */
typedef struct {
    double z;
    tp_p_values p;
} tp_z_test;

typedef struct {
    size_t k; /* rank of the order statistic used, from 1; 0 when undefined */
    double lo, hi, coverage;
    const char *why;
} tp_rank_interval;

/* Mann-Whitney: U1 = pairs with x > y, ties half.  Exact without ties while n1 n2 <=
 * 2500; the normal forms carry the tie-corrected variance, `corrected` a continuity
 * correction of 0.5 as well. */
typedef struct {
    double u1, u2;
    bool has_ties, has_exact;
    tp_z_test plain, corrected;
    tp_p_values exact;
    tp_p_values p; /* exact where there is one, else corrected */
    double cliffs_delta, a12;
    double shift;                     /* Hodges-Lehmann: the median of all x_i - y_j */
    tp_rank_interval shift_ci;        /* exact */
    tp_interval shift_ci_approximate; /* normal quantile of U: for ties and large samples */
    const char *why;                  /* z and p: all values are equal */
    const char *why_exact;
} tp_mann_whitney_result;
TP_CHECKED tp_status tp_mann_whitney(const double *x, size_t nx, const double *y, size_t ny,
                                     double level, tp_mann_whitney_result *ret, tp_error *err);

/* Wilcoxon's signed ranks on differences d: zeros dropped, midranks of |d|; the
 * pseudomedian and its intervals keep the zeros. */
typedef struct {
    size_t n, n_nonzero;
    double w_plus, w_minus;
    bool has_ties, has_exact;
    double rank_biserial; /* (W+ - W-) / (W+ + W-) */
    tp_z_test plain, corrected;
    tp_p_values exact, p;
    double pseudomedian;                     /* Hodges-Lehmann: the median of the Walsh averages */
    tp_rank_interval pseudomedian_ci;        /* exact */
    tp_interval pseudomedian_ci_approximate; /* normal quantile of W+ */
    const char *why;                         /* every difference is 0 */
    const char *why_exact;
} tp_wilcoxon_result;
TP_CHECKED tp_status tp_wilcoxon(const double *d, size_t n, double level, tp_wilcoxon_result *ret,
                                 tp_error *err);

/* d rounded to `digits` decimals, so that differences of decimal inputs tie as the
 * decimals do. */
void tp_round_decimals(double *d, size_t n, int digits);

/* Exact binomial test that positive and negative differences are equally likely. */
typedef struct {
    size_t n_positive, n_negative, n_zero;
    tp_p_values p;
    const char *why;
} tp_sign_result;
tp_sign_result tp_sign_test(const double *d, size_t n);

/* Permutation tests: of the difference of means over all C(n1+n2, n1) assignments
 * (exact up to 20,000 of them) and of the sum of differences over all 2^n signs (exact
 * up to 16,384).  Beyond that Monte Carlo from a splitmix64 stream with
 * p = (hits + 1) / (n_perm + 1), which cannot be 0; with n_monte_carlo = 0 undefined.
 * An arrangement that ties with the data counts: sums are compared exactly. */
typedef struct {
    uint64_t n_perm, count_two; /* arrangements looked at, and those at least as extreme */
    bool is_exact;
    tp_p_values p;
    const char *why;
} tp_permutation_result;
enum { TP_PERMUTATION_EXACT_MAX = 20000, TP_SIGNFLIP_EXACT_MAX = 16384 };
TP_CHECKED tp_status tp_permutation_test(const double *x, size_t nx, const double *y, size_t ny,
                                         uint64_t n_monte_carlo, uint64_t seed,
                                         tp_permutation_result *ret, tp_error *err);
TP_CHECKED tp_status tp_signflip_test(const double *d, size_t n, uint64_t n_monte_carlo,
                                      uint64_t seed, tp_permutation_result *ret, tp_error *err);

/* F = v1 / v2, and twice the smaller tail. */
typedef struct {
    double f, p_two;
    const char *why;
} tp_variance_ratio_result;
tp_variance_ratio_result tp_variance_ratio(const double *x, size_t nx, const double *y, size_t ny);

double tp_pearson(const double *x, const double *y, size_t n); /* NaN when one is constant */

#endif
