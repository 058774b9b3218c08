/* Views of time: idle, steps, critical path, stacks, what is suspicious, what to do. */
#include <math.h>
#include <stdlib.h>

#include "base/order.h"
#include "base/platform.h"
#include "base/vec.h"
#include "instrument/analyze/sort.h"
#include "instrument/analyze/stacks.h"
#include "instrument/report/trace_report.h"

void tp_view_idle(tp_trace_report *r, tp_grid *g)
{
    const tp_idle_table *t = tp_trace_report_idle(r);
    bool has_graphs = r->selection.n_graphs > 0;
    g->title = "Why the devices were idle";
    tp_grid_column(g, "device", "device", TP_CELL_TEXT);
    TP_GRID_MEMBER(g, "idle_ns", "idle", TP_CELL_NS, tp_idle_row, idle_ns);
    TP_GRID_MEMBER(g, "host_ns", "not launched", TP_CELL_NS, tp_idle_row, host_ns);
    TP_GRID_MEMBER(g, "launch_ns", "launching", TP_CELL_NS, tp_idle_row, launch_ns);
    TP_GRID_MEMBER(g, "queued_ns", "queued", TP_CELL_NS, tp_idle_row, queued_ns);
    TP_GRID_MEMBER(g, "unknown_ns", "unknown", TP_CELL_NS, tp_idle_row, unknown_ns);
    TP_GRID_MEMBER(g, "graph_ns", has_graphs ? "in graphs" : NULL, TP_CELL_NS, tp_idle_row,
                   graph_ns);
    TP_GRID_MEMBER(g, "gaps", "gaps", TP_CELL_COUNT, tp_idle_row, gaps);
    TP_GRID_MEMBER(g, "gap_p50_ns", "median gap", TP_CELL_NS, tp_idle_row, gap_p50_ns);
    TP_GRID_MEMBER(g, "gap_max_ns", "longest", TP_CELL_NS, tp_idle_row, gap_max_ns);
    TP_GRID_MEMBER(g, "gap_p90_ns", NULL, TP_CELL_NS, tp_idle_row, gap_p90_ns);
    TP_GRID_MEMBER(g, "host_in_synchronize_ns", NULL, TP_CELL_NS, tp_idle_row, host_sync_ns);
    TP_GRID_MEMBER(g, "host_in_dataloader_ns", NULL, TP_CELL_NS, tp_idle_row, host_data_ns);
    for (size_t i = 0; i < t->n; i++) {
        const tp_idle_row *row = &t->rows[i];
        tp_grid_text(g, r->selection.devices[row->device]);
        tp_grid_row(g, row);
    }
    if (t->n == 0)
        tp_grid_note(g, "no device work in scope");
    else if (has_graphs)
        tp_grid_note(g, "time in graphs is not idle: their kernels were not recorded");
}

static const char *gap_cause(const tp_idle_gap *gap)
{
    if (gap->graph_ns > (gap->end - gap->start) / 2)
        return "in a graph";
    if (gap->unknown_ns > 0)
        return "unknown";
    if (gap->queued_ns > 0)
        return "queued";
    return gap->host_ns >= gap->launch_ns ? "not launched" : "launching";
}

void tp_view_gaps(tp_trace_report *r, tp_grid *g)
{
    enum { MOST = 1000 };
    const tp_idle_table *t = tp_trace_report_idle(r);
    const tp_operators *o = t->n_gaps ? tp_trace_report_operators(r) : NULL;
    g->title = "Longest gaps";
    tp_grid_column(g, "device", "device", TP_CELL_TEXT);
    tp_grid_column(g, "at_ns", "at", TP_CELL_NS);
    tp_grid_column(g, "gap_ns", "gap", TP_CELL_NS);
    tp_grid_column(g, "cause", "cause", TP_CELL_TEXT);
    tp_grid_column(g, "operator", "launched by", TP_CELL_TEXT);
    tp_grid_column(g, "next", "then ran", TP_CELL_TEXT);
    for (size_t i = 0; i < t->n_gaps && i < MOST; i++) {
        const tp_idle_gap *gap = &t->gaps[i];
        const tp_activity *a = &r->selection.v[gap->next];
        uint32_t op = o->op_of[gap->next];
        tp_grid_text(g, r->selection.devices[a->device]);
        tp_grid_int(g, gap->start - tp_trace_report_origin(r));
        tp_grid_int(g, gap->end - gap->start);
        tp_grid_text(g, gap_cause(gap));
        if (op == TP_NO_PARENT)
            tp_grid_unknown(g);
        else
            tp_grid_name(g, r->file->events, r->file->events->name[o->spans[op].event]);
        tp_grid_name(g, r->file->events, a->name);
    }
}

/* ---- steps ---- */

static void put_step(tp_grid *g, const tp_step *step, const tp_activity *v, size_t n,
                     size_t n_devices, int64_t origin)
{
    tp_breakdown b;
    tp_grid_int(g, step->number);
    tp_grid_int(g, step->start - origin);
    tp_grid_int(g, step->host_ns);
    if (tp_breakdown_add_up(v, n, n_devices, NULL, &b) == 0) {
        for (int i = 0; i < 7; i++)
            tp_grid_unknown(g);
        return;
    }
    tp_grid_int(g, b.span_ns);
    tp_grid_int(g, b.compute_ns);
    tp_grid_int(g, b.exposed_comm_ns);
    tp_grid_int(g, b.exposed_mem_ns);
    tp_grid_int(g, b.idle_ns);
    tp_grid_int(g, b.comm_ns);
    tp_grid_real(g, tp_percent(b.overlap_ns, b.comm_ns));
}

void tp_view_steps(tp_trace_report *r, tp_grid *g)
{
    const tp_selection *s = &r->selection;
    g->title = "Steps: the host's time, and the device work launched in them";
    tp_grid_column(g, "step", "step", TP_CELL_COUNT);
    tp_grid_column(g, "at_ns", "at", TP_CELL_NS);
    tp_grid_column(g, "host_ns", "host", TP_CELL_NS);
    tp_grid_column(g, "device_span_ns", "device span", TP_CELL_NS);
    tp_grid_column(g, "compute_ns", "compute", TP_CELL_NS);
    tp_grid_column(g, "exposed_comm_ns", "exposed comm", TP_CELL_NS);
    tp_grid_column(g, "exposed_mem_ns", "exposed mem", TP_CELL_NS);
    tp_grid_column(g, "idle_ns", "idle", TP_CELL_NS);
    tp_grid_hidden(g, "comm_ns", TP_CELL_NS);
    tp_grid_hidden(g, "comm_compute_overlap_pct", TP_CELL_PERCENT);
    if (s->steps.n == 0) {
        tp_grid_note(
            g, "no steps marked%s",
            tp_trace_report_advice(r, ": call prof.step() once per step (ProfilerStep#N)"));
        return;
    }
    TP_FREED tp_keyed *order = tp_vec_new(s->n, sizeof *order);
    TP_FREED tp_activity *v = tp_vec_new(s->n, sizeof *v);
    char time[32];
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        int64_t step = tp_work_step(s, i);
        if (step >= 0)
            order[n++] = (tp_keyed){(uint64_t)step, (uint32_t)i};
    }
    tp_sort_keyed(order, n); /* stable: starts stay in order */
    for (size_t i = 0; i < n; i++)
        v[i] = s->v[order[i].index];
    for (size_t k = 0, from = 0, to; k < s->steps.n; k++, from = to) {
        for (to = from; to < n && order[to].key == k; to++)
            ;
        put_step(g, &s->steps.v[k], v + from, to - from, s->n_devices, tp_trace_report_origin(r));
    }
    if (s->n_devices > 1)
        tp_grid_note(g, "times of the device are those of all devices together");
    if (s->n_stepless)
        tp_grid_note(g, TP_NOTE_STEPLESS, s->n_stepless, tp_human_ns(s->stepless_ns, time));
}

/* ---- host threads ---- */

/* Operators come by thread: one row for each run of equal threads. */
void tp_view_threads(tp_trace_report *r, tp_grid *g)
{
    const tp_operators *o = tp_trace_report_operators(r);
    const tp_events *e = r->file->events;
    TP_OWN(tp_periods) inside = {0};
    g->title = tp_trace_report_unread_device(r) ? "Threads: time in spans"
                                                : "Threads of the host: time in operators";
    tp_grid_column(g, "thread", "thread", TP_CELL_TEXT);
    tp_grid_column(g, "calls", "calls", TP_CELL_COUNT);
    tp_grid_column(g, "span_ns", "span", TP_CELL_NS);
    tp_grid_column(g, "in_operators_ns", "in operators", TP_CELL_NS);
    tp_grid_column(g, "outside_ns", "outside", TP_CELL_NS);
    tp_grid_column(g, "in_operators_pct", "share", TP_CELL_PERCENT);
    for (size_t from = 0, to; from < o->n_spans; from = to) {
        const tp_event_track *t = &e->tracks[o->spans[from].thread];
        int64_t first = INT64_MAX, last = INT64_MIN, calls = 0;
        char number[32];
        inside.n = 0;
        for (to = from; to < o->n_spans && o->spans[to].thread == o->spans[from].thread; to++) {
            const tp_time_span *one = &o->spans[to];
            if (o->is_repeat[to] || !tp_selection_has_time(&r->selection, one->start))
                continue;
            tp_periods_extend(&inside, one->start, one->end);
            first = TP_MIN(first, one->start);
            last = TP_MAX(last, one->end);
            calls++;
        }
        if (calls == 0)
            continue;
        int64_t span = tp_subtract_saturating(last, first);
        int64_t busy = tp_periods_length(&inside);
        snprintf(number, sizeof number, "%lld", (long long)t->tid);
        tp_grid_text(g, t->thread_name         ? tp_events_str(e, t->thread_name)
                        : t->tid == TP_UNKNOWN ? tp_events_str(e, t->tid_text)
                                               : number);
        tp_grid_int(g, calls);
        tp_grid_int(g, span);
        tp_grid_int(g, busy);
        tp_grid_int(g, span - busy);
        tp_grid_real(g, tp_percent(busy, span));
    }
    if (o->n_spans == 0)
        tp_grid_note(g, "no operators recorded");
}

/* ---- the critical path ---- */

void tp_view_path(tp_trace_report *r, tp_grid *g)
{
    const tp_critical_path *p = tp_trace_report_path(r);
    g->title = "Critical path: what the window waited for, back from its last work";
    tp_grid_column(g, "part", "part", TP_CELL_TEXT);
    tp_grid_column(g, "total_ns", "time", TP_CELL_NS);
    tp_grid_column(g, "share_pct", "share", TP_CELL_PERCENT);
    if (!p->is_known) {
        tp_grid_note(g, "no device work in scope");
        return;
    }
    for (int i = 0; i < TP_PATH_COUNT; i++) {
        tp_grid_text(g, tp_path_part_name((tp_path_part)i));
        tp_grid_int(g, p->ns[i]);
        tp_grid_real(g, tp_percent(p->ns[i], p->end - p->start));
    }
    if (r->file->events->n_syncs == 0)
        tp_grid_note(g,
                     "no synchronisation events in the file: waits between streams are not seen");
}

void tp_view_path_names(tp_trace_report *r, tp_grid *g)
{
    const tp_critical_path *p = tp_trace_report_path(r);
    g->title = "On the critical path";
    tp_grid_column(g, "part", "part", TP_CELL_TEXT);
    tp_grid_column(g, "name", "name", TP_CELL_TEXT);
    tp_grid_column(g, "total_ns", "time", TP_CELL_NS);
    tp_grid_column(g, "share_pct", "share", TP_CELL_PERCENT);
    tp_grid_column(g, "times", "times", TP_CELL_COUNT);
    for (size_t i = 0; i < p->n; i++) {
        const tp_path_row *row = &p->rows[i];
        if (row->ns == 0)
            continue;
        tp_grid_text(g, tp_path_part_name(row->part));
        if (row->name == TP_NO_ROW)
            tp_grid_text(g, row->part == TP_PATH_HOST ? "(outside operators)" : NULL);
        else
            tp_grid_name(g, r->file->events, row->name);
        tp_grid_int(g, row->ns);
        tp_grid_real(g, tp_percent(row->ns, p->end - p->start));
        tp_grid_int(g, row->count);
    }
}

/* ---- stacks ---- */

typedef struct {
    int64_t ns;
    uint32_t node;
} stack_row;

TP_ORDER(most_first, stack_row, TP_COMPARE(y->ns, x->ns) ?: TP_COMPARE(x->node, y->node))

static void fill_stacks(tp_trace_report *r, tp_grid *g, tp_stacks_of what)
{
    tp_stacks stacks;
    TP_OWN(tp_buf) path = {0};
    tp_stacks_make(&r->selection, what, &stacks);
    TP_FREED stack_row *rows = tp_vec_new(stacks.n, sizeof *rows);
    size_t n = 0;
    for (size_t i = 0; i < stacks.n; i++)
        if (stacks.v[i].ns > 0)
            rows[n++] = (stack_row){stacks.v[i].ns, (uint32_t)i};
    if (n)
        qsort(rows, n, sizeof *rows, most_first);
    tp_grid_column(g, "self_ns", "self", TP_CELL_NS);
    tp_grid_column(g, "share_pct", "share", TP_CELL_PERCENT);
    tp_grid_column(g, "count", "count", TP_CELL_COUNT);
    tp_grid_column(g, "stack", "stack, outermost first", TP_CELL_TEXT);
    for (size_t i = 0; i < n; i++) {
        tp_buf_clear(&path);
        tp_stack_path(&stacks, rows[i].node, &path);
        tp_grid_int(g, rows[i].ns);
        tp_grid_real(g, tp_percent(rows[i].ns, stacks.total_ns));
        tp_grid_int(g, stacks.v[rows[i].node].count);
        tp_grid_text(g, tp_buf_str(&path));
    }
    if (n == 0)
        tp_grid_note(g, "nothing recorded for this");
    tp_stacks_release(&stacks);
}

void tp_view_host_stacks(tp_trace_report *r, tp_grid *g)
{
    g->title = "Host time by stack (self)";
    fill_stacks(r, g, TP_STACKS_HOST);
    if (r->file->events->counts.kind[TP_EVENT_PYTHON] == 0 && r->file->kind == TP_FILE_KINETO)
        tp_grid_note(g, "%s", tp_trace_report_no_python(r));
}

void tp_view_device_stacks(tp_trace_report *r, tp_grid *g)
{
    g->title = "Device time by the stack that launched it";
    fill_stacks(r, g, TP_STACKS_DEVICE);
}

/* ---- judgements ---- */

void tp_view_suspicious(tp_trace_report *r, tp_grid *g)
{
    const tp_suspicions *s = tp_trace_report_suspicions(r);
    g->title = "Suspicious data";
    tp_grid_column(g, "what", "what", TP_CELL_TEXT);
    tp_grid_column(g, "count", "count", TP_CELL_COUNT);
    tp_grid_column(g, "ns", "time", TP_CELL_NS);
    tp_grid_column(g, "is_serious", "serious", TP_CELL_TEXT);
    tp_grid_column(g, "meaning", "meaning", TP_CELL_TEXT);
    for (size_t i = 0; i < s->n; i++) {
        tp_grid_text(g, s->list[i].what);
        tp_grid_int(g, s->list[i].count);
        tp_grid_known(g, s->list[i].ns);
        tp_grid_text(g, s->list[i].is_serious ? "yes" : "no");
        tp_grid_text(g, s->list[i].meaning);
    }
    if (s->n == 0)
        tp_grid_note(g, "nothing suspicious found");
}

void tp_view_findings(tp_trace_report *r, tp_grid *g)
{
    const tp_findings *f = tp_trace_report_findings(r);
    g->title = "Bottlenecks";
    tp_grid_column(g, "severity", "severity", TP_CELL_TEXT);
    tp_grid_column(g, "cost_s", "cost (s)", TP_CELL_REAL);
    tp_grid_column(g, "title", "what", TP_CELL_TEXT);
    tp_grid_column(g, "evidence", "evidence", TP_CELL_TEXT);
    tp_grid_column(g, "advice", "try", TP_CELL_TEXT);
    tp_grid_hidden(g, "cost_ns", TP_CELL_NS);
    for (size_t i = 0; i < f->n; i++) {
        const tp_finding *one = &f->list[i];
        bool has_cost = one->cost_ns != TP_UNKNOWN;
        tp_grid_text(g, tp_severity_name(one->severity));
        tp_grid_real(g, has_cost ? (double)one->cost_ns * 1e-9 : (double)NAN);
        tp_grid_text(g, one->title);
        tp_grid_text(g, one->evidence);
        tp_grid_text(g, one->advice);
        tp_grid_known(g, one->cost_ns);
    }
    if (f->n == 0)
        tp_grid_note(g, "no bottleneck found by the rules");
}
