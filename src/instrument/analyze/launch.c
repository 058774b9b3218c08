/* launch.c - delay from the launching call on the host to the start on the device, joined by
 * correlation. */
#include "instrument/analyze/launch.h"

#include <math.h>
#include <stdlib.h>

#include "base/order.h"
#include "base/vec.h"
#include "instrument/analyze/sort.h"

typedef struct {
    int64_t *delays, *calls;
    tp_keyed *changes; /* of the queue: time, +1 as index 1, -1 as index 0 */
} scratch;

static void summarize(tp_launch_row *row, scratch *s, size_t n)
{
    if (n == 0) {
        row->delay_p50_ns = row->delay_p90_ns = row->delay_max_ns = TP_UNKNOWN;
        row->call_p50_ns = row->call_p90_ns = row->call_max_ns = TP_UNKNOWN;
        return;
    }
    for (size_t i = 0; i < n; i++) {
        row->delay_sum_ns = tp_add_saturating(row->delay_sum_ns, s->delays[i]);
        row->call_sum_ns = tp_add_saturating(row->call_sum_ns, s->calls[i]);
    }
    tp_sort_i64(s->delays, n);
    tp_sort_i64(s->calls, n);
    row->delay_p50_ns = tp_rank_quantile(s->delays, n, 0.5);
    row->delay_p90_ns = tp_rank_quantile(s->delays, n, 0.9);
    row->delay_max_ns = s->delays[n - 1];
    row->call_p50_ns = tp_rank_quantile(s->calls, n, 0.5);
    row->call_p90_ns = tp_rank_quantile(s->calls, n, 0.9);
    row->call_max_ns = s->calls[n - 1];
}

/* Walk the changes in order of time; a launch goes before a start at the same time. */
static void follow_queue(tp_launch_row *row, tp_keyed *changes, size_t n)
{
    int64_t length = 0;
    double weighted = 0;
    tp_sort_keyed(changes, n);
    row->queue_mean = (double)NAN;
    for (size_t i = 0; i < n;) {
        uint64_t at = changes[i].key;
        for (; i < n && changes[i].key == at; i++)
            length += changes[i].index ? 1 : -1;
        if (length > row->queue_max)
            row->queue_max = length;
        if (i == n)
            break;
        int64_t time = (int64_t)(changes[i].key - at);
        weighted += (double)length * (double)time;
        row->queue_observed_ns += time;
        row->queue_empty_ns += length <= 0 ? time : 0;
        row->queue_full_ns += length >= TP_QUEUE_LIMIT ? time : 0;
    }
    if (row->queue_observed_ns > 0)
        row->queue_mean = weighted / (double)row->queue_observed_ns;
}

static void add_work(const tp_selection *sel, size_t i, tp_launch_row *row, scratch *s, size_t *n)
{
    const tp_activity *a = &sel->v[i];
    uint32_t launch = sel->launch[i];
    row->works++;
    if (launch == TP_NO_ROW)
        return;
    int64_t start = sel->events->start[launch], end = tp_event_end(sel->events, launch);
    row->launched++;
    row->before_call += a->start < start;
    row->during_call += a->start >= start && a->start < end;
    row->short_works += a->end - a->start < end - start;
    s->delays[*n] = a->start > end ? tp_subtract_saturating(a->start, end) : 0;
    s->calls[*n] = end - start;
    int64_t begun = a->start > start ? a->start : start;
    s->changes[2 * *n] = (tp_keyed){tp_key_of(start), 1};
    s->changes[2 * *n + 1] = (tp_keyed){tp_key_of(begun), 0};
    ++*n;
}

TP_ORDER(by_works, tp_launch_row, TP_COMPARE(y->works, x->works) ?: TP_COMPARE(x->track, y->track))

void tp_launches_make(const tp_selection *sel, tp_launch_table *ret)
{
    scratch s = {tp_vec_new(sel->n, sizeof *s.delays), tp_vec_new(sel->n, sizeof *s.calls),
                 tp_vec_new(2 * sel->n, sizeof *s.changes)};
    TP_FREED tp_keyed *order = tp_vec_new(sel->n, sizeof *order);
    tp_launch_table t = {.all = {.queue_mean = (double)NAN}};
    size_t cap = 0, n = 0;
    for (size_t i = 0; i < sel->n; i++)
        order[i] = (tp_keyed){sel->events->track[sel->v[i].event], (uint32_t)i};
    tp_sort_keyed(order, sel->n);
    for (size_t from = 0, to; from < sel->n; from = to) {
        const tp_activity *first = &sel->v[order[from].index];
        t.rows = tp_vec_room(t.rows, &cap, t.n + 1, sizeof *t.rows);
        tp_launch_row *row = &t.rows[t.n++];
        *row = (tp_launch_row){.track = (uint32_t)order[from].key, .device = first->device};
        n = 0;
        for (to = from; to < sel->n && order[to].key == order[from].key; to++)
            add_work(sel, order[to].index, row, &s, &n);
        follow_queue(row, s.changes, 2 * n);
        summarize(row, &s, n);
    }
    n = 0;
    for (size_t i = 0; i < sel->n; i++)
        add_work(sel, i, &t.all, &s, &n);
    summarize(&t.all, &s, n);
    if (t.n)
        qsort(t.rows, t.n, sizeof *t.rows, by_works);
    free(s.delays);
    free(s.calls);
    free(s.changes);
    *ret = t;
}

void tp_launches_release(tp_launch_table *t)
{
    free(t->rows);
    *t = (tp_launch_table){0};
}
