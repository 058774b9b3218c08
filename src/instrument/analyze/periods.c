/* periods.c - sets of half-open periods: normal form by sorting, union, intersection and
 * difference by merging. */
#include "instrument/analyze/periods.h"

#include <stdlib.h>

#include "base/order.h"
#include "base/vec.h"
#include "instrument/analyze/sort.h"

void tp_periods_release(tp_periods *set)
{
    free(set->v);
    *set = (tp_periods){0};
}

static int64_t later(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t earlier(int64_t a, int64_t b) { return a < b ? a : b; }

void tp_periods_add(tp_periods *set, int64_t start, int64_t end)
{
    start = later(start, TP_PERIODS_FIRST);
    end = earlier(end, TP_PERIODS_LAST);
    if (end <= start)
        return;
    set->v = tp_vec_room(set->v, &set->cap, set->n + 1, sizeof *set->v);
    set->v[set->n++] = (tp_period){start, end};
}

void tp_periods_extend(tp_periods *set, int64_t start, int64_t end)
{
    end = earlier(end, TP_PERIODS_LAST);
    if (end <= start)
        return;
    if (set->n > 0 && start <= set->v[set->n - 1].end) {
        if (end > set->v[set->n - 1].end)
            set->v[set->n - 1].end = end;
        return;
    }
    tp_periods_add(set, start, end);
}

TP_ORDER(by_start, tp_period, TP_COMPARE(x->start, y->start))

void tp_periods_normalize(tp_periods *set)
{
    size_t n = set->n;
    bool is_ordered = true;
    for (size_t i = 1; i < n && is_ordered; i++)
        is_ordered = set->v[i - 1].start <= set->v[i].start;
    if (!is_ordered)
        qsort(set->v, n, sizeof *set->v, by_start);
    set->n = 0;
    for (size_t i = 0; i < n; i++) /* writes behind or at what it reads */
        tp_periods_extend(set, set->v[i].start, set->v[i].end);
}

int64_t tp_periods_length(const tp_periods *set)
{
    int64_t sum = 0;
    for (size_t i = 0; i < set->n; i++)
        sum += set->v[i].end - set->v[i].start;
    return sum;
}

int64_t tp_periods_common(const tp_periods *a, const tp_periods *b)
{
    int64_t sum = 0;
    for (size_t i = 0, k = 0; i < a->n && k < b->n;) {
        int64_t start = later(a->v[i].start, b->v[k].start);
        int64_t end = earlier(a->v[i].end, b->v[k].end);
        if (start < end)
            sum += end - start;
        if (a->v[i].end < b->v[k].end)
            i++;
        else
            k++;
    }
    return sum;
}

void tp_periods_unite(const tp_periods *a, const tp_periods *b, tp_periods *ret)
{
    ret->n = 0;
    for (size_t i = 0, k = 0; i < a->n || k < b->n;) {
        bool take_a = k == b->n || (i < a->n && a->v[i].start <= b->v[k].start);
        tp_period next = take_a ? a->v[i++] : b->v[k++];
        tp_periods_extend(ret, next.start, next.end);
    }
}

void tp_periods_subtract(const tp_periods *a, const tp_periods *b, tp_periods *ret)
{
    size_t k = 0;
    ret->n = 0;
    for (size_t i = 0; i < a->n; i++) {
        int64_t at = a->v[i].start, end = a->v[i].end;
        while (k < b->n && b->v[k].end <= at)
            k++;
        for (size_t j = k; j < b->n && b->v[j].start < end; j++) {
            tp_periods_add(ret, at, b->v[j].start);
            at = later(at, b->v[j].end);
        }
        tp_periods_add(ret, at, end);
    }
}

int64_t tp_periods_within(const tp_periods *set, int64_t start, int64_t end)
{
    size_t low = 0, high = set->n;
    int64_t sum = 0;
    /* the first interval that ends after `start` */
    TP_BISECT(low, high, i, set->v[i].end <= start);
    for (; low < set->n && set->v[low].start < end; low++)
        sum += earlier(set->v[low].end, end) - later(set->v[low].start, start);
    return sum;
}
