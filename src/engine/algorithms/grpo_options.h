/* grpo_options.h - the keys that only GRPO has: grpo, loss_fn, env. */
#ifndef TP_ENGINE_ALGORITHMS_GRPO_OPTIONS_H
#define TP_ENGINE_ALGORITHMS_GRPO_OPTIONS_H

#include <math.h>

#include "engine/algorithms/advantage.h"
#include "engine/algorithms/loss_policy.h"
#include "engine/reward/environment.h"
#include "engine/train/algorithm.h"

typedef enum { TP_STOP_ACCURACY, TP_STOP_PASS_K } tp_stop_metric;

typedef struct {
    int64_t num_prompts, num_generations;
    bool normalize_rewards, leave_one_out;
    int estimator; /* row of tp_advantage_kinds */
    bool estimator_normalize, estimator_leave_one_out, minus_baseline;
    double advantage_clip_low, advantage_clip_high; /* NaN: none */
    bool dynamic_sampling, overlong_filtering, skip_reference, judges_beside;
    double batch_multiplier;
    int64_t dynamic_max_batches;
    tp_reward_scaling scaling;
    tp_reward_shaping shaping;
    double logprob_error_threshold; /* NaN: none */
    int64_t val_batch_size, max_val_samples, val_generations;
    int stop_metric;       /* tp_stop_metric; TP_OPT_UNSET_ENUM: none */
    double stop_threshold; /* not NaN where there is a stop_metric */
    tp_policy_loss loss;   /* but for what follows from these */
    bool at_temperature, kl_bias_correction;
    bool sequence_ratio, no_ratio, on_policy_ratio, kl_in_reward;
    int truncation;     /* TP_OPT_UNSET_ENUM: none */
    const tp_json *env; /* or NULL */
} tp_grpo_options;

static inline const tp_grpo_options *tp_grpo_options_of(const tp_train_options *o)
{
    return (const tp_grpo_options *)(const void *)o->own.bytes;
}

/* A row of tp_truncations; null, which is -1, is none, and so is any without a ratio. */
static inline tp_truncation tp_grpo_truncation(const tp_grpo_options *o)
{
    return isnan(o->loss.truncate_max) ? TP_TRUNCATE_NONE : (tp_truncation)(o->truncation + 1);
}

extern const tp_option tp_grpo_keys[];
extern const char *const tp_stop_metrics[]; /* by tp_stop_metric; closed by NULL */
/* See tp_algorithm.check and .needs. */
/* The environment that judges the answers to the questions of a source. */
TP_CHECKED tp_status tp_grpo_environment(const tp_config *config, const tp_train_options *o,
                                         const tp_data_source_options *source,
                                         char ret[TP_ENVIRONMENT_NAME], tp_error *err);
TP_CHECKED tp_status tp_grpo_check(tp_config *config, tp_train_options *o, tp_error *err);
/* At once in a rollout, which may draw again. */
uint32_t tp_grpo_prompts_drawn(const tp_train_options *o);
void tp_grpo_needs(const tp_train_options *o, tp_algorithm_needs *ret);
/* Of n answers those from here on are scored with the policy before they train it: the forward pass
 * of the first update says of its own answers what the policy said before it. */
int64_t tp_grpo_first_scored(const tp_train_options *o, int64_t n);

#endif
