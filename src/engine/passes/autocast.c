/* autocast.c - which tensors are bf16 when policy.precision is bfloat16, or f16 when it is float16.
 *
 * The policy, by what a tensor is (every op computes in f32 inside and rounds
 * once, so it concerns storage and the operands of products only):
 *
 *     weights of products        half shadow of the f32 master, refreshed by adamw
 *     embedding table            the shadow when the head is tied to it, else the f32
 *                                master, rounded on look-up
 *     norm weights, biases       f32
 *     activations, residual      bf16
 *     gradients of activations   bf16
 *     gradients of weights       f32, accumulated in f32
 *     statistics, log-sum-exp,   f32
 *       log-probabilities, loss
 *     optimizer moments          f32
 */
#include "engine/passes/pass.h"

/* The operand of `n` that is a product's weight, or -1. */
static int weight_operand(const tp_node *n)
{
    const tp_signature *sig = tp_op_signature(n->op);
    for (int i = 0; i < n->n_in && (tp_ops[n->op]->traits & TP_OP_CONTRACTS); i++)
        if (sig->in[i].kind == TP_KIND_w && sig->in[i].rank == 2)
            return i;
    return -1;
}

tp_ref tp_pass_copy(tp_graph *g, const tp_tensor *weight, tp_dtype dtype, tp_layout layout,
                    const int64_t dim[2])
{
    tp_ref known = tp_graph_find_tensor(g, TP_ROLE_COPY, weight->name, layout, dtype);
    if (known)
        return known;
    bool is_plain = layout == TP_LAYOUT_ROWS;
    tp_tensor copy = {
        .name = tp_arena_printf(&g->arena, "%s%s%s.%s", weight->name, is_plain ? "" : ".",
                                is_plain ? "" : tp_layout_name(layout), tp_dtype_name(dtype)),
        .role = TP_ROLE_COPY,
        .of = weight->name,
        .dtype = dtype,
        .layout = layout,
        .slice = weight->slice,
        .rank = 2,
        .dim = {dim[0], dim[1]}};
    return tp_graph_state(g, &copy);
}

static bool is_master(const tp_graph *g, tp_ref ref)
{
    const tp_tensor *t = g->values[ref].tensor;
    return t && (t->role == TP_ROLE_WEIGHT || t->role == TP_ROLE_ADAPTER) &&
           t->dtype == TP_DTYPE_F32;
}

static bool is_activation(const tp_graph *g, const tp_node *n, int out)
{
    const tp_value *v = &g->values[n->out[out]];
    return v->dtype == TP_DTYPE_F32 && !v->is_exact && !tp_op_out_fixed(n->op, out) &&
           !(tp_ops[n->op]->traits & (TP_OP_SOURCE | TP_OP_UPDATE));
}

static void cast_outputs(tp_graph *g, const tp_node *n, tp_dtype dtype)
{
    for (int k = 0; k < n->n_out; k++) {
        tp_ref shared = tp_ops[n->op]->traits & TP_OP_VIEW ? n->in[0] : tp_overwrites(n, k);
        if (shared)
            g->values[n->out[k]].dtype = g->values[shared].dtype;
        else if (is_activation(g, n, k))
            g->values[n->out[k]].dtype = dtype;
    }
}

/* A table whose shadow some product uses is looked up in the shadow. */
static void share_shadow(tp_graph *g, tp_node *embed, tp_dtype dtype)
{
    tp_ref table = embed->in[1];
    if (!is_master(g, table))
        return;
    const tp_tensor *weight = g->values[table].tensor;
    tp_ref shadow = tp_graph_find_tensor(g, TP_ROLE_COPY, weight->name, TP_LAYOUT_ROWS, dtype);
    if (shadow)
        embed->in[1] = shadow;
}

static tp_status run(tp_graph *g, const tp_pass_options *options, bool *changed, tp_error *err)
{
    (void)err;
    tp_dtype dtype = options->compute_dtype;
    if (dtype == TP_DTYPE_F32)
        return TP_OK;
    uint32_t n_nodes = g->n_nodes;
    for (uint32_t i = 1; i < n_nodes; i++) {
        cast_outputs(g, &g->nodes[i], dtype);
        int w = weight_operand(&g->nodes[i]);
        if (w >= 0 && is_master(g, g->nodes[i].in[w])) {
            const tp_tensor *weight = g->values[g->nodes[i].in[w]].tensor;
            tp_ref copy = tp_pass_copy(g, weight, dtype, TP_LAYOUT_ROWS, weight->dim);
            g->nodes[i].in[w] = copy; /* declaring it may have moved the nodes */
        }
    }
    for (uint32_t i = 1; i < n_nodes; i++)
        if (g->nodes[i].op == TP_OP_embed)
            share_shadow(g, &g->nodes[i], dtype);
    *changed = true;
    return TP_OK;
}

/* A copy of `weight` that some other graph of the set reads. */
static const tp_tensor *find_copy(const tp_graph *g, tp_graph *const *set, size_t n,
                                  const tp_tensor *weight, tp_dtype dtype)
{
    for (size_t i = 0; i < n; i++) {
        tp_ref ref =
            tp_graph_find_tensor(set[i], TP_ROLE_COPY, weight->name, TP_LAYOUT_ROWS, dtype);
        if (ref && set[i] != g)
            return set[i]->values[ref].tensor;
    }
    return NULL;
}

/* Whatever updates a weight writes its copy as well: it has the new value in a register. */
static tp_status join(tp_graph *g, tp_graph *const *set, size_t n_set,
                      const tp_pass_options *options, bool *changed, tp_error *err)
{
    (void)err;
    uint32_t n_nodes = g->n_nodes;
    for (uint32_t i = 1; i < n_nodes && options->compute_dtype != TP_DTYPE_F32; i++) {
        const tp_node *n = &g->nodes[i];
        const tp_signature *sig = tp_op_signature(n->op);
        bool updates = (tp_ops[n->op]->traits & TP_OP_UPDATE) && is_master(g, n->in[0]) &&
                       tp_operand_find(sig->in, sig->n_in, "shadow") == n->n_in;
        const tp_tensor *copy =
            updates ? find_copy(g, set, n_set, g->values[n->in[0]].tensor, options->compute_dtype)
                    : NULL;
        if (!copy)
            continue;
        tp_ref operand = tp_graph_state(g, copy);
        tp_graph_output(g, tp_graph_extend(g, i, operand));
        *changed = true;
    }
    return TP_OK;
}

const tp_pass tp_pass_autocast = {.name = "autocast",
                                  .promise = "activations and products in bf16, the rest in f32",
                                  .run = run,
                                  .join = join};
