/* grpo_update.c - from the rewards of a rollout to new weights. */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/platform.h"
#include "engine/algorithms/grpo_ranks.h"

/* ---- log-probabilities of trained answers ---- */

/* Answers [first, end) that are trained, packed. */
static tp_status arrange(trainer *t, uint32_t first, uint32_t end, tp_error *err)
{
    grpo *g = t->own;
    g->n_trained = 0;
    for (uint32_t i = first; i < end; i++) {
        grpo_sample *s = &g->rollout.samples[i];
        if (!s->is_trained)
            continue;
        g->trained[g->n_trained] = s;
        g->sequences[g->n_trained++] = (tp_batch_sequence){
            .ids = s->ids, .n = s->n_prompt + s->n_answer, .first = s->n_prompt};
    }
    g->arrangement.capacity = (int32_t)tp_trainer_token_budget(t->o);
    g->arrangement.unit = 1;
    g->arrangement.ranks = tp_trainer_shares(t);
    g->arrangement.max_units =
        tp_trainer_is_packed(t->o) ? 0 : (uint32_t)t->o->policy.train_micro_batch_size;
    return tp_batch_arrange(&g->arrangement, g->sequences, g->n_trained, err);
}

/* The answer's log-probabilities in those of a micro-batch. */
static const float *answer_in(const grpo *g, uint32_t sequence, const float *logp)
{
    return logp + g->arrangement.places[sequence].at + g->trained[sequence]->n_prompt - 1;
}

static float *prev_of(const grpo_sample *s) { return s->prev; }
static float *ref_of(const grpo_sample *s) { return s->ref; }

static void make_scores(grpo *g, bool is_reference)
{
    for (uint32_t i = 0; i < g->n_trained; i++) {
        grpo_sample *s = g->trained[i];
        float **to = is_reference ? &s->ref : &s->prev;
        *to = tp_arena_array(&g->arena, float, s->n_answer + 1);
    }
}

/* A micro-batch of each rank. */
static tp_status score_round(trainer *t, bool is_reference, uint32_t round, tp_error *err)
{
    grpo *g = t->own;
    tp_session *session = is_reference ? g->reference : t->session;
    uint32_t ranks = tp_trainer_shares(t), rank = tp_trainer_share(t);
    /* Where there is none left for this rank it takes part: weights may be in parts. */
    uint32_t own = round * ranks + rank, m = TP_MIN(own, g->arrangement.n_micro - 1);
    const float *logp;
    double loss;
    if (tp_trainer_should_stop(t))
        return tp_fail(err, TP_ERR_INTERRUPTED, "stopped between a rollout and its update");
    tp_trainer_stepping(t, is_reference ? "reference" : "log-probabilities", round * ranks,
                        g->arrangement.n_micro);
    tp_batch_fill(&g->arrangement, g->sequences, m, &g->mb);
    tp_batch_view view = tp_trainer_view(&g->mb);
    TP_TRY(tp_session_eval(session, &view, &loss, &logp, err));
    for (uint32_t k = g->arrangement.starts[m]; own == m && k < g->arrangement.starts[m + 1]; k++) {
        uint32_t i = g->arrangement.order[k];
        grpo_sample *s = g->trained[i];
        memcpy(is_reference ? s->ref : s->prev, answer_in(g, i, logp),
               (size_t)s->n_answer * sizeof(float));
    }
    return TP_OK;
}

static tp_status score_rounds(trainer *t, bool is_reference, uint32_t first, uint32_t end,
                              tp_error *err)
{
    grpo *g = t->own;
    double start = tp_clock_s();
    tp_phases_enter(&t->phases, is_reference ? TP_TIME_REFERENCE : TP_TIME_LOGPROBS);
    if (first == 0)
        make_scores(g, is_reference);
    for (uint32_t round = first; round < end; round++)
        TP_TRY(score_round(t, is_reference, round, err));
    *(is_reference ? &g->counts.reference_s : &g->counts.logprob_s) += tp_clock_s() - start;
    return TP_OK;
}

static tp_status score(trainer *t, bool is_reference, uint32_t first, uint32_t end, tp_error *err)
{
    if (is_reference) {
        TP_ZONE("reference");
        return score_rounds(t, true, first, end, err);
    }
    TP_ZONE("logprobs");
    return score_rounds(t, false, first, end, err);
}

/* ---- ahead of the verdicts ---- */

/* Answers that are trained, or are about to be, are those that were expected to. */
static bool is_as_expected(const grpo *g, uint32_t first, uint32_t end)
{
    for (uint32_t i = first; i < end; i++)
        if (g->rollout.samples[i].is_trained != g->rollout.samples[i].is_expected)
            return false;
    return true;
}

/* Of the batch's micro-batches, so many have their scores; they stand by themselves only where the
 * whole batch is arranged as it was then. */
static uint32_t scored_ahead(const grpo *g, uint32_t first, uint32_t end, bool is_reference)
{
    uint32_t done = 2 * g->ahead.first + g->ahead.is_reference, this = 2 * first + is_reference;
    if (this > done || !is_as_expected(g, first, end))
        return 0;
    return this < done ? g->arrangement.n_micro : g->ahead.micro;
}

/* Answers that will be trained if they get a reward. */
static void expect(trainer *t, uint32_t first, uint32_t end)
{
    grpo *g = t->own;
    for (uint32_t i = first; i < end; i++) {
        grpo_sample *s = &g->rollout.samples[i];
        s->is_trained = s->is_expected = tp_grpo_can_train(t, s);
    }
}

/* Of the batch that begins there the policy says beforehand what it thinks. */
static bool scores_policy(const trainer *t, uint32_t first)
{
    const grpo *g = t->own;
    return first >= tp_grpo_first_scored(t->o, g->rollout.n_samples);
}

static uint32_t batch_end(const trainer *t, uint32_t first)
{
    const grpo *g = t->own;
    return TP_MIN(g->rollout.n_samples, first + (uint32_t)t->o->policy.train_global_batch_size);
}

/* The next scores are the reference's, or the next batch's. */
static void move_on(trainer *t)
{
    grpo *g = t->own;
    bool is_last = g->ahead.is_reference || !g->reference;
    g->ahead.micro = 0;
    g->ahead.is_reference = !is_last;
    if (is_last)
        g->ahead.first = batch_end(t, g->ahead.first);
}

tp_status tp_grpo_score_ahead(trainer *t, bool *ret_any, tp_error *err)
{
    grpo *g = t->own;
    uint32_t n = g->rollout.n_samples, first = g->ahead.first;
    *ret_any = first < n && (tp_grpo_first_scored(t->o, n) < n || g->reference);
    if (!*ret_any)
        return TP_OK;
    if (!g->ahead.is_reference && !scores_policy(t, first)) {
        move_on(t);
        return TP_OK;
    }
    if (g->ahead.micro == 0) {
        expect(t, first, batch_end(t, first));
        TP_TRY(arrange(t, first, batch_end(t, first), err));
    }
    if (g->ahead.micro < g->arrangement.n_micro)
        TP_TRY(score(t, g->ahead.is_reference, g->ahead.micro, g->ahead.micro + 1, err));
    if (++g->ahead.micro >= g->arrangement.n_micro)
        move_on(t);
    return TP_OK;
}

/* ---- log-probabilities before the first update ---- */

/* Those that are not there yet, of all ranks. */
static tp_status complete(trainer *t, uint32_t first, uint32_t end, bool is_reference,
                          tp_error *err)
{
    grpo *g = t->own;
    uint32_t ranks = tp_trainer_shares(t), rounds = (g->arrangement.n_micro + ranks - 1) / ranks;
    TP_TRY(score(t, is_reference, scored_ahead(g, first, end, is_reference), rounds, err));
    return tp_grpo_share_scores(t, is_reference ? ref_of : prev_of, err);
}

/* What the policy said when it answered (needed once an update has moved it, or to compare with the
 * generator), and what the reference says. */
static tp_status log_probabilities(trainer *t, uint32_t first, uint32_t end, tp_error *err)
{
    const grpo *g = t->own;
    bool needs_prev = scores_policy(t, first);
    if (!needs_prev && !g->reference)
        return TP_OK;
    TP_TRY(arrange(t, first, end, err));
    if (needs_prev)
        TP_TRY(complete(t, first, end, false, err));
    return g->reference ? complete(t, first, end, true, err) : TP_OK;
}

/* Leave out answers on which generator and training disagree too much. */
static void mask_by_error(trainer *t)
{
    grpo *g = t->own;
    double threshold = options(t)->logprob_error_threshold;
    uint32_t n = 0;
    g->counts.worst_error = -INFINITY;
    g->counts.least_error = INFINITY;
    for (uint32_t i = 0; i < g->rollout.n_samples; i++) {
        grpo_sample *s = &g->rollout.samples[i];
        double sum = 0;
        if (!s->is_trained || !s->prev)
            continue;
        for (int32_t k = 0; k < s->n_answer; k++)
            sum += exp(fabs((double)s->gen[k] - (double)s->prev[k]));
        double mean = sum / s->n_answer;
        g->counts.worst_error = fmax(g->counts.worst_error, mean);
        g->counts.least_error = fmin(g->counts.least_error, mean);
        g->counts.error_sum += mean;
        n++;
        if (!(mean <= threshold)) {
            s->is_trained = false;
            g->counts.masked_by_error++;
            g->counts.masked_correct += s->correct == TP_CORRECT_YES;
        }
    }
    g->counts.error_sum = n ? g->counts.error_sum / n : NAN;
}

/* ---- advantages ---- */

static void spread_over_tokens(trainer *t, double *flat, double *weights)
{
    grpo *g = t->own;
    size_t at = 0;
    for (uint32_t i = 0; i < g->rollout.n_samples; i++) {
        grpo_sample *s = &g->rollout.samples[i];
        double base = s->advantage[0];
        for (int32_t k = 0; k < s->n_answer; k++, at++) {
            double a = base;
            if (options(t)->kl_in_reward && s->ref && s->is_trained)
                a -= options(t)->loss.kl_penalty *
                     tp_policy_kl(&g->loss, (double)s->prev[k], (double)s->ref[k], NULL);
            flat[at] = a;
            weights[at] = s->is_trained;
        }
    }
}

static void collect_tokens(grpo *g, const double *flat)
{
    size_t at = 0;
    g->advantage_sum = 0;
    g->advantage_min = INFINITY;
    g->advantage_max = -INFINITY;
    for (uint32_t i = 0; i < g->rollout.n_samples; i++) {
        grpo_sample *s = &g->rollout.samples[i];
        for (int32_t k = 0; k < s->n_answer; k++, at++) {
            s->advantage[k] = flat[at];
            if (!s->is_trained)
                continue;
            g->advantage_sum += (long double)flat[at];
            g->advantage_min = fmin(g->advantage_min, flat[at]);
            g->advantage_max = fmax(g->advantage_max, flat[at]);
        }
    }
}

static void group_advantages(grpo *g)
{
    uint32_t most = 0;
    for (uint32_t k = 0; k < g->rollout.n_groups; k++)
        most = TP_MAX(most, g->rollout.groups[k].n);
    TP_FREED double *rewards = tp_new(2 * (size_t)most + 1, sizeof *rewards);
    TP_FREED bool *valid = tp_new((size_t)most + 1, sizeof *valid);
    for (uint32_t k = 0; k < g->rollout.n_groups; k++) {
        const grpo_group *group = &g->rollout.groups[k];
        grpo_sample *samples = g->rollout.samples + group->first;
        for (uint32_t i = 0; i < group->n; i++) {
            rewards[i] = samples[i].reward;
            valid[i] = samples[i].is_valid;
        }
        tp_advantage_group(&g->advantage, rewards, valid, group->n, rewards + most);
        for (uint32_t i = 0; i < group->n; i++) {
            samples[i].advantage = tp_arena_array(&g->arena, double, samples[i].n_answer + 1);
            samples[i].advantage[0] = rewards[most + i];
        }
    }
}

static void find_advantages(trainer *t)
{
    grpo *g = t->own;
    size_t n = 0;
    double start = tp_clock_s();
    tp_phases_enter(&t->phases, TP_TIME_ADVANTAGE);
    group_advantages(g);
    for (uint32_t i = 0; i < g->rollout.n_samples; i++)
        n += (size_t)g->rollout.samples[i].n_answer;
    TP_FREED double *flat = tp_new(2 * n + 1, sizeof *flat);
    spread_over_tokens(t, flat, flat + n);
    if (g->advantage.spread == TP_SPREAD_BATCH)
        tp_advantage_whiten(flat, flat + n, n);
    tp_advantage_clip(&g->advantage, flat, n);
    collect_tokens(g, flat);
    g->counts.advantage_s += tp_clock_s() - start;
}

/* ---- an update ---- */

static void add_sequence(grpo *g, uint32_t i, const float *logp, float *w)
{
    const grpo_sample *s = g->trained[i];
    const float *answer = answer_in(g, i, logp);
    tp_policy_sequence sequence = {.logp = answer,
                                   .prev = s->prev,
                                   .gen = s->gen,
                                   .ref = s->ref,
                                   .advantage = s->advantage,
                                   .n = (size_t)s->n_answer,
                                   .is_positive = s->reward > 0};
    tp_policy_loss_add(&g->loss, &g->norm, &sequence, &g->sums, g->gradient);
    float *to = w + (answer - logp);
    for (int32_t k = 0; k < s->n_answer; k++)
        to[k] = (float)-g->gradient[k];
}

/* Between the log-probabilities of a micro-batch and their gradient. */
static void weigh(void *user, const float *logp, float *w, int64_t n)
{
    grpo *g = user;
    memset(w, 0, (size_t)n * sizeof *w);
    if (g->is_idle)
        return;
    for (uint32_t k = g->arrangement.starts[g->micro]; k < g->arrangement.starts[g->micro + 1]; k++)
        add_sequence(g, g->arrangement.order[k], logp, w);
}

static void count_norms(grpo *g)
{
    g->norm = (tp_policy_norm){0};
    for (uint32_t i = 0; i < g->n_trained; i++) {
        const grpo_sample *s = g->trained[i];
        g->norm.tokens += s->n_answer;
        g->norm.sequences += 1;
        g->norm.positive_tokens += s->reward > 0 ? s->n_answer : 0;
    }
}

/* Of one process it is the whole already. */
static void add_part(const trainer *t, step_result *r, const step_result *part)
{
    if (!t->comm) {
        *r = *part;
        return;
    }
    r->trained += part->trained;
    r->used += part->used;
    r->padded += part->padded;
    r->sequences += part->sequences;
    r->flops += part->flops;
    r->n_micro += part->n_micro;
    r->data_hash = part->data_hash;
}

tp_status tp_grpo_replay(trainer *t, uint32_t i, tp_batch_view *ret, tp_error *err)
{
    grpo *g = t->own;
    (void)err;
    g->micro = i;
    g->is_idle = false;
    tp_batch_fill(&g->arrangement, g->sequences, i, &g->mb);
    *ret = tp_trainer_view(&g->mb);
    return TP_OK;
}

static tp_status update(trainer *t, uint32_t first, uint32_t end, step_result *r, tp_error *err)
{
    grpo *g = t->own;
    tp_batch_view view = {0};
    TP_TRY(arrange(t, first, end, err));
    if (g->n_trained == 0)
        return TP_OK; /* nothing to learn from: the weights stay */
    count_norms(g);
    tp_policy_sums_init(&g->sums);
    uint32_t n_micro = g->arrangement.n_micro, ranks = tp_trainer_shares(t);
    uint32_t rounds = (n_micro + ranks - 1) / ranks;
    step_result part = t->comm ? (step_result){.data_hash = r->data_hash} : *r;
    for (uint32_t round = 0; round < rounds; round++) {
        /* Where there is none left for this rank it takes part with one that weighs nothing. */
        uint32_t own = round * ranks + tp_trainer_share(t);
        g->is_idle = own >= n_micro;
        g->micro = g->is_idle ? n_micro - 1 : own;
        tp_session_set_last(t->session, round + 1 == rounds);
        tp_trainer_stepping(t, "update", round, rounds);
        tp_phases_enter(&t->phases, TP_TIME_DATA);
        tp_batch_fill(&g->arrangement, g->sequences, g->micro, &g->mb);
        view = tp_trainer_view(&g->mb);
        tp_trainer_stopwatch w = tp_trainer_begin_graph(t);
        {
            TP_ZONE("forward_backward");
            TP_TRY(tp_session_train_weighed(t->session, &view, round == 0, weigh, g, err));
        }
        tp_trainer_end_graph(t, w);
        if (!g->is_idle)
            tp_trainer_count(t, &g->mb, &part);
    }
    TP_TRY(tp_grpo_join(t, &g->sums, &part, err));
    add_part(t, r, &part);
    tp_policy_sums_merge(&g->total, &g->sums);
    g->n_updates++;
    r->loss = g->sums.loss; /* of this update, for its own check */
    tp_status status = tp_trainer_update(t, r, g->arrangement.n_micro, err);
    g->grad_norm_max = fmax(g->grad_norm_max, r->grad_norm);
    return status;
}

/* ---- all of a step's learning ---- */

tp_status tp_grpo_learn(trainer *t, step_result *r, tp_error *err)
{
    grpo *g = t->own;
    uint32_t n = g->rollout.n_samples, batch = (uint32_t)t->o->policy.train_global_batch_size;
    bool compares = !isnan(options(t)->logprob_error_threshold);
    for (uint32_t first = 0; first < n; first += batch)
        TP_TRY(log_probabilities(t, first, TP_MIN(n, first + batch), err));
    if (compares)
        mask_by_error(t);
    find_advantages(t);
    if (tp_trainer_should_stop(t))
        return tp_fail(err, TP_ERR_INTERRUPTED, "stopped between a rollout and its update");
    double start = tp_clock_s();
    tp_policy_sums_init(&g->total);
    /* From here on the step is completed whatever is asked. */
    for (uint32_t first = 0; first < n; first += batch)
        TP_TRY(update(t, first, TP_MIN(n, first + batch), r, err));
    g->counts.training_s = tp_clock_s() - start;
    r->loss = g->n_updates ? g->total.loss / (double)g->n_updates : 0;
    return TP_OK;
}

/* ---- graphs of another size ---- */

tp_status tp_grpo_take_graphs(trainer *t, tp_error *err)
{
    grpo *g = t->own;
    g->engine = t->graphs.engine;
    g->reference = t->graphs.reference;
    return tp_engine_alloc(g->engine, err);
}

tp_status tp_grpo_resize(trainer *t, tp_error *err)
{
    grpo *g = t->own;
    tp_microbatch_release(&g->mb);
    TP_TRY(tp_grpo_take_graphs(t, err));
    return tp_microbatch_init(&g->mb, (int32_t)tp_trainer_token_budget(t->o), err);
}
