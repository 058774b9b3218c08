/* Views of memory, from whatever the file has: instants, a snapshot, a timeline. */
#include <math.h>
#include <string.h>

#include "base/strings.h"
#include "instrument/analyze/memory_growth.h"
#include "instrument/report/trace_report.h"

/* ---- instants of a trace ---- */

/* "" of what does not grow. */
static const char *severity_of(const tp_leak *l)
{
    return l->verdict == TP_LEAK_GROWING ? tp_severity_name(tp_severity_of_growth(l->slope)) : "";
}

static void say_verdict(const tp_memory_device *d, tp_buf *out)
{
    char a[32], b[32];
    const tp_leak *l = &d->leak;
    tp_buf_addf(out, "%s: ", d->label);
    if (l->verdict == TP_LEAK_CANNOT_TELL) {
        tp_buf_addf(
            out,
            "whether it leaks cannot be told from %zu step%s; record at least %d (the first "
            "%d count as warm-up)",
            l->n_steps, tp_plural((uint64_t)l->n_steps), TP_LEAK_MIN_WARM_UP + TP_LEAK_MIN_STEPS,
            TP_LEAK_MIN_WARM_UP);
        return;
    }
    bool is_negative = l->slope < 0;
    tp_buf_addf(out, "%s%s%s: %s%s per step (", tp_leak_verdict_name(l->verdict),
                l->verdict == TP_LEAK_GROWING ? ", severity " : "", severity_of(l),
                is_negative ? "-" : "", tp_human_bytes(fabs(l->slope), a));
    if (isnan(l->p_rising)) /* no test where nothing varies */
        tp_buf_addf(out, "the same after each of %zu steps", l->n_used);
    else
        tp_buf_addf(out, "p of a rise %.2g over %zu steps", l->p_rising, l->n_used);
    tp_buf_addf(out, ", %zu dropped as warm-up)", l->n_dropped);
    if (l->verdict == TP_LEAK_GROWING && !isnan(l->steps_to_limit))
        tp_buf_addf(out, "; full (%s in use) in about %.0f steps", tp_human_bytes(l->last_bytes, b),
                    l->steps_to_limit);
}

/* How many devices have events without addresses. */
static size_t note_no_addresses(const tp_memory_usage *u, tp_grid *g)
{
    size_t n = 0;
    for (size_t i = 0; u && i < u->n; i++) {
        if (u->devices[i].has_addresses)
            continue;
        tp_grid_note(g, "%s: events without addresses: which allocation a free ends is unknown",
                     u->devices[i].label);
        n++;
    }
    return n;
}

static void note_no_totals(const tp_memory_usage *u, tp_grid *g)
{
    for (size_t i = 0; i < u->n; i++)
        if (!u->devices[i].has_totals)
            tp_grid_note(g,
                         "%s: events without totals: what was in use is unknown; the peak counts "
                         "from the first event on",
                         u->devices[i].label);
}

static void fill_devices(tp_trace_report *r, tp_grid *g)
{
    const tp_memory_usage *u = tp_trace_report_memory(r);
    TP_OWN(tp_buf) verdict = {0};
    g->title = "Memory";
    tp_grid_column(g, "device", "device", TP_CELL_TEXT);
    TP_GRID_MEMBER(g, "allocs", "allocs", TP_CELL_COUNT, tp_memory_device, allocs);
    TP_GRID_MEMBER(g, "frees", "frees", TP_CELL_COUNT, tp_memory_device, frees);
    TP_GRID_MEMBER(g, "peak_bytes", "peak", TP_CELL_BYTES, tp_memory_device, peak_bytes);
    tp_grid_column(g, "peak_at_ns", "at", TP_CELL_NS);
    TP_GRID_MEMBER(g, "peak_reserved_bytes", "peak reserved", TP_CELL_BYTES, tp_memory_device,
                   peak_reserved);
    TP_GRID_MEMBER(g, "first_bytes", "at start", TP_CELL_BYTES, tp_memory_device, first_bytes);
    TP_GRID_MEMBER(g, "last_bytes", "at end", TP_CELL_BYTES, tp_memory_device, last_bytes);
    TP_GRID_MEMBER(g, "never_freed", "never freed", TP_CELL_COUNT, tp_memory_device, never_freed);
    TP_GRID_MEMBER(g, "never_freed_bytes", "bytes", TP_CELL_BYTES, tp_memory_device,
                   never_freed_bytes);
    TP_GRID_MEMBER(g, "lifetime_p50_ns", "life median", TP_CELL_NS, tp_memory_device,
                   lifetime_p50_ns);
    TP_GRID_MEMBER(g, "lifetime_p90_ns", NULL, TP_CELL_NS, tp_memory_device, lifetime_p90_ns);
    TP_GRID_MEMBER(g, "alloc_bytes", NULL, TP_CELL_BYTES, tp_memory_device, alloc_bytes);
    TP_GRID_MEMBER(g, "free_bytes", NULL, TP_CELL_BYTES, tp_memory_device, free_bytes);
    TP_GRID_MEMBER(g, "older_frees", NULL, TP_CELL_COUNT, tp_memory_device, older_frees);
    TP_GRID_MEMBER(g, "older_free_bytes", NULL, TP_CELL_BYTES, tp_memory_device, older_free_bytes);
    tp_grid_hidden(g, "leak_verdict", TP_CELL_TEXT);
    tp_grid_hidden(g, "leak_severity", TP_CELL_TEXT);
    tp_grid_hidden(g, "leak_steps", TP_CELL_COUNT);
    TP_GRID_MEMBER(g, "leak_p_rising", NULL, TP_CELL_REAL, tp_memory_device, leak.p_rising);
    TP_GRID_MEMBER(g, "leak_bytes_per_step", NULL, TP_CELL_REAL, tp_memory_device, leak.slope);
    TP_GRID_MEMBER(g, "leak_bytes_per_step_lo", NULL, TP_CELL_REAL, tp_memory_device, leak.lo);
    TP_GRID_MEMBER(g, "leak_bytes_per_step_hi", NULL, TP_CELL_REAL, tp_memory_device, leak.hi);
    for (size_t i = 0; i < u->n; i++) {
        const tp_memory_device *d = &u->devices[i];
        tp_grid_text(g, d->label);
        tp_grid_row(g, d);
        tp_grid_int(g, d->peak_ts - tp_trace_report_origin(r));
        tp_grid_row(g, d);
        tp_grid_text(g, tp_leak_verdict_name(d->leak.verdict));
        tp_grid_text(g, *severity_of(&d->leak) ? severity_of(&d->leak) : NULL);
        tp_grid_int(g, (int64_t)d->leak.n_steps);
        tp_grid_row(g, d);
        tp_buf_clear(&verdict);
        say_verdict(d, &verdict);
        tp_grid_note(g, "%s", tp_buf_str(&verdict));
    }
    note_no_addresses(u, g);
    note_no_totals(u, g);
    if (u->n == 0 && r->file->events->n_memory)
        tp_grid_note(g, "the memory events of this file could not be analysed");
    else if (u->n == 0)
        tp_grid_note(g, "no memory events recorded%s",
                     tp_trace_report_advice(r, ": profile with profile_memory=True"));
}

static void fill_owners(tp_trace_report *r, tp_grid *g, bool at_peak)
{
    const tp_memory_usage *u = tp_trace_report_memory(r);
    tp_grid_column(g, "device", "device", TP_CELL_TEXT);
    tp_grid_column(g, "operator", "allocated in", TP_CELL_TEXT);
    tp_grid_column(g, "bytes", "bytes", TP_CELL_BYTES);
    tp_grid_column(g, "count", "blocks", TP_CELL_COUNT);
    for (size_t i = 0; i < u->n; i++) {
        const tp_memory_device *d = &u->devices[i];
        const tp_memory_owner *list = at_peak ? d->at_peak : d->kept;
        size_t n = at_peak ? d->n_at_peak : d->n_kept;
        for (size_t k = 0; k < n; k++) {
            tp_grid_text(g, d->label);
            if (list[k].op == TP_NO_ROW)
                tp_grid_text(g, "(outside operators)");
            else
                tp_grid_name(g, r->file->events, list[k].op);
            tp_grid_int(g, list[k].bytes);
            tp_grid_int(g, list[k].count);
        }
    }
    note_no_addresses(u, g);
}

/* ---- snapshots ---- */

/* What a snapshot is mostly taken for. */
static void note_oom(tp_trace_report *r, tp_grid *g, const tp_snapshot_device *d)
{
    enum { DEPTH = 4 };
    const tp_mem_entry *e = &r->file->snapshot->entries[d->last_oom];
    TP_OWN(tp_buf) stack = {0};
    char asked[32], left[32];
    tp_snapshot_stack_text(r->file->snapshot, e->stack, DEPTH, &stack);
    tp_grid_note(g,
                 "device %u: out of memory %lld time%s; the last one asked for %s where the device "
                 "had %s free, at %s",
                 d->device, (long long)d->ooms, d->ooms == 1 ? "" : "s",
                 e->size == TP_UNKNOWN ? "unknown" : tp_human_bytes((double)e->size, asked),
                 e->device_free == TP_UNKNOWN ? "unknown"
                                              : tp_human_bytes((double)e->device_free, left),
                 tp_buf_str(&stack));
}

static void fill_snapshot(tp_trace_report *r, tp_grid *g)
{
    const tp_snapshot_usage *u = tp_trace_report_usage(r);
    char a[32], b[32], c[32];
    g->title = "Memory of the allocator";
    tp_grid_column(g, "device", "device", TP_CELL_COUNT);
    TP_GRID_MEMBER(g, "entries", "events", TP_CELL_COUNT, tp_snapshot_device, entries);
    TP_GRID_MEMBER(g, "alloc_bytes", "allocated", TP_CELL_BYTES, tp_snapshot_device, alloc_bytes);
    TP_GRID_MEMBER(g, "freed_bytes", "freed", TP_CELL_BYTES, tp_snapshot_device, freed_bytes);
    TP_GRID_MEMBER(g, "initial_bytes", "before", TP_CELL_BYTES, tp_snapshot_device, initial_bytes);
    TP_GRID_MEMBER(g, "peak_bytes", "peak", TP_CELL_BYTES, tp_snapshot_device, peak_bytes);
    TP_GRID_MEMBER(g, "allocs_still_live", "still live", TP_CELL_COUNT, tp_snapshot_device, live);
    TP_GRID_MEMBER(g, "live_bytes", "bytes", TP_CELL_BYTES, tp_snapshot_device, live_bytes);
    tp_grid_column(g, "lifetime_median_ns", "life median", TP_CELL_NS);
    for (size_t i = 0; i < u->n_devices; i++) {
        const tp_snapshot_device *d = &u->devices[i];
        tp_grid_int(g, d->device);
        tp_grid_row(g, d);
        tp_grid_known(g, d->lifetime_us_median == TP_UNKNOWN ? TP_UNKNOWN
                                                             : d->lifetime_us_median * 1000);
        if (d->unmatched_frees)
            tp_grid_note(g,
                         "device %u: %lld frees (%s) have no allocation in the ring: its "
                         "beginning is missing, usage before it is reconstructed from the end",
                         d->device, (long long)d->unmatched_frees,
                         tp_human_bytes((double)d->unmatched_bytes, a));
        if (d->ooms)
            note_oom(r, g, d);
    }
    tp_grid_note(g, "%s reserved, %s active", tp_human_bytes((double)u->reserved, a),
                 tp_human_bytes((double)u->active, b));
    tp_grid_note(g, "fragments: %s unused inside segments, the largest %s; rounding costs %s more",
                 tp_human_bytes((double)u->inactive_bytes, a),
                 tp_human_bytes((double)u->largest_inactive, b),
                 tp_human_bytes((double)u->rounding_bytes, c));
}

static void put_stacks(tp_trace_report *r, tp_grid *g, int64_t device, const tp_stack_bytes *list,
                       size_t n)
{
    enum { DEPTH = 12 };
    TP_OWN(tp_buf) text = {0};
    for (size_t i = 0; i < n; i++) {
        tp_buf_clear(&text);
        tp_snapshot_stack_text(r->file->snapshot, list[i].stack, DEPTH, &text);
        tp_grid_known(g, device);
        tp_grid_int(g, list[i].bytes);
        tp_grid_int(g, list[i].count);
        tp_grid_text(g, tp_buf_str(&text));
    }
}

static void stack_columns(tp_grid *g)
{
    tp_grid_column(g, "device", "device", TP_CELL_COUNT);
    tp_grid_column(g, "bytes", "bytes", TP_CELL_BYTES);
    tp_grid_column(g, "count", "blocks", TP_CELL_COUNT);
    tp_grid_column(g, "stack", "allocated at, innermost first", TP_CELL_TEXT);
}

/* ---- sizes and lifetimes ---- */

static void put_sizes(tp_grid *g, const char *device, const tp_allocations *a)
{
    for (size_t k = 0; k < TP_ALLOCATION_SIZES; k++) {
        if (!a->sizes[k].count)
            continue;
        tp_grid_text(g, device);
        tp_grid_text(g, tp_allocation_size_name(k));
        tp_grid_row(g, &a->sizes[k]);
    }
}

void tp_view_memory_sizes(tp_trace_report *r, tp_grid *g)
{
    const tp_memory_usage *u = r->file->events ? tp_trace_report_memory(r) : NULL;
    const tp_snapshot_usage *s = tp_trace_report_usage(r);
    char device[24];
    g->title = "Allocations by size and by how long they lived";
    tp_grid_column(g, "device", "device", TP_CELL_TEXT);
    tp_grid_column(g, "size", "size", TP_CELL_TEXT);
    TP_GRID_MEMBER(g, "allocs", "allocs", TP_CELL_COUNT, tp_allocation_size, count);
    TP_GRID_MEMBER(g, "bytes", "bytes", TP_CELL_BYTES, tp_allocation_size, bytes);
    TP_GRID_MEMBER(g, "frees", "frees", TP_CELL_COUNT, tp_allocation_size, frees);
    TP_GRID_MEMBER(g, "lived_to_100_us", "to 100 us", TP_CELL_COUNT, tp_allocation_size, lived[0]);
    TP_GRID_MEMBER(g, "lived_to_10_ms", "to 10 ms", TP_CELL_COUNT, tp_allocation_size, lived[1]);
    TP_GRID_MEMBER(g, "lived_to_1_s", "to 1 s", TP_CELL_COUNT, tp_allocation_size, lived[2]);
    TP_GRID_MEMBER(g, "lived_longer", "longer", TP_CELL_COUNT, tp_allocation_size, lived[3]);
    TP_GRID_MEMBER(g, "never_freed", "never freed", TP_CELL_COUNT, tp_allocation_size, never_freed);
    TP_GRID_MEMBER(g, "never_freed_bytes", "bytes", TP_CELL_BYTES, tp_allocation_size,
                   never_freed_bytes);
    for (size_t i = 0; u && i < u->n; i++)
        put_sizes(g, u->devices[i].label, &u->devices[i].allocations);
    for (size_t i = 0; i < s->n_devices; i++) {
        snprintf(device, sizeof device, "%u", s->devices[i].device);
        put_sizes(g, device, &s->devices[i].allocations);
    }
    if (!note_no_addresses(u, g) && !tp_grid_rows(g))
        tp_grid_note(g, "no allocation in the window");
}

/* ---- timelines ---- */

static void fill_timeline(tp_trace_report *r, tp_grid *g)
{
    const tp_memory_timeline *t = r->file->timeline;
    int64_t now[TP_TIMELINE_CATEGORIES] = {0}, peak[TP_TIMELINE_CATEGORIES] = {0}, sum = 0,
            most = 0;
    g->title = "Memory by category";
    tp_grid_column(g, "category", "category", TP_CELL_TEXT);
    tp_grid_column(g, "at_peak_bytes", "at the peak", TP_CELL_BYTES);
    tp_grid_column(g, "final_bytes", "at the end", TP_CELL_BYTES);
    size_t n = t->is_raw ? t->n_rows : t->n_times;
    for (size_t i = 0; i < n; i++) {
        if (t->is_raw) {
            const tp_timeline_row *row = &t->rows[i];
            if (row->category < TP_TIMELINE_CATEGORIES)
                now[row->category] += row->bytes;
            sum += row->bytes;
        } else {
            memcpy(now, &t->bytes[i * TP_TIMELINE_CATEGORIES], sizeof now);
            sum = 0;
            for (int c = 0; c < TP_TIMELINE_CATEGORIES; c++)
                sum += now[c];
        }
        if (sum > most) {
            most = sum;
            memcpy(peak, now, sizeof peak);
        }
    }
    for (int c = 0; c < TP_TIMELINE_CATEGORIES; c++) {
        tp_grid_text(g, tp_timeline_category_name(c));
        tp_grid_int(g, peak[c]);
        tp_grid_int(g, now[c]);
    }
    tp_grid_text(g, "all");
    tp_grid_int(g, most);
    tp_grid_int(g, sum);
}

/* ---- whichever the file has ---- */

void tp_view_memory(tp_trace_report *r, tp_grid *g)
{
    if (r->file->snapshot)
        fill_snapshot(r, g);
    else if (r->file->timeline)
        fill_timeline(r, g);
    else
        fill_devices(r, g);
}

void tp_view_memory_peak(tp_trace_report *r, tp_grid *g)
{
    g->title = "In use at the peak";
    if (r->file->events) {
        fill_owners(r, g, true);
        return;
    }
    stack_columns(g);
    const tp_snapshot_usage *u = tp_trace_report_usage(r);
    for (size_t i = 0; r->file->snapshot && i < u->n_devices; i++) {
        TP_FREED tp_stack_bytes *list = NULL;
        size_t n = tp_snapshot_at_peak(r->file->snapshot, &u->devices[i], &list);
        put_stacks(r, g, u->devices[i].device, list, n);
    }
}

void tp_view_memory_kept(tp_trace_report *r, tp_grid *g)
{
    g->title = "Never freed in the window";
    if (r->file->events) {
        fill_owners(r, g, false);
        return;
    }
    g->title = "In use at the end";
    stack_columns(g);
    const tp_snapshot_usage *u = tp_trace_report_usage(r);
    if (r->file->snapshot)
        put_stacks(r, g, TP_UNKNOWN, u->final, u->n_final);
}

void tp_view_memory_timeline(tp_trace_report *r, tp_grid *g)
{
    const tp_memory_usage *u = r->file->events ? tp_trace_report_memory(r) : NULL;
    g->title = "Memory over time";
    tp_grid_column(g, "device", "device", TP_CELL_TEXT);
    tp_grid_column(g, "at_ns", "at", TP_CELL_NS);
    tp_grid_column(g, "allocated_bytes", "allocated", TP_CELL_BYTES);
    tp_grid_column(g, "reserved_bytes", "reserved", TP_CELL_BYTES);
    for (size_t i = 0; u && i < u->n; i++)
        for (size_t k = 0; k < u->devices[i].n; k++) {
            tp_grid_text(g, u->devices[i].label);
            tp_grid_int(g, u->devices[i].points[k].ts - tp_trace_report_origin(r));
            tp_grid_int(g, u->devices[i].points[k].allocated);
            tp_grid_known(g, u->devices[i].points[k].reserved);
        }
}

/* ---- what grows ---- */

static void growth_columns(tp_grid *g, const char *whose)
{
    g->title = "Memory that survives two steps and more";
    tp_grid_column(g, "bytes_per_step", "per step", TP_CELL_REAL);
    tp_grid_column(g, "p_adjusted", "p", TP_CELL_REAL);
    tp_grid_column(g, "verdict", "verdict", TP_CELL_TEXT);
    tp_grid_column(g, "severity", "severity", TP_CELL_TEXT);
    tp_grid_column(g, "last_bytes", "at the end", TP_CELL_BYTES);
    tp_grid_column(g, "allocated_in", whose, TP_CELL_TEXT);
}

static void put_survivor(tp_grid *g, const tp_survivor_row *row)
{
    tp_grid_real(g, row->slope);
    tp_grid_real(g, row->p);
    tp_grid_text(g, row->is_growing ? "growing" : isnan(row->p) ? "cannot tell" : "not shown");
    tp_grid_text(g, row->is_growing ? tp_severity_name(tp_severity_of_growth(row->slope)) : NULL);
    tp_grid_int(g, row->last_bytes);
}

static void fill_snapshot_growth(tp_trace_report *r, tp_grid *g)
{
    enum { DEPTH = 12 };
    const tp_snapshot_usage *u = tp_trace_report_usage(r);
    const tp_snapshot *s = r->file->snapshot;
    TP_OWN(tp_buf) text = {0};
    for (size_t i = 0; i < u->n_devices; i++) {
        tp_snapshot_growth growth;
        tp_error err = {0};
        const tp_snapshot_device *d = &u->devices[i];
        if (tp_growth_of_snapshot(s, d->device, d->initial_bytes, &growth, &err) != TP_OK) {
            tp_grid_note(g, "%s", err.message);
            continue;
        }
        for (size_t k = 0; k < growth.survivors.n; k++) {
            tp_buf_clear(&text);
            put_survivor(g, &growth.survivors.rows[k]);
            tp_snapshot_stack_text(s, growth.survivors.rows[k].group, DEPTH, &text);
            tp_grid_text(g, tp_buf_str(&text));
        }
        if (growth.n_steps == 0)
            tp_grid_note(g,
                         "device %u: no steps: annotate them (optimizers do, with "
                         "torch.cuda.memory._record_memory_history)",
                         d->device);
        else
            tp_grid_note(g, "device %u: %s%s%s over %zu ends of '%s'", d->device,
                         tp_leak_verdict_name(growth.leak.verdict),
                         *severity_of(&growth.leak) ? ", severity " : "", severity_of(&growth.leak),
                         growth.n_steps, tp_snapshot_str(s, growth.annotation));
        tp_snapshot_growth_release(&growth);
    }
}

void tp_view_memory_growth(tp_trace_report *r, tp_grid *g)
{
    tp_survivors survivors;
    tp_error err = {0};
    growth_columns(g, r->file->snapshot ? "allocated at, innermost first" : "allocated in");
    if (r->file->snapshot)
        fill_snapshot_growth(r, g);
    if (!r->file->events || r->file->events->n_memory == 0)
        return;
    if (tp_growth_of_trace(&r->selection, tp_trace_report_operators(r), &survivors, &err) !=
        TP_OK) {
        tp_grid_note(g, "%s", err.message);
        return;
    }
    for (size_t k = 0; k < survivors.n; k++) {
        uint32_t name = survivors.rows[k].group;
        put_survivor(g, &survivors.rows[k]);
        if (name)
            tp_grid_name(g, r->file->events, name);
        else
            tp_grid_text(g, "(outside operators)");
    }
    if (!note_no_addresses(tp_trace_report_memory(r), g) && survivors.n == 0)
        tp_grid_note(g, "nothing allocated in the window lived for two steps");
    tp_survivors_release(&survivors);
}
