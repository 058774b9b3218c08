/* allocations.c - classes of sizes and of lifetimes. */
#include "instrument/analyze/allocations.h"

#include "instrument/analyze/kernels.h"

static const struct {
    const char *name;
    int64_t most; /* bytes */
} bounds[TP_ALLOCATION_SIZES] = {{"to 1 KiB", 1 << 10},     {"to 64 KiB", 64 << 10},
                                 {"to 1 MiB", 1 << 20},     {"to 16 MiB", 16 << 20},
                                 {"to 256 MiB", 256 << 20}, {"above 256 MiB", INT64_MAX}};
static const int64_t lives[TP_ALLOCATION_LIVES] = {100000, 10000000, 1000000000, INT64_MAX};

const char *tp_allocation_size_name(size_t size) { return bounds[size].name; }

static tp_allocation_size *size_of(tp_allocations *a, int64_t bytes)
{
    size_t k = 0;
    while (bytes > bounds[k].most)
        k++;
    return &a->sizes[k];
}

void tp_allocation_made(tp_allocations *a, int64_t bytes)
{
    tp_allocation_size *s = size_of(a, bytes);
    s->count++;
    s->bytes = tp_add_saturating(s->bytes, bytes);
    s->never_freed++;
    s->never_freed_bytes = tp_add_saturating(s->never_freed_bytes, bytes);
}

void tp_allocation_freed(tp_allocations *a, int64_t bytes, int64_t lived_ns)
{
    tp_allocation_size *s = size_of(a, bytes);
    size_t k = 0;
    s->frees++;
    s->never_freed--;
    s->never_freed_bytes = tp_subtract_saturating(s->never_freed_bytes, bytes);
    while (lived_ns > lives[k])
        k++;
    if (lived_ns != TP_UNKNOWN)
        s->lived[k]++;
}
