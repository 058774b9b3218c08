/* trace_report.c - the analyses of one file, each made when a view first asks for it. */
#include <stdlib.h>
#include <string.h>

#include "base/threads.h"
#include "instrument/report/trace_report.h"

static void make_breakdowns(tp_trace_report *r)
{
    const tp_selection *s = &r->selection;
    r->by_device = tp_new(s->n_devices ? s->n_devices : 1, sizeof *r->by_device);
    r->has_work = tp_breakdown_add_up(s->v, s->n, s->n_devices, r->by_device, &r->sum) > 0;
    r->merged = r->sum;
    if (s->n_devices > 1)
        tp_breakdown_make(s->v, s->n, TP_ALL_DEVICES, &r->merged);
}

void tp_trace_report_make(const tp_trace_file *file, const tp_select_options *options,
                          tp_trace_report *ret)
{
    *ret = (tp_trace_report){.file = file, .limits = TP_FINDING_LIMITS};
    if (!file->events)
        return;
    tp_selection_make(file->events, options, &ret->selection);
    make_breakdowns(ret);
    tp_kernels_make(ret->selection.v, ret->selection.n, true, tp_events_name_text, file->events,
                    &ret->kernels);
}

void tp_trace_report_release(tp_trace_report *r)
{
    tp_selection_release(&r->selection);
    tp_kernels_release(&r->kernels);
    tp_operators_release(&r->operators);
    tp_snapshot_usage_release(&r->usage);
    tp_launches_release(&r->launches);
    tp_idle_release(&r->idle);
    tp_comm_release(&r->comm);
    tp_memory_usage_release(&r->memory);
    tp_critical_path_release(&r->path);
    free(r->by_device);
    *r = (tp_trace_report){0};
}

/* ---- each analysis when it is first asked for ---- */

static void make_memory(tp_trace_report *r)
{
    tp_error err = {0};
    if (r->file->events->n_memory &&
        tp_memory_usage_make(&r->selection, tp_trace_report_operators(r), &r->memory, &err) !=
            TP_OK)
        r->memory = (tp_memory_usage){0};
}

static void make_path(tp_trace_report *r)
{
    tp_critical_path_find(&r->selection, tp_trace_report_operators(r), &r->path);
}

static void make_findings(tp_trace_report *r)
{
    const tp_finding_inputs in = {.limits = r->limits,
                                  .selection = &r->selection,
                                  .sum = &r->sum,
                                  .kernels = &r->kernels,
                                  .idle = tp_trace_report_idle(r),
                                  .launches = tp_trace_report_launches(r),
                                  .copies = tp_trace_report_copies(r),
                                  .comm = tp_trace_report_comm(r),
                                  .memory = tp_trace_report_memory(r)};
    tp_findings_make(&in, &r->findings);
}

static void make_usage(tp_trace_report *r)
{
    if (r->file->snapshot)
        tp_snapshot_usage_make(r->file->snapshot, &r->usage);
}

#define ANALYSIS(name, type, make)                         \
    const type *tp_trace_report_##name(tp_trace_report *r) \
    {                                                      \
        if (!r->has_##name) {                              \
            r->has_##name = true;                          \
            make;                                          \
        }                                                  \
        return &r->name;                                   \
    }
#include "instrument/report/trace_analyses.def"
#undef ANALYSIS

/* ---- side by side ---- */

/* Operators and the memory that is attributed to them; apart from it, what the device did. */
static tp_status prepare(void *report, size_t half, int worker, tp_error *err)
{
    tp_trace_report *r = report;
    (void)worker;
    (void)err;
    if (half == 0) {
        tp_trace_report_operators(r);
        tp_trace_report_memory(r);
    } else {
        tp_trace_report_idle(r);
        tp_trace_report_launches(r);
        tp_trace_report_copies(r);
        tp_trace_report_comm(r);
        tp_trace_report_suspicions(r);
    }
    return TP_OK;
}

void tp_trace_report_prepare(tp_trace_report *r)
{
    enum { WORTH_A_THREAD = 10000 }; /* events */
    tp_pool *pool = NULL;
    tp_error err = {0};
    if (!r->has_work || r->file->events->n < WORTH_A_THREAD)
        return;
    if (tp_pool_create(&pool, 2, &err) == TP_OK)
        (void)!tp_pool_for(pool, 2, prepare, r, &err); /* else each is made when asked for */
    tp_pool_free(pool);
}

const char *tp_trace_report_advice(const tp_trace_report *r, const char *advice)
{
    return r->file->kind == TP_FILE_KINETO ? advice : "";
}

const char *tp_trace_report_no_python(const tp_trace_report *r)
{
    const tp_event_counts *c = &r->file->events->counts;
    for (size_t i = 0; i < c->n_categories; i++)
        if (strcmp(tp_events_str(r->file->events, c->category[i].name), "Operator") == 0)
            return "no Python functions recorded: with_stack=True of PyTorch in 2021 writes stacks "
                   "into the arguments of operators, which are not read; later versions record "
                   "the functions";
    return "no Python functions recorded: profile with with_stack=True";
}

/* As profiles of TensorFlow, JAX and Ascend name them. */
static bool is_device_process(const char *name)
{
    return tp_str_starts(name, "/device:") || strcmp(name, "Ascend Hardware") == 0;
}

const char *tp_trace_report_unread_device(const tp_trace_report *r)
{
    const tp_events *e = r->file->events;
    for (size_t i = 0; i < e->n_tracks; i++) {
        const char *name = tp_events_str(e, e->tracks[i].process_name);
        if (e->tracks[i].device == TP_UNKNOWN && is_device_process(name))
            return name;
    }
    return NULL;
}

int64_t tp_trace_report_origin(const tp_trace_report *r)
{
    const tp_events *e = r->file->events;
    int64_t first = INT64_MAX;
    if (r->has_work)
        return r->sum.start;
    for (size_t i = 0; i < e->n; i++)
        if (e->start[i] < first && e->phase[i] == 'X')
            first = e->start[i];
    return e->n && first != INT64_MAX ? first : 0;
}

void tp_grid_name(tp_grid *g, const tp_events *e, uint32_t name)
{
    tp_slice text = tp_events_name_text(e, name);
    tp_grid_textn(g, text.data, text.len);
}
