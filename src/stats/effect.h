/* effect.h - how large a difference is, in units that carry over.
 *
 * d = (m1 - m2) / s_pooled, and g = d J with the exact small-sample factor
 * J = Gamma(df/2) / (sqrt(df/2) Gamma((df-1)/2)).  Intervals invert the noncentral t:
 * the ncp at which the observed t has tail probability alpha/2 on either side.
 * Words after Cohen (1988), 0.2 / 0.5 / 0.8 being lower bounds: below 0.2 an effect is
 * negligible; Cliff's delta after Romano (2006): 0.147 / 0.33 / 0.474. */
#ifndef TP_STATS_EFFECT_H
#define TP_STATS_EFFECT_H

#include "stats/common.h"

typedef struct {
    double d, g;
    double j, j_approximate; /* exact, and 1 - 3 / (4 df - 1) */
    double d_variance;       /* (n1+n2)/(n1 n2) + d^2 / (2 (n1+n2)), Hedges */
    double glass_delta;      /* (m1 - m2) / s_y */
    tp_interval d_ci, g_ci;  /* exact */
    const char *why;         /* of d, g and their intervals */
    const char *why_j;
    const char *why_glass;
} tp_effect;
double tp_hedges_j(double df); /* NaN without two degrees of freedom */
tp_effect tp_effect_two(const double *x, size_t nx, const double *y, size_t ny, double level);

/* Paired: d_z = mean / sd of the differences, with its exact interval, and
 * d_av = mean / sqrt((v1 + v2) / 2), which is comparable with an unpaired d. */
typedef struct {
    double dz, dav;
    tp_interval dz_ci;
    const char *why, *why_dav;
} tp_effect_paired_result;
tp_effect_paired_result tp_effect_paired(const double *x, const double *y, size_t n, double level);

/* The noncentrality parameters at which t is the upper and the lower alpha/2 point. */
tp_interval tp_ncp_interval(double t, double df, double level);

/* "negligible", "small", "medium", "large"; "unknown" for NaN. */
const char *tp_effect_word(double d);
const char *tp_cliff_word(double delta);

#endif
