/* grow.h - reallocation of small host arrays; exhausted memory ends the call (no_memory.h). */
#ifndef TP_BASE_GROW_H
#define TP_BASE_GROW_H

#include <stddef.h>

/* reallocarray() that never returns NULL. */
void *tp_grow(void *old, size_t count, size_t size);

#endif
