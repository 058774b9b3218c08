/* session.c - the graphs of a run (training, evaluation, gradient norm, update), planned together
 * and sharing one pool, because they never run at the same time. */
#include "engine/train/session.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/platform.h"
#include "base/rng.h"
#include "engine/model/adapter.h"
#include "engine/train/objective.h"
#include "engine/train/parts.h"

typedef struct {
    int tokens, positions, targets, weights, cu, loss_scale, dropout_seed;
} batch_inputs;

/* EXACT: training on fewer tokens with activations as they are, to hold others against it. */
enum { TRAIN, EXACT, EVAL, NORM, CLIP, UPDATE, GATHER, N_GRAPHS };
static const char *const graph_names[N_GRAPHS] = {"train", "exact",  "eval",  "norm",
                                                  "clip",  "update", "gather"};
enum { EXACT_PART = 4 };
/* A row alone costs what its tile does, and very few rows would be another product. */
enum { ROWS_TOGETHER = 16, LEAST_ROWS = 32 };

struct tp_session {
    const tp_model *model;
    tp_session_options options;
    tp_program *program;
    bool owns_program;
    int graphs[N_GRAPHS];          /* of the program; -1: none */
    tp_states own_states, *states; /* whichever they are: its own or shared ones */
    /* What a graph is given: the device may read it late. */
    float loss_scale;
    tp_optimizer_scalars scalars;
    double limits[3];  /* of clipping */
    uint32_t noise[4]; /* of the micro-batch */
    float *logp;       /* what the last evaluation said */
    uint64_t noise_seed;
    int64_t noise_step, noise_micro;
    batch_inputs inputs[N_GRAPHS]; /* of those that read a batch */
};

/* ---- building ---- */

static tp_exec *exec_of(const tp_session *s, int which)
{
    return s->graphs[which] < 0 ? NULL : tp_program_exec(s->program, s->graphs[which]);
}

static tp_status add_graph(tp_session *s, int which, tp_graph **ret, tp_error *err)
{
    const tp_session_options *o = &s->options;
    double context = o->avg_context > 0 ? o->avg_context : 0.5 * (double)(o->max_positions + 1);
    const char *name = o->forward_only && o->name ? o->name : graph_names[which];
    TP_TRY(tp_program_add(s->program, name, s->states, context, &s->graphs[which], err));
    *ret = tp_program_graph(s->program, s->graphs[which]);
    return TP_OK;
}

/* A reference is the base, and the adapter that training began with where that was trained
 * before. */
static tp_adapter_use adapter_of(const tp_session *s)
{
    return !s->options.shares                  ? TP_ADAPTER_LIVE
           : tp_model_adapter_folder(s->model) ? TP_ADAPTER_REFERENCE
                                               : TP_ADAPTER_OFF;
}

static int64_t tokens_of(const tp_session *s, int which)
{
    return which == EXACT ? (s->options.tokens + EXACT_PART - 1) / EXACT_PART : s->options.tokens;
}

static tp_status build_objective(tp_session *s, int which, tp_error *err)
{
    tp_graph *g;
    bool with_gradient = which != EVAL;
    tp_objective_options options = {.tokens = tokens_of(s, which),
                                    .max_positions = s->options.max_positions,
                                    .loss_chunk = s->options.compile.passes.loss_chunk,
                                    .with_gradient = with_gradient,
                                    .adapter = adapter_of(s),
                                    .temperature = s->options.temperature};
    TP_TRY(add_graph(s, which, &g, err));
    g->stays_exact = which == EXACT;
    return s->options.weighed ? tp_objective_weighed(s->model, &options, g, err)
                              : tp_objective_sft(s->model, &options, g, err);
}

static const tp_ranks *ranks_of(const tp_session *s) { return &s->options.compile.ranks; }

/* Whether each rank updates its part of every weight. */
static bool is_sharded(const tp_session *s)
{
    return ranks_of(s)->ranks > 1 && s->options.compile.passes.shards_optimizer;
}

static bool keeps_parts(const tp_session *s, tp_role role) { return s->states->parts >> role & 1; }

/* Weights are whole again after the update, unless they are gathered where they are read. */
static bool gathers_after_update(const tp_session *s)
{
    return is_sharded(s) && !keeps_parts(s, TP_ROLE_WEIGHT);
}

/* After the update of parts: every weight is whole again on every rank. */
static tp_status build_gather(tp_session *s, tp_error *err)
{
    size_t n;
    tp_graph *g;
    const tp_param *params = tp_model_trained(s->model, &n);
    TP_TRY(add_graph(s, GATHER, &g, err));
    g->phase = TP_PHASE_UPDATE;
    for (size_t i = 0; i < n; i++) {
        tp_tensor weight = tp_param_tensor(&params[i]);
        tp_ref w = tp_graph_state(g, &weight);
        tp_ref begun = tp_graph_op(g, TP_OP_all_gather, NULL, 1, &w, params[i].name);
        tp_graph_output(g, tp_graph_op(g, TP_OP_wait, NULL, 1, &begun, params[i].name));
    }
    return TP_OK;
}

static tp_status build_update(tp_session *s, tp_error *err)
{
    size_t n;
    tp_graph *g;
    const tp_param *params = tp_model_trained(s->model, &n);
    TP_TRY(add_graph(s, UPDATE, &g, err));
    g->phase = TP_PHASE_UPDATE;
    const tp_optimizer_settings adamw = {.kind = &tp_optimizer_adamw};
    const tp_optimizer_settings *o = s->options.optimizer ? s->options.optimizer : &adamw;
    tp_optimizer_inputs in = tp_optimizer_declare(o, g);
    for (size_t i = 0; i < n; i++) {
        tp_tensor weight = tp_param_tensor(&params[i]);
        const tp_optimizer_weight its = {.tensor = &weight,
                                         .is_hidden = tp_param_is_hidden(&params[i]),
                                         .is_embedding = tp_param_is_embedding(&params[i])};
        tp_optimizer_add(o, g, &its, &in);
    }
    return gathers_after_update(s) ? build_gather(s, err) : TP_OK;
}

static tp_status build_norm(tp_session *s, tp_error *err)
{
    size_t n;
    tp_graph *g;
    const tp_param *params = tp_model_trained(s->model, &n);
    TP_TRY(add_graph(s, NORM, &g, err));
    g->phase = TP_PHASE_UPDATE;
    const tp_tensor squares = {.name = "grad_norm.sumsq",
                               .role = TP_ROLE_GRADIENT,
                               .dtype = TP_DTYPE_F64,
                               .rank = 1,
                               .dim = {1}};
    tp_ref sum = tp_graph_state(g, &squares);
    for (size_t i = 0; i < n; i++) {
        tp_tensor weight = tp_param_tensor(&params[i]);
        tp_tensor gradient = tp_tensor_gradient(&weight, &g->arena);
        tp_ref in[2] = {tp_graph_state(g, &gradient), sum};
        sum = tp_graph_op(g, TP_OP_sumsq, NULL, 2, in, params[i].name);
    }
    tp_graph_output(g, sum);
    return TP_OK;
}

static tp_ref gradient_of(tp_graph *g, const tp_tensor *weight)
{
    tp_tensor gradient = tp_tensor_gradient(weight, &g->arena);
    return tp_graph_state(g, &gradient);
}

/* Adaptive clipping leaves the head as it is. */
static void clip_parameter(tp_session *s, tp_graph *g, const tp_param *param, tp_ref limits)
{
    tp_tensor weight = tp_param_tensor(param);
    tp_ref gradient = gradient_of(g, &weight);
    if (s->options.clips_adaptively && !tp_model_is_head(s->model, param)) {
        const tp_attrs attrs = {.transposed = param->is_transposed};
        tp_ref in[] = {gradient, tp_graph_state(g, &weight), limits};
        gradient = tp_graph_op(g, TP_OP_clip_adaptive, &attrs, 3, in, param->name);
    } else if (s->options.clips_adaptively || s->options.clips_value) {
        tp_ref in[] = {gradient, limits};
        gradient = tp_graph_op(g, TP_OP_clip_value, NULL, 2, in, param->name);
    }
    tp_graph_output(g, gradient);
}

static tp_status build_clip(tp_session *s, tp_error *err)
{
    size_t n;
    tp_graph *g;
    const int64_t three = 3;
    const tp_param *params = tp_model_trained(s->model, &n);
    if (!s->options.clips_value && !s->options.clips_adaptively)
        return TP_OK;
    TP_TRY(add_graph(s, CLIP, &g, err));
    g->phase = TP_PHASE_UPDATE;
    tp_ref limits = tp_graph_input(g, "limits", TP_DTYPE_F64, 1, &three);
    for (size_t i = 0; i < n; i++)
        clip_parameter(s, g, &params[i], limits);
    return TP_OK;
}

/* Parts that other ranks hold are read through the states' own address. */
static void take_tensors(tp_session *s, tp_session *from)
{
    TP_ASSERT(!from->own_states.parts);
    s->own_states = from->own_states;
    from->own_states = (tp_states){0};
    tp_states_drop(&s->own_states, TP_ROLE_CACHE);
}

static tp_status build_states(tp_session *s, tp_error *err)
{
    if (s->options.takes_over)
        take_tensors(s, s->options.takes_over);
    else
        TP_TRY(tp_states_init(s->states, err));
    const tp_ranks *ranks = ranks_of(s);
    tp_states_keep_parts(s->states, tp_ranks_shard(ranks), tp_ranks_row(ranks), s->options.parts);
    s->states->copies = ranks->tensor.count;
    s->states->reader = (tp_part_reader){tp_parts_read_together, &s->options.compile.ranks};
    return tp_model_declare(s->model, s->options.max_positions, s->states, err);
}

static tp_status build(tp_session *s, tp_error *err)
{
    s->states = s->options.shares ? s->options.shares->states : &s->own_states;
    if (!s->options.shares)
        TP_TRY(build_states(s, err));
    TP_TRY(build_objective(s, EVAL, err));
    if (s->options.forward_only)
        return TP_OK;
    TP_TRY(build_objective(s, TRAIN, err));
    if (s->options.compile.passes.compresses && tp_ranks_processes(ranks_of(s)) < 2)
        TP_TRY(build_objective(s, EXACT, err));
    TP_TRY(build_norm(s, err));
    TP_TRY(build_clip(s, err));
    return build_update(s, err);
}

static tp_status create(tp_session *s, tp_error *err)
{
    s->owns_program = !s->program;
    if (s->owns_program)
        TP_TRY(tp_program_create(&s->options.compile, &s->program, err));
    s->options.program = s->program;
    s->options.compile = *tp_program_get_options(s->program);
    TP_TRY(build(s, err));
    return s->owns_program ? tp_program_compile(s->program, err) : TP_OK;
}

tp_status tp_session_create(const tp_model *model, const tp_session_options *options,
                            tp_session **ret, tp_error *err)
{
    tp_session *s = tp_new(1, sizeof *s);
    s->model = model;
    s->options = *options;
    s->program = options->program;
    s->loss_scale = 1.0f;
    memset(s->graphs, -1, sizeof s->graphs);
    TP_HAND_OVER(create(s, err), ret, s, tp_session_free(s));
}

static batch_inputs find_inputs(const tp_exec *e)
{
    return (batch_inputs){.tokens = tp_exec_input(e, "tokens"),
                          .positions = tp_exec_input(e, "positions"),
                          .targets = tp_exec_input(e, "targets"),
                          .weights = tp_exec_input(e, "loss_weights"),
                          .cu = tp_exec_input(e, "cu_seqlens"),
                          .loss_scale = tp_exec_input(e, "loss_scale"),
                          .dropout_seed = tp_exec_input(e, "dropout_seed")};
}

tp_status tp_session_alloc(tp_session *s, tp_error *err)
{
    s->logp = tp_new((size_t)s->options.tokens, sizeof *s->logp);
    TP_TRY(tp_program_alloc(s->program, s->states, err));
    for (int i = TRAIN; i <= EVAL; i++)
        if (exec_of(s, i))
            s->inputs[i] = find_inputs(exec_of(s, i));
    return TP_OK;
}

void tp_session_free(tp_session *s)
{
    if (!s)
        return;
    if (s->owns_program)
        tp_program_free(s->program);
    tp_states_release(&s->own_states);
    free(s->logp);
    free(s);
}

tp_states *tp_session_states(tp_session *s) { return s->states; }

const tp_model *tp_session_model(const tp_session *s) { return s->model; }

const tp_session_options *tp_session_get_options(const tp_session *s) { return &s->options; }

/* ---- running ---- */

void tp_session_begin_step(tp_session *s, uint64_t seed, int64_t step)
{
    s->noise_seed = seed;
    s->noise_step = step;
    s->noise_micro = 0;
}

tp_status tp_session_weights_changed(tp_session *s, tp_error *err)
{
    TP_TRY(tp_model_fill_constants(s->model, s->states, err));
    return tp_refresh_shadows(s->states, s->options.compile.device, true, err);
}

/* What is dropped depends on the seed, the step and the micro-batch alone: a resumed run drops the
 * same. */
static tp_status write_seed(tp_session *s, tp_exec *e, int input, tp_error *err)
{
    const tp_ranks *r = ranks_of(s);
    int64_t micro = s->noise_micro++ * (r->ranks > 1 ? r->ranks : 1) + r->rank;
    tp_philox(s->noise_seed, (uint64_t)s->noise_step, (uint64_t)micro, s->noise);
    return tp_exec_write(e, input, s->noise, -1, err);
}

int64_t tp_session_rows(const tp_session *s, int64_t n_used)
{
    int64_t groups = (n_used + ROWS_TOGETHER - 1) / ROWS_TOGETHER;
    bool all = s->options.keeps_padding || n_used == 0;
    return all ? s->options.tokens
               : TP_MIN(TP_MAX(groups * ROWS_TOGETHER, LEAST_ROWS), s->options.tokens);
}

static tp_status write_rows(tp_exec *e, int input, const void *data, int64_t rows, tp_error *err)
{
    tp_exec_set_rows(e, input, rows);
    return tp_exec_write(e, input, data, rows, err);
}

/* The graphs share their inputs' memory, so every run begins by writing all of them. */
static tp_status write_batch(tp_session *s, int which, const tp_batch_view *b, tp_error *err)
{
    tp_exec *e = exec_of(s, which);
    const batch_inputs *in = &s->inputs[which];
    int64_t rows = TP_MIN(tp_session_rows(s, b->n_used), tokens_of(s, which));
    TP_TRY(write_rows(e, in->tokens, b->tokens, rows, err));
    TP_TRY(write_rows(e, in->positions, b->positions, rows, err));
    TP_TRY(write_rows(e, in->targets, b->targets, rows, err));
    TP_TRY(write_rows(e, in->weights, b->loss_weights, rows, err));
    TP_TRY(tp_exec_write(e, in->cu, b->cu, -1, err));
    if (in->dropout_seed >= 0)
        TP_TRY(write_seed(s, e, in->dropout_seed, err));
    return tp_exec_write(e, in->loss_scale, &s->loss_scale, -1, err);
}

static tp_status read_loss(const tp_exec *e, double *ret, tp_error *err)
{
    float loss;
    TP_TRY(tp_exec_read(e, TP_OUTPUT_LOSS, 0, &loss, sizeof loss, err));
    *ret = (double)loss;
    return TP_OK;
}

void tp_session_set_last(tp_session *s, bool is_last)
{
    tp_exec_set_talk(exec_of(s, TRAIN), is_last ? TP_TALK_ALL : TP_TALK_PARTS);
}

tp_status tp_session_train(tp_session *s, const tp_batch_view *batch, bool is_first,
                           double *ret_loss, tp_error *err)
{
    TP_TRY(write_batch(s, TRAIN, batch, err));
    TP_TRY(tp_program_run(s->program, s->graphs[TRAIN], !is_first, err));
    return read_loss(exec_of(s, TRAIN), ret_loss, err);
}

tp_status tp_session_train_weighed(tp_session *s, const tp_batch_view *batch, bool is_first,
                                   tp_host_fn fn, void *user, tp_error *err)
{
    tp_exec_set_host(exec_of(s, TRAIN), fn, user);
    TP_TRY(write_batch(s, TRAIN, batch, err));
    return tp_program_run(s->program, s->graphs[TRAIN], !is_first, err);
}

tp_status tp_session_eval(tp_session *s, const tp_batch_view *batch, double *ret_loss,
                          const float **ret_logp, tp_error *err)
{
    tp_exec *e = exec_of(s, EVAL);
    TP_TRY(write_batch(s, EVAL, batch, err));
    TP_TRY(tp_program_run(s->program, s->graphs[EVAL], false, err));
    TP_TRY(read_loss(e, ret_loss, err));
    if (!ret_logp)
        return TP_OK;
    *ret_logp = s->logp;
    size_t rows = (size_t)tp_session_rows(s, batch->n_used);
    memset(s->logp + rows, 0, ((size_t)s->options.tokens - rows) * sizeof *s->logp);
    return tp_exec_read(e, TP_OUTPUT_LOGP, 0, s->logp, rows * sizeof *s->logp, err);
}

tp_status tp_session_grad_norm(tp_session *s, double *ret_norm, tp_error *err)
{
    double sum;
    TP_TRY(tp_program_run(s->program, s->graphs[NORM], false, err));
    TP_TRY(tp_exec_read(exec_of(s, NORM), 0, 0, &sum, sizeof sum, err));
    if (is_sharded(s) && ranks_of(s)->rank >= tp_ranks_shard(ranks_of(s)).count)
        sum = 0;                                          /* another rank keeps the same part */
    TP_TRY(tp_comm_sum(ranks_of(s)->comm, &sum, 1, err)); /* each rank's part of it */
    *ret_norm = sqrt(sum);
    return TP_OK;
}

void tp_session_set_loss_scale(tp_session *s, float scale) { s->loss_scale = scale; }

tp_status tp_session_clip(tp_session *s, double unscale, double value, double factor, tp_error *err)
{
    tp_exec *e = exec_of(s, CLIP);
    memcpy(s->limits, (const double[]){unscale, value, factor}, sizeof s->limits);
    TP_TRY(tp_exec_write(e, tp_exec_input(e, "limits"), s->limits, -1, err));
    return tp_program_run(s->program, s->graphs[CLIP], true, err);
}

tp_status tp_session_update(tp_session *s, const tp_optimizer_scalars *scalars, tp_error *err)
{
    tp_exec *e = exec_of(s, UPDATE);
    s->scalars = *scalars;
    TP_TRY(tp_exec_write(e, tp_exec_input(e, "scalars"), s->scalars.v, -1, err));
    int rest = tp_exec_input(e, "scalars.rest");
    if (rest >= 0)
        TP_TRY(tp_exec_write(e, rest, s->scalars.rest, -1, err));
    TP_TRY(tp_program_run(s->program, s->graphs[UPDATE], true, err));
    if (!is_sharded(s))
        return TP_OK;
    if (gathers_after_update(s))
        TP_TRY(tp_program_run(s->program, s->graphs[GATHER], true, err));
    return tp_refresh_shadows(s->states, s->options.compile.device, false, err);
}

tp_status tp_session_find_nonfinite(tp_session *s, const tp_batch_view *batch, char *out,
                                    size_t cap, tp_error *err)
{
    static const char *const phases[] = {"forward", "backward", "update"};
    int bad;
    tp_exec *e = exec_of(s, TRAIN);
    TP_TRY(write_batch(s, TRAIN, batch, err));
    TP_TRY(tp_exec_run_checked(e, false, &bad, err));
    if (bad < 0) {
        snprintf(out, cap, "%s", "");
        return TP_OK;
    }
    const tp_launch_info *info = tp_exec_launch(e, (size_t)bad);
    snprintf(out, cap, "%s (%s, %s)", info->label, tp_ops[info->op]->name, phases[info->phase]);
    return TP_OK;
}

/* ---- the error of activations in 8 bits ---- */

/* The first n tokens of a batch: others weigh nothing, sequences end where they do. */
static tp_batch_view cut(const tp_batch_view *b, int64_t n, int64_t tokens, float *weights,
                         int32_t *cu)
{
    tp_batch_view first = *b;
    for (int64_t i = 0; i < tokens; i++)
        weights[i] = i < n ? b->loss_weights[i] : 0;
    for (int64_t i = 0; i <= tokens; i++)
        cu[i] = (int32_t)TP_MIN(b->cu[i], n);
    first.loss_weights = weights;
    first.cu = cu;
    first.n_used = b->n_used ? TP_MIN(b->n_used, n) : n;
    return first;
}

static tp_status add_gradients(tp_session *s, int which, const tp_batch_view *batch, float sign,
                               double *ret_norm, tp_error *err)
{
    const float scale = s->loss_scale;
    int64_t micro = s->noise_micro;
    tp_exec_set_host(exec_of(s, which), NULL, NULL);
    s->loss_scale = sign * scale; /* the device reads it later: until the norm is known */
    tp_status status = write_batch(s, which, batch, err);
    if (status == TP_OK)
        status = tp_program_run(s->program, s->graphs[which], sign < 0, err);
    if (status == TP_OK)
        status = tp_session_grad_norm(s, ret_norm, err);
    s->loss_scale = scale;
    s->noise_micro = micro;
    return status;
}

/* The gradients of the one less those of the other, in the buffers that there are. */
static tp_status subtract(tp_session *s, const tp_batch_view *batch, double *ret, tp_error *err)
{
    double whole, difference;
    TP_TRY(add_gradients(s, EXACT, batch, 1, &whole, err));
    TP_TRY(add_gradients(s, TRAIN, batch, -1, &difference, err));
    *ret = whole > 0 ? difference / whole : NAN;
    return TP_OK;
}

tp_status tp_session_gradient_error(tp_session *s, const tp_batch_view *batch, double *ret,
                                    tp_error *err)
{
    int64_t tokens = s->options.tokens;
    *ret = NAN;
    if (!exec_of(s, EXACT))
        return TP_OK;
    TP_FREED float *weights = tp_new((size_t)tokens, sizeof *weights);
    TP_FREED int32_t *cu = tp_new((size_t)tokens + 1, sizeof *cu);
    tp_batch_view first = cut(batch, tokens_of(s, EXACT), tokens, weights, cu);
    return subtract(s, &first, ret, err);
}

/* ---- the plan ---- */

/* What a checkpoint saves of the weights: of an adapter's base nothing. */
static size_t trained_bytes(const tp_session *s)
{
    size_t n, bytes = 0;
    const tp_param *params = tp_model_trained(s->model, &n);
    for (size_t i = 0; i < n; i++)
        bytes += (size_t)(params[i].dim[0] * params[i].dim[1]) * sizeof(float);
    return bytes;
}

/* What it saves beside them: of every rank, unless all have the same. */
static size_t optimizer_bytes(const tp_session *s)
{
    size_t bytes = 0;
    for (size_t i = 0; i < s->states->n; i++) {
        const tp_tensor *t = &s->states->items[i];
        if (tp_role_memory(t->role) == TP_MEM_OPTIMIZER)
            bytes += tp_is_sliced(t) || t->keeps_part ? tp_tensor_count(t) * tp_dtype_size(t->dtype)
                                                      : tp_tensor_room(t);
    }
    return bytes;
}

void tp_session_get_plan(const tp_session *s, tp_session_plan *ret)
{
    const tp_exec *e = exec_of(s, s->options.forward_only ? EVAL : TRAIN);
    *ret = (tp_session_plan){
        .checkpoint_bytes = trained_bytes(s) + optimizer_bytes(s),
        .activation_bytes = tp_exec_arena_bytes(e),
        .activation_live_bytes = tp_exec_live_peak_bytes(e),
        .train_flops = tp_exec_flops(e, true),
        .train_bytes = tp_exec_bytes(e),
        .n_launches = tp_exec_launch_count(e),
    };
    for (size_t i = 0; i < ret->n_launches; i++)
        if (tp_exec_launch(e, i)->is_clone)
            ret->recompute_flops += tp_exec_launch(e, i)->flops;
    if (!s->options.forward_only)
        ret->update_bytes = tp_exec_bytes(exec_of(s, UPDATE)) + tp_exec_bytes(exec_of(s, NORM)) +
                            (exec_of(s, CLIP) ? tp_exec_bytes(exec_of(s, CLIP)) : 0);
}

static int find_graph(const char *which)
{
    for (int i = 0; i < N_GRAPHS; i++)
        if (strcmp(graph_names[i], which) == 0)
            return i;
    return -1;
}

const tp_exec *tp_session_exec(const tp_session *s, const char *which)
{
    int i = find_graph(which);
    return i < 0 ? NULL : exec_of(s, i);
}

void tp_session_reset_times(tp_session *s)
{
    for (int i = 0; i < N_GRAPHS; i++)
        if (exec_of(s, i))
            tp_exec_reset_times(exec_of(s, i));
}

uint64_t tp_session_phase_ns(const tp_session *s, tp_phase phase)
{
    uint64_t ns = 0;
    const tp_exec *train = exec_of(s, TRAIN);
    for (size_t i = 0; train && i < tp_exec_launch_count(train); i++) {
        const tp_launch_info *info = tp_exec_launch(train, i);
        if (info->phase == phase)
            ns += info->ns;
    }
    return ns;
}
