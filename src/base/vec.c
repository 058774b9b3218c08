/* vec.c - how arrays grow: what to ask for next, in huge pages where they are large. */
#include "base/vec.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/no_memory.h"

enum { MIDDLING = 256 << 10, LARGE = 2 << 20, HUGE_BLOCK = 32 << 20, PAGE = 4096 };

/* A hint, which may be refused: touching fresh memory then costs a fault per 2 MB, not per page. */
static void ask_for_huge_pages(void *v, size_t bytes)
{
    uintptr_t begin = ((uintptr_t)v + PAGE - 1) / PAGE * PAGE;
    uintptr_t end = ((uintptr_t)v + bytes) / PAGE * PAGE;
    if (bytes >= LARGE)
        (void)madvise((void *)begin, end - begin, MADV_HUGEPAGE);
}

/* Small blocks grow by half.  Middling ones grow fourfold, since malloc() copies them and what
 * is not touched takes no memory; large ones by half again, for they are remapped. */
static size_t next_room(size_t cap, size_t size)
{
    size_t bytes;
    if (cap < 16)
        return 16;
    if (__builtin_mul_overflow(cap, size, &bytes))
        bytes = SIZE_MAX;
    return bytes >= MIDDLING && bytes < HUGE_BLOCK ? 4 * cap : cap + cap / 2;
}

size_t tp_vec_next(size_t cap, size_t n, size_t size)
{
    if (n <= cap)
        return cap;
    size_t room = next_room(cap, size);
    return room < n ? n : room;
}

void *tp_vec_resize(void *v, size_t n, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes))
        tp_no_memory(SIZE_MAX);
    if (!(v = realloc(v, bytes ? bytes : 1)))
        tp_no_memory(bytes);
    ask_for_huge_pages(v, bytes);
    return v;
}

void *tp_vec_room(void *v, size_t *cap, size_t n, size_t size)
{
    if (n <= *cap)
        return v;
    size_t room = tp_vec_next(*cap, n, size);
    v = tp_vec_resize(v, room, size);
    *cap = room;
    return v;
}

void *tp_vec_new(size_t n, size_t size)
{
    void *v = tp_new(n, size);
    ask_for_huge_pages(v, n * size);
    return v;
}
