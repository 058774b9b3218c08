/* grow.c - reallocation of small arrays. */
#include "base/grow.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/no_memory.h"

void *tp_grow(void *old, size_t count, size_t size)
{
    void *p = reallocarray(old, count ? count : 1, size);
    size_t bytes;
    if (!p)
        tp_no_memory(__builtin_mul_overflow(count, size, &bytes) ? SIZE_MAX : bytes);
    return p;
}
