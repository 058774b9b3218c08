/* bench_generate.c - answers to random prompts: a step is batch_size prompts of
 * sequence_length tokens, each continued by NEW_TOKENS greedy ones. */
#include <string.h>

#include "base/rng.h"
#include "cli/bench_subjects.h"
#include "engine/generate/generate.h"
#include "engine/tensor/memory.h"

enum { THROUGHPUT, TIME, PREFILL, DECODE, TOKENS, OWN, NEW_TOKENS = 32 };

typedef struct {
    tp_subject subject;
    tp_metric metrics[OWN + TP_BENCH_SHARED];
    const tp_bench_case *c;
    tp_model *model;
    tp_states states;
    bool has_states;
    tp_generator *generator;
    int32_t *prompt;
    uint64_t checksum;
} generate_subject;

static bool on_token(void *user, int32_t id, float logp)
{
    generate_subject *s = user;
    (void)logp;
    s->checksum = s->checksum * 1099511628211u ^ (uint64_t)(uint32_t)id;
    return true;
}

/* One step; adds to the seconds of both phases. */
static tp_status step(generate_subject *s, double *prefill_s, double *decode_s, tp_error *err)
{
    tp_generate_options options = {.max_new_tokens = NEW_TOKENS, .on_token = on_token, .user = s};
    tp_generate_result result;
    for (int64_t i = 0; i < s->c->batch_size; i++) {
        TP_TRY(tp_generate(s->generator, s->prompt, (size_t)s->c->sequence_length, &options,
                           &result, err));
        *prefill_s += result.prefill_s;
        *decode_s += result.decode_s;
    }
    return TP_OK;
}

static tp_status make_generator(generate_subject *s, tp_error *err)
{
    const tp_bench_case *c = s->c;
    tp_generator_options o = {.threads = tp_bench_threads(c),
                              .max_length = c->sequence_length + NEW_TOKENS};
    TP_TRY(tp_bench_backend(c, &o.backend, err));
    TP_TRY(tp_bench_precision(c->precision, &o.compute_dtype, err));
    TP_TRY(tp_bench_model(c->model, &s->model, err));
    if (o.max_length > tp_model_get_info(s->model)->max_positions)
        return tp_fail(err, TP_ERR_CONFIG, "'%s' takes at most %lld positions, not %lld", c->model,
                       (long long)tp_model_get_info(s->model)->max_positions,
                       (long long)o.max_length);
    TP_TRY(tp_states_init(&s->states, err));
    s->has_states = true;
    TP_TRY(tp_generator_create(s->model, &o, &s->states, &s->generator, err));
    tp_model_init_random(s->model, &s->states, 1, 0);
    tp_generator_weights_changed(s->generator);
    return TP_OK;
}

static tp_status set_up(tp_subject *subject, tp_error *err)
{
    generate_subject *s = (generate_subject *)subject;
    double ignored = 0;
    TP_TRY(make_generator(s, err));
    s->prompt = calloc((size_t)s->c->sequence_length, sizeof *s->prompt);
    if (!s->prompt)
        return tp_fail(err, TP_ERR_NOMEM, "no memory for the prompt");
    tp_rng rng = tp_rng_make(1, 3);
    uint64_t vocab = (uint64_t)tp_model_get_info(s->model)->vocab;
    for (int64_t i = 0; i < s->c->sequence_length; i++)
        s->prompt[i] = (int32_t)tp_rng_below(&rng, vocab);
    for (int64_t i = 0; i < s->c->warm_up; i++)
        TP_TRY(step(s, &ignored, &ignored, err));
    return TP_OK;
}

static tp_status run(tp_subject *subject, uint64_t work, tp_bench_sample *ret, tp_error *err)
{
    generate_subject *s = (generate_subject *)subject;
    double prefill_s = 0, decode_s = 0;
    double prompts = (double)work * (double)s->c->batch_size, tokens = prompts * NEW_TOKENS;
    s->checksum = 0;
    for (uint64_t i = 0; i < work; i++)
        TP_TRY(step(s, &prefill_s, &decode_s, err));
    ret->amount[THROUGHPUT] = tokens;
    ret->values[PREFILL] = prompts * (double)s->c->sequence_length / prefill_s;
    ret->values[DECODE] = tokens / decode_s;
    ret->values[TOKENS] = tokens;
    ret->has_checksum = true;
    ret->checksum = s->checksum;
    tp_bench_fill_memory(ret, OWN, (double)tp_mem_get_stats().total_current);
    return TP_OK;
}

static void tear_down(tp_subject *subject)
{
    generate_subject *s = (generate_subject *)subject;
    tp_generator_free(s->generator);
    if (s->has_states)
        tp_states_release(&s->states);
    tp_model_free(s->model);
    free(s->prompt);
    free(s);
}

static const tp_subject_class generate_class = {
    .set_up = set_up, .run = run, .tear_down = tear_down};

tp_status tp_bench_open_generate(const tp_bench_case *c, tp_subject **ret, tp_error *err)
{
    static const tp_metric own[OWN] = {[THROUGHPUT] = {.name = "throughput",
                                                       .unit = "tokens/s",
                                                       .direction = TP_HIGHER_IS_BETTER,
                                                       .source = TP_METRIC_RATE},
                                       [TIME] = {.name = "time",
                                                 .unit = "s",
                                                 .source = TP_METRIC_DURATION,
                                                 .is_informative = true},
                                       [PREFILL] = {.name = "prefill",
                                                    .unit = "tokens/s",
                                                    .direction = TP_HIGHER_IS_BETTER,
                                                    .is_informative = true},
                                       [DECODE] = {.name = "decode",
                                                   .unit = "tokens/s",
                                                   .direction = TP_HIGHER_IS_BETTER,
                                                   .is_informative = true},
                                       [TOKENS] = {.name = "tokens",
                                                   .unit = "tokens",
                                                   .direction = TP_HIGHER_IS_BETTER,
                                                   .kind = TP_METRIC_EXACT}};
    generate_subject *s = calloc(1, sizeof *s);
    if (!s)
        return tp_fail(err, TP_ERR_NOMEM, "no memory for a benchmark");
    memcpy(s->metrics, own, sizeof own);
    memcpy(s->metrics + OWN, tp_bench_shared_metrics, sizeof tp_bench_shared_metrics);
    s->c = c;
    s->subject = (tp_subject){.class = &generate_class,
                              .metrics = s->metrics,
                              .n_metrics = OWN + TP_BENCH_SHARED,
                              .work_unit = "steps",
                              .work = (uint64_t)c->steps};
    *ret = &s->subject;
    return TP_OK;
}
