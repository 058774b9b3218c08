/* cse.c - the same op on the same values is computed once.
 *
 * Ops that write into an accumulator or a cache are never merged, nor are values that
 * later serve as one. */
#include <string.h>

#include "engine/passes/pass.h"

/* Its results are in memory that is written once: it adds to no buffer, and no other
 * node adds to them. */
static bool is_pure(const tp_graph *g, const tp_node *n, const bool *overwritten)
{
    if (tp_ops[n->op]->traits & TP_OP_SOURCE)
        return false;
    for (int k = 0; k < n->n_out; k++)
        if (overwritten[tp_graph_memory(g, n->out[k])])
            return false;
    return true;
}

static bool *find_overwritten(tp_graph *g)
{
    bool *overwritten = tp_arena_array(&g->arena, bool, g->n_values);
    for (uint32_t i = 1; i < g->n_nodes; i++)
        for (int k = 0; k < g->nodes[i].n_out; k++)
            overwritten[tp_graph_memory(g, tp_overwrites(&g->nodes[i], k))] = true;
    return overwritten;
}

static bool same(const tp_graph *g, const tp_node *a, const tp_node *b)
{
    if (a->op != b->op || a->n_in != b->n_in || a->n_out != b->n_out ||
        memcmp(a->in, b->in, sizeof a->in) != 0 ||
        memcmp(&a->attrs, &b->attrs, sizeof a->attrs) != 0)
        return false;
    for (int k = 0; k < a->n_out; k++)
        if (g->values[a->out[k]].dtype != g->values[b->out[k]].dtype)
            return false;
    return true;
}

static uint32_t hash(const tp_node *n)
{
    uint32_t h = 2166136261u ^ (uint32_t)n->op;
    for (int k = 0; k < n->n_in; k++)
        h = (h ^ n->in[k]) * 16777619u;
    return h;
}

static tp_status run(tp_graph *g, const tp_pass_options *options, bool *changed, tp_error *err)
{
    (void)options, (void)err;
    enum { BUCKETS = 4096 };
    uint32_t *head = tp_arena_array(&g->arena, uint32_t, BUCKETS);
    uint32_t *next = tp_arena_array(&g->arena, uint32_t, g->n_nodes);
    const bool *overwritten = find_overwritten(g);
    for (uint32_t i = 1; i < g->n_nodes; i++) {
        tp_node *n = &g->nodes[i];
        if (!is_pure(g, n, overwritten))
            continue;
        uint32_t bucket = hash(n) % BUCKETS, twin = head[bucket];
        while (twin && !same(g, &g->nodes[twin], n))
            twin = next[twin];
        if (twin) {
            for (int k = 0; k < n->n_out; k++)
                tp_graph_replace(g, n->out[k], g->nodes[twin].out[k], i);
            n->is_dead = *changed = true;
            continue;
        }
        next[i] = head[bucket];
        head[bucket] = i;
    }
    if (*changed)
        tp_graph_compact(g);
    return TP_OK;
}

const tp_pass tp_pass_cse = {
    .name = "cse", .promise = "equal computations are done once", .run = run};
