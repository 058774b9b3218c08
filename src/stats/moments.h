/* moments.h - means and central sums without rounding, for the other files here.
 *
 * Values are divided by 2^exponent first when they are so large or small that their
 * fourth powers would leave the range of double; results in long double are scaled back,
 * which has the range for it. */
#ifndef TP_STATS_MOMENTS_H
#define TP_STATS_MOMENTS_H

#include "stats/twofold.h"

typedef struct {
    size_t n;
    int exponent;
    tp_two mean;       /* scaled */
    tp_two s2, s3, s4; /* sums of powers of x - mean, scaled; s3 and s4 only when asked */
} tp_moments;

/* 0, or what brings the largest magnitude close to 1. */
int tp_scale_exponent(const double *x, size_t n);
int tp_scale_exponent_two(const double *x, size_t nx, const double *y, size_t ny);

tp_moments tp_moments_of(const double *x, size_t n, int exponent);
tp_moments tp_moments_all(const double *x, size_t n, int exponent); /* with s3 and s4 */
/* Of the exact differences x[i] - y[i]. */
tp_moments tp_moments_of_differences(const double *x, const double *y, size_t n, int exponent);

long double tp_moments_mean(const tp_moments *m);
long double tp_moments_sum_of_squares(const tp_moments *m); /* of deviations */
long double tp_moments_var(const tp_moments *m);            /* n - 1; n >= 2 */
/* mean of a minus mean of b, equal exponents. */
long double tp_moments_difference(const tp_moments *a, const tp_moments *b);

/* sum (x_i - mean)(x_{i+1} - mean), scaled. */
tp_two tp_moments_lagged(const double *x, size_t n, const tp_moments *m);

/* ln(x / y) of positive numbers, with its digits where x is close to y. */
long double tp_log_quotient(double x, double y);

#endif
