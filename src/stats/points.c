/* points.c - points in order, their inversions and their ties: what tests of trends count. */
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "stats/descriptive.h"
#include "stats/trend_internal.h"

TP_ORDER(compare_points, tp_point, TP_COMPARE(x->x, y->x) ?: TP_COMPARE(x->y, y->y))

tp_point *tp_points_sorted(const double *x, const double *y, size_t n)
{
    tp_point *v = tp_new(n, sizeof *v);
    for (size_t i = 0; i < n; i++)
        v[i] = (tp_point){tp_x_at(x, i), y[i]};
    if (x)
        qsort(v, n, sizeof *v, compare_points);
    return v;
}

/* One turn of a merge sort: runs of `width` in pairs from one place to the other. */
static uint64_t merge_runs(const double *from, double *to, size_t n, size_t width)
{
    uint64_t inversions = 0;
    for (size_t lo = 0; lo < n; lo += 2 * width) {
        size_t middle = lo + width < n ? lo + width : n;
        size_t hi = lo + 2 * width < n ? lo + 2 * width : n;
        size_t i = lo, j = middle, k = lo;
        while (i < middle && j < hi) { /* no branch: it would be a toss of a coin */
            size_t falls = from[j] < from[i];
            inversions += (middle - i) & (0 - falls);
            to[k++] = from[i ^ ((i ^ j) & (0 - falls))];
            j += falls;
            i += 1 - falls;
        }
        memcpy(to + k, from + i, (middle - i) * sizeof *to);
        memcpy(to + k + (middle - i), from + j, (hi - j) * sizeof *to);
    }
    return inversions;
}

/* Sorted in `v`. */
static uint64_t merge_sort(double *v, double *work, size_t n, size_t width)
{
    double *from = v, *to = work;
    uint64_t inversions = 0;
    for (; width < n; width *= 2) {
        inversions += merge_runs(from, to, n, width);
        double *swap = from;
        from = to;
        to = swap;
    }
    if (from != v)
        memcpy(v, from, n * sizeof *v);
    return inversions;
}

uint64_t tp_count_inversions(double *v, size_t n)
{
    enum { NEAR = 8192 }; /* values: they and their copy stay in the second cache */
    uint64_t inversions = 0;
    for (size_t at = 0; at < n; at += NEAR)
        inversions += merge_sort(v + at, v + n, n - at < NEAR ? n - at : NEAR, 1);
    return inversions + merge_sort(v, v + n, n, NEAR);
}

static void add_group(tp_ties *s, double t)
{
    s->pairs += t * (t - 1) / 2;
    s->cubes += t * (t - 1) * (2 * t + 5);
    s->triple += t * (t - 1) * (t - 2);
}

tp_ties tp_ties_of(const tp_point *v, size_t n, bool by_y)
{
    tp_ties s = {0, 0, 0};
    for (size_t i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n; j++)
            if (v[j].x > v[i].x || (by_y && v[j].y > v[i].y))
                break;
        add_group(&s, (double)(j - i));
    }
    return s;
}

tp_ties tp_ties_of_sorted(const double *v, size_t n)
{
    tp_ties s = {0, 0, 0};
    for (size_t i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && !(v[j] > v[i]); j++)
            ;
        add_group(&s, (double)(j - i));
    }
    return s;
}

double tp_kendall_variance(const tp_point *points, size_t n, double *work)
{
    double m = (double)n;
    for (size_t i = 0; i < n; i++)
        work[i] = points[i].y;
    tp_sort(work, n);
    tp_ties tx = tp_ties_of(points, n, false), ty = tp_ties_of_sorted(work, n);
    return (m * (m - 1) * (2 * m + 5) - tx.cubes - ty.cubes) / 18;
}
