/* One screen: what the file is, where the time went, what to do about it. */
#include <string.h>

#include "base/strings.h"
#include "base/terminal.h"
#include "base/wrap.h"
#include "instrument/report/trace_report.h"

enum { FEW = 5 };

static void put_grid(tp_trace_report *r, void (*fill)(tp_trace_report *, tp_grid *), size_t top,
                     int width, tp_buf *out)
{
    TP_OWN(tp_grid) grid = {0};
    fill(r, &grid);
    tp_buf_addc(out, '\n');
    tp_grid_print(&grid, top, width, out);
}

/* ---- what it is ---- */

/* A name from a file, on the line that it is put in. */
static void put_name(tp_buf *out, const char *name)
{
    tp_buf_add_shown(out, name, strlen(name), true);
}

static void put_identity(const tp_trace_report *r, tp_buf *out)
{
    const tp_trace_file *f = r->file;
    const tp_events *e = f->events;
    put_name(out, tp_str_after(f->path, '/'));
    tp_buf_addf(out, ": %s", tp_file_kind_about(f->kind));
    if (f->rank != TP_UNKNOWN)
        tp_buf_addf(out, ", rank %lld", (long long)f->rank);
    if (e && e->info.world_size != TP_UNKNOWN)
        tp_buf_addf(out, " of %lld", (long long)e->info.world_size);
    if (e && e->info.backend) {
        tp_buf_adds(out, " (");
        put_name(out, tp_events_str(e, e->info.backend));
        tp_buf_addc(out, ')');
    }
    tp_buf_addc(out, '\n');
}

static void put_sizes(const tp_trace_report *r, tp_buf *out)
{
    const tp_trace_file *f = r->file;
    char a[32], b[32];
    tp_buf_addf(out, "  %s", tp_human_bytes((double)f->bytes, a));
    if (f->is_gzip)
        tp_buf_addf(out, " (%s of JSON)", tp_human_bytes((double)f->json_bytes, b));
    if (f->events)
        tp_buf_addf(out, ", %llu event%s", (unsigned long long)f->events->counts.events,
                    tp_plural((uint64_t)f->events->counts.events));
    tp_buf_addf(out, ", read in %s\n", tp_human_ns((int64_t)(f->seconds * 1e9), a));
}

static void put_scope(const tp_trace_report *r, int width, tp_buf *out)
{
    const tp_selection *s = &r->selection;
    const tp_select_options *o = &s->options;
    static const char *const meaning[] = {"every device activity of the file",
                                          "device work whose launch is in the file",
                                          "device work launched inside a step"};
    size_t by_calls = s->n_all - s->n_migrations;
    char time[32];
    TP_OWN(tp_buf) line = {0};
    tp_buf_addf(&line, "  scope %s: %s; %zu of %zu", tp_scope_name(o->scope), meaning[o->scope],
                s->n, s->n_all);
    if (by_calls)
        tp_buf_addf(&line, " (%.1f %% of %s have their launch here)",
                    100 * (double)s->n_linked / (double)by_calls,
                    s->n_migrations ? "what calls launch" : "all");
    if (o->has_step)
        tp_buf_addf(&line, "; step %lld only", (long long)o->step);
    if (s->n_stepless && (o->has_step || o->scope == TP_SCOPE_STEPS))
        tp_buf_addf(&line, "; of no step: %zu (%s)", s->n_stepless,
                    tp_human_ns(s->stepless_ns, time));
    if (o->has_stream)
        tp_buf_addf(&line, "; stream %lld only", (long long)o->stream);
    if (o->name)
        tp_buf_addf(&line, "; names like '%s' only", o->name);
    tp_buf_addc(&line, '\n');
    tp_add_wrapped(out, line.data, line.len, (size_t)width);
    if (s->steps.n)
        tp_buf_addf(out, "  steps %lld to %lld\n", (long long)s->steps.v[0].number,
                    (long long)s->steps.v[s->steps.n - 1].number);
}

/* ---- where the time went ---- */

static void put_share(tp_grid *g, int64_t part, int64_t whole)
{
    char text[64], time[32];
    snprintf(text, sizeof text, "%s  %5.1f %%", tp_human_ns(part, time),
             whole > 0 ? 100 * (double)part / (double)whole : 0);
    tp_grid_text(g, text);
}

static int64_t graph_time(tp_trace_report *r, size_t device)
{
    const tp_idle_table *t = tp_trace_report_idle(r);
    int64_t sum = 0;
    for (size_t i = 0; i < t->n; i++)
        if (t->rows[i].device == device)
            sum += t->rows[i].graph_ns;
    return sum;
}

static void put_device(tp_trace_report *r, tp_grid *g, const char *name, const tp_breakdown *b,
                       int64_t graphs)
{
    char time[32];
    bool has_graphs = r->selection.n_graphs > 0;
    tp_grid_text(g, name);
    put_share(g, b->compute_ns, b->span_ns);
    put_share(g, b->exposed_comm_ns, b->span_ns);
    put_share(g, b->exposed_mem_ns, b->span_ns);
    if (has_graphs)
        put_share(g, graphs, b->span_ns);
    put_share(g, b->idle_ns - (has_graphs ? graphs : 0), b->span_ns);
    tp_grid_text(g, tp_human_ns(b->span_ns, time));
}

static void put_time(tp_trace_report *r, int width, tp_buf *out)
{
    TP_OWN(tp_grid) g = {.title = "Where the time went (adds up to the span exactly)"};
    size_t n = r->selection.n_devices;
    char name[160];
    tp_grid_column(&g, "device", "device", TP_CELL_TEXT);
    tp_grid_column(&g, "compute", "compute", TP_CELL_TEXT);
    tp_grid_column(&g, "comm", "exposed comm.", TP_CELL_TEXT);
    tp_grid_column(&g, "mem", "exposed memory", TP_CELL_TEXT);
    if (r->selection.n_graphs)
        tp_grid_column(&g, "graphs", "in graphs", TP_CELL_TEXT);
    tp_grid_column(&g, "idle", "idle", TP_CELL_TEXT);
    tp_grid_column(&g, "span", "span", TP_CELL_TEXT);
    for (size_t d = 0; d < n; d++) {
        snprintf(name, sizeof name, "%s %s", r->selection.devices[d],
                 tp_selection_device_name(&r->selection, d));
        put_device(r, &g, name, &r->by_device[d], graph_time(r, d));
    }
    if (n > 1)
        put_device(r, &g, "all, merged", &r->merged, tp_idle_under_graphs(&r->selection));
    tp_buf_addc(out, '\n');
    tp_grid_print(&g, 0, width, out);
}

static void put_comm(tp_trace_report *r, int width, tp_buf *out)
{
    char a[32], b[32];
    const tp_breakdown *t = &r->sum;
    if (t->comm_ns == 0)
        return;
    put_grid(r, tp_view_comm, FEW, width, out);
    tp_buf_addf(out, "%s of communication, %.1f %% of it under compute; %s exposed\n",
                tp_human_ns(t->comm_ns, a), tp_percent(t->overlap_ns, t->comm_ns),
                tp_human_ns(t->exposed_comm_ns, b));
}

/* ---- bottlenecks ---- */

/* Text behind an indent, broken at spaces and nowhere else: names in it may hold newlines. */
static void put_wrapped(tp_buf *out, const char *first, const char *unsafe, int width)
{
    TP_OWN(tp_buf) shown = {0};
    tp_buf_add_shown(&shown, unsafe, strlen(unsafe), true);
    const char *text = tp_buf_str(&shown);
    size_t indent = strlen(first), room = (size_t)width > indent + 20 ? (size_t)width - indent : 20;
    tp_buf_adds(out, first);
    for (size_t column = 0; *text;) {
        size_t word = strcspn(text, " ");
        if (column && column + 1 + word > room) {
            tp_buf_addf(out, "\n%*s", (int)indent, "");
            column = 0;
        } else if (column) {
            tp_buf_addc(out, ' ');
            column++;
        }
        tp_buf_add(out, text, word);
        column += word;
        text += word;
        text += strspn(text, " ");
    }
    tp_buf_addc(out, '\n');
}

static void put_findings(tp_trace_report *r, int width, tp_buf *out)
{
    const tp_findings *f = tp_trace_report_findings(r);
    tp_buf_addf(out, "\nBottlenecks%s\n", f->n ? " (costs are measured time; they overlap)" : "");
    if (f->n == 0)
        tp_buf_adds(out, "  none found by the rules\n");
    for (size_t i = 0; i < f->n; i++) {
        const tp_finding *one = &f->list[i];
        tp_buf_addf(out, "  %-6s  %s", tp_severity_name(one->severity), one->title);
        char cost[32];
        if (one->cost_ns != TP_UNKNOWN)
            tp_buf_addf(out, ": %s", tp_human_ns(one->cost_ns, cost));
        tp_buf_addc(out, '\n');
        put_wrapped(out, "          ", one->evidence, width);
        put_wrapped(out, "          try: ", one->advice, width);
    }
}

/* ---- what cannot be known, and what to doubt ---- */

static void say_no_device_activity(const tp_trace_report *r, int width, tp_buf *out)
{
    const char *device = tp_trace_report_unread_device(r);
    TP_OWN(tp_buf) line = {0};
    if (device) {
        tp_buf_addf(&line,
                    "rows of processes such as '%s' are not read as device work, but as spans of "
                    "threads",
                    device);
    } else if (r->file->events->counts.kind[TP_EVENT_DEVICE]) {
        tp_buf_adds(&line, "device work of an accelerator that is neither CUDA, ROCm nor XPU is "
                           "counted, not analysed");
    } else if (r->file->kind == TP_FILE_TEMPER) {
        tp_buf_adds(&line, "no device activity: Temper computed on the processor");
    } else {
        tp_buf_addf(&line, "no device activity recorded%s",
                    r->file->kind == TP_FILE_NSIGHT
                        ? ": profile with nsys profile --trace=cuda,nvtx"
                        : tp_trace_report_advice(
                              r, ": profile with ProfilerActivity.CUDA, on a machine where the "
                                 "profiler may use the device's counters"));
    }
    put_wrapped(out, "  - ", tp_buf_str(&line), width);
}

static void put_unknown(tp_trace_report *r, int width, tp_buf *out)
{
    const tp_events *e = r->file->events;
    const tp_suspicions *s = tp_trace_report_suspicions(r);
    bool is_kineto = r->file->kind == TP_FILE_KINETO;
    tp_buf_adds(out, "\nNot known from this file, or to be doubted\n");
    size_t from = out->len;
    if (r->selection.n_all == 0)
        say_no_device_activity(r, width, out);
    if (e->n_memory == 0 && is_kineto)
        put_wrapped(out, "  - ", "no memory events recorded: profile with profile_memory=True",
                    width);
    if (is_kineto && e->counts.kind[TP_EVENT_PYTHON] == 0)
        put_wrapped(out, "  - ", tp_trace_report_no_python(r), width);
    if (is_kineto && r->selection.steps.n == 0)
        put_wrapped(out, "  - ", "no steps marked: call prof.step() once per step", width);
    for (size_t i = 0; i < s->n; i++) {
        TP_OWN(tp_buf) line = {0};
        char time[32] = "";
        tp_buf_addf(&line, "%s: %lld", s->list[i].what, (long long)s->list[i].count);
        if (s->list[i].ns != TP_UNKNOWN)
            tp_buf_addf(&line, " (%s)", tp_human_ns(s->list[i].ns, time));
        tp_buf_addf(&line, ", %s", s->list[i].meaning);
        put_wrapped(out, s->list[i].is_serious ? "  ! " : "  - ", tp_buf_str(&line), width);
    }
    if (out->len == from)
        tp_buf_adds(out, "  nothing\n");
}

static void put_notes(const tp_notes *notes, int width, tp_buf *out)
{
    if (notes->n)
        tp_buf_adds(out, "\nNotes of the reader\n");
    for (size_t i = 0; i < notes->n; i++)
        put_wrapped(out, notes->list[i].level == TP_NOTE_WARNING ? "  ! " : "  - ",
                    notes->list[i].text, width);
}

/* ---- the screens ---- */

static void put_events(tp_trace_report *r, size_t top, int width, tp_buf *out)
{
    size_t few = top < FEW || top == 10 ? FEW : top;
    put_scope(r, width, out);
    if (r->has_work) {
        put_time(r, width, out);
        put_grid(r, tp_view_kernels, few, width, out);
    } else if (tp_trace_report_operators(r)->n) {
        put_grid(r, tp_view_threads, FEW, width, out);
    }
    if (!r->has_work || tp_trace_report_operators(r)->n)
        put_grid(r, tp_view_operators, few, width, out);
    if (r->has_work)
        put_comm(r, width, out);
    if (r->file->events->n_memory)
        put_grid(r, tp_view_memory, FEW, width, out);
    if (r->has_work || tp_trace_report_findings(r)->n)
        put_findings(r, width, out);
    put_unknown(r, width, out);
}

void tp_trace_report_screen(tp_trace_report *r, size_t top, int width, tp_buf *out)
{
    put_identity(r, out);
    put_sizes(r, out);
    if (r->file->events) {
        put_events(r, top, width, out);
    } else {
        put_grid(r, tp_view_memory, 0, width, out);
        if (r->file->snapshot) {
            put_grid(r, tp_view_memory_peak, top, width, out);
            put_grid(r, tp_view_memory_kept, FEW, width, out);
        }
    }
    put_notes(&r->file->notes, width, out);
}

void tp_trace_report_screen_markdown(tp_trace_report *r, size_t top, tp_buf *out)
{
    static void (*const fills[])(tp_trace_report *, tp_grid *) = {
        tp_view_kernels, tp_view_operators, tp_view_comm, tp_view_idle, tp_view_findings};
    tp_buf_adds(out, "## ");
    put_identity(r, out);
    tp_buf_addc(out, '\n');
    put_sizes(r, out);
    if (!r->file->events) {
        TP_OWN(tp_grid) g = {0};
        tp_view_memory(r, &g);
        tp_grid_markdown(&g, top, out);
        return;
    }
    put_scope(r, 1000, out); /* a paragraph */
    tp_buf_addc(out, '\n');
    for (size_t i = 0; i < sizeof fills / sizeof *fills; i++) {
        TP_OWN(tp_grid) g = {0};
        fills[i](r, &g);
        tp_grid_markdown(&g, top, out);
    }
}
