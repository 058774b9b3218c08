/* suspicious.c - the checks for data that cannot be right; each is counted, none repaired. */
#include "instrument/analyze/suspicious.h"

#include <stdlib.h>

#include "base/vec.h"

static void add(tp_suspicions *s, bool is_serious, const char *what, int64_t count, int64_t ns,
                const char *meaning)
{
    if (count > 0 && s->n < TP_MAX_SUSPICIONS)
        s->list[s->n++] = (tp_suspicion){what, count, ns, meaning, is_serious};
}

/* Works of one stream that begin before the one before them ended. */
static void find_overlaps(const tp_selection *sel, tp_suspicions *s)
{
    const tp_events *e = sel->events;
    int64_t *reach = tp_vec_new(e->n_tracks, sizeof *reach), count = 0, ns = 0;
    for (size_t t = 0; t < e->n_tracks; t++)
        reach[t] = INT64_MIN;
    for (size_t i = 0; i < sel->n; i++) {
        const tp_activity *a = &sel->v[i];
        int64_t *r = &reach[e->track[a->event]];
        if (*r > a->start) {
            count++;
            ns = tp_add_saturating(ns, (a->end < *r ? a->end : *r) - a->start);
        }
        if (a->end > *r)
            *r = a->end;
    }
    free(reach);
    add(s, false, "overlaps on a stream", count, ns,
        "a stream runs one work after the other: kernels of graphs and dependent launches may "
        "overlap by design, else durations are inflated and sums count time twice");
}

/* Graph launches without any device work of their correlation. */
static void find_hidden_graphs(const tp_selection *sel, tp_suspicions *s)
{
    const tp_events *e = sel->events;
    TP_FREED uint8_t *names = tp_vec_new(e->strings.n + 1, 1);
    TP_OWN(tp_number_map) seen = {0};
    int64_t count = 0;
    for (size_t i = 0; i < sel->n; i++)
        if (sel->launch[i] != TP_NO_ROW)
            tp_number_map_add(&seen, sel->launch[i], 1);
    for (size_t i = 0; i < e->n && sel->n == sel->n_all; i++) {
        uint32_t name = e->name[i];
        if ((e->kind[i] != TP_EVENT_RUNTIME && e->kind[i] != TP_EVENT_DRIVER) || e->phase[i] != 'X')
            continue;
        if (!names[name])
            names[name] = tp_name_matches(tp_events_name_text(e, name), "GraphLaunch") ? 2 : 1;
        count += names[name] == 2 && tp_number_map_get(&seen, i) == TP_NO_ROW;
    }
    if (sel->n_graphs == 0)
        add(s, true, "graph launches without kernels", count, TP_UNKNOWN,
            "their kernels are not in the file: what looks idle after them may be work");
}

static int64_t graph_time(const tp_selection *sel)
{
    const tp_events *e = sel->events;
    int64_t sum = 0;
    for (size_t i = 0; i < e->n; i++)
        if (e->kind[i] == TP_EVENT_GRAPH)
            sum = tp_add_saturating(sum, e->dur[i]);
    return sum;
}

static void count_times(const tp_selection *sel, tp_suspicions *s)
{
    const tp_events *e = sel->events;
    int64_t before = 0, before_ns = 0, empty = 0;
    for (size_t i = 0; i < sel->n; i++) {
        const tp_activity *a = &sel->v[i];
        int64_t launched = tp_launch_time(sel, i);
        empty += a->end == a->start && a->is_kernel;
        if (a->start < launched) {
            before++;
            before_ns = tp_add_saturating(before_ns, tp_subtract_saturating(launched, a->start));
        }
    }
    add(s, true, "negative durations", (int64_t)e->counts.negative_durations, TP_UNKNOWN,
        "taken as 0");
    add(s, true, "durations beyond 7 days", (int64_t)e->counts.absurd_durations, TP_UNKNOWN,
        "the profiler's buffers were damaged: sums that contain them mean nothing");
    add(s, true, "times beyond 64 bits", (int64_t)(e->counts.clamped_times + sel->n_beyond),
        TP_UNKNOWN, "clamped or left out");
    add(s, false, "kernels of 0 ns", empty, TP_UNKNOWN,
        "shorter than the clock's resolution: counted, but without time");
    add(s, false, "work before its launch", before, before_ns,
        "host and device clocks differ: launch delays are that uncertain");
}

void tp_suspicions_find(const tp_selection *sel, tp_suspicions *ret)
{
    tp_suspicions s = {.n = 0};
    const tp_event_counts *c = &sel->events->counts;
    count_times(sel, &s);
    find_overlaps(sel, &s);
    add(&s, true, "graphs recorded as a whole", (int64_t)sel->n_graphs,
        sel->n_graphs ? graph_time(sel) : TP_UNKNOWN,
        "captured with graph granularity: their kernels are hidden; profile with "
        "--cuda-graph-trace=node");
    find_hidden_graphs(sel, &s);
    add(&s, true, "numbers of several processes", (int64_t)sel->n_shared, TP_UNKNOWN,
        "ranks were joined into one file, whose correlations repeat: which call launched which "
        "work "
        "cannot be told; give the file of each rank by itself");
    add(&s, false, "work without a launch",
        (int64_t)(sel->n_all - sel->n_linked - sel->n_migrations), TP_UNKNOWN,
        sel->n_shared
            ? "its number is one of several processes, or its call was not recorded"
            : "launched before the window, or calls were not recorded: --scope linked leaves it "
              "out");
    add(&s, false, "communication by metadata alone", (int64_t)sel->n_by_metadata, TP_UNKNOWN,
        "kernels with a collective's metadata and no known name count as communication");
    add(&s, true, "events that could not be read", (int64_t)c->skipped_events, TP_UNKNOWN,
        "left out; see the notes");
    *ret = s;
}
