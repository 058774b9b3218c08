/* step.c - one step: which rows the graph gets, and what becomes of its answers.
 *
 * First the next token of everyone who decodes and what is tried behind it, then pieces of
 * prompts of those who started earlier, then new ones, until the rows are full.  Only the last
 * known token of a sample asks for logits, and the tokens of a draft: each place draws what it
 * would have drawn anyway, and draws count as long as the draft before them is what was drawn. */
#include "base/clock.h"
#include "base/platform.h"
#include "base/rng.h"
#include "engine/generate/engine_internal.h"
#include "temper/trace.h"

/* ---- rows ---- */

static void set_sampling(tp_engine *e, const sample *s, int64_t row, int64_t position)
{
    const tp_sampling *p = &s->request->sampling;
    float *to = e->sampling + 4 * row;
    to[0] = (float)p->temperature;
    to[1] = (float)(p->top_k > 0 ? p->top_k : 0);
    to[2] = (float)p->top_p;
    to[3] = (float)p->min_p;
    tp_rng rng = tp_rng_make(s->request->seed, s->request->stream + (uint64_t)s->index);
    rng.counter = (uint64_t)position;
    e->draws[row] = tp_rng_uniform(&rng);
}

/* -1: the model alone */
static void note_adapter(tp_engine *e, int32_t adapter)
{
    e->which[e->n_tokens] = adapter;
    e->place[e->n_tokens] = -1;
    if (adapter < 0)
        return;
    e->place[e->n_tokens] = (int32_t)e->adapters[adapter].n;
    e->adapters[adapter].rows[e->adapters[adapter].n++] = (int32_t)e->n_tokens;
}

/* The next tokens of s, as many as there is room for. */
static void add_rows(tp_engine *e, sample *s)
{
    int64_t length = sample_length(s), room = e->options.step_tokens - e->n_tokens;
    int64_t n = TP_MIN(length + s->n_draft - s->n_cached, room);
    for (int64_t i = 0; i < n; i++, e->n_tokens++) {
        int64_t position = s->n_cached + i;
        e->tokens[e->n_tokens] = sample_token(s, position);
        e->positions[e->n_tokens] = (int32_t)position;
        e->slots[e->n_tokens] = s->slot;
        note_adapter(e, s->request->adapter);
    }
    int64_t repeated = TP_MIN(s->n_computed - s->n_cached, n);
    if (repeated > 0)
        e->stats.recomputed_tokens += repeated;
    bool is_decoding = s->n > 0 && n == 1 + s->n_draft && repeated <= 0;
    if (!is_decoding) {
        e->n_prompt_rows += n;
        e->stats.prefill_tokens += n - TP_MAX(repeated, 0);
    }
    s->n_cached += n;
    s->n_computed = TP_MAX(s->n_computed, TP_MIN(s->n_cached, length));
    for (int64_t position = length - 1; n > 0 && position < s->n_cached; position++) {
        set_sampling(e, s, e->n_rows, position);
        e->rows[e->n_rows] = (int32_t)(e->n_tokens + position - s->n_cached);
        e->row_samples[e->n_rows++] = s;
    }
}

static bool is_decoding(const sample *s) { return sample_length(s) - s->n_cached == 1; }

/* Even shares of the rows that are left for drafts, and what the first do not use. */
static void decode(tp_engine *e)
{
    int64_t n = 0;
    for (int64_t i = 0; i < e->n_running; i++)
        n += is_decoding(e->running[i]);
    for (int64_t i = 0; i < e->n_running && n > 0; i++) {
        if (!is_decoding(e->running[i]))
            continue;
        int64_t room = e->options.drafting.rows - e->n_rows - n;
        tp_draft_next(e, e->running[i], (room + n - 1) / n);
        add_rows(e, e->running[i]);
        n--;
    }
}

static void gather_rows(tp_engine *e)
{
    e->n_tokens = e->n_rows = e->n_prompt_rows = 0;
    for (int64_t i = 0; i < e->n_adapters; i++)
        e->adapters[i].n = 0;
    tp_schedule_grow(e);
    decode(e);
    for (int64_t i = 0; i < e->n_running && e->n_tokens < e->options.step_tokens; i++)
        if (sample_length(e->running[i]) > e->running[i]->n_cached)
            add_rows(e, e->running[i]);
    sample *s;
    while (e->n_tokens < e->options.step_tokens && (s = tp_schedule_start(e)))
        if (s->state == SAMPLE_RUNNING)
            add_rows(e, s);
}

static tp_status copy_block(const tp_tensor *cache, int32_t from, int32_t to, tp_error *err)
{
    size_t bytes = cache->bytes / (size_t)cache->dim[0];
    tp_span source = cache->span, target = cache->span;
    source.offset += (size_t)from * bytes;
    target.offset += (size_t)to * bytes;
    return tp_span_copy(target, source, bytes, err);
}

/* Before the graph writes: whoever takes a block that was given up does so after its copy. */
static tp_status copy_blocks(tp_engine *e, tp_error *err)
{
    for (size_t s = 0; s < e->states->n && e->n_copies > 0; s++)
        for (int64_t i = 0; i < e->n_copies && e->states->items[s].role == TP_ROLE_CACHE; i++)
            TP_TRY(copy_block(&e->states->items[s], e->copies[i].from, e->copies[i].to, err));
    e->n_copies = 0;
    return TP_OK;
}

static tp_status read_results(tp_engine *e, tp_error *err)
{
    size_t n = (size_t)e->n_rows;
    TP_TRY(tp_exec_read(e->exec, TP_ENGINE_OUT_IDS, 0, e->ids, n * sizeof *e->ids, err));
    TP_TRY(tp_exec_read(e->exec, TP_ENGINE_OUT_LOGP, 0, e->logp, n * sizeof *e->logp, err));
    return tp_exec_read(e->exec, TP_ENGINE_OUT_DRAWN, 0, e->sampled_logp,
                        n * sizeof *e->sampled_logp, err);
}

/* Nothing where the graph has no such input. */
static tp_status give(const tp_engine *e, const char *name, const void *data, int64_t n,
                      tp_error *err)
{
    int input = tp_exec_input(e->exec, name);
    if (input < 0)
        return TP_OK;
    TP_TRY(tp_exec_write(e->exec, input, data, n, err));
    tp_exec_set_rows(e->exec, input, n);
    return TP_OK;
}

static tp_status run_graph(tp_engine *e, tp_error *err)
{
    TP_TRY(give(e, "tokens", e->tokens, e->n_tokens, err));
    TP_TRY(give(e, "positions", e->positions, e->n_tokens, err));
    TP_TRY(give(e, "slots", e->slots, e->n_tokens, err));
    TP_TRY(give(e, "rows", e->rows, e->n_rows, err));
    TP_TRY(give(e, "sampling", e->sampling, e->n_rows, err));
    TP_TRY(give(e, "draws", e->draws, e->n_rows, err));
    TP_TRY(give(e, "which", e->which, e->n_tokens, err));
    TP_TRY(give(e, "place", e->place, e->n_tokens, err));
    for (int64_t i = 0; i < e->n_adapters; i++)
        TP_TRY(give(e, e->adapters[i].input, e->adapters[i].rows, e->adapters[i].n, err));
    TP_TRY(tp_exec_write(e->exec, tp_exec_input(e->exec, "tables"), e->tables, -1, err));
    TP_TRY(copy_blocks(e, err));
    TP_TRY(tp_program_run(e->program, e->graph, true, err));
    return read_results(e, err);
}

/* ---- answers ---- */

static void append(sample *s, int32_t id, float logp, float drawn)
{
    tp_sample_reserve(s, s->n + 1);
    s->ids[s->n] = id;
    s->logp[s->n] = logp;
    s->drawn[s->n++] = drawn;
}

static bool is_stop(const request *r, int32_t id)
{
    for (size_t i = 0; i < r->n_stop_ids; i++)
        if (r->stop_ids[i] == id)
            return true;
    return false;
}

/* Why the sample ends with this token, or TP_FINISH_NONE. */
static tp_finish finish_of(const tp_engine *e, sample *s, const tp_engine_token *token)
{
    const request *r = s->request;
    if (r->on_token && !r->on_token(r->user, token))
        return TP_FINISH_CANCELLED;
    if (token->is_stop)
        return TP_FINISH_STOP;
    s->stop_string = tp_stop_text_next(e, s, token->id);
    if (s->stop_string >= 0)
        return TP_FINISH_STOP;
    bool is_full = s->n == r->max_new || sample_length(s) >= e->options.max_length;
    return is_full ? TP_FINISH_LENGTH : TP_FINISH_NONE;
}

static void take_answer(tp_engine *e, sample *s, int64_t row)
{
    tp_engine_token token = {.request = s->request->id,
                             .sample = s->index,
                             .id = e->ids[row],
                             .logp = e->logp[row],
                             .sampled_logp = e->sampled_logp[row]};
    if (token.id < 0) {
        tp_schedule_end(e, s,
                        token.id == TP_ID_RULED_OUT ? TP_FINISH_RULED_OUT : TP_FINISH_NONFINITE);
        return;
    }
    token.is_stop = is_stop(s->request, token.id);
    append(s, token.id, token.logp, token.sampled_logp);
    e->stats.decode_tokens++;
    tp_finish finish = finish_of(e, s, &token);
    if (finish != TP_FINISH_NONE && s->state == SAMPLE_RUNNING)
        tp_schedule_end(e, s, finish);
}

/* Keys of a draft that are not finite would weigh upon the tokens before them. */
static bool is_poisoned(const tp_engine *e, int64_t row, int64_t n)
{
    bool any = false;
    for (int64_t i = row; i < row + n; i++)
        any |= e->ids[i] < 0;
    return any && n > 1;
}

/* What was drawn behind the last token of a sample, and behind each of its draft as far as that is
 * right.  Returns the row of the next sample. */
static int64_t take_answers(tp_engine *e, int64_t row)
{
    sample *s = e->row_samples[row];
    int64_t n = 1 + s->n_draft, end = row + n;
    s->n_draft = 0;
    if (s->state != SAMPLE_RUNNING) /* cancelled from another one's on_token */
        return end;
    if (is_poisoned(e, row, n)) {
        s->is_plain = true;
        tp_schedule_put_back(e, s);
        return end;
    }
    e->stats.drafted_tokens += n - 1;
    int64_t right = 0;
    for (bool is_right = true; row < end && is_right; row++) {
        is_right = row + 1 < end && s->ids[s->n] == e->ids[row];
        right += is_right;
        take_answer(e, s, row);
        is_right &= s->state == SAMPLE_RUNNING;
    }
    e->stats.accepted_tokens += right;
    tp_draft_note(s, n - 1, right);
    if (s->state == SAMPLE_RUNNING) { /* whatever else is in the cache will be written over */
        s->n_cached = sample_length(s) - 1;
        s->n_computed = TP_MAX(s->n_computed, s->n_cached);
    }
    return end;
}

static bool is_idle(const tp_engine *e) { return e->n_running == 0 && e->n_waiting == 0; }

static tp_status step(tp_engine *e, tp_error *err)
{
    gather_rows(e);
    if (e->n_tokens == 0 && !e->options.gathers)
        return TP_OK;
    int64_t before = e->stats.decode_tokens;
    TP_TRY(run_graph(e, err));
    TP_TRY(tp_rules_draw(e, err));
    e->stats.steps++;
    for (int64_t i = 0; i < e->n_running; i++)
        tp_schedule_note_prefix(e, e->running[i]);
    for (int64_t row = 0; row < e->n_rows;)
        row = take_answers(e, row);
    tp_counter_add(tp_counter_get("generation/answer tokens"),
                   (double)(e->stats.decode_tokens - before));
    return TP_OK;
}

/* Or another rank is, for whose step weights are gathered. */
static tp_status is_busy(const tp_engine *e, bool *ret, tp_error *err)
{
    double any = !is_idle(e);
    TP_TRY(tp_comm_max(e->options.comm, &any, 1, err));
    *ret = any > 0;
    return TP_OK;
}

tp_status tp_engine_step(tp_engine *e, bool *ret_is_busy, tp_error *err)
{
    TP_TRY(is_busy(e, ret_is_busy, err));
    if (*ret_is_busy) {
        double start = tp_clock_s();
        TP_TRY(step(e, err));
        double seconds = tp_clock_s() - start;
        e->stats.seconds += seconds;
        *(e->n_prompt_rows > 0 ? &e->stats.prefill_s : &e->stats.decode_s) += seconds;
    }
    *ret_is_busy &= e->options.comm || !is_idle(e);
    return TP_OK;
}

tp_status tp_engine_run(tp_engine *e, tp_error *err)
{
    for (bool is_busy = true; is_busy;)
        TP_TRY(tp_engine_step(e, &is_busy, err));
    return TP_OK;
}
