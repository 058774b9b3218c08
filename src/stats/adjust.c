/* adjust.c - Bonferroni, Holm, Benjamini-Hochberg and Benjamini-Yekutieli adjustment of
 * p-values. */
#include "stats/adjust.h"
#include "base/order.h"

#include <math.h>

typedef struct {
    double p;
    size_t index;
} entry;

TP_ORDER(compare_entries, entry, TP_COMPARE(x->p, y->p))

/* adj_(j) = the running maximum of (m - j + 1) p_(j) (Holm), or the running minimum from
 * the largest of m p_(j) / j (BH), times 1 + 1/2 + ... + 1/m (BY). */
static void adjust_sorted(tp_adjust_method method, entry *v, size_t m)
{
    long double n = (long double)m, factor = 1, running = 0;
    if (method == TP_ADJUST_BY)
        for (size_t j = 2; j <= m; j++)
            factor += 1 / (long double)j;
    if (method == TP_ADJUST_HOLM) {
        for (size_t j = 0; j < m; j++) {
            running = fmaxl(running, fminl(1, (n - (long double)j) * v[j].p));
            v[j].p = (double)running;
        }
        return;
    }
    running = 1;
    for (size_t j = m; j-- > 0;) {
        long double rank = method == TP_ADJUST_BONFERRONI ? 1 : (long double)j + 1;
        long double scaled = fminl(1, factor * n * v[j].p / rank);
        running = method == TP_ADJUST_BONFERRONI ? scaled : fminl(running, scaled);
        v[j].p = (double)running;
    }
}

tp_status tp_adjust(tp_adjust_method method, const double *p, size_t n, double *ret, tp_error *err)
{
    size_t m = 0;
    for (size_t i = 0; i < n; i++)
        if (p[i] < 0 || p[i] > 1)
            return tp_fail(err, TP_ERR_ARG, "p-value %zu is %g, not between 0 and 1", i + 1, p[i]);
    TP_FREED entry *v = tp_new(n, sizeof *v);
    for (size_t i = 0; i < n; i++)
        if (!isnan(p[i]))
            v[m++] = (entry){p[i], i};
    for (size_t i = 0; i < n; i++)
        ret[i] = NAN;
    qsort(v, m, sizeof *v, compare_entries);
    adjust_sorted(method, v, m);
    for (size_t j = 0; j < m; j++)
        ret[v[j].index] = v[j].p;
    return TP_OK;
}
