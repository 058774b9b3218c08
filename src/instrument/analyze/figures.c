/* figures.c - one recording as named numbers, for comparison and for repeats. */
#include "instrument/analyze/figures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "instrument/analyze/launch.h"
#include "instrument/analyze/memory_usage.h"
#include "instrument/analyze/named_work.h"
#include "instrument/analyze/snapshot_usage.h"
#include "stats/descriptive.h"

typedef struct {
    tp_string_table *names;
    tp_figures *f;
    double divisor; /* steps, or 1 */
} list;

static void add(list *l, const tp_figure *figure)
{
    l->f->v = tp_vec_room(l->f->v, &l->f->cap, l->f->n + 1, sizeof *l->f->v);
    l->f->v[l->f->n++] = *figure;
}

static void add_total(list *l, const char *name, tp_figure_unit unit, double value)
{
    add(l, &(tp_figure){.name = tp_string_add(l->names, name, strlen(name)),
                        .table = TP_FIGURES_TOTALS,
                        .unit = (uint8_t)unit,
                        .value = value});
}

/* A time or a count that a longer window has more of. */
static void add_extent(list *l, const char *name, tp_figure_unit unit, double value)
{
    add_total(l, name, unit, value / l->divisor);
}

/* ---- work by name ---- */

typedef struct {
    list *l;
    bool per_step;       /* work outside of steps does not count */
    int64_t *ns, *calls; /* by name */
    size_t n, cap_ns, cap_calls;
} tally;

static void count_work(void *context, tp_slice text, int64_t step, int64_t ns)
{
    tally *t = context;
    if (t->per_step && step < 0)
        return;
    size_t name = tp_string_add(t->l->names, text.data, text.len);
    if (name >= t->n) {
        t->ns = tp_vec_room(t->ns, &t->cap_ns, name + 1, sizeof *t->ns);
        t->calls = tp_vec_room(t->calls, &t->cap_calls, name + 1, sizeof *t->calls);
        for (; t->n <= name; t->n++)
            t->ns[t->n] = t->calls[t->n] = 0;
    }
    t->ns[name] = tp_add_saturating(t->ns[name], ns);
    t->calls[name]++;
}

static void finish(tally *t, tp_figure_table table)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->calls[i])
            add(t->l, &(tp_figure){.name = (uint32_t)i,
                                   .table = (uint8_t)table,
                                   .unit = TP_FIGURE_NS,
                                   .value = (double)t->ns[i] / t->l->divisor,
                                   .calls = (double)t->calls[i] / t->l->divisor});
    free(t->ns);
    free(t->calls);
}

static void add_names(list *l, const tp_selection *sel, const tp_operators *o, bool per_step)
{
    tally phases = {.l = l, .per_step = per_step}, operators = phases, kernels = phases;
    tp_each_phase(sel, count_work, &phases);
    finish(&phases, TP_FIGURES_PHASES);
    tp_each_operator_work(sel, o, sel->n == 0, count_work, &operators);
    finish(&operators, TP_FIGURES_OPERATORS);
    tp_each_device_work(sel, count_work, &kernels);
    finish(&kernels, TP_FIGURES_KERNELS);
}

/* ---- totals ---- */

static void add_window(list *l, const tp_events *e)
{
    int64_t first = INT64_MAX, last = INT64_MIN;
    for (size_t i = 0; i < e->n; i++) {
        if (e->phase[i] != 'X')
            continue;
        int64_t end = tp_event_end(e, i);
        first = e->start[i] < first ? e->start[i] : first;
        last = end > last ? end : last;
    }
    if (last >= first)
        add_total(l, "window of the file", TP_FIGURE_NS,
                  (double)tp_subtract_saturating(last, first));
}

static void add_steps(list *l, const tp_steps *steps)
{
    TP_FREED double *ns = tp_vec_new(steps->n, sizeof *ns);
    for (size_t i = 0; i < steps->n; i++)
        ns[i] = (double)steps->v[i].host_ns;
    l->f->steps = steps->n;
    l->f->step_mean_ns = steps->n ? tp_mean(ns, steps->n) : (double)NAN;
    l->f->step_sd_ns = steps->n > 1 ? tp_sd(ns, steps->n) : (double)NAN;
    if (steps->n)
        add_total(l, "step (host), mean", TP_FIGURE_NS, l->f->step_mean_ns);
}

static void add_device(list *l, const tp_selection *sel)
{
    tp_breakdown b;
    tp_kernel_table kernels;
    l->f->n_devices = tp_breakdown_add_up(sel->v, sel->n, sel->n_devices, NULL, &b);
    if (l->f->n_devices == 0)
        return;
    add_extent(l, "device span", TP_FIGURE_NS, (double)b.span_ns);
    add_extent(l, "device busy", TP_FIGURE_NS, (double)b.busy_ns);
    add_extent(l, "compute", TP_FIGURE_NS, (double)b.compute_ns);
    add_extent(l, "communication", TP_FIGURE_NS, (double)b.comm_ns);
    add_extent(l, "exposed communication", TP_FIGURE_NS, (double)b.exposed_comm_ns);
    add_extent(l, "exposed memory traffic", TP_FIGURE_NS, (double)b.exposed_mem_ns);
    add_extent(l, "idle", TP_FIGURE_NS, (double)b.idle_ns);
    tp_kernels_make(sel->v, sel->n, true, tp_events_name_text, sel->events, &kernels);
    add_extent(l, "kernel time (sum)", TP_FIGURE_NS, (double)kernels.total_ns);
    add_extent(l, "kernels", TP_FIGURE_COUNT, (double)kernels.kernels);
    tp_kernels_release(&kernels);
}

static void add_launches(list *l, const tp_selection *sel)
{
    tp_launch_table t;
    tp_launches_make(sel, &t);
    if (t.all.calls) {
        add_extent(l, "launches", TP_FIGURE_COUNT, (double)t.all.calls);
        if (t.all.delay_p50_ns != TP_UNKNOWN)
            add_total(l, "launch delay, median", TP_FIGURE_NS, (double)t.all.delay_p50_ns);
    }
    tp_launches_release(&t);
}

static tp_status add_memory(list *l, const tp_selection *sel, const tp_operators *o, tp_error *err)
{
    TP_OWN(tp_memory_usage) usage = {0};
    char name[48];
    if (sel->events->n_memory == 0)
        return TP_OK;
    TP_TRY(tp_memory_usage_make(sel, o, &usage, err));
    for (size_t i = 0; i < usage.n; i++) {
        const tp_memory_device *d = &usage.devices[i];
        snprintf(name, sizeof name, "peak memory, %s", d->label);
        add_total(l, name, TP_FIGURE_BYTES, (double)d->peak_bytes);
        snprintf(name, sizeof name, "peak reserved, %s", d->label);
        if (d->peak_reserved != TP_UNKNOWN)
            add_total(l, name, TP_FIGURE_BYTES, (double)d->peak_reserved);
    }
    return TP_OK;
}

static void add_snapshot(list *l, const tp_snapshot *snapshot)
{
    tp_snapshot_usage u;
    char name[48];
    tp_snapshot_usage_make(snapshot, &u);
    add_total(l, "reserved", TP_FIGURE_BYTES, (double)u.reserved);
    add_total(l, "allocated", TP_FIGURE_BYTES, (double)u.allocated);
    add_total(l, "reserved and not in use", TP_FIGURE_BYTES, (double)u.inactive_bytes);
    for (size_t i = 0; i < u.n_devices; i++) {
        snprintf(name, sizeof name, "peak memory, device %u", u.devices[i].device);
        add_total(l, name, TP_FIGURE_BYTES, (double)u.devices[i].peak_bytes);
    }
    tp_snapshot_usage_release(&u);
}

/* Rows are changes; the other form has what is there, category by category. */
static void add_timeline(list *l, const tp_memory_timeline *t)
{
    int64_t now = 0, peak = INT64_MIN;
    size_t n = t->is_raw ? t->n_rows : t->n_times;
    for (size_t i = 0; i < n; i++) {
        if (t->is_raw)
            now = tp_add_saturating(now, t->rows[i].bytes);
        else
            now = 0;
        for (int k = 0; k < TP_TIMELINE_CATEGORIES && !t->is_raw; k++)
            now = tp_add_saturating(now, t->bytes[i * TP_TIMELINE_CATEGORIES + (size_t)k]);
        peak = now > peak ? now : peak;
    }
    if (n == 0)
        return;
    add_total(l, "peak memory", TP_FIGURE_BYTES, (double)peak);
    add_total(l, "memory at the end", TP_FIGURE_BYTES, (double)now);
}

static tp_status add_trace(list *l, const tp_trace_file *file, const tp_select_options *options,
                           bool per_step, tp_error *err)
{
    tp_select_options select = *options;
    tp_selection sel;
    TP_OWN(tp_operators) o = {0};
    if (per_step)
        select.scope = TP_SCOPE_STEPS;
    tp_selection_make(file->events, &select, &sel);
    tp_status status = tp_selection_check_steps(&sel, file->path, err);
    if (per_step && sel.steps.n == 0)
        status = tp_fail(err, TP_ERR_ARG,
                         "'%s' marks no steps (ProfilerStep#N): leave out --per-step", file->path);
    if (status != TP_OK) {
        tp_selection_release(&sel);
        return status;
    }
    if (per_step)
        l->divisor = (double)sel.steps.n;
    else
        add_window(l, file->events);
    l->f->n_stepless = sel.n_stepless;
    l->f->stepless_ns = sel.stepless_ns;
    add_steps(l, &sel.steps);
    add_device(l, &sel);
    add_launches(l, &sel);
    tp_operators_make(&sel, &o);
    status = add_memory(l, &sel, &o, err);
    add_names(l, &sel, &o, per_step);
    tp_selection_release(&sel);
    return status;
}

tp_status tp_figures_make(const tp_trace_file *file, const tp_select_options *options,
                          bool per_step, tp_string_table *names, tp_figures *ret, tp_error *err)
{
    tp_figures f = {.step_mean_ns = (double)NAN, .step_sd_ns = (double)NAN};
    list l = {names, &f, 1};
    tp_status status = TP_OK;
    if (file->events)
        status = add_trace(&l, file, options, per_step, err);
    else if (per_step)
        status = tp_fail(err, TP_ERR_ARG, "'%s' is a %s: it has no steps, leave out --per-step",
                         file->path, tp_file_kind_about(file->kind));
    else if (file->snapshot)
        add_snapshot(&l, file->snapshot);
    else
        add_timeline(&l, file->timeline);
    if (status != TP_OK) {
        tp_figures_release(&f);
        return status;
    }
    *ret = f;
    return TP_OK;
}

void tp_figures_release(tp_figures *f)
{
    free(f->v);
    *f = (tp_figures){0};
}
