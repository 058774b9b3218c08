/* pairs.c - the k-th smallest of all pairwise differences or Walsh averages, by bisection over
 * the keys and counting in sorted rows. */
#include <string.h>

#include "stats/order.h"

uint64_t tp_order_key(double x)
{
    uint64_t bits;
    x += 0.0; /* -0 and 0 are one value */
    memcpy(&bits, &x, sizeof bits);
    return bits >> 63 ? ~bits : bits | (UINT64_C(1) << 63);
}

double tp_order_value(uint64_t key)
{
    uint64_t bits = key >> 63 ? key & ~(UINT64_C(1) << 63) : ~key;
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint64_t count_differences(const double *x, size_t nx, const double *y, size_t ny,
                                  double limit)
{
    uint64_t count = 0;
    size_t at = ny; /* y[at..] give x[i] - y <= limit */
    for (size_t i = 0; i < nx; i++) {
        while (at > 0 && x[i] - y[at - 1] <= limit)
            at--;
        while (at < ny && x[i] - y[at] > limit)
            at++;
        count += ny - at;
    }
    return count;
}

double tp_kth_difference(const double *x, size_t nx, const double *y, size_t ny, uint64_t k)
{
    uint64_t lo = tp_order_key(x[0] - y[ny - 1]), hi = tp_order_key(x[nx - 1] - y[0]);
    while (lo < hi) {
        uint64_t middle = lo + (hi - lo) / 2;
        if (count_differences(x, nx, y, ny, tp_order_value(middle)) >= k)
            hi = middle;
        else
            lo = middle + 1;
    }
    return tp_order_value(lo) + 0.0;
}

static double average(double a, double b) { return 0.5 * a + 0.5 * b; }

static uint64_t count_walsh(const double *d, size_t n, double limit)
{
    uint64_t count = 0;
    size_t end = n; /* d[j], j < end, have average(d[i], d[j]) <= limit */
    for (size_t i = 0; i < n; i++) {
        while (end > 0 && average(d[i], d[end - 1]) > limit)
            end--;
        if (end <= i)
            break;
        count += end - i;
    }
    return count;
}

double tp_kth_walsh(const double *d, size_t n, uint64_t k)
{
    uint64_t lo = tp_order_key(d[0]), hi = tp_order_key(d[n - 1]);
    while (lo < hi) {
        uint64_t middle = lo + (hi - lo) / 2;
        if (count_walsh(d, n, tp_order_value(middle)) >= k)
            hi = middle;
        else
            lo = middle + 1;
    }
    return tp_order_value(lo) + 0.0;
}

double tp_median_difference(const double *x, size_t nx, const double *y, size_t ny)
{
    uint64_t total = (uint64_t)nx * ny;
    if (total == 0)
        return NAN;
    double upper = tp_kth_difference(x, nx, y, ny, total / 2 + 1);
    return total % 2 ? upper : average(tp_kth_difference(x, nx, y, ny, total / 2), upper);
}

double tp_median_walsh(const double *d, size_t n)
{
    uint64_t total = (uint64_t)n * (n + 1) / 2;
    if (total == 0)
        return NAN;
    double upper = tp_kth_walsh(d, n, total / 2 + 1);
    return total % 2 ? upper : average(tp_kth_walsh(d, n, total / 2), upper);
}
