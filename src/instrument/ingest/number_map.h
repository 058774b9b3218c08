/* number_map.h - from a number of the file (a correlation, an id, an address) to a row.
 *
 * Open addressing over 64-bit keys with 32-bit values.  Keys may be put again: the first
 * value stays (tp_number_map_add) or the last wins (tp_number_map_set). */
#ifndef TP_INSTRUMENT_INGEST_NUMBER_MAP_H
#define TP_INSTRUMENT_INGEST_NUMBER_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TP_NO_ROW = UINT32_MAX };

typedef struct {
    uint64_t key;
    uint32_t value; /* TP_NO_ROW: free */
} tp_number_slot;

typedef struct {
    tp_number_slot *slots;
    size_t n, n_slots;
} tp_number_map; /* zeroed: empty */

void tp_number_map_release(tp_number_map *map);
/* Room for n keys without growing. */
/* False when the key was there. */
bool tp_number_map_add(tp_number_map *map, uint64_t key, uint32_t value);
void tp_number_map_set(tp_number_map *map, uint64_t key, uint32_t value);
uint32_t tp_number_map_get(const tp_number_map *map, uint64_t key); /* or TP_NO_ROW */

#endif
