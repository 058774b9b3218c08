/* autodiff.c - reverse-mode differentiation as a graph transformation.
 *
 * Nodes are walked backwards; each op's rule appends the nodes that turn the
 * gradients of its outputs into those of its inputs.  A value read twice sums
 * its gradients with `add`; a weight accumulates into its persistent buffer, one
 * version after the other, so that micro-batches add up in the same memory.  What no
 * rule covers is an error, never a missing term. */
#include "engine/ir/differ.h"

#include <string.h>

struct tp_differ {
    tp_graph *g;
    tp_ref *grad; /* value -> its gradient so far; 0 = none */
    bool *wanted; /* value depends on a weight */
    tp_ref *acc;  /* value (a weight) -> latest version of its accumulator */
    tp_ref loss, scale;
    tp_error *err;
};

tp_ref tp_differ_emit(tp_differ *d, const tp_node *n, tp_op op, const tp_attrs *attrs, int n_in,
                      const tp_ref *in)
{
    const char *suffix = tp_ops[op]->suffix ? tp_ops[op]->suffix : "dx";
    const char *label = n->label ? n->label : tp_ops[n->op]->name;
    return tp_graph_op(d->g, op, attrs, n_in, in,
                       tp_arena_printf(&d->g->arena, "%s.%s", label, suffix));
}

void tp_differ_add(tp_differ *d, const tp_node *n, tp_ref value, tp_ref grad)
{
    if (!tp_differ_wants(d, value))
        return;
    if (d->grad[value]) {
        tp_ref in[] = {d->grad[value], grad};
        grad = tp_graph_op(d->g, TP_OP_add, NULL, 2, in, n->label);
    }
    d->grad[value] = grad;
}

bool tp_differ_wants(const tp_differ *d, tp_ref value) { return value && d->wanted[value]; }

static tp_status refuse(const tp_differ *d, const tp_node *n, const char *why)
{
    return tp_fail(d->err, TP_ERR_UNSUPPORTED, "op %s (%s) %s", tp_ops[n->op]->name,
                   n->label ? n->label : "unlabelled", why);
}

static tp_ref input(const tp_node *n, int i) { return i >= 0 && i < n->n_in ? n->in[i] : 0; }

/* The operand of `n` that an output d<name> is the gradient of, or d<name>_acc adds to. */
static tp_ref differentiated(const tp_node *n, const char *name)
{
    const tp_signature *sig = tp_op_signature(n->op);
    char plain[sizeof sig->in[0].name];
    snprintf(plain, sizeof plain, "%.*s", (int)strcspn(name, "_"), name);
    return plain[0] == 'd' ? input(n, tp_operand_find(sig->in, sig->n_in, plain + 1)) : 0;
}

/* What the operand of a gradient is called is what it is given; false when autodiff has no
 * such thing, as something to add to. */
static bool find_operand(const tp_differ *d, const tp_node *n, const tp_ref *dy,
                         const tp_operand_spec *spec, tp_ref *ret)
{
    const tp_signature *sig = tp_op_signature(n->op);
    int i = tp_operand_find(sig->in, sig->n_in, spec->name);
    int o = tp_operand_find(sig->out, sig->n_out, spec->name);
    int cotangent = tp_operand_find(sig->out, sig->n_out, spec->name + 1);
    const char *accumulator = strstr(spec->name, "_acc");
    if (i >= 0)
        *ret = input(n, i);
    else if (o >= 0)
        *ret = n->out[o];
    else if (spec->name[0] == 'd' && cotangent >= 0)
        *ret = dy[cotangent];
    else if (accumulator && spec->kind == TP_KIND_s)
        *ret = d->acc[differentiated(n, spec->name)];
    else
        return false;
    return true;
}

static tp_attrs attributes_for(tp_op op, const tp_attrs *all)
{
    tp_attrs some = {0};
#define ATTR(type, name)                \
    if (tp_op_has_attribute(op, #name)) \
        some.name = all->name;
#include "engine/ir/attrs.def"
#undef ATTR
    return some;
}

/* Weights before values, so that sums of values come last. */
static void take_outputs(tp_differ *d, const tp_node *n, const tp_signature *sig, tp_ref first)
{
    for (int k = 0; k < sig->n_out; k++) {
        tp_ref w = differentiated(n, sig->out[k].name);
        if (sig->out[k].kind != TP_KIND_s || !tp_differ_wants(d, w))
            continue;
        if (d->acc[w])
            d->acc[w] = first + (tp_ref)k;
        else
            tp_differ_add(d, n, w, first + (tp_ref)k);
    }
    for (int k = 0; k < sig->n_out; k++)
        if (sig->out[k].kind != TP_KIND_s)
            tp_differ_add(d, n, differentiated(n, sig->out[k].name), first + (tp_ref)k);
}

/* Append gradient op `op` of node n, when something wants one of its outputs. */
static tp_status apply(tp_differ *d, const tp_node *n, const tp_ref *dy, tp_op op)
{
    const tp_signature *sig = tp_op_signature(op);
    bool wanted = false;
    for (int k = 0; k < sig->n_out; k++)
        wanted |= tp_differ_wants(d, differentiated(n, sig->out[k].name));
    if (!wanted)
        return TP_OK;
    tp_ref in[TP_MAX_IN] = {0};
    int n_in = 0;
    for (int i = 0; i < sig->n_in; i++) {
        if (find_operand(d, n, dy, &sig->in[i], &in[i]))
            n_in = i + 1;
        if (!in[i] && !sig->in[i].is_optional)
            return refuse(d, n, "has no gradient for an operand that is no parameter");
    }
    tp_attrs attrs = attributes_for(op, &n->attrs);
    take_outputs(d, n, sig, tp_differ_emit(d, n, op, &attrs, n_in, in));
    return TP_OK;
}

static tp_ref gradient_state(tp_graph *g, tp_ref weight)
{
    const tp_value w = g->values[weight];
    tp_ref existing =
        tp_graph_find_tensor(g, TP_ROLE_GRADIENT, w.name, TP_LAYOUT_ROWS, TP_DTYPE_F32);
    if (existing)
        return existing;
    tp_tensor gradient = tp_tensor_gradient(w.tensor, &g->arena);
    return tp_graph_state(g, &gradient);
}

static void mark_wanted(tp_differ *d, uint32_t n_nodes)
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

/* A loss has statistics alone: its own value is where gradients begin. */
static bool is_loss(tp_op op)
{
    bool is_float = false;
    for (int k = 0; k < tp_op_signature(op)->n_out; k++)
        is_float |= !tp_op_out_fixed(op, k);
    return tp_op_has_gradient(op) && !is_float;
}

/* Gradients reach a node where its rule looks for them: at its float outputs. */
static tp_status check_rule(const tp_differ *d, const tp_node *n, const tp_ref *dy)
{
    if (tp_ops[n->op]->traits & TP_OP_SOURCE)
        return refuse(d, n, "is a weight in a place where weights have no gradient");
    if (!tp_op_has_gradient(n->op))
        return refuse(d, n, "has no gradient");
    if (is_loss(n->op) && n->out[0] != d->loss)
        return refuse(d, n, "is not the loss");
    for (int k = 0; k < n->n_out; k++) {
        bool is_expected = !tp_op_out_fixed(n->op, k),
             is_alone = n->n_out == 1 || tp_op_out_fixed(n->op, 1);
        if (is_expected && !dy[k])
            return refuse(d, n,
                          is_alone ? "leads to the loss by its statistics alone"
                                   : "has a part that does not lead to the loss");
        if (!is_expected && dy[k])
            return refuse(d, n, "has no gradient through its statistics");
    }
    return TP_OK;
}

static tp_status differentiate_node(tp_differ *d, const tp_node *n, tp_ref *dy)
{
    TP_TRY(check_rule(d, n, dy));
    d->g->block = n->block;
    if (n->out[0] == d->loss)
        dy[0] = d->scale;
    const tp_op_def *def = tp_ops[n->op];
    if (def->gradient)
        def->gradient(d, n, dy);
    for (int k = 0; k < 3 && def->gradients[k]; k++)
        TP_TRY(apply(d, n, dy, def->gradients[k]));
    return TP_OK;
}

static tp_status differentiate(tp_differ *d, uint32_t n_nodes)
{
    for (uint32_t i = n_nodes - 1; i > 0; i--) {
        const tp_node n = d->g->nodes[i]; /* a copy: emitting may move the array */
        tp_ref dy[TP_MAX_OUT] = {0};
        bool any = n.out[0] == d->loss;
        for (int k = 0; k < n.n_out; k++) {
            dy[k] = d->grad[n.out[k]];
            any |= dy[k] != 0;
        }
        if (any)
            TP_TRY(differentiate_node(d, &n, dy));
    }
    return TP_OK;
}

tp_status tp_graph_autodiff(tp_graph *g, tp_ref loss, tp_ref scale, const tp_ref *params,
                            uint32_t n_params, tp_error *err)
{
    const tp_value *l = &g->values[loss];
    if (!is_loss(g->nodes[l->node].op) || l->out != 0)
        return tp_fail(err, TP_ERR_ARG, "the loss must be the first output of a cross_entropy");
    uint32_t n_nodes = g->n_nodes;
    /* Gradients are added to the graph as values; 16 per node is far above what
     * any rule appends. */
    size_t cap = (size_t)g->n_values + 16 * (size_t)n_nodes + n_params + 16;
    tp_differ d = {.g = g, .loss = loss, .scale = scale, .err = err};
    d.grad = tp_new(cap, sizeof *d.grad);
    d.wanted = tp_new(cap, sizeof *d.wanted);
    d.acc = tp_new(cap, sizeof *d.acc);
    for (uint32_t i = 0; i < n_params; i++) {
        d.wanted[params[i]] = true;
        d.acc[params[i]] = gradient_state(g, params[i]);
    }
    mark_wanted(&d, n_nodes);
    int16_t block = g->block;
    uint8_t phase = g->phase;
    g->phase = TP_PHASE_BACKWARD;
    tp_status status = differentiate(&d, n_nodes);
    g->block = block;
    g->phase = phase;
    for (uint32_t i = 0; i < n_params && status == TP_OK; i++)
        tp_graph_output(g, d.acc[params[i]]);
    free(d.grad);
    free(d.wanted);
    free(d.acc);
    return status;
}
