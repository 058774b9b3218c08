/* special.h - the distributions that tests and intervals are made of.
 *
 * Relative accuracy about 1e-14 in both tails.  `cdf` is the lower tail, `sf` the upper
 * one (each computed for itself, so small values keep their digits), `quantile` inverts
 * the cdf and `isf` the sf.  An argument outside the domain gives NaN.
 *
 * Method: the incomplete beta and gamma functions by continued fraction or series, with
 * the prefactor from Stirling errors so that large parameters do not cancel (Loader
 * 2000); quantiles by safeguarded Newton steps; the noncentral t by the trapezoidal rule
 * over log s in  P(T <= t) = integral Phi(t s - ncp) dP(s),  s^2 = chi2(nu)/nu. */
#ifndef TP_STATS_SPECIAL_H
#define TP_STATS_SPECIAL_H

#include <stdint.h>

double tp_normal_cdf(double z);
double tp_normal_sf(double z);
double tp_normal_quantile(double p);
double tp_normal_isf(double p);

double tp_t_cdf(double t, double df);
double tp_t_sf(double t, double df);
double tp_t_two_sided(double t, double df); /* P(|T| >= |t|) */
double tp_t_quantile(double p, double df);
double tp_t_isf(double p, double df);

double tp_f_cdf(double f, double df1, double df2);
double tp_f_sf(double f, double df1, double df2);

double tp_chi2_sf(double x, double df);
double tp_chi2_quantile(double p, double df);

/* Inverts the regularized incomplete beta function I_x(a, b). */
double tp_beta_quantile(double p, double a, double b);

/* P(X <= k) and P(X >= k) of Bin(n, p); k outside 0..n is allowed. */
double tp_binomial_cdf(int64_t k, int64_t n, double p);
double tp_binomial_sf(int64_t k, int64_t n, double p);

/* Noncentral t: P(T <= t) and P(T > t). */
double tp_nct_cdf(double t, double df, double ncp);
double tp_nct_sf(double t, double df, double ncp);

double tp_log_beta(double a, double b); /* ln B(a, b) */

#endif
