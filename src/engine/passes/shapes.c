/* shapes.c - shapes that follow from others once those have changed.
 *
 * Of what ranks share the last ones may have less.  From `schedule` on passes decide by the longest
 * share, so that all ranks decide alike: what they say to each other, in which order and what
 * goes together is the same everywhere.  Behind the last pass each has its own shapes again. */
#include <string.h>

#include "base/platform.h"
#include "engine/passes/pass.h"

tp_status tp_pass_infer_again(tp_graph *g, uint32_t node, tp_error *err)
{
    const tp_node *n = &g->nodes[node];
    tp_value out[TP_MAX_OUT];
    int n_out;
    TP_TRY(tp_op_infer(g, n->op, &n->attrs, n->n_in, n->in, &n_out, out, err));
    TP_ASSERT(n_out == n->n_out);
    for (int k = 0; k < n_out; k++) {
        g->values[n->out[k]].rank = out[k].rank;
        memcpy(g->values[n->out[k]].dim, out[k].dim, sizeof out[k].dim);
    }
    return TP_OK;
}

static void size_state(tp_value *v, bool longest)
{
    tp_tensor_slice slice = v->tensor->slice;
    slice.index = longest ? 0 : slice.index;
    v->dim[slice.axis] = tp_slice_length(slice);
}

tp_status tp_pass_size_shares(tp_graph *g, bool longest, tp_error *err)
{
    for (uint32_t i = 1; i < g->n_nodes; i++) {
        tp_value *first = &g->values[g->nodes[i].out[0]];
        if (first->tensor && tp_is_sliced(first->tensor))
            size_state(first, longest);
        else if (!(tp_ops[g->nodes[i].op]->traits & TP_OP_SOURCE))
            TP_TRY(tp_pass_infer_again(g, i, err));
    }
    return TP_OK;
}
