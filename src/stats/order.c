/* order.c - selection after Hoare, exact quantiles, midranks, and the exact interval of a
 * median by order statistics. */
#include <string.h>

#include "base/order.h"
#include "stats/descriptive.h"
#include "stats/order.h"
#include "stats/special.h"

TP_ORDER(compare_doubles, double, TP_COMPARE(*x, *y))

void tp_sort(double *x, size_t n)
{
    if (n > 1)
        qsort(x, n, sizeof *x, compare_doubles);
}

/* Hoare's selection; the rest of x is left partitioned around x[k]. */
double tp_select(double *x, size_t n, size_t k)
{
    size_t lo = 0, hi = n - 1;
    while (lo < hi) {
        double pivot = x[lo + (hi - lo) / 2];
        size_t i = lo, j = hi;
        for (;;) {
            while (x[i] < pivot)
                i++;
            while (x[j] > pivot)
                j--;
            if (i >= j)
                break;
            double swap = x[i];
            x[i++] = x[j];
            x[j--] = swap;
        }
        if (k <= j) /* x[lo..j] <= pivot <= x[j+1..hi], and j < hi */
            hi = j;
        else
            lo = j + 1;
    }
    return x[k];
}

double *tp_scratch(size_t count) { return tp_grow(NULL, count + 1, sizeof(double)); }

double *tp_sorted_copy(const double *x, size_t n)
{
    double *sorted = tp_scratch(n);
    if (n)
        memcpy(sorted, x, n * sizeof *x);
    tp_sort(sorted, n);
    return sorted;
}

tp_two tp_quantile_exact(const double *sorted, size_t n, double p)
{
    if (n == 0)
        return tp_two_of(NAN);
    long double h = (long double)(n - 1) * (long double)p;
    size_t below = h <= 0 ? 0 : (size_t)h;
    if (below >= n - 1)
        return tp_two_of(sorted[n - 1]);
    tp_two gap = tp_two_sum(sorted[below + 1], -sorted[below]);
    if (!isfinite(gap.hi)) /* the gap overflows: interpolate the ends instead */
        return tp_two_of((double)((1 - (h - (long double)below)) * sorted[below] +
                                  (h - (long double)below) * sorted[below + 1]));
    return tp_two_add_d(tp_two_mul_d(gap, (double)(h - (long double)below)), sorted[below]);
}

double tp_quantile_sorted(const double *sorted, size_t n, double p)
{
    return tp_two_value(tp_quantile_exact(sorted, n, p));
}

double tp_median_sorted(const double *sorted, size_t n)
{
    return tp_quantile_sorted(sorted, n, 0.5);
}

tp_status tp_median(const double *x, size_t n, double *ret, tp_error *err)
{
    TP_TRY(tp_check_finite("x", x, n, err));
    TP_FREED double *sorted = tp_sorted_copy(x, n);
    *ret = tp_median_sorted(sorted, n);
    return TP_OK;
}

double tp_mad_in_place(double *sorted, size_t n)
{
    tp_two median = tp_quantile_exact(sorted, n, 0.5);
    for (size_t i = 0; i < n; i++)
        sorted[i] = fabs(tp_two_value(tp_two_add_d(tp_two_negate(median), sorted[i])));
    tp_sort(sorted, n);
    return tp_median_sorted(sorted, n);
}

tp_status tp_mad(const double *x, size_t n, double *ret, tp_error *err)
{
    TP_TRY(tp_check_finite("x", x, n, err));
    TP_FREED double *sorted = tp_sorted_copy(x, n);
    *ret = tp_mad_in_place(sorted, n);
    return TP_OK;
}

/* The share of samples in which fewer than k of n values lie below the median, compared
 * with a slack for rounding so that dyadic levels are met exactly. */
static bool tail_fits(size_t k, size_t n, double tail)
{
    return tp_binomial_cdf((int64_t)k - 1, (int64_t)n, 0.5) <= tail * (1 + 1e-12);
}

size_t tp_median_interval_rank(size_t n, double level, double *ret_coverage)
{
    double tail = 0.5 * (1 - level), z = tp_normal_isf(tail);
    if (ret_coverage)
        *ret_coverage = NAN;
    if (n == 0 || !(level > 0 && level < 1) || !tail_fits(1, n, tail))
        return 0;
    double guess = 0.5 * ((double)n - z * sqrt((double)n));
    size_t k = guess < 1 ? 1 : (size_t)guess;
    while (k > 1 && !tail_fits(k, n, tail))
        k--;
    while (2 * k < n + 1 && tail_fits(k + 1, n, tail))
        k++;
    if (ret_coverage)
        *ret_coverage = 1 - 2 * tp_binomial_cdf((int64_t)k - 1, (int64_t)n, 0.5);
    return k;
}

tp_median_interval tp_median_interval_sorted(const double *sorted, size_t n, double level)
{
    tp_median_interval r = {.lo = NAN, .hi = NAN, .coverage = NAN};
    size_t k = tp_median_interval_rank(n, level, &r.coverage);
    if (k == 0) {
        r.why = "too few values for an order-statistic interval at this level";
        return r;
    }
    r.k_lo = k;
    r.k_hi = n + 1 - k;
    r.lo = sorted[r.k_lo - 1];
    r.hi = sorted[r.k_hi - 1];
    return r;
}

typedef struct {
    double value;
    size_t index;
} indexed;

TP_ORDER(compare_indexed, indexed, TP_COMPARE(x->value, y->value))

tp_status tp_midranks(const double *x, size_t n, double *ret_ranks, double *ret_ties, tp_error *err)
{
    double ties = 0;
    TP_TRY(tp_check_finite("x", x, n, err));
    TP_FREED indexed *v = tp_new(n, sizeof *v);
    for (size_t i = 0; i < n; i++)
        v[i] = (indexed){x[i], i};
    qsort(v, n, sizeof *v, compare_indexed);
    for (size_t i = 0, j; i < n; i = j) {
        for (j = i; j < n && v[j].value <= v[i].value; j++)
            ;
        double t = (double)(j - i);
        for (size_t k = i; k < j; k++)
            ret_ranks[v[k].index] = 0.5 * (double)(i + 1 + j);
        ties += t * (t * t - 1);
    }
    if (ret_ties)
        *ret_ties = ties;
    return TP_OK;
}
