/* moments.c - means and central sums in twofold precision, scaled by a power of two where
 * squares would overflow. */
#include "stats/moments.h"

int tp_scale_exponent_two(const double *x, size_t nx, const double *y, size_t ny)
{
    double largest = 0;
    int exponent;
    for (size_t i = 0; i < nx; i++)
        largest = fmax(largest, fabs(x[i]));
    for (size_t i = 0; i < ny; i++)
        largest = fmax(largest, fabs(y[i]));
    if (largest == 0 || (largest < 0x1p200 && largest > 0x1p-200))
        return 0;
    frexp(largest, &exponent);
    return exponent;
}

int tp_scale_exponent(const double *x, size_t n) { return tp_scale_exponent_two(x, n, NULL, 0); }

static double scaled(double x, int exponent) { return exponent ? ldexp(x, -exponent) : x; }

static tp_two exact_mean(const double *x, const double *minus, size_t n, int exponent)
{
    tp_two sum = {0, 0};
    for (size_t i = 0; i < n; i++) {
        sum = tp_two_add_d(sum, scaled(x[i], exponent));
        if (minus)
            sum = tp_two_add_d(sum, -scaled(minus[i], exponent));
    }
    return n ? tp_two_div_d(sum, (double)n) : sum;
}

static tp_two deviation(double x, int exponent, tp_two mean)
{
    return tp_two_add_d(tp_two_negate(mean), scaled(x, exponent));
}

tp_moments tp_moments_of(const double *x, size_t n, int exponent)
{
    tp_moments m = {.n = n, .exponent = exponent};
    m.mean = exact_mean(x, NULL, n, exponent);
    for (size_t i = 0; i < n; i++) {
        tp_two d = deviation(x[i], exponent, m.mean);
        m.s2 = tp_two_add(m.s2, tp_two_mul(d, d));
    }
    return m;
}

tp_moments tp_moments_all(const double *x, size_t n, int exponent)
{
    tp_moments m = {.n = n, .exponent = exponent};
    m.mean = exact_mean(x, NULL, n, exponent);
    for (size_t i = 0; i < n; i++) {
        tp_two d = deviation(x[i], exponent, m.mean), square = tp_two_mul(d, d);
        m.s2 = tp_two_add(m.s2, square);
        m.s3 = tp_two_add(m.s3, tp_two_mul(square, d));
        m.s4 = tp_two_add(m.s4, tp_two_mul(square, square));
    }
    return m;
}

tp_moments tp_moments_of_differences(const double *x, const double *y, size_t n, int exponent)
{
    tp_moments m = {.n = n, .exponent = exponent};
    m.mean = exact_mean(x, y, n, exponent);
    for (size_t i = 0; i < n; i++) {
        tp_two d = deviation(x[i], exponent, m.mean);
        d = tp_two_add_d(d, -scaled(y[i], exponent));
        m.s2 = tp_two_add(m.s2, tp_two_mul(d, d));
    }
    return m;
}

long double tp_moments_mean(const tp_moments *m)
{
    return ldexpl(tp_two_long(m->mean), m->exponent);
}

long double tp_moments_sum_of_squares(const tp_moments *m)
{
    return ldexpl(tp_two_long(m->s2), 2 * m->exponent);
}

long double tp_moments_var(const tp_moments *m)
{
    return tp_moments_sum_of_squares(m) / ((long double)m->n - 1);
}

long double tp_moments_difference(const tp_moments *a, const tp_moments *b)
{
    return ldexpl(tp_two_long(tp_two_sub(a->mean, b->mean)), a->exponent);
}

tp_two tp_moments_lagged(const double *x, size_t n, const tp_moments *m)
{
    tp_two sum = {0, 0};
    if (n < 2)
        return sum;
    tp_two before = deviation(x[0], m->exponent, m->mean);
    for (size_t i = 1; i < n; i++) {
        tp_two d = deviation(x[i], m->exponent, m->mean);
        sum = tp_two_add(sum, tp_two_mul(before, d));
        before = d;
    }
    return sum;
}

long double tp_log_quotient(double x, double y)
{
    long double a = x, b = y;
    if (a > 0.5L * b && a < 2 * b)
        return log1pl((a - b) / b);
    return logl(a / b);
}
