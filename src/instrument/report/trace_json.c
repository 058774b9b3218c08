/* The figures of a trace as JSON.  Times are whole nanoseconds, sizes whole bytes. */

#include "instrument/report/trace_report.h"

enum { TOP = 5, TOP_NAME_CHARACTERS = 160 };

static void put_i64(tp_json_w *w, const char *key, int64_t v)
{
    tp_json_w_put_i64_if(w, key, v != TP_UNKNOWN, v);
}

static void put_str(tp_json_w *w, const char *key, const char *s) { tp_json_w_put_str(w, key, s); }

/* ---- events ---- */

static void put_phases(tp_json_w *w, const tp_event_counts *c)
{
    tp_json_w_put_begin(w, "ph", '{');
    for (int ph = 0; ph < 128; ph++) {
        char key[8] = "null";
        if (!c->ph[ph])
            continue;
        if (ph)
            snprintf(key, sizeof key, "%c", ph);
        put_i64(w, key, (int64_t)c->ph[ph]);
    }
    tp_json_w_end(w, '}');
}

static void put_categories(tp_json_w *w, const tp_events *e)
{
    tp_json_w_put_begin(w, "cat_X", '{');
    for (size_t i = 0; i < e->counts.n_categories; i++) {
        const tp_category_count *c = &e->counts.category[i];
        if (c->n)
            put_i64(w, c->name ? tp_events_str(e, c->name) : "null", (int64_t)c->n);
    }
    tp_json_w_end(w, '}');
}

static void put_tables(tp_json_w *w, const tp_events *e)
{
    tp_json_w_put_begin(w, "rows", '{');
    for (size_t i = 0; i < e->info.n_tables; i++) {
        const char *name = tp_events_str(e, e->info.tables[i].name);
        if (tp_str_starts(name, "CUPTI") || tp_str_starts(name, "NVTX_EV"))
            put_i64(w, name, e->info.tables[i].rows);
    }
    tp_json_w_end(w, '}');
}

/* ---- device time ---- */

static void put_breakdown(tp_json_w *w, const tp_breakdown *b)
{
    tp_json_w_begin(w, '{');
    put_i64(w, "span_ns", b->span_ns);
    put_i64(w, "busy_ns", b->busy_ns);
    put_i64(w, "idle_ns", b->idle_ns);
    put_i64(w, "compute_ns", b->compute_ns);
    put_i64(w, "comm_ns", b->comm_ns);
    put_i64(w, "mem_ns", b->mem_ns);
    put_i64(w, "exposed_comm_ns", b->exposed_comm_ns);
    put_i64(w, "exposed_mem_ns", b->exposed_mem_ns);
    put_i64(w, "comm_compute_overlap_ns", b->overlap_ns);
    tp_json_w_put_known(w, "comm_compute_overlap_pct", tp_percent(b->overlap_ns, b->comm_ns));
    tp_json_w_put_known(w, "idle_pct", tp_percent(b->idle_ns, b->span_ns));
    tp_json_w_end(w, '}');
}

/* Bytes of the first `count` characters. */
static size_t first_characters(const char *s, size_t n, size_t count)
{
    size_t i = 0;
    for (; i < n; i++)
        if (((unsigned char)s[i] & 0xC0) != 0x80 && count-- == 0)
            break;
    return i;
}

static void put_kernels(tp_json_w *w, const tp_trace_report *r)
{
    const tp_events *e = r->file->events;
    put_i64(w, "kernels", r->kernels.kernels);
    put_i64(w, "kernel_names", (int64_t)r->kernels.n);
    put_i64(w, "kernel_total_ns", r->kernels.total_ns);
    tp_json_w_put_begin(w, "top5", '[');
    for (size_t i = 0; i < r->kernels.n && i < TOP; i++) {
        const tp_kernel_row *row = &r->kernels.rows[i];
        tp_slice name = tp_events_name_text(e, row->name);
        tp_json_w_begin(w, '{');
        tp_json_w_put_strn(w, "name", name.data,
                           first_characters(name.data, name.len, TOP_NAME_CHARACTERS));
        put_i64(w, "count", row->count);
        put_i64(w, "total_ns", row->total_ns);
        tp_json_w_end(w, '}');
    }
    tp_json_w_end(w, ']');
}

static void put_devices(tp_json_w *w, const tp_trace_report *r)
{
    tp_json_w_key(w, "all_devices");
    if (r->has_work)
        put_breakdown(w, &r->merged);
    else
        tp_json_w_null(w);
    tp_json_w_key(w, "per_device");
    if (r->selection.n_devices < 2) {
        tp_json_w_null(w);
        return;
    }
    tp_json_w_begin(w, '{');
    for (size_t d = 0; d < r->selection.n_devices; d++) {
        tp_json_w_key(w, r->selection.devices[d]);
        put_breakdown(w, &r->by_device[d]);
    }
    tp_json_w_end(w, '}');
}

/* Communication kernels by what their metadata calls them; "None" without metadata. */
static void put_collectives(tp_json_w *w, const tp_trace_report *r)
{
    const tp_events *e = r->file->events;
    TP_FREED int64_t *count = tp_new(e->strings.n + 1, sizeof *count); /* by name */
    for (size_t i = 0; i < r->selection.n; i++) {
        const tp_activity *a = &r->selection.v[i];
        if (a->work != TP_WORK_COMM)
            continue;
        const tp_event_collective *c = tp_events_collective(e, a->event);
        count[c ? c->name : 0]++;
    }
    tp_json_w_put_begin(w, "comm_kernels_by_collective", '{');
    for (uint32_t name = 0; name < e->strings.n; name++)
        if (count[name])
            put_i64(w, name ? tp_events_str(e, name) : "None", count[name]);
    tp_json_w_end(w, '}');
}

static void put_events(tp_json_w *w, tp_trace_report *r)
{
    const tp_events *e = r->file->events;
    if (e->info.tables)
        put_tables(w, e);
    put_i64(w, "events", (int64_t)e->counts.events);
    put_phases(w, &e->counts);
    put_categories(w, e);
    put_str(w, "scope", tp_scope_name(r->selection.options.scope));
    put_kernels(w, r);
    put_devices(w, r);
    if (r->selection.n_graphs) {
        put_i64(w, "graphs_without_kernels", (int64_t)r->selection.n_graphs);
        put_i64(w, "idle_under_graphs_ns", tp_idle_under_graphs(&r->selection));
    }
    put_i64(w, "memory_instants", (int64_t)e->counts.memory_instants);
    put_i64(w, "alloc_bytes", e->counts.alloc_bytes);
    put_i64(w, "free_bytes", e->counts.free_bytes);
    put_collectives(w, r);
    if (e->info.tables) {
        put_i64(w, "memcpy_bytes", e->info.memcpy_bytes);
        put_i64(w, "memcpy_ns", e->info.memcpy_ns);
        put_i64(w, "runtime_total_ns", e->info.runtime_total_ns);
    }
}

/* ---- snapshots ---- */

static void put_counts(tp_json_w *w, const char *key, const tp_snapshot *s,
                       const tp_text_count *list, size_t n)
{
    tp_json_w_put_begin(w, key, '{');
    for (size_t i = 0; i < n; i++)
        put_i64(w, tp_snapshot_str(s, list[i].text), list[i].n);
    tp_json_w_end(w, '}');
}

static void put_snapshot_device(tp_json_w *w, const tp_snapshot *s, const tp_snapshot_device *d)
{
    char key[32];
    snprintf(key, sizeof key, "device_%u", d->device);
    tp_json_w_put_begin(w, key, '{');
    put_i64(w, "entries", d->entries);
    put_counts(w, "actions", s, d->actions, d->n_actions);
    put_i64(w, "alloc_bytes", d->alloc_bytes);
    put_i64(w, "freed_bytes", d->freed_bytes);
    put_i64(w, "frees_without_alloc_in_trace", d->unmatched_frees);
    put_i64(w, "frees_without_alloc_bytes", d->unmatched_bytes);
    put_i64(w, "allocs_still_live", d->live);
    put_i64(w, "live_bytes", d->live_bytes);
    put_i64(w, "net_bytes", d->net_bytes);
    put_i64(w, "peak_net_bytes", d->peak_net_bytes);
    put_i64(w, "lifetime_us_median", d->lifetime_us_median);
    put_i64(w, "lifetime_us_p90", d->lifetime_us_p90);
    put_i64(w, "duration_us", d->duration_us);
    put_i64(w, "initial_bytes", d->initial_bytes);
    put_i64(w, "peak_bytes", d->peak_bytes);
    put_i64(w, "ooms", d->ooms);
    if (d->ooms) {
        put_i64(w, "last_oom_bytes", s->entries[d->last_oom].size);
        put_i64(w, "last_oom_device_free", s->entries[d->last_oom].device_free);
    }
    tp_json_w_end(w, '}');
}

static void put_snapshot(tp_json_w *w, tp_trace_report *r)
{
    const tp_snapshot *s = r->file->snapshot;
    const tp_snapshot_usage *u = tp_trace_report_usage(r);
    put_i64(w, "segments", (int64_t)s->n_segments);
    put_i64(w, "reserved_bytes", u->reserved);
    put_i64(w, "allocated_bytes", u->allocated);
    put_i64(w, "active_bytes", u->active);
    put_i64(w, "requested_bytes", u->requested);
    put_counts(w, "blocks", s, u->states, u->n_states);
    put_i64(w, "inactive_bytes", u->inactive_bytes);
    put_i64(w, "largest_inactive_block", u->largest_inactive);
    put_i64(w, "rounding_bytes", u->rounding_bytes);
    put_i64(w, "free_segment_bytes", u->free_segment_bytes);
    for (size_t i = 0; i < u->n_devices; i++)
        put_snapshot_device(w, s, &u->devices[i]);
}

/* ---- memory timelines ---- */

static void put_timeline(tp_json_w *w, const tp_memory_timeline *t)
{
    int64_t actions[5] = {0}, categories[TP_TIMELINE_CATEGORIES] = {0}, sum = 0, peak = 0;
    put_i64(w, "entries", (int64_t)(t->is_raw ? t->n_rows : t->n_times));
    for (size_t i = 0; i < t->n_rows; i++) {
        const tp_timeline_row *row = &t->rows[i];
        int64_t bytes = row->bytes; /* negative where memory went */
        if (row->action < 5)
            actions[row->action]++;
        if (row->category < TP_TIMELINE_CATEGORIES)
            categories[row->category] += bytes;
        sum += bytes;
        peak = sum > peak ? sum : peak;
    }
    for (size_t i = 0; i < t->n_times; i++) {
        sum = 0;
        for (int c = 0; c < TP_TIMELINE_CATEGORIES; c++) {
            categories[c] = t->bytes[i * TP_TIMELINE_CATEGORIES + (size_t)c];
            sum += categories[c];
        }
        peak = sum > peak ? sum : peak;
    }
    tp_json_w_put_begin(w, "actions", '{');
    for (int a = 1; a < 5; a++)
        if (actions[a])
            put_i64(w, tp_timeline_action_name(a), actions[a]);
    tp_json_w_end(w, '}');
    put_i64(w, "final_bytes", sum);
    put_i64(w, "peak_bytes", peak);
    tp_json_w_put_begin(w, "final_bytes_by_category", '{');
    for (int c = 0; c < TP_TIMELINE_CATEGORIES; c++)
        put_i64(w, tp_timeline_category_name(c), categories[c]);
    tp_json_w_end(w, '}');
}

/* ---- all of it ---- */

static void put_notes(tp_json_w *w, const tp_notes *notes)
{
    tp_json_w_put_begin(w, "notes", '[');
    for (size_t i = 0; i < notes->n; i++) {
        tp_json_w_begin(w, '{');
        put_str(w, "level", notes->list[i].level == TP_NOTE_WARNING ? "warning" : "info");
        put_str(w, "text", notes->list[i].text);
        tp_json_w_end(w, '}');
    }
    tp_json_w_end(w, ']');
}

void tp_trace_report_json(tp_trace_report *r, tp_json_w *w)
{
    const tp_trace_file *f = r->file;
    put_str(w, "file", tp_str_after(f->path, '/'));
    put_i64(w, "bytes", (int64_t)f->bytes);
    if (f->json_bytes)
        put_i64(w, "json_bytes", (int64_t)f->json_bytes);
    put_str(w, "kind", tp_file_kind_name(f->kind));
    put_i64(w, "rank", f->rank);
    if (f->events)
        put_events(w, r);
    if (f->snapshot)
        put_snapshot(w, r);
    if (f->timeline)
        put_timeline(w, f->timeline);
    put_notes(w, &f->notes);
}
