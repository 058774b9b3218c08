/* rules.c - rules about which ids may come next, as transformers' logits processors.
 *
 * The graph of a step draws from the logits as they are.  Rows of samples with rules are drawn
 * once more, by the same op in a small graph of its own, from a copy with the rules applied. */
#include <math.h>

#include "base/platform.h"
#include "engine/generate/engine_internal.h"

static tp_status build(tp_engine *e, tp_rules *x, tp_error *err)
{
    int64_t R = e->most_rows, V = tp_model_get_info(e->model)->vocab;
    int graph;
    TP_TRY(tp_program_create(tp_program_get_options(e->program), &x->program, err));
    TP_TRY(tp_program_add(x->program, "rules", e->states, 0, &graph, err));
    tp_graph *g = tp_program_graph(x->program, graph);
    int64_t dim[] = {R, V};
    tp_ref in[] = {tp_graph_input(g, "logits", TP_DTYPE_F32, 2, dim),
                   tp_engine_input(g, "sampling", TP_DTYPE_F32, R, 4),
                   tp_engine_input(g, "draws", TP_DTYPE_F64, R, 1)};
    tp_attrs attrs = {.n0 = e->options.n_tokens};
    tp_ref ids = tp_graph_op(g, TP_OP_sample, &attrs, 3, in, "sample");
    for (tp_ref k = 0; k < 3; k++)
        tp_graph_output(g, ids + k);
    TP_TRY(tp_program_compile(x->program, err));
    TP_TRY(tp_program_alloc(x->program, e->states, err));
    x->exec = tp_program_exec(x->program, graph);
    x->logits = calloc((size_t)(R * V), sizeof *x->logits);
    x->plain = calloc((size_t)V, sizeof *x->plain);
    x->sampling = calloc((size_t)R, 4 * sizeof *x->sampling);
    x->draws = calloc((size_t)R, sizeof *x->draws);
    x->rows = calloc((size_t)R, sizeof *x->rows);
    if (!x->logits || !x->plain || !x->sampling || !x->draws || !x->rows)
        return tp_fail(err, TP_ERR_NOMEM, "no memory for the logits of %lld answers", (long long)R);
    return TP_OK;
}

tp_status tp_rules_prepare(tp_engine *e, tp_error *err)
{
    if (e->rules)
        return TP_OK;
    tp_rules *x = tp_new(1, sizeof *x);
    TP_HAND_OVER(build(e, x, err), &e->rules, x, tp_rules_free(x));
}

void tp_rules_free(tp_rules *x)
{
    if (!x)
        return;
    tp_program_free(x->program);
    free(x->logits);
    free(x->plain);
    free(x->sampling);
    free(x->draws);
    free(x->rows);
    free(x);
}

bool tp_rules_are_some(const tp_logit_rules *r)
{
    return (r->repetition_penalty != 0 && r->repetition_penalty != 1) || r->no_repeat_ngram > 0 ||
           r->min_new_tokens > 0 || r->n_suppressed || r->n_suppressed_first;
}

/* ---- the rules ---- */

/* Every id of prompt and answer, n of them, once: the second time its logit is not what it was. */
static void penalise(const sample *s, int64_t n, const float *plain, float *z, float penalty)
{
    for (int64_t i = 0; i < n; i++) {
        int32_t id = sample_token(s, i);
        z[id] = plain[id] < 0 ? plain[id] * penalty : plain[id] / penalty;
    }
}

/* Ids that would complete a run of n ids that is there already. */
static void forbid_repetition(const sample *s, int64_t length, float *z, int64_t n)
{
    for (int64_t end = n - 1; end < length; end++) {
        int64_t k = 1;
        while (k < n && sample_token(s, end - k) == sample_token(s, length - k))
            k++;
        if (k == n)
            z[sample_token(s, end)] = -INFINITY;
    }
}

static void suppress(float *z, int64_t vocab, const int32_t *ids, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (ids[i] < vocab)
            z[ids[i]] = -INFINITY;
}

/* To the row that has `length` tokens before what it draws, those of a draft among them. */
static void apply(const tp_engine *e, const sample *s, int64_t length, const float *plain, float *z)
{
    const tp_logit_rules *r = &s->request->rules;
    int64_t vocab = tp_model_get_info(e->model)->vocab, n = length - s->request->n_prompt;
    memcpy(z, plain, (size_t)vocab * sizeof *z);
    if (r->repetition_penalty != 0 && r->repetition_penalty != 1)
        penalise(s, length, plain, z, (float)r->repetition_penalty);
    if (r->no_repeat_ngram > 0)
        forbid_repetition(s, length, z, r->no_repeat_ngram);
    if (n < r->min_new_tokens)
        suppress(z, vocab, s->request->stop_ids, s->request->n_stop_ids);
    suppress(z, vocab, r->suppressed, r->n_suppressed);
    if (n == 0)
        suppress(z, vocab, r->suppressed_first, r->n_suppressed_first);
}

/* ---- drawing again ---- */

static size_t offset_of(const tp_engine *e, int64_t row, int64_t column)
{
    int64_t stride = tp_exec_output(e->exec, TP_ENGINE_OUT_LOGITS)->stride;
    return (size_t)(row * stride + column) * sizeof(float);
}

static tp_status gather(tp_engine *e, int64_t *ret_n, tp_error *err)
{
    tp_rules *x = e->rules;
    int64_t n = 0, vocab = tp_model_get_info(e->model)->vocab;
    for (int64_t row = 0; row < e->n_rows; row++) {
        const sample *s = e->row_samples[row];
        if (!tp_rules_are_some(&s->request->rules) || e->ids[row] < 0)
            continue;
        TP_TRY(tp_exec_read(e->exec, TP_ENGINE_OUT_LOGITS, offset_of(e, row, 0), x->plain,
                            (size_t)vocab * sizeof *x->plain, err));
        int64_t length = e->positions[e->rows[row]] + 1;
        apply(e, s, length, x->plain, x->logits + n * vocab);
        memcpy(x->sampling + 4 * n, e->sampling + 4 * row, 4 * sizeof *x->sampling);
        x->draws[n] = e->draws[row];
        x->rows[n++] = row;
    }
    *ret_n = n;
    return TP_OK;
}

static tp_status run_exec(tp_rules *x, int64_t n, tp_error *err)
{
    const struct {
        const char *name;
        const void *data;
    } inputs[] = {{"logits", x->logits}, {"sampling", x->sampling}, {"draws", x->draws}};
    for (size_t i = 0; i < TP_COUNTOF(inputs); i++) {
        int at = tp_exec_input(x->exec, inputs[i].name);
        TP_TRY(tp_exec_write(x->exec, at, inputs[i].data, n, err));
        tp_exec_set_rows(x->exec, at, n);
    }
    return tp_program_run(x->program, 0, true, err);
}

/* How much more the model itself thinks of `id` than of what was drawn at first. */
static tp_status compare(const tp_engine *e, int64_t row, int32_t id, float *ret, tp_error *err)
{
    float now, before;
    TP_TRY(
        tp_exec_read(e->exec, TP_ENGINE_OUT_LOGITS, offset_of(e, row, id), &now, sizeof now, err));
    TP_TRY(tp_exec_read(e->exec, TP_ENGINE_OUT_LOGITS, offset_of(e, row, e->ids[row]), &before,
                        sizeof before, err));
    *ret = now - before;
    return TP_OK;
}

static tp_status take(tp_engine *e, int64_t k, tp_error *err)
{
    const tp_rules *x = e->rules;
    int64_t row = x->rows[k];
    int32_t id;
    float more;
    TP_TRY(tp_exec_read(x->exec, 0, (size_t)k * sizeof id, &id, sizeof id, err));
    TP_TRY(tp_exec_read(x->exec, 2, (size_t)k * sizeof(float), &e->sampled_logp[row], sizeof(float),
                        err));
    if (id >= 0) { /* still the model's own log-probability */
        TP_TRY(compare(e, row, id, &more, err));
        e->logp[row] += more;
    }
    e->ids[row] = id >= 0 ? id : TP_ID_RULED_OUT;
    return TP_OK;
}

tp_status tp_rules_draw(tp_engine *e, tp_error *err)
{
    int64_t n;
    if (!e->rules)
        return TP_OK;
    TP_TRY(gather(e, &n, err));
    if (n > 0)
        TP_TRY(run_exec(e->rules, n, err));
    for (int64_t k = 0; k < n; k++)
        TP_TRY(take(e, k, err));
    return TP_OK;
}
