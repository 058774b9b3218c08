/* fuse_grad_add.c - sums of gradients move into the kernel that makes one of them.
 *
 *     %d = linear_dx %dy, %w
 *     %s = add %a, %d                  becomes   %s = linear_dx %dy, %w, %a
 *
 *     %d, %dw = rmsnorm_grad ...
 *     %s = add %a, %d                  becomes   %s, %dw = rmsnorm_grad ..., %a
 *
 * The gradient kernel moves down to where the sum was.  linear_dx adds in place, so
 * the sum must be the only reader of %a. */
#include "engine/passes/pass.h"

/* The operand that takes the addend, or -1 when the op has none or it is taken. */
static int addend_operand(const tp_node *n)
{
    const tp_signature *sig = tp_op_signature(n->op);
    int dres = tp_operand_find(sig->in, sig->n_in, "dres");
    int at = dres >= 0 ? dres : tp_operand_find(sig->in, sig->n_in, "dx_acc");
    return at >= 0 && at < n->n_in && n->in[at] ? -1 : at;
}

static bool read_between(const tp_graph *g, tp_ref ref, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++)
        for (int k = 0; k < g->nodes[i].n_in; k++)
            if (!g->nodes[i].is_dead && g->nodes[i].in[k] == ref)
                return true;
    return false;
}

/* Inputs of the moved kernel must still hold their values at the sum. */
static bool overwritten_between(const tp_graph *g, const tp_node *n, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        const tp_node *m = &g->nodes[i];
        for (int k = 0; k < m->n_out && !m->is_dead; k++) {
            int alias = tp_op_alias(m->op, k);
            if (alias < 0 || alias >= m->n_in || !m->in[alias])
                continue;
            for (int j = 0; j < n->n_in; j++)
                if (n->in[j] && n->in[j] == m->in[alias])
                    return true;
        }
    }
    return false;
}

/* May the sum be written where its operand `a` is?  Only over a temporary of its own
 * type that nobody else reads. */
static bool can_take_over(const tp_graph *g, tp_ref a, const tp_node *sum)
{
    tp_ref memory = tp_graph_memory(g, a);
    return g->values[a].n_uses == 1 && g->values[a].dtype == g->values[sum->out[0]].dtype &&
           !(tp_ops[tp_def(g, a)->op]->traits & TP_OP_VIEW) &&
           !(tp_ops[tp_def(g, memory)->op]->traits & TP_OP_SOURCE);
}

static bool try_fuse(tp_graph *g, uint32_t sum_index, int side)
{
    tp_node *sum = &g->nodes[sum_index];
    tp_ref d = sum->in[side], a = sum->in[!side];
    uint32_t maker_index = g->values[d].node;
    tp_node *maker = &g->nodes[maker_index];
    int at = addend_operand(maker);
    if (at < 0 || a == d || maker->out[0] != d || g->values[d].n_uses != 1)
        return false;
    bool in_place = maker->op == TP_OP_linear_dx;
    if (in_place && !can_take_over(g, a, sum))
        return false;
    for (int k = 1; k < maker->n_out; k++)
        if (read_between(g, maker->out[k], maker_index + 1, sum_index))
            return false;
    if (overwritten_between(g, maker, maker_index + 1, sum_index))
        return false;
    tp_ref result = sum->out[0];
    *sum = *maker;
    for (int k = maker->n_in; k < at; k++)
        sum->in[k] = 0;
    sum->n_in = (uint8_t)(at + 1);
    sum->in[at] = a;
    sum->out[0] = result;
    maker->is_dead = true;
    maker->n_out = 0;
    for (int k = 0; k < sum->n_out; k++)
        g->values[sum->out[k]].node = sum_index;
    return true;
}

static tp_status run(tp_graph *g, const tp_pass_options *options, bool *changed, tp_error *err)
{
    (void)options, (void)err;
    for (uint32_t i = 1; i < g->n_nodes; i++) {
        if (g->nodes[i].op != TP_OP_add || g->nodes[i].phase != TP_PHASE_BACKWARD)
            continue;
        if (try_fuse(g, i, 1) || try_fuse(g, i, 0))
            *changed = true;
    }
    if (*changed)
        tp_graph_compact(g);
    return TP_OK;
}

const tp_pass tp_pass_fuse_grad_add = {
    .name = "fuse-grad-add", .promise = "gradient sums move into gradient kernels", .run = run};
