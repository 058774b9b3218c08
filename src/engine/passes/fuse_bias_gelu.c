/* fuse_bias_gelu.c - bias and gelu in the epilogue of the product.
 *
 *     %p = linear %x, %w, %b
 *     %a = gelu %p {tanh}          becomes   %a, %p = linear_gelu %x, %w, %b {tanh}
 *
 * The value before gelu is still written: its gradient reads it. */
#include "engine/passes/pass.h"

static tp_status run(tp_graph *g, const tp_pass_options *options, bool *changed, tp_error *err)
{
    (void)options, (void)err;
    for (uint32_t i = 1; i < g->n_nodes; i++) {
        tp_node *gelu = &g->nodes[i];
        if (gelu->op != TP_OP_gelu || gelu->is_dead)
            continue;
        tp_node *product = &g->nodes[g->values[gelu->in[0]].node];
        if (product->op != TP_OP_linear)
            continue;
        product->op = TP_OP_linear_gelu;
        product->attrs.tanh = gelu->attrs.tanh;
        product->n_out = 2;
        product->out[1] = product->out[0];
        product->out[0] = gelu->out[0];
        gelu->is_dead = *changed = true;
        g->values[product->out[0]].node = (uint32_t)(product - g->nodes);
        g->values[product->out[0]].out = 0;
        g->values[product->out[1]].out = 1;
    }
    if (*changed)
        tp_graph_compact(g);
    return TP_OK;
}

const tp_pass tp_pass_fuse_bias_gelu = {
    .name = "fuse-bias-gelu", .promise = "gelu moves into the product's epilogue", .run = run};
