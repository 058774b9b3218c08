/* pack_weights.c - weights of products lie as the products read them.
 *
 *     %y = linear %x, %w, %b {transposed}   becomes   %y = linear_panels %x, %p, %b {n0=N}
 *
 * with %p a copy of the weight in panels, made anew by tp_refresh_shadows().  linear_gelu likewise,
 * when nobody reads the value before gelu.  Shadows of the plain layout are needed no more.  Only
 * in graphs whose weights stay: others would pack them again for every run. */
#include "engine/passes/pass.h"

/* The weight itself, or whose copy autocast made. */
static tp_tensor master_of(const tp_tensor *weight)
{
    tp_tensor master = *weight;
    if (weight->role != TP_ROLE_COPY)
        return master;
    master.name = weight->of;
    master.of = NULL;
    master.role = TP_ROLE_WEIGHT;
    master.dtype = TP_DTYPE_F32;
    return master;
}

static tp_ref panels_of(tp_graph *g, tp_ref weight, bool transposed)
{
    const tp_tensor *w = g->values[weight].tensor, master = master_of(w);
    int64_t N = w->dim[transposed ? 1 : 0], K = w->dim[transposed ? 0 : 1];
    const int64_t dim[] = {(N + TP_PANEL - 1) / TP_PANEL, TP_PANEL * (K + K % 2)};
    return tp_pass_copy(g, &master, w->dtype,
                        transposed ? TP_LAYOUT_PANELS_TRANSPOSED : TP_LAYOUT_PANELS, dim);
}

static bool is_weight(const tp_graph *g, tp_ref ref)
{
    const tp_tensor *t = g->values[ref].tensor;
    return t &&
           (t->role == TP_ROLE_WEIGHT || t->role == TP_ROLE_ADAPTER || t->role == TP_ROLE_COPY);
}

/* Rows of a table come from the master, rounded on look-up, which spares its shadow. */
static void look_up_in_master(tp_graph *g, uint32_t node)
{
    const tp_tensor *table = g->values[g->nodes[node].in[1]].tensor;
    if (!table || table->role != TP_ROLE_COPY)
        return;
    tp_tensor record = master_of(table);
    tp_ref master = tp_graph_find(g, record.name);
    if (!master)
        master = tp_graph_state(g, &record);
    g->nodes[node].in[1] = master;
}

/* Made in every run, from constants; so are its panels. */
static bool is_unpacked(const tp_graph *g, tp_ref ref)
{
    return (tp_ops[tp_def(g, ref)->op]->traits & TP_OP_UNPACKS) != 0;
}

static tp_ref panels_in_run(tp_graph *g, tp_ref weight, bool transposed)
{
    const tp_attrs attrs = {.transposed = transposed};
    tp_dtype dtype = g->values[weight].dtype;
    tp_ref panels = tp_graph_op(g, TP_OP_pack_panels, &attrs, 1, &weight, tp_def(g, weight)->label);
    g->values[panels].dtype = dtype;
    return panels;
}

static bool is_candidate(const tp_graph *g, const tp_node *n)
{
    bool is_gelu = n->op == TP_OP_linear_gelu && g->values[n->out[1]].n_uses == 0;
    return (n->op == TP_OP_linear || is_gelu) &&
           (is_weight(g, n->in[1]) || is_unpacked(g, n->in[1]));
}

static void drop_unread_shadows(tp_graph *g)
{
    tp_graph_count_uses(g);
    for (uint32_t i = 1; i < g->n_nodes; i++) {
        const tp_value *v = &g->values[g->nodes[i].out[0]];
        g->nodes[i].is_dead = v->tensor && v->tensor->role == TP_ROLE_COPY && v->n_uses == 0;
    }
    tp_graph_compact(g);
}

/* Sources first, then every node behind what it reads; before[i]: a new node, or 0. */
static void put_in_order(tp_graph *g, const uint32_t *before, uint32_t n_nodes)
{
    uint32_t *order = tp_arena_array(&g->arena, uint32_t, g->n_nodes), n = 0;
    for (uint32_t i = n_nodes; i < g->n_nodes; i++)
        if (tp_ops[g->nodes[i].op]->traits & TP_OP_SOURCE)
            order[n++] = i;
    for (uint32_t i = 1; i < n_nodes; i++) {
        if (before[i])
            order[n++] = before[i];
        order[n++] = i;
    }
    tp_graph_reorder(g, order, n);
}

/* The product of node i becomes one with panels. */
static void pack(tp_graph *g, uint32_t i, uint32_t *before)
{
    tp_node n = g->nodes[i]; /* declaring the panels may move the nodes */
    bool transposed = n.attrs.transposed != 0, is_made = is_unpacked(g, n.in[1]);
    int64_t N = g->values[n.in[1]].dim[transposed ? 1 : 0];
    g->block = n.block;
    tp_ref panels =
        is_made ? panels_in_run(g, n.in[1], transposed) : panels_of(g, n.in[1], transposed);
    bool is_gelu = n.op == TP_OP_linear_gelu;
    tp_attrs attrs = {.n0 = (int32_t)N, .activation = !is_gelu ? 0 : n.attrs.tanh ? 2 : 1};
    before[i] = is_made ? g->values[panels].node : 0;
    n.op = TP_OP_linear_panels;
    n.in[1] = panels;
    n.n_out = 1;
    n.attrs = attrs;
    g->nodes[i] = n;
}

static tp_status run(tp_graph *g, const tp_pass_options *options, bool *changed, tp_error *err)
{
    (void)options, (void)err;
    uint32_t n_nodes = g->n_nodes;
    uint32_t *before = tp_arena_array(&g->arena, uint32_t, n_nodes);
    int16_t block = g->block;
    for (uint32_t i = 1; g->weights_stay && i < n_nodes; i++) {
        if (g->nodes[i].op == TP_OP_embed)
            look_up_in_master(g, i);
        if (!is_candidate(g, &g->nodes[i]))
            continue;
        pack(g, i, before);
        *changed = true;
    }
    g->block = block;
    if (*changed) {
        put_in_order(g, before, n_nodes);
        drop_unread_shadows(g);
    }
    return TP_OK;
}

const tp_pass tp_pass_pack_weights = {
    .name = "pack-weights", .promise = "weights of products lie in panels", .run = run};
