/* shard.c - gradients are of all ranks, and who keeps what of them and of the weights.
 *
 *     %g = ... "grad.w", the last version   becomes   %g = ...
 *                                                     %r = all_reduce %g
 *                                                     %s = wait %r
 *
 * and the graph's output is %s.  Where a rank updates only its part of a weight it needs only
 * that part of the sum: reduce_scatter.  Where it keeps no more of the gradient than that part,
 * what a micro-batch adds up is a temporary, and its sum over ranks is added to the part:
 *
 *     %h = linear_dw ..., %grad   becomes   %t = room %grad
 *                                           %h = linear_dw ..., %t
 *                                           %r = reduce_scatter_part %h, %grad
 *                                           %s = wait %r
 *
 * Where it keeps no more of a weight either, it is gathered before the first node that reads it,
 * and once more for the backward pass, unless that goes on with the same weight:
 *
 *     %y = linear %x, %w          becomes   %p = all_gather_part %w
 *                                           %q = wait %p
 *                                           %y = linear %x, %q
 *
 * Nothing happens in a run of one rank. */
#include "engine/passes/pass.h"

/* New nodes, and where they go: beside a node that was there before. */
typedef struct {
    tp_graph *g;
    const tp_pass_options *options;
    uint32_t first_new;
    uint32_t *anchor; /* of new nodes, from first_new on */
    bool *is_behind;
    tp_ref *weight_of; /* of nodes that were there: a weight in parts that it reads, or 0 */
} placement;

static void place(placement *p, uint32_t from, uint32_t anchor, bool is_behind)
{
    for (uint32_t i = from; i < p->g->n_nodes; i++) {
        p->anchor[i - p->first_new] = anchor;
        p->is_behind[i - p->first_new] = is_behind;
    }
}

static void emit_beside(const placement *p, uint32_t anchor, bool is_behind, uint32_t *order,
                        uint32_t *n)
{
    for (uint32_t i = p->first_new; i < p->g->n_nodes; i++)
        if (p->anchor[i - p->first_new] == anchor && p->is_behind[i - p->first_new] == is_behind)
            order[(*n)++] = i;
}

static void put_in_place(const placement *p)
{
    uint32_t n = 0, *order = tp_arena_array(&p->g->arena, uint32_t, p->g->n_nodes);
    for (uint32_t i = 1; i < p->first_new; i++) {
        emit_beside(p, i, false, order, &n);
        order[n++] = i;
        emit_beside(p, i, true, order, &n);
    }
    tp_graph_reorder(p->g, order, n);
}

static bool keeps_parts(const tp_graph *g, tp_role role) { return g->parts >> role & 1; }

/* ---- gradients ---- */

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

static bool reads(const tp_node *n, tp_ref ref)
{
    for (int k = 0; k < n->n_in; k++)
        if (n->in[k] == ref)
            return true;
    return false;
}

static void replace_operand(tp_node *n, tp_ref from, tp_ref to)
{
    for (int k = 0; k < n->n_in; k++)
        if (n->in[k] == from)
            n->in[k] = to;
}

/* Begun, and over. */
static tp_ref talk(tp_graph *g, tp_op op, int n_in, const tp_ref *in, const char *label)
{
    tp_ref begun = tp_graph_op(g, op, NULL, n_in, in, label);
    return tp_graph_op(g, TP_OP_wait, NULL, 1, &begun, label);
}

/* What adds up to the gradient does so in memory of this run. */
static void make_temporary(placement *p, tp_ref gradient)
{
    tp_graph *g = p->g;
    uint32_t at = g->n_nodes;
    tp_ref room = tp_graph_op(g, TP_OP_room, NULL, 1, &gradient, g->values[gradient].name);
    uint32_t first = 0;
    for (uint32_t i = 1; i < p->first_new; i++)
        if (reads(&g->nodes[i], gradient)) {
            first = first ? first : i;
            replace_operand(&g->nodes[i], gradient, room);
        }
    place(p, at, first, false);
}

static void add_sum(placement *p, uint32_t k)
{
    tp_graph *g = p->g;
    tp_ref last = g->outputs[k], gradient = tp_graph_memory(g, last);
    const tp_node made = *tp_def(g, last);
    uint32_t anchor = g->values[last].node;
    g->phase = made.phase;
    g->block = made.block;
    bool is_part = keeps_parts(g, TP_ROLE_GRADIENT);
    if (is_part)
        make_temporary(p, gradient);
    uint32_t at = g->n_nodes;
    tp_ref in[2] = {last, gradient};
    tp_op op = is_part                        ? TP_OP_reduce_scatter_part
               : p->options->shards_optimizer ? TP_OP_reduce_scatter
                                              : TP_OP_all_reduce;
    tp_ref sum = talk(g, op, is_part ? 2 : 1, in, made.label);
    if (is_part && p->options->node && p->options->node < p->options->ranks)
        sum = talk(g, TP_OP_all_reduce_part, 1, &sum, made.label);
    g->outputs[k] = sum;
    place(p, at, anchor, true);
}

/* ---- weights ---- */

static bool is_kept_in_parts(const tp_graph *g, tp_ref ref)
{
    const tp_tensor *t = g->values[ref].tensor;
    return t && t->role != TP_ROLE_GRADIENT && t->layout == TP_LAYOUT_ROWS && !t->within &&
           keeps_parts(g, t->role);
}

/* Whether some other weight is read between two nodes, so that keeping this one costs memory. */
static bool others_between(const placement *p, tp_ref weight, uint32_t from, uint32_t to)
{
    for (uint32_t i = from + 1; i < to; i++)
        if (p->weight_of[i] && p->weight_of[i] != weight)
            return true;
    return false;
}

/* For the readers of nodes `from` to `to`. */
static void gather_for(placement *p, tp_ref weight, uint32_t from, uint32_t to)
{
    tp_graph *g = p->g;
    uint32_t at = g->n_nodes;
    g->phase = g->nodes[from].phase;
    g->block = g->nodes[from].block;
    tp_ref whole = talk(g, TP_OP_all_gather_part, 1, &weight, g->values[weight].name);
    for (uint32_t i = from; i <= to; i++)
        replace_operand(&g->nodes[i], weight, whole);
    place(p, at, from, false);
}

static void gather(placement *p, tp_ref weight)
{
    const tp_graph *g = p->g;
    uint32_t first = 0, last = 0, turn = 0, before = 0;
    for (uint32_t i = 1; i < p->first_new; i++) {
        if (!reads(&g->nodes[i], weight))
            continue;
        if (!turn && first && g->nodes[i].phase != g->nodes[first].phase) {
            turn = i;
            before = last;
        }
        first = first ? first : i;
        last = i;
    }
    if (!first)
        return;
    bool again = turn && p->options->gathers_again && others_between(p, weight, before, turn);
    if (again)
        gather_for(p, weight, turn, last);
    gather_for(p, weight, first, again ? before : last);
}

/* Where weights stay from run to run, a copy of the whole one is kept. */
static void read_whole_copy(placement *p, uint32_t node)
{
    tp_graph *g = p->g;
    uint32_t at = g->n_nodes;
    tp_ref weight = g->nodes[node].out[0];
    const tp_tensor *t = g->values[weight].tensor;
    tp_tensor copy = *t;
    copy.of = t->role == TP_ROLE_COPY ? t->of : t->name;
    copy.name = tp_arena_printf(&g->arena, "%s.whole", t->name);
    copy.role = TP_ROLE_COPY;
    copy.layout = TP_LAYOUT_WHOLE;
    tp_ref whole = tp_graph_state(g, &copy);
    for (uint32_t i = 1; i < p->first_new; i++)
        replace_operand(&g->nodes[i], weight, whole);
    place(p, at, node, true);
}

static void gather_weights(placement *p)
{
    const tp_graph *g = p->g;
    p->weight_of = tp_arena_array(&p->g->arena, tp_ref, p->first_new);
    for (uint32_t i = 1; i < p->first_new; i++)
        for (int k = 0; k < g->nodes[i].n_in; k++)
            if (g->nodes[i].in[k] && is_kept_in_parts(g, g->nodes[i].in[k]))
                p->weight_of[i] = g->nodes[i].in[k];
    for (uint32_t i = 1; i < p->first_new; i++)
        if (g->nodes[i].op == TP_OP_state && is_kept_in_parts(g, g->nodes[i].out[0]))
            (g->weights_stay ? read_whole_copy(p, i) : gather(p, g->nodes[i].out[0]));
}

/* ---- the pass ---- */

static tp_status run(tp_graph *g, const tp_pass_options *options, bool *changed, tp_error *err)
{
    (void)err;
    if (options->ranks < 2)
        return TP_OK;
    uint32_t most = 8 * g->n_nodes + 8 * g->n_outputs + 16;
    placement p = {.g = g, .options = options, .first_new = g->n_nodes};
    p.anchor = tp_arena_array(&g->arena, uint32_t, most);
    p.is_behind = tp_arena_array(&g->arena, bool, most);
    for (uint32_t k = 0; k < g->n_outputs; k++)
        if (is_gradient(g, g->outputs[k]) && is_made_here(g, g->outputs[k]))
            add_sum(&p, k);
    gather_weights(&p);
    g->block = -1;
    g->phase = TP_PHASE_FORWARD;
    *changed = g->n_nodes > p.first_new;
    if (*changed)
        put_in_place(&p);
    return TP_OK;
}

/* ---- weights in slices ---- */

/* Whether another graph has a slice of what this state is, or is a copy of. */
static bool is_sliced_elsewhere(tp_graph *const *set, size_t n, const tp_tensor *t)
{
    bool is_copy = t->role == TP_ROLE_COPY;
    bool is_weight = t->role == TP_ROLE_WEIGHT || t->role == TP_ROLE_ADAPTER;
    if (tp_is_sliced(t) || (is_copy ? t->layout != TP_LAYOUT_ROWS : !is_weight))
        return false;
    for (size_t i = 0; i < n; i++) {
        tp_ref ref = tp_graph_find(set[i], is_copy ? t->of : t->name);
        if (ref && set[i]->values[ref].tensor && tp_is_sliced(set[i]->values[ref].tensor))
            return true;
    }
    return false;
}

/* Ranks that share the layers generate each for itself. */
static tp_status join(tp_graph *g, tp_graph *const *set, size_t n, const tp_pass_options *options,
                      bool *changed, tp_error *err)
{
    (void)err;
    if (options->tensor.count < 2 || !g->weights_stay)
        return TP_OK;
    placement p = {.g = g, .options = options, .first_new = g->n_nodes};
    p.anchor = tp_arena_array(&g->arena, uint32_t, g->n_nodes);
    p.is_behind = tp_arena_array(&g->arena, bool, g->n_nodes);
    tp_graph_count_uses(g);
    for (uint32_t i = 1; i < p.first_new; i++) {
        tp_ref out = g->nodes[i].out[0];
        if (g->nodes[i].op != TP_OP_state || !is_sliced_elsewhere(set, n, g->values[out].tensor))
            continue;
        if (g->values[out].n_uses)
            read_whole_copy(&p, i);
        g->nodes[i].is_dead = true;
        *changed = true;
    }
    if (*changed) {
        put_in_place(&p);
        tp_graph_compact(g);
    }
    return TP_OK;
}

const tp_pass tp_pass_shard = {.name = "shard",
                               .promise =
                                   "gradients are summed over ranks, parts of weights are gathered",
                               .run = run,
                               .join = join};
