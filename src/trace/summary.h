/* summary.h - what a recording in memory adds up to, by name.
 *
 * Self time is a zone's own: its duration less that of the zones directly inside it on the
 * same thread.  Total time counts a name that is inside itself once.  So self times add up to
 * the time inside any zone, and no total exceeds it. */
#ifndef TP_TRACE_SUMMARY_H
#define TP_TRACE_SUMMARY_H

#include "trace/trace.h"

typedef struct {
    const char *category, *name;
    uint64_t count;
    int64_t total_ns, self_ns, least_ns, most_ns;
    double flops, bytes; /* of all events; 0: not stated */
    uint64_t n_taken;    /* memory events with a plus in it and in nothing further inside */
    int64_t taken_bytes;
} tp_trace_row;

typedef struct {
    const char *kind;
    uint64_t n_taken, n_given;
    int64_t taken_bytes, given_bytes;
    int64_t peak_bytes; /* the most that lived at once of what was taken in the recording */
} tp_trace_memory_row;

typedef struct {
    tp_trace_row *rows; /* by self time, longest first */
    size_t n_rows;
    tp_trace_memory_row *memory; /* by bytes taken */
    size_t n_memory;
    uint64_t n_events, n_dropped;
    int64_t peak_allocated, peak_reserved; /* -1: no memory event */
} tp_trace_summary;

/* Of what is in the rings; texts belong to the sites. */
void tp_trace_summarize(tp_trace_summary *ret);
void tp_trace_summary_release(tp_trace_summary *summary);

#endif
