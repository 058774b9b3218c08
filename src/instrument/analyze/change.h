/* change.h - did it change?  One rule for two series of measurements, wherever they come from.
 *
 *     interval   95 % of the mean difference after - before: t over pairs, or Welch
 *     p          of the same t, two-sided; whoever has many rows adjusts it
 *     better     p < 0.05, the whole interval below 0, and a test without assumptions (sign
 *                flips of the pairs, or permutation) agrees at 0.05
 *     worse      the same above 0
 *     same       the whole interval within the margin
 *     not shown  anything else, and always below 6 values a side
 * Of logarithms of times the interval is that of the ratio of geometric means. */
#ifndef TP_INSTRUMENT_ANALYZE_CHANGE_H
#define TP_INSTRUMENT_ANALYZE_CHANGE_H

#include "base/error.h"
#include "stats/verdict.h"

enum { TP_CHANGE_LEAST = 6 };

/* What "the same" means: within 1 %. */
#define TP_CHANGE_MARGIN 0.01

typedef struct {
    double lo, hi;        /* of after - before; NaN when undefined */
    double p;             /* of the t test; NaN when undefined */
    double p_permutation; /* not adjusted */
} tp_change_evidence;

/* All NaN: nothing is known. */
#define TP_CHANGE_NO_EVIDENCE \
    ((tp_change_evidence){(double)NAN, (double)NAN, (double)NAN, (double)NAN})

/* At least TP_CHANGE_LEAST values a side, else there is no evidence. */
TP_CHECKED tp_status tp_change_weigh(const double *before, size_t n_before, const double *after,
                                     size_t n_after, bool is_paired, tp_change_evidence *ret,
                                     tp_error *err);
/* `margin` in the unit of the values, to both sides. */
tp_change tp_change_judge(const tp_change_evidence *evidence, double margin);

/* Draws of the test without assumptions: fewer of very many values. */
size_t tp_change_resamples(size_t n_before, size_t n_after);

#endif
