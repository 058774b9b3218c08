/* ablation.h - what each lever gives: all on, each one off, all off, measured in turn.
 *
 *     effect of lever X      all / all without X, paired by round (factor.h)
 *     all_off                all / none
 *     sum                    the product of the single effects over that of all together: 1 where
 *                            levers do not touch each other
 *     interaction of X, Y    (all / without X) / (without Y / without both), on rounds of its own:
 *                            what X gives beside Y over what it gives without
 *
 * Pairs are chosen among the levers with the largest effects, as many as the budget has six rounds
 * for; their rounds are fresh, so that the choice does not colour the result.
 *
 * Losses are compared step by step in the same round: every run has the same seed and data. */
#ifndef TP_INSTRUMENT_EXPERIMENT_ABLATION_H
#define TP_INSTRUMENT_EXPERIMENT_ABLATION_H

#include "instrument/experiment/factor.h"
#include "instrument/experiment/lever_set.h"
#include "instrument/experiment/rounds.h"

typedef enum {
    TP_LOSS_NOT_SHOWN,
    TP_LOSS_IDENTICAL, /* every bit of every step's loss */
    TP_LOSS_ROUNDING,
    TP_LOSS_CHANGED
} tp_loss_verdict;
const char *tp_loss_verdict_name(tp_loss_verdict verdict); /* "bit-identical" */

typedef struct {
    tp_loss_verdict verdict;
    double largest; /* difference of a step's loss, relative; NaN: unknown */
    size_t n_steps, n_rounds;
} tp_loss_effect;

typedef struct {
    size_t variant; /* the one without it */
    tp_factor figures[TP_FIGURES];
    tp_loss_effect loss;
} tp_ablated_effect;

typedef struct {
    size_t a, b; /* levers */
    size_t without_a, without_b, without_both;
    tp_factor step_time, peak_memory;
    size_t rounds;
} tp_interaction;

enum { TP_STAGE_PILOT, TP_STAGE_MAIN, TP_STAGE_PAIRS };

typedef struct {
    size_t most_rounds; /* of the main stage */
    size_t most_pairs;  /* SIZE_MAX: as many as the budget has room for */
    double share;       /* of the budget for the main rounds where pairs follow */
    double margin, loss_tolerance;
    /* Told before each round; may be NULL. */
    void (*progress)(void *user, int stage, size_t round, size_t most, double left_s);
    void *user;
} tp_ablation_plan;

typedef struct {
    const tp_lever_set *set;
    tp_ablation_plan plan;
    tp_experiment *x;
    size_t all, none;
    tp_ablated_effect *levers; /* set->n of them */
    tp_ablated_effect all_off;
    tp_factor sum;
    tp_interaction *pairs;
    size_t n_pairs, n_rounds;
    const char *why_no_pairs; /* NULL: there are, or none were asked for */
} tp_ablation;

/* Make the variants; everything is in the experiment's arena. */
TP_CHECKED tp_status tp_ablation_init(tp_ablation *a, tp_experiment *x, const tp_lever_set *set,
                                      const tp_ablation_plan *plan, tp_error *err);
/* Run the rounds. */
TP_CHECKED tp_status tp_ablation_run(tp_ablation *a, tp_error *err);
/* What the samples say; also of rounds that ended early. */
TP_CHECKED tp_status tp_ablation_conclude(tp_ablation *a, tp_error *err);

#endif
