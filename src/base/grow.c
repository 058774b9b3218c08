/* grow.c - reallocation of small arrays; out of memory ends the process with the size in the
 * message. */
#include "base/grow.h"

#include <stdio.h>
#include <stdlib.h>

void *tp_grow(void *old, size_t count, size_t size)
{
    void *p = reallocarray(old, count ? count : 1, size);
    if (!p) {
        fprintf(stderr, "temper: out of memory: %zu objects of %zu bytes\n", count, size);
        abort();
    }
    return p;
}
