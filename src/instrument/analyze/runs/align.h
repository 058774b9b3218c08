/* align.h - runs side by side: the values of one metric of every run at the same places. */
#ifndef TP_INSTRUMENT_ANALYZE_RUNS_ALIGN_H
#define TP_INSTRUMENT_ANALYZE_RUNS_ALIGN_H

#include "instrument/analyze/runs/curve.h"
#include "temper/analysis.h"

typedef struct {
    size_t n_a, n_b;     /* runs of each side */
    size_t n;            /* places that all of them have */
    double *place;       /* n steps, tokens or seconds */
    double *value;       /* of run r, those of A first: n values from value + r * n */
    size_t odd_a, odd_b; /* values that are NaN or infinite, left out */
    const char *tag_b;   /* what the first run of B calls it; NULL without one */
    double end, longest; /* the last place of the run that ends first, of the one that ends last */
    size_t ends_first;   /* that run, of A and B together */
} tp_aligned;

/* False where a run lacks the metric; else tp_aligned_release() it. */
bool tp_align_metric(tp_metrics *const *a, size_t n_a, tp_metrics *const *b, size_t n_b,
                     const char *tag, tp_align align, tp_aligned *ret);
void tp_aligned_release(tp_aligned *x);

/* What else a picture of a comparison has to know. */

tp_align tp_run_comparison_align(const tp_run_comparison *c);
double tp_run_comparison_level(const tp_run_comparison *c); /* of intervals */

#endif
