/* no_memory.h - what happens when the system has no memory left: one policy.
 *
 * Large memory (tensors, caches, files) is asked for by functions that return TP_ERR_NOMEM, and
 * whoever calls them gives back what it took.  Small host memory (buffers of text, lists, arenas)
 * is asked for everywhere, by functions that never return without it.  When there is none they
 * end the call of the library that they are in:
 *
 *     tp_status tp_thing_open(..., tp_error *err)
 *     {
 *         TP_MEMORY_GUARD(err);         <- returns TP_ERR_NOMEM, the innermost one of the thread
 *         ...
 *             tp_buf_add(&text, ...)    <- has no memory
 *
 * Every public function begins with one, and so does whatever holds a lock, or runs on a thread
 * of the library's own, while it asks.  What the unfinished call took stays taken, and an object
 * it worked on can be given back but not used further: the process is out of memory, and what
 * counts is that its owner hears of it.  On a thread without a guard the process ends with a
 * message and exit status 5. */
#ifndef TP_BASE_NO_MEMORY_H
#define TP_BASE_NO_MEMORY_H

#include <setjmp.h>
#include <stddef.h>

#include "temper/error.h"

typedef struct tp_memory_guard {
    jmp_buf jump;
    struct tp_memory_guard *outer;
    tp_error *err;
} tp_memory_guard;

/* The first statement of a function that returns tp_status. */
#define TP_MEMORY_GUARD(err)                                                       \
    tp_memory_guard memory_guard_ __attribute__((cleanup(tp_memory_guard_leave))); \
    tp_memory_guard_enter(&memory_guard_, (err));                                  \
    if (setjmp(memory_guard_.jump))                                                \
    return TP_ERR_NOMEM

/* The pointer, or the end of the call: TP_HAVE(list = calloc(n, size)); */
#define TP_HAVE(pointer)     \
    do {                     \
        if (!(pointer))      \
            tp_no_memory(0); \
    } while (0)

/* The same with the asking: `n` zeroed items, one at least; reallocarray(); a copy of a text, or of
 * at most `n` bytes of it, and of NULL NULL.  free() gives them back. */
void *tp_new(size_t n, size_t size);
void *tp_grow(void *old, size_t n, size_t size);
char *tp_strdup(const char *text);
char *tp_strndup(const char *text, size_t n);

/* bytes: 0 where nobody knows how many it were. */
_Noreturn void tp_no_memory(size_t bytes);
/* The same, with a sentence of one's own. */
_Noreturn void tp_no_memory_because(const char *sentence);

void tp_memory_guard_enter(tp_memory_guard *guard, tp_error *err);
void tp_memory_guard_leave(tp_memory_guard *guard);

#endif
