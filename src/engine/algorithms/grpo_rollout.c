/* grpo_rollout.c - from prompts to answers to rewards. */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/platform.h"
#include "engine/algorithms/grpo_ranks.h"
#include "engine/data/order.h"

/* ---- asking ---- */

/* A prompt of a draw on its way; `request` is -1 when it was left out. */
typedef struct {
    tp_prompt prompt;
    int64_t request;
    tp_ids ids;
} asked;

static int64_t room_for_answer(const trainer *t, size_t n_prompt)
{
    int64_t room = t->o->policy.max_total_sequence_length - (int64_t)n_prompt;
    return room < t->o->generation.max_new_tokens ? room : t->o->generation.max_new_tokens;
}

static tp_status submit(trainer *t, const grpo_draw *d, uint32_t i, asked *a, tp_error *err)
{
    grpo *g = t->own;
    tp_request request = {.prompt = a->ids.data,
                          .n_prompt = a->ids.len,
                          .n_samples = d->n_samples,
                          .max_new_tokens = room_for_answer(t, a->ids.len),
                          .sampling = d->sampling,
                          .seed = d->seed,
                          .stream = (d->stream + i) * d->n_samples,
                          .stop_ids = g->stops.data,
                          .n_stop_ids = g->stops.len,
                          .stop_strings = t->o->generation.stop_strings.v,
                          .n_stop_strings = t->o->generation.stop_strings.n};
    a->request = -1;
    if (a->ids.len == 0 || room_for_answer(t, a->ids.len) < 1)
        return TP_OK; /* nothing to go on from, or no room to answer: counted */
    return tp_engine_submit(g->engine, &request, &a->request, err);
}

/* Read, encode and submit prompt i of a draw; what it points to stays in the step's arena. */
static tp_status ask(trainer *t, const grpo_draw *d, uint32_t i, asked *a, tp_error *err)
{
    grpo *g = t->own;
    TP_TRY(tp_prompts_get(d->prompts, d->indices[i], &g->arena, &a->prompt, err));
    TP_TRY(tp_prompt_encode(g->encoder, &a->prompt, &a->ids, NULL, err));
    return submit(t, d, i, a, err);
}

/* ---- taking the answers ---- */

static const char *decode(trainer *t, const tp_sample_result *s, size_t *ret_n)
{
    grpo *g = t->own;
    TP_OWN(tp_buf) text = {0};
    tp_sample_text(t->tokenizer, s, &text);
    const char *kept = tp_arena_strndup(&g->arena, tp_buf_str(&text), text.len);
    *ret_n = text.len;
    return kept;
}

static tp_status take_sample(trainer *t, const asked *a, const tp_sample_result *s,
                             grpo_sample *ret, tp_error *err)
{
    grpo *g = t->own;
    size_t n_prompt = a->ids.len;
    if (s->finish == TP_FINISH_NONFINITE)
        return tp_fail(err, TP_ERR_NUMERIC,
                       "step %lld: the logits behind token %zu of an answer to %s are not finite: "
                       "the weights are broken",
                       (long long)t->state.step + 1, s->n, a->prompt.id);
    ret->ids = tp_arena_array(&g->arena, int32_t, n_prompt + s->n);
    ret->gen = tp_arena_array(&g->arena, float, s->n + 1);
    memcpy(ret->ids, a->ids.data, n_prompt * sizeof(int32_t));
    if (s->n) {
        memcpy(ret->ids + n_prompt, s->ids, s->n * sizeof(int32_t));
        memcpy(ret->gen, s->sampled_logp, s->n * sizeof(float));
    }
    ret->n_prompt = (int32_t)n_prompt;
    ret->n_answer = (int32_t)s->n;
    ret->finish = s->finish;
    ret->text = decode(t, s, &ret->n_text);
    return TP_OK;
}

/* ---- judging ---- */

/* The answers to this process's prompts on their way. */
typedef struct {
    trainer *t;
    const grpo_draw *draw;
    const asked *asked;
    uint32_t *asked_of_group;
    grpo_rollout *to;
    uint32_t first_group, first; /* of them in `to` */
    grpo_counts *counts;
    bool judges; /* each as soon as it has ended */
} answering;

/* Groups of answers that are still to come. */
static void lay_out(answering *a)
{
    grpo_rollout *to = a->to;
    tp_grpo_reserve(to, a->draw->n_prompts, a->draw->n_prompts * a->draw->n_samples);
    a->first_group = to->n_groups;
    a->first = to->n_samples;
    for (uint32_t i = 0; i < a->draw->n_prompts; i++) {
        const asked *from = &a->asked[i];
        if (from->request < 0)
            continue;
        a->asked_of_group[to->n_groups - a->first_group] = i;
        for (uint32_t k = 0; k < a->draw->n_samples; k++)
            to->samples[to->n_samples + k] = (grpo_sample){.prompt = a->draw->indices[i],
                                                           .group = to->n_groups,
                                                           .index = k,
                                                           .raw_reward = NAN,
                                                           .scaled_reward = NAN,
                                                           .reward = NAN};
        to->groups[to->n_groups++] = (grpo_group){.first = to->n_samples,
                                                  .n = a->draw->n_samples,
                                                  .id = from->prompt.id,
                                                  .text = from->prompt.text,
                                                  .truth = from->prompt.truth};
        to->n_samples += a->draw->n_samples;
    }
}

static const asked *asked_of(const answering *a, const grpo_sample *s)
{
    return &a->asked[a->asked_of_group[s->group - a->first_group]];
}

static tp_completion completion_of(const answering *a, const grpo_sample *s)
{
    return (tp_completion){.prompt = &asked_of(a, s)->prompt,
                           .text = s->text,
                           .n_text = s->n_text,
                           .ids = s->ids + s->n_prompt,
                           .n_ids = (size_t)s->n_answer,
                           .sample = s->index,
                           .is_truncated = grpo_was_cut(s)};
}

/* Those that have ended since the last call. */
static tp_status take_ended(answering *a, tp_error *err)
{
    grpo *g = a->t->own;
    for (uint32_t i = a->first; i < a->to->n_samples; i++) {
        grpo_sample *s = &a->to->samples[i];
        if (s->finish != TP_FINISH_NONE)
            continue;
        const asked *from = asked_of(a, s);
        tp_sample_result result = tp_engine_sample(g->engine, from->request, s->index);
        if (result.finish == TP_FINISH_NONE)
            continue;
        TP_TRY(take_sample(a->t, from, &result, s, err));
        const tp_completion completion = completion_of(a, s);
        if (a->judges)
            tp_judging_give(g->judging, &completion, i - a->first);
    }
    return TP_OK;
}

static tp_status generate_answers(answering *a, tp_error *err)
{
    grpo *g = a->t->own;
    tp_engine_stats all = tp_engine_get_stats(g->engine), now;
    bool validates = a->t->phases.current == TP_TIME_VALIDATION;
    uint64_t n = (uint64_t)(all.running + all.waiting);
    for (bool is_busy = true; is_busy;) {
        TP_TRY(tp_engine_step(g->engine, &is_busy, err));
        TP_TRY(take_ended(a, err));
        now = tp_engine_get_stats(g->engine);
        uint64_t done = n - TP_MIN(n, (uint64_t)(now.running + now.waiting));
        if (validates)
            tp_trainer_working(a->t, "validation, answers", done, n);
        else
            tp_trainer_stepping(a->t, "answers", done, n);
        if (is_busy && tp_trainer_should_stop(a->t))
            return tp_fail(err, TP_ERR_INTERRUPTED, "stopped during a rollout");
        if (a->judges && !a->t->comm) /* where others wait for this process they hear of it later */
            TP_TRY(tp_judging_look(g->judging, err));
    }
    return TP_OK;
}

/* Judges that work elsewhere are asked about answers as they end. */
static tp_status begin_judging(answering *a, tp_error *err)
{
    grpo *g = a->t->own;
    if (!options(a->t)->judges_beside || !tp_environment_is_outside(a->draw->env))
        return TP_OK;
    if (!g->judging)
        TP_TRY(tp_judging_create(&g->judging, err));
    TP_TRY(tp_judging_begin(g->judging, a->draw->env, g->pool, a->to->n_samples - a->first, err));
    a->judges = true;
    return TP_OK;
}

/* What waits for verdicts computes what the step needs whatever they are. */
static tp_status wait_for_verdicts(answering *a, tp_rewards *ret, tp_error *err)
{
    trainer *t = a->t;
    grpo *g = t->own;
    double beside_s;
    bool any = a->to == &g->rollout && !options(t)->dynamic_sampling && !t->comm;
    while (any && !tp_judging_is_done(g->judging)) {
        TP_TRY(tp_judging_look(g->judging, err));
        TP_TRY(tp_grpo_score_ahead(t, &any, err));
    }
    if (t->phases.current != TP_TIME_VALIDATION)
        tp_phases_enter(&t->phases, TP_TIME_REWARD);
    TP_TRY(tp_judging_wait(g->judging, ret, &beside_s, err));
    a->counts->judged_beside_s += beside_s;
    return TP_OK;
}

static tp_status find_verdicts(answering *a, tp_rewards *ret, tp_error *err)
{
    grpo *g = a->t->own;
    uint32_t n = a->to->n_samples - a->first;
    if (a->judges)
        return wait_for_verdicts(a, ret, err);
    TP_FREED tp_completion *completions = tp_new(n ? n : 1, sizeof *completions);
    for (uint32_t i = 0; i < n; i++)
        completions[i] = completion_of(a, &a->to->samples[a->first + i]);
    return tp_environment_score(a->draw->env, completions, n, g->pool, ret, err);
}

static tp_status judge(answering *a, tp_error *err)
{
    TP_OWN(tp_rewards) rewards = {0};
    grpo_counts *counts = a->counts;
    TP_TRY(find_verdicts(a, &rewards, err));
    for (uint32_t i = 0; i < rewards.n; i++) {
        tp_grpo_settle(a->t, &a->to->samples[a->first + i], &rewards.v[i], counts);
        if (rewards.v[i].status != TP_REWARD_OK && !counts->why[0])
            snprintf(counts->why, sizeof counts->why, "%s: %s",
                     tp_reward_status_name(rewards.v[i].status), rewards.v[i].why);
    }
    return TP_OK;
}

/* Shaping by length gives answers that are all right or all wrong other rewards: what replaces such
 * groups (dynamic sampling) looks at those before. */
static bool is_flat(const trainer *t, const grpo_group *group, const double *scaled,
                    const bool *valid)
{
    const grpo *g = t->own;
    return options(t)->dynamic_sampling
               ? tp_group_summary(scaled, valid, group->n, g->advantage.floor).is_flat
               : group->used.is_flat;
}

static void summarise_groups(trainer *t, grpo_rollout *r, uint32_t first_group)
{
    const grpo *g = t->own;
    size_t n = (size_t)r->n_samples + 1;
    TP_FREED double *raw = tp_new(3 * n, sizeof *raw);
    double *scaled = raw + n, *used = scaled + n;
    TP_FREED bool *valid = tp_new(n, sizeof *valid);
    for (uint32_t k = first_group; k < r->n_groups; k++) {
        grpo_group *group = &r->groups[k];
        for (uint32_t i = 0; i < group->n; i++) {
            const grpo_sample *s = &r->samples[group->first + i];
            raw[i] = s->raw_reward;
            scaled[i] = s->scaled_reward;
            used[i] = s->reward;
            valid[i] = s->is_valid;
        }
        group->raw = tp_group_summary(raw, valid, group->n, g->advantage.floor);
        group->used = tp_group_summary(used, valid, group->n, g->advantage.floor);
        group->is_flat = is_flat(t, group, scaled, valid);
    }
}

/* ---- a draw ---- */

static void count_draw(const grpo_rollout *r, uint32_t first_group, uint64_t left_out,
                       grpo_counts *c)
{
    c->prompts_left_out += left_out;
    for (uint32_t k = first_group; k < r->n_groups; k++) {
        const grpo_group *group = &r->groups[k];
        c->all_groups++;
        c->flat_groups += group->is_flat;
        c->wrong_groups += group->raw.n_valid > 0 && group->raw.is_flat && group->raw.mean <= 0;
        c->right_groups += group->raw.n_valid > 0 && group->raw.is_flat && group->raw.mean >= 1;
        if (group->raw.n_valid) {
            long double mean = (long double)group->used.mean;
            c->raw_reward_sum += (long double)group->raw.mean;
            c->reward_sum += mean;
            c->reward_squares += mean * mean;
            c->rewarded++;
        }
        for (uint32_t i = 0; i < group->n; i++) {
            const grpo_sample *s = &r->samples[group->first + i];
            c->samples++;
            c->by_finish[s->finish]++;
            c->prompt_tokens += s->n_prompt;
            c->answer_tokens += s->n_answer;
            c->longest_answer = TP_MAX(c->longest_answer, s->n_answer);
        }
    }
}

static tp_status answer_and_judge(answering *a, tp_error *err)
{
    trainer *t = a->t;
    const grpo *g = t->own;
    grpo_counts *counts = a->counts;
    bool validating = t->phases.current == TP_TIME_VALIDATION;
    double start = tp_clock_s();
    TP_TRY(begin_judging(a, err));
    TP_TRY(generate_answers(a, err));
    counts->generation_s += tp_clock_s() - start;
    counts->engine = tp_engine_get_stats(g->engine);
    start = tp_clock_s() - counts->logprob_s - counts->reference_s;
    if (!validating)
        tp_phases_enter(&t->phases, TP_TIME_REWARD);
    TP_TRY(judge(a, err));
    counts->reward_s += tp_clock_s() - counts->logprob_s - counts->reference_s - start;
    return TP_OK;
}

/* The answers to this rank's prompts, judged. */
static tp_status answer(trainer *t, const grpo_draw *d, asked *asked_list, uint32_t *asked_of_group,
                        grpo_rollout *to, grpo_counts *counts, tp_error *err)
{
    grpo *g = t->own;
    answering a = {.t = t,
                   .draw = d,
                   .asked = asked_list,
                   .asked_of_group = asked_of_group,
                   .to = to,
                   .counts = counts};
    double start = tp_clock_s();
    if (t->phases.current != TP_TIME_VALIDATION)
        tp_phases_enter(&t->phases, TP_TIME_GENERATION);
    for (uint32_t i = 0; i < d->n_prompts; i++)
        if (tp_grpo_answers(t, i))
            TP_TRY(ask(t, d, i, &asked_list[i], err));
    lay_out(&a);
    counts->generation_s += tp_clock_s() - start;
    tp_status status = answer_and_judge(&a, err);
    if (a.judges)
        tp_judging_drop(g->judging);
    return status;
}

/* With several ranks, what all of them have answered. */
static tp_status answer_together(trainer *t, const grpo_draw *d, asked *asked_list,
                                 uint32_t *asked_of_group, grpo_rollout *to, grpo_counts *counts,
                                 uint64_t *ret_left_out, tp_error *err)
{
    grpo_rollout mine = {0};
    grpo_counts own = {0};
    tp_status status = answer(t, d, asked_list, asked_of_group, &mine, &own, err);
    counts->generation_s += own.generation_s;
    counts->reward_s += own.reward_s;
    counts->engine = own.engine;
    if (status == TP_OK)
        status = tp_grpo_share(t, d, &mine, asked_of_group, own.why, to, counts, ret_left_out, err);
    free(mine.samples);
    free(mine.groups);
    return status;
}

static tp_status generate(trainer *t, const grpo_draw *d, asked *asked_list,
                          uint32_t *asked_of_group, grpo_rollout *to, grpo_counts *counts,
                          tp_error *err)
{
    uint32_t first_group = to->n_groups;
    uint64_t left_out = 0;
    if (t->comm) {
        TP_TRY(answer_together(t, d, asked_list, asked_of_group, to, counts, &left_out, err));
    } else {
        TP_TRY(answer(t, d, asked_list, asked_of_group, to, counts, err));
        for (uint32_t i = 0; i < d->n_prompts; i++)
            left_out += asked_list[i].request < 0;
    }
    summarise_groups(t, to, first_group);
    count_draw(to, first_group, left_out, counts);
    return TP_OK;
}

static tp_status generate_all(trainer *t, const grpo_draw *draw, grpo_rollout *to,
                              grpo_counts *counts, tp_error *err)
{
    TP_ZONE("generation");
    grpo *g = t->own;
    TP_FREED asked *asked_list = tp_new(draw->n_prompts + 1, sizeof *asked_list);
    TP_FREED uint32_t *asked_of_group = tp_new(draw->n_prompts + 1, sizeof *asked_of_group);
    for (uint32_t i = 0; i < draw->n_prompts; i++)
        asked_list[i].request = -1;
    tp_status status = tp_engine_weights_changed(g->engine, err);
    if (status == TP_OK)
        status = generate(t, draw, asked_list, asked_of_group, to, counts, err);
    for (uint32_t i = 0; i < draw->n_prompts; i++) {
        if (asked_list[i].request >= 0)
            tp_engine_forget(g->engine, asked_list[i].request);
        tp_ids_release(&asked_list[i].ids);
    }
    return status;
}

tp_status tp_grpo_generate(trainer *t, const grpo_draw *draw, grpo_rollout *to, grpo_counts *counts,
                           tp_error *err)
{
    tp_profile_worker(t, TP_WORKER_GENERATION);
    tp_status status = generate_all(t, draw, to, counts, err);
    tp_profile_worker(t, TP_WORKER_POLICY);
    return status;
}

/* ---- the step's rollout ---- */

/* Drop groups that teach nothing, and those beyond what the step needs. */
static void keep_useful(grpo *g, grpo_rollout *r, uint32_t first_group, uint32_t wanted)
{
    uint32_t groups = first_group,
             samples =
                 first_group ? r->groups[first_group - 1].first + r->groups[first_group - 1].n : 0;
    for (uint32_t k = first_group; k < r->n_groups; k++) {
        grpo_group group = r->groups[k];
        if (group.is_flat)
            continue;
        if (groups == wanted) {
            g->counts.discarded_groups++;
            continue;
        }
        memmove(r->samples + samples, r->samples + group.first, group.n * sizeof *r->samples);
        for (uint32_t i = 0; i < group.n; i++)
            r->samples[samples + i].group = groups;
        group.first = samples;
        samples += group.n;
        r->groups[groups++] = group;
    }
    r->n_groups = groups;
    r->n_samples = samples;
}

/* The prompts after the first `drawn` ones, in an order that is new in every epoch. */
static void choose_prompts(const trainer *t, uint64_t drawn, uint64_t *indices, uint32_t n)
{
    const grpo *g = t->own;
    uint64_t count = tp_prompts_count(g->prompts), seed = (uint64_t)t->o->seed;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t epoch = (drawn + i) / count, at = (drawn + i) % count;
        indices[i] = tp_epoch_row(t->o->data.shuffle, seed, epoch, count, at);
    }
}

tp_status tp_grpo_rollout(trainer *t, uint64_t *ret_prompts, tp_error *err)
{
    grpo *g = t->own;
    bool dynamic = options(t)->dynamic_sampling;
    uint32_t wanted = (uint32_t)options(t)->num_prompts;
    uint32_t n = tp_grpo_prompts_drawn(t->o);
    TP_FREED uint64_t *indices = tp_new(n, sizeof *indices);
    uint64_t drawn = 0;
    tp_status status = TP_OK;
    do {
        uint64_t at = (uint64_t)t->state.prompts + drawn;
        uint32_t first_group = g->rollout.n_groups;
        choose_prompts(t, at, indices, n);
        grpo_draw draw = {.prompts = g->prompts,
                          .env = g->env,
                          .indices = indices,
                          .n_prompts = n,
                          .n_samples = (uint32_t)options(t)->num_generations,
                          .stream = at,
                          .seed = (uint64_t)t->o->seed,
                          .sampling = {.temperature = t->o->generation.temperature,
                                       .top_k = t->o->generation.top_k == TP_OPT_UNSET_INT
                                                    ? 0
                                                    : t->o->generation.top_k,
                                       .top_p = t->o->generation.top_p,
                                       .min_p = t->o->generation.min_p}};
        status = tp_grpo_generate(t, &draw, &g->rollout, &g->counts, err);
        drawn += n;
        g->counts.draws++;
        if (dynamic && status == TP_OK)
            keep_useful(g, &g->rollout, first_group, wanted);
    } while (status == TP_OK && dynamic && g->rollout.n_groups < wanted &&
             g->counts.draws < (uint64_t)options(t)->dynamic_max_batches);
    *ret_prompts = drawn;
    return status;
}

void tp_grpo_tell_distribution(trainer *t)
{
    int32_t n_tokens = tp_tokenizer_vocab_size(t->tokenizer);
    int64_t vocab = tp_model_get_info(t->model)->vocab;
    double at = tp_trainer_needs(t->o).temperature;
    bool is_other = t->o->generation.temperature != 1 && at == 0;
    if (at > 0)
        tp_trainer_notice(t,
                          "log-probabilities are those of logits divided by %g, the temperature "
                          "of the rollouts (loss_fn.use_generation_temperature)",
                          at);
    if (n_tokens < vocab)
        tp_trainer_notice(t,
                          "answers are drawn from the %d ids that the tokenizer has, of %lld that "
                          "the model has",
                          n_tokens, (long long)vocab);
    if (is_other || t->o->generation.top_p < 1 || t->o->generation.top_k != TP_OPT_UNSET_INT ||
        t->o->generation.min_p > 0)
        tp_trainer_notice(t, "answers are drawn from another distribution than the one that is "
                             "trained (policy.generation.temperature, top_p, top_k, min_p); "
                             "loss_fn.use_importance_sampling_correction=true weighs for it");
}
