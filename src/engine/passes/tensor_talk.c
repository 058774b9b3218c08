/* tensor_talk.c - what ranks that share the layers say to each other, as nodes.
 *
 * A sum is added up, on every rank (`sum_tensor`) or each rank's share of its rows
 * (`scatter_rows`), and shares are put together (`gather_rows`): right behind what makes it, once
 * for all that read it.  For the backward pass `recompute` gathers again: shares are all that is
 * kept. */
#include <string.h>

#include "base/platform.h"
#include "engine/passes/tensor_parallel.h"

void tp_sharing_put(tp_sharing *p, uint32_t node) { p->order[p->n_order++] = node; }

static void put_behind(tp_sharing *p, uint32_t node, uint32_t anchor)
{
    uint32_t at = p->n_order;
    while (at > 0 && p->order[at - 1] != anchor)
        at--;
    TP_ASSERT(at > 0);
    memmove(p->order + at + 1, p->order + at, (p->n_order - at) * sizeof *p->order);
    p->order[at] = node;
    p->n_order++;
}

/* Begun and over. */
static tp_ref talk(tp_sharing *p, tp_op op, tp_attrs attrs, tp_ref in)
{
    tp_graph *g = p->g;
    uint32_t maker = g->values[in].node;
    const tp_node made = g->nodes[maker];
    g->phase = made.phase;
    g->block = made.block;
    attrs.bucket = ++p->last_bucket;
    tp_ref begun = tp_graph_op(g, op, &attrs, 1, &in, made.label);
    g->values[begun].is_exact = g->values[in].is_exact;
    attrs = (tp_attrs){.bucket = attrs.bucket};
    tp_ref over = tp_graph_op(g, TP_OP_wait, &attrs, 1, &begun, made.label);
    put_behind(p, g->n_nodes - 2, maker);
    put_behind(p, g->n_nodes - 1, g->n_nodes - 2);
    return over;
}

tp_ref tp_sharing_talk(tp_sharing *p, tp_op op, tp_ref in)
{
    return talk(p, op, (tp_attrs){0}, in);
}

/* Terms are added up in f32, whatever the rest is computed in. */
static tp_ref rounded(tp_sharing *p, tp_ref sum, tp_ref term)
{
    tp_graph *g = p->g;
    uint32_t wait = g->n_nodes - 1;
    if (p->options->compute_dtype == TP_DTYPE_F32 || !g->values[term].is_exact)
        return sum;
    sum = tp_graph_op(g, TP_OP_cast, NULL, 1, &sum, g->nodes[wait].label);
    put_behind(p, g->n_nodes - 1, wait);
    return sum;
}

static tp_ref gather(tp_sharing *p, tp_ref rows)
{
    int64_t each = p->g->values[rows].dim[0];
    const tp_attrs attrs = {.n0 = (int32_t)p->of[rows].length,
                            .n1 = (int32_t)(p->options->tensor.index * each)};
    if (!p->gathered[rows])
        p->gathered[rows] = talk(p, TP_OP_gather_rows, attrs, rows);
    return p->gathered[rows];
}

tp_ref tp_sharing_whole(tp_sharing *p, tp_ref ref)
{
    tp_standing x = p->of[ref];
    if (x.is == TP_IS_ROWS)
        return gather(p, ref);
    if (!ref || x.is != TP_IS_SUM)
        return ref;
    if (!p->added_up[ref] && p->in_rows[ref])
        return gather(p, p->in_rows[ref]);
    if (!p->added_up[ref])
        p->added_up[ref] = rounded(p, tp_sharing_talk(p, TP_OP_sum_tensor, ref), ref);
    return p->added_up[ref];
}

/* Shares are as long as one another, but for the last ones: what those lack is never computed. */
tp_ref tp_sharing_rows(tp_sharing *p, tp_ref ref)
{
    tp_shard own = p->options->tensor;
    int64_t length = p->g->values[ref].dim[0], each = (length + own.count - 1) / own.count;
    if (p->of[ref].is != TP_IS_SUM)
        return ref;
    if (p->in_rows[ref])
        return p->in_rows[ref];
    const tp_attrs attrs = {.n0 = (int32_t)each, .n1 = (int32_t)(own.index * each)};
    tp_ref rows = rounded(p, talk(p, TP_OP_scatter_rows, attrs, ref), ref);
    p->of[rows] = (tp_standing){.is = TP_IS_ROWS, .length = length};
    return p->in_rows[ref] = rows;
}
