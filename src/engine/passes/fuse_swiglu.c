/* fuse_swiglu.c - the gate of a SwiGLU block in one kernel, and its gradient.
 *
 *     %a = silu %x
 *     %b = mul %a, %y                 becomes   %b = swiglu %x, %y
 *     ...                                       ...
 *     %da = mul %db, %y
 *     %dy = mul %db, %a                         %dx, %dy = swiglu_grad %x, %y, %db
 *     %dx = silu_grad %x, %da
 *
 * Only when silu has no other reader: otherwise the fused kernel would compute it
 * a second time and save nothing. */
#include "engine/passes/pass.h"

typedef struct {
    uint32_t d_gate, d_up, d_x; /* nodes of the gradient; 0 = none */
    tp_ref db;
} gradient;

static bool reads_pair(const tp_node *n, tp_ref a, tp_ref b)
{
    return (n->in[0] == a && n->in[1] == b) || (n->in[0] == b && n->in[1] == a);
}

static tp_ref other(const tp_node *n, tp_ref a) { return n->in[0] == a ? n->in[1] : n->in[0]; }

/* The three nodes that differentiate mul(silu(x), y); all or none. */
static bool find_gradient(const tp_graph *g, uint32_t product, tp_ref x, tp_ref a, tp_ref y,
                          gradient *ret)
{
    *ret = (gradient){0};
    for (uint32_t i = product + 1; i < g->n_nodes; i++) {
        const tp_node *n = &g->nodes[i];
        if (n->is_dead || n->op != TP_OP_mul || (n->in[0] != a && n->in[1] != a))
            continue;
        ret->d_up = i;
        ret->db = other(n, a);
    }
    if (!ret->d_up)
        return g->values[a].n_uses == 1; /* no gradient at all: forward only */
    for (uint32_t i = product + 1; i < g->n_nodes; i++) {
        const tp_node *n = &g->nodes[i];
        if (!n->is_dead && n->op == TP_OP_mul && reads_pair(n, ret->db, y) && i != ret->d_up)
            ret->d_gate = i;
    }
    if (!ret->d_gate)
        return false;
    tp_ref da = g->nodes[ret->d_gate].out[0];
    for (uint32_t i = ret->d_gate + 1; i < g->n_nodes; i++) {
        const tp_node *n = &g->nodes[i];
        if (!n->is_dead && n->op == TP_OP_silu_grad && n->in[0] == x && n->in[1] == da)
            ret->d_x = i;
    }
    return ret->d_x && g->values[da].n_uses == 1 && g->values[a].n_uses == 2;
}

static bool try_fuse(tp_graph *g, uint32_t product, int side)
{
    tp_node *n = &g->nodes[product];
    tp_ref a = n->in[side], y = n->in[!side];
    uint32_t silu = g->values[a].node;
    if (g->nodes[silu].op != TP_OP_silu || g->values[a].rank != 2)
        return false;
    tp_ref x = g->nodes[silu].in[0];
    gradient grad;
    if (!find_gradient(g, product, x, a, y, &grad))
        return false;
    n->op = TP_OP_swiglu;
    n->in[0] = x;
    n->in[1] = y;
    g->nodes[silu].is_dead = true;
    if (!grad.d_up)
        return true;
    /* The fused gradient stands where the last of the three stood first needed. */
    uint32_t at = grad.d_up < grad.d_gate ? grad.d_up : grad.d_gate;
    tp_ref dy = g->nodes[grad.d_up].out[0], dx = g->nodes[grad.d_x].out[0];
    g->nodes[grad.d_up].is_dead = g->nodes[grad.d_gate].is_dead = true;
    g->nodes[grad.d_x].is_dead = true;
    tp_node *d = &g->nodes[at];
    d->is_dead = false;
    d->op = TP_OP_swiglu_grad;
    d->n_in = 3;
    d->in[0] = x;
    d->in[1] = y;
    d->in[2] = grad.db;
    d->n_out = 2;
    d->out[0] = dx;
    d->out[1] = dy;
    return true;
}

static tp_status run(tp_graph *g, const tp_pass_options *options, bool *changed, tp_error *err)
{
    (void)options, (void)err;
    for (uint32_t i = 1; i < g->n_nodes; i++)
        for (int side = 0; side < 2; side++)
            if (!g->nodes[i].is_dead && g->nodes[i].op == TP_OP_mul && try_fuse(g, i, side))
                *changed = true;
    if (*changed)
        tp_graph_compact(g);
    return TP_OK;
}

const tp_pass tp_pass_fuse_swiglu = {
    .name = "fuse-swiglu", .promise = "silu and mul become one kernel, with gradient", .run = run};
