/* verify.c - what every graph must satisfy, with the first place that does not. */
#include <string.h>

#include "engine/ir/graph.h"

typedef struct {
    const tp_graph *g;
    tp_ref *memory;      /* value -> the version of a buffer that it is, or is a view of;
                            0 = not defined yet */
    uint32_t *overwrite; /* memory -> the node that has overwritten it; 0 = none */
} checker;

static tp_status check_dtype(const tp_graph *g, const tp_node *n, int k, tp_dtype rule,
                             tp_error *err)
{
    const tp_value *v = &g->values[n->out[k]];
    tp_ref old = tp_overwrites(n, k);
    if (tp_ops[n->op]->traits & TP_OP_VIEW)
        return v->dtype == g->values[n->in[0]].dtype
                   ? TP_OK
                   : tp_fail(err, TP_ERR_FORMAT, "op %s: a view cannot change dtype",
                             tp_ops[n->op]->name);
    bool is_any = tp_op_signature(n->op)->out[k].kind == TP_KIND_any;
    if (!old && !is_any && !tp_op_out_fixed(n->op, k))
        return tp_is_float(v->dtype)
                   ? TP_OK
                   : tp_fail(err, TP_ERR_FORMAT, "op %s: output %d is %s, not a float",
                             tp_ops[n->op]->name, k, tp_dtype_name(v->dtype));
    tp_dtype want = old ? g->values[old].dtype : rule;
    return v->dtype == want
               ? TP_OK
               : tp_fail(err, TP_ERR_FORMAT, "op %s: output %d is %s, not %s", tp_ops[n->op]->name,
                         k, tp_dtype_name(v->dtype), tp_dtype_name(want));
}

static tp_status check_outputs(const tp_graph *g, const tp_node *n, tp_error *err)
{
    tp_value want[TP_MAX_OUT];
    int n_out = 0;
    TP_TRY(tp_op_infer(g, n->op, &n->attrs, n->n_in, n->in, &n_out, want, err));
    if (n_out != n->n_out)
        return tp_fail(err, TP_ERR_FORMAT, "op %s: defines %d values, not %d", tp_ops[n->op]->name,
                       n_out, n->n_out);
    for (int k = 0; k < n_out; k++) {
        const tp_value *v = &g->values[n->out[k]];
        if (v->rank != want[k].rank || v->dim[0] != want[k].dim[0] || v->dim[1] != want[k].dim[1])
            return tp_fail(err, TP_ERR_FORMAT, "op %s: output %d is %lldx%lld, not %lldx%lld",
                           tp_ops[n->op]->name, k, (long long)v->dim[0], (long long)v->dim[1],
                           (long long)want[k].dim[0], (long long)want[k].dim[1]);
        TP_TRY(check_dtype(g, n, k, want[k].dtype, err));
    }
    return TP_OK;
}

/* After a node has overwritten a buffer, nobody may read the old version or a view
 * of it; the node itself reads it once. */
static tp_status check_overwritten(checker *c, uint32_t index, tp_error *err)
{
    const tp_node *n = &c->g->nodes[index];
    for (int k = 0; k < n->n_in; k++) {
        uint32_t by = c->overwrite[c->memory[n->in[k]]];
        if (n->in[k] && by)
            return tp_fail(err, TP_ERR_FORMAT, "reads %%%u, which node %u has overwritten",
                           n->in[k], by);
    }
    for (int k = 0; k < n->n_out; k++) {
        bool is_view = (tp_ops[n->op]->traits & TP_OP_VIEW) != 0;
        c->memory[n->out[k]] = is_view ? c->memory[n->in[0]] : n->out[k];
        tp_ref old = tp_overwrites(n, k);
        if (!old)
            continue;
        if (tp_def(c->g, tp_graph_memory(c->g, old))->op == TP_OP_input)
            return tp_fail(err, TP_ERR_FORMAT, "overwrites %%%u, which is an input", old);
        int reads = 0;
        for (int j = 0; j < n->n_in; j++)
            reads += n->in[j] && c->memory[n->in[j]] == c->memory[old];
        if (reads > 1)
            return tp_fail(err, TP_ERR_FORMAT, "reads %%%u twice and overwrites it", old);
        c->overwrite[c->memory[old]] = index;
    }
    return TP_OK;
}

static tp_status check_refs(const checker *c, uint32_t index, tp_error *err)
{
    const tp_graph *g = c->g;
    const tp_node *n = &g->nodes[index];
    if (n->n_in > TP_MAX_IN || n->n_out < 1 || n->n_out > TP_MAX_OUT)
        return tp_fail(err, TP_ERR_FORMAT, "%d operands and %d outputs are out of range", n->n_in,
                       n->n_out);
    for (int k = 0; k < n->n_in; k++) {
        tp_ref ref = n->in[k];
        if (ref >= g->n_values)
            return tp_fail(err, TP_ERR_FORMAT, "operand %%%u does not exist", ref);
        if (ref && !c->memory[ref])
            return tp_fail(err, TP_ERR_FORMAT, "operand %%%u is not defined before its use", ref);
    }
    for (int k = 0; k < n->n_out; k++) {
        tp_ref ref = n->out[k];
        if (!ref || ref >= g->n_values)
            return tp_fail(err, TP_ERR_FORMAT, "output %%%u does not exist", ref);
        if (g->values[ref].node != index || g->values[ref].out != k)
            return tp_fail(err, TP_ERR_FORMAT, "output %%%u is recorded at node %u", ref,
                           g->values[ref].node);
    }
    return TP_OK;
}

static tp_status check_source(const tp_graph *g, const tp_node *n, tp_error *err)
{
    const tp_value *v = &g->values[n->out[0]];
    if (n->n_out != 1 || n->n_in != 0 || !v->name || v->rank < 1 || v->rank > TP_MAX_RANK ||
        (v->rank == 1 && v->dim[1] != 1) || !tp_shape_fits(v->dim))
        return tp_fail(err, TP_ERR_FORMAT, "a source needs a name and a shape");
    if (n->op == TP_OP_state && v->tensor->role == TP_ROLE_COPY && !v->tensor->of)
        return tp_fail(err, TP_ERR_FORMAT, "a copy needs the weight that it is a copy of");
    return TP_OK;
}

static tp_status check_node(checker *c, uint32_t index, tp_error *err)
{
    const tp_node *n = &c->g->nodes[index];
    TP_TRY(check_refs(c, index, err));
    if (tp_ops[n->op]->traits & TP_OP_SOURCE) {
        c->memory[n->out[0]] = n->out[0];
        return check_source(c->g, n, err);
    }
    TP_TRY(check_outputs(c->g, n, err));
    return check_overwritten(c, index, err);
}

static tp_status check_nodes(checker *c, tp_error *err)
{
    for (uint32_t i = 1; i < c->g->n_nodes; i++) {
        const tp_node *n = &c->g->nodes[i];
        if ((unsigned)n->op >= TP_OP_COUNT)
            return tp_fail(err, TP_ERR_FORMAT, "node %u: op number %d does not exist", i,
                           (int)n->op);
        tp_status status = check_node(c, i, err);
        if (status != TP_OK)
            return tp_error_prefix(err, status, "node %u (%s%s%s): ", i, tp_ops[n->op]->name,
                                   n->label ? " " : "", n->label ? n->label : "");
    }
    return TP_OK;
}

static tp_status check_graph_outputs(const checker *c, tp_error *err)
{
    for (uint32_t i = 0; i < c->g->n_outputs; i++) {
        tp_ref ref = c->g->outputs[i];
        if (!ref || ref >= c->g->n_values || !c->memory[ref])
            return tp_fail(err, TP_ERR_FORMAT, "graph output %%%u is not defined", ref);
        uint32_t by = c->overwrite[c->memory[ref]];
        if (by)
            return tp_fail(err, TP_ERR_FORMAT, "graph output %%%u is overwritten by node %u", ref,
                           by);
    }
    return TP_OK;
}

static tp_status check_names(const tp_graph *g, tp_error *err)
{
    TP_FREED const char **names = tp_new(g->n_nodes, sizeof *names);
    size_t n = 0;
    for (uint32_t i = 1; i < g->n_nodes; i++)
        if (tp_ops[g->nodes[i].op]->traits & TP_OP_SOURCE)
            names[n++] = g->values[g->nodes[i].out[0]].name;
    qsort(names, n, sizeof *names, tp_str_order);
    for (size_t i = 1; i < n; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            return tp_fail(err, TP_ERR_FORMAT, "two sources are called '%s'", names[i]);
    return TP_OK;
}

tp_status tp_graph_verify(const tp_graph *g, tp_error *err)
{
    checker c = {.g = g};
    c.memory = tp_new(g->n_values, sizeof *c.memory);
    c.overwrite = tp_new(g->n_values, sizeof *c.overwrite);
    tp_status status = check_nodes(&c, err);
    if (status == TP_OK)
        status = check_graph_outputs(&c, err);
    free(c.memory);
    free(c.overwrite);
    return status == TP_OK ? check_names(g, err) : status;
}
