#include "instrument/analyze/vec.h"

#include <stdio.h>
#include <stdlib.h>

static void stop(size_t n, size_t size)
{
    fprintf(stderr, "temper: out of memory for %zu items of %zu bytes\n", n, size);
    abort();
}

void *tp_vec_room(void *v, size_t *cap, size_t n, size_t size)
{
    size_t room = *cap ? *cap : 16, bytes;
    if (n <= *cap)
        return v;
    while (room < n)
        room += room / 2;
    if (__builtin_mul_overflow(room, size, &bytes) || !(v = realloc(v, bytes)))
        stop(n, size);
    *cap = room;
    return v;
}

void *tp_vec_new(size_t n, size_t size)
{
    void *v = calloc(n ? n : 1, size);
    if (!v)
        stop(n, size);
    return v;
}
