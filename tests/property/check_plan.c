/* check_plan.c - a memory plan checked launch by launch: nothing that lives is overwritten. */
#include "property/check_plan.h"

#include <string.h>

typedef struct {
    const tp_graph *g;
    const tp_memory_plan *plan;
    uint64_t *arena_bytes;   /* what was last written; 0 = nothing */
    uint64_t **source_bytes; /* the same for the memory of each source */
    tp_arena *arena;
    const char *complaint;
} player;

/* An identity for element (row, column) as a number: views have that of what they show. */
static uint64_t content(const tp_graph *g, tp_ref ref, int64_t row, int64_t column)
{
    for (;;) {
        const tp_value *v = &g->values[ref];
        const tp_node *n = tp_def(g, ref);
        if (n->op == TP_OP_split) {
            for (int k = 0; k < v->out; k++)
                column += g->values[n->out[k]].dim[1];
            ref = n->in[0];
        } else if (n->op == TP_OP_concat) {
            int k = 0;
            while (column >= g->values[n->in[k]].dim[1])
                column -= g->values[n->in[k++]].dim[1];
            ref = n->in[k];
        } else {
            return (uint64_t)ref << 32 | (uint64_t)(row * v->dim[1] + column + 1);
        }
    }
}

/* The first of the bytes of an element, NULL when it lies outside of its memory. */
static uint64_t *bytes_of(player *p, tp_ref ref, int64_t row, int64_t column)
{
    const tp_place *place = &p->plan->places[ref];
    size_t size = tp_dtype_size(p->g->values[ref].dtype);
    size_t at = place->offset + (size_t)(row * place->stride + column) * size;
    size_t room = tp_value_bytes(&p->g->values[place->root]);
    if (place->kind == TP_PLACE_NONE || at + size > room)
        return NULL;
    if (place->kind == TP_PLACE_SOURCE)
        return p->source_bytes[place->root] + at;
    at += p->plan->arena_offset[place->root];
    return at + size <= p->plan->arena_bytes ? p->arena_bytes + at : NULL;
}

static void complain(player *p, uint32_t node, tp_ref ref, int64_t row, int64_t column,
                     const char *what)
{
    if (!p->complaint)
        p->complaint =
            tp_arena_printf(p->arena, "node %u (%s): %s %%%u[%lld,%lld]", node,
                            node < p->g->n_nodes ? tp_ops[p->g->nodes[node].op]->name : "end", what,
                            ref, (long long)row, (long long)column);
}

static void visit(player *p, uint32_t node, tp_ref ref, bool is_write)
{
    const tp_value *v = &p->g->values[ref];
    size_t size = tp_dtype_size(v->dtype);
    for (int64_t i = 0; i < v->dim[0]; i++)
        for (int64_t j = 0; j < v->dim[1]; j++) {
            uint64_t *at = bytes_of(p, ref, i, j), id = content(p->g, ref, i, j);
            if (!at) {
                complain(p, node, ref, i, j, "has no memory for");
                return;
            }
            for (size_t b = 0; b < size; b++) {
                if (is_write)
                    at[b] = id;
                else if (at[b] != id)
                    complain(p, node, ref, i, j, "does not find");
            }
        }
}

/* A kernel may write where it reads only if it is element by element, or where its
 * definition says so. */
static bool may_share(const tp_node *n, int in, int out)
{
    uint32_t traits = tp_ops[n->op]->traits;
    if (tp_overwrites(n, out) == n->in[in])
        return true;
    return out == 0 && (traits & TP_OP_INPLACE) && (in == 0 || (traits & TP_OP_ELEMENTWISE));
}

/* Every element of the one lies where the same element of the other does. */
static bool coincide(const player *p, tp_ref a, tp_ref b)
{
    const tp_value *x = &p->g->values[a], *y = &p->g->values[b];
    const tp_place *at = &p->plan->places[a], *other = &p->plan->places[b];
    return x->dtype == y->dtype && memcmp(x->dim, y->dim, sizeof x->dim) == 0 &&
           at->offset == other->offset && at->stride == other->stride;
}

static void check_sharing(player *p, uint32_t node, int in, int out)
{
    const tp_node *n = &p->g->nodes[node];
    const tp_value *x = &p->g->values[n->in[in]], *y = &p->g->values[n->out[out]];
    if (coincide(p, n->in[in], n->out[out])) {
        if (!may_share(n, in, out))
            complain(p, node, n->in[in], 0, 0, "overwrites");
        return;
    }
    size_t size = tp_dtype_size(y->dtype), step = tp_dtype_size(x->dtype);
    for (int64_t a = 0; a < (int64_t)tp_value_count(x); a++)
        for (int64_t b = 0; b < (int64_t)tp_value_count(y); b++) {
            const uint64_t *read = bytes_of(p, n->in[in], a / x->dim[1], a % x->dim[1]);
            const uint64_t *written = bytes_of(p, n->out[out], b / y->dim[1], b % y->dim[1]);
            bool apart = !read || !written || read + step <= written || written + size <= read;
            if (!apart && (read != written || a != b || step != size || !may_share(n, in, out)))
                complain(p, node, n->in[in], a / x->dim[1], a % x->dim[1], "overwrites");
        }
}

static void play_node(player *p, uint32_t node)
{
    const tp_node *n = &p->g->nodes[node];
    if (p->plan->node_is_free[node])
        return;
    if (!(tp_ops[n->op]->traits & TP_OP_SOURCE)) {
        for (int k = 0; k < n->n_in; k++)
            if (n->in[k])
                visit(p, node, n->in[k], false);
        for (int i = 0; i < n->n_in; i++)
            for (int o = 0; o < n->n_out; o++)
                if (n->in[i] && p->plan->places[n->in[i]].root == p->plan->places[n->out[o]].root)
                    check_sharing(p, node, i, o);
    }
    for (int k = 0; k < n->n_out; k++)
        visit(p, node, n->out[k], true);
}

/* The plan's number is what was touched: no more was asked for than is used. */
static void check_peak(player *p)
{
    enum { ALIGN = 64 };
    size_t used = p->plan->arena_bytes;
    while (used > 0 && p->arena_bytes[used - 1] == 0)
        used--;
    if ((used + ALIGN - 1) / ALIGN * ALIGN != p->plan->arena_bytes && !p->complaint)
        p->complaint = tp_arena_printf(p->arena, "%zu bytes are planned, %zu are used",
                                       p->plan->arena_bytes, used);
}

const char *check_plan(const tp_graph *g, const tp_memory_plan *plan, tp_arena *arena)
{
    player p = {.g = g, .plan = plan, .arena = arena};
    p.arena_bytes = tp_arena_array(arena, uint64_t, plan->arena_bytes + 1);
    p.source_bytes = tp_arena_array(arena, uint64_t *, g->n_values);
    for (uint32_t i = 1; i < g->n_nodes; i++)
        if (tp_ops[g->nodes[i].op]->traits & TP_OP_SOURCE)
            p.source_bytes[g->nodes[i].out[0]] =
                tp_arena_array(arena, uint64_t, tp_value_bytes(&g->values[g->nodes[i].out[0]]));
    for (uint32_t i = 1; i < g->n_nodes && !p.complaint; i++)
        play_node(&p, i);
    for (uint32_t i = 0; i < g->n_outputs && !p.complaint; i++)
        visit(&p, g->n_nodes, g->outputs[i], false);
    check_peak(&p);
    return p.complaint;
}
