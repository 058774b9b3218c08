/* shard.c - gradients are of all ranks.
 *
 *     %g = ... "grad.w", the last version   becomes   %g = ...
 *                                                     %r = all_reduce %g
 *                                                     %s = wait %r
 *
 * and the graph's output is %s.  Where a rank updates only its part of a weight it needs only
 * that part of the sum: reduce_scatter.  Nothing happens in a run of one rank. */
#include "engine/passes/pass.h"

static bool is_gradient(const tp_graph *g, tp_ref ref)
{
    const tp_value *v = &g->values[tp_graph_memory(g, ref)];
    return v->tensor && v->tensor->role == TP_ROLE_GRADIENT && v->dtype == TP_DTYPE_F32;
}

/* A gradient that this graph makes, not one that it reads. */
static bool is_made_here(const tp_graph *g, tp_ref ref)
{
    return !(tp_ops[tp_def(g, ref)->op]->traits & TP_OP_SOURCE);
}

static void add_sum(tp_graph *g, uint32_t k, tp_op op)
{
    tp_ref last = g->outputs[k];
    const tp_node made = *tp_def(g, last);
    g->phase = made.phase;
    g->block = made.block;
    tp_ref begun = tp_graph_op(g, op, NULL, 1, &last, made.label);
    g->outputs[k] = tp_graph_op(g, TP_OP_wait, NULL, 1, &begun, made.label);
}

/* Each behind the node whose result it takes. */
static void put_in_place(tp_graph *g, uint32_t first_new)
{
    uint32_t n = 0, *order = tp_arena_array(&g->arena, uint32_t, g->n_nodes);
    for (uint32_t i = 1; i < first_new; i++) {
        order[n++] = i;
        for (uint32_t k = first_new; k < g->n_nodes; k += 2)
            if (g->values[g->nodes[k].in[0]].node == i) {
                order[n++] = k;
                order[n++] = k + 1;
            }
    }
    tp_graph_reorder(g, order, n);
}

static tp_status run(tp_graph *g, const tp_pass_options *options, bool *changed, tp_error *err)
{
    (void)err;
    uint32_t first_new = g->n_nodes;
    tp_op op = options->shard_optimizer ? TP_OP_reduce_scatter : TP_OP_all_reduce;
    for (uint32_t k = 0; k < g->n_outputs && options->ranks > 1; k++)
        if (is_gradient(g, g->outputs[k]) && is_made_here(g, g->outputs[k]))
            add_sum(g, k, op);
    *changed = g->n_nodes > first_new;
    if (*changed)
        put_in_place(g, first_new);
    return TP_OK;
}

const tp_pass tp_pass_shard = {
    .name = "shard", .promise = "gradients are summed over ranks", .run = run};
