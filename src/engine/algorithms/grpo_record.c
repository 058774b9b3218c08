/* grpo_record.c - what a step of learning from rewards says about itself.  Tags are NeMo
 * RL's where it has them; those under rollout/, policy/ and generation/ are ours. */
#include <math.h>
#include <string.h>

#include "base/files.h"
#include "engine/algorithms/grpo_internal.h"

static double share(double a, double of) { return of > 0 ? a / of : NAN; }
static double percent(double a, double of) { return 100 * share(a, of); }

/* Mean of the group means and its standard error: prompts are what is drawn. */
static double reward_mean(const grpo_counts *c)
{
    return c->rewarded ? (double)(c->reward_sum / c->rewarded) : NAN;
}

static double reward_error(const grpo_counts *c)
{
    long double n = c->rewarded, mean = n > 0 ? c->reward_sum / n : 0;
    if (n < 2)
        return NAN;
    long double variance = (c->reward_squares - n * mean * mean) / (n - 1);
    return (double)sqrtl(fmaxl(variance, 0) / n);
}

void tp_grpo_note_reward(trainer *t)
{
    const grpo *g = t->own;
    double reward = reward_mean(&g->counts);
    if (isfinite(reward) && !(reward <= t->state.best_reward))
        t->state.best_reward = reward;
}

static double filtered_reward(const grpo *g)
{
    long double sum = 0, n = 0;
    for (uint32_t i = 0; i < g->rollout.n_samples; i++)
        if (g->rollout.samples[i].is_valid) {
            sum += (long double)g->rollout.samples[i].reward;
            n++;
        }
    return n > 0 ? (double)(sum / n) : NAN;
}

static void record_rewards(trainer *t)
{
    tp_metric_bus *bus = &t->metrics;
    const grpo *g = t->own;
    const grpo_counts *c = &g->counts;
    double groups = (double)c->all_groups;
    double mixed = groups - (double)c->right_groups - (double)c->wrong_groups;
    tp_metric_put(bus, "train/reward", reward_mean(c));
    tp_metric_put(bus, "rollout/raw_reward", share((double)c->raw_reward_sum, (double)c->rewarded));
    tp_metric_put(bus, "train/filtered_reward", filtered_reward(g));
    tp_metric_put(bus, "train/baseline_reward/pct_0", percent((double)c->wrong_groups, groups));
    tp_metric_put(bus, "train/baseline_reward/pct_1", percent((double)c->right_groups, groups));
    tp_metric_put(bus, "train/baseline_reward/pct_mixed", percent(mixed, groups));
    tp_metric_put(bus, "train/advantages/mean",
                  g->total.tokens > 0 ? (double)(g->advantage_sum / (long double)g->total.tokens)
                                      : NAN);
    tp_metric_put(bus, "train/advantages/max", g->advantage_max);
    tp_metric_put(bus, "train/advantages/min", g->advantage_min);
    tp_metric_put(bus, "train/advantages/sum", (double)g->advantage_sum);
    tp_metric_put(bus, "train/num_valid_samples", g->total.sequences);
    tp_metric_put(bus, "train/dynamic_sampling_num_gen_batches", (double)c->draws);
    tp_metric_put(bus, "train/dynamic_sampling_num_discarded_valid_samples",
                  (double)c->discarded_groups * (double)options(t)->num_generations);
    tp_metric_put(bus, "rollout/reward_standard_error", reward_error(c));
    tp_metric_put(bus, "rollout/zero_spread_groups", share((double)c->flat_groups, groups));
    tp_metric_put(bus, "rollout/groups", groups);
    tp_metric_put(bus, "rollout/groups_trained", (double)g->rollout.n_groups);
    tp_metric_put(bus, "rollout/samples", (double)c->samples);
    tp_metric_put(bus, "rollout/prompts_left_out", (double)c->prompts_left_out);
    tp_metric_put(bus, "rollout/overlong_left_out", (double)c->overlong_filtered);
    tp_metric_put(bus, "rollout/unrewarded", (double)tp_grpo_unrewarded(c));
    if (!isnan(t->state.best_reward))
        tp_metric_put(bus, "rollout/best_reward", t->state.best_reward);
    for (int k = 0; k < TP_REWARD_KINDS; k++) {
        char tag[64];
        snprintf(tag, sizeof tag, "rollout/rewards/%s", tp_reward_status_name((tp_reward_status)k));
        tp_metric_put(bus, tag, (double)c->by_status[k]);
    }
}

static void record_lengths(trainer *t)
{
    tp_metric_bus *bus = &t->metrics;
    const grpo *g = t->own;
    const grpo_counts *c = &g->counts;
    double n = (double)c->samples;
    tp_metric_put(bus, "train/mean_prompt_length", share((double)c->prompt_tokens, n));
    tp_metric_put(bus, "train/total_num_tokens", (double)(c->prompt_tokens + c->answer_tokens));
    tp_metric_put(bus, "train/total_turns", n);
    tp_metric_put(bus, "train/avg_turns_per_sample", n > 0 ? 1 : NAN);
    tp_metric_put(bus, "train/natural_termination_rate",
                  share((double)c->by_finish[TP_FINISH_STOP], n));
    tp_metric_put(bus, "train/truncation_rate", grpo_cut_share(c));
    tp_metric_put(bus, "train/mean_total_tokens_per_sample", share((double)c->answer_tokens, n));
    tp_metric_put(bus, "train/mean_gen_tokens_per_sample", share((double)c->answer_tokens, n));
    tp_metric_put(bus, "train/max_gen_tokens_per_sample", (double)c->longest_answer);
}

static void record_policy(trainer *t)
{
    tp_metric_bus *bus = &t->metrics;
    const grpo *g = t->own;
    const tp_policy_sums *s = &g->total;
    double n = s->tokens;
    double many = g->loss.ratio == TP_RATIO_SEQUENCE ? s->sequences : n;
    tp_metric_put(bus, "train/probs_ratio", share(s->ratio, n));
    tp_metric_put(bus, "train/probs_ratio_clamped", share(s->ratio_clipped, n));
    tp_metric_put(bus, "train/probs_ratio_min", s->ratio_min);
    tp_metric_put(bus, "train/probs_ratio_max", s->ratio_max);
    tp_metric_put(bus, "train/probs_ratio_clamped_min", s->ratio_clipped_min);
    tp_metric_put(bus, "train/probs_ratio_clamped_max", s->ratio_clipped_max);
    tp_metric_put(bus, "train/token_mult_prob_error", share(s->mult_error, n));
    tp_metric_put(bus, "train/gen_kl_error", share(s->gen_kl, n));
    tp_metric_put(bus, "train/policy_kl_error", share(s->policy_kl, n));
    tp_metric_put(bus, "train/js_divergence_error", share(s->js, n));
    tp_metric_put(bus, "train/sampling_importance_ratio", share(s->importance, many));
    tp_metric_put(bus, "train/approx_entropy", share(s->entropy, n));
    tp_metric_put(bus, "policy/max_logp_difference", s->max_logp_difference);
    tp_metric_put(bus, "policy/clip_fraction", share(s->clipped_low + s->clipped_high, n));
    tp_metric_put(bus, "policy/clip_fraction_low", share(s->clipped_low, n));
    tp_metric_put(bus, "policy/clip_fraction_high", share(s->clipped_high, n));
    tp_metric_put(bus, "policy/dual_clip_fraction", share(s->dual_clipped, n));
    tp_metric_put(bus, "policy/updates", (double)g->n_updates);
    tp_metric_put(bus, "policy/grad_norm_max", g->grad_norm_max);
    if (g->reference) /* otherwise it is not 0 but unknown */
        tp_metric_put(bus, "train/kl_penalty", share(s->kl, (double)g->n_updates));
    if (g->loss.truncation != TP_TRUNCATE_NONE) {
        bool by_sequence = g->loss.truncation == TP_TRUNCATE_SEQUENCES;
        tp_metric_put(bus, "train/is_oob_ratio", share(s->outside, by_sequence ? s->sequences : n));
    }
    if (g->loss.positive_nll != 0)
        tp_metric_put(bus, "train/positive_nll_loss", share(s->nll, (double)g->n_updates));
    if (!isnan(options(t)->logprob_error_threshold)) {
        tp_metric_put(bus, "train/max_seq_mult_prob_error", g->counts.worst_error);
        tp_metric_put(bus, "train/min_seq_mult_prob_error", g->counts.least_error);
        tp_metric_put(bus, "train/mean_seq_mult_prob_error", g->counts.error_sum);
        tp_metric_put(bus, "train/num_masked_seqs_by_logprob_error",
                      (double)g->counts.masked_by_error);
        tp_metric_put(bus, "train/masked_correct_pct",
                      share((double)g->counts.masked_correct, (double)g->counts.masked_by_error));
    }
}

static void record_times(trainer *t, const step_result *r)
{
    tp_metric_bus *bus = &t->metrics;
    const grpo *g = t->own;
    const grpo_counts *c = &g->counts;
    const tp_engine_stats *e = &c->engine;
    double logp_s = c->logprob_s + c->reference_s;
    double sums = c->generation_s + c->reward_s + logp_s + c->advantage_s + c->training_s;
    tp_metric_put(bus, "timing/train/generation", c->generation_s);
    tp_metric_put(bus, "timing/train/reward_calculation", c->reward_s);
    if (g->judging)
        tp_metric_put(bus, "timing/train/judging_beside", c->judged_beside_s);
    tp_metric_put(bus, "timing/train/policy_and_reference_logprobs", logp_s);
    tp_metric_put(bus, "timing/train/advantage_calculation", c->advantage_s);
    tp_metric_put(bus, "timing/train/policy_training", c->training_s);
    tp_metric_put(bus, "timing/train/unaccounted", r->seconds - sums);
    tp_metric_put(bus, "performance/generation_tokens_per_sec",
                  share((double)c->answer_tokens, c->generation_s));
    tp_metric_put(bus, "performance/policy_training_tokens_per_sec",
                  share((double)r->used, c->training_s));
    if (logp_s > 0)
        tp_metric_put(bus, "performance/policy_and_reference_logprobs_tokens_per_sec",
                      share((double)r->used, logp_s));
    tp_metric_put(bus, "generation/prefill_tokens", (double)e->prefill_tokens);
    tp_metric_put(bus, "generation/shared_prompt_tokens", (double)e->shared_tokens);
    tp_metric_put(bus, "generation/decode_tokens", (double)e->decode_tokens);
    tp_metric_put(bus, "generation/steps", (double)e->steps);
    if (t->o->generation.drafting.tokens > 0) {
        tp_metric_put(bus, "generation/drafted_tokens", (double)e->drafted_tokens);
        tp_metric_put(bus, "generation/accepted_tokens", (double)e->accepted_tokens);
    }
    tp_metric_put(bus, "generation/recomputed_tokens", (double)e->recomputed_tokens);
    tp_metric_put(bus, "generation/preemptions", (double)e->preemptions);
    tp_metric_put(bus, "generation/peak_running", (double)e->peak_running);
    tp_metric_put(bus, "generation/cache_peak_bytes", (double)e->peak_bytes);
}

void tp_grpo_record(trainer *t, const step_result *r)
{
    record_rewards(t);
    record_lengths(t);
    record_policy(t);
    record_times(t, r);
}

/* ---- samples ---- */

static void write_sample(const grpo *g, const grpo_sample *s, tp_buf *out)
{
    const grpo_group *group = &g->rollout.groups[s->group];
    tp_json_w w;
    tp_json_w_init(&w, out, 0);
    tp_json_w_begin(&w, '{');
    tp_json_w_put_str(&w, "id", group->id);
    tp_json_w_put_str(&w, "prompt", group->text);
    tp_json_w_put_str(&w, "truth", group->truth);
    tp_json_w_put_f64(&w, "sample", s->index);
    if (s->text)
        tp_json_w_put_strn(&w, "answer", s->text, s->n_text);
    else
        tp_json_w_put_null(&w, "answer");
    tp_json_w_put_str(&w, "finish", tp_finish_name(s->finish));
    tp_json_w_put_str(&w, "status", tp_reward_status_name(s->status));
    if (s->status == TP_REWARD_NAN) /* what the judge said, not what nobody knows */
        tp_json_w_put_f64(&w, "reward", s->raw_reward);
    else
        tp_json_w_put_known(&w, "reward", s->raw_reward);
    tp_json_w_put_known(&w, "shaped_reward", s->reward);
    tp_json_w_put_known(&w, "advantage", s->n_answer && s->advantage ? s->advantage[0] : NAN);
    tp_json_w_put_f64(&w, "tokens", s->n_answer);
    if (s->verdict)
        tp_json_w_put_raw(&w, "verdict", s->verdict);
    tp_json_w_end(&w, '}');
    tp_buf_addc(out, '\n');
}

/* The first samples of the step, as they were judged. */
void tp_grpo_write_samples(trainer *t)
{
    const grpo *g = t->own;
    uint32_t n = g->rollout.n_samples;
    int64_t most = t->o->log_samples;
    char dir[4096], path[4200];
    TP_OWN(tp_buf) out = {0};
    tp_error err;
    if (most == 0 || n == 0)
        return;
    n = most > 0 && most < n ? (uint32_t)most : n;
    for (uint32_t i = 0; i < n; i++)
        write_sample(g, &g->rollout.samples[i], &out);
    snprintf(path, sizeof path, "%s/step-%lld.jsonl", tp_run_path(t->run, "samples", dir),
             (long long)t->state.step + 1);
    if (tp_dir_make(dir, &err) != TP_OK ||
        tp_file_write_atomic(path, out.data, out.len, &err) != TP_OK)
        tp_trainer_notice(t, "samples could not be written: %s", err.message);
}
