/* bucket.c - small tensors are sent together.
 *
 *     %r = all_reduce %g          becomes   %h = ...
 *     %s = wait %r                          %r = all_reduce %g {bucket=1}
 *     %h = ...                              %u = all_reduce %h {bucket=1}
 *     %u = all_reduce %h                    %s = wait %r {bucket=1}
 *     %v = wait %u                          %v = wait %u {bucket=1}
 *
 * In the order in which they are ready, up to so many bytes; a bucket has one op, of one phase,
 * dtype and format.  What sums begins where the last of its bucket is ready; what gathers weights
 * where the first is needed.  Every element's sum stays what it was. */
#include "base/platform.h"
#include "engine/passes/pass.h"

typedef struct {
    int32_t number; /* 0: none is open */
    size_t bytes;
    uint8_t phase;
} open_bucket;

static bool begins(const tp_node *n)
{
    return (tp_ops[n->op]->traits & TP_OP_COMMUNICATES) && n->op != TP_OP_wait;
}

typedef struct {
    tp_op op;
    tp_dtype dtype;
    bool is_encoded;
} kind;

/* Those of one kind; where[b]: the node beside which bucket b begins. */
static void number(tp_graph *g, kind k, size_t most, int32_t *last, uint32_t *where)
{
    open_bucket b = {0};
    for (uint32_t i = 1; i < g->n_nodes; i++) {
        tp_node *n = &g->nodes[i];
        if (n->op != k.op || n->attrs.bucket || g->values[n->out[0]].dtype != k.dtype ||
            (n->attrs.wire != 0) != k.is_encoded)
            continue;
        size_t own = tp_value_bytes(&g->values[n->out[0]]);
        if (!b.number || b.bytes + own > most || n->phase != b.phase) {
            b = (open_bucket){++*last, 0, n->phase};
            where[b.number] = i;
        }
        n->attrs.bucket = b.number;
        b.bytes += own;
        if (k.op != TP_OP_all_gather_part)
            where[b.number] = i;
    }
}

/* All that begin in a bucket, then its waits, each in their order. */
static void together(tp_graph *g, const uint32_t *where)
{
    uint32_t n = 0, *order = tp_arena_array(&g->arena, uint32_t, g->n_nodes);
    for (uint32_t i = 1; i < g->n_nodes; i++) {
        const tp_node *at = &g->nodes[i];
        int32_t bucket = at->attrs.bucket;
        if (!begins(at) && at->op != TP_OP_wait)
            order[n++] = i;
        if (!begins(at) || where[bucket] != i)
            continue;
        for (int waits = 0; waits <= 1; waits++)
            for (uint32_t k = 1; k < g->n_nodes; k++)
                if ((g->nodes[k].op == TP_OP_wait) == waits &&
                    (tp_ops[g->nodes[k].op]->traits & TP_OP_COMMUNICATES) &&
                    g->nodes[k].attrs.bucket == bucket)
                    order[n++] = k;
    }
    tp_graph_reorder(g, order, n);
}

static tp_status run(tp_graph *g, const tp_pass_options *options, bool *changed, tp_error *err)
{
    (void)err;
    for (uint32_t i = 1; i < g->n_nodes && options->ranks > 1; i++)
        *changed |= begins(&g->nodes[i]) && !g->nodes[i].attrs.bucket;
    if (!*changed)
        return TP_OK;
    static const tp_dtype dtypes[] = {TP_DTYPE_F32, TP_DTYPE_BF16, TP_DTYPE_F16, TP_DTYPE_U8};
    int32_t last = 0;
    uint32_t *where = tp_arena_array(&g->arena, uint32_t, 2 * (size_t)g->n_nodes);
    for (uint32_t i = 1; i < g->n_nodes; i++) /* sums within a layer go alone: others follow them */
        if (begins(&g->nodes[i]) && g->nodes[i].attrs.bucket) {
            where[g->nodes[i].attrs.bucket] = i;
            last = TP_MAX(last, g->nodes[i].attrs.bucket);
        }
    for (int op = 0; op < TP_OP_COUNT; op++)
        if ((tp_ops[op]->traits & TP_OP_COMMUNICATES) && op != TP_OP_wait)
            for (size_t k = 0; k < TP_COUNTOF(dtypes); k++)
                for (int encoded = 0; encoded <= 1; encoded++)
                    number(g, (kind){(tp_op)op, dtypes[k], encoded}, options->bucket_bytes, &last,
                           where);
    for (uint32_t i = 1; i < g->n_nodes; i++)
        if (g->nodes[i].op == TP_OP_wait)
            g->nodes[i].attrs.bucket = tp_def(g, g->nodes[i].in[0])->attrs.bucket;
    together(g, where);
    return TP_OK;
}

const tp_pass tp_pass_bucket = {
    .name = "bucket", .promise = "what ranks exchange goes in larger pieces", .run = run};
