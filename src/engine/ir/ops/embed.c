/* embed.c - rows of a table by id. */
#include "engine/ir/graph.h"

/* Only the rows that are looked up. */
static double embed_bytes(const tp_graph *g, const tp_node *n, double avg_context)
{
    (void)avg_context;
    return 2.0 * (double)tp_value_bytes(&g->values[n->out[0]]);
}

static double embed_grad_bytes(const tp_graph *g, const tp_node *n, double avg_context)
{
    (void)avg_context;
    return 3.0 * (double)tp_value_bytes(&g->values[n->in[1]]);
}

/* Ids outside 0..V-1 give zeros; rows of id skip-1 give no gradient. */
TP_OP(embed, "ids:ids[T] table:w[V,C] -> y:f[T,C]", .attributes = "skip", .traits = TP_OP_CHEAP,
      .bytes = embed_bytes, .gradients = {TP_OP_embed_grad}, .splits = "V");

/* Ids in the numbers of a part of a table that begins at n0; those before it are negative. */
TP_OP(shift, "ids:ids[T] -> y:ids[T]", .attributes = "n0");

/* squares: the sum of the squares of what it adds to; then of dtable, by the rows that changed. */
TP_OP(embed_grad,
      "ids:ids[T] dy:f[T,C] dtable_acc:s[V,C] squares:d[1]? -> dtable:s[V,C] squares:d[1]?",
      .attributes = "skip", .traits = TP_OP_ACCUMULATES, .flops = "T*C", .bytes = embed_grad_bytes,
      .splits = "V", .suffix = "dw");
