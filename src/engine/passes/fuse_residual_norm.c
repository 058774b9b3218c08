/* fuse_residual_norm.c - the residual sum and the norm that follows, in one pass
 * over the rows.
 *
 *     %s = add %x, %r
 *     %y, %rstd = rmsnorm %s, %w     becomes   %s, %y, %rstd = add_rmsnorm %x, %r, %w
 *
 * The sum is still written: the next residual reads it.  Slice-wise norms (qk-norm)
 * are left alone. */
#include "engine/passes/pass.h"

/* The norm moves up to the sum: its weights must be known there. */
static bool has_early_weights(const tp_graph *g, const tp_node *norm, uint32_t add)
{
    for (int k = 1; k < norm->n_in; k++)
        if (norm->in[k] && g->values[norm->in[k]].node >= add)
            return false;
    return true;
}

/* The first norm over the whole rows of `sum`, which node `add` defines, or 0. */
static uint32_t norm_of(const tp_graph *g, uint32_t add, tp_ref sum)
{
    for (uint32_t i = add + 1; i < g->n_nodes; i++) {
        const tp_node *n = &g->nodes[i];
        if (n->is_dead || n->is_clone || n->in[0] != sum || n->phase != TP_PHASE_FORWARD ||
            !has_early_weights(g, n, add))
            continue;
        if (n->op == TP_OP_layernorm)
            return i;
        if (n->op == TP_OP_rmsnorm && g->values[n->in[1]].dim[0] == g->values[sum].dim[1])
            return i;
    }
    return 0;
}

static void fuse(tp_graph *g, uint32_t add_index, uint32_t norm_index)
{
    tp_node *add = &g->nodes[add_index], *norm = &g->nodes[norm_index];
    bool is_layer = norm->op == TP_OP_layernorm;
    add->op = is_layer ? TP_OP_add_layernorm : TP_OP_add_rmsnorm;
    add->attrs = norm->attrs;
    add->n_in = is_layer ? 4 : 3;
    add->in[2] = norm->in[1];
    add->in[3] = is_layer ? norm->in[2] : 0;
    add->n_out = is_layer ? 4 : 3;
    for (int k = 0; k < norm->n_out; k++)
        add->out[k + 1] = norm->out[k];
    add->label = norm->label;
    norm->is_dead = true;
}

static tp_status run(tp_graph *g, const tp_pass_options *options, bool *changed, tp_error *err)
{
    (void)options, (void)err;
    for (uint32_t i = 1; i < g->n_nodes; i++) {
        const tp_node *n = &g->nodes[i];
        if (n->op != TP_OP_add || n->is_dead || n->phase != TP_PHASE_FORWARD ||
            g->values[n->out[0]].rank != 2)
            continue;
        uint32_t norm = norm_of(g, i, n->out[0]);
        if (norm) {
            fuse(g, i, norm);
            *changed = true;
        }
    }
    if (*changed)
        tp_graph_compact(g);
    return TP_OK;
}

const tp_pass tp_pass_fuse_residual_norm = {
    .name = "fuse-residual-norm", .promise = "residual add and norm become one kernel", .run = run};
