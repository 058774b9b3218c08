/* idle.c - each gap of a device explained by what the host did. */
#include "instrument/analyze/idle.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "instrument/analyze/sort.h"

/* Times of the host that explain a gap, and graph launches per device. */
typedef struct {
    tp_periods sync, data, *graphs;
} context;

static bool is_host_call(uint8_t kind)
{
    return kind == TP_EVENT_RUNTIME || kind == TP_EVENT_DRIVER;
}

static void find_host_times(const tp_selection *sel, context *c)
{
    const tp_events *e = sel->events;
    enum { SEEN = 1, SYNC = 2, DATA = 4 };
    TP_FREED uint8_t *names = tp_vec_new(e->strings.n + 1, 1);
    for (size_t i = 0; i < e->n; i++) {
        uint8_t kind = e->kind[i];
        uint32_t name = e->name[i];
        bool may_be_data = kind == TP_EVENT_ANNOTATION || kind == TP_EVENT_CPU_OP;
        if (e->phase[i] != 'X' || !(is_host_call(kind) || may_be_data))
            continue;
        if (!names[name]) {
            tp_slice text = tp_events_name_text(e, name);
            names[name] = (uint8_t)(SEEN | (tp_name_matches(text, "Synchronize") ? SYNC : 0) |
                                    (tp_name_matches(text, "dataloader") ? DATA : 0));
        }
        if (is_host_call(kind) && (names[name] & SYNC))
            tp_periods_add(&c->sync, e->start[i], tp_event_end(e, i));
        if (may_be_data && (names[name] & DATA))
            tp_periods_add(&c->data, e->start[i], tp_event_end(e, i));
    }
    tp_periods_normalize(&c->sync);
    tp_periods_normalize(&c->data);
}

static void find_graphs(const tp_selection *sel, context *c)
{
    const tp_events *e = sel->events;
    c->graphs = tp_vec_new(sel->n_devices, sizeof *c->graphs);
    for (size_t i = 0; i < e->n && sel->n_graphs; i++)
        for (size_t d = 0; e->kind[i] == TP_EVENT_GRAPH && d < sel->n_devices; d++)
            if (e->tracks[e->track[i]].device == sel->device_ids[d])
                tp_periods_add(&c->graphs[d], e->start[i], tp_event_end(e, i));
    for (size_t d = 0; d < sel->n_devices; d++)
        tp_periods_normalize(&c->graphs[d]);
}

/* One stretch of a gap that no graph covers. */
static void explain(const tp_selection *sel, const context *c, int64_t from, int64_t to,
                    tp_idle_gap *gap, tp_idle_row *row)
{
    if (sel->launch[gap->next] == TP_NO_ROW &&
        !tp_event_is_migration(sel->events, sel->v[gap->next].event)) {
        gap->unknown_ns += to - from;
        return;
    }
    int64_t launched = tp_launch_time(sel, gap->next);
    if (launched < gap->start) {
        gap->queued_ns += to - from;
        return;
    }
    int64_t cut = launched < from ? from : launched > to ? to : launched;
    gap->host_ns += cut - from;
    gap->launch_ns += to - cut;
    row->host_sync_ns += tp_periods_within(&c->sync, from, cut);
    row->host_data_ns += tp_periods_within(&c->data, from, cut);
}

static void explain_gap(const tp_selection *sel, const context *c, tp_idle_gap *gap,
                        tp_idle_row *row)
{
    const tp_periods one = {.v = &(tp_period){gap->start, gap->end}, .n = 1, .cap = 1};
    TP_OWN(tp_periods) rest = {0};
    tp_periods_subtract(&one, &c->graphs[row->device], &rest);
    gap->graph_ns = gap->end - gap->start - tp_periods_length(&rest);
    for (size_t i = 0; i < rest.n; i++)
        explain(sel, c, rest.v[i].start, rest.v[i].end, gap, row);
    row->idle_ns += gap->end - gap->start;
    row->gaps++;
    row->host_ns += gap->host_ns;
    row->launch_ns += gap->launch_ns;
    row->queued_ns += gap->queued_ns;
    row->unknown_ns += gap->unknown_ns;
    row->graph_ns += gap->graph_ns;
}

/* Longest first; equal ones in order of time. */
static void order_by_length(tp_idle_gap *gaps, size_t n)
{
    TP_FREED tp_keyed *keyed = tp_vec_new(n, sizeof *keyed);
    TP_FREED tp_idle_gap *sorted = tp_vec_new(n, sizeof *sorted);
    for (size_t i = 0; i < n; i++)
        keyed[i] = (tp_keyed){~tp_key_of(gaps[i].end - gaps[i].start), (uint32_t)i};
    tp_sort_keyed(keyed, n);
    for (size_t i = 0; i < n; i++)
        sorted[i] = gaps[keyed[i].index];
    if (n)
        memcpy(gaps, sorted, n * sizeof *gaps);
}

static void summarize(tp_idle_row *row, const tp_idle_gap *gaps, size_t n)
{
    TP_FREED int64_t *lengths = tp_vec_new(n, sizeof *lengths);
    row->gap_p50_ns = row->gap_p90_ns = row->gap_max_ns = TP_UNKNOWN;
    for (size_t i = 0; i < n; i++)
        lengths[i] = gaps[i].end - gaps[i].start;
    tp_sort_i64(lengths, n);
    if (n) {
        row->gap_p50_ns = tp_rank_quantile(lengths, n, 0.5);
        row->gap_p90_ns = tp_rank_quantile(lengths, n, 0.9);
        row->gap_max_ns = lengths[n - 1];
    }
}

void tp_idle_make(const tp_selection *sel, tp_idle_table *ret)
{
    tp_idle_table t = {.rows = tp_vec_new(sel->n_devices, sizeof *t.rows), .n = sel->n_devices};
    context c = {0};
    size_t cap = 0;
    find_host_times(sel, &c);
    find_graphs(sel, &c);
    for (uint32_t d = 0; d < sel->n_devices; d++) {
        int64_t reach = INT64_MIN;
        size_t first = t.n_gaps;
        t.rows[d].device = d;
        for (size_t i = 0; i < sel->n; i++) {
            const tp_activity *a = &sel->v[i];
            if (a->device != d)
                continue;
            if (reach != INT64_MIN && a->start > reach) {
                t.gaps = tp_vec_room(t.gaps, &cap, t.n_gaps + 1, sizeof *t.gaps);
                t.gaps[t.n_gaps] =
                    (tp_idle_gap){.start = reach, .end = a->start, .next = (uint32_t)i};
                explain_gap(sel, &c, &t.gaps[t.n_gaps++], &t.rows[d]);
            }
            if (reach == INT64_MIN || a->end > reach)
                reach = a->end;
        }
        summarize(&t.rows[d], t.gaps ? t.gaps + first : NULL, t.n_gaps - first);
    }
    order_by_length(t.gaps, t.n_gaps);
    for (size_t d = 0; d < sel->n_devices; d++)
        tp_periods_release(&c.graphs[d]);
    free(c.graphs);
    tp_periods_release(&c.sync);
    tp_periods_release(&c.data);
    *ret = t;
}

int64_t tp_idle_under_graphs(const tp_selection *sel)
{
    tp_breakdown all;
    TP_OWN(tp_periods) busy = {0}, graphs = {0}, hidden = {0};
    if (sel->n_graphs == 0 || !tp_breakdown_make(sel->v, sel->n, TP_ALL_DEVICES, &all))
        return 0;
    for (size_t i = 0; i < sel->events->n; i++)
        if (sel->events->kind[i] == TP_EVENT_GRAPH)
            tp_periods_add(&graphs, sel->events->start[i], tp_event_end(sel->events, i));
    tp_periods_normalize(&graphs);
    tp_breakdown_union(sel->v, sel->n, TP_ALL_DEVICES, TP_WORK_COUNT, &busy);
    tp_periods_subtract(&graphs, &busy, &hidden);
    return tp_periods_within(&hidden, all.start, all.end);
}

void tp_idle_release(tp_idle_table *t)
{
    free(t->rows);
    free(t->gaps);
    *t = (tp_idle_table){0};
}
