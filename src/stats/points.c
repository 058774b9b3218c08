/* points.c - points in order, their inversions and their ties: what tests of trends count. */
#include <stdlib.h>
#include <string.h>

#include "stats/trend_internal.h"

static int compare_points(const void *a, const void *b)
{
    const tp_point *p = a, *q = b;
    if (p->x < q->x || p->x > q->x)
        return p->x < q->x ? -1 : 1;
    return (p->y > q->y) - (p->y < q->y);
}

tp_status tp_points_sorted(const double *x, const double *y, size_t n, tp_point **ret,
                           tp_error *err)
{
    size_t bytes;
    tp_point *v;
    if (__builtin_mul_overflow(2 * n + 1, sizeof *v, &bytes) || !(v = malloc(bytes)))
        return tp_fail(err, TP_ERR_NOMEM, "no memory for a series of %zu values", n);
    for (size_t i = 0; i < n; i++)
        v[i] = (tp_point){tp_x_at(x, i), y[i]};
    if (x)
        qsort(v, n, sizeof *v, compare_points);
    *ret = v;
    return TP_OK;
}

uint64_t tp_count_inversions(tp_point *v, size_t n)
{
    tp_point *from = v, *to = v + n;
    uint64_t inversions = 0;
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t lo = 0; lo < n; lo += 2 * width) {
            size_t middle = lo + width < n ? lo + width : n;
            size_t hi = lo + 2 * width < n ? lo + 2 * width : n;
            size_t i = lo, j = middle, k = lo;
            while (i < middle && j < hi) { /* no branch: it would be a toss of a coin */
                size_t falls = from[j].y < from[i].y;
                inversions += (middle - i) & (0 - falls);
                to[k++] = from[i ^ ((i ^ j) & (0 - falls))];
                j += falls;
                i += 1 - falls;
            }
            while (i < middle)
                to[k++] = from[i++];
            while (j < hi)
                to[k++] = from[j++];
        }
        tp_point *swap = from;
        from = to;
        to = swap;
    }
    if (from != v)
        memcpy(v, from, n * sizeof *v);
    return inversions;
}

static void add_group(tp_ties *s, double t)
{
    s->pairs += t * (t - 1) / 2;
    s->cubes += t * (t - 1) * (2 * t + 5);
    s->triple += t * (t - 1) * (t - 2);
}

tp_ties tp_ties_of(const tp_point *v, size_t n, bool by_x, bool by_y)
{
    tp_ties s = {0, 0, 0};
    for (size_t i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n; j++)
            if ((by_x && v[j].x > v[i].x) || (by_y && v[j].y > v[i].y))
                break;
        add_group(&s, (double)(j - i));
    }
    return s;
}

double tp_kendall_variance(const tp_point *points, size_t n, tp_point *work)
{
    double m = (double)n;
    memcpy(work, points, n * sizeof *work);
    tp_ties tx = tp_ties_of(work, n, true, false);
    tp_count_inversions(work, n);
    tp_ties ty = tp_ties_of(work, n, false, true);
    return (m * (m - 1) * (2 * m + 5) - tx.cubes - ty.cubes) / 18;
}
