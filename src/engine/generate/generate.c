#include "engine/generate/generate.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

typedef struct {
    tp_graph graph;
    tp_exec *exec;
    int in_tokens, in_positions;
} program;

struct tp_generator {
    const tp_model *model;
    tp_generator_options options;
    tp_states *states;
    program prefill, decode;
    tp_exec_pool pool;
    int32_t *tokens, *positions; /* prefill_chunk each */
    uint64_t *scratch;           /* vocabulary */
};

static tp_status build(tp_generator *gen, program *p, int64_t T, bool with_head, tp_error *err)
{
    const tp_generator_options *o = &gen->options;
    TP_TRY(tp_graph_init(&p->graph, err));
    tp_graph *g = &p->graph;
    tp_forward forward = {.tokens = tp_graph_input(g, "tokens", TP_DTYPE_I32, 1, &T),
                          .positions = tp_graph_input(g, "positions", TP_DTYPE_I32, 1, &T),
                          .max_positions = o->max_length,
                          .cache_rows = o->max_length,
                          .cache_dtype = o->compute_dtype};
    tp_ref hidden, head, logits = 0;
    TP_TRY(tp_model_forward(gen->model, g, &forward, &hidden, &head, err));
    g->block = -1;
    if (with_head) {
        tp_ref in[] = {hidden, head};
        logits = tp_graph_op(g, TP_OP_linear, NULL, 2, in, "lm_head");
        tp_graph_output(g, logits);
    }
    for (uint32_t i = 1; i < g->n_nodes; i++)
        if (g->nodes[i].op == TP_OP_kv_attention) {
            tp_graph_output(g, g->nodes[i].out[1]);
            tp_graph_output(g, g->nodes[i].out[2]);
        }
    tp_pass_options passes = {.compute_dtype = o->compute_dtype};
    TP_TRY(tp_passes_run(g, &passes, err));
    if (with_head) /* rounded logits would make ties that the model does not have */
        g->values[g->outputs[0]].dtype = TP_DTYPE_F32;
    tp_exec_options exec = {.backend = o->backend,
                            .threads = o->threads,
                            .share_memory = true,
                            .avg_context = 0.5 * (double)o->max_length};
    TP_TRY(tp_exec_create(g, &exec, &p->exec, err));
    tp_exec_pool_fit(&gen->pool, p->exec);
    for (uint32_t i = 1; i < g->n_nodes; i++) {
        const tp_value *v = &g->values[g->nodes[i].out[0]];
        if (g->nodes[i].op == TP_OP_state)
            TP_TRY(tp_states_declare(gen->states, v->name, v->dtype, v->rank, v->dim, v->kind,
                                     err));
    }
    return TP_OK;
}

static tp_status bind(tp_generator *gen, program *p, tp_error *err)
{
    TP_TRY(tp_exec_bind(p->exec, gen->states, &gen->pool, err));
    p->in_tokens = tp_exec_input(p->exec, "tokens");
    p->in_positions = tp_exec_input(p->exec, "positions");
    return TP_OK;
}

static tp_status create(tp_generator *gen, tp_error *err)
{
    TP_TRY(tp_model_declare(gen->model, gen->options.max_length, gen->states, err));
    TP_TRY(build(gen, &gen->decode, 1, true, err));
    TP_TRY(build(gen, &gen->prefill, gen->options.prefill_chunk, false, err));
    TP_TRY(tp_states_alloc(gen->states, err));
    TP_TRY(tp_exec_pool_alloc(&gen->pool, err));
    TP_TRY(bind(gen, &gen->decode, err));
    TP_TRY(bind(gen, &gen->prefill, err));
    gen->tokens = calloc((size_t)gen->options.prefill_chunk, sizeof *gen->tokens);
    gen->positions = calloc((size_t)gen->options.prefill_chunk, sizeof *gen->positions);
    gen->scratch = calloc((size_t)tp_model_get_info(gen->model)->vocab, sizeof *gen->scratch);
    TP_ASSERT(gen->tokens && gen->positions && gen->scratch);
    return TP_OK;
}

tp_status tp_generator_create(const tp_model *model, const tp_generator_options *options,
                              tp_states *states, tp_generator **ret, tp_error *err)
{
    tp_generator *gen = calloc(1, sizeof *gen);
    TP_ASSERT(gen);
    gen->model = model;
    gen->options = *options;
    gen->states = states;
    if (gen->options.prefill_chunk <= 0)
        gen->options.prefill_chunk = 64;
    tp_status status = create(gen, err);
    if (status != TP_OK) {
        tp_generator_free(gen);
        return status;
    }
    *ret = gen;
    return TP_OK;
}

void tp_generator_free(tp_generator *gen)
{
    if (!gen)
        return;
    tp_exec_free(gen->prefill.exec);
    tp_exec_free(gen->decode.exec);
    tp_graph_release(&gen->prefill.graph);
    tp_graph_release(&gen->decode.graph);
    tp_exec_pool_release(&gen->pool);
    free(gen->tokens);
    free(gen->positions);
    free(gen->scratch);
    free(gen);
}

void tp_generator_weights_changed(tp_generator *gen)
{
    tp_model_fill_constants(gen->model, gen->states);
    tp_refresh_shadows(gen->states, gen->options.backend, gen->options.threads);
}

/* The prompt but for its last token goes through the cache in chunks; rows past its
 * end are marked as padding. */
static void prefill(tp_generator *gen, const int32_t *prompt, size_t n)
{
    size_t chunk = (size_t)gen->options.prefill_chunk;
    for (size_t at = 0; at + 1 < n; at += chunk) {
        for (size_t i = 0; i < chunk; i++) {
            bool real = at + i + 1 < n;
            gen->tokens[i] = real ? prompt[at + i] : 0;
            gen->positions[i] = real ? (int32_t)(at + i) : -1;
        }
        tp_exec_set_input(gen->prefill.exec, gen->prefill.in_tokens, gen->tokens);
        tp_exec_set_input(gen->prefill.exec, gen->prefill.in_positions, gen->positions);
        tp_exec_run(gen->prefill.exec, true);
    }
}

static const float *decode(tp_generator *gen, int32_t token, int32_t position)
{
    gen->tokens[0] = token;
    gen->positions[0] = position;
    tp_exec_set_input(gen->decode.exec, gen->decode.in_tokens, gen->tokens);
    tp_exec_set_input(gen->decode.exec, gen->decode.in_positions, gen->positions);
    tp_exec_run(gen->decode.exec, true);
    return tp_exec_output(gen->decode.exec, 0)->data;
}

static tp_status check_prompt(const tp_generator *gen, const int32_t *prompt, size_t n,
                              tp_error *err)
{
    int64_t vocab = tp_model_get_info(gen->model)->vocab;
    if (n == 0)
        return tp_fail(err, TP_ERR_CONFIG, "the prompt has no tokens");
    if (n >= (size_t)gen->options.max_length)
        return tp_fail(err, TP_ERR_CONFIG,
                       "the prompt has %zu tokens; with room for an answer at most %lld fit", n,
                       (long long)gen->options.max_length - 1);
    for (size_t i = 0; i < n; i++)
        if (prompt[i] < 0 || prompt[i] >= vocab)
            return tp_fail(err, TP_ERR_FORMAT, "token id %d is outside the model's vocabulary of "
                                               "%lld: tokenizer and model do not belong together",
                           prompt[i], (long long)vocab);
    return TP_OK;
}

tp_status tp_generator_logits(tp_generator *gen, const int32_t *prompt, size_t n,
                              const float **ret_logits, tp_error *err)
{
    TP_TRY(check_prompt(gen, prompt, n, err));
    prefill(gen, prompt, n);
    *ret_logits = decode(gen, prompt[n - 1], (int32_t)n - 1);
    return TP_OK;
}

static bool is_stop(const tp_generate_options *o, int32_t id)
{
    for (size_t i = 0; i < o->n_stop; i++)
        if (o->stop[i] == id)
            return true;
    return false;
}

tp_status tp_generate(tp_generator *gen, const int32_t *prompt, size_t n,
                      const tp_generate_options *o, tp_generate_result *ret, tp_error *err)
{
    size_t vocab = (size_t)tp_model_get_info(gen->model)->vocab;
    tp_generate_result r = {.prompt_tokens = (int64_t)n};
    TP_TRY(check_prompt(gen, prompt, n, err));
    double start = tp_clock_s();
    prefill(gen, prompt, n);
    r.prefill_s = tp_clock_s() - start;
    int64_t room = gen->options.max_length - (int64_t)n;
    int64_t limit = o->max_new_tokens < room ? o->max_new_tokens : room;
    int32_t token = prompt[n - 1];
    for (int64_t position = (int64_t)n - 1; r.new_tokens < limit; position++) {
        float logp;
        const float *logits = decode(gen, token, (int32_t)position);
        token = tp_sample(logits, vocab, (size_t)o->n_tokens, &o->sampling, (uint64_t)position,
                          gen->scratch, &logp);
        if (is_stop(o, token)) {
            r.hit_stop = true;
            break;
        }
        r.new_tokens++;
        if (o->on_token && !o->on_token(o->user, token, logp))
            break;
    }
    r.decode_s = tp_clock_s() - start - r.prefill_s;
    *ret = r;
    return TP_OK;
}
