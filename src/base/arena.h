/* arena.h - memory that is freed all at once.
 *
 * An arena belongs to exactly one lifetime: a graph, a training step, a report.
 * Nothing inside it is freed alone; tp_arena_release() ends the lifetime.
 *
 *     block  [ used ....... ]  behind it  [ used .. | free .... ]  <- base, used
 *
 * Memory is mapped in blocks as it is needed, each twice the one before, so an arena takes about
 * what is in it and pointers stay valid as it grows.  Allocation cannot fail: more than was
 * reserved ends the call with TP_ERR_NOMEM (no_memory.h), and so does a system without memory (big
 * tensors live in backend buffers, never here).  Not thread-safe. */
#ifndef TP_BASE_ARENA_H
#define TP_BASE_ARENA_H

#include <stddef.h>

#include "base/error.h"

typedef struct tp_arena_block tp_arena_block;

typedef struct {
    tp_arena_block *block; /* the one in use; NULL before the first object */
    char *base;            /* of its objects */
    size_t used;           /* of it */
    size_t reserved;       /* of all blocks together at most */
    size_t high;           /* the most that was ever used, of all */
} tp_arena;

/* For at most `reserve` bytes (rounded up to pages); maps nothing yet. */
TP_CHECKED tp_status tp_arena_init(tp_arena *arena, size_t reserve, tp_error *err);
void tp_arena_release(tp_arena *arena); /* NULL or zeroed is a no-op */

/* `count` zeroed objects, contiguous, aligned to `align` (a power of two).
 * Never NULL. */
void *tp_arena_alloc(tp_arena *arena, size_t count, size_t size, size_t align);

/* The same, but NULL when the reservation does not suffice: for sizes that input
 * decides. */
void *tp_arena_try_alloc(tp_arena *arena, size_t count, size_t size, size_t align);

/* Bytes that can be taken behind the last object, next to it. */
size_t tp_arena_room(const tp_arena *arena);

#define tp_arena_array(arena, type, n) \
    ((type *)tp_arena_alloc((arena), (size_t)(n), sizeof(type), _Alignof(type)))
#define tp_arena_new(arena, type) tp_arena_array((arena), type, 1)

/* A pointer to a new, zeroed last item of the array `v` with counter `n` and room for `cap`; an
 * array that is full moves. */
#define TP_ARENA_PUSH(arena, v, n, cap)                                                       \
    ((n) == (cap) ? (void)((v) = tp_arena_grow((arena), (v), &(cap), sizeof *(v))) : (void)0, \
     (v)[(n)] = (__typeof__(*(v))){0}, &(v)[(n)++])
void *tp_arena_grow(tp_arena *arena, const void *v, size_t *cap, size_t size);

/* A NUL-terminated copy of `n` bytes (n may be strlen). */
char *tp_arena_strndup(tp_arena *arena, const char *s, size_t n);
char *tp_arena_strdup(tp_arena *arena, const char *s);
char *tp_arena_printf(tp_arena *arena, const char *fmt, ...) TP_PRINTF(2, 3);

/* Everything allocated after the mark is given back; older data stays. */
size_t tp_arena_mark(const tp_arena *arena);
void tp_arena_rewind(tp_arena *arena, size_t mark);

#endif
