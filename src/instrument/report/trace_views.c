/* trace_views.c - views of work on the device: kernels, operators, communication, copies, launches.
 */
#include "instrument/report/trace_report.h"

#include <math.h>

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
    tp_grid_column(g, "total_ns", "total", TP_CELL_NS);
    tp_grid_column(g, "share_pct", "share", TP_CELL_PERCENT);
    tp_grid_column(g, "count", "count", TP_CELL_COUNT);
    tp_grid_column(g, "p50_ns", "median", TP_CELL_NS);
    tp_grid_column(g, "max_ns", "max", TP_CELL_NS);
    tp_grid_column(g, "class", "class", TP_CELL_TEXT);
    tp_grid_column(g, "name", "kernel", TP_CELL_TEXT);
    tp_grid_hidden(g, "min_ns", TP_CELL_NS);
    tp_grid_hidden(g, "p90_ns", TP_CELL_NS);
    tp_grid_hidden(g, "p99_ns", TP_CELL_NS);
    tp_grid_hidden(g, "mean_ns", TP_CELL_REAL);
    tp_grid_hidden(g, "sd_ns", TP_CELL_REAL);
    for (size_t i = 0; i < r->kernels.n; i++) {
        const tp_kernel_row *k = &r->kernels.rows[i];
        tp_grid_int(g, k->total_ns);
        tp_grid_real(g, tp_percent(k->total_ns, r->kernels.total_ns));
        tp_grid_int(g, k->count);
        tp_grid_int(g, k->p50_ns);
        tp_grid_int(g, k->max_ns);
        tp_grid_text(g, work_name(k->work));
        tp_grid_name(g, e, k->name);
        tp_grid_int(g, k->min_ns);
        tp_grid_int(g, k->p90_ns);
        tp_grid_int(g, k->p99_ns);
        tp_grid_real(g, k->mean_ns);
        tp_grid_real(g, k->sd_ns);
    }
    if (r->kernels.n == 0)
        tp_grid_note(g, "no kernels in scope");
}

void tp_view_operators(tp_trace_report *r, tp_grid *g)
{
    const tp_operators *o = tp_trace_report_operators(r);
    bool has_device = r->selection.n > 0;
    char total[32];
    g->title = o->kind == TP_EVENT_CPU_OP ? "Operators" : "Spans of the host";
    tp_grid_column(g, "name", "operator", TP_CELL_TEXT);
    tp_grid_column(g, "calls", "calls", TP_CELL_COUNT);
    tp_grid_column(g, "host_self_ns", "host self", TP_CELL_NS);
    tp_grid_column(g, "host_total_ns", "host total", TP_CELL_NS);
    tp_grid_column(g, "device_self_ns", "device self", TP_CELL_NS);
    tp_grid_column(g, "device_total_ns", "device total", TP_CELL_NS);
    tp_grid_column(g, "device_share_pct", "share", TP_CELL_PERCENT);
    tp_grid_hidden(g, "kernels", TP_CELL_COUNT);
    tp_grid_hidden(g, "host_self_sum_ns", TP_CELL_NS);
    tp_grid_hidden(g, "host_total_sum_ns", TP_CELL_NS);
    tp_grid_hidden(g, "device_total_sum_ns", TP_CELL_NS);
    for (size_t i = 0; i < o->n; i++) {
        const tp_operator_row *row = &o->rows[i];
        tp_grid_name(g, r->file->events, row->name);
        tp_grid_int(g, row->calls);
        tp_grid_int(g, row->self_union_ns);
        tp_grid_int(g, row->total_union_ns);
        tp_grid_int(g, row->device_self_ns);
        tp_grid_int(g, row->device_total_union_ns);
        tp_grid_real(g, r->has_work ? tp_percent(row->device_total_union_ns, r->all.busy_ns)
                                    : (double)NAN);
        tp_grid_int(g, row->kernels);
        tp_grid_int(g, row->self_sum_ns);
        tp_grid_int(g, row->total_sum_ns);
        tp_grid_int(g, row->device_total_sum_ns);
    }
    if (o->n == 0)
        tp_grid_note(g, "no operators recorded: profile with activities=[CPU, CUDA]");
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
    tp_grid_column(g, "group_size", "ranks", TP_CELL_COUNT);
    tp_grid_column(g, "count", "count", TP_CELL_COUNT);
    tp_grid_column(g, "total_ns", "total", TP_CELL_NS);
    tp_grid_column(g, "exposed_ns", "exposed", TP_CELL_NS);
    tp_grid_column(g, "p50_ns", "median", TP_CELL_NS);
    tp_grid_column(g, "algbw_bytes_per_s", "algbw", TP_CELL_RATE);
    tp_grid_column(g, "busbw_bytes_per_s", "busbw", TP_CELL_RATE);
    tp_grid_column(g, "best_busbw_bytes_per_s", "best", TP_CELL_RATE);
    tp_grid_hidden(g, "min_ns", TP_CELL_NS);
    tp_grid_hidden(g, "max_ns", TP_CELL_NS);
    tp_grid_hidden(g, "group", TP_CELL_TEXT);
    tp_grid_hidden(g, "known_by", TP_CELL_TEXT);
    tp_grid_hidden(g, "kernel", TP_CELL_TEXT);
    for (size_t i = 0; i < t->n; i++) {
        const tp_comm_row *c = &t->rows[i];
        tp_grid_text(g, tp_collective_name(c->collective));
        tp_grid_text(g, c->dtype ? tp_events_str(e, c->dtype) : NULL);
        tp_grid_known(g, c->bytes < 0 ? TP_UNKNOWN : c->bytes);
        tp_grid_known(g, c->group_size);
        tp_grid_int(g, c->count);
        tp_grid_int(g, c->sum_ns);
        tp_grid_int(g, c->exposed_ns);
        tp_grid_int(g, c->p50_ns);
        tp_grid_real(g, c->algbw);
        tp_grid_real(g, c->busbw);
        tp_grid_real(g, c->best_busbw);
        tp_grid_int(g, c->min_ns);
        tp_grid_int(g, c->max_ns);
        tp_grid_text(g, c->group ? tp_events_str(e, c->group) : NULL);
        tp_grid_text(g, c->by_metadata ? "metadata" : "name");
        tp_grid_name(g, e, c->kernel);
    }
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
                                                     : "PyTorch 2.3 and newer record them");
}

void tp_view_bandwidth(tp_trace_report *r, tp_grid *g)
{
    const tp_copy_table *t = tp_trace_report_copies(r);
    g->title = "Copies and fills by direction";
    tp_grid_column(g, "direction", "direction", TP_CELL_TEXT);
    tp_grid_column(g, "count", "count", TP_CELL_COUNT);
    tp_grid_column(g, "bytes", "bytes", TP_CELL_BYTES);
    tp_grid_column(g, "total_ns", "total", TP_CELL_NS);
    tp_grid_column(g, "p50_bytes", "median size", TP_CELL_BYTES);
    tp_grid_column(g, "mean_bytes_per_s", "mean", TP_CELL_RATE);
    tp_grid_column(g, "p50_bytes_per_s", "median", TP_CELL_RATE);
    tp_grid_column(g, "p90_bytes_per_s", "p90", TP_CELL_RATE);
    tp_grid_column(g, "max_bytes_per_s", "max", TP_CELL_RATE);
    tp_grid_column(g, "pageable", "pageable", TP_CELL_COUNT);
    tp_grid_hidden(g, "union_ns", TP_CELL_NS);
    tp_grid_hidden(g, "without_size", TP_CELL_COUNT);
    tp_grid_hidden(g, "of_0_ns", TP_CELL_COUNT);
    for (size_t i = 0; i < t->n; i++) {
        const tp_copy_row *c = &t->rows[i];
        tp_grid_text(g, tp_copy_direction_name(c->direction));
        tp_grid_int(g, c->count);
        tp_grid_int(g, c->bytes);
        tp_grid_int(g, c->sum_ns);
        tp_grid_known(g, c->p50_bytes);
        tp_grid_real(g, c->mean_rate);
        tp_grid_real(g, c->p50_rate);
        tp_grid_real(g, c->p90_rate);
        tp_grid_real(g, c->max_rate);
        tp_grid_int(g, c->pageable);
        tp_grid_int(g, c->union_ns);
        tp_grid_int(g, c->unknown_bytes);
        tp_grid_int(g, c->zero_ns);
    }
    if (t->n == 0)
        tp_grid_note(g, "no copies or fills in scope");
    else
        tp_grid_note(g, "bandwidth = bytes / duration, computed here; the file's own field is not "
                        "used");
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
    tp_grid_column(g, "works", "works", TP_CELL_COUNT);
    tp_grid_column(g, "launched", "with call", TP_CELL_COUNT);
    tp_grid_column(g, "delay_p50_ns", "delay median", TP_CELL_NS);
    tp_grid_column(g, "delay_p90_ns", "p90", TP_CELL_NS);
    tp_grid_column(g, "delay_max_ns", "max", TP_CELL_NS);
    tp_grid_column(g, "call_p50_ns", "call median", TP_CELL_NS);
    tp_grid_column(g, "call_max_ns", "call max", TP_CELL_NS);
    tp_grid_column(g, "shorter_than_call", "short", TP_CELL_COUNT);
    tp_grid_hidden(g, "call_p90_ns", TP_CELL_NS);
    tp_grid_hidden(g, "call_total_ns", TP_CELL_NS);
    tp_grid_hidden(g, "delay_total_ns", TP_CELL_NS);
    tp_grid_hidden(g, "before_call", TP_CELL_COUNT);
    tp_grid_hidden(g, "during_call", TP_CELL_COUNT);
    for (size_t i = 0; i < t->n; i++) {
        const tp_launch_row *row = &t->rows[i];
        put_stream(r, g, row);
        tp_grid_int(g, row->works);
        tp_grid_int(g, row->launched);
        tp_grid_known(g, row->delay_p50_ns);
        tp_grid_known(g, row->delay_p90_ns);
        tp_grid_known(g, row->delay_max_ns);
        tp_grid_known(g, row->call_p50_ns);
        tp_grid_known(g, row->call_max_ns);
        tp_grid_int(g, row->short_works);
        tp_grid_known(g, row->call_p90_ns);
        tp_grid_int(g, row->call_sum_ns);
        tp_grid_int(g, row->delay_sum_ns);
        tp_grid_int(g, row->before_call);
        tp_grid_int(g, row->during_call);
    }
    if (t->n == 0)
        tp_grid_note(g, "no device work in scope");
    else if (t->all.launched == 0)
        tp_grid_note(g, "no launching calls in the file: record host activities too");
    else
        tp_grid_note(g, "short: device work that took less time than the call that launched it");
}

void tp_view_queue(tp_trace_report *r, tp_grid *g)
{
    const tp_launch_table *t = tp_trace_report_launches(r);
    g->title = "Work launched and not yet started, per stream";
    tp_grid_column(g, "device", "device", TP_CELL_TEXT);
    tp_grid_column(g, "stream", "stream", TP_CELL_COUNT);
    tp_grid_column(g, "launched", "launches", TP_CELL_COUNT);
    tp_grid_column(g, "queue_mean", "mean length", TP_CELL_REAL);
    tp_grid_column(g, "queue_max", "max length", TP_CELL_COUNT);
    tp_grid_column(g, "observed_ns", "observed", TP_CELL_NS);
    tp_grid_column(g, "empty_ns", "empty", TP_CELL_NS);
    tp_grid_column(g, "full_ns", "full (1024)", TP_CELL_NS);
    for (size_t i = 0; i < t->n; i++) {
        const tp_launch_row *row = &t->rows[i];
        put_stream(r, g, row);
        tp_grid_int(g, row->launched);
        tp_grid_real(g, row->queue_mean);
        tp_grid_int(g, row->queue_max);
        tp_grid_int(g, row->queue_observed_ns);
        tp_grid_int(g, row->queue_empty_ns);
        tp_grid_int(g, row->queue_full_ns);
    }
    tp_grid_note(g,
                 t->n ? "the mean is weighted by time, between the first launch and the last start"
                      : "no device work in scope");
}

void tp_view_roofline(tp_trace_report *r, tp_grid *g)
{
    const tp_events *e = r->file->events;
    tp_roofline t;
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
        tp_grid_text(g, row->types ? tp_events_str(e, row->types) : NULL);
    }
    if (t.n == 0)
        tp_grid_note(g, "no FLOPs known: profile with record_shapes=True, with_flops=True");
    else if (t.by_host)
        tp_grid_note(g, "known for %.1f %% of the time in operators, as the host's clock saw it",
                     tp_percent(t.covered_ns, t.device_ns));
    else
        tp_grid_note(g,
                     "known for %.1f %% of device time; peaks are data-sheet figures of dense "
                     "products (32-bit ones without TF32), matched by the device's name",
                     tp_percent(t.covered_ns, t.device_ns));
    tp_roofline_release(&t);
}
