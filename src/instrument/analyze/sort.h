/* sort.h - order many events by a 64-bit key in linear time.
 *
 * A trace is walked in several orders (by start, by thread and start, by address);
 * an order is an array of 32-bit event numbers, so that no event moves.  The sort is
 * stable: events with equal keys stay as they were in the file. */
#ifndef TP_INSTRUMENT_ANALYZE_SORT_H
#define TP_INSTRUMENT_ANALYZE_SORT_H

#include <stddef.h>
#include <stdint.h>

/* A key that orders signed numbers as unsigned ones. */
static inline uint64_t tp_key_of(int64_t v) { return (uint64_t)v ^ ((uint64_t)1 << 63); }

typedef struct {
    uint64_t key;
    uint32_t index;
} tp_keyed;

/* Ascending by key; radix sort, one pass per byte in which the keys differ. */
void tp_sort_keyed(tp_keyed *v, size_t n);

/* Halve [low, high) to the first place that is not before what is looked for, which becomes `low`:
 * `is_before` is an expression of the place `i`, true in front of it and false from there on. */
#define TP_BISECT(low, high, i, is_before)           \
    do {                                             \
        while ((low) < (high)) {                     \
            size_t i = (low) + ((high) - (low)) / 2; \
            if (is_before)                           \
                (low) = i + 1;                       \
            else                                     \
                (high) = i;                          \
        }                                            \
    } while (0)

/* Ascending. */
void tp_sort_i64(int64_t *v, size_t n);

#endif
