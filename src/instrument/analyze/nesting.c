/* nesting.c - spans sorted and nested by their times. */
#include "instrument/analyze/nesting.h"

#include <stdbool.h>

#include "base/error.h"
#include "base/vec.h"
#include "instrument/analyze/sort.h"

/* Spans with the same thread and start: the longer ones to the front. */
static void order_equal_starts(const tp_time_span *v, tp_keyed *keyed, size_t n)
{
    for (size_t from = 0, to; from < n; from = to) {
        const tp_time_span *first = &v[keyed[from].index];
        for (to = from + 1; to < n; to++) {
            const tp_time_span *next = &v[keyed[to].index];
            if (next->start != first->start || next->thread != first->thread)
                break;
        }
        if (to - from < 2)
            continue;
        for (size_t i = from; i < to; i++)
            keyed[i].key = ~tp_key_of(v[keyed[i].index].end);
        tp_sort_keyed(keyed + from, to - from);
    }
}

void tp_spans_sort(tp_time_span *v, size_t n)
{
    TP_FREED tp_keyed *keyed = tp_vec_new(n, sizeof *keyed);
    TP_FREED tp_time_span *sorted = tp_vec_new(n, sizeof *sorted);
    for (size_t i = 0; i < n; i++)
        keyed[i] = (tp_keyed){tp_key_of(v[i].start), (uint32_t)i};
    tp_sort_keyed(keyed, n);
    for (size_t i = 0; i < n; i++)
        keyed[i].key = v[keyed[i].index].thread;
    tp_sort_keyed(keyed, n); /* stable: starts stay in order */
    order_equal_starts(v, keyed, n);
    for (size_t i = 0; i < n; i++)
        sorted[i] = v[keyed[i].index];
    for (size_t i = 0; i < n; i++)
        v[i] = sorted[i];
}

/* What the children seen so far have covered of each span. */
typedef struct {
    int64_t reach; /* latest end of a child, or the span's own start */
    int64_t covered, sum;
} cover;

static void add_child(cover *c, const tp_time_span *child)
{
    int64_t from = child->start > c->reach ? child->start : c->reach;
    if (__builtin_add_overflow(c->sum, child->end - child->start, &c->sum))
        c->sum = INT64_MAX;
    if (child->end > from) {
        c->covered += child->end - from;
        c->reach = child->end;
    }
}

void tp_spans_nest(const tp_time_span *v, size_t n, uint32_t *parent, int64_t *self_union,
                   int64_t *self_sum)
{
    TP_FREED cover *covers = tp_vec_new(n, sizeof *covers);
    TP_FREED uint32_t *stack = tp_vec_new(n, sizeof *stack);
    size_t depth = 0;
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && v[i].thread != v[i - 1].thread)
            depth = 0;
        while (depth > 0) {
            const tp_time_span *top = &v[stack[depth - 1]];
            bool is_inside = v[i].start < top->end && v[i].end <= top->end;
            if (is_inside)
                break;
            depth--;
        }
        parent[i] = depth ? stack[depth - 1] : TP_NO_PARENT;
        if (depth)
            add_child(&covers[parent[i]], &v[i]);
        covers[i].reach = v[i].start;
        stack[depth++] = (uint32_t)i;
    }
    for (size_t i = 0; i < n; i++) {
        int64_t duration = v[i].end - v[i].start;
        if (self_union)
            self_union[i] = duration - covers[i].covered;
        if (self_sum)
            self_sum[i] = duration - covers[i].sum;
    }
}

uint32_t tp_spans_at(const tp_time_span *v, size_t n, const uint32_t *parent, uint32_t thread,
                     int64_t at)
{
    size_t low = 0, high = n;
    /* the first span behind (thread, at) */
    TP_BISECT(low, high, i, v[i].thread < thread || (v[i].thread == thread && v[i].start <= at));
    if (low == 0 || v[low - 1].thread != thread)
        return TP_NO_PARENT;
    uint32_t i = (uint32_t)(low - 1);
    while (i != TP_NO_PARENT && v[i].end <= at)
        i = parent[i];
    return i;
}
