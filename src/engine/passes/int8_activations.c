/* int8_activations.c - activations that wait for the backward pass wait in 8 bits.
 *
 *     %6 = op ...                         %6 = op ...
 *     ... forward nodes that read %6      ... forward nodes that read %6
 *                                         %7, %8 = compress %6
 *     %9 = op_grad %6, ...                %10 = restore %7, %8
 *                                         %9 = op_grad %10, ...
 *
 * The forward pass reads what it always did, so that the loss is the same to the bit; gradients
 * are those of rounded activations.  Every row has its own scale (ops/compressed.c).  Left as they
 * are: narrow rows, what no block made, and what attention's gradient reads beside the statistics
 * of the exact values: its probabilities would not add up to 1. */
#include "engine/passes/pass.h"

enum { LEAST_WIDTH = 32 };

typedef struct {
    tp_graph *g;
    uint32_t n_nodes, n_values; /* before anything is added */
    bool *waits;                /* value: is compressed */
    uint32_t *last;             /* value: its last forward reader, or its maker */
    tp_ref *codes, *restored;   /* value -> what stands for it; 0: not made yet */
    uint32_t *order, n_order;
} compressor;

static bool is_backward(const tp_node *n) { return n->phase == TP_PHASE_BACKWARD; }

static bool may_wait(const compressor *c, tp_ref ref)
{
    const tp_value *v = &c->g->values[ref];
    const tp_node *maker = tp_def(c->g, ref);
    return maker->phase == TP_PHASE_FORWARD && maker->block >= 0 && !v->is_exact &&
           !(tp_ops[maker->op]->traits & (TP_OP_SOURCE | TP_OP_UNPACKS)) &&
           !tp_overwrites(maker, v->out) && tp_is_float(v->dtype) &&
           !tp_op_out_fixed(maker->op, v->out) && v->rank == 2 && v->dim[1] >= LEAST_WIDTH;
}

static void find_readers(compressor *c)
{
    const tp_graph *g = c->g;
    for (uint32_t i = 1; i < c->n_nodes; i++) {
        const tp_node *n = &g->nodes[i];
        for (int k = 0; k < n->n_out; k++)
            c->last[n->out[k]] = i;
        for (int k = 0; k < n->n_in; k++) {
            if (!is_backward(n))
                c->last[n->in[k]] = i;
            else if (n->in[k] && may_wait(c, n->in[k]))
                c->waits[n->in[k]] = true;
        }
    }
}

/* What attention's gradient reads, where its statistics come from the forward pass; and what that
 * is made again from. */
static void keep_exact(compressor *c)
{
    const tp_graph *g = c->g;
    bool *exact = tp_arena_array(&c->g->arena, bool, c->n_values);
    for (uint32_t i = c->n_nodes - 1; i > 0; i--) {
        const tp_node *n = &g->nodes[i];
        bool is_read = n->op == TP_OP_attention_grad && !is_backward(tp_def(g, n->in[4]));
        for (int k = 0; k < n->n_out && n->is_clone; k++)
            is_read |= exact[n->out[k]];
        for (int k = 0; k < n->n_in && is_read; k++) {
            exact[n->in[k]] = true;
            c->waits[n->in[k]] = false;
        }
    }
}

static void schedule(compressor *c, uint32_t node) { c->order[c->n_order++] = node; }

static void add_compress(compressor *c, tp_ref ref)
{
    const tp_node maker = *tp_def(c->g, ref);
    c->g->block = maker.block;
    c->g->phase = TP_PHASE_FORWARD;
    c->codes[ref] = tp_graph_op(c->g, TP_OP_compress, NULL, 1, &ref, maker.label);
    schedule(c, c->g->n_nodes - 1);
}

static void add_restore(compressor *c, tp_ref ref)
{
    const tp_node maker = *tp_def(c->g, ref);
    tp_ref in[] = {c->codes[ref], c->codes[ref] + 1};
    c->g->block = maker.block;
    c->g->phase = TP_PHASE_BACKWARD;
    c->restored[ref] = tp_graph_op(c->g, TP_OP_restore, NULL, 2, in, maker.label);
    c->g->values[c->restored[ref]].dtype = c->g->values[ref].dtype;
    schedule(c, c->g->n_nodes - 1);
}

static void compress_after(compressor *c, uint32_t i)
{
    const tp_node n = c->g->nodes[i]; /* a copy: adding nodes may move them */
    for (int k = 0; k < n.n_in + n.n_out; k++) {
        tp_ref ref = k < n.n_in ? n.in[k] : n.out[k - n.n_in];
        if (ref && c->waits[ref] && c->last[ref] == i && !c->codes[ref])
            add_compress(c, ref);
    }
}

static void restore_before(compressor *c, uint32_t i)
{
    for (int k = 0; k < c->g->nodes[i].n_in; k++) {
        tp_ref ref = c->g->nodes[i].in[k];
        if (!ref || !c->waits[ref])
            continue;
        if (!c->restored[ref])
            add_restore(c, ref);
        c->g->nodes[i].in[k] = c->restored[ref];
    }
}

static tp_status run(tp_graph *g, const tp_pass_options *options, bool *changed, tp_error *err)
{
    (void)err;
    compressor c = {.g = g, .n_nodes = g->n_nodes, .n_values = g->n_values};
    if (!options->compresses || g->stays_exact)
        return TP_OK;
    c.waits = tp_arena_array(&g->arena, bool, g->n_values);
    c.last = tp_arena_array(&g->arena, uint32_t, g->n_values);
    c.codes = tp_arena_array(&g->arena, tp_ref, g->n_values);
    c.restored = tp_arena_array(&g->arena, tp_ref, g->n_values);
    c.order = tp_arena_array(&g->arena, uint32_t, 2 * (size_t)g->n_values + g->n_nodes);
    find_readers(&c);
    keep_exact(&c);
    for (uint32_t i = 1; i < c.n_nodes; i++) {
        if (is_backward(&g->nodes[i]))
            restore_before(&c, i);
        schedule(&c, i);
        if (!is_backward(&g->nodes[i]))
            compress_after(&c, i);
    }
    g->block = -1;
    g->phase = TP_PHASE_FORWARD;
    *changed = g->n_nodes > c.n_nodes;
    tp_graph_reorder(g, c.order, c.n_order);
    return TP_OK;
}

const tp_pass tp_pass_int8_activations = {.name = "int8-activations",
                                          .promise =
                                              "activations wait for the backward pass in 8 bits",
                                          .run = run};
