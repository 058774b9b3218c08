#include "instrument/analyze/stacks.h"

#include <stdlib.h>

#include "instrument/analyze/nesting.h"
#include "instrument/analyze/vec.h"

static bool is_frame(uint8_t kind)
{
    return kind == TP_EVENT_CPU_OP || kind == TP_EVENT_PYTHON || kind == TP_EVENT_ANNOTATION ||
           kind == TP_EVENT_OTHER;
}

static size_t collect(const tp_events *e, tp_span **ret)
{
    tp_span *v = NULL;
    size_t n = 0, cap = 0;
    for (size_t i = 0; i < e->n; i++) {
        if (!is_frame(e->kind[i]) || e->phase[i] != 'X')
            continue;
        v = tp_vec_room(v, &cap, n + 1, sizeof *v);
        v[n++] = (tp_span){e->start[i], tp_event_end(e, i), (uint32_t)i, e->track[i]};
    }
    tp_spans_sort(v, n);
    *ret = v;
    return n;
}

typedef struct {
    tp_stacks *stacks;
    tp_number_map child; /* (parent + 1, name) -> node */
    size_t cap;
} builder;

static uint32_t node_of(builder *b, uint32_t parent, uint32_t name)
{
    uint64_t key = (uint64_t)(parent + 1) << 32 | name;
    uint32_t node = tp_number_map_get(&b->child, key);
    if (node != TP_NO_ROW)
        return node;
    tp_stacks *s = b->stacks;
    s->v = tp_vec_room(s->v, &b->cap, s->n + 1, sizeof *s->v);
    node = (uint32_t)s->n;
    s->v[s->n++] = (tp_stack_node){.parent = parent, .name = name};
    tp_number_map_add(&b->child, key, node);
    return node;
}

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
    builder b = {.stacks = &stacks};
    tp_span *spans;
    size_t n = collect(e, &spans);
    uint32_t *parent = tp_vec_new(n, sizeof *parent), *node = tp_vec_new(n, sizeof *node);
    int64_t *self = tp_vec_new(n, sizeof *self);
    tp_spans_nest(spans, n, parent, self, NULL);
    for (size_t i = 0; i < n; i++) {
        uint32_t above = parent[i] == TP_NO_PARENT ? TP_NO_ROW : node[parent[i]];
        node[i] = node_of(&b, above, e->name[spans[i].event]);
        if (what == TP_STACKS_HOST)
            charge(&b, node[i], self[i]);
    }
    for (size_t i = 0; i < sel->n && what == TP_STACKS_DEVICE; i++) {
        uint32_t launch = sel->launch[i], above = TP_NO_ROW;
        if (launch != TP_NO_ROW) {
            uint32_t span = tp_spans_at(spans, n, parent, e->track[launch], e->start[launch]);
            above = span == TP_NO_PARENT ? TP_NO_ROW : node[span];
        }
        charge(&b, node_of(&b, above, sel->v[i].name), sel->v[i].end - sel->v[i].start);
    }
    free(spans);
    free(parent);
    free(node);
    free(self);
    tp_number_map_release(&b.child);
    *ret = stacks;
}

void tp_stacks_release(tp_stacks *stacks)
{
    free(stacks->v);
    *stacks = (tp_stacks){0};
}

void tp_stack_path(const tp_events *e, const tp_stacks *stacks, uint32_t node, tp_buf *ret)
{
    enum { MAX_DEPTH = 512 };
    uint32_t path[MAX_DEPTH];
    size_t depth = 0;
    for (; node != TP_NO_ROW && depth < MAX_DEPTH; node = stacks->v[node].parent)
        path[depth++] = stacks->v[node].name;
    if (node != TP_NO_ROW)
        tp_buf_adds(ret, "(deeper);");
    while (depth--) {
        tp_slice name = tp_events_name_text(e, path[depth]);
        for (size_t i = 0; i < name.len; i++) {
            char c = name.data[i];
            tp_buf_addc(ret, c == ';' ? ':' : (unsigned char)c < ' ' ? ' ' : c);
        }
        if (depth)
            tp_buf_addc(ret, ';');
    }
}
