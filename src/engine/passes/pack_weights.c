/* pack_weights.c - weights of products lie as the products read them.
 *
 *     %y = linear %x, %w, %b {transposed}   becomes   %y = linear_panels %x, %p, %b {n0=N}
 *
 * with %p a shadow of the weight in panels, "<weight>.panels.<dtype>" (".panels_t." of a
 * transposed one), made anew by tp_refresh_shadows().  linear_gelu likewise, when nobody
 * reads the value before gelu.  Shadows of the plain layout are needed no more.  Only where asked
 * for: a graph that updates its weights in every step would pack them in every step. */
#include <string.h>

#include "engine/passes/pass.h"

/* The f32 master of a weight: itself, or what the shadow that autocast made is called after. */
static const char *master_name(tp_graph *g, const tp_value *w)
{
    const char *dot = strrchr(w->name, '.');
    if (w->kind != TP_MEM_SHADOW || !dot)
        return w->name;
    return tp_arena_printf(&g->arena, "%.*s", (int)(dot - w->name), w->name);
}

static tp_ref panels_of(tp_graph *g, tp_ref weight, bool transposed, tp_dtype dtype)
{
    const tp_value w = g->values[weight];
    const char *name = tp_arena_printf(&g->arena, "%s.%s.%s", master_name(g, &w),
                                       transposed ? "panels_t" : "panels", tp_dtype_name(dtype));
    int64_t N = w.dim[transposed ? 1 : 0], K = w.dim[transposed ? 0 : 1];
    int64_t dim[] = {(N + TP_PANEL - 1) / TP_PANEL, TP_PANEL * (K + K % 2)};
    tp_ref known = tp_graph_find(g, name);
    return known ? known : tp_graph_state(g, name, dtype, 2, dim, TP_MEM_SHADOW);
}

static bool is_weight(const tp_graph *g, tp_ref ref)
{
    const tp_value *v = &g->values[ref];
    return tp_def(g, ref)->op == TP_OP_state &&
           (v->kind == TP_MEM_WEIGHTS || v->kind == TP_MEM_SHADOW);
}

/* Rows of a table come from the master, rounded on look-up, which spares its shadow. */
static void look_up_in_master(tp_graph *g, uint32_t node)
{
    const tp_value table = g->values[g->nodes[node].in[1]];
    if (g->nodes[table.node].op != TP_OP_state || table.kind != TP_MEM_SHADOW)
        return;
    const char *name = master_name(g, &table);
    tp_ref master = tp_graph_find(g, name);
    if (!master)
        master = tp_graph_state(g, name, TP_DTYPE_F32, 2, table.dim, TP_MEM_WEIGHTS);
    g->nodes[node].in[1] = master;
}

static bool is_candidate(const tp_graph *g, const tp_node *n)
{
    bool is_gelu = n->op == TP_OP_linear_gelu && g->values[n->out[1]].n_uses == 0;
    return (n->op == TP_OP_linear || is_gelu) && is_weight(g, n->in[1]);
}

static void drop_unread_shadows(tp_graph *g)
{
    tp_graph_count_uses(g);
    for (uint32_t i = 1; i < g->n_nodes; i++) {
        const tp_value *v = &g->values[g->nodes[i].out[0]];
        g->nodes[i].is_dead =
            g->nodes[i].op == TP_OP_state && v->kind == TP_MEM_SHADOW && v->n_uses == 0;
    }
    tp_graph_compact(g);
}

static tp_status run(tp_graph *g, const tp_pass_options *options, bool *changed, tp_error *err)
{
    (void)err;
    uint32_t n_nodes = g->n_nodes;
    for (uint32_t i = 1; options->pack_weights && i < n_nodes; i++) {
        if (g->nodes[i].op == TP_OP_embed)
            look_up_in_master(g, i);
        if (!is_candidate(g, &g->nodes[i]))
            continue;
        tp_node n = g->nodes[i]; /* declaring the panels may move the nodes */
        bool transposed = n.attrs.transposed != 0;
        int64_t N = g->values[n.in[1]].dim[transposed ? 1 : 0];
        tp_ref panels = panels_of(g, n.in[1], transposed, g->values[n.in[1]].dtype);
        bool is_gelu = n.op == TP_OP_linear_gelu;
        tp_attrs attrs = {.n0 = (int32_t)N, .activation = !is_gelu ? 0 : n.attrs.tanh ? 2 : 1};
        n.op = TP_OP_linear_panels;
        n.in[1] = panels;
        n.n_out = 1;
        n.attrs = attrs;
        g->nodes[i] = n;
        *changed = true;
    }
    if (*changed)
        drop_unread_shadows(g);
    return TP_OK;
}

const tp_pass tp_pass_pack_weights = {
    .name = "pack-weights", .promise = "weights of products lie in panels", .run = run};
