/* communication.c - collectives grouped by kind, dtype, bytes and group, with algorithm and bus
 * bandwidth. */
#include "instrument/analyze/communication.h"

#include <math.h>
#include <stdlib.h>

#include "base/order.h"
#include "base/vec.h"
#include "instrument/analyze/sort.h"

int64_t tp_comm_bytes(const tp_events *events, const tp_event_collective *c)
{
    tp_collective what = tp_collective_of_metadata(tp_events_name_text(events, c->name));
    if (c->has_message)
        return tp_collective_message_bytes(what, c->message_bytes, c->group_size);
    return tp_collective_bytes(what, c->in_elements, c->out_elements,
                               tp_dtype_bytes(tp_events_name_text(events, c->dtype)));
}

static tp_comm_row describe(const tp_selection *sel, const tp_activity *a)
{
    const tp_event_collective *c = tp_events_collective(sel->events, a->event);
    tp_comm_row row = {.kernel = a->name, .bytes = -1, .group_size = TP_UNKNOWN};
    if (!c || !c->name) {
        row.collective = tp_collective_of_kernel(tp_events_name_text(sel->events, a->name));
        return row;
    }
    row.by_metadata = true;
    row.collective = tp_collective_of_metadata(tp_events_name_text(sel->events, c->name));
    row.dtype = c->dtype;
    row.group = c->group;
    row.group_size = c->group_size;
    row.bytes = tp_comm_bytes(sel->events, c);
    return row;
}

static uint64_t mix(uint64_t h, uint64_t v) { return (h ^ v) * 0x9E3779B97F4A7C15u + (h >> 29); }

static uint64_t key_of(const tp_comm_row *r)
{
    uint64_t h = mix(0, (uint64_t)r->collective * 2 + r->by_metadata);
    if (!r->by_metadata)
        return mix(h, r->kernel);
    h = mix(mix(h, r->dtype), r->group);
    return mix(mix(h, (uint64_t)r->bytes), (uint64_t)r->group_size);
}

static void finish(tp_comm_row *row, int64_t *durations, size_t n)
{
    double factor = tp_collective_factor(row->collective, row->group_size);
    for (size_t i = 0; i < n; i++)
        row->sum_ns = tp_add_saturating(row->sum_ns, durations[i]);
    tp_sort_i64(durations, n);
    row->count = (int64_t)n;
    row->min_ns = durations[0];
    row->max_ns = durations[n - 1];
    row->p50_ns = tp_rank_quantile(durations, n, 0.5);
    row->algbw = row->busbw = row->best_busbw = (double)NAN;
    if (row->bytes < 0 || row->min_ns <= 0)
        return;
    row->algbw = (double)row->bytes / (double)row->p50_ns * 1e9;
    row->busbw = row->algbw * factor;
    row->best_busbw = (double)row->bytes / (double)row->min_ns * 1e9 * factor;
}

TP_ORDER(by_time, tp_comm_row, TP_COMPARE(y->sum_ns, x->sum_ns) ?: TP_COMPARE(y->bytes, x->bytes))

void tp_comm_make(const tp_selection *sel, tp_comm_table *ret)
{
    tp_comm_table t = {0};
    TP_FREED tp_periods *compute = tp_vec_new(sel->n_devices, sizeof *compute);
    TP_FREED tp_keyed *order = tp_vec_new(sel->n, sizeof *order);
    TP_FREED int64_t *durations = tp_vec_new(sel->n, sizeof *durations);
    size_t n = 0, cap = 0;
    for (size_t i = 0; i < sel->n; i++) {
        if (sel->v[i].work != TP_WORK_COMM)
            continue;
        tp_comm_row row = describe(sel, &sel->v[i]);
        t.kernels++;
        t.with_metadata += row.by_metadata;
        const tp_event_collective *c = tp_events_collective(sel->events, sel->v[i].event);
        t.grouped += c && c->has_message && c->message_calls > 1;
        if (row.bytes > 0)
            t.moved_bytes = tp_add_saturating(t.moved_bytes, row.bytes);
        order[n++] = (tp_keyed){key_of(&row), (uint32_t)i};
    }
    for (size_t d = 0; d < sel->n_devices && n; d++)
        tp_breakdown_union(sel->v, sel->n, (int64_t)d, TP_WORK_COMPUTE, &compute[d]);
    tp_sort_keyed(order, n);
    for (size_t from = 0, to; from < n; from = to) {
        tp_comm_row row = describe(sel, &sel->v[order[from].index]);
        for (to = from; to < n && order[to].key == order[from].key; to++) {
            const tp_activity *a = &sel->v[order[to].index];
            durations[to - from] = a->end - a->start;
            int64_t covered = tp_periods_within(&compute[a->device], a->start, a->end);
            row.exposed_ns = tp_add_saturating(row.exposed_ns, a->end - a->start - covered);
        }
        finish(&row, durations, to - from);
        t.rows = tp_vec_room(t.rows, &cap, t.n + 1, sizeof *t.rows);
        t.rows[t.n++] = row;
    }
    if (t.n)
        qsort(t.rows, t.n, sizeof *t.rows, by_time);
    for (size_t d = 0; d < sel->n_devices; d++)
        tp_periods_release(&compute[d]);
    *ret = t;
}

void tp_comm_release(tp_comm_table *t)
{
    free(t->rows);
    *t = (tp_comm_table){0};
}
