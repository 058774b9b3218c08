/* shard_update.c - each rank looks at its part of every gradient, and updates its part of every
 * weight where it keeps no more of the optimizer's state.
 *
 *     %s = sumsq %g, %t                      becomes   %s = sumsq %g.part, %t
 *     %w, %m, %v = adamw %w, %g, %m, %v                the same on %w.part, %g.part ...
 *
 * A part is a vector within the tensor's memory: the elements that tp_shard_part() gives the rank,
 * of a slice those of the slice.  Of a tensor that is too small for all ranks the last ones have
 * nothing, and nothing to do.  Stands in front of `autocast`: copies of weights are made anew when
 * those are whole again. */
#include "engine/passes/pass.h"

static const tp_tensor *state_of(const tp_graph *g, tp_ref ref)
{
    const tp_tensor *t = g->values[ref].tensor;
    return t && !t->within ? t : NULL;
}

static bool is_norm(const tp_graph *g, const tp_node *n)
{
    const tp_tensor *t = n->op == TP_OP_sumsq ? state_of(g, n->in[0]) : NULL;
    return t && t->role == TP_ROLE_GRADIENT && t->of;
}

static bool is_update(const tp_graph *g, const tp_node *n)
{
    bool belongs = tp_ops[n->op]->traits & TP_OP_UPDATE;
    const tp_tensor *t = belongs ? state_of(g, n->in[0]) : NULL;
    return t && (t->role == TP_ROLE_WEIGHT || t->role == TP_ROLE_ADAPTER);
}

static bool is_divided(const tp_graph *g, tp_ref ref)
{
    const tp_tensor *t = state_of(g, ref);
    return t &&
           (t->role == TP_ROLE_WEIGHT || t->role == TP_ROLE_ADAPTER ||
            t->role == TP_ROLE_GRADIENT || t->role == TP_ROLE_MOMENT) &&
           (t->of || t->role == TP_ROLE_WEIGHT);
}

/* 0: it is empty. */
static tp_ref part_of(tp_graph *g, tp_ref whole, tp_shard shard)
{
    tp_tensor part;
    if (!tp_tensor_part(g->values[whole].tensor, shard, &g->arena, &part))
        return 0;
    tp_ref known = tp_graph_find(g, part.name);
    return known ? known : tp_graph_state(g, &part);
}

static void drop_output(tp_graph *g, tp_ref ref)
{
    uint32_t kept = 0;
    for (uint32_t k = 0; k < g->n_outputs; k++)
        if (g->outputs[k] != ref)
            g->outputs[kept++] = g->outputs[k];
    g->n_outputs = kept;
}

/* The sum goes on without it. */
static void leave_out(tp_graph *g, uint32_t node)
{
    tp_node *n = &g->nodes[node];
    n->is_dead = true;
    if (n->op == TP_OP_sumsq)
        tp_graph_replace(g, n->out[0], n->in[1], node + 1);
    for (int k = 0; k < n->n_out && n->op != TP_OP_sumsq; k++)
        drop_output(g, n->out[k]);
}

static tp_status divide(tp_graph *g, uint32_t node, tp_shard shard, tp_error *err)
{
    for (int k = 0; k < g->nodes[node].n_in; k++) {
        tp_ref in = g->nodes[node].in[k];
        if (!is_divided(g, in))
            continue;
        tp_ref part = part_of(g, in, shard); /* declaring it may move the nodes */
        if (!part) {
            leave_out(g, node);
            return TP_OK;
        }
        g->nodes[node].in[k] = part;
    }
    return tp_pass_infer_again(g, node, err);
}

static tp_status run(tp_graph *g, const tp_pass_options *options, bool *changed, tp_error *err)
{
    uint32_t n_nodes = g->n_nodes;
    for (uint32_t i = 1; i < n_nodes && options->part.count > 1; i++) {
        const tp_node *n = &g->nodes[i];
        if (!is_norm(g, n) && !(options->shards_optimizer && is_update(g, n)))
            continue;
        TP_TRY(divide(g, i, options->part, err));
        *changed = true;
    }
    if (*changed)
        tp_graph_compact(g);
    return TP_OK;
}

const tp_pass tp_pass_shard_update = {
    .name = "shard-update",
    .promise =
        "each rank updates its part of every weight, and sums squares of its part of gradients",
    .run = run};
