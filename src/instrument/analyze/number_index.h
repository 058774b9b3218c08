/* number_index.h - from a number of the file to a row, for many look-ups in similar order.
 *
 * A sorted array, searched outwards from where the last look-up ended: correlations count
 * up with time, so the next one is near.  Unlike number_map.h it is filled once. */
#ifndef TP_INSTRUMENT_ANALYZE_NUMBER_INDEX_H
#define TP_INSTRUMENT_ANALYZE_NUMBER_INDEX_H

#include <stdbool.h>

#include "instrument/analyze/sort.h"
#include "instrument/ingest/number_map.h"

typedef struct {
    tp_keyed *v;
    size_t n, cap, hint;
} tp_number_index; /* zeroed: empty */

void tp_number_index_release(tp_number_index *index);
void tp_number_index_reserve(tp_number_index *index, size_t n);
void tp_number_index_add(tp_number_index *index, uint64_t key, uint32_t row);
/* After the last add, before the first look-up. */
void tp_number_index_finish(tp_number_index *index);

/* Forget the rows of every key whose rows are not all of one owner: it says nothing.  Returns how
 * many keys. */
size_t tp_number_index_forget_shared(tp_number_index *index,
                                     int64_t (*owner)(const void *context, uint32_t row),
                                     const void *context);

/* Whether its rows were forgotten. */
bool tp_number_index_is_shared(tp_number_index *index, uint64_t key);

/* The row that was added first (or last) under the key, or TP_NO_ROW. */
uint32_t tp_number_index_first(tp_number_index *index, uint64_t key);
uint32_t tp_number_index_last(tp_number_index *index, uint64_t key);

#endif
