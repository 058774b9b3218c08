/* autodiff.c - reverse-mode differentiation as a graph transformation.
 *
 * Nodes are walked backwards; each op's rule appends the nodes that turn the
 * gradients of its outputs into those of its inputs.  A value read twice sums
 * its gradients with `add`; a weight accumulates into its persistent buffer, one
 * version after the other, so that micro-batches add up in the same memory.  What no
 * rule covers is an error, never a missing term. */
#include "engine/ir/graph.h"

typedef struct {
    tp_graph *g;
    tp_ref *grad; /* value -> its gradient so far; 0 = none */
    bool *wanted; /* value depends on a weight */
    tp_ref *acc;  /* value (a weight) -> latest version of its accumulator */
    tp_ref scale;
    tp_error *err;
} differ;

/* Where in the graph a gradient node belongs: with its forward node. */
static char *grad_label(differ *d, const tp_node *n, const char *suffix)
{
    return tp_arena_printf(&d->g->arena, "%s.%s", n->label ? n->label : tp_ops[n->op].name, suffix);
}

static tp_ref emit(differ *d, tp_op op, const tp_attrs *attrs, int n_in, const tp_ref *in,
                   const char *label)
{
    return tp_graph_op(d->g, op, attrs, n_in, in, label);
}

/* Add `grad` to what is known of the gradient of `value`. */
static void contribute(differ *d, tp_ref value, tp_ref grad, const char *label)
{
    if (!d->wanted[value])
        return;
    if (d->grad[value]) {
        tp_ref in[] = {d->grad[value], grad};
        grad = emit(d, TP_OP_add, NULL, 2, in, label);
    }
    d->grad[value] = grad;
}

static bool wants(const differ *d, tp_ref value) { return value && d->wanted[value]; }

static tp_ref accumulator(const differ *d, tp_ref weight) { return weight ? d->acc[weight] : 0; }

/* `grad` is the gradient of weight operand w: the next version of a parameter's
 * accumulator, or a term of a value that was computed from parameters. */
static void contribute_weight(differ *d, tp_ref w, tp_ref grad, const char *label)
{
    if (!wants(d, w))
        return;
    if (d->acc[w])
        d->acc[w] = grad;
    else
        contribute(d, w, grad, label);
}

static void grad_none(differ *d, const tp_node *n, const tp_ref *dy) { (void)d, (void)n, (void)dy; }

static void grad_add(differ *d, const tp_node *n, const tp_ref *dy)
{
    contribute(d, n->in[0], dy[0], n->label);
    contribute(d, n->in[1], dy[0], n->label);
}

static void grad_mul(differ *d, const tp_node *n, const tp_ref *dy)
{
    for (int side = 0; side < 2; side++) {
        if (!wants(d, n->in[side]))
            continue;
        tp_ref in[] = {dy[0], n->in[!side]};
        contribute(d, n->in[side], emit(d, TP_OP_mul, NULL, 2, in, grad_label(d, n, "dx")),
                   n->label);
    }
}

static void grad_unary(differ *d, const tp_node *n, tp_op op, tp_ref dy)
{
    tp_ref in[] = {n->in[0], dy};
    contribute(d, n->in[0], emit(d, op, &n->attrs, 2, in, grad_label(d, n, "dx")), n->label);
}

static void grad_silu(differ *d, const tp_node *n, const tp_ref *dy)
{
    grad_unary(d, n, TP_OP_silu_grad, dy[0]);
}

static void grad_gelu(differ *d, const tp_node *n, const tp_ref *dy)
{
    grad_unary(d, n, TP_OP_gelu_grad, dy[0]);
}

static void grad_swiglu(differ *d, const tp_node *n, const tp_ref *dy)
{
    tp_ref in[] = {n->in[0], n->in[1], dy[0]};
    tp_ref first = emit(d, TP_OP_swiglu_grad, NULL, 3, in, grad_label(d, n, "dx"));
    contribute(d, n->in[0], first, n->label);
    contribute(d, n->in[1], first + 1, n->label);
}

static void grad_cast(differ *d, const tp_node *n, const tp_ref *dy)
{
    tp_ref back = emit(d, TP_OP_cast, NULL, 1, dy, grad_label(d, n, "dx"));
    d->g->values[back].dtype = d->g->values[n->in[0]].dtype;
    contribute(d, n->in[0], back, n->label);
}

static void grad_split(differ *d, const tp_node *n, const tp_ref *dy)
{
    tp_ref joined = emit(d, TP_OP_concat, NULL, n->n_out, dy, grad_label(d, n, "dx"));
    contribute(d, n->in[0], joined, n->label);
}

static void grad_embed(differ *d, const tp_node *n, const tp_ref *dy)
{
    if (!wants(d, n->in[1]))
        return;
    tp_ref in[] = {n->in[0], dy[0], accumulator(d, n->in[1])};
    contribute_weight(d, n->in[1], emit(d, TP_OP_embed_grad, &n->attrs, 3, in, grad_label(d, n, "dw")),
                      n->label);
}

static void grad_rmsnorm(differ *d, const tp_node *n, const tp_ref *dy)
{
    tp_ref in[] = {n->in[0], n->in[1], n->out[1], dy[0], accumulator(d, n->in[1])};
    tp_ref first = emit(d, TP_OP_rmsnorm_grad, &n->attrs, 5, in, grad_label(d, n, "dx"));
    contribute_weight(d, n->in[1], first + 1, n->label);
    contribute(d, n->in[0], first, n->label);
}

static void grad_layernorm(differ *d, const tp_node *n, const tp_ref *dy)
{
    tp_ref in[] = {n->in[0],
                   n->in[1],
                   n->out[1],
                   n->out[2],
                   dy[0],
                   accumulator(d, n->in[1]),
                   accumulator(d, n->in[2])};
    tp_ref first = emit(d, TP_OP_layernorm_grad, &n->attrs, 7, in, grad_label(d, n, "dx"));
    contribute_weight(d, n->in[1], first + 1, n->label);
    contribute_weight(d, n->in[2], first + 2, n->label);
    contribute(d, n->in[0], first, n->label);
}

static void grad_rope(differ *d, const tp_node *n, const tp_ref *dy)
{
    tp_attrs attrs = n->attrs;
    attrs.inverse = !attrs.inverse;
    tp_ref in[] = {dy[0], n->in[1], n->in[2]};
    contribute(d, n->in[0], emit(d, TP_OP_rope, &attrs, 3, in, grad_label(d, n, "dx")), n->label);
}

static void grad_linear(differ *d, const tp_node *n, const tp_ref *dy)
{
    tp_ref x = n->in[0], w = n->in[1], b = n->n_in > 2 ? n->in[2] : 0;
    if (wants(d, x)) {
        tp_ref in[] = {dy[0], w};
        contribute(d, x, emit(d, TP_OP_linear_dx, &n->attrs, 2, in, grad_label(d, n, "dx")),
                   n->label);
    }
    if (wants(d, w)) {
        tp_ref in[] = {x, dy[0], accumulator(d, w)};
        contribute_weight(d, w, emit(d, TP_OP_linear_dw, &n->attrs, 3, in, grad_label(d, n, "dw")),
                          n->label);
    }
    if (wants(d, b)) {
        tp_ref in[] = {dy[0], accumulator(d, b)};
        contribute_weight(d, b, emit(d, TP_OP_linear_db, NULL, 2, in, grad_label(d, n, "db")),
                          n->label);
    }
}

static void grad_attention(differ *d, const tp_node *n, const tp_ref *dy)
{
    tp_ref in[] = {n->in[0], n->in[1], n->in[2], n->out[0], n->out[1], dy[0], n->in[3]};
    tp_ref first = emit(d, TP_OP_attention_grad, &n->attrs, 7, in, grad_label(d, n, "dqkv"));
    for (int k = 0; k < 3; k++)
        contribute(d, n->in[k], first + (tp_ref)k, n->label);
}

static void grad_cross_entropy(differ *d, const tp_node *n, const tp_ref *dy)
{
    (void)dy; /* the seed is the scale */
    tp_ref in[] = {n->in[0], n->in[1], n->in[2], n->out[2], d->scale};
    contribute(d, n->in[0], emit(d, TP_OP_cross_entropy_grad, &n->attrs, 5, in, grad_label(d, n, "dx")),
               n->label);
}

static void (*const rules[TP_OP_COUNT])(differ *, const tp_node *, const tp_ref *) = {
#define OP(name, inputs, outputs, shape, gradient, traits) [TP_OP_##name] = grad_##gradient,
#include "engine/ir/ops.def"
#undef OP
};

static tp_ref gradient_state(tp_graph *g, tp_ref weight)
{
    const tp_value w = g->values[weight];
    const char *name = tp_arena_printf(&g->arena, "grad.%s", w.name);
    tp_ref existing = tp_graph_find(g, name);
    return existing ? existing
                    : tp_graph_state(g, name, TP_DTYPE_F32, w.rank, w.dim, TP_MEM_GRADIENTS);
}

static void mark_wanted(differ *d, uint32_t n_nodes)
{
    for (uint32_t i = 1; i < n_nodes; i++) {
        const tp_node *n = &d->g->nodes[i];
        bool any = false;
        for (int k = 0; k < n->n_in; k++)
            any |= n->in[k] && d->wanted[n->in[k]];
        for (int k = 0; k < n->n_out && any; k++)
            d->wanted[n->out[k]] = true;
    }
}

static tp_status refuse(const differ *d, const tp_node *n, const char *why)
{
    return tp_fail(d->err, TP_ERR_UNSUPPORTED, "op %s (%s) %s", tp_ops[n->op].name,
                   n->label ? n->label : "unlabelled", why);
}

/* Gradients reach a node where its rule looks for them. */
static tp_status check_rule(const differ *d, const tp_node *n, const tp_ref *dy, tp_ref loss)
{
    if (tp_ops[n->op].traits & TP_OP_SOURCE)
        return refuse(d, n, "is a weight in a place where weights have no gradient");
    if (rules[n->op] == grad_none)
        return refuse(d, n, "has no gradient");
    if (n->op == TP_OP_cross_entropy && n->out[0] != loss)
        return refuse(d, n, "is not the loss");
    if (n->op == TP_OP_embed && !d->acc[n->in[1]])
        return refuse(d, n, "has no gradient for a table that is no parameter");
    for (int k = 0; k < n->n_out; k++) {
        bool is_expected = n->op == TP_OP_split || (k == 0 && n->out[0] != loss);
        if (is_expected && !dy[k])
            return refuse(d, n,
                          n->op == TP_OP_split ? "has a part that does not lead to the loss"
                                               : "leads to the loss by its statistics alone");
        if (!is_expected && dy[k])
            return refuse(d, n, "has no gradient through its statistics");
    }
    return TP_OK;
}

static tp_status differentiate(differ *d, tp_ref loss, uint32_t n_nodes)
{
    for (uint32_t i = n_nodes - 1; i > 0; i--) {
        const tp_node n = d->g->nodes[i]; /* a copy: emitting may move the array */
        tp_ref dy[TP_MAX_OUT] = {0};
        bool any = false;
        for (int k = 0; k < n.n_out; k++) {
            dy[k] = d->grad[n.out[k]];
            any |= dy[k] != 0 || n.out[k] == loss;
        }
        if (!any)
            continue;
        TP_TRY(check_rule(d, &n, dy, loss));
        d->g->block = n.block;
        rules[n.op](d, &n, dy);
    }
    return TP_OK;
}

tp_status tp_graph_autodiff(tp_graph *g, tp_ref loss, tp_ref scale, const tp_ref *params,
                            uint32_t n_params, tp_error *err)
{
    const tp_value *l = &g->values[loss];
    if (g->nodes[l->node].op != TP_OP_cross_entropy || l->out != 0)
        return tp_fail(err, TP_ERR_ARG, "the loss must be the first output of a cross_entropy");
    uint32_t n_nodes = g->n_nodes;
    /* Gradients are added to the graph as values; 16 per node is far above what
     * any rule appends. */
    size_t cap = (size_t)g->n_values + 16 * (size_t)n_nodes + n_params + 16;
    differ d = {.g = g, .scale = scale, .err = err};
    d.grad = calloc(cap, sizeof *d.grad);
    d.wanted = calloc(cap, sizeof *d.wanted);
    d.acc = calloc(cap, sizeof *d.acc);
    TP_ASSERT(d.grad && d.wanted && d.acc);
    for (uint32_t i = 0; i < n_params; i++) {
        d.wanted[params[i]] = true;
        d.acc[params[i]] = gradient_state(g, params[i]);
    }
    mark_wanted(&d, n_nodes);
    int16_t block = g->block;
    uint8_t phase = g->phase;
    g->phase = TP_PHASE_BACKWARD;
    tp_status status = differentiate(&d, loss, n_nodes);
    g->block = block;
    g->phase = phase;
    for (uint32_t i = 0; i < n_params && status == TP_OK; i++)
        tp_graph_output(g, d.acc[params[i]]);
    free(d.grad);
    free(d.wanted);
    free(d.acc);
    return status;
}
