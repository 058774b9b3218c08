/* grow.h - arrays whose final size nobody knows.
 *
 * Growth by half, through realloc(): the C library moves large blocks by remapping pages,
 * so growing neither copies nor doubles what is resident.  Exhausted memory stops the
 * program; how much input may ask for is limited by the size of the input. */
#ifndef TP_INSTRUMENT_INGEST_GROW_H
#define TP_INSTRUMENT_INGEST_GROW_H

#include <stddef.h>

/* Room for `need` elements of `size` bytes; returns the array, maybe moved. */
void *tp_ingest_grow(void *array, size_t *cap, size_t need, size_t size);

/* A pointer to a new, zeroed last element of the array `list` with counter `n`. */
#define TP_PUSH(list, n, cap)                                                                     \
    ((n) == (cap) ? (void)((list) = tp_ingest_grow((list), &(cap), (n) + 1, sizeof *(list))) : 0, \
     (list)[(n)] = (__typeof__(*(list))){0}, &(list)[(n)++])

#endif
