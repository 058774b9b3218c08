/* session.c - the graphs of a run (training, evaluation, gradient norm, update), planned together
 * and sharing one pool, because they never run at the same time. */
#include "engine/train/session.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/platform.h"
#include "engine/train/objective.h"

typedef struct {
    const char *name;
    tp_graph graph;
    tp_exec *exec;
} program;

typedef struct {
    int tokens, positions, targets, weights, cu, loss_scale;
} batch_inputs;

struct tp_session {
    const tp_model *model;
    tp_session_options options;
    program train, eval, norm, update;
    tp_states states;
    tp_exec_pool pool;
    float loss_scale;
    tp_optimizer_scalars scalars;
    float *logp; /* what the last evaluation said */
    batch_inputs train_inputs, eval_inputs;
};

/* ---- building ---- */

typedef struct {
    tp_session *s;
    program *p;
} observer;

bool tp_session_is_stage(const char *stage, tp_buf *known)
{
    static const char *const others[] = {"graph", "plan", "fuse"};
    for (size_t i = 0; i < TP_COUNTOF(others); i++)
        if (strcmp(stage, others[i]) == 0)
            return true;
    if (tp_pass_find(stage))
        return true;
    tp_buf_adds(known, "graph, plan, fuse");
    for (const tp_pass *const *p = tp_pass_pipeline; *p; p++)
        tp_buf_addf(known, ", %s", (*p)->name);
    return false;
}

static bool is_asked_for(const tp_session *s, const char *stage)
{
    for (size_t i = 0; s->options.dump && i < s->options.n_dump_stages; i++)
        if (tp_pass_named(s->options.dump_stages[i], stage))
            return true;
    return false;
}

static void dump_text(tp_session *s, const char *graph, const char *stage, tp_buf *text)
{
    s->options.dump(s->options.dump_user, graph, stage, tp_buf_str(text));
    tp_buf_release(text);
}

static void dump_graph(tp_session *s, const char *name, const char *stage, const tp_graph *g)
{
    if (!is_asked_for(s, stage))
        return;
    tp_buf text = {0};
    tp_graph_print(g, &text);
    dump_text(s, name, stage, &text);
}

static void observe(void *user, const char *pass, const tp_graph *g, uint32_t before,
                    double seconds)
{
    (void)before, (void)seconds;
    observer *o = user;
    dump_graph(o->s, o->p->name, pass, g);
}

static tp_status optimise(tp_session *s, program *p, tp_error *err)
{
    observer o = {s, p};
    tp_pass_options options = {.compute_dtype = s->options.compute_dtype,
                               .recompute = s->options.recompute,
                               .recompute_every = s->options.recompute_every,
                               .disabled = s->options.disabled_passes,
                               .n_disabled = s->options.n_disabled_passes,
                               .observe = observe,
                               .observe_user = &o};
    dump_graph(s, p->name, "graph", &p->graph);
    return tp_passes_run(&p->graph, &options, err);
}

static tp_status plan(tp_session *s, program *p, tp_error *err)
{
    double context = s->options.avg_context > 0 ? s->options.avg_context
                                                : 0.5 * (double)(s->options.max_positions + 1);
    tp_exec_options options = {.device = s->options.device,
                               .share_memory = s->options.share_memory,
                               .avg_context = context};
    TP_TRY(tp_exec_create(&p->graph, &options, &p->exec, err));
    tp_exec_pool_fit(&s->pool, p->exec);
    if (is_asked_for(s, "plan")) {
        tp_buf text = {0};
        tp_exec_print(p->exec, &text);
        dump_text(s, p->name, "plan", &text);
    }
    return TP_OK;
}

static tp_status declare_states(tp_session *s, const program *p, tp_error *err)
{
    for (uint32_t i = 1; i < p->graph.n_nodes; i++) {
        const tp_node *n = &p->graph.nodes[i];
        if (n->op != TP_OP_state)
            continue;
        const tp_value *v = &p->graph.values[n->out[0]];
        TP_TRY(tp_states_declare(&s->states, v->name, v->dtype, v->rank, v->dim, v->kind, err));
    }
    return TP_OK;
}

static tp_status build_objective(tp_session *s, program *p, bool with_gradient, tp_error *err)
{
    tp_objective_options options = {.tokens = s->options.tokens,
                                    .max_positions = s->options.max_positions,
                                    .loss_chunk = s->options.loss_chunk,
                                    .with_gradient = with_gradient,
                                    .temperature = s->options.temperature};
    TP_TRY(tp_graph_init(&p->graph, err));
    TP_TRY(s->options.weighed ? tp_objective_weighed(s->model, &options, &p->graph, err)
                              : tp_objective_sft(s->model, &options, &p->graph, err));
    TP_TRY(optimise(s, p, err));
    tp_objective_set_chunk(&p->graph, s->options.loss_chunk);
    TP_TRY(plan(s, p, err));
    return declare_states(s, p, err);
}

static tp_ref optimizer_state(tp_graph *g, const char *prefix, const tp_param *param)
{
    char name[512];
    snprintf(name, sizeof name, "%s.%s", prefix, param->name);
    return tp_graph_state(g, name, TP_DTYPE_F32, param->rank, param->dim,
                          strcmp(prefix, "grad") == 0 ? TP_MEM_GRADIENTS : TP_MEM_OPTIMIZER);
}

static void update_param(tp_session *s, const tp_optimizer_settings *o, tp_graph *g,
                         const tp_param *param, tp_ref scalars)
{
    char name[512];
    const char *states[TP_OPTIMIZER_STATES];
    tp_optimizer_operands x = {.scalars = scalars};
    x.p = tp_graph_state(g, param->name, TP_DTYPE_F32, param->rank, param->dim, TP_MEM_WEIGHTS);
    x.grad = optimizer_state(g, "grad", param);
    int n = o->kind->states(o, states);
    for (int i = 0; i < n; i++)
        x.state[i] = optimizer_state(g, states[i], param);
    snprintf(name, sizeof name, "%s.%s", param->name, tp_dtype_name(s->options.compute_dtype));
    const tp_state *shadow = tp_states_find(&s->states, name);
    if (shadow && shadow->kind == TP_MEM_SHADOW)
        x.shadow = tp_graph_state(g, name, shadow->dtype, param->rank, param->dim, TP_MEM_SHADOW);
    o->kind->update(o, &x, g, param->name);
    const tp_node *node = &g->nodes[g->n_nodes - 1];
    for (int k = 0; k < node->n_out; k++)
        if (node->out[k])
            tp_graph_output(g, node->out[k]);
}

static tp_status build_update(tp_session *s, tp_error *err)
{
    size_t n;
    const tp_param *params = tp_model_params(s->model, &n);
    program *p = &s->update;
    TP_TRY(tp_graph_init(&p->graph, err));
    p->graph.phase = TP_PHASE_UPDATE;
    const int64_t n_scalars = TP_OPTIMIZER_SCALARS;
    const tp_optimizer_settings adamw = {.kind = &tp_optimizer_adamw};
    const tp_optimizer_settings *o = s->options.optimizer ? s->options.optimizer : &adamw;
    tp_ref scalars = tp_graph_input(&p->graph, "scalars", TP_DTYPE_F64, 1, &n_scalars);
    for (size_t i = 0; i < n; i++)
        update_param(s, o, &p->graph, &params[i], scalars);
    TP_TRY(tp_graph_verify(&p->graph, err));
    TP_TRY(plan(s, p, err));
    return declare_states(s, p, err);
}

static tp_status build_norm(tp_session *s, tp_error *err)
{
    size_t n;
    const tp_param *params = tp_model_params(s->model, &n);
    program *p = &s->norm;
    TP_TRY(tp_graph_init(&p->graph, err));
    p->graph.phase = TP_PHASE_UPDATE;
    int64_t one = 1;
    tp_ref sum =
        tp_graph_state(&p->graph, "grad_norm.sumsq", TP_DTYPE_F64, 1, &one, TP_MEM_GRADIENTS);
    for (size_t i = 0; i < n; i++) {
        tp_ref in[2] = {optimizer_state(&p->graph, "grad", &params[i]), sum};
        sum = tp_graph_op(&p->graph, TP_OP_sumsq, NULL, 2, in, params[i].name);
    }
    tp_graph_output(&p->graph, sum);
    TP_TRY(tp_graph_verify(&p->graph, err));
    TP_TRY(plan(s, p, err));
    return declare_states(s, p, err);
}

static tp_status build(tp_session *s, tp_error *err)
{
    TP_TRY(tp_states_init(&s->states, err));
    TP_TRY(tp_model_declare(s->model, s->options.max_positions, &s->states, err));
    TP_TRY(build_objective(s, &s->eval, false, err));
    if (s->options.forward_only)
        return TP_OK;
    TP_TRY(build_objective(s, &s->train, true, err));
    TP_TRY(build_norm(s, err));
    return build_update(s, err);
}

tp_status tp_session_create(const tp_model *model, const tp_session_options *options,
                            tp_session **ret, tp_error *err)
{
    tp_session *s = calloc(1, sizeof *s);
    if (!s)
        return tp_fail(err, TP_ERR_NOMEM, "cannot create a session: out of memory");
    s->model = model;
    s->options = *options;
    s->loss_scale = 1.0f;
    s->train.name = "train";
    s->eval.name = "eval";
    s->norm.name = "norm";
    s->update.name = "update";
    static const char *const stages[] = {"graph", "plan", NULL};
    tp_status status = tp_passes_check(options->dump_stages, options->n_dump_stages, stages, err);
    if (status == TP_OK)
        status = build(s, err);
    if (status != TP_OK) {
        tp_session_free(s);
        return status;
    }
    *ret = s;
    return TP_OK;
}

static tp_status bind_program(tp_session *s, program *p, tp_error *err)
{
    return p->exec ? tp_exec_bind(p->exec, &s->states, &s->pool, err) : TP_OK;
}

static batch_inputs find_inputs(const program *p)
{
    const tp_exec *e = p->exec;
    return (batch_inputs){.tokens = tp_exec_input(e, "tokens"),
                          .positions = tp_exec_input(e, "positions"),
                          .targets = tp_exec_input(e, "targets"),
                          .weights = tp_exec_input(e, "loss_weights"),
                          .cu = tp_exec_input(e, "cu_seqlens"),
                          .loss_scale = tp_exec_input(e, "loss_scale")};
}

tp_status tp_session_alloc(tp_session *s, tp_error *err)
{
    s->logp = calloc((size_t)s->options.tokens, sizeof *s->logp);
    if (!s->logp)
        return tp_fail(err, TP_ERR_NOMEM, "cannot keep the log-probabilities of %lld tokens",
                       (long long)s->options.tokens);
    TP_TRY(tp_states_alloc(&s->states, s->options.device, err));
    TP_TRY(tp_exec_pool_alloc(&s->pool, s->options.device, err));
    program *programs[] = {&s->train, &s->eval, &s->norm, &s->update};
    for (int i = 0; i < 4; i++)
        TP_TRY(bind_program(s, programs[i], err));
    s->eval_inputs = find_inputs(&s->eval);
    if (s->train.exec)
        s->train_inputs = find_inputs(&s->train);
    return TP_OK;
}

static void release_program(program *p)
{
    tp_exec_free(p->exec);
    tp_graph_release(&p->graph);
}

void tp_session_free(tp_session *s)
{
    if (!s)
        return;
    release_program(&s->train);
    release_program(&s->eval);
    release_program(&s->norm);
    release_program(&s->update);
    tp_exec_pool_release(&s->pool);
    tp_states_release(&s->states);
    free(s->logp);
    free(s);
}

tp_states *tp_session_states(tp_session *s) { return &s->states; }

const tp_model *tp_session_model(const tp_session *s) { return s->model; }

const tp_session_options *tp_session_get_options(const tp_session *s) { return &s->options; }

/* ---- running ---- */

tp_status tp_session_weights_changed(tp_session *s, tp_error *err)
{
    TP_TRY(tp_model_fill_constants(s->model, &s->states, err));
    return tp_refresh_shadows(&s->states, s->options.device, err);
}

/* The graphs share their inputs' memory, so every run begins by writing all of them. */
static tp_status write_batch(tp_session *s, tp_exec *e, const batch_inputs *in,
                             const tp_batch_view *b, tp_error *err)
{
    TP_TRY(tp_exec_write(e, in->tokens, b->tokens, -1, err));
    TP_TRY(tp_exec_write(e, in->positions, b->positions, -1, err));
    TP_TRY(tp_exec_write(e, in->targets, b->targets, -1, err));
    TP_TRY(tp_exec_write(e, in->weights, b->loss_weights, -1, err));
    TP_TRY(tp_exec_write(e, in->cu, b->cu, -1, err));
    return tp_exec_write(e, in->loss_scale, &s->loss_scale, -1, err);
}

static tp_status read_loss(const tp_exec *e, double *ret, tp_error *err)
{
    float loss;
    TP_TRY(tp_exec_read(e, TP_OUTPUT_LOSS, 0, &loss, sizeof loss, err));
    *ret = (double)loss;
    return TP_OK;
}

tp_status tp_session_train(tp_session *s, const tp_batch_view *batch, bool is_first,
                           double *ret_loss, tp_error *err)
{
    TP_TRY(write_batch(s, s->train.exec, &s->train_inputs, batch, err));
    TP_TRY(tp_exec_run(s->train.exec, !is_first, err));
    return read_loss(s->train.exec, ret_loss, err);
}

tp_status tp_session_train_weighed(tp_session *s, const tp_batch_view *batch, bool is_first,
                                   tp_host_fn fn, void *user, tp_error *err)
{
    tp_exec_set_host(s->train.exec, fn, user);
    TP_TRY(write_batch(s, s->train.exec, &s->train_inputs, batch, err));
    return tp_exec_run(s->train.exec, !is_first, err);
}

tp_status tp_session_eval(tp_session *s, const tp_batch_view *batch, double *ret_loss,
                          const float **ret_logp, tp_error *err)
{
    const tp_exec *e = s->eval.exec;
    TP_TRY(write_batch(s, s->eval.exec, &s->eval_inputs, batch, err));
    TP_TRY(tp_exec_run(s->eval.exec, false, err));
    TP_TRY(read_loss(e, ret_loss, err));
    if (!ret_logp)
        return TP_OK;
    *ret_logp = s->logp;
    return tp_exec_read(e, TP_OUTPUT_LOGP, 0, s->logp, (size_t)s->options.tokens * sizeof *s->logp,
                        err);
}

tp_status tp_session_grad_norm(tp_session *s, double *ret_norm, tp_error *err)
{
    double sum;
    TP_TRY(tp_exec_run(s->norm.exec, false, err));
    TP_TRY(tp_exec_read(s->norm.exec, 0, 0, &sum, sizeof sum, err));
    *ret_norm = sqrt(sum);
    return TP_OK;
}

tp_status tp_session_update(tp_session *s, const tp_optimizer_scalars *scalars, tp_error *err)
{
    tp_exec *e = s->update.exec;
    s->scalars = *scalars;
    TP_TRY(tp_exec_write(e, tp_exec_input(e, "scalars"), s->scalars.v, -1, err));
    return tp_exec_run(e, true, err);
}

tp_status tp_session_find_nonfinite(tp_session *s, const tp_batch_view *batch, char *out,
                                    size_t cap, tp_error *err)
{
    static const char *const phases[] = {"forward", "backward", "update"};
    int bad;
    TP_TRY(write_batch(s, s->train.exec, &s->train_inputs, batch, err));
    TP_TRY(tp_exec_run_checked(s->train.exec, false, &bad, err));
    if (bad < 0) {
        snprintf(out, cap, "%s", "");
        return TP_OK;
    }
    const tp_launch_info *info = tp_exec_launch(s->train.exec, (size_t)bad);
    snprintf(out, cap, "%s (%s, %s)", info->label, tp_ops[info->op]->name, phases[info->phase]);
    return TP_OK;
}

/* ---- the plan ---- */

void tp_session_get_plan(const tp_session *s, tp_session_plan *ret)
{
    *ret = (tp_session_plan){0};
    tp_states_bytes(&s->states, ret->bytes);
    ret->checkpoint_bytes = ret->bytes[TP_MEM_WEIGHTS] + ret->bytes[TP_MEM_OPTIMIZER];
    ret->bytes[TP_MEM_ACTIVATIONS] = s->pool.arena_bytes;
    ret->bytes[TP_MEM_WORKSPACE] = s->pool.workspace_bytes;
    ret->bytes[TP_MEM_DATA] = s->pool.input_bytes;
    for (int k = 0; k < TP_MEM_KINDS; k++)
        ret->peak_bytes += ret->bytes[k];
    const tp_exec *e = s->train.exec ? s->train.exec : s->eval.exec;
    ret->activation_live_bytes = tp_exec_live_peak_bytes(e);
    ret->train_flops = tp_exec_flops(e, true);
    ret->train_bytes = tp_exec_bytes(e);
    ret->n_launches = tp_exec_launch_count(e);
    for (size_t i = 0; i < ret->n_launches; i++)
        if (tp_exec_launch(e, i)->is_clone)
            ret->recompute_flops += tp_exec_launch(e, i)->flops;
    if (s->update.exec)
        ret->update_bytes = tp_exec_bytes(s->update.exec) + tp_exec_bytes(s->norm.exec);
}

static const program *program_of(const tp_session *s, const char *which)
{
    const program *programs[] = {&s->train, &s->eval, &s->norm, &s->update};
    for (int i = 0; i < 4; i++)
        if (strcmp(programs[i]->name, which) == 0)
            return programs[i];
    return NULL;
}

const tp_exec *tp_session_exec(const tp_session *s, const char *which)
{
    const program *p = program_of(s, which);
    return p ? p->exec : NULL;
}

const tp_graph *tp_session_graph(const tp_session *s, const char *which)
{
    const program *p = program_of(s, which);
    return p && p->exec ? &p->graph : NULL;
}

void tp_session_reset_times(tp_session *s)
{
    program *programs[] = {&s->train, &s->eval, &s->norm, &s->update};
    for (int i = 0; i < 4; i++)
        if (programs[i]->exec)
            tp_exec_reset_times(programs[i]->exec);
}

uint64_t tp_session_phase_ns(const tp_session *s, tp_phase phase)
{
    uint64_t ns = 0;
    for (size_t i = 0; s->train.exec && i < tp_exec_launch_count(s->train.exec); i++) {
        const tp_launch_info *info = tp_exec_launch(s->train.exec, i);
        if (info->phase == phase)
            ns += info->ns;
    }
    return ns;
}
