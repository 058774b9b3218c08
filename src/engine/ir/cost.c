/* cost.c - what a node costs, from its shapes alone. */
#include "engine/ir/graph.h"

static double operand_bytes(const tp_graph *g, const tp_node *n)
{
    double bytes = 0;
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i])
            bytes += (double)tp_value_bytes(&g->values[n->in[i]]);
    for (int i = 0; i < n->n_out; i++)
        bytes += (double)tp_value_bytes(&g->values[n->out[i]]);
    return bytes;
}

/* 2*T*V*C: one pass of the head over all rows. */
static double head_flops(const tp_graph *g, const tp_node *n)
{
    const tp_value *x = &g->values[n->in[0]], *w = &g->values[n->in[1]];
    return 2.0 * (double)x->dim[0] * (double)w->dim[0] * (double)w->dim[1];
}

static double contraction_flops(const tp_graph *g, const tp_node *n, double avg_context)
{
    const tp_value *a = &g->values[n->in[0]];
    double T = (double)a->dim[0];
    double qk = 2.0 * T * avg_context * n->attrs.heads * n->attrs.head_dim;
    switch (n->op) {
    case TP_OP_linear:
    case TP_OP_linear_gelu:
        return 2.0 * T * (double)a->dim[1] * (double)g->values[n->out[0]].dim[1];
    case TP_OP_linear_dx:
        return 2.0 * T * (double)a->dim[1] * (double)g->values[n->out[0]].dim[1];
    case TP_OP_linear_dw:
        return 2.0 * T * (double)a->dim[1] * (double)g->values[n->in[1]].dim[1];
    case TP_OP_linear_panels:
        return 2.0 * T * (double)a->dim[1] * n->attrs.n0;
    case TP_OP_attention:
    case TP_OP_paged_attention:
        return 2.0 * qk; /* q.k and p.v */
    case TP_OP_attention_grad:
        return 5.0 * qk; /* s again, dp, dv, dk, dq */
    case TP_OP_linear_ce:
        return head_flops(g, n);
    case TP_OP_linear_ce_train:
        return 3.0 * head_flops(g, n);
    default:
        return 0;
    }
}

/* Operations per element of the first operand for everything else. */
static double elementwise_flops(const tp_graph *g, const tp_node *n)
{
    static const uint8_t per_element[TP_OP_COUNT] = {
        [TP_OP_add] = 1,
        [TP_OP_mul] = 1,
        [TP_OP_silu] = 5,
        [TP_OP_gelu] = 10,
        [TP_OP_swiglu] = 6,
        [TP_OP_rmsnorm] = 4,
        [TP_OP_layernorm] = 7,
        [TP_OP_add_rmsnorm] = 5,
        [TP_OP_add_layernorm] = 8,
        [TP_OP_rope] = 3,
        [TP_OP_cross_entropy] = 4,
        [TP_OP_linear_db] = 1,
        [TP_OP_silu_grad] = 8,
        [TP_OP_gelu_grad] = 16,
        [TP_OP_swiglu_grad] = 12,
        [TP_OP_embed_grad] = 1,
        [TP_OP_rmsnorm_grad] = 9,
        [TP_OP_layernorm_grad] = 12,
        [TP_OP_cross_entropy_grad] = 4,
        [TP_OP_sumsq] = 2,
        [TP_OP_adamw] = 16,
        [TP_OP_sample] = 12,
    };
    if (n->n_in == 0 || !n->in[0])
        return 0;
    return per_element[n->op] * (double)tp_value_count(&g->values[n->in[0]]);
}

tp_cost tp_node_cost(const tp_graph *g, const tp_node *n, double avg_context)
{
    tp_cost cost = {0};
    uint32_t traits = tp_ops[n->op].traits;
    if (traits & (TP_OP_SOURCE | TP_OP_VIEW))
        return cost;
    cost.bytes = operand_bytes(g, n);
    if (n->op == TP_OP_embed) /* only the rows that are looked up */
        cost.bytes = 2.0 * (double)tp_value_bytes(&g->values[n->out[0]]);
    if (n->op == TP_OP_embed_grad)
        cost.bytes = 3.0 * (double)tp_value_bytes(&g->values[n->in[1]]);
    if (n->op == TP_OP_paged_attention) { /* each row reads the keys and values it attends to */
        const tp_value *q = &g->values[n->in[0]], *k = &g->values[n->in[1]];
        double row = (double)(k->dim[1] * (int64_t)tp_dtype_size(g->values[n->in[3]].dtype));
        cost.bytes = 2.0 * (double)tp_value_bytes(q) + 2.0 * (double)q->dim[0] * avg_context * row;
    }
    cost.flops =
        traits & TP_OP_CONTRACTS ? contraction_flops(g, n, avg_context) : elementwise_flops(g, n);
    return cost;
}
