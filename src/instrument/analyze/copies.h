/* copies.h - copies and fills: how much, which way, how fast.
 *
 * Bandwidth is bytes / duration in bytes per nanosecond = GB/s (1e9).  It is always
 * computed here: the field "memory bandwidth (GB/s)" of traces from April to September
 * 2024 was divided by clock ticks.  A copy of 0 ns has no bandwidth and is counted. */
#ifndef TP_INSTRUMENT_ANALYZE_COPIES_H
#define TP_INSTRUMENT_ANALYZE_COPIES_H

#include "instrument/analyze/selection.h"

typedef enum {
    TP_COPY_HOST_TO_DEVICE,
    TP_COPY_DEVICE_TO_HOST,
    TP_COPY_DEVICE_TO_DEVICE,
    TP_COPY_PEER_TO_PEER,
    TP_COPY_HOST_TO_HOST,
    TP_COPY_OTHER,
    TP_COPY_FILL,
    TP_COPY_DIRECTIONS
} tp_copy_direction;

const char *tp_copy_direction_name(tp_copy_direction direction); /* "HtoD" */

typedef struct {
    tp_copy_direction direction;
    int64_t count, bytes, sum_ns, union_ns;
    int64_t unknown_bytes; /* copies whose size the file does not give */
    int64_t zero_ns;       /* copies of no duration */
    int64_t pageable;      /* from or to pageable host memory */
    int64_t p50_bytes;
    double mean_rate, p50_rate, p90_rate, max_rate; /* bytes per second; NaN when unknown */
} tp_copy_row;

typedef struct {
    tp_copy_row rows[TP_COPY_DIRECTIONS]; /* those with count > 0 come first, by time */
    size_t n;
} tp_copy_table;

void tp_copies_make(const tp_selection *selection, tp_copy_table *ret);

#endif
