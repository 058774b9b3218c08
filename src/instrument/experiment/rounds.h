/* rounds.h - variants of one configuration, measured in turn.
 *
 * A round runs each of its variants once, in an order drawn from (seed, stage, round), so that
 * whatever the machine does meanwhile hits all of them alike, and values of the same round are
 * pairs.  The unit of replication is a run of the program, never a step.
 *
 * A run that fails is a result with a name.  What cannot become better (the configuration is
 * refused, the memory does not suffice, a loss is not finite) is not run again; what was killed or
 * took too long has a second chance.
 *
 * Rounds end when they are done, when the next run would not end within the budget, or when
 * somebody interrupts; what is there then is kept. */
#ifndef TP_INSTRUMENT_EXPERIMENT_ROUNDS_H
#define TP_INSTRUMENT_EXPERIMENT_ROUNDS_H

#include "base/arena.h"
#include "base/strings.h"

/* Settings of one program: "key=value" each. */
typedef struct {
    const char *name;
    const char *const *settings;
    size_t n_settings;
    /* what is known from its runs so far */
    int failures;
    bool is_out;     /* not run again */
    const char *why; /* of its last failure; NULL: none */
    double expected_s;
} tp_variant;

typedef enum {
    TP_TRIAL_DONE,
    TP_TRIAL_REFUSED,
    TP_TRIAL_NO_MEMORY,
    TP_TRIAL_NOT_FINITE,
    TP_TRIAL_KILLED,
    TP_TRIAL_TIMED_OUT,
    TP_TRIAL_FAILED,
    TP_TRIAL_STATES
} tp_trial_state;
const char *tp_trial_state_name(tp_trial_state state); /* "done", "does not fit" ... */

typedef enum {
    TP_FIGURE_STEP_TIME,   /* seconds; median of the measured steps */
    TP_FIGURE_TOKENS,      /* a second; median of the measured steps */
    TP_FIGURE_PEAK_MEMORY, /* bytes of all large buffers together */
    TP_FIGURE_RESIDENT,    /* bytes; peak of the process */
    TP_FIGURE_COST,        /* per token: what a machine billed by processor and memory would take */
    TP_FIGURES
} tp_trial_figure;
const char *tp_trial_figure_name(tp_trial_figure figure); /* "step_time" */

/* One run.  Arrays live in the experiment's arena. */
typedef struct {
    tp_trial_state state;
    const char *why; /* NULL: done */
    double values[TP_FIGURES];
    size_t n_steps, n_warm_up; /* steps recorded; of these the first ones were left out */
    const double *step_s, *tokens_per_s, *losses;
    double wall_s;
    double others; /* share of the processors' time that other programs took meanwhile */
} tp_trial;

typedef struct {
    int stage;
    size_t round, turn, variant;
    tp_trial trial;
} tp_trial_sample;

/* Who runs a variant: a child process, or in tests a machine that is made up. */
typedef struct {
    /* `number` counts the runs.  Fails only with TP_ERR_INTERRUPTED or where nothing can go on. */
    tp_status (*run)(void *user, tp_arena *arena, const tp_variant *variant, size_t number,
                     tp_trial *ret, tp_error *err);
    double (*now_s)(void *user);
    void *user;
} tp_trial_runner;

typedef struct {
    tp_arena arena;
    tp_trial_runner runner;
    uint64_t seed;
    double end_s; /* of the budget, on the runner's clock */
    tp_variant *variants;
    size_t n_variants, cap_variants;
    tp_trial_sample *samples; /* in order of time */
    size_t n_samples, cap_samples;
    size_t n_runs;
    bool is_interrupted, is_out_of_time;
    /* Told before every run, the turn of n in its round; may be NULL. */
    void (*begin)(void *user, const tp_variant *variant, size_t turn, size_t n);
    /* Told of every run; may be NULL. */
    tp_status (*keep)(void *user, const tp_variant *variant, const tp_trial_sample *sample,
                      tp_error *err);
    void *user;
} tp_experiment;

TP_CHECKED tp_status tp_experiment_init(tp_experiment *x, const tp_trial_runner *runner,
                                        uint64_t seed, double budget_s, tp_error *err);
void tp_experiment_release(tp_experiment *x); /* zeroed is a no-op */

/* The number of the variant with these settings, which is made when there is none. */
size_t tp_experiment_variant(tp_experiment *x, const char *name, const char *const *settings,
                             size_t n_settings);

/* Seconds that are left, and that one run of each of these takes. */
double tp_experiment_left_s(const tp_experiment *x);
double tp_experiment_expected_s(const tp_experiment *x, const size_t *which, size_t n);

static inline bool tp_experiment_is_over(const tp_experiment *x)
{
    return x->is_interrupted || x->is_out_of_time;
}

/* One round of n variants. */
TP_CHECKED tp_status tp_experiment_round(tp_experiment *x, int stage, size_t round,
                                         const size_t *which, size_t n, tp_error *err);

/* The sample of a round, or NULL: not run, or not done. */
const tp_trial *tp_experiment_trial(const tp_experiment *x, int stage, size_t round,
                                    size_t variant);
/* Rounds of a stage that were begun. */
size_t tp_experiment_rounds(const tp_experiment *x, int stage);
/* Those that came to their end: the last one may have been cut by the budget or a signal. */
size_t tp_experiment_whole_rounds(const tp_experiment *x, int stage);
/* Values of the rounds in which both are done, in order; `a` and `b` have room for all rounds. */
size_t tp_experiment_pairs(const tp_experiment *x, int stage, size_t variant_a, size_t variant_b,
                           tp_trial_figure figure, double *a, double *b);
/* The median of a figure over the runs of a stage that are done (-1: of all); NaN: none. */
double tp_experiment_median(const tp_experiment *x, int stage, size_t variant,
                            tp_trial_figure figure);

#endif
