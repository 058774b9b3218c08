#include "instrument/ingest/grow.h"

#include <stdio.h>
#include <stdlib.h>

void *tp_ingest_grow(void *array, size_t *cap, size_t need, size_t size)
{
    size_t bytes, more = *cap < 16 ? 16 : *cap + *cap / 2;
    if (need <= *cap)
        return array;
    if (more < need)
        more = need;
    void *grown = __builtin_mul_overflow(more, size, &bytes) ? NULL : realloc(array, bytes);
    if (!grown) {
        fprintf(stderr, "temper: out of memory: %zu elements of %zu bytes\n", more, size);
        abort();
    }
    *cap = more;
    return grown;
}
