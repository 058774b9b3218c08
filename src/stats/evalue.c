/* evalue.c - e-values of the sign test by a uniform mixture over rates; anytime-valid intervals
 * by inverting the mixture. */
#include "stats/evalue.h"

#include <math.h>

#include "stats/solve.h"
#include "stats/special.h"
#include "stats/special_internal.h"

double tp_sign_evalue_log(int64_t n, int64_t k)
{
    if (n < 0 || k < 0 || k > n)
        return NAN;
    long double a = (long double)k + 1, b = (long double)(n - k) + 1;
    tp_tails t = tp_beta_tails(0.5L, 0.5L, a, b);
    return (double)(((long double)n + 1) * logl(2) + tp_log_beta((double)a, (double)b) +
                    t.log_upper);
}

double tp_sign_evalue(int64_t n, int64_t k) { return exp(tp_sign_evalue_log(n, k)); }

int64_t tp_sign_evalue_min_rounds(double alpha)
{
    if (!(alpha > 0 && alpha <= 1))
        return 0;
    int64_t n = 0;
    while (tp_sign_evalue_log(n, n) < -log(alpha) - 1e-12)
        n++;
    return n;
}

tp_sequential tp_sequential_sign(int64_t n, int64_t k, double alpha, size_t n_tests)
{
    double needed = log((double)(n_tests ? n_tests : 1) / alpha) - 1e-12;
    if (tp_sign_evalue_log(n, k) >= needed)
        return TP_SEQUENTIAL_ABOVE;
    if (tp_sign_evalue_log(n, n - k) >= needed)
        return TP_SEQUENTIAL_BELOW;
    return TP_SEQUENTIAL_CONTINUE;
}

typedef struct {
    double n, k, limit;
} rate_problem;

/* The log of the mixture against a rate r, less what it may reach. */
static double rate_excess(double r, void *context)
{
    const rate_problem *p = context;
    double against = (p->k > 0 ? p->k * log(r) : 0) + (p->n > p->k ? (p->n - p->k) * log1p(-r) : 0);
    return tp_log_beta(p->k + 1, p->n - p->k + 1) - against - p->limit;
}

tp_interval tp_anytime_rate(int64_t n, int64_t k, double alpha)
{
    if (n < 0 || k < 0 || k > n || !(alpha > 0 && alpha < 1))
        return tp_interval_undefined("needs 0 <= k <= n and alpha between 0 and 1");
    rate_problem p = {(double)n, (double)k, -log(alpha)};
    double best = n ? (double)k / (double)n : 0.5;
    tp_interval ci = {.lo = 0, .hi = 1};
    if (n == 0)
        return ci;
    if (k > 0 && k < n) {
        ci.lo = tp_solve(rate_excess, &p, 1e-300, best);
        ci.hi = tp_solve(rate_excess, &p, best, 1 - 0x1p-53);
    } else if (k == n) {
        ci.lo = tp_solve(rate_excess, &p, 1e-300, 1);
    } else {
        ci.hi = tp_solve(rate_excess, &p, 0, 1 - 0x1p-53);
    }
    return ci;
}
