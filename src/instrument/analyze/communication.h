/* communication.h - the collectives of one rank, by what they do and how much they move.
 *
 * Kernels are grouped by collective, element type, bytes and group.  Seen from one rank, a
 * kernel's time includes waiting for the others, so algbw and busbw are lower bounds of
 * what the links did; `best` is the fastest call, the closest to them.  Bandwidths need
 * metadata (Collective name, In/Out msg nelems, dtype, Group size) and are NaN without.
 * One kernel can serve several grouped calls, whose metadata is then of one of them. */
#ifndef TP_INSTRUMENT_ANALYZE_COMMUNICATION_H
#define TP_INSTRUMENT_ANALYZE_COMMUNICATION_H

#include "instrument/analyze/collectives.h"
#include "instrument/analyze/selection.h"

typedef struct {
    tp_collective collective;
    bool by_metadata;      /* else from the kernel's name */
    uint32_t kernel;       /* name of one of the kernels */
    uint32_t dtype, group; /* strings of the trace; 0: not given */
    int64_t bytes;         /* S of nccl-tests; -1 unknown */
    int64_t group_size;    /* TP_UNKNOWN */
    int64_t count, sum_ns, min_ns, p50_ns, max_ns;
    int64_t exposed_ns;              /* parts of these kernels in which no compute ran, summed */
    double algbw, busbw, best_busbw; /* bytes per second: of the median and the fastest */
} tp_comm_row;

typedef struct {
    tp_comm_row *rows; /* by time, descending */
    size_t n;
    int64_t kernels, with_metadata;
    int64_t grouped;     /* kernels that served several calls: their messages are summed */
    int64_t moved_bytes; /* sum of S where known */
} tp_comm_table;

/* S of a kernel with metadata, -1 when it cannot be told. */
int64_t tp_comm_bytes(const tp_events *events, const tp_event_collective *metadata);

void tp_comm_make(const tp_selection *selection, tp_comm_table *ret);
void tp_comm_release(tp_comm_table *table);

#endif
