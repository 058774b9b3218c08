/* launch.c - delay from the launching call on the host to the start on the device, joined by
 * correlation. */
#include "instrument/analyze/launch.h"

#include <math.h>
#include <stdlib.h>

#include "base/order.h"
#include "base/platform.h"
#include "base/vec.h"
#include "instrument/analyze/sort.h"

typedef struct {
    int64_t *delays, *calls;
    tp_keyed *changes; /* of the queue: time, +1 as index 1, -1 as index 0 */
    bool *is_short;    /* of each event that is a call: it took longer than all that it launched */
} scratch;

static void summarize(tp_launch_row *row, scratch *s)
{
    size_t n = (size_t)row->calls;
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
static void follow_queue(tp_launch_row *row, tp_keyed *changes)
{
    size_t n = 2 * (size_t)row->calls;
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

/* The works of one call, in order of their starts; or those without a call. */
static void add_call(const tp_selection *sel, const tp_keyed *works, size_t n, tp_launch_row *row,
                     scratch *s)
{
    uint32_t launch = sel->launch[works[0].index];
    row->works += (int64_t)n;
    if (launch == TP_NO_ROW)
        return;
    int64_t start = sel->events->start[launch], end = tp_event_end(sel->events, launch);
    int64_t first = sel->v[works[0].index].start;
    for (size_t k = 0; k < n; k++) {
        int64_t begun = sel->v[works[k].index].start;
        row->before_call += begun < start;
        row->during_call += begun >= start && begun < end;
        row->short_works += s->is_short[launch];
    }
    row->launched += (int64_t)n;
    s->delays[row->calls] = first > end ? tp_subtract_saturating(first, end) : 0;
    s->calls[row->calls] = end - start;
    s->changes[2 * row->calls] = (tp_keyed){tp_key_of(start), 1};
    s->changes[2 * row->calls + 1] = (tp_keyed){tp_key_of(TP_MAX(first, start)), 0};
    row->calls++;
}

/* The works by their calls; those of one in order of their starts. */
static tp_keyed *by_call(const tp_selection *sel)
{
    tp_keyed *works = tp_vec_new(sel->n, sizeof *works);
    for (size_t i = 0; i < sel->n; i++)
        works[i] = (tp_keyed){sel->launch[i], (uint32_t)i};
    tp_sort_keyed(works, sel->n); /* stable */
    return works;
}

/* How many from works[0] on have the same call. */
static size_t of_one_call(const tp_selection *sel, const tp_keyed *works, size_t n)
{
    size_t k = 1;
    while (k < n && sel->launch[works[k].index] == sel->launch[works[0].index])
        k++;
    return k;
}

static void find_short(const tp_selection *sel, scratch *s)
{
    const tp_events *e = sel->events;
    TP_FREED tp_keyed *works = by_call(sel);
    for (size_t from = 0, n; from < sel->n; from += n) {
        uint32_t launch = sel->launch[works[from].index];
        int64_t sum = 0;
        n = of_one_call(sel, works + from, sel->n - from);
        for (size_t i = from; i < from + n; i++)
            sum = tp_add_saturating(sum, sel->v[works[i].index].end - sel->v[works[i].index].start);
        if (launch != TP_NO_ROW)
            s->is_short[launch] = sum < tp_event_end(e, launch) - e->start[launch];
    }
}

/* What a stream or a name leaves out was launched all the same. */
static void find_short_of_all(const tp_selection *sel, scratch *s)
{
    TP_OWN(tp_selection) all = {0};
    tp_select_options options = sel->options;
    options.has_stream = false;
    options.name = NULL;
    tp_selection_make(sel->events, &options, &all);
    find_short(&all, s);
}

TP_ORDER(by_works, tp_launch_row, TP_COMPARE(y->works, x->works) ?: TP_COMPARE(x->track, y->track))

void tp_launches_make(const tp_selection *sel, tp_launch_table *ret)
{
    scratch s = {tp_vec_new(sel->n, sizeof *s.delays), tp_vec_new(sel->n, sizeof *s.calls),
                 tp_vec_new(2 * sel->n, sizeof *s.changes),
                 tp_vec_new(sel->events->n, sizeof *s.is_short)};
    TP_FREED tp_keyed *order = by_call(sel);
    tp_launch_table t = {.all = {.queue_mean = (double)NAN}};
    size_t cap = 0;
    if (sel->options.has_stream || sel->options.name)
        find_short_of_all(sel, &s);
    else
        find_short(sel, &s);
    for (size_t from = 0, n; from < sel->n; from += n) {
        n = of_one_call(sel, order + from, sel->n - from);
        add_call(sel, order + from, n, &t.all, &s);
    }
    summarize(&t.all, &s);
    for (size_t i = 0; i < sel->n; i++)
        order[i].key = sel->events->track[sel->v[order[i].index].event];
    tp_sort_keyed(order, sel->n);
    for (size_t from = 0, to; from < sel->n; from = to) {
        const tp_activity *first = &sel->v[order[from].index];
        t.rows = tp_vec_room(t.rows, &cap, t.n + 1, sizeof *t.rows);
        tp_launch_row *row = &t.rows[t.n++];
        *row = (tp_launch_row){.track = (uint32_t)order[from].key, .device = first->device};
        for (to = from; to < sel->n && order[to].key == order[from].key; to++)
            ;
        for (size_t at = from, n; at < to; at += n) {
            n = of_one_call(sel, order + at, to - at);
            add_call(sel, order + at, n, row, &s);
        }
        follow_queue(row, s.changes);
        summarize(row, &s);
    }
    if (t.n)
        qsort(t.rows, t.n, sizeof *t.rows, by_works);
    free(s.delays);
    free(s.calls);
    free(s.changes);
    free(s.is_short);
    *ret = t;
}

void tp_launches_release(tp_launch_table *t)
{
    free(t->rows);
    *t = (tp_launch_table){0};
}
