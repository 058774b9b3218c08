/* trace_views.c - views of work on the device: kernels, operators, communication, copies, launches.
 */
#include "instrument/report/trace_report.h"

#include <math.h>

#include "base/platform.h"
#include "instrument/analyze/device_peaks.h"
#include "instrument/analyze/roofline.h"

static const char *work_name(uint8_t work)
{
    static const char *const names[] = {"compute", "communication", "memory"};
    return names[work];
}

void tp_view_kernels(tp_trace_report *r, tp_grid *g)
{
    const tp_events *e = r->file->events;
    g->title = "Kernels by time on the device";
    TP_GRID_MEMBER(g, "total_ns", "total", TP_CELL_NS, tp_kernel_row, total_ns);
    tp_grid_column(g, "share_pct", "share", TP_CELL_PERCENT);
    TP_GRID_MEMBER(g, "count", "count", TP_CELL_COUNT, tp_kernel_row, count);
    TP_GRID_MEMBER(g, "p50_ns", "median", TP_CELL_NS, tp_kernel_row, p50_ns);
    TP_GRID_MEMBER(g, "max_ns", "max", TP_CELL_NS, tp_kernel_row, max_ns);
    tp_grid_column(g, "class", "class", TP_CELL_TEXT);
    tp_grid_column(g, "name", "kernel", TP_CELL_TEXT);
    TP_GRID_MEMBER(g, "min_ns", NULL, TP_CELL_NS, tp_kernel_row, min_ns);
    TP_GRID_MEMBER(g, "p90_ns", NULL, TP_CELL_NS, tp_kernel_row, p90_ns);
    TP_GRID_MEMBER(g, "p99_ns", NULL, TP_CELL_NS, tp_kernel_row, p99_ns);
    TP_GRID_MEMBER(g, "mean_ns", NULL, TP_CELL_REAL, tp_kernel_row, mean_ns);
    TP_GRID_MEMBER(g, "sd_ns", NULL, TP_CELL_REAL, tp_kernel_row, sd_ns);
    tp_grid_hidden(g, "is_slow", TP_CELL_TEXT);
    int64_t slow = 0;
    for (size_t i = 0; i < r->kernels.n; i++) {
        const tp_kernel_row *k = &r->kernels.rows[i];
        bool is_slow = tp_kernel_is_slow(k, r->limits.kernel_ns);
        slow += is_slow;
        tp_grid_row(g, k);
        tp_grid_real(g, tp_percent(k->total_ns, r->kernels.total_ns));
        tp_grid_row(g, k);
        tp_grid_text(g, work_name(k->work));
        tp_grid_name(g, e, k->name);
        tp_grid_row(g, k);
        tp_grid_text(g, is_slow ? "yes" : "no");
    }
    if (r->kernels.n == 0)
        tp_grid_note(g, "no kernels in scope");
    if (slow)
        tp_grid_note(g, "slow: %lld of them take %.3g ms or more on average (--slow-kernel)",
                     (long long)slow, (double)r->limits.kernel_ns * 1e-6);
}

/* What the operator takes by itself, where the time goes: on the device, else on the host. */
static int64_t own_ns(const tp_operator_row *row, bool has_device)
{
    return has_device ? row->device_self_ns : row->self_union_ns;
}

/* "bottlenecks, ...: aten::mm 6.669 ms, ...". */
static void note_bottlenecks(const tp_trace_report *r, const tp_operators *o, tp_grid *g)
{
    enum { NAMED = 6 };
    TP_OWN(tp_buf) names = {0};
    char text[32];
    int64_t last = INT64_MAX;
    size_t n = 0;
    for (size_t i = 0; i < o->n; i++)
        n += own_ns(&o->rows[i], r->selection.n > 0) >= r->limits.operator_ns;
    for (size_t k = 0; k < n && k < NAMED; k++) { /* the largest below the last one */
        const tp_operator_row *most = NULL;
        for (size_t i = 0; i < o->n; i++) {
            int64_t own = own_ns(&o->rows[i], r->selection.n > 0);
            if (own < last && (!most || own > own_ns(most, r->selection.n > 0)))
                most = &o->rows[i];
        }
        if (!most)
            break;
        last = own_ns(most, r->selection.n > 0);
        tp_slice name = tp_events_name_text(r->file->events, most->name);
        tp_buf_addf(&names, "%s%.*s %s", k ? ", " : "", (int)TP_MIN(name.len, 60), name.data,
                    tp_human_ns(last, text));
    }
    if (n)
        tp_grid_note(g, "bottlenecks, %.3g ms or more by themselves (--slow-operator): %zu: %s%s",
                     (double)r->limits.operator_ns * 1e-6, n, tp_buf_str(&names),
                     n > NAMED ? ", ..." : "");
}

/* Bytes that each operator allocated, on any device; -1: the file does not tell. */
static int64_t *allocated_by(tp_trace_report *r, const tp_operators *o)
{
    const tp_memory_usage *u = tp_trace_report_memory(r);
    int64_t *bytes = tp_new(o->n + 1, sizeof *bytes);
    for (size_t i = 0; i < o->n; i++) {
        bytes[i] = u->n ? 0 : TP_UNKNOWN;
        for (size_t d = 0; d < u->n; d++)
            for (size_t k = 0; k < u->devices[d].n_allocated; k++)
                if (u->devices[d].allocated[k].op == o->rows[i].name)
                    bytes[i] = tp_add_saturating(bytes[i], u->devices[d].allocated[k].bytes);
    }
    return bytes;
}

void tp_view_operators(tp_trace_report *r, tp_grid *g)
{
    const tp_operators *o = tp_trace_report_operators(r);
    bool has_device = r->selection.n > 0, has_memory = tp_trace_report_memory(r)->n > 0;
    TP_FREED int64_t *allocated = allocated_by(r, o);
    char total[32];
    g->title = o->kind == TP_EVENT_CPU_OP         ? "Operators"
               : tp_trace_report_unread_device(r) ? "Spans"
                                                  : "Spans of the host";
    tp_grid_column(g, "name", "operator", TP_CELL_TEXT);
    TP_GRID_MEMBER(g, "calls", "calls", TP_CELL_COUNT, tp_operator_row, calls);
    TP_GRID_MEMBER(g, "host_self_ns", "host self", TP_CELL_NS, tp_operator_row, self_union_ns);
    TP_GRID_MEMBER(g, "host_total_ns", "host total", TP_CELL_NS, tp_operator_row, total_union_ns);
    TP_GRID_MEMBER(g, "device_self_ns", "device self", TP_CELL_NS, tp_operator_row, device_self_ns);
    TP_GRID_MEMBER(g, "device_total_ns", "device total", TP_CELL_NS, tp_operator_row,
                   device_total_union_ns);
    tp_grid_column(g, "mean_ns", "average", TP_CELL_NS);
    tp_grid_column(g, "device_share_pct", "share", TP_CELL_PERCENT);
    if (has_memory)
        tp_grid_column(g, "allocated_bytes", "allocated", TP_CELL_BYTES);
    else
        tp_grid_hidden(g, "allocated_bytes", TP_CELL_BYTES);
    tp_grid_hidden(g, "is_bottleneck", TP_CELL_TEXT);
    TP_GRID_MEMBER(g, "kernels", NULL, TP_CELL_COUNT, tp_operator_row, kernels);
    TP_GRID_MEMBER(g, "host_self_sum_ns", NULL, TP_CELL_NS, tp_operator_row, self_sum_ns);
    TP_GRID_MEMBER(g, "host_total_sum_ns", NULL, TP_CELL_NS, tp_operator_row, total_sum_ns);
    TP_GRID_MEMBER(g, "device_total_sum_ns", NULL, TP_CELL_NS, tp_operator_row,
                   device_total_sum_ns);
    for (size_t i = 0; i < o->n; i++) {
        const tp_operator_row *row = &o->rows[i];
        tp_grid_name(g, r->file->events, row->name);
        tp_grid_row(g, row);
        tp_grid_int(g, (has_device ? row->device_total_sum_ns : row->total_sum_ns) /
                           TP_MAX(row->calls, 1));
        tp_grid_real(g, r->has_work ? tp_percent(row->device_total_union_ns, r->sum.busy_ns)
                                    : (double)NAN);
        tp_grid_known(g, allocated[i]);
        tp_grid_text(g, own_ns(row, has_device) >= r->limits.operator_ns ? "yes" : "no");
        tp_grid_row(g, row);
    }
    note_bottlenecks(r, o, g);
    if (o->n == 0)
        tp_grid_note(g, "no operators recorded%s",
                     tp_trace_report_advice(r, ": profile with activities=[CPU, CUDA]"));
    else if (has_device && o->n_unattributed)
        tp_grid_note(g, "%zu device works (%s) belong to no operator of the file",
                     o->n_unattributed, tp_human_ns(o->device_unattributed_ns, total));
}

void tp_view_comm(tp_trace_report *r, tp_grid *g)
{
    const tp_comm_table *t = tp_trace_report_comm(r);
    const tp_events *e = r->file->events;
    g->title = "Communication, as this rank saw it";
    tp_grid_column(g, "collective", "collective", TP_CELL_TEXT);
    tp_grid_column(g, "dtype", "dtype", TP_CELL_TEXT);
    tp_grid_column(g, "bytes", "bytes", TP_CELL_BYTES);
    TP_GRID_MEMBER(g, "group_size", "ranks", TP_CELL_COUNT, tp_comm_row, group_size);
    TP_GRID_MEMBER(g, "count", "count", TP_CELL_COUNT, tp_comm_row, count);
    TP_GRID_MEMBER(g, "total_ns", "total", TP_CELL_NS, tp_comm_row, sum_ns);
    TP_GRID_MEMBER(g, "exposed_ns", "exposed", TP_CELL_NS, tp_comm_row, exposed_ns);
    TP_GRID_MEMBER(g, "p50_ns", "median", TP_CELL_NS, tp_comm_row, p50_ns);
    TP_GRID_MEMBER(g, "algbw_bytes_per_s", "algbw", TP_CELL_RATE, tp_comm_row, algbw);
    TP_GRID_MEMBER(g, "busbw_bytes_per_s", "busbw", TP_CELL_RATE, tp_comm_row, busbw);
    TP_GRID_MEMBER(g, "best_busbw_bytes_per_s", "best", TP_CELL_RATE, tp_comm_row, best_busbw);
    TP_GRID_MEMBER(g, "min_ns", NULL, TP_CELL_NS, tp_comm_row, min_ns);
    TP_GRID_MEMBER(g, "max_ns", NULL, TP_CELL_NS, tp_comm_row, max_ns);
    tp_grid_hidden(g, "group", TP_CELL_TEXT);
    tp_grid_hidden(g, "known_by", TP_CELL_TEXT);
    tp_grid_hidden(g, "kernel", TP_CELL_TEXT);
    for (size_t i = 0; i < t->n; i++) {
        const tp_comm_row *c = &t->rows[i];
        tp_grid_text(g, tp_collective_name(c->collective));
        tp_grid_text(g, c->dtype ? tp_events_str(e, c->dtype) : NULL);
        tp_grid_known(g, c->bytes < 0 ? TP_UNKNOWN : c->bytes);
        tp_grid_row(g, c);
        tp_grid_text(g, c->group ? tp_events_str(e, c->group) : NULL);
        tp_grid_text(g, c->by_metadata ? "metadata" : "name");
        tp_grid_name(g, e, c->kernel);
    }
    if (r->selection.n_gloo)
        tp_grid_note(g, TP_NOTE_GLOO, r->selection.n_gloo);
    if (t->n == 0) {
        tp_grid_note(g, "no communication in scope");
        return;
    }
    tp_grid_note(g, "bandwidth from one rank includes waiting for the others: a lower bound of "
                    "the links' (1 GB = 1e9 bytes)");
    if (t->grouped)
        tp_grid_note(g, "%lld of the kernels served several grouped calls: messages are summed",
                     (long long)t->grouped);
    if (t->with_metadata < t->kernels)
        tp_grid_note(g,
                     "%lld of %lld kernels have no collective metadata: no sizes, no bandwidth "
                     "(%s)",
                     (long long)(t->kernels - t->with_metadata), (long long)t->kernels,
                     r->file->kind == TP_FILE_NSIGHT ? "Nsight records them with --trace=cuda,nvtx"
                                                     : "PyTorch 2.3 and newer record them, of "
                                                       "calls of torch.distributed that began "
                                                       "inside the recording");
}

/* All bytes over all time, of what the path can do; a copy within the device reads and writes it.
 */
static double of_peak(const tp_copy_row *c, const tp_device_peaks *p)
{
    double rate = c->sum_ns > 0 ? (double)c->bytes / (double)c->sum_ns * 1e9 : (double)NAN;
    switch (c->direction) {
    case TP_COPY_DEVICE_TO_DEVICE:
        return p ? 100 * 2 * rate / p->memory : (double)NAN;
    case TP_COPY_FILL:
        return p ? 100 * rate / p->memory : (double)NAN;
    case TP_COPY_HOST_TO_DEVICE:
    case TP_COPY_DEVICE_TO_HOST:
        return p ? 100 * rate / p->link : (double)NAN;
    default:
        return (double)NAN;
    }
}

/* What cannot be is said to be doubtful. */
static void note_beyond_peak(tp_grid *g, double most_pct)
{
    if (most_pct > 100)
        tp_grid_note(g,
                     "! %.0f %% of the peak: times or sizes of the file are wrong, the device is "
                     "another than its name says, or a cache answered",
                     most_pct);
}

void tp_view_bandwidth(tp_trace_report *r, tp_grid *g)
{
    double most_pct = 0;
    const tp_copy_table *t = tp_trace_report_copies(r);
    const tp_device_peaks *peaks = tp_device_peaks_of(&r->selection);
    g->title = "Copies and fills by direction";
    tp_grid_column(g, "direction", "direction", TP_CELL_TEXT);
    TP_GRID_MEMBER(g, "count", "count", TP_CELL_COUNT, tp_copy_row, count);
    TP_GRID_MEMBER(g, "bytes", "bytes", TP_CELL_BYTES, tp_copy_row, bytes);
    TP_GRID_MEMBER(g, "total_ns", "total", TP_CELL_NS, tp_copy_row, sum_ns);
    TP_GRID_MEMBER(g, "p50_bytes", "median size", TP_CELL_BYTES, tp_copy_row, p50_bytes);
    TP_GRID_MEMBER(g, "mean_bytes_per_s", "mean", TP_CELL_RATE, tp_copy_row, mean_rate);
    TP_GRID_MEMBER(g, "p50_bytes_per_s", "median", TP_CELL_RATE, tp_copy_row, p50_rate);
    TP_GRID_MEMBER(g, "p90_bytes_per_s", "p90", TP_CELL_RATE, tp_copy_row, p90_rate);
    TP_GRID_MEMBER(g, "max_bytes_per_s", "max", TP_CELL_RATE, tp_copy_row, max_rate);
    tp_grid_column(g, "of_peak_pct", "of peak", TP_CELL_PERCENT);
    TP_GRID_MEMBER(g, "pageable", "pageable", TP_CELL_COUNT, tp_copy_row, pageable);
    TP_GRID_MEMBER(g, "union_ns", NULL, TP_CELL_NS, tp_copy_row, union_ns);
    TP_GRID_MEMBER(g, "without_size", NULL, TP_CELL_COUNT, tp_copy_row, unknown_bytes);
    TP_GRID_MEMBER(g, "of_0_ns", NULL, TP_CELL_COUNT, tp_copy_row, zero_ns);
    for (size_t i = 0; i < t->n; i++) {
        const tp_copy_row *c = &t->rows[i];
        tp_grid_text(g, tp_copy_direction_name(c->direction));
        tp_grid_row(g, c);
        tp_grid_real(g, of_peak(c, peaks));
        tp_grid_row(g, c);
        most_pct = fmax(most_pct, of_peak(c, peaks));
    }
    if (t->n == 0)
        tp_grid_note(g, "no copies or fills in scope");
    else
        tp_grid_note(g, "bandwidth = bytes / duration, computed here; the file's own field is not "
                        "used");
    if (t->n && peaks)
        tp_grid_note(g,
                     "of peak: all bytes over all time; data sheet of '%s': memory %.0f GB/s (a "
                     "copy within the device reads and writes), link to the host %.0f GB/s",
                     peaks->device, peaks->memory * 1e-9, peaks->link * 1e-9);
    else if (t->n)
        tp_grid_note(g, "of peak: %s",
                     r->selection.n_devices > 1
                         ? "the devices are not all of one kind whose data sheet is known here"
                         : "the device is none whose data sheet is known here");
    note_beyond_peak(g, most_pct);
}

static void put_stream(tp_trace_report *r, tp_grid *g, const tp_launch_row *row)
{
    int64_t stream = r->file->events->tracks[row->track].stream;
    tp_grid_text(g, r->selection.devices[row->device]);
    tp_grid_known(g, stream);
}

void tp_view_launch(tp_trace_report *r, tp_grid *g)
{
    const tp_launch_table *t = tp_trace_report_launches(r);
    g->title = "From launching call to start on the device";
    tp_grid_column(g, "device", "device", TP_CELL_TEXT);
    tp_grid_column(g, "stream", "stream", TP_CELL_COUNT);
    TP_GRID_MEMBER(g, "works", "works", TP_CELL_COUNT, tp_launch_row, works);
    TP_GRID_MEMBER(g, "launched", "with call", TP_CELL_COUNT, tp_launch_row, launched);
    TP_GRID_MEMBER(g, "delay_p50_ns", "delay median", TP_CELL_NS, tp_launch_row, delay_p50_ns);
    TP_GRID_MEMBER(g, "delay_p90_ns", "p90", TP_CELL_NS, tp_launch_row, delay_p90_ns);
    TP_GRID_MEMBER(g, "delay_max_ns", "max", TP_CELL_NS, tp_launch_row, delay_max_ns);
    TP_GRID_MEMBER(g, "call_p50_ns", "call median", TP_CELL_NS, tp_launch_row, call_p50_ns);
    TP_GRID_MEMBER(g, "call_max_ns", "call max", TP_CELL_NS, tp_launch_row, call_max_ns);
    TP_GRID_MEMBER(g, "shorter_than_call", "short", TP_CELL_COUNT, tp_launch_row, short_works);
    TP_GRID_MEMBER(g, "call_p90_ns", NULL, TP_CELL_NS, tp_launch_row, call_p90_ns);
    TP_GRID_MEMBER(g, "call_total_ns", NULL, TP_CELL_NS, tp_launch_row, call_sum_ns);
    TP_GRID_MEMBER(g, "delay_total_ns", NULL, TP_CELL_NS, tp_launch_row, delay_sum_ns);
    TP_GRID_MEMBER(g, "before_call", NULL, TP_CELL_COUNT, tp_launch_row, before_call);
    TP_GRID_MEMBER(g, "during_call", NULL, TP_CELL_COUNT, tp_launch_row, during_call);
    for (size_t i = 0; i < t->n; i++) {
        const tp_launch_row *row = &t->rows[i];
        put_stream(r, g, row);
        tp_grid_row(g, row);
    }
    if (t->n == 0)
        tp_grid_note(g, "no device work in scope");
    else if (t->all.launched == 0 && r->selection.n_shared)
        tp_grid_note(g, "which call launched which work cannot be told: numbers of several "
                        "processes repeat, give the file of each rank by itself");
    else if (t->all.launched == 0)
        tp_grid_note(g, "no launching calls in the file: record host activities too");
    else
        tp_grid_note(g, "short: device work that, with all else that its call launched, took less "
                        "time than the call");
}

void tp_view_queue(tp_trace_report *r, tp_grid *g)
{
    const tp_launch_table *t = tp_trace_report_launches(r);
    g->title = "Work launched and not yet started, per stream";
    tp_grid_column(g, "device", "device", TP_CELL_TEXT);
    tp_grid_column(g, "stream", "stream", TP_CELL_COUNT);
    TP_GRID_MEMBER(g, "launched", "launches", TP_CELL_COUNT, tp_launch_row, calls);
    TP_GRID_MEMBER(g, "queue_mean", "mean length", TP_CELL_REAL, tp_launch_row, queue_mean);
    TP_GRID_MEMBER(g, "queue_max", "max length", TP_CELL_COUNT, tp_launch_row, queue_max);
    TP_GRID_MEMBER(g, "observed_ns", "observed", TP_CELL_NS, tp_launch_row, queue_observed_ns);
    TP_GRID_MEMBER(g, "empty_ns", "empty", TP_CELL_NS, tp_launch_row, queue_empty_ns);
    TP_GRID_MEMBER(g, "full_ns", "full (1024)", TP_CELL_NS, tp_launch_row, queue_full_ns);
    for (size_t i = 0; i < t->n; i++) {
        const tp_launch_row *row = &t->rows[i];
        put_stream(r, g, row);
        tp_grid_row(g, row);
    }
    tp_grid_note(g,
                 t->n ? "the mean is weighted by time, between the first launch and the last start"
                      : "no device work in scope");
}

void tp_view_roofline(tp_trace_report *r, tp_grid *g)
{
    const tp_events *e = r->file->events;
    tp_roofline t;
    double most_pct = 0;
    tp_roofline_make(&r->selection, tp_trace_report_operators(r), &t);
    g->title = "Arithmetic where it is known";
    tp_grid_column(g, "name", "operator", TP_CELL_TEXT);
    tp_grid_column(g, "calls", "calls", TP_CELL_COUNT);
    tp_grid_column(g, "flops", "FLOPs", TP_CELL_REAL);
    tp_grid_column(g, "time_ns", t.by_host ? "host time" : "device time", TP_CELL_NS);
    tp_grid_column(g, "tflops_per_s", "TFLOP/s", TP_CELL_REAL);
    tp_grid_column(g, "peak_tflops_per_s", "peak", TP_CELL_REAL);
    tp_grid_column(g, "of_peak_pct", "of peak", TP_CELL_PERCENT);
    tp_grid_column(g, "types", "types", TP_CELL_TEXT);
    for (size_t i = 0; i < t.n; i++) {
        const tp_roofline_row *row = &t.rows[i];
        double rate = row->flops / (double)row->device_ns * 1e9;
        tp_grid_name(g, e, row->name);
        tp_grid_int(g, row->calls);
        tp_grid_real(g, row->flops);
        tp_grid_int(g, row->device_ns);
        tp_grid_real(g, rate * 1e-12);
        tp_grid_real(g, row->peak * 1e-12);
        tp_grid_real(g, 100 * rate / row->peak);
        most_pct = fmax(most_pct, 100 * rate / row->peak);
        tp_grid_text(g, row->types ? tp_events_str(e, row->types) : NULL);
    }
    if (t.n == 0 && t.has_flops)
        tp_grid_note(g, "FLOPs are known, and no time of the device to go with them: none of its "
                        "work in scope is linked to an operator that has them");
    else if (t.n == 0)
        tp_grid_note(g, "no FLOPs known%s",
                     t.has_shapes ? ": shapes give those of products of matrices alone, and there "
                                    "is none"
                                  : tp_trace_report_advice(r, ": profile with record_shapes=True"));
    else if (t.by_host)
        tp_grid_note(g, "known for %.1f %% of the time in operators, as the host's clock saw it",
                     tp_percent(t.covered_ns, t.device_ns));
    else
        tp_grid_note(g,
                     "known for %.1f %% of device time; peaks are data-sheet figures of dense "
                     "products (32-bit ones without TF32), matched by the device's name",
                     tp_percent(t.covered_ns, t.device_ns));
    note_beyond_peak(g, most_pct);
    tp_roofline_release(&t);
}
