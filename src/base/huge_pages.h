/* huge_pages.h - pages of 2 MiB for large buffers: asked for, refused, in use. */
#ifndef TP_BASE_HUGE_PAGES_H
#define TP_BASE_HUGE_PAGES_H

#include <stdbool.h>
#include <stddef.h>

/* Whether buffers from now on ask for them; the first answer is yes. */
void tp_huge_pages_use(bool yes);
/* Ask for them for [address, address + bytes), which begins at a multiple of 2 MiB. */
void tp_huge_pages_ask(void *address, size_t bytes);
/* Does the system give none?  `why` gets a sentence then.  Reads
 * /sys/kernel/mm/transparent_hugepage/enabled, below TEMPER_SYSTEM_ROOT. */
bool tp_huge_pages_refused(char *why, size_t size);
/* Bytes of this process that lie in them, from /proc/self/smaps_rollup; NaN: unknown. */
double tp_huge_pages_in_use(void);

#endif
