/* environment_kind.h - a row of the table of environments.
 *
 * To add one: a file with its settings, a scoring function and perhaps a generator, and a
 * row in environment_kinds.c. */
#ifndef TP_ENGINE_REWARD_ENVIRONMENT_KIND_H
#define TP_ENGINE_REWARD_ENVIRONMENT_KIND_H

#include "engine/reward/environment.h"

/* Settings are bound from the configuration into a zeroed block of `size` bytes. */
typedef struct {
    const tp_option *options;
    size_t n, size;
} tp_settings_table;

/* What a generator makes: the question, the answer, and all that scoring needs as a JSON
 * object. */
typedef struct {
    tp_buf text, truth, row;
} tp_made_prompt;

/* First member of a generator's settings, and its rows (config/option_rows.h). */
typedef struct {
    int64_t n_examples, n_validation;
    int64_t seed; /* TP_OPT_UNSET_INT until check() */
} tp_made_counts;

#define TP_MADE_ROWS(counts)                                                           \
    COUNT("n_examples", counts.n_examples, "20000", 1, 1e9, "Training questions.")     \
    COUNT("n_validation", counts.n_validation, "512", 1, 1e9, "Validation questions.") \
    COUNT("seed", counts.seed, "null", 0, 9007199254740992.0, "Seed of the questions; null = seed.")

typedef struct {
    const char *name;    /* of the environment, for messages; lives as long as the state */
    int64_t num_workers; /* TP_OPT_UNSET_INT: not said */
    const tp_environment_watch *watch; /* lives as long, may change between calls */
} tp_environment_context;

typedef struct {
    const char *name; /* env.<name>, reward_functions[].name, data.*.dataset_name */
    const char *doc;  /* one sentence */
    bool is_outside;  /* foreign code judges, which may take its time */
    tp_settings_table settings;

    /* (optional) make what scoring needs; `settings` stays alive until close. */
    tp_status (*open)(const void *settings, const tp_environment_context *context, void **ret_state,
                      tp_error *err);
    void (*close)(void *state);

    /* One of the two.  `score` judges one completion, on any thread; `score_all` a batch.
     * Verdicts come zeroed but for reward = NaN and correct = unknown.  Fill them with
     * tp_reward_give() and friends. */
    void (*score)(const void *settings, void *state, const tp_completion *completion,
                  tp_reward *ret);
    tp_status (*score_all)(const void *settings, void *state, const tp_completion *completions,
                           size_t n, tp_reward *ret, tp_error *err);
    tp_environment_counts (*counts)(const void *state); /* (optional) */

    /* (optional) a generator of prompts, set up by data.<name>; its settings begin with
     * tp_made_counts. */
    tp_settings_table generator;
    /* Once after binding, with a seed. */
    tp_status (*check)(void *generator, tp_error *err);
    void (*make)(const void *generator, tp_split split, uint64_t index, tp_made_prompt *ret);
    void (*describe)(const void *generator, tp_buf *out);

    /* (optional) the wording of a row that a file gives without one; appends. */
    bool (*ask)(const tp_json *row, tp_buf *out);
} tp_environment_kind;

extern const tp_environment_kind *const tp_environment_kinds[];        /* ends with NULL */
const tp_environment_kind *tp_environment_kind_find(const char *name); /* NULL: there is none */

/* Verdicts.  Texts are copied; answers may be NULL. */
void tp_reward_give(tp_reward *r, double reward, tp_correct correct, const char *answer);
void tp_reward_exclude(tp_reward *r, tp_reward_status status, const char *fmt, ...) TP_PRINTF(3, 4);
/* Refused: there is nothing to compare with.  A run whose first rows are like that does not begin.
 */
#define TP_NO_TRUTH                                                                     \
    "has no expected answer; name its column with data.train.output_key (evaluations: " \
    "data.output_key)"
void tp_reward_lacks_truth(tp_reward *r, const char *prompt_id);
void tp_reward_add_part(tp_reward *r, const char *name, double value);
tp_reward *tp_rewards_new(size_t n); /* without verdicts; release each, then free() */
void tp_reward_release(tp_reward *r);

#endif
