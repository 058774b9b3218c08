/* sort.c - stable LSD radix sort by a 64-bit key, over the digits in which keys differ;
 * insertion sort for few. */
#include "instrument/analyze/sort.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/vec.h"

enum { SMALL = 64 };

static void insertion_sort(tp_keyed *v, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        tp_keyed item = v[i];
        size_t k = i;
        for (; k > 0 && v[k - 1].key > item.key; k--)
            v[k] = v[k - 1];
        v[k] = item;
    }
}

static bool is_sorted(const tp_keyed *v, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (v[i - 1].key > v[i].key)
            return false;
    return true;
}

static void scatter(const tp_keyed *from, tp_keyed *to, size_t n, int shift)
{
    size_t at[256] = {0}, sum = 0;
    for (size_t i = 0; i < n; i++)
        at[(from[i].key >> shift) & 255]++;
    for (int d = 0; d < 256; d++) {
        size_t count = at[d];
        at[d] = sum;
        sum += count;
    }
    for (size_t i = 0; i < n; i++)
        to[at[(from[i].key >> shift) & 255]++] = from[i];
}

void tp_sort_keyed(tp_keyed *v, size_t n)
{
    if (n < SMALL) {
        insertion_sort(v, n);
        return;
    }
    if (is_sorted(v, n))
        return;
    uint64_t differ = 0;
    for (size_t i = 1; i < n; i++)
        differ |= v[i].key ^ v[0].key;
    tp_keyed *spare = tp_vec_new(n, sizeof *spare), *from = v, *to = spare;
    for (int shift = 0; shift < 64; shift += 8) {
        if (!((differ >> shift) & 255))
            continue;
        scatter(from, to, n, shift);
        tp_keyed *swap = from;
        from = to;
        to = swap;
    }
    if (from != v)
        memcpy(v, from, n * sizeof *v);
    free(spare);
}

static void insert_i64(int64_t *v, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        int64_t item = v[i];
        size_t k = i;
        for (; k > 0 && v[k - 1] > item; k--)
            v[k] = v[k - 1];
        v[k] = item;
    }
}

/* One digit of 11 bits: durations differ in two or three of them. */
static void scatter_i64(const int64_t *from, int64_t *to, size_t n, int shift)
{
    enum { DIGITS = 2048 };
    size_t at[DIGITS] = {0}, sum = 0;
    for (size_t i = 0; i < n; i++)
        at[(tp_key_of(from[i]) >> shift) % DIGITS]++;
    for (int d = 0; d < DIGITS; d++) {
        size_t count = at[d];
        at[d] = sum;
        sum += count;
    }
    for (size_t i = 0; i < n; i++)
        to[at[(tp_key_of(from[i]) >> shift) % DIGITS]++] = from[i];
}

TP_ORDER(compare_i64, int64_t, TP_COMPARE(*x, *y))

void tp_sort_i64(int64_t *v, size_t n)
{
    enum { MIDDLING = 1024, BITS = 11 };
    uint64_t differ = 0;
    if (n < SMALL) {
        insert_i64(v, n);
        return;
    }
    if (n < MIDDLING) {
        qsort(v, n, sizeof *v, compare_i64);
        return;
    }
    for (size_t i = 1; i < n; i++)
        differ |= tp_key_of(v[i]) ^ tp_key_of(v[0]);
    int64_t *spare = tp_vec_new(n, sizeof *spare), *from = v, *to = spare;
    for (int shift = 0; shift < 64; shift += BITS) {
        if (!((differ >> shift) & ((1 << BITS) - 1)))
            continue;
        scatter_i64(from, to, n, shift);
        int64_t *swap = from;
        from = to;
        to = swap;
    }
    if (from != v)
        memcpy(v, from, n * sizeof *v);
    free(spare);
}
