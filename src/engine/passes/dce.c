/* dce.c - nodes that nothing needs go away.  Writing into a state is a need. */
#include "engine/passes/pass.h"

static bool writes_state(const tp_graph *g, const tp_node *n)
{
    for (int k = 0; k < n->n_out; k++)
        if (tp_overwrites(n, k) &&
            tp_def(g, tp_graph_memory(g, tp_overwrites(n, k)))->op == TP_OP_state)
            return true;
    return false;
}

static tp_status run(tp_graph *g, const tp_pass_options *options, bool *changed, tp_error *err)
{
    (void)options, (void)err;
    bool *needed = tp_arena_array(&g->arena, bool, g->n_values);
    for (uint32_t i = 0; i < g->n_outputs; i++)
        needed[g->outputs[i]] = true;
    for (uint32_t i = g->n_nodes - 1; i > 0; i--) {
        tp_node *n = &g->nodes[i];
        bool any = writes_state(g, n);
        for (int k = 0; k < n->n_out; k++)
            any |= needed[n->out[k]];
        n->is_dead = !any;
        *changed |= !any;
        for (int k = 0; k < n->n_in && any; k++)
            needed[n->in[k]] = true;
    }
    if (*changed)
        tp_graph_compact(g);
    return TP_OK;
}

const tp_pass tp_pass_dce = {
    .name = "dce", .promise = "nodes that nothing needs are removed", .run = run};
