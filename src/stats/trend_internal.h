/* trend_internal.h - points in the order of x, for the files of trends. */
#ifndef TP_STATS_TREND_INTERNAL_H
#define TP_STATS_TREND_INTERNAL_H

#include "stats/trend.h"

typedef struct {
    double x, y;
} tp_point;

/* n points by ascending x, then y (x NULL: 0, 1, ...); free() them. */
tp_point *tp_points_sorted(const double *x, const double *y, size_t n);

/* Pairs i < j with v_i > v_j; sorts v, which has room for n more. */
uint64_t tp_count_inversions(double *v, size_t n);

/* Sums over groups of equal values. */
typedef struct {
    double pairs;  /* t (t - 1) / 2 */
    double cubes;  /* t (t - 1)(2t + 5) */
    double triple; /* t (t - 1)(t - 2) */
} tp_ties;

/* Of neighbours that are equal in x, or in x and y; and of equal numbers. */
tp_ties tp_ties_of(const tp_point *v, size_t n, bool by_y);
tp_ties tp_ties_of_sorted(const double *v, size_t n);

/* x NULL: 0, 1, ... */
static inline double tp_x_at(const double *x, size_t i) { return x ? x[i] : (double)i; }

/* Variance of Mann-Kendall's S without the joint terms of ties in x and y.  `work` has
 * room for n. */
double tp_kendall_variance(const tp_point *points, size_t n, double *work);

/* n / n* of Hamed and Rao for the points without their slope; 0 or less where the
 * autocorrelations leave no variance. */
TP_CHECKED tp_status tp_hamed_rao(const tp_point *points, size_t n, double slope, double alpha,
                                  double *ret, tp_error *err);

/* tp_theil_sen() that finds this correction too, and what interval it gives. */
TP_CHECKED tp_status tp_theil_sen_corrected(const double *x, const double *y, size_t n,
                                            double level, tp_theil_sen_result *ret, tp_error *err);

#endif
