/* snapshot_usage.h - what a PyTorch memory snapshot says about memory.
 *
 * Of the allocator's state: reserved, allocated, active and requested bytes, and how much
 * of what is reserved is unusable (fragmentation).  Of each device's ring of events:
 * how much was allocated and freed, what stayed, how long things lived, and when usage
 * was highest and whose it was.
 *
 * The ring's beginning may be missing, so usage at its start is reconstructed backwards
 * from the final state: initial = active at the end - allocated + freed in the ring.
 * `net` figures count from 0 at the ring's start, `absolute` ones from that. */
#ifndef TP_INSTRUMENT_ANALYZE_SNAPSHOT_USAGE_H
#define TP_INSTRUMENT_ANALYZE_SNAPSHOT_USAGE_H

#include "instrument/analyze/allocations.h"
#include "instrument/ingest/memory_snapshot.h"

typedef struct {
    uint32_t text; /* string of the snapshot */
    int64_t n;
} tp_text_count;

typedef struct {
    uint32_t device;
    int64_t entries;
    tp_text_count *actions; /* in order of appearance */
    size_t n_actions;
    int64_t alloc_bytes, freed_bytes;
    int64_t unmatched_frees, unmatched_bytes; /* whose allocation is not in the ring */
    int64_t live, live_bytes;                 /* allocated in the ring and not freed in it */
    int64_t net_bytes, peak_net_bytes;
    int64_t lifetime_us_median, lifetime_us_p90; /* TP_UNKNOWN without lifetimes */
    tp_allocations allocations;
    int64_t duration_us;   /* TP_UNKNOWN without times */
    int64_t initial_bytes; /* reconstructed */
    int64_t peak_bytes;    /* initial + the largest net */
    size_t peak_entry;     /* index of the entry that reached it */
    int64_t ooms;          /* allocations that failed */
    size_t last_oom;       /* index of the entry of the last one, when there is one */
} tp_snapshot_device;

/* Bytes by the stack that allocated them. */
typedef struct {
    uint32_t stack;
    int64_t bytes, count;
} tp_stack_bytes;

typedef struct {
    int64_t reserved, allocated, active; /* sums over segments */
    int64_t requested;                   /* likewise; TP_UNKNOWN before PyTorch 2.1 */
    tp_text_count *states;               /* blocks by state */
    size_t n_states;
    int64_t inactive_bytes, largest_inactive;
    int64_t rounding_bytes;      /* size - requested of active blocks */
    int64_t free_segment_bytes;  /* of segments without any active block: could be returned */
    tp_snapshot_device *devices; /* those whose ring is not empty */
    size_t n_devices;
    tp_stack_bytes *final; /* active blocks by stack, most bytes first */
    size_t n_final;
} tp_snapshot_usage;

void tp_snapshot_usage_make(const tp_snapshot *snapshot, tp_snapshot_usage *ret);
void tp_snapshot_usage_release(tp_snapshot_usage *usage);

/* What was allocated at the peak, by stack, most bytes first; freed by the caller.  Memory
 * from before the ring is under the stack of the final block when it still lives, else
 * under stack 0. */
size_t tp_snapshot_at_peak(const tp_snapshot *snapshot, const tp_snapshot_device *device,
                           tp_stack_bytes **ret);

/* "file.py:12 function < caller.py:34 caller": the innermost `depth` Python frames; in
 * stacks without any, the native ones without those of the allocator. */
void tp_snapshot_stack_text(const tp_snapshot *snapshot, uint32_t stack, size_t depth, tp_buf *ret);

#endif
