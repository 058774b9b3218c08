/* launch_trace.c - launches and their memory as events of a trace. */
#include "engine/exec/launch_trace.h"

#include "engine/exec/work.h"
#include "text/json/json.h"

/* ---- the operator ---- */

static const char *type_name(tp_dtype dtype) /* as PyTorch spells them */
{
    static const char *const names[TP_DTYPE_COUNT] = {
        [TP_DTYPE_F32] = "float",       [TP_DTYPE_BF16] = "c10::BFloat16",
        [TP_DTYPE_F16] = "c10::Half",   [TP_DTYPE_F64] = "double",
        [TP_DTYPE_I32] = "int",         [TP_DTYPE_I64] = "long int",
        [TP_DTYPE_U8] = "unsigned char"};
    return names[dtype];
}

static void add_dims(tp_json_w *w, const char *key, const tp_operand *operands, int n)
{
    tp_json_w_put_begin(w, key, '[');
    for (int i = 0; i < n; i++) {
        tp_json_w_begin(w, '[');
        for (int k = 0; k < operands[i].rank; k++)
            tp_json_w_i64(w, operands[i].dim[k]);
        tp_json_w_end(w, ']');
    }
    tp_json_w_end(w, ']');
}

static void add_types(tp_json_w *w, const char *key, const tp_operand *operands, int n)
{
    tp_json_w_put_begin(w, key, '[');
    for (int i = 0; i < n; i++)
        tp_json_w_str(w, operands[i].rank ? type_name(operands[i].dtype) : "");
    tp_json_w_end(w, ']');
}

static const char *describe(tp_arena *arena, tp_buf *out, const tp_launch *l,
                            const tp_launch_info *info)
{
    static const char *const phases[] = {"forward", "backward", "update"};
    tp_buf_clear(out);
    tp_json_w w = tp_json_w_open(out, 0, '{');
    add_dims(&w, "Input Dims", l->in, l->n_in);
    add_types(&w, "Input type", l->in, l->n_in);
    add_dims(&w, "Output Dims", l->out, l->n_out);
    tp_json_w_put_str(&w, "Module Hierarchy", info->label);
    tp_json_w_put_str(&w, "phase", phases[info->phase]);
    if (info->is_clone)
        tp_json_w_put_bool(&w, "recomputed", true);
    tp_json_w_put_str(&w, "kernel", info->kernel);
    if (tp_ops[info->op]->traits & TP_OP_COMMUNICATES) /* what it waits for has an event */
        tp_json_w_put_str(&w, "Collective name", tp_ops[info->op]->name);
    if (info->varies) { /* dims are those of the plan */
        tp_json_w_put_str(&w, "rows", "vary");
    } else if (tp_work_operand(info->op) < 0) {
        tp_json_w_put_f64(&w, "flops", info->flops);
        tp_json_w_put_f64(&w, "bytes", info->bytes);
    }
    tp_json_w_end(&w, '}');
    return tp_arena_printf(arena, "%s", tp_buf_str(out));
}

/* ---- what lives when ---- */

/* The first launch at node `node` or behind it; n when there is none. */
static size_t launch_from(const uint32_t *node_of, size_t n, uint32_t node)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (node_of[middle] < node)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

typedef struct {
    tp_ref root;
    uint32_t from, to; /* launches */
} life;

/* Lives of the arena's roots; returns how many. */
static size_t find_lives(const tp_graph *g, const tp_memory_plan *memory, const uint32_t *node_of,
                         size_t n, life *lives)
{
    size_t k = 0;
    for (tp_ref ref = 1; ref < memory->n_values && n > 0; ref++) {
        const tp_place *place = &memory->places[ref];
        if (place->kind != TP_PLACE_ARENA || place->root != ref)
            continue;
        size_t from = launch_from(node_of, n, memory->first[ref]);
        size_t behind =
            memory->last[ref] >= g->n_nodes ? n : launch_from(node_of, n, memory->last[ref] + 1);
        if (from < behind)
            lives[k++] = (life){ref, (uint32_t)from, (uint32_t)behind - 1};
    }
    return k;
}

static tp_launch_change change(const tp_graph *g, const tp_memory_plan *memory, tp_ref root,
                               int64_t sign)
{
    const tp_node *maker = tp_def(g, root);
    const char *owner = maker->label ? maker->label : tp_ops[maker->op]->name;
    return (tp_launch_change){.site = {.name = owner, .category = "activations"},
                              .offset = memory->arena_offset[root],
                              .bytes = sign * (int64_t)tp_value_bytes(&g->values[root])};
}

/* Counting sort by launch, what is taken before what is given back. */
static void sort_changes(tp_launch_trace *t, tp_arena *arena, const tp_graph *g,
                         const tp_memory_plan *memory, const life *lives, size_t n_lives, size_t n)
{
    t->first_change = tp_arena_array(arena, uint32_t, n + 2);
    t->changes = tp_arena_array(arena, tp_launch_change, 2 * n_lives + 1);
    for (size_t i = 0; i < n_lives; i++) {
        t->first_change[lives[i].from + 1]++;
        t->first_change[lives[i].to + 1]++;
    }
    for (size_t i = 0; i < n; i++)
        t->first_change[i + 1] += t->first_change[i];
    uint32_t *next = tp_arena_array(arena, uint32_t, n + 1);
    for (size_t i = 0; i < n; i++)
        next[i] = t->first_change[i];
    for (size_t i = 0; i < n_lives; i++)
        t->changes[next[lives[i].from]++] = change(g, memory, lives[i].root, 1);
    for (size_t i = 0; i < n_lives; i++)
        t->changes[next[lives[i].to]++] = change(g, memory, lives[i].root, -1);
}

void tp_launch_trace_init(tp_launch_trace *t, tp_arena *arena, const tp_graph *g,
                          const tp_memory_plan *memory, const tp_launch *launches,
                          const tp_launch_info *info, const uint32_t *node_of, size_t n)
{
    TP_OWN(tp_buf) text = {0};
    t->sites = tp_arena_array(arena, tp_trace_site, n + 1);
    t->depends = tp_arena_array(arena, bool, n + 1);
    for (size_t i = 0; i < n; i++) {
        t->depends[i] = tp_work_operand(info[i].op) >= 0;
        t->sites[i] =
            (tp_trace_site){.name = tp_arena_printf(arena, "temper::%s", tp_ops[info[i].op]->name),
                            .category = "cpu_op",
                            .args = describe(arena, &text, &launches[i], &info[i]),
                            .flops = t->depends[i] ? 0 : info[i].flops,
                            .bytes = t->depends[i] ? 0 : info[i].bytes};
    }
    life *lives = tp_arena_array(arena, life, memory->n_values + 1);
    size_t n_lives = find_lives(g, memory, node_of, n, lives);
    sort_changes(t, arena, g, memory, lives, n_lives, n);
}

void tp_launch_trace_vary(tp_launch_trace *t, size_t i, tp_arena *arena, const tp_launch *launch,
                          const tp_launch_info *info)
{
    TP_OWN(tp_buf) text = {0};
    t->sites[i].args = describe(arena, &text, launch, info);
    t->sites[i].flops = t->sites[i].bytes = 0;
    t->depends[i] = tp_launch_is_counted(info);
}

/* ---- running ---- */

static void record_changes(const tp_launch_trace *t, size_t i, const char *base, bool taken)
{
    for (uint32_t k = t->first_change[i]; k < t->first_change[i + 1]; k++)
        if ((t->changes[k].bytes > 0) == taken)
            tp_trace_memory(&t->changes[k].site, base + t->changes[k].offset, t->changes[k].bytes);
}

tp_zone tp_launch_trace_begin(const tp_launch_trace *t, size_t i, const char *base)
{
    tp_zone zone = tp_zone_begin(&t->sites[i]);
    record_changes(t, i, base, true);
    return zone;
}

void tp_launch_trace_end(const tp_launch_trace *t, size_t i, const char *base, const tp_zone *zone,
                         tp_cost done)
{
    record_changes(t, i, base, false);
    if (!t->depends[i]) {
        tp_zone_end(zone);
        return;
    }
    char text[80];
    snprintf(text, sizeof text, "{\"flops\":%.0f,\"bytes\":%.0f}", done.flops, done.bytes);
    tp_zone_end_with(zone, text);
}

void tp_launch_trace_skip(const tp_launch_trace *t, size_t i, const char *base)
{
    record_changes(t, i, base, true);
    record_changes(t, i, base, false);
}
