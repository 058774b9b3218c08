#include <stdlib.h>

#include "cli/trace.h"

static void make_breakdowns(tp_trace_report *r)
{
    const tp_selection *s = &r->selection;
    r->has_work = tp_breakdown_make(s->v, s->n, TP_ALL_DEVICES, &r->all);
    r->by_device = calloc(s->n_devices ? s->n_devices : 1, sizeof *r->by_device);
    TP_ASSERT(r->by_device);
    for (size_t d = 0; d < s->n_devices; d++)
        if (s->n_devices == 1)
            r->by_device[d] = r->all;
        else
            tp_breakdown_make(s->v, s->n, (int64_t)d, &r->by_device[d]);
}

void tp_trace_report_make(const tp_trace_file *file, const tp_select_options *options,
                          tp_trace_report *ret)
{
    *ret = (tp_trace_report){.file = file};
    if (!file->events)
        return;
    tp_select(file->events, options, &ret->selection);
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
    free(r->by_device);
    *r = (tp_trace_report){0};
}

const tp_operators *tp_trace_operators(tp_trace_report *r)
{
    if (!r->has_operators)
        tp_operators_make(&r->selection, &r->operators);
    r->has_operators = true;
    return &r->operators;
}

const tp_snapshot_usage *tp_trace_usage(tp_trace_report *r)
{
    if (!r->has_usage && r->file->snapshot)
        tp_snapshot_usage_make(r->file->snapshot, &r->usage);
    r->has_usage = true;
    return &r->usage;
}
