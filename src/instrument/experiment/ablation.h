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
#include "instrument/experiment/study.h"
#include "temper/experiment.h"

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
    bool is_left_out; /* the budget has no six rounds for it */
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
    double whole_s;           /* that six rounds of all levers take */
    const char *why_no_pairs; /* NULL: there are, or none were asked for */
} tp_ablation;

/* Make the variants; everything is in the experiment's arena. */
TP_CHECKED tp_status tp_ablation_init(tp_ablation *a, tp_experiment *x, const tp_lever_set *set,
                                      const tp_ablation_plan *plan, tp_error *err);
/* Runs that a round has, and that six rounds or those asked for have. */
size_t tp_ablation_runs(const tp_ablation *a);
/* Run the rounds.  Where the budget does not hold so many, the last levers of the set are left out.
 */
TP_CHECKED tp_status tp_ablation_run(tp_ablation *a, tp_error *err);
/* What the samples say; also of rounds that ended early. */
TP_CHECKED tp_status tp_ablation_conclude(tp_ablation *a, tp_error *err);

/* The use-case of `temper ablate`, for whoever knows the levers. */

/* As tp_ablate_run(), with these levers; those named in the options are in the set already. */
TP_CHECKED tp_status tp_ablate(const char *config, const char *const *overrides, size_t n,
                               const tp_ablate_options *options, const tp_lever_set *set,
                               char **ret, tp_error *err);

/* An ablation as text, Markdown, JSON and a picture. */

/* docs/formats/experiment.md. */
void tp_ablation_json(const tp_ablation *a, const tp_study *s, tp_buf *out);
/* TP_FORM_TEXT or TP_FORM_MARKDOWN. */
void tp_ablation_text(const tp_ablation *a, const tp_study *s, tp_form form, tp_buf *out);

/* report.json, report.md and effects.svg into the study's folder. */
TP_CHECKED tp_status tp_ablation_save(const tp_ablation *a, const tp_study *s, tp_error *err);

#endif
