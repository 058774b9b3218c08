/* bins.c - first-fit decreasing, and as many bins for every rank. */
#include "engine/data/bins.h"

#include <stdbool.h>
#include <stddef.h>

#include "base/platform.h"

typedef struct {
    const tp_bins *o;
    const uint64_t *units;
    uint32_t n, n_bins;
    uint32_t *bin, *count;
    int32_t *end;
} work;

uint64_t tp_bin_unit(int32_t n_tokens, uint32_t index)
{
    return (uint64_t)(uint32_t)(INT32_MAX - n_tokens) << 32 | index;
}

uint32_t tp_bin_unit_index(uint64_t unit) { return (uint32_t)unit; }

static int32_t tokens_of(uint64_t unit) { return INT32_MAX - (int32_t)(unit >> 32); }

/* Heap sort: in place, no allocation, the same everywhere. */
static void sift(uint64_t *a, size_t root, size_t n)
{
    for (;;) {
        size_t child = 2 * root + 1;
        if (child >= n)
            return;
        if (child + 1 < n && a[child] < a[child + 1])
            child++;
        if (a[root] >= a[child])
            return;
        uint64_t t = a[root];
        a[root] = a[child];
        a[child] = t;
        root = child;
    }
}

static void sort_ascending(uint64_t *a, size_t n)
{
    for (size_t i = n / 2; i-- > 0;)
        sift(a, i, n);
    for (size_t end = n; end-- > 1;) {
        uint64_t t = a[0];
        a[0] = a[end];
        a[end] = t;
        sift(a, 0, end);
    }
}

/* Where a unit would end that is put into bin b. */
static int64_t end_in(const work *w, uint32_t b, uint64_t unit)
{
    int64_t align = w->o->align ? w->o->align : 1;
    return (w->end[b] + align - 1) / align * align + tokens_of(unit);
}

static bool has_room(const work *w, uint32_t b, uint64_t unit)
{
    return end_in(w, b, unit) <= w->o->capacity && (!w->o->most || w->count[b] < w->o->most);
}

static void put(work *w, uint32_t b, uint64_t unit)
{
    w->end[b] = (int32_t)end_in(w, b, unit);
    w->bin[tp_bin_unit_index(unit)] = b;
    if (w->o->most)
        w->count[b]++;
}

static void open_bin(work *w)
{
    w->end[w->n_bins] = 0;
    if (w->o->most)
        w->count[w->n_bins] = 0;
    w->n_bins++;
}

static void fit_first(work *w)
{
    w->n_bins = 0;
    for (uint32_t k = 0; k < w->n; k++) {
        uint32_t b = 0;
        while (b < w->n_bins && !has_room(w, b, w->units[k]))
            b++;
        if (b == w->n_bins)
            open_bin(w);
        put(w, b, w->units[k]);
    }
}

/* Each into the emptiest of n_bins; false when one has room in none. */
static bool spread_over(work *w, uint32_t n_bins)
{
    w->n_bins = 0;
    while (w->n_bins < n_bins)
        open_bin(w);
    for (uint32_t k = 0; k < w->n; k++) {
        uint32_t best = n_bins;
        for (uint32_t b = 0; b < n_bins; b++)
            if (has_room(w, b, w->units[k]) && (best == n_bins || w->end[b] < w->end[best]))
                best = b;
        if (best == n_bins)
            return false;
        put(w, best, w->units[k]);
    }
    return true;
}

/* The shortest units that are not the first of their bin get one of their own, up to n_bins. */
static void split_up_to(work *w, uint32_t n_bins)
{
    uint32_t n_opened = 0;
    for (uint32_t k = 0; k < w->n && n_opened < w->n_bins; k++)
        if (w->bin[tp_bin_unit_index(w->units[k])] == n_opened)
            w->end[n_opened++] = (int32_t)k; /* whose first it is */
    for (uint32_t k = w->n; k-- > 0 && w->n_bins < n_bins;) {
        uint32_t *bin = &w->bin[tp_bin_unit_index(w->units[k])];
        if (w->end[*bin] != (int32_t)k)
            *bin = w->n_bins++;
    }
}

uint32_t tp_bins_assign(const tp_bins *o, uint64_t *units, uint32_t n, uint32_t *ret_bin,
                        int32_t *end, uint32_t *count)
{
    work w = {.o = o, .units = units, .n = n, .bin = ret_bin, .count = count, .end = end};
    sort_ascending(units, n);
    fit_first(&w);
    if (o->ranks < 2)
        return w.n_bins;
    uint32_t even = TP_MIN((w.n_bins + o->ranks - 1) / o->ranks * o->ranks, n);
    if (!spread_over(&w, even)) {
        fit_first(&w);
        split_up_to(&w, even);
    }
    return w.n_bins;
}
