/* power.h - how many runs, and what they could have shown.
 *
 * t tests by the noncentral t, with both tails for two-sided tests.  Two samples:
 * ncp = d sqrt(n1 n2 / (n1 + n2)), df = n1 + n2 - 2; pairs: ncp = d_z sqrt n, df = n - 1.
 * A test that found nothing says something only together with the smallest effect it
 * would have found (MDE). */
#ifndef TP_STATS_POWER_H
#define TP_STATS_POWER_H

#include "stats/common.h"

/* sides: 1 or 2. */
double tp_power_two_sample(double d, double n1, double n2, double alpha, int sides);
double tp_power_paired(double dz, double n, double alpha, int sides);

/* Real-valued n per group (round up), NaN when not attainable (effect 0, power <= alpha). */
double tp_sample_size_two_sample(double d, double alpha, double power, int sides);
double tp_sample_size_paired(double dz, double alpha, double power, int sides);

/* The smallest detectable effect; of any t test with `df` the difference in standard errors. */
double tp_mde_errors(double df, double alpha, double power, int sides);
double tp_mde_two_sample(double n1, double n2, double alpha, double power, int sides);
double tp_mde_paired(double n, double alpha, double power, int sides);

/* The sign interval of a median: the excess that n rounds show which scatter by sigma, normal
 * rounds, at one-sided alpha: (z_a + z_b) 1.2533 sigma / sqrt n. */
double tp_sign_mde(double sigma, double n, double alpha, double power);

#endif
