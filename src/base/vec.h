/* vec.h - arrays whose final size nobody knows, as those that a trace fills.
 *
 * Growth through realloc(): the C library moves large blocks by remapping pages, so growing
 * neither copies nor doubles what is resident.  Large blocks ask for huge pages.  Exhausted memory
 * ends the call (no_memory.h), as in tp_buf; how much input may ask for is limited by the size of
 * the input.
 */
#ifndef TP_BASE_VEC_H
#define TP_BASE_VEC_H

#include <stddef.h>

/* `v` with room for `n` items of `size` bytes, maybe moved; *cap is the room in items.  New
 * items are not initialised. */
void *tp_vec_room(void *v, size_t *cap, size_t n, size_t size);

/* The two halves of tp_vec_room(), for columns that share one capacity: it is computed once, from
 * the widest item, and every column is given exactly that.  `cap` itself where `n` fits. */
size_t tp_vec_next(size_t cap, size_t n, size_t size);
void *tp_vec_resize(void *v, size_t n, size_t size);

/* tp_new() in huge pages. */
void *tp_vec_new(size_t n, size_t size);

/* A pointer to a new, zeroed last item of the array `v` with counter `n`. */
#define TP_VEC_PUSH(v, n, cap)                                                        \
    ((n) == (cap) ? (void)((v) = tp_vec_room((v), &(cap), (n) + 1, sizeof *(v))) : 0, \
     (v)[(n)] = (__typeof__(*(v))){0}, &(v)[(n)++])

#endif
