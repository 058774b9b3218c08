/* fuse_linear_ce.c - the head and its loss without the logits of a whole batch.
 *
 *     %l = linear %x, %w
 *     %loss, %logp, %lse = cross_entropy %l, %t, %wt
 *     %dl = cross_entropy_grad %l, %t, %wt, %lse, %scale
 *     %dx = linear_dx %dl, %w
 *     %dw = linear_dw %x, %dl, %acc
 *  becomes
 *     %loss, %logp, %dx, %dw = linear_ce_train %x, %w, %t, %wt, %scale, %acc
 *
 * linear_ce_dx where the head is frozen and has no dw, and, without a gradient, linear_ce.  The
 * gradient is made in the same sweep over row chunks as the loss: the scale is known beforehand, so
 * no second pass over the vocabulary is needed. */
#include "engine/passes/pass.h"

typedef struct {
    uint32_t product, loss, seed, dx, dw; /* node indices; 0 = none */
} pattern;

/* The seed's dx and dw, or dx alone where the weight is frozen, if they are those of the very
 * product and read nothing that is unknown where the loss is: that is where they move to. */
static bool find_gradient(const tp_graph *g, pattern *p)
{
    const tp_node *product = &g->nodes[p->product], *seed = &g->nodes[p->seed];
    tp_ref dlogits = seed->out[0];
    for (uint32_t i = p->seed + 1; i < g->n_nodes; i++) {
        const tp_node *n = &g->nodes[i];
        if (n->op == TP_OP_linear_dx && n->in[0] == dlogits && n->in[1] == product->in[1] &&
            !n->attrs.transposed && !tp_overwrites(n, 0))
            p->dx = i;
        if (n->op == TP_OP_linear_dw && n->in[1] == dlogits && n->in[0] == product->in[0] &&
            !n->attrs.transposed)
            p->dw = i;
    }
    if (!p->dx || g->values[dlogits].n_uses != (p->dw ? 2 : 1))
        return false;
    tp_ref acc = p->dw ? tp_overwrites(&g->nodes[p->dw], 0) : 0;
    return g->values[seed->in[4]].node < p->loss &&
           (!acc || (g->values[acc].node < p->loss && g->values[acc].n_uses == 1));
}

static bool find_pattern(const tp_graph *g, uint32_t loss, pattern *p)
{
    const tp_node *ce = &g->nodes[loss];
    *p = (pattern){.loss = loss, .product = g->values[ce->in[0]].node};
    const tp_node *product = &g->nodes[p->product];
    if (product->op != TP_OP_linear || product->attrs.transposed ||
        (product->n_in > 2 && product->in[2]))
        return false;
    tp_ref logits = product->out[0];
    for (uint32_t i = loss + 1; i < g->n_nodes; i++) {
        const tp_node *n = &g->nodes[i];
        if (n->op == TP_OP_cross_entropy_grad && n->in[0] == logits && n->in[1] == ce->in[1] &&
            n->in[2] == ce->in[2] && n->in[3] == ce->out[2])
            p->seed = i;
    }
    if (!p->seed)
        return g->values[logits].n_uses == 1;
    return g->values[logits].n_uses == 2 && g->values[ce->out[2]].n_uses == 1 &&
           find_gradient(g, p);
}

static void fuse(tp_graph *g, const pattern *p, int32_t chunk)
{
    tp_node *ce = &g->nodes[p->loss];
    const tp_node *product = &g->nodes[p->product];
    tp_ref targets = ce->in[1], weights = ce->in[2];
    ce->in[0] = product->in[0];
    ce->in[1] = product->in[1];
    ce->in[2] = targets;
    ce->in[3] = weights;
    ce->n_in = 4;
    ce->attrs.chunk = chunk;
    ce->label = product->label;
    g->nodes[p->product].is_dead = true;
    if (!p->seed) {
        ce->op = TP_OP_linear_ce;
        return;
    }
    ce->op = TP_OP_linear_ce_dx;
    ce->in[4] = g->nodes[p->seed].in[4];
    ce->n_in = 5;
    ce->out[2] = g->nodes[p->dx].out[0];
    g->nodes[p->seed].is_dead = g->nodes[p->dx].is_dead = true;
    if (!p->dw)
        return;
    ce->op = TP_OP_linear_ce_train;
    ce->in[5] = g->nodes[p->dw].n_in > 2 ? g->nodes[p->dw].in[2] : 0;
    ce->n_in = 6;
    ce->out[3] = g->nodes[p->dw].out[0];
    ce->n_out = 4;
    g->nodes[p->dw].is_dead = true;
}

static tp_status run(tp_graph *g, const tp_pass_options *options, bool *changed, tp_error *err)
{
    (void)err;
    for (uint32_t i = 1; i < g->n_nodes; i++) {
        pattern p;
        if (g->nodes[i].op == TP_OP_cross_entropy && find_pattern(g, i, &p)) {
            fuse(g, &p, options->loss_chunk);
            *changed = true;
        }
    }
    if (*changed)
        tp_graph_compact(g);
    return TP_OK;
}

const tp_pass tp_pass_fuse_linear_ce = {
    .name = "fuse-linear-ce",
    .promise = "head and loss work on chunks of rows; whole logits never exist",
    .run = run};
