/* plan_memory.c - one arena for all temporaries, laid out before anything runs.
 *
 * 1. Sharing.  Each value has a root, the value whose memory it uses: accumulators
 *    and caches by definition, views (split, and the operands of a concat) by
 *    column, elementwise results in place of an operand that dies there.
 * 2. Life.  A root lives from its first definition to the last read of anything
 *    that shares it.
 * 3. Layout.  Largest root first, each at the lowest offset where no root that lives
 *    at the same time is in the way. */
#include <string.h>

#include "base/platform.h"
#include "engine/passes/pass.h"

enum { ALIGN = 64 };

typedef struct {
    const tp_graph *g;
    tp_memory_plan *plan;
    uint32_t *last_use; /* value: last node that reads it (outputs: past the end) */
    uint32_t *n_reads;
    bool share;
} planner;

static size_t row_stride(const tp_value *v) { return v->rank == 2 ? (size_t)v->dim[1] : 1; }

static size_t row_bytes(const tp_value *v) { return row_stride(v) * tp_dtype_size(v->dtype); }

static void place_alone(planner *p, tp_ref ref, tp_place_kind kind)
{
    p->plan->places[ref] =
        (tp_place){.kind = kind, .root = ref, .stride = (int64_t)row_stride(&p->g->values[ref])};
}

static void find_last_uses(planner *p)
{
    const tp_graph *g = p->g;
    for (uint32_t i = 1; i < g->n_nodes; i++)
        for (int k = 0; k < g->nodes[i].n_in; k++) {
            p->last_use[g->nodes[i].in[k]] = i;
            p->n_reads[g->nodes[i].in[k]]++;
        }
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        p->last_use[g->outputs[i]] = g->n_nodes;
        p->n_reads[g->outputs[i]]++;
    }
}

/* A concat whose operands each have this one reader and memory of their own can
 * have them written into its columns by their producers. */
static bool concat_in_place(const planner *p, const tp_node *n)
{
    if (!p->share)
        return false;
    for (int k = 0; k < n->n_in; k++) {
        const tp_node *maker = tp_def(p->g, n->in[k]);
        const tp_value *v = &p->g->values[n->in[k]];
        if ((tp_ops[maker->op]->traits & (TP_OP_SOURCE | TP_OP_VIEW)) || p->n_reads[n->in[k]] != 1 ||
            tp_op_alias(maker->op, v->out) >= 0 || v->dtype != p->g->values[n->out[0]].dtype)
            return false;
        for (int j = 0; j < k; j++)
            if (n->in[j] == n->in[k])
                return false;
    }
    return true;
}

/* Decided before the walk, the last concat first: one that is itself an operand of
 * a later one passes its place on. */
static void place_concat_operands(planner *p)
{
    const tp_graph *g = p->g;
    for (uint32_t i = g->n_nodes - 1; i > 0; i--) {
        const tp_node *n = &g->nodes[i];
        if (n->op != TP_OP_concat || !concat_in_place(p, n))
            continue;
        if (p->plan->places[n->out[0]].kind == TP_PLACE_NONE)
            place_alone(p, n->out[0], TP_PLACE_ARENA);
        tp_place place = p->plan->places[n->out[0]];
        for (int k = 0; k < n->n_in; k++) {
            p->plan->places[n->in[k]] = place;
            place.offset += row_bytes(&g->values[n->in[k]]);
        }
        p->plan->node_is_free[i] = true;
    }
}

static void place_views(planner *p, const tp_node *n)
{
    tp_place place = p->plan->places[n->in[0]];
    for (int k = 0; k < n->n_out; k++) {
        p->plan->places[n->out[k]] = place;
        place.offset += row_bytes(&p->g->values[n->out[k]]);
    }
}

/* Do two values of one root have a column in common? */
static bool overlap(const planner *p, tp_ref a, tp_ref b)
{
    const tp_place *x = &p->plan->places[a], *y = &p->plan->places[b];
    return x->kind != TP_PLACE_NONE && y->kind != TP_PLACE_NONE && x->root == y->root &&
           x->offset < y->offset + row_bytes(&p->g->values[b]) &&
           y->offset < x->offset + row_bytes(&p->g->values[a]);
}

/* Whatever shares columns with `ref` and is read after node i forbids overwriting it. */
static bool is_read_later(const planner *p, tp_ref ref, uint32_t i)
{
    for (tp_ref v = 1; v < p->plan->n_values; v++)
        if (p->last_use[v] > i && overlap(p, v, ref))
            return true;
    return false;
}

/* May output 0 of node i overwrite operand k? */
static bool can_overwrite(const planner *p, uint32_t i, int k)
{
    const tp_node *n = &p->g->nodes[i];
    tp_ref ref = n->in[k];
    if (!ref || p->last_use[ref] != i)
        return false;
    const tp_value *v = &p->g->values[ref], *out = &p->g->values[n->out[0]];
    if (p->plan->places[ref].kind != TP_PLACE_ARENA || v->dtype != out->dtype ||
        tp_value_bytes(v) != tp_value_bytes(out))
        return false;
    for (int j = 0; j < n->n_in; j++)
        if (j != k && n->in[j] && overlap(p, n->in[j], ref))
            return false;
    return !is_read_later(p, ref, i);
}

static bool place_in_place(planner *p, uint32_t i)
{
    const tp_node *n = &p->g->nodes[i];
    uint32_t traits = tp_ops[n->op]->traits;
    if (!p->share || !(traits & TP_OP_INPLACE))
        return false;
    int operands = traits & TP_OP_ELEMENTWISE ? n->n_in : 1;
    for (int k = 0; k < operands; k++)
        if (can_overwrite(p, i, k)) {
            p->plan->places[n->out[0]] = p->plan->places[n->in[k]];
            return true;
        }
    return false;
}

static void place_outputs(planner *p, uint32_t i)
{
    const tp_node *n = &p->g->nodes[i];
    tp_place *places = p->plan->places;
    if (tp_ops[n->op]->traits & TP_OP_SOURCE) {
        place_alone(p, n->out[0], TP_PLACE_SOURCE);
        return;
    }
    if (tp_ops[n->op]->traits & TP_OP_VIEW) {
        place_views(p, n);
        p->plan->node_is_free[i] = true;
        return;
    }
    p->plan->node_is_free[i] |= (tp_ops[n->op]->traits & TP_OP_UNWRITTEN) != 0;
    for (int k = 0; k < n->n_out; k++) {
        if (places[n->out[k]].kind != TP_PLACE_NONE)
            continue; /* operand of an in-place concat, or that concat */
        int alias = tp_op_alias(n->op, k);
        if (alias >= 0 && alias < n->n_in && n->in[alias])
            places[n->out[k]] = places[n->in[alias]];
        else if (k > 0 || !place_in_place(p, i))
            place_alone(p, n->out[k], TP_PLACE_ARENA);
    }
}

static void find_lives(planner *p)
{
    tp_memory_plan *plan = p->plan;
    for (tp_ref v = 1; v < plan->n_values; v++) {
        if (plan->places[v].kind != TP_PLACE_ARENA)
            continue;
        tp_ref root = plan->places[v].root;
        uint32_t def = p->g->values[v].node;
        uint32_t last = p->last_use[v] > def ? p->last_use[v] : def;
        if (plan->first[root] == 0 || def < plan->first[root])
            plan->first[root] = def;
        if (last > plan->last[root])
            plan->last[root] = last;
    }
}

static size_t rounded(const tp_graph *g, tp_ref ref)
{
    return (tp_value_bytes(&g->values[ref]) + ALIGN - 1) / ALIGN * ALIGN;
}

static int by_size(const void *a, const void *b, void *graph)
{
    const tp_graph *g = graph;
    tp_ref x = *(const tp_ref *)a, y = *(const tp_ref *)b;
    size_t m = tp_value_bytes(&g->values[x]), n = tp_value_bytes(&g->values[y]);
    return m != n ? (m < n ? 1 : -1) : (x < y ? -1 : 1);
}

static void lay_out(planner *p, tp_arena *arena)
{
    tp_memory_plan *plan = p->plan;
    tp_ref *roots = tp_arena_array(arena, tp_ref, plan->n_values);
    tp_ref *placed = tp_arena_array(arena, tp_ref, plan->n_values); /* by offset */
    uint32_t n_roots = 0;
    for (tp_ref v = 1; v < plan->n_values; v++)
        if (plan->places[v].kind == TP_PLACE_ARENA && plan->places[v].root == v)
            roots[n_roots++] = v;
    qsort_r(roots, n_roots, sizeof *roots, by_size, (void *)(uintptr_t)p->g);
    for (uint32_t i = 0; i < n_roots; i++) {
        tp_ref v = roots[i];
        size_t bytes = rounded(p->g, v), at = 0;
        uint32_t slot = 0;
        for (uint32_t k = 0; k < i; k++) {
            tp_ref w = placed[k];
            if (plan->first[w] > plan->last[v] || plan->last[w] < plan->first[v])
                continue;
            if (plan->arena_offset[w] >= at + bytes)
                break;
            at = TP_MAX(at, plan->arena_offset[w] + rounded(p->g, w));
        }
        while (slot < i && plan->arena_offset[placed[slot]] <= at)
            slot++;
        memmove(placed + slot + 1, placed + slot, (i - slot) * sizeof *placed);
        placed[slot] = v;
        plan->arena_offset[v] = at;
        plan->arena_bytes = TP_MAX(plan->arena_bytes, at + bytes);
    }
}

static void find_live_peak(planner *p, tp_arena *arena)
{
    tp_memory_plan *plan = p->plan;
    uint32_t n = p->g->n_nodes + 2;
    int64_t *change = tp_arena_array(arena, int64_t, n);
    for (tp_ref v = 1; v < plan->n_values; v++)
        if (plan->places[v].kind == TP_PLACE_ARENA && plan->places[v].root == v) {
            change[plan->first[v]] += (int64_t)rounded(p->g, v);
            change[plan->last[v] + 1] -= (int64_t)rounded(p->g, v);
        }
    int64_t live = 0;
    for (uint32_t i = 0; i < n; i++) {
        live += change[i];
        if (live > (int64_t)plan->live_peak_bytes)
            plan->live_peak_bytes = (size_t)live;
    }
}

tp_status tp_plan_memory(const tp_graph *g, bool share, tp_arena *arena, tp_memory_plan *ret,
                         tp_error *err)
{
    size_t total = 0;
    for (tp_ref v = 1; v < g->n_values; v++)
        if (__builtin_add_overflow(total, tp_value_bytes(&g->values[v]) + ALIGN, &total))
            return tp_fail(err, TP_ERR_NOMEM, "the values of the graph exceed all address space");
    *ret = (tp_memory_plan){.n_values = g->n_values};
    ret->places = tp_arena_array(arena, tp_place, g->n_values);
    ret->arena_offset = tp_arena_array(arena, size_t, g->n_values);
    ret->first = tp_arena_array(arena, uint32_t, g->n_values);
    ret->last = tp_arena_array(arena, uint32_t, g->n_values);
    ret->node_is_free = tp_arena_array(arena, bool, g->n_nodes);
    planner p = {.g = g, .plan = ret, .share = share};
    p.last_use = tp_arena_array(arena, uint32_t, g->n_values);
    p.n_reads = tp_arena_array(arena, uint32_t, g->n_values);
    find_last_uses(&p);
    place_concat_operands(&p);
    for (uint32_t i = 1; i < g->n_nodes; i++)
        place_outputs(&p, i);
    find_lives(&p);
    lay_out(&p, arena);
    find_live_peak(&p, arena);
    return TP_OK;
}
