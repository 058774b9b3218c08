/* changepoint.h - where does a series change?
 *
 * E-divisive (Matteson and James 2014, alpha = 1): the split that maximises
 *     Q = nm/(n+m) (2/(nm) sum |x-y| - C(n,2)^-1 sum |x-x'| - C(m,2)^-1 sum |y-y'|)
 * between the left segment [0, tau) and the right one [tau, kappa).  Its p-value comes
 * from permuting the segment: p = (hits + 1) / (R + 1), seeded.  Found splits divide the
 * series further until none is significant. */
#ifndef TP_STATS_CHANGEPOINT_H
#define TP_STATS_CHANGEPOINT_H

#include "stats/common.h"

typedef struct {
    size_t tau;   /* first index of the right segment; 0 when there is none */
    size_t kappa; /* end of the right segment */
    double q;
    const char *why;
} tp_level_split;

/* The best split of y[0..n); segments of at least min_segment values.  Without
 * search_kappa the right segment ends at n.  O(n^2). */
TP_CHECKED tp_status tp_edivisive(const double *y, size_t n, size_t min_segment, bool search_kappa,
                                  tp_level_split *ret, tp_error *err);

typedef struct {
    size_t min_segment;    /* 3 */
    size_t n_permutations; /* 999 */
    uint64_t seed;
    double alpha; /* 0.01; smaller than 1 / (n_permutations + 1) finds nothing */
} tp_changepoint_options;
#define TP_CHANGEPOINT_DEFAULTS \
    ((tp_changepoint_options){.min_segment = 3, .n_permutations = 999, .seed = 1, .alpha = 0.01})

typedef struct {
    size_t index;                   /* first value after the change */
    double q, p;                    /* of the permutation test that found it */
    double mean_before, mean_after; /* of the neighbouring segments */
    double median_before, median_after;
} tp_changepoint;

enum { TP_CHANGEPOINT_MAX = 20000 }; /* values; each permutation costs n^2 */
/* Ascending by index.  *ret_n is at most n / min_segment; `ret` has room for that many. */
TP_CHECKED tp_status tp_changepoints(const double *y, size_t n,
                                     const tp_changepoint_options *options, tp_changepoint *ret,
                                     size_t *ret_n, tp_error *err);

/* Do values still resemble the ones before them when the found changes are taken out?  Then the
 * series wanders, and a permutation takes that for changes: their p is too small.  ret_lag1: the
 * correlation with the value before, corrected for the means that were taken out. */
bool tp_changes_wander(const double *y, size_t n, const tp_changepoint *changes, size_t n_changes,
                       double *ret_lag1);

#endif
