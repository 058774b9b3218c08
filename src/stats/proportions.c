/* proportions.c - Wilson, Clopper-Pearson and Wald intervals, Newcombe's difference, McNemar's
 * test. */
#include "stats/proportions.h"

#include <math.h>

#include "stats/special.h"
#include "stats/special_internal.h"

static long double z_of(double level)
{
    return tp_normal_isf_long(0.5L * (1 - (long double)level));
}

static tp_interval around(long double center, long double half)
{
    return (tp_interval){.lo = (double)(center - half), .hi = (double)(center + half)};
}

tp_interval tp_wilson(double x, double n, double level)
{
    if (!(n > 0) || !(x >= 0 && x <= n) || !(level > 0 && level < 1))
        return tp_interval_undefined("needs 0 <= x <= n and n > 0");
    long double m = n, p = (long double)x / m, z = z_of(level), zz = z * z;
    tp_interval ci = around((p + zz / (2 * m)) / (1 + zz / m),
                            z * sqrtl(p * (1 - p) / m + zz / (4 * m * m)) / (1 + zz / m));
    if (x == 0)
        ci.lo = 0;
    if (x == n)
        ci.hi = 1;
    return ci;
}

/* With continuity correction (Newcombe 1998, method 4). */
static tp_interval wilson_corrected(long double x, long double n, long double z)
{
    long double p = x / n, q = 1 - p, zz = z * z, below = 2 * (n + zz);
    long double lo = (2 * n * p + zz - 1 - z * sqrtl(zz - 2 - 1 / n + 4 * p * (n * q + 1))) / below;
    long double hi = (2 * n * p + zz + 1 + z * sqrtl(zz + 2 - 1 / n + 4 * p * (n * q - 1))) / below;
    return (tp_interval){.lo = x == 0 ? 0 : (double)fmaxl(lo, 0),
                         .hi = x == n ? 1 : (double)fminl(hi, 1)};
}

static tp_interval agresti_coull(long double x, long double n, long double z)
{
    long double m = n + z * z, p = (x + z * z / 2) / m;
    return around(p, z * sqrtl(p * (1 - p) / m));
}

static tp_interval beta_interval(double a_lo, double b_lo, double a_hi, double b_hi, double level,
                                 bool at_zero, bool at_one)
{
    double tail = (double)(0.5L * (1 - (long double)level));
    return (tp_interval){.lo = at_zero ? 0 : tp_beta_quantile(tail, a_lo, b_lo),
                         .hi = at_one ? 1 : 1 - tp_beta_quantile(tail, b_hi, a_hi)};
}

tp_proportion_result tp_proportion(int64_t x, int64_t n, double level)
{
    if (n <= 0 || x < 0 || x > n || !(level > 0 && level < 1)) {
        static const char *const why = "needs 0 <= x <= n and n > 0";
        tp_interval u = tp_interval_undefined(why);
        return (tp_proportion_result){NAN, NAN, u, u, u, u, u, u, why};
    }
    double a = (double)x, m = (double)n;
    long double p = (long double)x / (long double)n, z = z_of(level);
    long double se = sqrtl(p * (1 - p) / (long double)n);
    return (tp_proportion_result){
        .p = (double)p,
        .se_clt = (double)se,
        .wald = around(p, z * se),
        .wilson = tp_wilson(a, m, level),
        .wilson_cc = wilson_corrected(a, m, z),
        .clopper_pearson = beta_interval(a, m - a + 1, a + 1, m - a, level, x == 0, x == n),
        .agresti_coull = agresti_coull(a, m, z),
        .jeffreys =
            beta_interval(a + 0.5, m - a + 0.5, a + 0.5, m - a + 0.5, level, x == 0, x == n)};
}

tp_newcombe_result tp_newcombe(int64_t x1, int64_t n1, int64_t x2, int64_t n2, double level)
{
    tp_interval a = tp_wilson((double)x1, (double)n1, level);
    tp_interval b = tp_wilson((double)x2, (double)n2, level);
    if (a.why || b.why)
        return (tp_newcombe_result){NAN, tp_interval_undefined(a.why ? a.why : b.why),
                                    a.why ? a.why : b.why};
    long double p1 = (long double)x1 / (long double)n1, p2 = (long double)x2 / (long double)n2;
    long double diff = p1 - p2;
    return (tp_newcombe_result){.diff = (double)diff,
                                .ci = {.lo = (double)(diff - hypotl(p1 - a.lo, b.hi - p2)),
                                       .hi = (double)(diff + hypotl(a.hi - p1, p2 - b.lo))}};
}

double tp_mcnemar(int64_t b, int64_t c)
{
    if (b < 0 || c < 0 || b > INT64_MAX / 4 || c > INT64_MAX / 4)
        return NAN;
    return fmin(1, 2 * tp_binomial_cdf(b < c ? b : c, b + c, 0.5));
}
