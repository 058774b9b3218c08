/* stacks.c - a tree of stacks from nested spans, modules and frames. */
#include "instrument/analyze/stacks.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "instrument/analyze/nesting.h"

static bool is_frame(uint8_t kind)
{
    return kind == TP_EVENT_CPU_OP || kind == TP_EVENT_PYTHON || kind == TP_EVENT_ANNOTATION ||
           kind == TP_EVENT_OTHER;
}

static size_t collect(const tp_events *e, tp_time_span **ret)
{
    tp_time_span *v = NULL;
    size_t n = 0, cap = 0;
    for (size_t i = 0; i < e->n; i++) {
        if (!is_frame(e->kind[i]) || e->phase[i] != 'X')
            continue;
        v = tp_vec_room(v, &cap, n + 1, sizeof *v);
        v[n++] = (tp_time_span){e->start[i], tp_event_end(e, i), (uint32_t)i, e->track[i]};
    }
    tp_spans_sort(v, n);
    *ret = v;
    return n;
}

typedef struct {
    tp_stacks *stacks;
    const tp_events *events;
    tp_number_map child; /* (parent + 1, name) -> node */
    uint32_t *frames;    /* name of an event -> frame + 1 */
    size_t cap;
    bool has_modules; /* operators hang below their modules */
} builder;

static uint32_t node_of(builder *b, uint32_t parent, uint32_t frame)
{
    uint64_t key = (uint64_t)(parent + 1) << 32 | frame;
    uint32_t node = tp_number_map_get(&b->child, key);
    if (node != TP_NO_ROW)
        return node;
    tp_stacks *s = b->stacks;
    s->v = tp_vec_room(s->v, &b->cap, s->n + 1, sizeof *s->v);
    node = (uint32_t)s->n;
    s->v[s->n++] = (tp_stack_node){.parent = parent, .name = frame};
    tp_number_map_add(&b->child, key, node);
    return node;
}

static uint32_t below(builder *b, uint32_t parent, tp_slice frame)
{
    return node_of(b, parent, tp_string_add(&b->stacks->names, frame.data, frame.len));
}

/* The frame of an event; numbers of steps are left out. */
static uint32_t frame_of(builder *b, uint32_t name)
{
    static const char step[] = TP_PROFILER_STEP;
    if (!b->frames[name]) {
        tp_slice text = tp_events_name_text(b->events, name);
        if (text.len >= sizeof step - 1 && memcmp(text.data, step, sizeof step - 1) == 0)
            text.len = sizeof step - 2;
        b->frames[name] = tp_string_add(&b->stacks->names, text.data, text.len) + 1;
    }
    return b->frames[name] - 1;
}

/* ---- modules ---- */

/* The next part of "layers.0.q_proj": "layers.0", then "q_proj"; numbers stay with what they
 * count.  False at the end. */
static bool next_module(tp_slice *rest, tp_slice *ret)
{
    size_t n = 0;
    if (rest->len == 0)
        return false;
    for (; n < rest->len; n++) {
        bool counts = rest->data[n] == '.' && n + 1 < rest->len && rest->data[n + 1] >= '0' &&
                      rest->data[n + 1] <= '9';
        if (rest->data[n] == '.' && !counts)
            break;
    }
    *ret = (tp_slice){rest->data, n};
    n += n < rest->len;
    rest->data += n;
    rest->len -= n;
    return true;
}

static bool is_word(tp_slice s, const char *word)
{
    return s.len == strlen(word) && memcmp(s.data, word, s.len) == 0;
}

/* Temper names a gradient after the module and what it is of: "q_proj.dx". */
static bool is_gradient(tp_slice part)
{
    return part.len >= 2 && part.len <= 4 && *part.data == 'd';
}

static uint32_t below_modules(builder *b, uint32_t above, const tp_event_op *op)
{
    tp_slice rest = tp_events_name_text(b->events, op->modules), part;
    tp_slice phase = tp_events_name_text(b->events, op->phase);
    bool is_first = true;
    if (phase.len)
        above = below(b, above, phase);
    while (next_module(&rest, &part)) {
        if (phase.len && is_first && !is_word(part, "model"))
            above = below(b, above, tp_slice_of("model"));
        is_first = false;
        if (is_word(phase, "backward") && rest.len == 0 && is_gradient(part))
            break;
        above = below(b, above, part);
    }
    return above;
}

static uint32_t add_span(builder *b, uint32_t above, uint32_t event)
{
    const tp_event_op *op = b->has_modules ? tp_events_op(b->events, event) : NULL;
    if (op && op->modules)
        above = below_modules(b, above, op);
    return node_of(b, above, frame_of(b, b->events->name[event]));
}

/* ---- the tree ---- */

static void charge(builder *b, uint32_t node, int64_t ns)
{
    b->stacks->v[node].ns = tp_add_saturating(b->stacks->v[node].ns, ns);
    b->stacks->v[node].count++;
    b->stacks->total_ns = tp_add_saturating(b->stacks->total_ns, ns);
}

void tp_stacks_make(const tp_selection *sel, tp_stacks_of what, tp_stacks *ret)
{
    const tp_events *e = sel->events;
    tp_stacks stacks = {0};
    builder b = {.stacks = &stacks,
                 .events = e,
                 .frames = tp_vec_new(e->strings.n + 1, sizeof *b.frames),
                 .has_modules = e->counts.kind[TP_EVENT_PYTHON] == 0};
    TP_FREED tp_time_span *spans = NULL;
    tp_string_table_init(&stacks.names);
    size_t n = collect(e, &spans);
    uint32_t *parent = tp_vec_new(n, sizeof *parent), *node = tp_vec_new(n, sizeof *node);
    TP_FREED int64_t *self = tp_vec_new(n, sizeof *self);
    tp_spans_nest(spans, n, parent, self, NULL);
    for (size_t i = 0; i < n; i++) {
        uint32_t above = parent[i] == TP_NO_PARENT ? TP_NO_ROW : node[parent[i]];
        node[i] = add_span(&b, above, spans[i].event);
        if (what == TP_STACKS_HOST && tp_selection_has_time(sel, spans[i].start))
            charge(&b, node[i], self[i]);
    }
    for (size_t i = 0; i < sel->n && what == TP_STACKS_DEVICE; i++) {
        uint32_t launch = sel->launch[i], above = TP_NO_ROW;
        if (launch != TP_NO_ROW) {
            uint32_t span = tp_spans_at(spans, n, parent, e->track[launch], e->start[launch]);
            above = span == TP_NO_PARENT ? TP_NO_ROW : node[span];
        }
        charge(&b, node_of(&b, above, frame_of(&b, sel->v[i].name)),
               sel->v[i].end - sel->v[i].start);
    }
    free(parent);
    free(node);
    free(b.frames);
    tp_number_map_release(&b.child);
    *ret = stacks;
}

void tp_stacks_release(tp_stacks *stacks)
{
    free(stacks->v);
    tp_string_table_release(&stacks->names);
    *stacks = (tp_stacks){0};
}

void tp_stack_path(const tp_stacks *stacks, uint32_t node, tp_buf *ret)
{
    enum { MAX_DEPTH = 512 };
    uint32_t path[MAX_DEPTH];
    size_t depth = 0;
    for (; node != TP_NO_ROW && depth < MAX_DEPTH; node = stacks->v[node].parent)
        path[depth++] = stacks->v[node].name;
    if (node != TP_NO_ROW)
        tp_buf_adds(ret, "(deeper);");
    while (depth--) {
        tp_slice name = {tp_string_get(&stacks->names, path[depth]),
                         tp_string_len(&stacks->names, path[depth])};
        for (size_t i = 0; i < name.len; i++) {
            char c = name.data[i];
            tp_buf_addc(ret, c == ';' ? ':' : (unsigned char)c < ' ' ? ' ' : c);
        }
        if (depth)
            tp_buf_addc(ret, ';');
    }
}
