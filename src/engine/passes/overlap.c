/* overlap.c - ranks compute while they wait for each other.
 *
 *     %r = all_reduce %g     becomes   %r = all_reduce %g
 *     %s = wait %r                     %h = linear_dw ...
 *     %h = linear_dw ...               %s = wait %r
 *
 * A sum begins where its operand is ready; its wait moves down to the first node that reads what is
 * waited for, else to the end.  What gathers weights begins one bucket early, where the bucket
 * before it is waited for: two are in memory then, and no more.  Buckets that are small beside
 * what a bucket may have (vectors of the backward pass) do not count: behind one there is too
 * little to do.  The same sums, at other times. */
#include "engine/passes/pass.h"

enum { SMALL = 8 }; /* less than such a part of a bucket */

static bool gathers(const tp_node *n) { return n->op == TP_OP_all_gather_part; }

/* The first node that reads the value; g->n_nodes: none. */
static uint32_t first_reader(const tp_graph *g, tp_ref ref)
{
    for (uint32_t i = g->values[ref].node + 1; i < g->n_nodes; i++)
        for (int k = 0; k < g->nodes[i].n_in; k++)
            if (g->nodes[i].in[k] == ref)
                return i;
    return g->n_nodes;
}

/* What has no bucket gets one, as a wait that has moved is known by it. */
static void number_rest(tp_graph *g)
{
    int32_t last = 0;
    for (uint32_t i = 1; i < g->n_nodes; i++)
        last = g->nodes[i].attrs.bucket > last ? g->nodes[i].attrs.bucket : last;
    for (uint32_t i = 1; i < g->n_nodes; i++) {
        tp_node *n = &g->nodes[i];
        if (!(tp_ops[n->op]->traits & TP_OP_COMMUNICATES) || n->attrs.bucket)
            continue;
        n->attrs.bucket = n->op == TP_OP_wait ? tp_def(g, n->in[0])->attrs.bucket : ++last;
    }
}

/* Gathering begins before the node where that of the last bucket before it did which counts, or
 * of the first of all. */
static void move_gathers(const tp_graph *g, size_t small, uint32_t *before)
{
    uint32_t start = 0, last = 0; /* of its bucket, of that before */
    size_t bytes = 0;
    int32_t bucket = 0;
    for (uint32_t i = 1; i < g->n_nodes; i++) {
        const tp_node *n = &g->nodes[i];
        if (!gathers(n))
            continue;
        if (n->attrs.bucket != bucket) {
            last = bytes >= small || !last ? start : last;
            start = i;
            bytes = 0;
            bucket = n->attrs.bucket;
        }
        bytes += tp_value_bytes(&g->values[n->out[0]]);
        before[i] = last;
    }
}

/* Behind the gathers that begin there themselves. */
static uint32_t end_of_bucket(const tp_graph *g, uint32_t i)
{
    int32_t bucket = g->nodes[i].attrs.bucket;
    while (i < g->n_nodes && gathers(&g->nodes[i]) && g->nodes[i].attrs.bucket == bucket)
        i++;
    return i;
}

static tp_status run(tp_graph *g, const tp_pass_options *options, bool *changed, tp_error *err)
{
    (void)err;
    if (options->ranks < 2 && options->tensor.count < 2)
        return TP_OK;
    uint32_t n = 0, *order = tp_arena_array(&g->arena, uint32_t, g->n_nodes);
    uint32_t *before = tp_arena_array(&g->arena, uint32_t, g->n_nodes);
    number_rest(g);
    move_gathers(g, options->bucket_bytes / SMALL, before);
    for (uint32_t i = 1; i < g->n_nodes; i++) {
        if (gathers(&g->nodes[i]) && before[i])
            before[i] = end_of_bucket(g, before[i]);
        if (g->nodes[i].op == TP_OP_wait)
            before[i] = first_reader(g, g->nodes[i].out[0]);
        *changed |= before[i] && before[i] != i && before[i] != i + 1;
    }
    if (!*changed)
        return TP_OK;
    for (uint32_t i = 1; i <= g->n_nodes; i++) {
        for (uint32_t k = 1; k < g->n_nodes; k++)
            if (before[k] == i)
                order[n++] = k;
        if (i < g->n_nodes && !before[i])
            order[n++] = i;
    }
    tp_graph_reorder(g, order, n);
    return TP_OK;
}

const tp_pass tp_pass_overlap = {
    .name = "overlap", .promise = "ranks compute while they wait for each other", .run = run};
