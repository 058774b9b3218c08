/* environment_kind.h - a row of the table of environments.
 *
 * To add one: a file with its settings, a scoring function and perhaps a generator, and a
 * row in environment_kinds.c. */
#ifndef TP_ENGINE_RL_ENVIRONMENT_KIND_H
#define TP_ENGINE_RL_ENVIRONMENT_KIND_H

#include "engine/rl/environment.h"

/* Settings are bound from the configuration into a zeroed block of `size` bytes. */
typedef struct {
    const tp_option *options;
    size_t n, size;
} tp_settings_table;

typedef struct {
    const char *name; /* env.<name>, reward_functions[].name, data.*.dataset_name */
    const char *doc;  /* one sentence */
    tp_settings_table settings;

    /* (optional) make what scoring needs; `settings` stays alive until close. */
    tp_status (*open)(const void *settings, void **ret_state, tp_error *err);
    void (*close)(void *state);

    /* One of the two.  `score` judges one completion, on any thread; `score_all` a batch.
     * Verdicts come zeroed but for reward = NaN and correct = unknown.  Fill them with
     * tp_reward_give() and friends. */
    void (*score)(const void *settings, void *state, const tp_completion *completion,
                  tp_reward *ret);
    tp_status (*score_all)(const void *settings, void *state, const tp_completion *completions,
                           size_t n, tp_reward *ret, tp_error *err);
    tp_environment_counts (*counts)(const void *state); /* (optional) */

    /* (optional) a generator of prompts, set up by data.<name>. */
    tp_settings_table generator;
    tp_status (*check)(const void *generator, tp_error *err);
    uint64_t (*count)(const void *generator, tp_split split);
    void (*make)(const void *generator, tp_split split, uint64_t index, tp_arena *arena,
                 tp_prompt *ret);
    void (*describe)(const void *generator, tp_buf *out);
} tp_environment_kind;

extern const tp_environment_kind *const tp_environment_kinds[];        /* ends with NULL */
const tp_environment_kind *tp_environment_kind_find(const char *name); /* NULL: there is none */

/* Verdicts.  Texts are copied; answers may be NULL. */
void tp_reward_give(tp_reward *r, double reward, tp_correct correct, const char *answer);
void tp_reward_exclude(tp_reward *r, tp_reward_status status, const char *fmt, ...) TP_PRINTF(3, 4);
void tp_reward_add_part(tp_reward *r, const char *name, double value);

#endif
