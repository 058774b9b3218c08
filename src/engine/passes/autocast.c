/* autocast.c - which tensors are bf16 when policy.precision is bfloat16.
 *
 * The policy, by what a tensor is (every op computes in f32 inside and rounds
 * once, so it concerns storage and the operands of products only):
 *
 *     weights of products        bf16 shadow of the f32 master, refreshed by adamw
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

static const char *shadow_name(tp_graph *g, tp_ref weight, tp_dtype dtype)
{
    return tp_arena_printf(&g->arena, "%s.%s", g->values[weight].name, tp_dtype_name(dtype));
}

static tp_ref shadow_of(tp_graph *g, tp_ref weight, tp_dtype dtype)
{
    const tp_value w = g->values[weight];
    const char *name = shadow_name(g, weight, dtype);
    tp_ref ref = tp_graph_find(g, name);
    return ref ? ref : tp_graph_state(g, name, dtype, w.rank, w.dim, TP_MEM_SHADOW);
}

static bool is_master(const tp_graph *g, tp_ref ref)
{
    const tp_value *v = &g->values[ref];
    return v->node && g->nodes[v->node].op == TP_OP_state && v->kind == TP_MEM_WEIGHTS &&
           v->dtype == TP_DTYPE_F32;
}

static bool is_activation(const tp_graph *g, const tp_node *n, int out)
{
    return g->values[n->out[out]].dtype == TP_DTYPE_F32 && !tp_op_out_fixed(n->op, out) &&
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
    tp_ref shadow = tp_graph_find(g, shadow_name(g, table, dtype));
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
            tp_ref shadow = shadow_of(g, g->nodes[i].in[w], dtype);
            g->nodes[i].in[w] = shadow; /* declaring it may have moved the nodes */
        }
    }
    for (uint32_t i = 1; i < n_nodes; i++)
        if (g->nodes[i].op == TP_OP_embed)
            share_shadow(g, &g->nodes[i], dtype);
    *changed = true;
    return TP_OK;
}

const tp_pass tp_pass_autocast = {
    .name = "autocast", .promise = "activations and products in bf16, the rest in f32", .run = run};
