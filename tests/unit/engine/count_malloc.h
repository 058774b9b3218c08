/* count_malloc.h - how often anything in this process has allocated.
 *
 * The executable's own malloc, calloc, realloc and aligned allocation count and pass
 * on to glibc.  Under a sanitizer, which has its own, nothing is counted. */
#ifndef TP_TESTS_UNIT_ENGINE_COUNT_MALLOC_H
#define TP_TESTS_UNIT_ENGINE_COUNT_MALLOC_H

#include <stdbool.h>
#include <stdint.h>

bool malloc_is_counted(void);
uint64_t malloc_count(void);

#endif
