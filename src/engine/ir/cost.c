/* cost.c - what a node costs, from its shapes alone. */

#include "engine/ir/shapes.h"

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

tp_cost tp_node_cost(const tp_graph *g, const tp_node *n, double avg_context)
{
    tp_cost cost = {0};
    const tp_op_def *def = tp_ops[n->op];
    if (def->traits & (TP_OP_SOURCE | TP_OP_VIEW))
        return cost;
    cost.bytes = def->bytes ? def->bytes(g, n, avg_context) : operand_bytes(g, n);
    if (!def->flops)
        return cost;
    tp_shapes s = {.g = g, .op = n->op, .attrs = &n->attrs, .n_in = n->n_in, .in = n->in};
    tp_shapes_match(&s);
    s.letters.value['A'] = s.letters.value['T'] * avg_context;
    cost.flops = tp_dimension(def->flops, &s.letters, &n->attrs);
    return cost;
}
