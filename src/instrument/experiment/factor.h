/* factor.h - by what factor does a change move a figure, and how sure is that?
 *
 * Values come in pairs, one of each round: d_i = ln(with_i / without_i).  The order within a round
 * is random, so a round's disturbance hits either side alike and d is symmetric about the effect,
 * however heavy its tails:
 *
 *     effect     exp of the Hodges-Lehmann estimate of d (median of the averages of pairs)
 *     interval   exact from Wilcoxon's signed ranks, 95 % or the next above (6 rounds: 96.9 %)
 *     p          twice the smaller of those of signed ranks and of t on d: ranks stand whatever
 *                the tails are, but below 9 rounds no p of theirs survives a correction for eight
 *                levers; t sees a large effect in six.  Holm over all effects of the same figure
 *     same       the whole interval lies within the margin of 1
 *     better, worse   it does not hold 1, and the adjusted p is below 0.05
 *     not shown  anything else, and always below TP_FACTOR_LEAST rounds
 *
 * A figure that is the same number in every round (planned bytes) is exact: its ratio alone
 * decides, and one round suffices. */
#ifndef TP_INSTRUMENT_EXPERIMENT_FACTOR_H
#define TP_INSTRUMENT_EXPERIMENT_FACTOR_H

#include "base/error.h"
#include "stats/verdict.h"

enum { TP_FACTOR_LEAST = 6 };

typedef struct {
    size_t n;
    double ratio, lo, hi; /* with over without; NaN when undefined */
    double p, p_adjusted; /* NaN of an exact one */
    bool is_exact;
    tp_change verdict;
    char why[200]; /* why not more; may be empty */
} tp_factor;

/* `is_exact`: the figure does not vary by itself; it is judged so where its values do not.  Values
 * that are not positive numbers leave their pair out. */
TP_CHECKED tp_status tp_factor_weigh(const double *with, const double *without, size_t n,
                                     bool is_exact, tp_factor *ret, tp_error *err);

/* The words, for effects that are judged together. */
TP_CHECKED tp_status tp_factors_judge(tp_factor *const *effects, size_t n, bool lower_is_better,
                                      double margin, tp_error *err);

/* Nothing is known, for this reason. */
void tp_factor_unknown(tp_factor *ret, const char *fmt, ...) TP_PRINTF(2, 3);

#endif
