/* bench_generate.c - answers to random prompts: a step is batch_size prompts of
 * sequence_length tokens, each continued by NEW_TOKENS greedy ones. */
#include "api/bench_subjects.h"
#include "base/rng.h"
#include "engine/device/memory.h"
#include "engine/generate/engine.h"

enum { THROUGHPUT, TIME, PREFILL, DECODE, TOKENS, OWN, NEW_TOKENS = 32 };

typedef struct {
    tp_bench_subject base;
    tp_device *device;
    tp_model *model;
    tp_states states;
    bool has_states;
    tp_engine *engine;
    int32_t *prompts; /* [batch_size, sequence_length] */
    int64_t *requests;
    uint64_t checksum;
} generate_subject;

/* The ids of a finished request go into the checksum. */
static tp_status take(generate_subject *s, int64_t request, tp_error *err)
{
    tp_sample_result r = tp_engine_sample(s->engine, request, 0);
    if (r.finish != TP_FINISH_LENGTH)
        return tp_fail(err, TP_ERR_CONFIG, "generation ended by %s after %zu of %d tokens",
                       tp_finish_name(r.finish), r.n, NEW_TOKENS);
    for (size_t i = 0; i < r.n; i++)
        s->checksum = s->checksum * 1099511628211u ^ (uint64_t)(uint32_t)r.ids[i];
    tp_engine_forget(s->engine, request);
    return TP_OK;
}

/* One step: the whole batch in flight at once. */
static tp_status step(generate_subject *s, tp_error *err)
{
    int64_t length = s->base.c->sequence_length;
    for (int64_t i = 0; i < s->base.c->batch_size; i++) {
        tp_request request = {.prompt = s->prompts + i * length,
                              .n_prompt = (size_t)length,
                              .max_new_tokens = NEW_TOKENS};
        TP_TRY(tp_engine_submit(s->engine, &request, &s->requests[i], err));
    }
    TP_TRY(tp_engine_run(s->engine, err));
    for (int64_t i = 0; i < s->base.c->batch_size; i++)
        TP_TRY(take(s, s->requests[i], err));
    return TP_OK;
}

static tp_status make_engine(generate_subject *s, tp_error *err)
{
    const tp_bench_case *c = s->base.c;
    tp_engine_options o = {.max_length = c->sequence_length + NEW_TOKENS};
    TP_TRY(tp_bench_device(c, &s->device, err));
    o.device = s->device;
    TP_TRY(tp_bench_precision(c->precision, &o.compute_dtype, err));
    o.cache_dtype = o.compute_dtype;
    TP_TRY(tp_bench_model(c->model, &s->model, err));
    if (o.max_length > tp_model_get_info(s->model)->max_positions)
        return tp_fail(err, TP_ERR_CONFIG, "'%s' takes at most %lld positions, not %lld", c->model,
                       (long long)tp_model_get_info(s->model)->max_positions,
                       (long long)o.max_length);
    TP_TRY(tp_states_init(&s->states, err));
    s->has_states = true;
    TP_TRY(tp_engine_create(s->model, &o, &s->states, &s->engine, err));
    TP_TRY(tp_engine_alloc(s->engine, err));
    TP_TRY(tp_model_init_random(s->model, &s->states, 1, 0, err));
    return tp_engine_weights_changed(s->engine, err);
}

static tp_status set_up(tp_subject *subject, tp_error *err)
{
    generate_subject *s = (generate_subject *)subject;
    TP_TRY(make_engine(s, err));
    size_t n = (size_t)s->base.c->batch_size * (size_t)s->base.c->sequence_length;
    s->prompts = calloc(n, sizeof *s->prompts);
    s->requests = calloc((size_t)s->base.c->batch_size, sizeof *s->requests);
    if (!s->prompts || !s->requests)
        return tp_fail(err, TP_ERR_NOMEM, "no memory for %zu tokens of prompts", n);
    tp_rng rng = tp_rng_make(1, 3);
    uint64_t vocab = (uint64_t)tp_model_get_info(s->model)->vocab;
    for (size_t i = 0; i < n; i++)
        s->prompts[i] = (int32_t)tp_rng_below(&rng, vocab);
    for (int64_t i = 0; i < s->base.c->warm_up; i++)
        TP_TRY(step(s, err));
    return TP_OK;
}

static tp_status run(tp_subject *subject, uint64_t work, tp_bench_sample *ret, tp_error *err)
{
    generate_subject *s = (generate_subject *)subject;
    double prompts = (double)work * (double)s->base.c->batch_size, tokens = prompts * NEW_TOKENS;
    s->checksum = 0;
    tp_engine_reset_stats(s->engine);
    for (uint64_t i = 0; i < work; i++)
        TP_TRY(step(s, err));
    tp_engine_stats stats = tp_engine_get_stats(s->engine);
    ret->amount[THROUGHPUT] = tokens;
    ret->values[PREFILL] = (double)stats.prefill_tokens / stats.prefill_s;
    ret->values[DECODE] = (tokens - prompts) / stats.decode_s;
    ret->values[TOKENS] = tokens;
    ret->has_checksum = true;
    ret->checksum = s->checksum;
    tp_bench_fill_memory(ret, OWN, (double)tp_mem_get_stats().total_current);
    return TP_OK;
}

static void tear_down(tp_subject *subject)
{
    generate_subject *s = (generate_subject *)subject;
    tp_engine_free(s->engine);
    if (s->has_states)
        tp_states_release(&s->states);
    tp_device_close(s->device);
    tp_model_free(s->model);
    free(s->requests);
    free(s->prompts);
    free(s);
}

static const tp_metric own[OWN] = {[THROUGHPUT] = TP_THROUGHPUT_ROW("tokens/s"),
                                   [TIME] = TP_RUN_TIME_ROW,
                                   [PREFILL] = TP_SPEED_ROW("prefill", "tokens/s"),
                                   [DECODE] = TP_SPEED_ROW("decode", "tokens/s"),
                                   [TOKENS] = TP_TOKENS_ROW};

const tp_bench_kind tp_bench_generate = {
    .name = "generate",
    .class = {.set_up = set_up, .run = run, .tear_down = tear_down},
    .size = sizeof(generate_subject),
    .metrics = own,
    .n_metrics = OWN,
    .work_unit = "steps",
    .works_in_steps = true,
};
