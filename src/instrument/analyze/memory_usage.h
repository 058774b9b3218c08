/* memory_usage.h - memory over time, from the [memory] instants of a trace.
 *
 * Instants are ordered by (time, Ev Idx) per device: their order in the file is neither.
 * The running totals are those of the file where it has them ("Total Allocated"), else sums
 * from the first instant on.  Only what is allocated and freed inside the window can be
 * paired; a block allocated and not freed may be a leak, a cache, or freed after the end.
 * Memory belongs to the innermost operator of its thread at that time. */
#ifndef TP_INSTRUMENT_ANALYZE_MEMORY_USAGE_H
#define TP_INSTRUMENT_ANALYZE_MEMORY_USAGE_H

#include "instrument/analyze/allocations.h"
#include "instrument/analyze/leak.h"
#include "instrument/analyze/operators.h"

typedef struct {
    int64_t ts, allocated, reserved; /* after the event; reserved may be TP_UNKNOWN */
} tp_memory_point;

typedef struct {
    uint32_t op; /* name, or TP_NO_ROW: no operator */
    int64_t bytes, count;
} tp_memory_owner;

typedef struct {
    int16_t device_type; /* c10 */
    int32_t device;
    char label[24]; /* "CPU", "CUDA 0", "HIP 1" */
    size_t n;       /* instants */
    int64_t allocs, frees, alloc_bytes, free_bytes;
    bool has_totals;
    bool has_addresses;          /* of all: without, which allocation a free ends is unknown */
    int64_t first_bytes;         /* before the first instant; TP_UNKNOWN without totals */
    int64_t peak_bytes, peak_ts; /* allocated; without totals since the first instant */
    int64_t peak_reserved;       /* TP_UNKNOWN */
    int64_t last_bytes;          /* TP_UNKNOWN without totals */
    /* TP_UNKNOWN without addresses */
    int64_t never_freed, never_freed_bytes;   /* allocated in the window, alive at its end */
    int64_t older_frees, older_free_bytes;    /* freed here, allocated before */
    int64_t lifetime_p50_ns, lifetime_p90_ns; /* TP_UNKNOWN without pairs */
    tp_allocations allocations;
    tp_memory_owner *at_peak; /* alive at the peak, by operator, most first */
    size_t n_at_peak;
    tp_memory_owner *kept; /* never freed, by operator */
    size_t n_kept;
    tp_memory_owner *allocated; /* whether freed or not, by operator; in the steps in scope */
    size_t n_allocated;
    tp_memory_point *points; /* every instant in order */
    double *step_bytes;      /* in use at the end of every step */
    size_t n_steps;
    tp_leak leak;
} tp_memory_device;

typedef struct {
    tp_memory_device *devices; /* accelerators before the CPU */
    size_t n;
} tp_memory_usage;

TP_CHECKED tp_status tp_memory_usage_make(const tp_selection *selection,
                                          const tp_operators *operators, tp_memory_usage *ret,
                                          tp_error *err);
void tp_memory_usage_release(tp_memory_usage *usage);

#endif
