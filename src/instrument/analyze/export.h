/* export.h - a trace in the formats of other tools.
 *
 *     chrome     trace-event JSON: chrome://tracing, Perfetto, HTA.  Times keep their
 *                nanoseconds as decimals; arguments are those of the file where it had any
 *     perfetto   Perfetto's own protobuf (TrackEvent with interned names), about a tenth of
 *                the size.  Spans that overlap without nesting go to tracks of their own;
 *                memory is a counter, which events without totals have no value for
 *     collapsed  "outer;inner nanoseconds" per line: flamegraph.pl, speedscope, inferno
 *     csv        one line per span, instant and memory event (these last)
 *
 * Bytes go to a sink in pieces; nothing is held whole. */
#ifndef TP_INSTRUMENT_ANALYZE_EXPORT_H
#define TP_INSTRUMENT_ANALYZE_EXPORT_H

#include "instrument/analyze/selection.h"
#include "instrument/analyze/stacks.h"

typedef tp_status (*tp_export_write)(void *context, const void *bytes, size_t n, tp_error *err);

typedef struct {
    tp_export_write write;
    void *context;
    tp_buf pending;
    uint64_t n_written; /* events, or lines of stacks */
} tp_export_sink;

/* Hand over what is pending when it is much, or always. */
TP_CHECKED tp_status tp_export_flush(tp_export_sink *sink, bool all, tp_error *err);
/* One more event is pending. */
TP_CHECKED tp_status tp_export_written(tp_export_sink *sink, tp_error *err);

TP_CHECKED tp_status tp_export_chrome(const tp_events *events, tp_export_sink *sink, tp_error *err);
TP_CHECKED tp_status tp_export_perfetto(const tp_events *events, tp_export_sink *sink,
                                        tp_error *err);
TP_CHECKED tp_status tp_export_collapsed(const tp_selection *selection, tp_stacks_of what,
                                         tp_export_sink *sink, tp_error *err);
TP_CHECKED tp_status tp_export_csv(const tp_events *events, tp_export_sink *sink, tp_error *err);

#endif
