/* compress.c - gradients are sent in fewer bits.
 *
 *     %r = all_reduce %g     becomes   %e = state f32[2,1024] "error.w" role=error of "w"
 *                                      %r, %f = all_reduce %g, %e {wire=3}
 *
 * Matrices; vectors (norms, biases) are few and go as they are.  What a rank could not send is kept
 * in its row of the errors, and is added to what it sends the next time; a row is as long as the
 * gradient, in whole cache lines, so that of the rows in parts a rank has its own.  Where parts are
 * summed once more, between nodes, what that loses of a rank's part is kept in its place in the
 * row: within the node nothing is lost of that. */
#include "base/platform.h"
#include "engine/passes/pass.h"

enum { LINE_ELEMENTS = 16 };

static bool sums(tp_op op)
{
    return op == TP_OP_all_reduce || op == TP_OP_reduce_scatter ||
           op == TP_OP_reduce_scatter_part || op == TP_OP_all_reduce_part;
}

/* The memory of the gradient that a node sums. */
static const tp_value *gradient_of(const tp_graph *g, const tp_node *n)
{
    tp_ref ref = n->op == TP_OP_reduce_scatter_part ? n->in[1] : n->in[0];
    return &g->values[tp_graph_memory(g, ref)];
}

/* As the sum within the node has left them. */
static tp_ref errors_before(const tp_graph *g, const tp_node *n)
{
    const tp_node *within = tp_def(g, tp_def(g, n->in[0])->in[0]);
    TP_ASSERT(within->op == TP_OP_reduce_scatter_part && within->n_out == 2);
    return within->out[1];
}

/* On all ranks the same: shapes are those of the longest share. */
static size_t length_of_row(const tp_value *gradient)
{
    return (tp_value_count(gradient) + LINE_ELEMENTS - 1) / LINE_ELEMENTS * LINE_ELEMENTS;
}

static void keep_errors(tp_graph *g, uint32_t node, const tp_value *gradient, int ranks)
{
    const char *of = gradient->tensor->of;
    if (g->nodes[node].op == TP_OP_all_reduce_part) {
        (void)tp_graph_extend(g, node, errors_before(g, &g->nodes[node]));
        return;
    }
    tp_tensor errors = {.name = tp_arena_printf(&g->arena, "error.%s", of),
                        .of = of,
                        .role = TP_ROLE_ERROR,
                        .dtype = TP_DTYPE_F32,
                        .rank = 2};
    errors.dim[0] = ranks;
    errors.dim[1] = (int64_t)length_of_row(gradient);
    tp_ref state = tp_graph_state(g, &errors);
    (void)tp_graph_extend(g, node, state);
}

static tp_status run(tp_graph *g, const tp_pass_options *options, bool *changed, tp_error *err)
{
    (void)err;
    uint32_t n = options->ranks > 1 && options->wire ? g->n_nodes : 0;
    for (uint32_t i = 1; i < n; i++) {
        const tp_value *gradient = sums(g->nodes[i].op) ? gradient_of(g, &g->nodes[i]) : NULL;
        const tp_tensor *t = gradient ? gradient->tensor : NULL;
        if (!t || t->role != TP_ROLE_GRADIENT || !t->of || t->rank != 2 || t->dim[1] == 1)
            continue;
        g->nodes[i].attrs.wire = options->wire;
        g->nodes[i].attrs.keep = options->wire_keep;
        if (options->keeps_errors)
            keep_errors(g, i, gradient, options->ranks * TP_MAX(options->tensor.count, 1));
        *changed = true;
    }
    return TP_OK;
}

const tp_pass tp_pass_compress = {
    .name = "compress", .promise = "gradients are sent in fewer bits", .run = run};
