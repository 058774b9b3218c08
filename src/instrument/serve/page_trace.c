/* page_trace.c - what the traces of a run say: operators, memory, and a timeline to walk along.
 *
 * The tables are those of `temper trace`; the timeline is drawn for the stretch that is asked for,
 * spans that a pixel cannot show being left out.  A trace above a limit is for the command: while a
 * page is made nothing else is served. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/order.h"
#include "base/platform.h"
#include "base/vec.h"
#include "instrument/analyze/kernels.h"
#include "instrument/analyze/nesting.h"
#include "instrument/analyze/selection.h"
#include "instrument/ingest/ingest.h"
#include "instrument/ingest/trace_paths.h"
#include "instrument/report/picture.h"
#include "instrument/report/trace_report.h"
#include "instrument/serve/plot.h"
#include "instrument/serve/site.h"

enum { MOST_MIB = 256, ROWS = 40, TRACKS = 16, DEPTH = 8, WIDTH = 1200, LEFT = 150, LINE = 16 };

/* ---- which trace ---- */

static tp_trace_paths traces_of(tp_page *p, const tp_run_entry *e)
{
    tp_trace_paths paths = {0};
    TP_FREED char *folder = tp_page_file(p, e, "trace");
    const char *word = folder;
    if (folder && tp_trace_paths_make(&word, 1, &paths, NULL) != TP_OK)
        paths = (tp_trace_paths){0};
    return paths;
}

/* The trace that is asked for by its name, else the last one. */
static const char *choose(tp_page *p, const tp_trace_paths *paths)
{
    const char *asked = tp_http_query(p->request, "trace");
    for (size_t i = 0; asked && i < paths->n; i++)
        if (strcmp(tp_str_after(paths->v[i], '/'), asked) == 0)
            return paths->v[i];
    return paths->n ? paths->v[paths->n - 1] : NULL;
}

static void put_choice(tp_page *p, const tp_trace_paths *paths, const char *chosen)
{
    tp_buf *out = &p->reply->body;
    tp_buf_adds(out, "<form class=filter><label>Trace <select name=trace>");
    for (size_t i = 0; i < paths->n; i++) {
        tp_buf_addf(out, "<option%s>", paths->v[i] == chosen ? " selected" : "");
        tp_page_text(out, tp_str_after(paths->v[i], '/'));
    }
    tp_buf_adds(out, "</select></label> <button>Show</button></form>\n");
}

/* Opened, or NULL after saying why not. */
static tp_trace_file *open_trace(tp_page *p, const char *path, unsigned keep)
{
    tp_trace_file *file = NULL;
    tp_error why = {0};
    const tp_ingest_options options = {.keep = keep, .max_bytes = (uint64_t)MOST_MIB << 20};
    if (tp_file_size(path) > (int64_t)MOST_MIB << 20)
        (void)tp_fail(&why, TP_ERR_UNSUPPORTED, "'%s' is larger than %d MiB; temper trace shows it",
                      path, MOST_MIB);
    else if (tp_trace_open(path, &options, &file, &why) == TP_OK)
        return file;
    tp_buf_adds(&p->reply->body, "<p class=bad>");
    tp_page_text(&p->reply->body, why.message);
    return NULL;
}

/* ---- tables ---- */

static void put_views(tp_page *p, const tp_trace_file *file, const char *const *views, size_t n)
{
    TP_OWN(tp_trace_report) report = {0};
    const tp_select_options all = {0};
    tp_trace_report_make(file, &all, &report);
    for (size_t i = 0; i < n; i++)
        for (const tp_trace_report_view *v = tp_trace_report_views; v->view; v++) {
            TP_OWN(tp_grid) grid = {.name = v->grid};
            if (strcmp(v->view, views[i]) != 0 || !v->in_json)
                continue;
            if (!file->events && strcmp(v->view, "memory") != 0)
                continue;
            v->fill(&report, &grid);
            if (tp_grid_rows(&grid) || i == 0)
                tp_grid_html(&grid, ROWS, &p->reply->body);
        }
}

static void put_trace(tp_page *p, const tp_run_entry *e, const char *const *views, size_t n)
{
    tp_trace_paths paths = traces_of(p, e);
    const char *path = choose(p, &paths);
    tp_trace_file *file = NULL;
    if (path) {
        put_choice(p, &paths, path);
        file = open_trace(p, path, TP_KEEP_FAST | TP_KEEP_MEMORY | TP_KEEP_SYNCS);
    } else {
        tp_buf_adds(&p->reply->body, "<p>the run kept no trace; <code>profile.steps=[1]</code> in "
                                     "the recipe records one\n");
    }
    if (file)
        put_views(p, file, views, n);
    tp_trace_close(file);
    tp_trace_paths_release(&paths);
}

void tp_page_operators(tp_page *p, const tp_run_entry *e)
{
    static const char *const views[] = {"operators", "kernels", "bottlenecks"};
    tp_page_run_head(p, e, "operators");
    put_trace(p, e, views, TP_COUNTOF(views));
    tp_page_end(p);
}

static bool is_memory(const char *tag)
{
    return strcasestr(tag, "memory") || strcasestr(tag, "_bytes");
}

/* What the run counts by what it holds: src/trace/metrics.def. */
static const char by_kind[] = "memory/kind/", in_all[] = "memory/allocated_bytes";

typedef struct {
    const char *tag;
    char name[48]; /* what is behind by_kind, without the unit */
    double most;
} memory_kind;

TP_ORDER(larger_first, memory_kind, TP_COMPARE(y->most, x->most) ?: strcmp(x->tag, y->tag))

/* Kinds by the most that they held, in `ret`; returns how many. */
static size_t kinds_of(tp_metrics *m, memory_kind *ret)
{
    size_t n = 0;
    for (size_t i = 0; i < tp_metrics_count(m); i++) {
        const tp_metric_point *p;
        const char *tag = tp_metrics_tag(m, i);
        if (!tp_str_starts(tag, by_kind))
            continue;
        memory_kind k = {.tag = tag};
        size_t unit = tp_str_ends(tag, "_bytes") ? strlen("_bytes") : 0;
        snprintf(k.name, sizeof k.name, "%.*s", (int)(strlen(tag) - strlen(by_kind) - unit),
                 tag + strlen(by_kind));
        for (size_t j = tp_metrics_curve(m, i, &p); j > 0; j--)
            k.most = fmax(k.most, p[j - 1].value);
        ret[n++] = k;
    }
    if (n)
        qsort(ret, n, sizeof *ret, larger_first);
    return n;
}

/* All kinds in one picture; where there are more than it can tell apart, the largest. */
void tp_page_memory_kinds(tp_page *p, const tp_run_entry *e)
{
    tp_metrics *m = tp_page_open_run(p, e);
    if (!m)
        return;
    TP_OWN(tp_plot) plot = {.axis = TP_PLOT_TIME, .y_label = "bytes", .from_zero = true};
    TP_FREED memory_kind *kinds = tp_vec_new(tp_metrics_count(m) + 1, sizeof *kinds);
    size_t n = kinds_of(m, kinds);
    (void)tp_plot_add(&plot, m, in_all, "all");
    TP_OWN(tp_buf) note = {0};
    for (size_t i = 0; i < n; i++)
        if (plot.n == TP_PLOT_SERIES)
            tp_buf_addf(&note, "%s%s",
                        note.len ? ", " : "not drawn, the smallest: ", kinds[i].name);
        else
            (void)tp_plot_add(&plot, m, kinds[i].tag, kinds[i].name);
    plot.note = note.len ? note.data : NULL;
    if (plot.n) {
        tp_plot_svg(&plot, "memory by kind", &p->reply->body);
        tp_page_reply(p, "image/svg+xml");
    }
}

static bool has_kinds(const tp_metrics *m)
{
    for (size_t i = 0; i < tp_metrics_count(m); i++)
        if (tp_str_starts(tp_metrics_tag(m, i), by_kind))
            return true;
    return false;
}

void tp_page_memory(tp_page *p, const tp_run_entry *e)
{
    static const char *const views[] = {"memory"};
    tp_metrics *m = tp_page_open_run(p, e);
    tp_buf *out = &p->reply->body;
    if (!m)
        return;
    tp_page_run_head(p, e, "memory");
    TP_OWN(tp_buf) address = {0};
    tp_buf_addf(&address, "/run/%s/plot.svg?x=time", e->id);
    tp_buf_adds(out, "<div class=figures>\n");
    if (has_kinds(m)) {
        TP_OWN(tp_buf) kinds = {0};
        tp_buf_addf(&kinds, "/run/%s/memory.svg?x=time", e->id);
        tp_page_figure(out, tp_buf_str(&kinds), by_kind, "memory by what it holds, over time",
                       NULL);
    }
    for (size_t i = 0; i < tp_metrics_count(m); i++) {
        const char *tag = tp_metrics_tag(m, i);
        if (!is_memory(tag) || tp_str_starts(tag, by_kind))
            continue;
        tp_page_figure(out, tp_buf_str(&address), tag, tag, NULL);
    }
    tp_buf_adds(out, "</div>\n");
    put_trace(p, e, views, TP_COUNTOF(views));
    tp_page_end(p);
}

/* ---- the timeline ---- */

typedef struct {
    const tp_events *events;
    int64_t first, last; /* of the trace */
    int64_t from, to;    /* that is shown */
    uint32_t *row_of;    /* of each track: its row, UINT32_MAX: not shown */
    uint32_t tracks[TRACKS];
    uint32_t n_rows;
    tp_time_span *spans;
    uint32_t *parent;
    uint8_t *depth;
    size_t n;
    int deepest[TRACKS];
} timeline;

static bool is_span(const tp_events *v, size_t i)
{
    return v->phase[i] == 'X' && v->dur[i] >= 0 && v->kind[i] != TP_EVENT_TRACE &&
           !tp_event_is_beyond(v, i);
}

/* The tracks with the most spans, in the order of the file. */
static void choose_tracks(timeline *t)
{
    const tp_events *v = t->events;
    TP_FREED uint64_t *count = tp_vec_new(v->n_tracks + 1, sizeof *count);
    t->row_of = tp_vec_new(v->n_tracks + 1, sizeof *t->row_of);
    t->first = INT64_MAX;
    t->last = INT64_MIN;
    for (size_t i = 0; i < v->n; i++)
        if (is_span(v, i)) {
            count[v->track[i]]++;
            t->first = TP_MIN(t->first, v->start[i]);
            t->last = TP_MAX(t->last, tp_event_end(v, i));
        }
    uint64_t least = 1;
    for (size_t shown = SIZE_MAX; shown > TRACKS; least *= 2) {
        shown = 0;
        for (size_t k = 0; k < v->n_tracks; k++)
            shown += count[k] >= least;
        if (shown <= TRACKS)
            break;
    }
    for (size_t k = 0; k < v->n_tracks; k++) {
        bool is_shown = count[k] >= least && t->n_rows < TRACKS;
        t->row_of[k] = is_shown ? t->n_rows : UINT32_MAX;
        if (is_shown)
            t->tracks[t->n_rows++] = (uint32_t)k;
    }
}

static void collect(timeline *t)
{
    const tp_events *v = t->events;
    size_t cap = 0;
    for (size_t i = 0; i < v->n; i++) {
        uint32_t row = v->track[i] < v->n_tracks ? t->row_of[v->track[i]] : UINT32_MAX;
        if (row == UINT32_MAX || !is_span(v, i) || v->start[i] >= t->to ||
            tp_event_end(v, i) <= t->from)
            continue;
        *TP_VEC_PUSH(t->spans, t->n, cap) = (tp_time_span){
            .start = v->start[i], .end = tp_event_end(v, i), .event = (uint32_t)i, .thread = row};
    }
    t->parent = tp_vec_new(t->n + 1, sizeof *t->parent);
    t->depth = tp_vec_new(t->n + 1, sizeof *t->depth);
    tp_spans_sort(t->spans, t->n);
    tp_spans_nest(t->spans, t->n, t->parent, NULL, NULL);
    for (size_t i = 0; i < t->n; i++) {
        uint32_t up = t->parent[i];
        int depth = up == TP_NO_PARENT ? 0 : TP_MIN(t->depth[up] + 1, DEPTH);
        t->depth[i] = (uint8_t)depth;
        if (depth < DEPTH)
            t->deepest[t->spans[i].thread] = TP_MAX(t->deepest[t->spans[i].thread], depth);
    }
}

static void release(timeline *t)
{
    free(t->row_of);
    free(t->spans);
    free(t->parent);
    free(t->depth);
}

static double place(const timeline *t, int64_t at)
{
    double share = (double)(at - t->from) / (double)(t->to - t->from);
    return LEFT + fmin(1, fmax(0, share)) * (WIDTH - LEFT);
}

static void put_track_name(const timeline *t, uint32_t row, int y, tp_buf *out)
{
    const tp_event_track *track = &t->events->tracks[t->tracks[row]];
    const char *name = tp_events_str(t->events, track->thread_name);
    tp_buf_addf(out, "<text x=0 y=%d>", y + 12);
    if (*name)
        tp_page_text(out, name);
    else if (track->stream != TP_UNKNOWN)
        tp_buf_addf(out, "stream %lld", (long long)track->stream);
    else if (track->tid != TP_UNKNOWN)
        tp_buf_addf(out, "thread %lld", (long long)track->tid);
    tp_buf_adds(out, "</text>\n");
}

/* Equal names have equal colours, on which black text can be read. */
static const char *colour_of(uint32_t name)
{
    enum { LIGHT_COLOURS = 6 };
    return tp_series_colour((name * 2654435761u >> 16) % LIGHT_COLOURS);
}

static void put_span(const timeline *t, size_t i, int y, double right[TRACKS][DEPTH], tp_buf *out)
{
    const tp_time_span *s = &t->spans[i];
    const char *name = tp_events_str(t->events, t->events->name[s->event]);
    double x = place(t, s->start), w = place(t, s->end) - x;
    double *drawn = &right[s->thread][t->depth[i]];
    char length[32];
    if (w < 0.5 && x + w < *drawn + 0.5)
        return; /* the pixel shows another one already */
    *drawn = x + fmax(w, 0.5);
    tp_buf_addf(out, "<g><rect x=%.1f y=%d width=%.1f height=%d fill=\"%s\"/><title>", x,
                y + t->depth[i] * LINE, fmax(w, 0.5), LINE - 1,
                colour_of(t->events->name[s->event]));
    tp_page_text(out, name);
    tp_buf_addf(out, ", %s</title>", tp_human_ns(s->end - s->start, length));
    if (w > 40) {
        int room = (int)(w / 6.5);
        tp_buf_addf(out, "<text x=%.1f y=%d>", x + 2, y + t->depth[i] * LINE + 12);
        TP_OWN(tp_buf) name_of = {0};
        size_t n = tp_utf8_valid_len(name, TP_MIN(strlen(name), (size_t)room));
        tp_buf_add(&name_of, name, n);
        tp_page_text(out, tp_buf_str(&name_of));
        tp_buf_adds(out, "</text>");
    }
    tp_buf_adds(out, "</g>\n");
}

static void draw(const timeline *t, tp_buf *out)
{
    double right[TRACKS][DEPTH] = {{0}};
    int top[TRACKS + 1] = {LINE};
    for (uint32_t r = 0; r < t->n_rows; r++)
        top[r + 1] = top[r] + (t->deepest[r] + 1) * LINE + 6;
    char at[32];
    tp_buf_addf(out,
                "<svg class=timeline viewBox=\"0 0 %d %d\" role=img aria-label=\"timeline\" "
                "data-from=%lld data-to=%lld data-left=%d data-width=%d font-size=11>\n",
                WIDTH, top[t->n_rows] + LINE, (long long)t->from, (long long)t->to, LEFT, WIDTH);
    for (int k = 0; k <= 4; k++) {
        int64_t ns = t->from + (t->to - t->from) / 4 * k;
        tp_buf_addf(out, "<text x=%.0f y=11 text-anchor=%s>%s</text>\n", place(t, ns),
                    k == 0   ? "start"
                    : k == 4 ? "end"
                             : "middle",
                    tp_human_ns(ns - t->first, at));
    }
    for (uint32_t r = 0; r < t->n_rows; r++)
        put_track_name(t, r, top[r], out);
    for (size_t i = 0; i < t->n; i++)
        if (t->depth[i] < DEPTH)
            put_span(t, i, top[t->spans[i].thread], right, out);
    tp_buf_adds(out, "</svg>\n");
}

static int64_t asked_time(tp_page *p, const char *name, int64_t otherwise)
{
    const char *text = tp_http_query(p->request, name);
    char *end;
    long long v = text ? strtoll(text, &end, 10) : 0;
    return text && end != text && !*end ? v : otherwise;
}

static void put_link(tp_page *p, const char *trace, int64_t from, int64_t to, const char *id,
                     const char *name)
{
    tp_buf *out = &p->reply->body;
    tp_buf_adds(out, "<a href=\"?trace=");
    tp_page_query(out, trace);
    tp_buf_addf(out, "&amp;from=%lld&amp;to=%lld\" id=%s>%s</a> ", (long long)from, (long long)to,
                id, name);
}

static void put_timeline(tp_page *p, const tp_trace_file *file)
{
    timeline t = {.events = file->events};
    const char *trace = tp_str_after(file->path, '/');
    choose_tracks(&t);
    if (t.last <= t.first) {
        tp_buf_adds(&p->reply->body, "<p>the trace has no spans\n");
        release(&t);
        return;
    }
    t.from = TP_MIN(TP_MAX(asked_time(p, "from", t.first), t.first), t.last);
    t.to = TP_MIN(TP_MAX(asked_time(p, "to", t.last), t.first), t.last);
    if (t.to - t.from < 100) { /* 25 ns a tick */
        t.from = TP_MIN(t.from, t.last - 100);
        t.to = t.from + 100;
    }
    int64_t width = t.to - t.from, half = width / 2;
    tp_buf_adds(&p->reply->body, "<p>");
    put_link(p, trace, t.from - half, tp_subtract_saturating(t.to, half), "left", "earlier");
    put_link(p, trace, t.from + half, tp_add_saturating(t.to, half), "right", "later");
    put_link(p, trace, t.from + width / 4, t.to - width / 4, "in", "closer");
    put_link(p, trace, t.from - half, tp_add_saturating(t.to, half), "out", "wider");
    put_link(p, trace, t.first, t.last, "all", "all");
    tp_buf_adds(&p->reply->body, "or drag over a stretch\n");
    collect(&t);
    draw(&t, &p->reply->body);
    release(&t);
}

void tp_page_timeline(tp_page *p, const tp_run_entry *e)
{
    tp_trace_paths paths = traces_of(p, e);
    const char *path = choose(p, &paths);
    tp_trace_file *file = NULL;
    tp_page_run_head(p, e, "timeline");
    if (path) {
        put_choice(p, &paths, path);
        file = open_trace(p, path, TP_KEEP_GPU | TP_KEEP_HOST);
    } else {
        tp_buf_adds(&p->reply->body, "<p>the run kept no trace; <code>profile.steps=[1]</code> in "
                                     "the recipe records one\n");
    }
    if (file && file->events)
        put_timeline(p, file);
    tp_trace_close(file);
    tp_trace_paths_release(&paths);
    tp_page_end(p);
}
