/* bench_train.c - steps of training on random tokens: what `temper train` does in a step,
 * without data and checkpoints. */
#include <string.h>

#include "api/bench_subjects.h"
#include "base/rng.h"
#include "engine/train/session.h"

enum { THROUGHPUT, TIME, SAMPLES, TOKENS, FLOPS, OWN };

typedef struct {
    tp_bench_subject base;
    tp_device *device;
    tp_model *model;
    tp_session *session;
    int64_t n_tokens, n_steps;
    double flops, norm;
    int32_t *tokens, *positions, *targets, *cu;
    float *weights;
} train_subject;

static void make_batch(train_subject *s)
{
    const tp_bench_case *c = s->base.c;
    size_t n = (size_t)s->n_tokens;
    uint64_t vocab = (uint64_t)tp_model_get_info(s->model)->vocab;
    tp_rng rng = tp_rng_make(1, 2);
    for (size_t i = 0; i < n; i++) {
        s->tokens[i] = (int32_t)tp_rng_below(&rng, vocab);
        s->targets[i] = (int32_t)tp_rng_below(&rng, vocab);
        s->positions[i] = (int32_t)((int64_t)i % c->sequence_length);
        s->weights[i] = 1.0f / (float)n;
    }
    for (int64_t i = 0; i <= s->n_tokens; i++)
        s->cu[i] = (int32_t)(i < c->batch_size ? i * c->sequence_length : s->n_tokens);
}

static tp_status make_session(train_subject *s, tp_error *err)
{
    const tp_bench_case *c = s->base.c;
    tp_session_options o = {
        .tokens = s->n_tokens, .max_positions = c->sequence_length, .compile.share_memory = true};
    TP_TRY(tp_bench_device(c, &s->device, err));
    o.compile.device = s->device;
    TP_TRY(tp_bench_precision(c->precision, &o.compile.passes.compute_dtype, err));
    TP_TRY(tp_recompute_parse("none", &o.compile.passes.recompute,
                              &o.compile.passes.recompute_every, err));
    TP_TRY(tp_bench_model(c->model, &s->model, err));
    int64_t longest = tp_model_get_info(s->model)->max_positions;
    if (c->sequence_length > longest)
        return tp_fail(err, TP_ERR_CONFIG, "'%s' takes at most %lld positions, not %lld", c->model,
                       (long long)longest, (long long)c->sequence_length);
    TP_TRY(tp_session_create(s->model, &o, &s->session, err));
    TP_TRY(tp_session_alloc(s->session, err));
    TP_TRY(tp_model_init_random(s->model, tp_session_states(s->session), 1, 0, err));
    TP_TRY(tp_session_weights_changed(s->session, err));
    tp_session_plan plan;
    tp_session_get_plan(s->session, &plan);
    s->flops = plan.train_flops;
    return TP_OK;
}

static tp_status step(train_subject *s, double *ret_loss, tp_error *err)
{
    tp_batch_view batch = {s->tokens, s->positions, s->targets, s->cu, s->weights, 0};
    double norm;
    TP_TRY(tp_session_train(s->session, &batch, true, ret_loss, err));
    TP_TRY(tp_session_grad_norm(s->session, &norm, err));
    tp_optimizer_scalars update =
        tp_adamw_scalars(1e-4, 0.9, 0.95, 1e-8, 0.1, ++s->n_steps, norm > 1 ? 1 / norm : 1);
    return tp_session_update(s->session, &update, err);
}

static tp_status set_up(tp_subject *subject, tp_error *err)
{
    train_subject *s = (train_subject *)subject;
    const tp_bench_case *c = s->base.c;
    if (__builtin_mul_overflow(c->batch_size, c->sequence_length, &s->n_tokens) ||
        s->n_tokens > 1 << 28)
        return tp_fail(err, TP_ERR_CONFIG, "a batch of %lld sequences of %lld tokens is too large",
                       (long long)c->batch_size, (long long)c->sequence_length);
    TP_TRY(make_session(s, err));
    size_t n = (size_t)s->n_tokens + 1;
    int32_t **arrays[] = {&s->tokens, &s->positions, &s->targets, &s->cu};
    for (size_t i = 0; i < 4; i++)
        *arrays[i] = calloc(n, sizeof(int32_t));
    s->weights = calloc(n, sizeof(float));
    if (!s->tokens || !s->positions || !s->targets || !s->cu || !s->weights)
        return tp_fail(err, TP_ERR_NOMEM, "no memory for a batch of %zu tokens", n);
    make_batch(s);
    double loss;
    for (int64_t i = 0; i < c->warm_up; i++)
        TP_TRY(step(s, &loss, err));
    return TP_OK;
}

static tp_status run(tp_subject *subject, uint64_t work, tp_bench_sample *ret, tp_error *err)
{
    train_subject *s = (train_subject *)subject;
    double loss = 0, bytes = 0, tokens = (double)work * (double)s->n_tokens;
    for (uint64_t i = 0; i < work; i++) {
        TP_TRY(step(s, &loss, err));
        bytes += (double)tp_mem_get_stats().total_current;
    }
    ret->amount[THROUGHPUT] = tokens;
    ret->amount[SAMPLES] = (double)work * (double)s->base.c->batch_size;
    ret->values[TOKENS] = tokens;
    ret->values[FLOPS] = s->flops * (double)work;
    ret->has_checksum = true;
    memcpy(&ret->checksum, &loss, sizeof loss);
    tp_bench_fill_memory(ret, OWN, bytes / (double)work);
    return TP_OK;
}

static void tear_down(tp_subject *subject)
{
    train_subject *s = (train_subject *)subject;
    tp_session_free(s->session);
    tp_model_free(s->model);
    tp_device_close(s->device);
    free(s->tokens);
    free(s->positions);
    free(s->targets);
    free(s->cu);
    free(s->weights);
    free(s);
}

static const tp_metric own[OWN] = {[THROUGHPUT] = TP_THROUGHPUT_ROW("tokens/s"),
                                   [TIME] = TP_RUN_TIME_ROW,
                                   [SAMPLES] = TP_RATE_ROW("samples_per_s", "samples/s"),
                                   [TOKENS] = TP_TOKENS_ROW,
                                   [FLOPS] = TP_FLOPS_ROW};

const tp_bench_kind tp_bench_train = {
    .name = "train",
    .class = {.set_up = set_up, .run = run, .tear_down = tear_down},
    .size = sizeof(train_subject),
    .metrics = own,
    .n_metrics = OWN,
    .work_unit = "steps",
    .works_in_steps = true,
};
