/* breakdown.c - compute, exposed communication, exposed copies and idle time, by unions and
 * differences of periods. */
#include "instrument/analyze/breakdown.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "instrument/analyze/kernels.h"

double tp_percent(int64_t part, int64_t whole)
{
    char text[64];
    if (whole == 0)
        return (double)NAN;
    snprintf(text, sizeof text, "%.3f", 100.0 * (double)part / (double)whole);
    return strtod(text, NULL);
}

void tp_breakdown_union(const tp_activity *v, size_t n, int64_t device, tp_work work,
                        tp_periods *ret)
{
    ret->n = 0;
    for (size_t i = 0; i < n; i++)
        if ((device == TP_ALL_DEVICES || v[i].device == device) &&
            (work == TP_WORK_COUNT || v[i].work == work))
            tp_periods_extend(ret, v[i].start, v[i].end);
}

static bool find_span(const tp_activity *v, size_t n, int64_t device, tp_breakdown *b)
{
    bool is_first = true;
    for (size_t i = 0; i < n; i++) {
        if (device != TP_ALL_DEVICES && v[i].device != device)
            continue;
        if (is_first || v[i].start < b->start)
            b->start = v[i].start;
        if (is_first || v[i].end > b->end)
            b->end = v[i].end;
        is_first = false;
    }
    return !is_first;
}

bool tp_breakdown_make(const tp_activity *v, size_t n, int64_t device, tp_breakdown *ret)
{
    TP_OWN(tp_periods) compute = {0}, comm = {0}, mem = {0}, working = {0}, all = {0};
    tp_breakdown b = {0};
    if (!find_span(v, n, device, &b))
        return false;
    tp_breakdown_union(v, n, device, TP_WORK_COMPUTE, &compute);
    tp_breakdown_union(v, n, device, TP_WORK_COMM, &comm);
    tp_breakdown_union(v, n, device, TP_WORK_MEM, &mem);
    tp_periods_unite(&compute, &comm, &working);
    tp_periods_unite(&working, &mem, &all);
    b.span_ns = b.end - b.start;
    b.busy_ns = tp_periods_length(&all);
    b.idle_ns = b.span_ns - b.busy_ns;
    b.compute_ns = tp_periods_length(&compute);
    b.comm_ns = tp_periods_length(&comm);
    b.mem_ns = tp_periods_length(&mem);
    b.overlap_ns = tp_periods_common(&comm, &compute);
    b.exposed_comm_ns = b.comm_ns - b.overlap_ns;
    b.exposed_mem_ns = b.mem_ns - tp_periods_common(&mem, &working);
    *ret = b;
    return true;
}

static void add(tp_breakdown *sum, const tp_breakdown *b, bool is_first)
{
    sum->start = is_first || b->start < sum->start ? b->start : sum->start;
    sum->end = is_first || b->end > sum->end ? b->end : sum->end;
    sum->span_ns = tp_add_saturating(sum->span_ns, b->span_ns);
    sum->busy_ns = tp_add_saturating(sum->busy_ns, b->busy_ns);
    sum->idle_ns = tp_add_saturating(sum->idle_ns, b->idle_ns);
    sum->compute_ns = tp_add_saturating(sum->compute_ns, b->compute_ns);
    sum->comm_ns = tp_add_saturating(sum->comm_ns, b->comm_ns);
    sum->mem_ns = tp_add_saturating(sum->mem_ns, b->mem_ns);
    sum->exposed_comm_ns = tp_add_saturating(sum->exposed_comm_ns, b->exposed_comm_ns);
    sum->exposed_mem_ns = tp_add_saturating(sum->exposed_mem_ns, b->exposed_mem_ns);
    sum->overlap_ns = tp_add_saturating(sum->overlap_ns, b->overlap_ns);
}

size_t tp_breakdown_add_up(const tp_activity *v, size_t n, size_t n_devices,
                           tp_breakdown *ret_by_device, tp_breakdown *ret_sum)
{
    tp_breakdown sum = {0};
    size_t working = 0;
    for (size_t d = 0; d < n_devices; d++) {
        tp_breakdown one = {0};
        if (tp_breakdown_make(v, n, (int64_t)d, &one))
            add(&sum, &one, working++ == 0);
        if (ret_by_device)
            ret_by_device[d] = one;
    }
    *ret_sum = sum;
    return working;
}
