#include <string.h>

#include "engine/ir/graph.h"

static tp_status check_outputs(const tp_graph *g, const tp_node *n, tp_error *err)
{
    tp_value want[TP_MAX_OUT];
    int n_out = 0;
    TP_TRY(tp_op_infer(g, n->op, &n->attrs, n->n_in, n->in, &n_out, want, err));
    if (n_out != n->n_out)
        return tp_fail(err, TP_ERR_FORMAT, "op %s: defines %d values, not %d", tp_ops[n->op].name,
                       n_out, n->n_out);
    for (int k = 0; k < n_out; k++) {
        const tp_value *v = &g->values[n->out[k]];
        if (v->rank != want[k].rank || v->dim[0] != want[k].dim[0] || v->dim[1] != want[k].dim[1])
            return tp_fail(err, TP_ERR_FORMAT, "op %s: output %d is %lldx%lld, not %lldx%lld",
                           tp_ops[n->op].name, k, (long long)v->dim[0], (long long)v->dim[1],
                           (long long)want[k].dim[0], (long long)want[k].dim[1]);
        int alias = tp_op_alias(n->op, k);
        bool must_match = alias >= 0 && alias < n->n_in && n->in[alias];
        tp_dtype dtype = must_match ? g->values[n->in[alias]].dtype : want[k].dtype;
        if ((must_match || tp_op_out_fixed(n->op, k)) && v->dtype != dtype)
            return tp_fail(err, TP_ERR_FORMAT, "op %s: output %d is %s, not %s",
                           tp_ops[n->op].name, k, tp_dtype_name(v->dtype), tp_dtype_name(dtype));
        if ((tp_ops[n->op].traits & TP_OP_VIEW) && v->dtype != g->values[n->in[0]].dtype)
            return tp_fail(err, TP_ERR_FORMAT, "op %s: a view cannot change dtype",
                           tp_ops[n->op].name);
    }
    return TP_OK;
}

/* After a node has overwritten a buffer, nobody may read the old version. */
static tp_status check_overwritten(const tp_graph *g, uint32_t *dead_at, uint32_t index,
                                   tp_error *err)
{
    const tp_node *n = &g->nodes[index];
    for (int k = 0; k < n->n_in; k++) {
        tp_ref ref = n->in[k];
        if (ref && dead_at[ref])
            return tp_fail(err, TP_ERR_FORMAT, "reads %%%u, which node %u has overwritten", ref,
                           dead_at[ref]);
    }
    for (int k = 0; k < n->n_out; k++) {
        int alias = tp_op_alias(n->op, k);
        if (alias >= 0 && alias < n->n_in && n->in[alias])
            dead_at[n->in[alias]] = index;
    }
    return TP_OK;
}

static tp_status check_node(const tp_graph *g, uint32_t index, uint32_t *dead_at, tp_error *err)
{
    const tp_node *n = &g->nodes[index];
    if ((unsigned)n->op >= TP_OP_COUNT)
        return tp_fail(err, TP_ERR_FORMAT, "op number %d does not exist", (int)n->op);
    for (int k = 0; k < n->n_in; k++) {
        tp_ref ref = n->in[k];
        if (ref >= g->n_values)
            return tp_fail(err, TP_ERR_FORMAT, "operand %%%u does not exist", ref);
        if (ref && (g->values[ref].node == 0 || g->values[ref].node >= index))
            return tp_fail(err, TP_ERR_FORMAT, "operand %%%u is not defined before its use", ref);
    }
    for (int k = 0; k < n->n_out; k++) {
        const tp_value *v = &g->values[n->out[k]];
        if (v->node != index || v->out != k)
            return tp_fail(err, TP_ERR_FORMAT, "output %%%u is recorded at node %u", n->out[k],
                           v->node);
    }
    if (tp_ops[n->op].traits & TP_OP_SOURCE) {
        const tp_value *v = &g->values[n->out[0]];
        if (n->n_out != 1 || n->n_in != 0 || !v->name || v->rank < 1 || v->rank > TP_MAX_RANK ||
            v->dim[0] < 1 || v->dim[1] < 1)
            return tp_fail(err, TP_ERR_FORMAT, "a source needs a name and a shape");
        return TP_OK;
    }
    TP_TRY(check_outputs(g, n, err));
    return check_overwritten(g, dead_at, index, err);
}

static tp_status check_names(const tp_graph *g, tp_error *err)
{
    for (uint32_t i = 1; i < g->n_nodes; i++) {
        const tp_node *a = &g->nodes[i];
        if (!(tp_ops[a->op].traits & TP_OP_SOURCE))
            continue;
        if (tp_graph_find(g, g->values[a->out[0]].name) != a->out[0])
            return tp_fail(err, TP_ERR_FORMAT, "two sources are called '%s'",
                           g->values[a->out[0]].name);
    }
    return TP_OK;
}

tp_status tp_graph_verify(const tp_graph *g, tp_error *err)
{
    uint32_t *dead_at = calloc(g->n_values, sizeof *dead_at);
    TP_ASSERT(dead_at);
    tp_status status = TP_OK;
    for (uint32_t i = 1; i < g->n_nodes && status == TP_OK; i++) {
        status = check_node(g, i, dead_at, err);
        if (status != TP_OK)
            tp_error_prefix(err, status, "node %u (%s%s%s): ", i, tp_ops[g->nodes[i].op].name,
                            g->nodes[i].label ? " " : "",
                            g->nodes[i].label ? g->nodes[i].label : "");
    }
    for (uint32_t i = 0; i < g->n_outputs && status == TP_OK; i++) {
        tp_ref ref = g->outputs[i];
        if (!ref || ref >= g->n_values || g->values[ref].node == 0)
            status = tp_fail(err, TP_ERR_FORMAT, "graph output %%%u is not defined", ref);
        else if (dead_at[ref])
            status = tp_fail(err, TP_ERR_FORMAT, "graph output %%%u is overwritten by node %u",
                             ref, dead_at[ref]);
    }
    free(dead_at);
    return status == TP_OK ? check_names(g, err) : status;
}
