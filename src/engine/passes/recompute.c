/* recompute.c - trade arithmetic for memory (gradient checkpointing).
 *
 * A forward value that the backward pass reads is either kept from one to the
 * other or made again from values that are kept.  What is kept:
 *
 *     full, every:K   what leaves a group of K blocks (the residual stream)
 *     none            everything but weights that are kept in few bits, and rows that ranks gather
 *     selective       everything but the results of cheap ops (norms, gates, rope,
 *                     activations), which are many bytes and little arithmetic
 *
 * Dropped values are cloned, producers first, in front of the first backward node
 * that reads them; a clone serves all later readers.  Clones run the same kernels on
 * the same bits, so gradients are bit-identical in every mode.
 *
 * A fused residual + norm is cloned as the norm of its kept sum where the sum is
 * kept: the kernels round the sum before they normalise it, so the bits agree. */
#include "base/platform.h"
#include "engine/passes/pass.h"

typedef struct {
    tp_graph *g;
    const tp_pass_options *options;
    bool *dropped;     /* value: not kept across */
    tp_ref *clone;     /* value -> its clone; 0 = not made yet */
    uint32_t n_values; /* before cloning */
    uint32_t *order;   /* new execution order under construction */
    uint32_t n_order;
    uint32_t *pending; /* nodes to clone, those that need others first below these */
    int32_t last_bucket;
} recomputer;

static int group_of(const recomputer *r, const tp_node *n)
{
    int every = r->options->recompute == TP_RECOMPUTE_EVERY ? r->options->recompute_every : 1;
    return n->block < 0 ? -1 : n->block / every;
}

static bool is_residual_norm(const tp_node *n) { return tp_ops[n->op]->rest != TP_OP_NONE; }

/* Doing it again must not write into a buffer a second time. */
static bool is_repeatable(const tp_node *n)
{
    for (int k = 0; k < n->n_out; k++)
        if (tp_overwrites(n, k))
            return false;
    return !(tp_ops[n->op]->traits & TP_OP_SOURCE);
}

/* Full: a value stays if a forward node of another group reads it. */
static void drop_inside_groups(recomputer *r)
{
    const tp_graph *g = r->g;
    for (uint32_t i = 1; i < g->n_nodes; i++) {
        const tp_node *n = &g->nodes[i];
        bool inside = n->phase == TP_PHASE_FORWARD && n->block >= 0 && is_repeatable(n);
        for (int k = 0; k < n->n_out && inside; k++)
            r->dropped[n->out[k]] = true;
    }
    for (uint32_t i = 1; i < g->n_nodes; i++) {
        const tp_node *n = &g->nodes[i];
        if (n->phase != TP_PHASE_FORWARD)
            continue;
        for (int k = 0; k < n->n_in; k++) {
            const tp_node *maker = tp_def(g, n->in[k]);
            if (!n->in[k] || group_of(r, maker) == group_of(r, n))
                continue;
            /* The norm half of a fused pair is made again from its sum. */
            if (is_residual_norm(maker) && n->in[k] != maker->out[0]) {
                r->dropped[maker->out[0]] = false;
                continue;
            }
            r->dropped[n->in[k]] = false;
        }
    }
}

static void drop_cheap(recomputer *r)
{
    const tp_graph *g = r->g;
    for (uint32_t i = 1; i < g->n_nodes; i++) {
        const tp_node *n = &g->nodes[i];
        if (n->phase != TP_PHASE_FORWARD || n->block < 0 || !(tp_ops[n->op]->traits & TP_OP_CHEAP))
            continue;
        for (int k = is_residual_norm(n) ? 1 : 0; k < n->n_out; k++)
            r->dropped[n->out[k]] = true;
    }
}

/* In every mode: weights in few bits would be kept as floats from one use to the other. */
static bool drop_unpacked(recomputer *r)
{
    bool any = false;
    for (uint32_t i = 1; i < r->g->n_nodes; i++) {
        const tp_node *n = &r->g->nodes[i];
        if (tp_ops[n->op]->traits & TP_OP_UNPACKS)
            any = r->dropped[n->out[0]] = true;
    }
    return any;
}

static bool is_gathering(const tp_graph *g, const tp_node *n)
{
    return n->op == TP_OP_gather_rows ||
           (n->op == TP_OP_wait && tp_def(g, n->in[0])->op == TP_OP_gather_rows);
}

/* In every mode: of rows that ranks share each keeps its own, and all are gathered again. */
static bool drop_gathered(recomputer *r)
{
    bool any = false;
    for (uint32_t i = 1; i < r->g->n_nodes; i++) {
        const tp_node *n = &r->g->nodes[i];
        r->last_bucket = TP_MAX(r->last_bucket, n->attrs.bucket);
        if (n->phase == TP_PHASE_FORWARD && is_gathering(r->g, n))
            any = r->dropped[n->out[0]] = true;
    }
    return any;
}

static void schedule(recomputer *r, uint32_t node) { r->order[r->n_order++] = node; }

static bool is_missing(const recomputer *r, tp_ref ref)
{
    return ref && ref < r->n_values && r->dropped[ref] && !r->clone[ref];
}

/* What backward code reads instead of `ref`. */
static tp_ref replacement(const recomputer *r, tp_ref ref)
{
    return ref && ref < r->n_values && r->clone[ref] ? r->clone[ref] : ref;
}

static void clone_norm_of_sum(recomputer *r, const tp_node *n)
{
    tp_ref in[TP_MAX_IN] = {n->out[0]};
    for (int k = 2; k < n->n_in; k++)
        in[k - 1] = replacement(r, n->in[k]);
    tp_ref first = tp_graph_op(r->g, tp_ops[n->op]->rest, &n->attrs, n->n_in - 1, in, n->label);
    for (int k = 1; k < n->n_out; k++)
        r->clone[n->out[k]] = first + (tp_ref)k - 1;
}

static void clone_whole(recomputer *r, const tp_node *n)
{
    tp_ref in[TP_MAX_IN];
    tp_attrs attrs = n->attrs;
    for (int k = 0; k < n->n_in; k++)
        in[k] = replacement(r, n->in[k]);
    if (n->op == TP_OP_gather_rows)
        attrs.bucket = ++r->last_bucket;
    else if (n->op == TP_OP_wait)
        attrs.bucket = r->last_bucket;
    tp_ref first = tp_graph_op(r->g, n->op, &attrs, n->n_in, in, n->label);
    for (int k = 0; k < n->n_out; k++)
        r->clone[n->out[k]] = first + (tp_ref)k;
}

static bool keeps_sum(const recomputer *r, const tp_node *n)
{
    return is_residual_norm(n) && !r->dropped[n->out[0]];
}

static void clone_node(recomputer *r, tp_node n)
{
    tp_graph *g = r->g;
    g->block = n.block;
    g->phase = TP_PHASE_BACKWARD;
    if (keeps_sum(r, &n))
        clone_norm_of_sum(r, &n);
    else
        clone_whole(r, &n);
    g->nodes[g->n_nodes - 1].is_clone = true;
    /* Types as the passes before left them, not as the rule's default. */
    for (int k = 0; k < n.n_out; k++)
        if (r->clone[n.out[k]])
            g->values[r->clone[n.out[k]]].dtype = g->values[n.out[k]].dtype;
    schedule(r, g->n_nodes - 1);
}

/* Clone what makes `ref`, and before that what its makers need. */
static void make_again(recomputer *r, tp_ref ref)
{
    uint32_t n = 0;
    r->pending[n++] = r->g->values[ref].node;
    while (n) {
        const tp_node *top = &r->g->nodes[r->pending[n - 1]];
        uint32_t before = n;
        for (int k = keeps_sum(r, top) ? 2 : 0; k < top->n_in; k++)
            if (is_missing(r, top->in[k])) {
                r->pending[n++] = r->g->values[top->in[k]].node;
                break;
            }
        if (n == before) {
            n--;
            clone_node(r, *top);
        }
    }
}

static tp_status run(tp_graph *g, const tp_pass_options *options, bool *changed, tp_error *err)
{
    (void)err;
    recomputer r = {.g = g, .options = options, .n_values = g->n_values};
    r.dropped = tp_arena_array(&g->arena, bool, g->n_values);
    r.clone = tp_arena_array(&g->arena, tp_ref, g->n_values);
    r.order = tp_arena_array(&g->arena, uint32_t, 2 * (size_t)g->n_nodes);
    r.pending = tp_arena_array(&g->arena, uint32_t, g->n_nodes);
    if (options->recompute == TP_RECOMPUTE_SELECTIVE)
        drop_cheap(&r);
    else if (options->recompute != TP_RECOMPUTE_NONE)
        drop_inside_groups(&r);
    bool unpacks = drop_unpacked(&r), gathers = drop_gathered(&r);
    if (!unpacks && !gathers && options->recompute == TP_RECOMPUTE_NONE)
        return TP_OK;
    uint32_t n_nodes = g->n_nodes;
    for (uint32_t i = 1; i < n_nodes; i++) {
        if (g->nodes[i].phase == TP_PHASE_BACKWARD)
            for (int k = 0; k < g->nodes[i].n_in; k++) {
                tp_ref ref = g->nodes[i].in[k];
                if (is_missing(&r, ref))
                    make_again(&r, ref);
                g->nodes[i].in[k] = replacement(&r, ref);
            }
        schedule(&r, i);
    }
    g->block = -1;
    g->phase = TP_PHASE_FORWARD;
    *changed = r.n_order > n_nodes - 1;
    tp_graph_reorder(g, r.order, r.n_order);
    return TP_OK;
}

const tp_pass tp_pass_recompute = {
    .name = "recompute", .promise = "activations are kept or made again, as asked", .run = run};
