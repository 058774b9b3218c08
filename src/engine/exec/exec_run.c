/* exec_run.c - running the launches of an executor: timed, traced, marked on a device of its own,
 * or looked at for what is not finite. */
#include <math.h>

#include "base/clock.h"
#include "base/platform.h"
#include "engine/exec/exec_internal.h"
#include "engine/exec/work.h"

enum { CHECKED_BYTES = 1 << 16 }; /* of an operand at a time */

static void set_accumulate(tp_exec *e, bool accumulate)
{
    for (size_t i = 0; i < e->n_fresh; i++)
        e->launches[e->fresh[i]].accumulate = accumulate;
}

void tp_exec_set_host(tp_exec *e, tp_host_fn fn, void *user)
{
    e->host = fn;
    e->host_user = user;
}

/* What decides how much work the launch is, as the host has it: written for this run, or the
 * answer of the only `host` launch before it. */
static const void *deciding_values(const tp_exec *e, size_t i)
{
    if (e->decided_by[i] == TP_EXEC_BY_HOST)
        return e->host ? e->host_y : NULL;
    return e->inputs[e->decided_by[i] - 1].host;
}

tp_cost tp_launch_cost(const tp_launch_info *l, double share)
{
    double left_out = l->by_rows ? 1 - share : 0;
    return (tp_cost){.flops = (1 - left_out) * l->flops,
                     .bytes = l->bytes - left_out * l->row_bytes};
}

static tp_cost count_work(tp_exec *e, size_t i)
{
    tp_launch_info *info = &e->info[i];
    tp_cost cost = tp_launch_cost(info, e->row_share[i]);
    if (e->decided_by[i])
        cost = tp_work_of(&e->launches[i], deciding_values(e, i), cost, e->options.avg_context);
    if (!e->is_uncounted) {
        info->done_flops += cost.flops;
        info->done_bytes += cost.bytes;
    }
    return cost;
}

/* The host's part of a `host` launch: its kernel has copied the operand. */
static tp_status call_host(const tp_exec *e, const tp_launch *l, tp_error *err)
{
    int64_t n = l->in[0].dim[0];
    size_t bytes = (size_t)n * sizeof(float);
    TP_TRY(tp_span_read(e->host_x, l->in[0].span, bytes, err));
    e->host(e->host_user, e->host_x, e->host_y, n);
    return tp_span_write(l->out[0].span, e->host_y, bytes, err);
}

void tp_exec_set_talk(tp_exec *e, tp_talk talk) { e->talk = talk; }

const tp_traffic *tp_exec_traffic(const tp_exec *e) { return e->traffic; }

static inline tp_status launch(const tp_exec *e, tp_launch *l, tp_error *err)
{
    if (e->traffic && (tp_ops[l->op]->traits & TP_OP_COMMUNICATES))
        return tp_traffic_run(e->traffic, (size_t)(l - e->launches), e->talk, err);
    tp_traffic_progress(e->traffic);
    TP_TRY(tp_device_submit(e->options.device, l, 1, err));
    return l->op == TP_OP_host && e->host ? call_host(e, l, err) : TP_OK;
}

tp_status tp_exec_rehearse(const tp_exec *e, tp_traffic *traffic, tp_talk talk,
                           const double *seconds, tp_error *err)
{
    double passed = 0; /* together, as long as nothing is on its way */
    for (size_t i = 0; i < e->n; i++) {
        if (e->is_off[i])
            continue;
        if (tp_ops[e->launches[i].op]->traits & TP_OP_COMMUNICATES) {
            if (!tp_traffic_is_told(traffic, i, talk))
                continue;
            tp_traffic_pass(traffic, passed);
            passed = 0;
            TP_TRY(tp_traffic_run(traffic, i, talk, err));
        } else if (tp_traffic_is_busy(traffic)) {
            tp_traffic_pass(traffic, passed);
            tp_traffic_progress(traffic);
            passed = seconds[i];
        } else
            passed += seconds[i];
    }
    tp_traffic_pass(traffic, passed);
    return TP_OK;
}

static void add_time(tp_exec *e, size_t i, uint64_t ns)
{
    if (e->is_uncounted)
        return;
    e->info[i].ns += ns;
    e->info[i].count++;
}

/* Each launch lasted from where it began until the next one did, the last one until `end`, in
 * ticks of which all together are `ns`. */
static void add_times(tp_exec *e, uint64_t end, uint64_t ns)
{
    size_t first = 0;
    while (first < e->n && e->is_off[first])
        first++;
    if (first == e->n)
        return;
    double scale = end > e->began[first] ? (double)ns / (double)(end - e->began[first]) : 0;
    for (size_t i = e->n; i-- > first;) {
        if (e->is_off[i])
            continue;
        /* 0: recording was paused meanwhile */
        uint64_t began = e->began[i] && e->began[i] < end ? e->began[i] : end;
        add_time(e, i, (uint64_t)(scale * (double)(end - began)));
        end = began;
    }
}

/* A zone that is recorded reads the counter when it begins: asking the system's clock as well
 * would cost more than the event. */
static tp_status run_traced(tp_exec *e, tp_error *err)
{
    bool has_ticks = tp_trace_records_ticks();
    uint64_t from = tp_clock_ns();
    for (size_t i = 0; i < e->n; i++) {
        if (e->is_off[i]) {
            tp_launch_trace_skip(&e->trace, i, e->arena_base);
            continue;
        }
        tp_zone zone = tp_launch_trace_begin(&e->trace, i, e->arena_base);
        e->began[i] = has_ticks ? zone.start : tp_clock_ns();
        tp_cost cost = count_work(e, i);
        tp_status status = launch(e, &e->launches[i], err);
        tp_launch_trace_end(&e->trace, i, e->arena_base, &zone, cost);
        TP_TRY(status);
    }
    uint64_t until = tp_clock_ns();
    add_times(e, has_ticks ? tp_zone_begin(e->trace.sites).start : until, until - from);
    return TP_OK;
}

static tp_status run_timed(tp_exec *e, tp_error *err)
{
    uint64_t start = tp_clock_ns();
    for (size_t i = 0; i < e->n; i++) {
        if (e->is_off[i])
            continue;
        (void)count_work(e, i);
        TP_TRY(launch(e, &e->launches[i], err));
        uint64_t end = tp_clock_ns();
        add_time(e, i, end - start);
        start = end;
    }
    return TP_OK;
}

/* On a device that works while the host goes on: times are between marks in its stream, and
 * zones in a trace are those of submitting. */
static tp_status run_marked(tp_exec *e, tp_error *err)
{
    tp_device *d = e->options.device;
    for (size_t i = 0; i < e->n; i++) {
        if (e->is_off[i])
            continue;
        TP_TRY(tp_device_mark(d, 2 * i, err));
        tp_zone zone = tp_launch_trace_begin(&e->trace, i, e->arena_base);
        tp_cost cost = count_work(e, i);
        tp_status status = launch(e, &e->launches[i], err);
        tp_launch_trace_end(&e->trace, i, e->arena_base, &zone, cost);
        TP_TRY(status);
        TP_TRY(tp_device_mark(d, 2 * i + 1, err));
    }
    TP_TRY(tp_device_wait(d, err));
    for (size_t i = 0; i < e->n; i++)
        if (!e->is_off[i])
            add_time(e, i, tp_device_elapsed(d, 2 * i, 2 * i + 1));
    return TP_OK;
}

tp_status tp_exec_run(tp_exec *e, bool accumulate, tp_error *err)
{
    set_accumulate(e, accumulate);
    if (!tp_device_is_synchronous(e->options.device))
        return run_marked(e, err);
    return tp_trace_enabled() ? run_traced(e, err) : run_timed(e, err);
}

static bool element_is_finite(tp_dtype dtype, const void *data, size_t at)
{
    switch (dtype) {
    case TP_DTYPE_F32:
        return isfinite(((const float *)data)[at]);
    case TP_DTYPE_BF16:
        return isfinite(tp_bf16_to_f32(((const tp_bf16 *)data)[at]));
    case TP_DTYPE_F16:
        return (((const uint16_t *)data)[at] & 0x7c00u) != 0x7c00u;
    case TP_DTYPE_F64:
        return isfinite(((const double *)data)[at]);
    default:
        return true;
    }
}

static tp_status check_row(const tp_operand *o, int64_t row, bool *ret_is_finite, tp_error *err)
{
    double chunk[CHECKED_BYTES / sizeof(double)];
    size_t size = tp_dtype_size(o->dtype), most = CHECKED_BYTES / size;
    for (size_t at = 0; at < (size_t)o->dim[1] && *ret_is_finite; at += most) {
        size_t n = TP_MIN(most, (size_t)o->dim[1] - at);
        tp_span from = o->span;
        from.offset += ((size_t)row * (size_t)o->stride + at) * size;
        TP_TRY(tp_span_read(chunk, from, n * size, err));
        for (size_t k = 0; k < n && *ret_is_finite; k++)
            *ret_is_finite = element_is_finite(o->dtype, chunk, k);
    }
    return TP_OK;
}

/* A vector is one row of its elements. */
static tp_status check_finite(const tp_operand *o, bool *ret_is_finite, tp_error *err)
{
    tp_operand rows = *o;
    if (o->rank == 1) {
        rows.dim[1] = o->dim[0];
        rows.dim[0] = 1;
    }
    *ret_is_finite = true;
    for (int64_t i = 0; o->span.buffer && i < rows.dim[0] && *ret_is_finite; i++)
        TP_TRY(check_row(&rows, i, ret_is_finite, err));
    return TP_OK;
}

tp_status tp_exec_run_checked(tp_exec *e, bool accumulate, int *ret_first_bad, tp_error *err)
{
    int first_bad = -1;
    tp_talk talk = e->talk;
    e->talk = TP_TALK_WEIGHTS; /* what this rank has made itself */
    set_accumulate(e, accumulate);
    for (size_t i = 0; i < e->n; i++) {
        tp_launch *l = &e->launches[i];
        if (e->is_off[i])
            continue;
        TP_TRY(launch(e, l, err));
        bool is_talk = tp_ops[l->op]->traits & TP_OP_COMMUNICATES; /* perhaps of a part */
        for (int k = 0; k < l->n_out && first_bad < 0 && !is_talk; k++) {
            bool is_finite;
            TP_TRY(check_finite(&l->out[k], &is_finite, err));
            if (!is_finite)
                first_bad = (int)i;
        }
    }
    e->talk = talk;
    *ret_first_bad = first_bad;
    return TP_OK;
}
