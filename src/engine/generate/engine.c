/* engine.c - an engine from its options, its requests, and what it tells of itself; the step
 * itself is in step.c, who runs in schedule.c. */
#include "engine/generate/engine.h"

#include <math.h>
#include <string.h>

#include "base/platform.h"
#include "engine/generate/engine_internal.h"
#include "engine/model/adapter.h"

enum { DEFAULT_RUNNING = 64, DEFAULT_CACHE_BYTES = 1 << 30 };

const char *tp_finish_name(tp_finish finish)
{
    static const char *const names[] = {"running",   "stop",      "length",   "capacity",
                                        "nonfinite", "cancelled", "ruled_out"};
    return names[finish];
}

/* ---- creating ---- */

static tp_status read_options(tp_engine *e, const tp_engine_options *options, tp_error *err)
{
    tp_engine_options *o = &e->options;
    *o = *options;
    int64_t longest = tp_model_get_info(e->model)->max_positions;
    o->max_length = o->max_length > 0 ? o->max_length : longest;
    o->step_tokens = o->step_tokens > 0 ? o->step_tokens : TP_ENGINE_STEP_TOKENS;
    o->max_running = o->max_running > 0 ? o->max_running : DEFAULT_RUNNING;
    o->block_tokens = o->block_tokens > 0 ? o->block_tokens : TP_ENGINE_BLOCK_TOKENS;
    if (o->max_length < 2)
        return tp_fail(err, TP_ERR_CONFIG, "a length of %lld leaves no room for an answer",
                       (long long)o->max_length);
    if (o->block_tokens % 16 != 0 || o->block_tokens > 4096)
        return tp_fail(err, TP_ERR_CONFIG, "blocks of %lld tokens; expected a multiple of 16",
                       (long long)o->block_tokens);
    if (o->max_running > 1 << 20 || o->step_tokens > 1 << 24)
        return tp_fail(err, TP_ERR_CONFIG, "%lld samples or %lld tokens in a step are too many",
                       (long long)o->max_running, (long long)o->step_tokens);
    TP_TRY(tp_draft_read_options(&o->drafting, o->max_running, err));
    e->most_rows = o->max_running + TP_MAX(o->drafting.rows - 1, 0);
    if (o->step_tokens < e->most_rows) /* everyone who decodes has a row */
        o->step_tokens = e->most_rows;
    e->table_width = (o->max_length + o->block_tokens - 1) / o->block_tokens;
    return TP_OK;
}

/* Never more than max_running samples of max_length can use. */
static tp_status plan_cache(tp_engine *e, int32_t *ret_blocks, tp_error *err)
{
    tp_engine_options *o = &e->options;
    e->block_bytes = tp_model_cache_block_bytes(e->model, o->block_tokens, o->cache_dtype);
    int64_t most = TP_MIN(o->max_running * e->table_width, INT32_MAX);
    int64_t n = (int64_t)(o->cache_bytes / e->block_bytes);
    if (o->cache_bytes == 0)
        n = TP_MAX((int64_t)DEFAULT_CACHE_BYTES / (int64_t)e->block_bytes, e->table_width);
    if (n < 1)
        return tp_fail(err, TP_ERR_CONFIG,
                       "a cache of %zu bytes does not hold one block of %lld tokens, %zu bytes: "
                       "raise the limit on the KV cache",
                       o->cache_bytes, (long long)o->block_tokens, e->block_bytes);
    *ret_blocks = (int32_t)TP_MIN(n, most);
    e->stats.cache_bytes = (size_t)*ret_blocks * e->block_bytes;
    return TP_OK;
}

/* A training session on the same states has made the rope table for its own lengths. */
static tp_status count_positions(const tp_engine *e, int64_t *ret, tp_error *err)
{
    const tp_tensor *table = tp_model_rope_table(e->states);
    *ret = table ? table->dim[0] : e->options.max_length;
    if (*ret < e->options.max_length)
        return tp_fail(err, TP_ERR_CONFIG,
                       "texts of %lld tokens are asked for, the weights are shared with training "
                       "on at most %lld: raise its sequence length",
                       (long long)e->options.max_length, (long long)*ret);
    return TP_OK;
}

/* hidden[T,C] -> the rows that want logits -> logits -> ids */
static void build_head(const tp_engine *e, tp_graph *g, tp_ref hidden, tp_ref head)
{
    int64_t R = e->most_rows;
    g->block = -1;
    tp_ref gathered[] = {tp_engine_input(g, "rows", TP_DTYPE_I32, R, 1), hidden};
    tp_ref x = tp_graph_op(g, TP_OP_embed, NULL, 2, gathered, "last_rows");
    tp_ref product[] = {x, head};
    tp_ref logits = tp_graph_op(g, TP_OP_linear, NULL, 2, product, "lm_head");
    tp_ref choice[] = {logits, tp_engine_input(g, "sampling", TP_DTYPE_F32, R, 4),
                       tp_engine_input(g, "draws", TP_DTYPE_F64, R, 1)};
    tp_attrs attrs = {.n0 = e->options.n_tokens};
    tp_ref ids = tp_graph_op(g, TP_OP_sample, &attrs, 3, choice, "sample");
    g->values[logits].is_exact = true; /* rounded ones would make ties that the model has not */
    g->values[logits].dtype = TP_DTYPE_F32; /* ... also where embeddings are kept in bf16 */
    tp_graph_output(g, logits);
    for (tp_ref k = 0; k < 3; k++)
        tp_graph_output(g, ids + k);
}

/* An input for each: "adapters.0.rows" and so on. */
static const tp_ref *rows_of_adapters(tp_engine *e, tp_graph *g)
{
    size_t n = tp_model_adapters_beside(e->model);
    tp_ref *rows = tp_arena_array(&g->arena, tp_ref, n + 1);
    for (size_t i = 0; i < n; i++)
        rows[i] = tp_engine_input(g, tp_arena_printf(&g->arena, "adapters.%zu.rows", i),
                                  TP_DTYPE_I32, e->options.step_tokens, 1);
    return rows;
}

static tp_status build(tp_engine *e, int32_t n_blocks, int64_t positions, tp_error *err)
{
    const tp_engine_options *o = &e->options;
    int64_t T = o->step_tokens;
    size_t n_beside = tp_model_adapters_beside(e->model);
    double context = 0.5 * (double)o->max_length;
    TP_TRY(tp_program_add(e->program, "generate", e->states, context, &e->graph, err));
    tp_graph *g = tp_program_graph(e->program, e->graph);
    g->weights_stay = !o->gathers;
    int64_t table[] = {o->max_running, e->table_width};
    tp_forward forward = {.tokens = tp_engine_input(g, "tokens", TP_DTYPE_I32, T, 1),
                          .positions = tp_engine_input(g, "positions", TP_DTYPE_I32, T, 1),
                          .slots = tp_engine_input(g, "slots", TP_DTYPE_I32, T, 1),
                          .which = n_beside ? tp_engine_input(g, "which", TP_DTYPE_I32, T, 1) : 0,
                          .place = n_beside ? tp_engine_input(g, "place", TP_DTYPE_I32, T, 1) : 0,
                          .rows = rows_of_adapters(e, g),
                          .tables = tp_graph_input(g, "tables", TP_DTYPE_I32, 2, table),
                          .max_positions = positions,
                          .cache_blocks = n_blocks,
                          .block_tokens = o->block_tokens,
                          .cache_dtype = o->cache_dtype};
    tp_ref hidden, head;
    TP_TRY(tp_model_forward(e->model, g, &forward, &hidden, &head, err));
    build_head(e, g, hidden, head);
    return TP_OK;
}

static void allocate_lists(tp_engine *e, int32_t n_blocks)
{
    int64_t T = e->options.step_tokens, R = e->options.max_running, A = e->most_rows;
    tp_blocks_init(&e->blocks, n_blocks);
    e->tokens = tp_new((size_t)T, sizeof *e->tokens);
    e->positions = tp_new((size_t)T, sizeof *e->positions);
    e->slots = tp_new((size_t)T, sizeof *e->slots);
    e->which = tp_new((size_t)T, sizeof *e->which);
    e->place = tp_new((size_t)T, sizeof *e->place);
    e->n_adapters = (int64_t)tp_model_adapters_beside(e->model);
    e->adapters = tp_new((size_t)(e->n_adapters + 1), sizeof *e->adapters);
    for (int64_t i = 0; i < e->n_adapters; i++) {
        snprintf(e->adapters[i].input, sizeof e->adapters[i].input, "adapters.%lld.rows",
                 (long long)i);
        e->adapters[i].rows = tp_new((size_t)T, sizeof *e->adapters[i].rows);
    }
    e->tables = tp_new((size_t)(R * e->table_width), sizeof *e->tables);
    e->rows = tp_new((size_t)A, sizeof *e->rows);
    e->sampling = tp_new((size_t)(4 * A), sizeof *e->sampling);
    e->draws = tp_new((size_t)A, sizeof *e->draws);
    e->row_samples = tp_new((size_t)A, sizeof *e->row_samples);
    e->ids = tp_new((size_t)A, sizeof *e->ids);
    e->logp = tp_new((size_t)A, sizeof *e->logp);
    e->sampled_logp = tp_new((size_t)A, sizeof *e->sampled_logp);
    e->copies = tp_new((size_t)R, sizeof *e->copies);
    e->running = tp_new((size_t)R, sizeof *e->running);
    e->returned = tp_new((size_t)R, sizeof *e->returned);
    e->slot_in_use = tp_new((size_t)R, sizeof *e->slot_in_use);
}

static tp_status create(tp_engine *e, const tp_engine_options *options, tp_error *err)
{
    int32_t n_blocks = 0;
    int64_t positions = 0;
    TP_TRY(read_options(e, options, err));
    TP_TRY(plan_cache(e, &n_blocks, err));
    TP_TRY(count_positions(e, &positions, err));
    TP_TRY(tp_model_declare(e->model, positions, e->states, err));
    e->owns_program = !e->program;
    const tp_program_options own = {.device = options->device,
                                    .passes.compute_dtype = options->compute_dtype,
                                    .share_memory = true};
    if (e->owns_program)
        TP_TRY(tp_program_create(&own, &e->program, err));
    e->options.device = tp_program_get_options(e->program)->device;
    TP_TRY(build(e, n_blocks, positions, err));
    allocate_lists(e, n_blocks);
    return e->owns_program ? tp_program_compile(e->program, err) : TP_OK;
}

tp_status tp_engine_create(const tp_model *model, const tp_engine_options *options,
                           tp_states *states, tp_engine **ret, tp_error *err)
{
    tp_engine *e = tp_new(1, sizeof *e);
    e->model = model;
    e->states = states;
    e->program = options->program;
    TP_HAND_OVER(create(e, options, err), ret, e, tp_engine_free(e));
}

tp_status tp_engine_alloc(tp_engine *e, tp_error *err)
{
    TP_TRY(tp_program_alloc(e->program, e->states, err));
    e->exec = tp_program_exec(e->program, e->graph);
    return TP_OK;
}

tp_status tp_engine_weights_changed(tp_engine *e, tp_error *err)
{
    TP_ASSERT(e->n_running == 0);
    for (int64_t i = e->first_live; i < e->n_requests; i++)
        if (e->requests[i] && e->requests[i]->prefix == PREFIX_READY)
            tp_schedule_drop_prefix(e, e->requests[i]);
    TP_TRY(tp_model_fill_constants(e->model, e->states, err));
    return tp_refresh_shadows(e->states, e->options.device, true, err);
}

/* ---- requests ---- */

static tp_status check_ids(const tp_engine *e, const int32_t *ids, size_t n, tp_error *err)
{
    int64_t vocab = tp_model_get_info(e->model)->vocab;
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= vocab)
            return tp_fail(err, TP_ERR_FORMAT,
                           "token %zu of the prompt is %d, outside the model's vocabulary of %lld: "
                           "tokenizer and model do not belong together",
                           i, ids[i], (long long)vocab);
    return TP_OK;
}

static tp_status check_sampling(const tp_sampling *s, tp_error *err)
{
    if (!(s->temperature >= 0) || isinf(s->temperature))
        return tp_fail(err, TP_ERR_CONFIG, "the temperature is %g; expected a number from 0",
                       s->temperature);
    if (isnan(s->top_p) || !(s->min_p >= 0 && s->min_p <= 1))
        return tp_fail(err, TP_ERR_CONFIG, "top_p %g or min_p %g is no share", s->top_p, s->min_p);
    return TP_OK;
}

static tp_status check_request(const tp_engine *e, const tp_request *r, tp_error *err)
{
    if (r->n_prompt == 0)
        return tp_fail(err, TP_ERR_CONFIG, "the prompt is empty: it has no tokens");
    if (r->n_prompt >= (size_t)e->options.max_length)
        return tp_fail(err, TP_ERR_CONFIG,
                       "the prompt has %zu tokens; with room for an answer at most %lld fit",
                       r->n_prompt, (long long)e->options.max_length - 1);
    if (r->adapter < 0 || (size_t)r->adapter > tp_model_adapters_beside(e->model))
        return tp_fail(err, TP_ERR_ARG, "adapter %d of %zu", r->adapter,
                       tp_model_adapters_beside(e->model));
    if (r->n_samples < 0 || r->n_samples > 1 << 24)
        return tp_fail(err, TP_ERR_CONFIG, "%lld samples of a prompt", (long long)r->n_samples);
    if (r->n_stop_strings > 0 && !e->options.tokenizer)
        return tp_fail(err, TP_ERR_CONFIG, "stop strings need a tokenizer");
    for (size_t i = 0; i < r->n_stop_strings; i++)
        if (!*r->stop_strings[i])
            return tp_fail(err, TP_ERR_CONFIG, "stop string %zu is empty", i);
    TP_TRY(check_sampling(&r->sampling, err));
    return check_ids(e, r->prompt, r->n_prompt, err);
}

static void *copied(const void *from, size_t n, size_t size)
{
    void *to = tp_new(n + 1, size);
    if (n)
        memcpy(to, from, n * size);
    return to;
}

static request *copy_request(const tp_engine *e, const tp_request *from)
{
    request *r = tp_new(1, sizeof *r);
    r->prompt = copied(from->prompt, from->n_prompt, sizeof *from->prompt);
    r->n_prompt = (int64_t)from->n_prompt;
    r->max_new = from->max_new_tokens > 0 ? from->max_new_tokens : INT64_MAX;
    r->sampling = from->sampling;
    r->rules = from->rules;
    r->rules.suppressed = copied(from->rules.suppressed, from->rules.n_suppressed, sizeof(int32_t));
    r->rules.suppressed_first =
        copied(from->rules.suppressed_first, from->rules.n_suppressed_first, sizeof(int32_t));
    r->adapter = from->adapter - 1;
    r->seed = from->seed;
    r->stream = from->stream;
    r->stop_ids = copied(from->stop_ids, from->n_stop_ids, sizeof *from->stop_ids);
    r->n_stop_ids = from->n_stop_ids;
    r->stop_strings = tp_new((size_t)from->n_stop_strings + 1, sizeof *r->stop_strings);
    r->n_stop_strings = from->n_stop_strings;
    for (size_t i = 0; i < from->n_stop_strings; i++) {
        r->stop_strings[i] = strdup(from->stop_strings[i]);
        r->longest_stop = TP_MAX(r->longest_stop, strlen(from->stop_strings[i]));
    }
    r->on_token = from->on_token;
    r->user = from->user;
    r->n_samples = from->n_samples > 0 ? from->n_samples : 1;
    r->samples = tp_new((size_t)(r->n_samples), sizeof *r->samples);
    for (int64_t i = 0; i < r->n_samples; i++)
        r->samples[i] = (sample){.request = r, .index = i, .slot = -1, .stop_string = -1};
    r->prefix_blocks = tp_new((size_t)(e->table_width), sizeof *r->prefix_blocks);
    return r;
}

static void free_request(request *r)
{
    for (int64_t i = 0; i < r->n_samples; i++) {
        free(r->samples[i].ids);
        free(r->samples[i].logp);
        free(r->samples[i].drawn);
        tp_buf_release(&r->samples[i].text);
    }
    for (size_t i = 0; i < r->n_stop_strings; i++)
        free(r->stop_strings[i]);
    free(r->stop_strings);
    free(r->stop_ids);
    free((void *)(uintptr_t)r->rules.suppressed);
    free((void *)(uintptr_t)r->rules.suppressed_first);
    free(r->samples);
    free(r->prefix_blocks);
    free(r->prompt);
    free(r);
}

tp_status tp_engine_submit(tp_engine *e, const tp_request *from, int64_t *ret_id, tp_error *err)
{
    TP_TRY(check_request(e, from, err));
    if (tp_rules_are_some(&from->rules))
        TP_TRY(tp_rules_prepare(e, err));
    request *r = copy_request(e, from);
    if (e->n_requests == e->cap_requests) {
        e->cap_requests = e->cap_requests ? 2 * e->cap_requests : 64;
        e->requests = tp_grow(e->requests, (size_t)e->cap_requests, sizeof(request *));
    }
    r->id = e->n_requests;
    e->requests[e->n_requests++] = r;
    tp_schedule_add(e, r);
    *ret_id = r->id;
    return TP_OK;
}

static request *find_request(const tp_engine *e, int64_t id)
{
    TP_ASSERT(id >= 0 && id < e->n_requests && e->requests[id]);
    return e->requests[id];
}

tp_sample_result tp_engine_sample(const tp_engine *e, int64_t id, int64_t index)
{
    const request *r = find_request(e, id);
    TP_ASSERT(index >= 0 && index < r->n_samples);
    const sample *s = &r->samples[index];
    return (tp_sample_result){.finish = s->finish,
                              .stop_string = s->stop_string,
                              .n = (size_t)s->n,
                              .ids = s->ids,
                              .logp = s->logp,
                              .sampled_logp = s->drawn};
}

static void unreturn(tp_engine *e, const sample *s)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < e->n_returned; i++)
        if (e->returned[i] != s)
            e->returned[kept++] = e->returned[i];
    e->n_waiting -= e->n_returned - kept;
    e->n_returned = kept;
}

void tp_engine_cancel(tp_engine *e, int64_t id)
{
    request *r = find_request(e, id);
    tp_schedule_remove(e, r);
    r->n_started = r->n_samples;
    for (int64_t i = 0; i < r->n_samples; i++) {
        if (r->samples[i].state == SAMPLE_DONE)
            continue;
        unreturn(e, &r->samples[i]);
        tp_schedule_end(e, &r->samples[i], TP_FINISH_CANCELLED);
    }
}

void tp_engine_forget(tp_engine *e, int64_t id)
{
    tp_engine_cancel(e, id);
    free_request(e->requests[id]);
    e->requests[id] = NULL;
    while (e->first_live < e->n_requests && !e->requests[e->first_live])
        e->first_live++;
}

/* ---- reports ---- */

tp_engine_stats tp_engine_get_stats(const tp_engine *e)
{
    tp_engine_stats s = e->stats;
    s.running = e->n_running;
    s.waiting = e->n_waiting;
    s.used_bytes = (size_t)(e->blocks.n - e->blocks.n_free) * e->block_bytes;
    s.peak_bytes = (size_t)(e->blocks.n - e->blocks.least_free) * e->block_bytes;
    return s;
}

void tp_engine_reset_stats(tp_engine *e)
{
    e->stats = (tp_engine_stats){.cache_bytes = e->stats.cache_bytes};
    e->blocks.least_free = e->blocks.n_free;
}

const tp_exec *tp_engine_exec(const tp_engine *e) { return tp_program_exec(e->program, e->graph); }

void tp_engine_free(tp_engine *e)
{
    if (!e)
        return;
    for (int64_t i = 0; i < e->n_requests; i++)
        if (e->requests[i])
            free_request(e->requests[i]);
    tp_rules_free(e->rules);
    if (e->owns_program)
        tp_program_free(e->program);
    tp_blocks_release(&e->blocks);
    for (int64_t i = 0; i < e->n_adapters; i++)
        free(e->adapters[i].rows);
    void *const lists[] = {e->requests, e->tokens,   e->positions,  e->slots,
                           e->which,    e->place,    e->adapters,   e->tables,
                           e->rows,     e->sampling, e->draws,      e->row_samples,
                           e->copies,   e->ids,      e->logp,       e->sampled_logp,
                           e->running,  e->returned, e->slot_in_use};
    for (size_t i = 0; i < TP_COUNTOF(lists); i++)
        free(lists[i]);
    free(e);
}
