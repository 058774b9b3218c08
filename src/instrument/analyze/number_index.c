/* number_index.c - a sorted array of (number, row), searched outwards from the place of the
 * last look-up. */
#include "instrument/analyze/number_index.h"

#include <stdlib.h>

#include "base/vec.h"

void tp_number_index_release(tp_number_index *index)
{
    free(index->v);
    *index = (tp_number_index){0};
}

void tp_number_index_reserve(tp_number_index *index, size_t n)
{
    if (index->cap == 0 && n) {
        index->v = tp_vec_new(n, sizeof *index->v);
        index->cap = n;
    }
}

void tp_number_index_add(tp_number_index *index, uint64_t key, uint32_t row)
{
    index->v = tp_vec_room(index->v, &index->cap, index->n + 1, sizeof *index->v);
    index->v[index->n++] = (tp_keyed){key, row};
}

void tp_number_index_finish(tp_number_index *index) { tp_sort_keyed(index->v, index->n); }

size_t tp_number_index_forget_shared(tp_number_index *index,
                                     int64_t (*owner)(const void *context, uint32_t row),
                                     const void *context)
{
    size_t forgotten = 0, kept = 0;
    for (size_t from = 0, to; from < index->n; from = to) {
        bool is_shared = false;
        int64_t first = owner(context, index->v[from].index);
        for (to = from + 1; to < index->n && index->v[to].key == index->v[from].key; to++)
            is_shared = is_shared || owner(context, index->v[to].index) != first;
        forgotten += is_shared;
        if (is_shared)
            index->v[kept++] = (tp_keyed){index->v[from].key, TP_NO_ROW};
        for (size_t i = from; i < to && !is_shared; i++)
            index->v[kept++] = index->v[i];
    }
    index->n = kept;
    return forgotten;
}

/* The first place whose key is at least `key`: steps that double away from the last
 * place, then halve between the two that enclose it. */
static size_t lower_bound(tp_number_index *index, uint64_t key)
{
    size_t low = index->hint < index->n ? index->hint : 0, high = index->n, step = 1;
    if (low < index->n && index->v[low].key < key) {
        while (low + step < index->n && index->v[low + step].key < key) {
            low += step;
            step *= 2;
        }
        high = low + step < index->n ? low + step : index->n;
        low++;
    } else {
        high = low;
        while (step <= high && index->v[high - step].key >= key) {
            high -= step;
            step *= 2;
        }
        low = step <= high ? high - step + 1 : 0;
    }
    TP_BISECT(low, high, i, index->v[i].key < key);
    index->hint = low;
    return low;
}

bool tp_number_index_is_shared(tp_number_index *index, uint64_t key)
{
    size_t at = lower_bound(index, key);
    return at < index->n && index->v[at].key == key && index->v[at].index == TP_NO_ROW;
}

uint32_t tp_number_index_first(tp_number_index *index, uint64_t key)
{
    size_t at = lower_bound(index, key);
    return at < index->n && index->v[at].key == key ? index->v[at].index : TP_NO_ROW;
}

uint32_t tp_number_index_last(tp_number_index *index, uint64_t key)
{
    size_t behind = key == UINT64_MAX ? index->n : lower_bound(index, key + 1);
    return behind > 0 && index->v[behind - 1].key == key ? index->v[behind - 1].index : TP_NO_ROW;
}
