/* bootstrap.h - intervals by resampling.
 *
 * The stream is splitmix64 (Steele, Lea and Flood 2014): the k-th number depends on the
 * seed and k alone, so a replicate does not depend on those before it.  An index is the high word
 * of u64 * n.  Two samples: each replicate draws n1 indices for x, then n2 for y.
 *
 * Percentile: type-7 quantiles of the sorted replicates.  Basic: 2 theta - those.  BCa
 * (Efron 1987): z0 from the share of replicates below theta (equal ones count half,
 * equality within 1e-12), acceleration from the jackknife.  Where BCa is not defined
 * (all replicates on one side) its interval is the percentile one and `bca_fallback`
 * says why. */
#ifndef TP_STATS_BOOTSTRAP_H
#define TP_STATS_BOOTSTRAP_H

#include "stats/common.h"

typedef struct {
    uint64_t state;
} tp_splitmix;
uint64_t tp_splitmix_next(tp_splitmix *s);
uint64_t tp_splitmix_at(uint64_t seed, uint64_t k);     /* the k-th number, from 0 */
uint64_t tp_splitmix_below(tp_splitmix *s, uint64_t n); /* high word of next * n */

typedef struct {
    size_t n_resamples; /* 9999 where a decision hangs on it */
    uint64_t seed;
    double level; /* 0.95 */
} tp_bootstrap_options;

typedef struct {
    size_t n_resamples;
    double theta; /* the statistic of the data */
    size_t n_less, n_equal;
    double min_gap; /* smallest distance of an unequal replicate from theta */
    double z0, a, alpha1, alpha2;
    double mean, se; /* of the replicates */
    tp_interval percentile, basic, bca;
    const char *bca_fallback; /* NULL: bca is BCa */
} tp_bootstrap_result;

/* A statistic of one sample.  `x` may be reordered by it. */
typedef double (*tp_statistic)(double *x, size_t n, void *context);
double tp_statistic_mean(double *x, size_t n, void *context);
double tp_statistic_median(double *x, size_t n, void *context);

/* One sample; mean and median have fast paths. */
TP_CHECKED tp_status tp_bootstrap(const double *x, size_t n, tp_statistic statistic, void *context,
                                  const tp_bootstrap_options *options, tp_bootstrap_result *ret,
                                  tp_error *err);

/* Two independent samples: theta = combine(statistic(x), statistic(y)). */
typedef enum { TP_COMBINE_DIFFERENCE, TP_COMBINE_RATIO } tp_combine;
TP_CHECKED tp_status tp_bootstrap_two(const double *x, size_t nx, const double *y, size_t ny,
                                      tp_statistic statistic, void *context, tp_combine combine,
                                      const tp_bootstrap_options *options, tp_bootstrap_result *ret,
                                      tp_error *err);

#endif
