/* special_internal.h - the distributions in long double, for the other files here.
 *
 * Interval ends are differences (mean - t sem): they keep all digits of a double only
 * when their parts carry a few more. */
#ifndef TP_STATS_SPECIAL_INTERNAL_H
#define TP_STATS_SPECIAL_INTERNAL_H

#include <stdbool.h>

/* Lower and upper tail, with their logarithms, which do not underflow. */
typedef struct {
    long double lower, upper, log_lower, log_upper;
    long double log_density; /* with respect to logit x (beta) or ln x (gamma) */
} tp_tails;

/* x + y = 1 given separately, so that either may be tiny. */
tp_tails tp_beta_tails(long double x, long double y, long double a, long double b);
tp_tails tp_gamma_tails(long double x, long double a);

/* logit of the point with lower tail p (or upper tail p). */

/* lgamma(z) - ((z - 1/2) ln z - z + ln(2 pi) / 2) */
long double tp_stirling_error(long double z);

long double tp_normal_sf_long(long double z);
long double tp_normal_isf_long(long double p);
long double tp_t_isf_long(long double p, long double df);

#endif
