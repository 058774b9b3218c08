/* bootstrap_internal.h - what the kinds of bootstrap share: drawing replicates, and turning
 * them into intervals. */
#ifndef TP_STATS_BOOTSTRAP_INTERNAL_H
#define TP_STATS_BOOTSTRAP_INTERNAL_H

#include "stats/bootstrap.h"

typedef struct {
    size_t draws;   /* numbers of the stream that one replicate uses */
    size_t scratch; /* doubles it needs */
    double (*replicate)(const void *context, tp_splitmix *stream, double *scratch);
    const void *context;
} tp_resampler;

TP_CHECKED tp_status tp_bootstrap_check(const tp_bootstrap_options *options, size_t n,
                                        tp_error *err);
void tp_bootstrap_draw(const tp_resampler *how, const tp_bootstrap_options *options, double *theta);

/* r->theta and r->n_resamples are set; theta is sorted.  A NaN acceleration means none. */
void tp_bootstrap_summarize(double *theta, double acceleration, double level,
                            tp_bootstrap_result *r);

/* The state after k numbers. */
uint64_t tp_splitmix_skip(uint64_t seed, uint64_t k);

void tp_resample(const double *x, size_t n, tp_splitmix *stream, double *ret);
/* One more in counts[rank[i]] for every index i drawn. */
void tp_resampled_counts(const uint32_t *rank, size_t n, tp_splitmix *stream, uint32_t *counts);
double tp_resampled_sum(const double *x, size_t n, tp_splitmix *stream);

#endif
