/* dpo.c - direct preference optimisation: the step and its validation.
 *
 * A step's pairs are packed, both answers of a pair in one micro-batch, so the loss of a
 * pair is known between the log-probabilities and the gradient of the same pass
 * (objective.h). */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/platform.h"
#include "engine/algorithms/algorithms.h"
#include "engine/algorithms/dpo_internal.h"
#include "engine/data/order.h"
#include "engine/train/option_rows.h"

/* ---- keys ---- */

static_assert(sizeof(tp_preference_loss) <= TP_OWN_OPTION_BYTES, "see tp_train_options.own");

#define HOLDER tp_preference_loss
#define HOLDER_AT TP_OWN_OPTIONS
/* clang-format off */
static const tp_option keys[] = {
    LOOP_ROWS("dpo", "1", "Passes over the training pairs.", "150",
              "Optimizer steps; whichever of the two limits comes first ends the run.", "25",
              "true")
    VALIDATION_ROWS("dpo", "8", "Pairs per validation batch.")
    REAL("dpo.reference_policy_kl_penalty", beta, "0.05", 0, 1e6,
         "Beta: how far the policy may move from the reference for a given preference.")
    FLAG("dpo.preference_average_log_probs", average, "false",
         "Rewards are means over an answer's tokens, not sums.")
    FLAG("dpo.sft_average_log_probs", sft_average, "${dpo.preference_average_log_probs}",
         "The same for the SFT term.")
    REAL("dpo.preference_loss_weight", preference_weight, "1", 0, 1e6,
         "Weight of the preference loss.")
    REAL("dpo.sft_loss_weight", sft_weight, "0", 0, 1e6,
         "Weight of the chosen answers' negative log-likelihood.")
    ROW_OF("dpo.preference_loss", kind, "sigmoid", tp_preference_kinds,
           "DPO's logistic loss, or IPO's squared one.")
    REAL("dpo.label_smoothing", label_smoothing, "0", 0, 0.5,
         "Share of the labels believed to be wrong (conservative DPO).")
    {0}};
/* clang-format on */

static const tp_algorithm_default defaults[] = {
    {"seed", "${dpo.seed}"},
    {"run.name", "dpo"},
    {"policy.train_global_batch_size", "128"},
    {"policy.train_micro_batch_size", "2"},
    {"checkpointing.metric_name", "val:validation-default_loss"},
    {"checkpointing.save_period", "50"},
    {NULL, NULL}};

static const tp_preference_loss *loss_of(const tp_train_options *o)
{
    return (const tp_preference_loss *)(const void *)o->own.bytes;
}

static tp_status check(tp_config *config, tp_train_options *o, tp_error *err)
{
    const tp_preference_loss *d = loss_of(o);
    if (d->kind != TP_PREFERENCE_IPO)
        return TP_OK;
    if (d->beta == 0)
        return tp_config_fail(config, "dpo.reference_policy_kl_penalty", err,
                              "must be above 0 with dpo.preference_loss=ipo, whose margin is "
                              "1/(2 beta)");
    if (d->label_smoothing != 0)
        return tp_config_fail(config, "dpo.label_smoothing", err,
                              "is of dpo.preference_loss=sigmoid; ipo has none");
    return TP_OK;
}

/* ---- opening ---- */

static tp_status open_training_data(trainer *t, tp_error *err)
{
    dpo *d = tp_new(1, sizeof *d);
    t->own = d;
    d->loss = *loss_of(t->o);
    return tp_dpo_open_data(t, err);
}

static tp_status open_steps(trainer *t, tp_error *err)
{
    dpo *d = t->own;
    TP_TRY(tp_dpo_split_data(t, err));
    TP_TRY(tp_microbatch_init(&d->mb, (int32_t)tp_trainer_token_budget(t->o), err));
    tp_trainer_count_steps(t, d->train.n, (uint64_t)t->o->policy.train_global_batch_size);
    return TP_OK;
}

static const tp_trainer_stage stages[] = {
    {"training data", open_training_data, tp_dpo_describe_data, TP_HAS_MODEL | TP_HAS_TOKENIZER,
     TP_HAS_DATA},
    {"validation data", tp_dpo_open_validation, tp_dpo_describe_validation,
     TP_HAS_MODEL | TP_HAS_TOKENIZER, 0},
    {"steps", open_steps, tp_trainer_describe_steps, TP_HAS_DATA, TP_HAS_STEPS},
    {0}};

static tp_status resize(trainer *t, tp_error *err)
{
    dpo *d = t->own;
    tp_microbatch_release(&d->mb);
    return tp_microbatch_init(&d->mb, (int32_t)tp_trainer_token_budget(t->o), err);
}

static void close_dpo(trainer *t)
{
    dpo *d = t->own;
    if (!d)
        return;
    tp_dpo_close_data(d);
    tp_batch_release(&d->batch.arrangement);
    free(d->batch.pairs);
    free(d->batch.sequences);
    tp_microbatch_release(&d->mb);
    free(d);
}

/* ---- one step ---- */

static void set_weights(const dpo_batch *b, uint32_t sequence_index, double gradient, float *w)
{
    const tp_batch_sequence *s = &b->sequences[sequence_index];
    float *at = w + b->arrangement.places[sequence_index].at;
    for (int32_t k = 1; k < s->n; k++)
        if (s->mask[k])
            at[k - 1] = (float)-gradient;
}

/* Between the log-probabilities of a micro-batch and their gradient. */
static void weigh(void *user, const float *logp, float *w, int64_t n)
{
    dpo *d = user;
    const dpo_batch *b = &d->batch;
    memset(w, 0, (size_t)n * sizeof *w);
    if (d->is_idle)
        return;
    const tp_batch *a = &b->arrangement;
    for (uint32_t k = a->starts[d->micro]; k < a->starts[d->micro + 1]; k += 2) {
        uint32_t i = a->order[k] / 2;
        tp_preference_side chosen, rejected;
        double to_chosen, to_rejected;
        tp_dpo_sides(b, i, logp, &chosen, &rejected);
        tp_preference_loss_add(&d->loss, (double)b->n, &chosen, &rejected, d->into, &to_chosen,
                               &to_rejected);
        set_weights(b, 2 * i, to_chosen, w);
        set_weights(b, 2 * i + 1, to_rejected, w);
    }
}

static tp_status draw(trainer *t, tp_error *err)
{
    dpo *d = t->own;
    uint64_t batch = (uint64_t)t->o->policy.train_global_batch_size, n = d->train.n;
    uint64_t epoch = (uint64_t)t->state.step / t->steps_per_epoch;
    uint64_t first = (uint64_t)t->state.step % t->steps_per_epoch * batch;
    uint64_t end = first + batch < n ? first + batch : n;
    tp_dpo_batch_begin(&d->batch, (uint32_t)(end - first));
    for (uint64_t i = first; i < end; i++) {
        uint64_t at = tp_epoch_row(t->o->data.shuffle, (uint64_t)t->o->seed, epoch, n, i);
        tp_dpo_batch_add(&d->batch, &d->train.v[at]);
    }
    return tp_dpo_batch_arrange(t, &d->batch, tp_trainer_shares(t), err);
}

/* Of all ranks, each of which has had other pairs. */
static tp_status join_sums(trainer *t, tp_preference_sums *sums, tp_error *err)
{
    double v[sizeof *sums / sizeof(double)] = {0};
    if (tp_trainer_tells(t))
        memcpy(v, sums, sizeof v);
    TP_TRY(tp_comm_sum(t->comm, v, TP_COUNTOF(v), err));
    memcpy(sums, v, sizeof v);
    return TP_OK;
}

/* What is summed then is of a step that is summed already. */
static tp_status replay(trainer *t, uint32_t i, tp_batch_view *ret, tp_error *err)
{
    dpo *d = t->own;
    (void)err;
    d->micro = i;
    d->is_idle = false;
    d->into = &d->replayed;
    tp_batch_fill(&d->batch.arrangement, d->batch.sequences, i, &d->mb);
    *ret = tp_trainer_view(&d->mb);
    return TP_OK;
}

static tp_status step(trainer *t, step_result *r, tp_error *err)
{
    dpo *d = t->own;
    double start = tp_clock_s();
    tp_phases_enter(&t->phases, TP_TIME_DATA);
    TP_TRY(draw(t, err));
    r->wait_s = tp_clock_s() - start;
    d->sums = (tp_preference_sums){0};
    d->into = &d->sums;
    tp_batch_view view = {0};
    uint32_t n_micro = d->batch.arrangement.n_micro, ranks = tp_trainer_shares(t);
    uint32_t rounds = (n_micro + ranks - 1) / ranks;
    for (uint32_t round = 0; round < rounds; round++) {
        if (tp_trainer_should_stop(t))
            return TP_ERR_INTERRUPTED;
        tp_trainer_stepping(t, NULL, round, rounds);
        tp_phases_enter(&t->phases, TP_TIME_DATA);
        /* Where there is none left for this rank it takes part with one that weighs nothing. */
        uint32_t own = round * ranks + tp_trainer_share(t);
        d->is_idle = own >= n_micro;
        d->micro = d->is_idle ? n_micro - 1 : own;
        tp_session_set_last(t->session, round + 1 == rounds);
        tp_batch_fill(&d->batch.arrangement, d->batch.sequences, d->micro, &d->mb);
        view = tp_trainer_view(&d->mb);
        tp_trainer_stopwatch w = tp_trainer_begin_graph(t);
        {
            TP_ZONE("forward_backward");
            TP_TRY(tp_session_train_weighed(t->session, &view, round == 0, weigh, d, err));
        }
        tp_trainer_end_graph(t, w);
        if (!d->is_idle)
            tp_trainer_count(t, &d->mb, r);
    }
    r->loss = d->sums.loss;
    TP_TRY(join_sums(t, &d->sums, err));
    TP_TRY(tp_trainer_join(t, r, err));
    return tp_trainer_update(t, r, n_micro, err);
}

/* ---- validation ---- */

static tp_status evaluate(trainer *t, uint64_t first, uint64_t end, tp_preference_sums *sums,
                          double *ret_tokens, tp_error *err)
{
    dpo *d = t->own;
    dpo_batch *b = &d->batch;
    tp_trainer_working(t, "validation", first, d->validation.n);
    tp_dpo_batch_begin(b, (uint32_t)(end - first));
    for (uint64_t i = first; i < end; i++)
        tp_dpo_batch_add(b, &d->validation.v[i]);
    uint32_t ranks = tp_trainer_shares(t);
    TP_TRY(tp_dpo_batch_arrange(t, b, ranks, err));
    uint32_t n_micro = b->arrangement.n_micro, rank = tp_trainer_share(t);
    for (uint32_t round = 0; round * ranks < n_micro; round++) {
        /* Where there is none left for this rank it takes part: weights may be in parts. */
        uint32_t own = round * ranks + rank, m = TP_MIN(own, n_micro - 1);
        const float *logp;
        double loss;
        if (tp_trainer_should_stop(t))
            return TP_ERR_INTERRUPTED;
        tp_batch_fill(&b->arrangement, b->sequences, m, &d->mb);
        tp_batch_view view = tp_trainer_view(&d->mb);
        TP_TRY(tp_session_eval(t->session, &view, &loss, &logp, err));
        if (own != m)
            continue;
        *ret_tokens += d->mb.n_trained;
        for (uint32_t k = b->arrangement.starts[m]; k < b->arrangement.starts[m + 1]; k += 2) {
            tp_preference_side chosen, rejected;
            double unused;
            tp_dpo_sides(b, b->arrangement.order[k] / 2, logp, &chosen, &rejected);
            tp_preference_loss_add(&d->loss, 1, &chosen, &rejected, sums, &unused, &unused);
        }
    }
    return TP_OK;
}

static tp_status validate(trainer *t, tp_error *err)
{
    dpo *d = t->own;
    tp_preference_sums s = {0};
    double start = tp_clock_s(), tokens = 0;
    uint64_t batch = (uint64_t)t->o->loop.val_global_batch_size, n = d->validation.n;
    uint64_t most = (uint64_t)t->o->loop.val_batches;
    if (n == 0)
        return TP_OK;
    for (uint64_t k = 0; k * batch < n && (most == 0 || k < most); k++) {
        uint64_t end = (k + 1) * batch < n ? (k + 1) * batch : n;
        TP_TRY(evaluate(t, k * batch, end, &s, &tokens, err));
    }
    TP_TRY(join_sums(t, &s, err));
    tokens = tp_trainer_tells(t) ? tokens : 0;
    TP_TRY(tp_comm_sum(t->comm, &tokens, 1, err));
    double beta = d->loss.beta;
    t->val_loss = s.loss / s.pairs;
    t->val_accuracy = s.accuracy / s.pairs;
    tp_metric_bus *bus = &t->metrics;
    tp_trainer_begin_validation(t);
    tp_metric_put(bus, "validation-default/loss", t->val_loss);
    tp_metric_put(bus, "validation-default/preference_loss", s.preference_loss / s.pairs);
    tp_metric_put(bus, "validation-default/sft_loss", s.sft_loss / s.pairs);
    tp_metric_put(bus, "validation-default/accuracy", t->val_accuracy);
    tp_metric_put(bus, "validation-default/rewards_chosen_mean", s.reward_chosen / s.pairs);
    tp_metric_put(bus, "validation-default/rewards_rejected_mean", s.reward_rejected / s.pairs);
    tp_metric_put(bus, "validation-default/num_valid_samples", s.pairs);
    tp_metric_put(bus, "validation-default/global_valid_seqs", 2 * s.pairs);
    tp_metric_put(bus, "validation-default/global_valid_toks", tokens);
    tp_metric_put(bus, "dpo/validation_margin_times_beta",
                  beta * (s.reward_chosen - s.reward_rejected) / s.pairs);
    tp_metric_put(bus, "timing/validation-default/total_validation_time", tp_clock_s() - start);
    tp_metric_put(bus, "timing/validation/total_validation_time", tp_clock_s() - start);
    tp_trainer_end_validation(t);
    return TP_OK;
}

/* ---- records ---- */

static void record(trainer *t, const step_result *r)
{
    const dpo *d = t->own;
    const tp_preference_sums *s = &d->sums;
    double beta = d->loss.beta, n = s->pairs;
    tp_metric_bus *bus = &t->metrics;
    tp_metric_put(bus, "train/preference_loss", s->preference_loss);
    tp_metric_put(bus, "train/sft_loss", s->sft_loss);
    tp_metric_put(bus, "train/accuracy", s->accuracy / n);
    tp_metric_put(bus, "train/rewards_chosen_mean", s->reward_chosen / n);
    tp_metric_put(bus, "train/rewards_rejected_mean", s->reward_rejected / n);
    tp_metric_put(bus, "train/num_valid_samples", n);
    tp_metric_put(bus, "dpo/rewards_chosen_times_beta", beta * s->reward_chosen / n);
    tp_metric_put(bus, "dpo/rewards_rejected_times_beta", beta * s->reward_rejected / n);
    tp_metric_put(bus, "dpo/margin", (s->reward_chosen - s->reward_rejected) / n);
    tp_metric_put(bus, "dpo/margin_times_beta", beta * (s->reward_chosen - s->reward_rejected) / n);
    tp_metric_put(bus, "dpo/logp_chosen_mean", s->logp_chosen / n);
    tp_metric_put(bus, "dpo/logp_rejected_mean", s->logp_rejected / n);
    tp_metric_put(bus, "timing/train/policy_training", r->seconds - r->wait_s);
}

static void result(trainer *t, tp_json_w *w)
{
    const dpo *d = t->own;
    tp_json_w_put_known(w, "val_loss", t->val_loss);
    tp_json_w_put_known(w, "val_accuracy", t->val_accuracy);
    tp_json_w_put_known(w, "reference_s", d ? d->reference_s : NAN);
    tp_json_w_put_bool(w, "reference_was_cached", d && d->reference_was_cached);
}

static void needs(const tp_train_options *o, tp_algorithm_needs *ret)
{
    *ret = (tp_algorithm_needs){.sequences = o->policy.train_global_batch_size,
                                .loader_bytes =
                                    tp_microbatch_bytes((int32_t)tp_trainer_token_budget(o))};
}

static const tp_algorithm_ranking rankings[] = {
    {"val:val_loss", TP_RANK_BY_VAL_LOSS},
    {"val:validation-default_loss", TP_RANK_BY_VAL_LOSS},
    {"val:validation-default_accuracy", TP_RANK_BY_VAL_ACCURACY},
    {"val:accuracy", TP_RANK_BY_VAL_ACCURACY},
    {"train:loss", TP_RANK_BY_TRAIN_LOSS},
    {NULL, TP_RANK_BY_AGE}};

static const char *const source_keys[] = {"prompt_key", "chosen_key", "rejected_key", NULL};

const tp_algorithm tp_algorithm_dpo = {
    .name = "dpo",
    .title = "DPO",
    .fixed = "data, share held out, tokenizer, batch size, longest sequence or shuffling",
    .options = keys,
    .defaults = defaults,
    .rankings = rankings,
    .source_keys = source_keys,
    .check = check,
    .val_loss = "validation-default/loss",
    .val_accuracy = "validation-default/accuracy",
    .is_preference = true,
    .runs_on_ranks = true,
    .shares_layers = true,
    .sequences_per_unit = 2,
    .alignment = 64, /* what attention computes at a time, see backend/cpu/attention_block.h */
    .is_weighted = true,
    .resumes_with_reference = true,
    .needs = needs,
    .stages = stages,
    .replay = replay,
    .resize = resize,
    .ready = tp_dpo_reference,
    .ready_is_work = true,
    .step = step,
    .validate = validate,
    .record = record,
    .result = result,
    .close = close_dpo};
