/* grpo_options.c - GRPO's keys, what must hold across them, and what they ask of a run. */
#include "engine/algorithms/grpo_options.h"

#include <math.h>

#include "base/platform.h"
#include "engine/reward/prompts.h"
#include "engine/train/graphs.h"
#include "engine/train/option_rows.h"

static_assert(sizeof(tp_grpo_options) <= TP_OWN_OPTION_BYTES, "see tp_train_options.own");

const char *const tp_stop_metrics[] = {
    [TP_STOP_ACCURACY] = "accuracy", [TP_STOP_PASS_K] = "pass_k", NULL};

#define HOLDER tp_grpo_options
#define HOLDER_AT TP_OWN_OPTIONS
const tp_option tp_grpo_keys[] = {
#include "engine/algorithms/grpo_options.def"
    {0}};

static bool is_multiple(int64_t n, int64_t of) { return of > 0 && n % of == 0; }

/* What CISPO excludes, as in NeMo RL: its weight is a clipped ratio of each token. */
static tp_status check_cispo(const tp_config *config, const tp_grpo_options *g, tp_error *err)
{
    const struct {
        bool is_set;
        const char *key;
    } others[] = {{g->no_ratio, "loss_fn.disable_ppo_ratio"},
                  {g->on_policy_ratio, "loss_fn.force_on_policy_ratio"},
                  {g->sequence_ratio, "loss_fn.sequence_level_importance_ratios"},
                  {!isnan(g->loss.dual_clip), "loss_fn.ratio_clip_c"},
                  {!g->loss.token_level, "loss_fn.token_level_loss"}};
    for (size_t i = 0; g->loss.cispo && i < TP_COUNTOF(others); i++)
        if (others[i].is_set)
            return tp_config_fail(config, others[i].key, err,
                                  "does not go with loss_fn.use_cispo=true, which weighs each "
                                  "token by its own clipped ratio");
    return TP_OK;
}

/* What the loss of GRPO cannot be asked for. */
static tp_status check_loss(const tp_config *config, const tp_grpo_options *g, tp_error *err)
{
    if (g->sequence_ratio && g->loss.token_level)
        return tp_config_fail(config, "loss_fn.sequence_level_importance_ratios", err,
                              "one ratio per answer goes with a mean over answers; set "
                              "loss_fn.token_level_loss=false");
    if (g->sequence_ratio + g->no_ratio + g->on_policy_ratio > 1)
        return tp_config_fail(config, "loss_fn.disable_ppo_ratio", err,
                              "sequence_level_importance_ratios, disable_ppo_ratio and "
                              "force_on_policy_ratio exclude each other");
    TP_TRY(check_cispo(config, g, err));
    if (g->loss.dual_clip <= 1)
        return tp_config_fail(config, "loss_fn.ratio_clip_c", err, "must be above 1");
    bool truncates = tp_grpo_truncation(g) != TP_TRUNCATE_NONE;
    if (truncates && !g->loss.correction)
        return tp_config_fail(config, "loss_fn.truncated_importance_sampling_type", err,
                              "needs loss_fn.use_importance_sampling_correction=true");
    if (!truncates && !isnan(g->loss.truncate_max))
        return tp_config_fail(config, "loss_fn.truncated_importance_sampling_ratio", err,
                              "needs loss_fn.truncated_importance_sampling_type");
    if (truncates && tp_grpo_truncation(g) != TP_TRUNCATE_CLAMP && isnan(g->loss.truncate_min))
        return tp_config_fail(config, "loss_fn.truncated_importance_sampling_type", err,
                              "needs loss_fn.truncated_importance_sampling_ratio_min");
    if (truncates && g->loss.truncate_min > g->loss.truncate_max)
        return tp_config_fail(config, "loss_fn.truncated_importance_sampling_ratio_min", err,
                              "is above loss_fn.truncated_importance_sampling_ratio");
    if (tp_grpo_truncation(g) == TP_TRUNCATE_SEQUENCES && g->sequence_ratio)
        return tp_config_fail(config, "loss_fn.truncated_importance_sampling_type", err,
                              "seq-mask-tis goes with ratios of tokens, not with "
                              "loss_fn.sequence_level_importance_ratios");
    if (g->skip_reference && g->loss.kl_penalty != 0)
        return tp_config_fail(config, "grpo.skip_reference_policy_logprobs_calculation", err,
                              "the divergence needs them; set "
                              "loss_fn.reference_policy_kl_penalty=0");
    return TP_OK;
}

static tp_status check_goal(const tp_config *config, const tp_grpo_options *g, tp_error *err)
{
    bool has_metric = g->stop_metric != TP_OPT_UNSET_ENUM;
    if (has_metric && isnan(g->stop_threshold))
        return tp_config_fail(config, "grpo.stop_at_validation_threshold", err,
                              "must be set where grpo.stop_at_validation_metric is");
    if (!has_metric && !isnan(g->stop_threshold))
        return tp_config_fail(config, "grpo.stop_at_validation_threshold", err,
                              "of what? set grpo.stop_at_validation_metric to accuracy or pass_k");
    if (g->stop_metric == TP_STOP_PASS_K && g->val_generations == 1)
        return tp_config_fail(config, "grpo.stop_at_validation_metric", err,
                              "pass_k needs grpo.val_num_generations_per_prompt above 1");
    return TP_OK;
}

static tp_status check_shaping(const tp_config *config, const tp_grpo_options *g, tp_error *err)
{
    const tp_reward_shaping *s = &g->shaping;
    if (s->enabled && isnan(s->stop_properly_penalty_coef) &&
        (isnan(s->overlong_buffer_length) || isnan(s->overlong_buffer_penalty) ||
         isnan(s->max_response_length)))
        return tp_config_fail(config, "grpo.reward_shaping.enabled", err,
                              "needs overlong_buffer_length, overlong_buffer_penalty and "
                              "max_response_length, or stop_properly_penalty_coef");
    return TP_OK;
}

tp_status tp_grpo_environment(const tp_config *config, const tp_train_options *o,
                              const tp_data_source_options *source, char ret[TP_ENVIRONMENT_NAME],
                              tp_error *err)
{
    const char *asked = source->env_name ? source->env_name : o->data.fallback.env_name;
    return tp_environment_choose(config, asked, source->dataset_name, "data.default.env_name", ret,
                                 err);
}

/* What asks and what judges is there, once the recipe names either.  Nothing is opened. */
static tp_status check_questions(tp_config *config, const tp_train_options *o, tp_error *err)
{
    const tp_data_source_options *train = &o->data.train;
    char name[TP_ENVIRONMENT_NAME];
    if (!train->data_path && !train->dataset_name)
        return TP_OK;
    TP_TRY(tp_prompts_check_source(train->dataset_name, train->data_path, err));
    TP_TRY(tp_grpo_environment(config, o, train, name, err));
    return tp_environment_check(config, name, err);
}

tp_status tp_grpo_check(tp_config *config, tp_train_options *o, tp_error *err)
{
    tp_grpo_options *g = (tp_grpo_options *)(void *)o->own.bytes;
    if (g->val_batch_size == TP_OPT_UNSET_INT) /* NeMo RL's nulls for "the usual" */
        g->val_batch_size = 256;
    if (g->max_val_samples == TP_OPT_UNSET_INT)
        g->max_val_samples = 0;
    int64_t samples = g->num_prompts * g->num_generations;
    if (!is_multiple(samples, o->policy.train_global_batch_size))
        return tp_config_fail(config, "policy.train_global_batch_size", err,
                              "%lld does not divide the %lld answers of a rollout "
                              "(grpo.num_prompts_per_step x grpo.num_generations_per_prompt)",
                              (long long)o->policy.train_global_batch_size, (long long)samples);
    if (g->on_policy_ratio && o->policy.train_global_batch_size != samples)
        return tp_config_fail(config, "loss_fn.force_on_policy_ratio", err,
                              "needs one update per rollout: policy.train_global_batch_size=%lld",
                              (long long)samples);
    if (g->scaling.enabled && !(g->scaling.source_max > g->scaling.source_min))
        return tp_config_fail(config, "grpo.reward_scaling.source_max", err,
                              "must be above grpo.reward_scaling.source_min");
    if (g->advantage_clip_low > g->advantage_clip_high)
        return tp_config_fail(config, "grpo.advantage_clip_low", err,
                              "is above grpo.advantage_clip_high");
    TP_TRY(check_goal(config, g, err));
    TP_TRY(check_shaping(config, g, err));
    TP_TRY(check_loss(config, g, err));
    return check_questions(config, o, err);
}

/* ---- what a run takes ---- */

uint32_t tp_grpo_prompts_drawn(const tp_train_options *o)
{
    const tp_grpo_options *g = tp_grpo_options_of(o);
    return (uint32_t)ceil((double)g->num_prompts * (g->dynamic_sampling ? g->batch_multiplier : 1));
}

int64_t tp_grpo_first_scored(const tp_train_options *o, int64_t n)
{
    const tp_grpo_options *g = tp_grpo_options_of(o);
    bool has_reference = g->loss.kl_penalty != 0 && !g->skip_reference;
    bool all = !isnan(g->logprob_error_threshold) || (g->kl_in_reward && has_reference);
    return all ? 0 : TP_MIN(n, o->policy.train_global_batch_size);
}

void tp_grpo_needs(const tp_train_options *o, tp_algorithm_needs *ret)
{
    const tp_grpo_options *g = tp_grpo_options_of(o);
    double t = o->generation.temperature;
    *ret = (tp_algorithm_needs){.prompts = g->num_prompts,
                                .sequences = g->num_prompts * g->num_generations,
                                .temperature = g->at_temperature && t > 0 && t != 1 ? t : 0,
                                .reference = g->loss.kl_penalty != 0 && !g->skip_reference,
                                .loader_bytes =
                                    tp_microbatch_bytes((int32_t)tp_trainer_token_budget(o))};
    int64_t n = ret->sequences;
    ret->scores_policy = (double)(n - tp_grpo_first_scored(o, n)) / (double)n;
}
