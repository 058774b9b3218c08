/* twofold.c - exponentials and sums in double-double arithmetic (Dekker 1971; Hida, Li and
 * Bailey 2001). */
#include "stats/twofold.h"

/* exp(x) = 2^k exp(r)^1024 with r = (x - k ln 2) / 1024: nine terms of the series, then
 * ten squarings of exp(r) - 1, which keeps the digits that exp(r) would round away. */
tp_two tp_two_exp(tp_two x)
{
    static const tp_two ln2 = {6.931471805599452862e-01, 2.319046813846299558e-17};
    if (x.hi < -700 || x.hi > 700)
        return tp_two_of(exp(x.hi));
    double k = nearbyint(x.hi / ln2.hi);
    tp_two r = tp_two_mul_d(tp_two_sub(x, tp_two_mul_d(ln2, k)), 0x1p-10);
    tp_two term = r, e = r; /* e = exp(r) - 1 */
    for (int i = 2; i <= 10; i++) {
        term = tp_two_div_d(tp_two_mul(term, r), i);
        e = tp_two_add(e, term);
    }
    for (int i = 0; i < 10; i++) /* (1 + e)^2 - 1 = 2e + e^2 */
        e = tp_two_add(tp_two_mul_d(e, 2), tp_two_mul(e, e));
    e = tp_two_add_d(e, 1);
    return (tp_two){ldexp(e.hi, (int)k), ldexp(e.lo, (int)k)};
}

tp_two tp_two_sum_of(const double *x, size_t n)
{
    tp_two sum = {0, 0};
    for (size_t i = 0; i < n; i++)
        sum = tp_two_add_d(sum, x[i]);
    return sum;
}
