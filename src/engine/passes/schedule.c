/* schedule.c - an execution order with a lower memory peak.
 *
 * Among the nodes whose operands are ready, within a short window of the given
 * order, the one that frees most (or adds least) goes first.  The window keeps the
 * locality that the given order has.  The result is kept only if the planned peak is
 * lower. */
#include "engine/passes/pass.h"

enum { WINDOW = 12 };

typedef struct {
    const tp_graph *g;
    uint32_t *left; /* value: readers not yet placed */
    bool *placed;   /* node */
} state;

static bool is_temporary(const tp_graph *g, tp_ref ref)
{
    return ref && !(tp_ops[tp_def(g, ref)->op]->traits & TP_OP_SOURCE);
}

static bool shares_input(const tp_graph *g, const tp_node *n, int out)
{
    int alias = tp_op_alias(n->op, out);
    (void)g;
    return (alias >= 0 && alias < n->n_in && n->in[alias]) ||
           (tp_ops[n->op]->traits & TP_OP_VIEW) != 0;
}

/* Bytes added (positive) or freed (negative) by running the node now. */
static int64_t delta(const state *s, const tp_node *n)
{
    int64_t bytes = 0;
    for (int k = 0; k < n->n_out; k++)
        if (!shares_input(s->g, n, k))
            bytes += (int64_t)tp_value_bytes(&s->g->values[n->out[k]]);
    for (int k = 0; k < n->n_in; k++) {
        tp_ref ref = n->in[k];
        uint32_t here = 0;
        for (int j = 0; j < n->n_in; j++)
            here += n->in[j] == ref;
        bool first = true;
        for (int j = 0; j < k; j++)
            first &= n->in[j] != ref;
        if (first && is_temporary(s->g, ref) && s->left[ref] == here)
            bytes -= (int64_t)tp_value_bytes(&s->g->values[ref]);
    }
    return bytes;
}

static bool is_ready(const state *s, const tp_node *n)
{
    for (int k = 0; k < n->n_in; k++)
        if (n->in[k] && !s->placed[s->g->values[n->in[k]].node])
            return false;
    /* An overwriting node waits for all other readers of the old version. */
    for (int k = 0; k < n->n_out; k++) {
        int alias = tp_op_alias(n->op, k);
        if (alias >= 0 && alias < n->n_in && n->in[alias] && s->left[n->in[alias]] > 1)
            return false;
    }
    return true;
}

static uint32_t pick(const state *s, uint32_t first)
{
    uint32_t best = 0;
    int64_t best_delta = 0;
    int seen = 0;
    for (uint32_t i = first; i < s->g->n_nodes && seen < WINDOW; i++) {
        const tp_node *n = &s->g->nodes[i];
        if (s->placed[i])
            continue;
        seen++;
        if (n->phase != s->g->nodes[first].phase)
            break;
        if (!is_ready(s, n))
            continue;
        int64_t d = delta(s, n);
        if (!best || d < best_delta) {
            best = i;
            best_delta = d;
        }
    }
    return best;
}

static void place(state *s, uint32_t node, uint32_t *order, uint32_t *n)
{
    s->placed[node] = true;
    for (int k = 0; k < s->g->nodes[node].n_in; k++)
        s->left[s->g->nodes[node].in[k]]--;
    order[(*n)++] = node;
}

static tp_status peak_of(const tp_graph *g, size_t *ret, tp_error *err)
{
    TP_OWN(tp_arena) scratch = {0};
    tp_memory_plan plan;
    TP_TRY(tp_arena_init(&scratch, 256 << 20, err));
    TP_TRY(tp_plan_memory(g, true, &scratch, &plan, err));
    *ret = plan.arena_bytes;
    return TP_OK;
}

static tp_status run(tp_graph *g, const tp_pass_options *options, bool *changed, tp_error *err)
{
    (void)options;
    size_t before = 0, after = 0;
    TP_TRY(peak_of(g, &before, err));
    state s = {.g = g};
    s.left = tp_arena_array(&g->arena, uint32_t, g->n_values);
    s.placed = tp_arena_array(&g->arena, bool, g->n_nodes);
    uint32_t *order = tp_arena_array(&g->arena, uint32_t, g->n_nodes);
    tp_graph_count_uses(g);
    for (uint32_t i = 0; i < g->n_values; i++)
        s.left[i] = g->values[i].n_uses;
    uint32_t n = 0;
    for (uint32_t first = 1; first < g->n_nodes;) {
        if (s.placed[first]) {
            first++;
            continue;
        }
        uint32_t node = tp_ops[g->nodes[first].op]->traits & TP_OP_SOURCE ? first : pick(&s, first);
        place(&s, node ? node : first, order, &n);
    }
    tp_node *old_nodes = g->nodes;
    tp_graph_reorder(g, order, n);
    TP_TRY(peak_of(g, &after, err));
    *changed = after < before;
    if (!*changed) {
        g->nodes = old_nodes;
        for (uint32_t i = 1; i < g->n_nodes; i++)
            for (int k = 0; k < g->nodes[i].n_out; k++)
                g->values[g->nodes[i].out[k]].node = i;
    }
    return TP_OK;
}

const tp_pass tp_pass_schedule = {
    .name = "schedule", .promise = "an order with a lower memory peak", .run = run};
