/* bucket.c - small tensors are sent together.
 *
 *     %r = all_reduce %g          becomes   %r = all_reduce %g {bucket=1}
 *     %s = wait %r                          ...
 *     ...                                   %u = all_reduce %h {bucket=1}
 *     %u = all_reduce %h                    %s = wait %r {bucket=1}
 *     %v = wait %u                          %v = wait %u {bucket=1}
 *
 * In the order in which they are ready, up to so many bytes; a bucket has one op.  Every element's
 * sum stays what it was. */
#include "engine/passes/pass.h"

static bool begins(const tp_node *n)
{
    return (tp_ops[n->op]->traits & TP_OP_COMMUNICATES) && n->op != TP_OP_wait;
}

static void number(tp_graph *g, size_t most, int32_t *last_of)
{
    int32_t bucket = 0;
    size_t bytes = 0;
    tp_op op = TP_OP_NONE;
    for (uint32_t i = 1; i < g->n_nodes; i++) {
        tp_node *n = &g->nodes[i];
        if (!begins(n))
            continue;
        size_t own = tp_value_bytes(&g->values[n->out[0]]);
        if (n->op != op || bytes + own > most) {
            bucket++;
            bytes = 0;
            op = n->op;
        }
        n->attrs.bucket = bucket;
        bytes += own;
        last_of[bucket] = (int32_t)i;
    }
}

/* The waits of a bucket, in their order, behind the last that begins. */
static void move_waits(tp_graph *g, const int32_t *last_of)
{
    uint32_t n = 0, *order = tp_arena_array(&g->arena, uint32_t, g->n_nodes);
    for (uint32_t i = 1; i < g->n_nodes; i++) {
        if (g->nodes[i].op == TP_OP_wait)
            continue;
        order[n++] = i;
        int32_t bucket = begins(&g->nodes[i]) ? g->nodes[i].attrs.bucket : 0;
        for (uint32_t k = 1; bucket && last_of[bucket] == (int32_t)i && k < g->n_nodes; k++)
            if (g->nodes[k].op == TP_OP_wait && g->nodes[k].attrs.bucket == bucket)
                order[n++] = k;
    }
    tp_graph_reorder(g, order, n);
}

static tp_status run(tp_graph *g, const tp_pass_options *options, bool *changed, tp_error *err)
{
    (void)err;
    for (uint32_t i = 1; i < g->n_nodes && options->ranks > 1; i++)
        *changed |= begins(&g->nodes[i]);
    if (!*changed)
        return TP_OK;
    int32_t *last_of = tp_arena_array(&g->arena, int32_t, g->n_nodes + 1);
    number(g, options->bucket_bytes, last_of);
    for (uint32_t i = 1; i < g->n_nodes; i++)
        if (g->nodes[i].op == TP_OP_wait)
            g->nodes[i].attrs.bucket = tp_def(g, g->nodes[i].in[0])->attrs.bucket;
    move_waits(g, last_of);
    return TP_OK;
}

const tp_pass tp_pass_bucket = {
    .name = "bucket", .promise = "what ranks exchange goes in larger pieces", .run = run};
