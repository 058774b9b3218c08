/* allocations.h - what was allocated, by size and by how long it lived.
 *
 * A class of sizes holds blocks up to its bound; a block that was freed counts under the time that
 * it lived, one that was not freed in the window is never_freed. */
#ifndef TP_INSTRUMENT_ANALYZE_ALLOCATIONS_H
#define TP_INSTRUMENT_ANALYZE_ALLOCATIONS_H

#include "instrument/ingest/events.h"

enum { TP_ALLOCATION_SIZES = 6, TP_ALLOCATION_LIVES = 4 };

typedef struct {
    int64_t count, bytes, frees, never_freed, never_freed_bytes;
    int64_t lived[TP_ALLOCATION_LIVES]; /* 100 us at most, 10 ms, 1 s, longer */
} tp_allocation_size;

typedef struct {
    tp_allocation_size sizes[TP_ALLOCATION_SIZES];
} tp_allocations;

const char *tp_allocation_size_name(size_t size); /* "to 1 KiB", ... "above 256 MiB" */

void tp_allocation_made(tp_allocations *a, int64_t bytes);
/* One that was made before; `lived_ns` TP_UNKNOWN: the file has no times. */
void tp_allocation_freed(tp_allocations *a, int64_t bytes, int64_t lived_ns);

#endif
