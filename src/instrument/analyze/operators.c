/* operators.c - own and total times of operators, with the device time that they launched. */
#include "instrument/analyze/operators.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/platform.h"
#include "base/vec.h"
#include "instrument/analyze/number_index.h"
#include "instrument/analyze/sort.h"

static size_t spans_of_kind(const tp_events *events, tp_event_kind kind, tp_time_span **ret)
{
    size_t n = 0, cap = (size_t)events->counts.kind[kind];
    tp_time_span *v = tp_vec_new(cap, sizeof *v);
    for (size_t i = 0; i < events->n; i++)
        if (events->kind[i] == kind && events->phase[i] == 'X') {
            v = tp_vec_room(v, &cap, n + 1, sizeof *v);
            v[n++] = (tp_time_span){events->start[i], tp_event_end(events, i), (uint32_t)i,
                                    events->track[i]};
        }
    tp_spans_sort(v, n);
    *ret = v;
    return n;
}

static tp_event_kind operator_kind(const tp_events *events)
{
    bool is_there[TP_EVENT_KINDS] = {false}, is_nsight = events->info.tables != NULL;
    for (size_t i = 0; i < events->n; i++)
        is_there[events->kind[i]] = true;
    if (is_there[TP_EVENT_CPU_OP])
        return TP_EVENT_CPU_OP;
    if (is_there[TP_EVENT_OTHER] && !(is_nsight && is_there[TP_EVENT_ANNOTATION]))
        return TP_EVENT_OTHER;
    return is_there[TP_EVENT_ANNOTATION] ? TP_EVENT_ANNOTATION : TP_EVENT_CPU_OP;
}

/* ---- host time ---- */

/* The operator around an annotation, or TP_NO_PARENT. */
static uint32_t around(const tp_events *e, const tp_operators *o, size_t annotation)
{
    uint32_t i =
        tp_spans_at(o->spans, o->n_spans, o->parent, e->track[annotation], e->start[annotation]);
    while (i != TP_NO_PARENT && o->spans[i].end < tp_event_end(e, annotation))
        i = o->parent[i];
    return i;
}

/* An annotation between two operators, or beside the inner one, is below the outer one too. */
static void count_annotations(const tp_events *e, const tp_operators *o, uint32_t *children)
{
    for (size_t i = 0; i < e->n; i++) {
        uint32_t up = e->kind[i] == TP_EVENT_ANNOTATION && e->phase[i] == 'X' ? around(e, o, i)
                                                                              : TP_NO_PARENT;
        if (up != TP_NO_PARENT)
            children[up]++;
    }
}

/* The time of a repeat by itself is its caller's. */
static void find_repeats(const tp_events *events, tp_operators *o, int64_t *self_sum)
{
    TP_FREED uint32_t *children = tp_vec_new(o->n_spans, sizeof *children);
    o->is_repeat = tp_vec_new(o->n_spans, sizeof *o->is_repeat);
    if (o->kind != TP_EVENT_CPU_OP)
        return;
    for (size_t i = 0; i < o->n_spans; i++)
        if (o->parent[i] != TP_NO_PARENT)
            children[o->parent[i]]++;
    count_annotations(events, o, children);
    for (size_t i = o->n_spans; i-- > 0;) {
        uint32_t up = o->parent[i];
        if (up == TP_NO_PARENT || children[up] != 1 ||
            events->name[o->spans[up].event] != events->name[o->spans[i].event])
            continue;
        o->is_repeat[i] = true;
        o->self_ns[up] = tp_add_saturating(o->self_ns[up], o->self_ns[i]);
        self_sum[up] = tp_add_saturating(self_sum[up], self_sum[i]);
        o->self_ns[i] = self_sum[i] = 0;
    }
}

/* A call of other steps than those in scope is none of the row's. */
static bool counts(const tp_selection *sel, const tp_operators *o, size_t span)
{
    return !o->is_repeat[span] && tp_selection_has_time(sel, o->spans[span].start);
}

static void add_calls(const tp_selection *sel, tp_operators *o, const int64_t *self_sum,
                      uint32_t *row_of)
{
    const tp_events *events = sel->events;
    size_t cap = 0;
    for (size_t i = 0; i < o->n_spans; i++) {
        const tp_time_span *s = &o->spans[i];
        uint32_t name = events->name[s->event];
        if (row_of[name] == TP_NO_ROW) {
            o->rows = tp_vec_room(o->rows, &cap, o->n + 1, sizeof *o->rows);
            row_of[name] = (uint32_t)o->n;
            o->rows[o->n++] = (tp_operator_row){.name = name, .first = s->event};
        }
        tp_operator_row *row = &o->rows[row_of[name]];
        if (!counts(sel, o, i))
            continue;
        o->calls++;
        row->calls++;
        row->total_sum_ns = tp_add_saturating(row->total_sum_ns, s->end - s->start);
        row->self_union_ns = tp_add_saturating(row->self_union_ns, o->self_ns[i]);
        row->self_sum_ns = tp_add_saturating(row->self_sum_ns, self_sum[i]);
    }
}

/* Time in which at least one call ran, per thread: spans come by thread and start. */
static void add_unions(const tp_selection *sel, tp_operators *o, const uint32_t *row_of)
{
    typedef struct {
        uint32_t thread;
        bool is_set;
        int64_t until;
    } reach;
    TP_FREED reach *reached = tp_vec_new(o->n, sizeof *reached);
    for (size_t i = 0; i < o->n_spans; i++) {
        const tp_time_span *s = &o->spans[i];
        if (!counts(sel, o, i))
            continue;
        uint32_t row = row_of[sel->events->name[s->event]];
        reach *r = &reached[row];
        bool is_new = !r->is_set || r->thread != s->thread;
        int64_t from = is_new || s->start > r->until ? s->start : r->until;
        if (!is_new && s->end <= from)
            continue;
        o->rows[row].total_union_ns = tp_add_saturating(o->rows[row].total_union_ns, s->end - from);
        *r = (reach){.thread = s->thread, .is_set = true, .until = s->end};
    }
}

/* ---- device time ---- */

typedef struct {
    const tp_events *events;
    const tp_operators *operators;
} owners;

static int64_t process_of(const void *context, uint32_t span)
{
    const owners *o = context;
    return o->events->tracks[o->operators->spans[span].thread].pid;
}

static void find_operators(const tp_selection *sel, tp_operators *o)
{
    const tp_events *events = sel->events;
    TP_OWN(tp_number_index) by_external = {0};
    if (o->kind == TP_EVENT_CPU_OP) {
        tp_number_index_reserve(&by_external, o->n_spans);
        for (size_t i = 0; i < o->n_spans; i++)
            if (events->external[o->spans[i].event] != TP_UNKNOWN)
                tp_number_index_add(&by_external, (uint64_t)events->external[o->spans[i].event],
                                    (uint32_t)i);
    }
    tp_number_index_finish(&by_external);
    tp_number_index_forget_shared(&by_external, process_of, &(owners){events, o});
    for (size_t i = 0; i < sel->n; i++) {
        int64_t external = events->external[sel->v[i].event];
        uint32_t launch = sel->launch[i], op = TP_NO_ROW;
        if (external == TP_UNKNOWN && launch != TP_NO_ROW)
            external = events->external[launch];
        if (external != TP_UNKNOWN && external != 0)
            op = tp_number_index_last(&by_external, (uint64_t)external); /* the innermost */
        if (op == TP_NO_ROW && launch != TP_NO_ROW)
            op = tp_spans_at(o->spans, o->n_spans, o->parent, events->track[launch],
                             events->start[launch]);
        o->op_of[i] = op;
    }
}

static void add_device_time(const tp_selection *sel, tp_operators *o, const uint32_t *row_of)
{
    const tp_events *events = sel->events;
    typedef struct {
        uint32_t device;
        int64_t until;
    } reach;
    TP_FREED reach *reached = tp_vec_new(o->n, sizeof *reached);
    TP_FREED size_t *stamp = tp_vec_new(o->n, sizeof *stamp);
    TP_FREED tp_keyed *order = tp_vec_new(sel->n, sizeof *order);
    for (size_t i = 0; i < o->n; i++)
        reached[i] = (reach){.until = INT64_MIN};
    for (size_t i = 0; i < sel->n; i++)
        order[i] = (tp_keyed){sel->v[i].device, (uint32_t)i};
    tp_sort_keyed(order, sel->n); /* stable: on each device in order of their starts */
    for (size_t k = 0; k < sel->n; k++) {
        const size_t i = order[k].index;
        const tp_activity *a = &sel->v[i];
        uint32_t span = o->op_of[i];
        int64_t duration = a->end - a->start;
        if (span == TP_NO_PARENT) {
            o->n_unattributed++;
            o->device_unattributed_ns = tp_add_saturating(o->device_unattributed_ns, duration);
            continue;
        }
        tp_operator_row *own = &o->rows[row_of[events->name[o->spans[span].event]]];
        own->device_self_ns = tp_add_saturating(own->device_self_ns, duration);
        for (; span != TP_NO_PARENT; span = o->parent[span]) {
            uint32_t at = row_of[events->name[o->spans[span].event]];
            tp_operator_row *row = &o->rows[at];
            if (stamp[at] == k + 1)
                continue; /* a caller of the same name: counted once */
            stamp[at] = k + 1;
            row->kernels++;
            row->device_total_sum_ns = tp_add_saturating(row->device_total_sum_ns, duration);
            reach *r = &reached[at];
            if (r->device != a->device)
                *r = (reach){a->device, INT64_MIN};
            int64_t from = TP_MAX(a->start, r->until);
            if (a->end > from) {
                row->device_total_union_ns =
                    tp_add_saturating(row->device_total_union_ns, a->end - from);
                r->until = a->end;
            }
        }
    }
}

/* Names that other steps than those in scope have. */
static void drop_unused(tp_operators *o)
{
    size_t n = 0;
    for (size_t i = 0; i < o->n; i++)
        if (o->rows[i].calls || o->rows[i].kernels)
            o->rows[n++] = o->rows[i];
    o->n = n;
}

TP_ORDER(by_cost, tp_operator_row,
         TP_COMPARE(y->device_total_union_ns, x->device_total_union_ns)
                 ?: TP_COMPARE(y->self_union_ns, x->self_union_ns)
                 ?: TP_COMPARE(x->name, y->name))

void tp_operators_make(const tp_selection *sel, tp_operators *ret)
{
    const tp_events *events = sel->events;
    tp_operators o = {.kind = operator_kind(events)};
    o.n_spans = spans_of_kind(events, o.kind, &o.spans);
    o.parent = tp_vec_new(o.n_spans, sizeof *o.parent);
    o.self_ns = tp_vec_new(o.n_spans, sizeof *o.self_ns);
    o.op_of = tp_vec_new(sel->n, sizeof *o.op_of);
    TP_FREED int64_t *self_sum = tp_vec_new(o.n_spans, sizeof *self_sum);
    TP_FREED uint32_t *row_of = tp_vec_new(events->strings.n + 1, sizeof *row_of);
    memset(row_of, 0xFF, (events->strings.n + 1) * sizeof *row_of);
    tp_spans_nest(o.spans, o.n_spans, o.parent, o.self_ns, self_sum);
    find_repeats(events, &o, self_sum);
    add_calls(sel, &o, self_sum, row_of);
    add_unions(sel, &o, row_of);
    find_operators(sel, &o);
    add_device_time(sel, &o, row_of);
    drop_unused(&o);
    if (o.n)
        qsort(o.rows, o.n, sizeof *o.rows, by_cost);
    *ret = o;
}

void tp_operators_release(tp_operators *o)
{
    free(o->rows);
    free(o->spans);
    free(o->parent);
    free(o->is_repeat);
    free(o->self_ns);
    free(o->op_of);
    *o = (tp_operators){0};
}
