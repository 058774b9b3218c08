/* twofold.h - sums and products in twice the precision of double.
 *
 * A value is hi + lo with |lo| at most half a unit in the last place of hi: about 32
 * digits.  Knuth's two-sum and the product by fused multiply-add (Dekker 1971, Hida, Li
 * and Bailey 2001).  Statistics need it where a large common part cancels: variances of
 * values near 1e9, residuals of a fit that is exact.  Compiled without contraction of
 * a * b + c, which would break the error terms. */
#ifndef TP_STATS_TWOFOLD_H
#define TP_STATS_TWOFOLD_H

#include <math.h>
#include <stddef.h>

typedef struct {
    double hi, lo;
} tp_two;

static inline tp_two tp_two_of(double x) { return (tp_two){x, 0}; }
static inline double tp_two_value(tp_two a) { return a.hi + a.lo; }
static inline long double tp_two_long(tp_two a) { return (long double)a.hi + (long double)a.lo; }

/* a + b exactly. */
static inline tp_two tp_two_sum(double a, double b)
{
    double s = a + b;
    double v = s - a;
    return (tp_two){s, (a - (s - v)) + (b - v)};
}

/* The same when |a| >= |b|. */
static inline tp_two tp_two_renormal(double a, double b)
{
    double s = a + b;
    return (tp_two){s, b - (s - a)};
}

/* a * b exactly. */
static inline tp_two tp_two_product(double a, double b)
{
    double p = a * b;
    return (tp_two){p, fma(a, b, -p)};
}

static inline tp_two tp_two_negate(tp_two a) { return (tp_two){-a.hi, -a.lo}; }

static inline tp_two tp_two_add(tp_two a, tp_two b)
{
    tp_two s = tp_two_sum(a.hi, b.hi);
    tp_two t = tp_two_sum(a.lo, b.lo);
    s = tp_two_renormal(s.hi, s.lo + t.hi);
    return tp_two_renormal(s.hi, s.lo + t.lo);
}

static inline tp_two tp_two_add_d(tp_two a, double b)
{
    tp_two s = tp_two_sum(a.hi, b);
    return tp_two_renormal(s.hi, s.lo + a.lo);
}

static inline tp_two tp_two_sub(tp_two a, tp_two b) { return tp_two_add(a, tp_two_negate(b)); }

static inline tp_two tp_two_mul(tp_two a, tp_two b)
{
    tp_two p = tp_two_product(a.hi, b.hi);
    return tp_two_renormal(p.hi, p.lo + (a.hi * b.lo + a.lo * b.hi));
}

static inline tp_two tp_two_mul_d(tp_two a, double b)
{
    tp_two p = tp_two_product(a.hi, b);
    return tp_two_renormal(p.hi, p.lo + a.lo * b);
}

static inline tp_two tp_two_div(tp_two a, tp_two b)
{
    double q1 = a.hi / b.hi;
    tp_two r = tp_two_sub(a, tp_two_mul_d(b, q1));
    double q2 = r.hi / b.hi;
    r = tp_two_sub(r, tp_two_mul_d(b, q2));
    double q3 = r.hi / b.hi;
    return tp_two_add_d(tp_two_renormal(q1, q2), q3);
}

static inline tp_two tp_two_div_d(tp_two a, double b) { return tp_two_div(a, tp_two_of(b)); }

static inline tp_two tp_two_sqrt(tp_two a)
{
    if (!(a.hi > 0))
        return tp_two_of(0);
    double s = sqrt(a.hi);
    tp_two r = tp_two_sub(a, tp_two_product(s, s));
    return tp_two_renormal(s, r.hi / (2 * s));
}

tp_two tp_two_exp(tp_two x);
tp_two tp_two_sum_of(const double *x, size_t n);

#endif
