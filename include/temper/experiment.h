/* experiment.h - what each lever gives on this machine and this model, and the best setting of all.
 *
 * What `temper ablate` and `temper tune` do: short runs of `temper train` in child processes, in
 * rounds of random order, compared in pairs (docs/guide/experiments.md).
 *
 *     tp_ablate_options o = {.size = sizeof o, .budget_s = 300};
 *     status = tp_ablate_run("recipe.yaml", NULL, 0, &o, &text, &err);
 *
 * Threads: one study at a time in a process (tp_ablate_run(), tp_tune_run()), as it measures time;
 * tp_experiment_interrupt() from any thread and from a handler of signals. */
#ifndef TEMPER_EXPERIMENT_H
#define TEMPER_EXPERIMENT_H

#include "temper/error.h"
#include "temper/text.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What both share.  Texts may be NULL; what is zero has the default. */
typedef struct {
    const char *program; /* the temper that is run; NULL: this program */
    double budget_s;     /* for everything; 0: 600 */
    double timeout_s;    /* of one run; 0: 600 */
    int64_t steps;       /* measured in a run; 0: as many as take a second, 5 to 40, fewer where
                            the budget holds no six rounds of these */
    bool no_warm_up;
    int64_t warm_up; /* steps before those; 0: 2, or 1 where the budget is short */
    bool has_seed;
    int64_t seed;       /* of the order of the rounds; else 1 */
    double margin;      /* "the same" is within this share; 0: 0.01 */
    const char *folder; /* for the results; NULL: beside the run folder, RUN-ablate or RUN-tune */
    tp_form form;       /* TP_FORM_TEXT or TP_FORM_JSON */
    int width;          /* of the text; 0: 110 */
    void (*progress)(void *user, const char *line); /* drawn anew; NULL: it goes */
    void (*note)(void *user, const char *text);     /* remarks about the measurement */
    void *user;
} tp_experiment_options;

typedef struct {
    size_t size; /* sizeof(tp_ablate_options) */
    tp_experiment_options common;
    const char *const *levers; /* names of temper/levers.h; n_levers 0: all */
    size_t n_levers;
    const char *const *own; /* "NAME:KEY=ON/OFF": levers that no table knows */
    size_t n_own;
    int64_t rounds;       /* exactly; 0: as many as the budget allows, at most 40 */
    bool no_pairs;        /* no interactions */
    int64_t most_pairs;   /* 0: as many as the budget allows, 3 where rounds alone are given */
    double loss_rounding; /* relative difference that is rounding; 0: by policy.precision */
} tp_ablate_options;

/* All levers, each one off, all off: change of step time, throughput and memory with intervals and
 * verdicts, interactions, losses.  `config`, `overrides`: as for tp_training_run().  *ret is the
 * report, tp_free(); after an interruption that of what was measured.
 * TP_ERR_ARG, TP_ERR_CONFIG, TP_ERR_IO, TP_ERR_OUTPUT, TP_ERR_INTERRUPTED: nothing to report. */
TP_API TP_CHECKED tp_status tp_ablate_run(const char *config, const char *const *overrides,
                                          size_t n_overrides, const tp_ablate_options *options,
                                          char **ret, tp_error *err);

typedef enum { TP_GOAL_TOKENS_PER_S, TP_GOAL_PEAK_MEMORY, TP_GOAL_COST } tp_goal;

typedef struct {
    size_t size; /* sizeof(tp_tune_options) */
    tp_experiment_options common;
    tp_goal goal;
    int64_t memory_bytes; /* planned peak at most; 0: what the machine has */
    bool allow_precision; /* policy.precision may change */
} tp_tune_options;

/* Search levers and sizes, measure the promising by racing, confirm the winner on fresh rounds,
 * write it as a recipe.  TP_ERR_NOMEM: the recipe is above memory_bytes, and nothing below it was
 * found. */
TP_API TP_CHECKED tp_status tp_tune_run(const char *config, const char *const *overrides,
                                        size_t n_overrides, const tp_tune_options *options,
                                        char **ret, tp_error *err);

/* End what is being measured; the calls return with what is there.  Safe in a handler of
 * signals. */
TP_API void tp_experiment_interrupt(void);

#ifdef __cplusplus
}
#endif

#endif
