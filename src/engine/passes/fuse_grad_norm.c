/* fuse_grad_norm.c - the squares that the norm of the gradients needs are summed where a gradient
 * is made, so that the norm does not read it again.
 *
 *     %h = linear_dw %x, %dy, %grad     becomes   %h, %q = linear_dw %x, %dy, %grad, %squares
 *     %s = sumsq %grad, %t                        %s = add_number %squares, %t
 *
 * linear_ce_train and embed_grad likewise.  Of every graph that writes a gradient all ops that do
 * must be of these, or its norm reads it as before.  Only of large ones: a small one is in the
 * caches when it is read.  Not where ranks sum gradients afterwards. */
#include <string.h>

#include "engine/passes/pass.h"

enum { LEAST_BYTES = 2 << 20 };

/* Of the node, the output that is a version of the gradient; -1: none. */
static int output_of(const tp_graph *g, const tp_node *n, const char *gradient)
{
    for (int k = 0; k < n->n_out; k++) {
        const tp_tensor *t =
            tp_overwrites(n, k) ? g->values[tp_graph_memory(g, n->out[k])].tensor : NULL;
        if (t && strcmp(t->name, gradient) == 0)
            return k;
    }
    return -1;
}

/* Can the node sum the squares of output k?  Their operand stands behind what it adds to. */
static bool can_sum(const tp_node *n, int k)
{
    const tp_signature *sig = tp_op_signature(n->op);
    int at = tp_operand_find(sig->in, sig->n_in, "squares");
    return at >= 0 && tp_op_alias(n->op, k) == at - 1 && n->n_in >= at;
}

/* Do all that write the gradient sum its squares as well, and does any? */
static bool is_summed(tp_graph *const *set, size_t n_set, const char *gradient)
{
    bool is_written = false;
    for (size_t i = 0; i < n_set; i++) {
        for (uint32_t j = 1; j < set[i]->n_nodes; j++) {
            const tp_node *n = &set[i]->nodes[j];
            int k = output_of(set[i], n, gradient);
            if (k >= 0 && !can_sum(n, k))
                return false;
            is_written |= k >= 0;
        }
    }
    return is_written;
}

static bool is_large_gradient(const tp_value *v)
{
    const tp_tensor *t = v->tensor;
    return t && t->role == TP_ROLE_GRADIENT && t->of && !t->within &&
           tp_value_bytes(v) >= LEAST_BYTES;
}

static tp_ref squares_of(tp_graph *g, const tp_tensor *gradient)
{
    tp_tensor squares = {.name = tp_arena_printf(&g->arena, "squares.%s", gradient->name),
                         .role = TP_ROLE_GRADIENT,
                         .dtype = TP_DTYPE_F64,
                         .rank = 1,
                         .dim = {1, 1}};
    tp_ref known = tp_graph_find(g, squares.name);
    return known ? known : tp_graph_state(g, &squares);
}

/* Every op that writes the gradient gets the sum from the one before. */
static bool sum_where_made(tp_graph *g, const tp_tensor *gradient)
{
    tp_ref last = 0;
    uint32_t n_nodes = g->n_nodes;
    for (uint32_t i = 1; i < n_nodes; i++) {
        int k = output_of(g, &g->nodes[i], gradient->name);
        if (k < 0)
            continue;
        if (!last)
            last = squares_of(g, gradient); /* declaring it may move the nodes */
        last = tp_graph_extend(g, i, last);
    }
    if (last)
        tp_graph_output(g, last);
    return last != 0;
}

static void read_sum(tp_graph *g, uint32_t node)
{
    tp_ref squares = squares_of(g, g->values[g->nodes[node].in[0]].tensor);
    g->nodes[node].op = TP_OP_add_number;
    g->nodes[node].in[0] = squares;
}

static tp_status join(tp_graph *g, tp_graph *const *set, size_t n_set,
                      const tp_pass_options *options, bool *changed, tp_error *err)
{
    (void)err;
    bool is_alone = options->ranks < 2 && options->tensor.count < 2 && options->part.count < 2;
    uint32_t n_values = g->n_values, n_nodes = g->n_nodes;
    for (tp_ref ref = 1; is_alone && ref < n_values; ref++) {
        const tp_tensor *gradient = g->values[ref].tensor;
        if (!is_large_gradient(&g->values[ref]) || !is_summed(set, n_set, gradient->name))
            continue;
        *changed |= sum_where_made(g, gradient);
        for (uint32_t i = 1; i < n_nodes; i++) {
            if (g->nodes[i].op != TP_OP_sumsq || g->nodes[i].in[0] != ref)
                continue;
            read_sum(g, i);
            *changed = true;
        }
    }
    return TP_OK;
}

const tp_pass tp_pass_fuse_grad_norm = {.name = "fuse-grad-norm",
                                        .promise =
                                            "squares of gradients are summed where they are made",
                                        .join = join};
