/* order.h - order statistics for the other files here: scratch, exact quantiles, and the
 * k-th smallest of all sums of pairs without forming them. */
#ifndef TP_STATS_ORDER_H
#define TP_STATS_ORDER_H

#include "stats/common.h"
#include "stats/twofold.h"

/* count doubles, which are not set; free() them. */
double *tp_scratch(size_t count);
double *tp_sorted_copy(const double *x, size_t n);

/* The k-th smallest (from 0) of n; x is reordered: what lies before x[k] is not larger. */
double tp_select(double *x, size_t n, size_t k);

/* Type 7, unrounded. */
tp_two tp_quantile_exact(const double *sorted, size_t n, double p);

/* Median |x - median|; x is sorted before and overwritten. */
double tp_mad_in_place(double *sorted, size_t n);

/* The k-th smallest (from 1) of the nx ny differences of sorted x and y, and of the
 * n (n + 1) / 2 averages (d_i + d_j) / 2, i <= j, of sorted d: bisection over the values
 * a double can take, counting with two pointers, so exact in about 64 passes. */
double tp_kth_difference(const double *x, size_t nx, const double *y, size_t ny, uint64_t k);
double tp_kth_walsh(const double *d, size_t n, uint64_t k);

/* Integers in the order of the doubles (-0 as 0), for bisection over all doubles. */
uint64_t tp_order_key(double x);
double tp_order_value(uint64_t key);

/* Their medians: the mean of the two middle ones when there is no middle. */
double tp_median_difference(const double *x, size_t nx, const double *y, size_t ny);
double tp_median_walsh(const double *d, size_t n);

#endif
