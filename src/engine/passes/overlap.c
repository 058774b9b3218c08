/* overlap.c - ranks compute while they wait for each other.
 *
 *     %r = all_reduce %g     becomes   %r = all_reduce %g
 *     %s = wait %r                     %h = linear_dw ...
 *     %h = linear_dw ...               %s = wait %r
 *
 * What is begun stays where its operand is ready; a wait moves down to the first node that reads
 * what is waited for, else to the end.  The same sums, at other times. */
#include "engine/passes/pass.h"

/* The first node that reads the value; g->n_nodes: none. */
static uint32_t first_reader(const tp_graph *g, tp_ref ref)
{
    for (uint32_t i = g->values[ref].node + 1; i < g->n_nodes; i++)
        for (int k = 0; k < g->nodes[i].n_in; k++)
            if (g->nodes[i].in[k] == ref)
                return i;
    return g->n_nodes;
}

static tp_status run(tp_graph *g, const tp_pass_options *options, bool *changed, tp_error *err)
{
    (void)err;
    uint32_t n = 0, *order = tp_arena_array(&g->arena, uint32_t, g->n_nodes);
    uint32_t *before = tp_arena_array(&g->arena, uint32_t, g->n_nodes);
    for (uint32_t i = 1; i < g->n_nodes && options->ranks > 1; i++)
        if (g->nodes[i].op == TP_OP_wait) {
            before[i] = first_reader(g, g->nodes[i].out[0]);
            *changed |= before[i] > i + 1;
        }
    if (!*changed)
        return TP_OK;
    for (uint32_t i = 1; i <= g->n_nodes; i++) {
        for (uint32_t k = 1; k < i; k++)
            if (before[k] == i)
                order[n++] = k;
        if (i < g->n_nodes && !before[i])
            order[n++] = i;
    }
    tp_graph_reorder(g, order, n);
    return TP_OK;
}

const tp_pass tp_pass_overlap = {
    .name = "overlap", .promise = "ranks compute while they wait for each other", .run = run};
