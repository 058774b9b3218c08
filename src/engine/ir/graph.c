/* graph.c - values and nodes: added, replaced, compacted, reordered. */
#include "engine/ir/graph.h"

#include <string.h>

enum { ARENA_BYTES = 1 << 30, /* address space only */ CHAINS = 1024 };

tp_status tp_graph_init(tp_graph *g, tp_error *err)
{
    tp_graph fresh = {.block = -1};
    TP_TRY(tp_arena_init(&fresh.arena, ARENA_BYTES, err));
    *g = fresh;
    g->cap_nodes = g->cap_values = 256;
    g->nodes = tp_arena_array(&g->arena, tp_node, g->cap_nodes);
    g->values = tp_arena_array(&g->arena, tp_value, g->cap_values);
    g->named = tp_arena_array(&g->arena, tp_ref, CHAINS);
    g->n_nodes = g->n_values = 1; /* index 0 means none */
    return TP_OK;
}

void tp_graph_release(tp_graph *g)
{
    if (!g)
        return;
    tp_arena_release(&g->arena);
    *g = (tp_graph){0};
}

static const char *copy_name(tp_graph *g, const char *name)
{
    return name ? tp_arena_strdup(&g->arena, name) : NULL;
}

/* Arrays grow by copying inside the arena: the old ones are small change. */
static void *grow(tp_graph *g, void *old, uint32_t n, uint32_t *cap, size_t size)
{
    if (n < *cap)
        return old;
    uint32_t next = *cap ? *cap * 2 : 16;
    void *p = tp_arena_alloc(&g->arena, next, size, 16);
    if (n)
        memcpy(p, old, n * size);
    *cap = next;
    return p;
}

static tp_ref new_value(tp_graph *g, tp_value v)
{
    g->values = grow(g, g->values, g->n_values, &g->cap_values, sizeof *g->values);
    g->values[g->n_values] = v;
    return g->n_values++;
}

static tp_node *new_node(tp_graph *g, tp_op op, const char *label)
{
    g->nodes = grow(g, g->nodes, g->n_nodes, &g->cap_nodes, sizeof *g->nodes);
    tp_node *n = &g->nodes[g->n_nodes++];
    *n = (tp_node){.op = op, .phase = g->phase, .block = g->block, .label = copy_name(g, label)};
    return n;
}

/* The chain of a name: FNV-1a, 32 bits. */
static tp_ref *chain_of(const tp_graph *g, const char *name)
{
    uint32_t hash = 2166136261u;
    for (const char *p = name; *p; p++)
        hash = (hash ^ (uint8_t)*p) * 16777619u;
    return &g->named[hash % CHAINS];
}

static tp_ref add_source(tp_graph *g, tp_op op, const char *name, tp_dtype dtype, uint8_t rank,
                         const int64_t *dim)
{
    TP_ASSERT(rank >= 1 && rank <= TP_MAX_RANK);
    tp_node *n = new_node(g, op, name);
    n->block = -1;
    n->phase = TP_PHASE_FORWARD;
    n->n_out = 1;
    tp_value v = {.dtype = dtype,
                  .rank = rank,
                  .dim = {dim[0], rank == 2 ? dim[1] : 1},
                  .node = g->n_nodes - 1,
                  .name = n->label,
                  .next = *chain_of(g, name)};
    tp_ref ref = n->out[0] = new_value(g, v);
    return *chain_of(g, name) = ref;
}

tp_ref tp_graph_input(tp_graph *g, const char *name, tp_dtype dtype, uint8_t rank,
                      const int64_t *dim)
{
    return add_source(g, TP_OP_input, name, dtype, rank, dim);
}

tp_ref tp_graph_state(tp_graph *g, const tp_tensor *tensor)
{
    tp_ref ref = add_source(g, TP_OP_state, tensor->name, tensor->dtype, tensor->rank, tensor->dim);
    tp_tensor *own = tp_arena_array(&g->arena, tp_tensor, 1);
    *own = *tensor;
    own->name = g->values[ref].name;
    own->of = copy_name(g, tensor->of);
    own->within = copy_name(g, tensor->within);
    own->dim[1] = g->values[ref].dim[1];
    own->span = (tp_span){0};
    g->values[ref].tensor = own;
    return ref;
}

tp_ref tp_graph_find(const tp_graph *g, const char *name)
{
    tp_ref ref = *chain_of(g, name);
    while (ref && !(g->values[ref].name && strcmp(g->values[ref].name, name) == 0))
        ref = g->values[ref].next;
    return ref;
}

tp_ref tp_graph_find_tensor(const tp_graph *g, tp_role role, const char *of, tp_layout layout,
                            tp_dtype dtype)
{
    for (uint32_t i = 1; i < g->n_values; i++) {
        const tp_tensor *t = g->values[i].tensor;
        if (t && t->role == role && t->layout == layout && t->dtype == dtype && t->of &&
            strcmp(t->of, of) == 0)
            return i;
    }
    return 0;
}

tp_status tp_graph_try_op(tp_graph *g, tp_op op, const tp_attrs *attrs, int n_in, const tp_ref *in,
                          const char *label, tp_ref *ret, tp_error *err)
{
    static const tp_attrs none;
    tp_value out[TP_MAX_OUT];
    int n_out;
    if (!attrs)
        attrs = &none;
    TP_TRY(tp_op_infer(g, op, attrs, n_in, in, &n_out, out, err));
    tp_node *n = new_node(g, op, label);
    uint32_t index = g->n_nodes - 1;
    n->attrs = *attrs;
    n->n_in = (uint8_t)n_in;
    n->n_out = (uint8_t)n_out;
    for (int i = 0; i < n_in; i++)
        n->in[i] = in[i];
    for (int i = 0; i < n_out; i++) {
        out[i].node = index;
        out[i].out = (uint8_t)i;
        g->nodes[index].out[i] = new_value(g, out[i]);
    }
    *ret = g->nodes[index].out[0];
    return TP_OK;
}

tp_ref tp_graph_op(tp_graph *g, tp_op op, const tp_attrs *attrs, int n_in, const tp_ref *in,
                   const char *label)
{
    tp_ref ref = 0;
    tp_error err = {0};
    if (tp_graph_try_op(g, op, attrs, n_in, in, label, &ref, &err) != TP_OK) {
        fprintf(stderr, "bug: graph builder: %s\n", err.message);
        abort();
    }
    return ref;
}

tp_ref tp_graph_extend(tp_graph *g, uint32_t node, tp_ref operand)
{
    tp_node *n = &g->nodes[node];
    TP_ASSERT(n->n_in < TP_MAX_IN && n->n_out < TP_MAX_OUT);
    TP_ASSERT(tp_op_alias(n->op, n->n_out) == n->n_in); /* none is left out before them */
    tp_value v = g->values[operand];
    v.node = node;
    v.out = n->n_out;
    v.name = NULL;
    v.next = 0;
    v.tensor = NULL;
    n->in[n->n_in++] = operand;
    n->out[n->n_out++] = new_value(g, v);
    return n->out[n->n_out - 1];
}

void tp_graph_output(tp_graph *g, tp_ref ref)
{
    g->outputs = grow(g, g->outputs, g->n_outputs, &g->cap_outputs, sizeof *g->outputs);
    g->outputs[g->n_outputs++] = ref;
}

void tp_graph_count_uses(tp_graph *g)
{
    for (uint32_t i = 0; i < g->n_values; i++)
        g->values[i].n_uses = 0;
    for (uint32_t i = 1; i < g->n_nodes; i++) {
        const tp_node *n = &g->nodes[i];
        if (n->is_dead)
            continue;
        for (int k = 0; k < n->n_in; k++)
            g->values[n->in[k]].n_uses++;
    }
    for (uint32_t i = 0; i < g->n_outputs; i++)
        g->values[g->outputs[i]].n_uses++;
    g->values[0].n_uses = 0;
}

void tp_graph_replace(tp_graph *g, tp_ref from, tp_ref to, uint32_t start)
{
    for (uint32_t i = start; i < g->n_nodes; i++)
        for (int k = 0; k < g->nodes[i].n_in; k++)
            if (g->nodes[i].in[k] == from)
                g->nodes[i].in[k] = to;
    for (uint32_t i = 0; i < g->n_outputs; i++)
        if (g->outputs[i] == from)
            g->outputs[i] = to;
}

/* Values that no node defines any more lose their record. */
static void renumber_definitions(tp_graph *g)
{
    for (tp_ref v = 1; v < g->n_values; v++)
        g->values[v].node = 0;
    for (uint32_t i = 1; i < g->n_nodes; i++)
        for (int k = 0; k < g->nodes[i].n_out; k++) {
            tp_value *v = &g->values[g->nodes[i].out[k]];
            v->node = i;
            v->out = (uint8_t)k;
        }
    for (tp_ref v = 1; v < g->n_values; v++)
        if (!g->values[v].node)
            g->values[v].name = NULL;
}

void tp_graph_compact(tp_graph *g)
{
    uint32_t kept = 1;
    for (uint32_t i = 1; i < g->n_nodes; i++)
        if (!g->nodes[i].is_dead)
            g->nodes[kept++] = g->nodes[i];
    g->n_nodes = kept;
    renumber_definitions(g);
}

void tp_graph_reorder(tp_graph *g, const uint32_t *order, uint32_t n)
{
    TP_ASSERT(n == g->n_nodes - 1);
    tp_node *nodes = tp_arena_array(&g->arena, tp_node, g->cap_nodes);
    for (uint32_t i = 0; i < n; i++)
        nodes[i + 1] = g->nodes[order[i]];
    g->nodes = nodes;
    renumber_definitions(g);
}

tp_ref tp_graph_memory(const tp_graph *g, tp_ref ref)
{
    while (ref) {
        const tp_node *n = tp_def(g, ref);
        tp_ref older =
            tp_ops[n->op]->traits & TP_OP_VIEW ? n->in[0] : tp_overwrites(n, g->values[ref].out);
        if (!older)
            break;
        ref = older;
    }
    return ref;
}

size_t tp_value_count(const tp_value *v)
{
    return (size_t)v->dim[0] * (size_t)(v->rank == 2 ? v->dim[1] : 1);
}

size_t tp_value_bytes(const tp_value *v) { return tp_value_count(v) * tp_dtype_size(v->dtype); }
