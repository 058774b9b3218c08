/* locked_memory.h - memory that is never swapped out: asked for, refused, in use (mlock(2)). */
#ifndef TP_BASE_LOCKED_MEMORY_H
#define TP_BASE_LOCKED_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/* Whether buffers of batches from now on are locked; the first answer is no. */
void tp_locked_memory_use(bool yes);
/* Lock [address, address + bytes), where that is in use; false: it is not, or was refused. */
bool tp_locked_memory_ask(void *address, size_t bytes);
/* So many bytes of those that were locked are gone. */
void tp_locked_memory_end(size_t bytes);
/* Was a buffer refused, or would so many bytes be, with those that are locked already?  `why` gets
 * a sentence then. */
bool tp_locked_memory_refused(size_t bytes, char *why, size_t size);
double tp_locked_memory_in_use(void); /* bytes */

#endif
