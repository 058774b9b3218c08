/* noncentral.c - the noncentral t by the trapezoidal rule in ln s, each tail for itself. */
#include <math.h>
#include <stdbool.h>

#include "stats/special.h"
#include "stats/special_internal.h"

/* P(T <= t) is the integral of Phi(t s - ncp) over the distribution of s = sqrt(chi2/nu).
 * In w = ln s the integrand is analytic and falls off at least exponentially on both
 * sides, so the trapezoidal rule converges faster than any power of its step; every term
 * is positive, so each tail keeps its digits.  The step is a fraction of the narrowest
 * bump the integrand can have (2 nu from chi2 and ncp^2 from Phi bound its curvature) and
 * of the strip |Im w| < pi/4 in which it stays bounded. */

typedef struct integrand integrand;
struct integrand {
    long double t, df, ncp;
    long double log_scale; /* of the density of w */
    bool upper;            /* of by_normal: P(T > t) */
    long double (*log_value)(const integrand *f, long double at);
};

static long double log_phi(long double z) /* ln Phi(z) */
{
    if (z > -140)
        return logl(tp_normal_sf_long(-z));
    long double w = 1 / (z * z);
    return -0.5L * z * z - logl(-z) - 0.918938533204672741780329736406L + log1pl(-w + 3 * w * w);
}

static long double log_value(const integrand *f, long double w)
{
    long double z = f->t * expl(w) - f->ncp;
    return log_phi(z) - 0.5L * f->df * (expm1l(2 * w) - 2 * w) + f->log_scale;
}

static long double peak_of(const integrand *f, long double lo, long double hi)
{
    const long double golden = 0.618033988749894848204586834366L;
    long double a = hi - golden * (hi - lo), b = lo + golden * (hi - lo);
    long double fa = f->log_value(f, a), fb = f->log_value(f, b);
    for (int i = 0; i < 60; i++) {
        if (fa < fb) {
            lo = a;
            a = b;
            fa = fb;
            b = lo + golden * (hi - lo);
            fb = f->log_value(f, b);
        } else {
            hi = b;
            b = a;
            fb = fa;
            a = hi - golden * (hi - lo);
            fa = f->log_value(f, a);
        }
    }
    return 0.5L * (lo + hi);
}

static long double walk(const integrand *f, long double from, long double step)
{
    long double sum = 0;
    for (long i = 1; i < 10000000; i++) {
        long double term = expl(f->log_value(f, from + (long double)i * step));
        sum += term;
        if (term <= 1e-23L * sum)
            break;
    }
    return sum;
}

static long double total(const integrand *f, long double peak, long double step)
{
    long double sum = expl(f->log_value(f, peak)) + walk(f, peak, step) + walk(f, peak, -step);
    long double p = sum * step;
    return p > 1 ? 1 : p;
}

static long double lower_tail(long double t, long double df, long double ncp)
{
    integrand f = {.t = t,
                   .df = df,
                   .ncp = ncp,
                   .log_value = log_value,
                   .log_scale = 0.5L * logl(df / 3.141592653589793238462643383280L) -
                                tp_stirling_error(0.5L * df)};
    long double lo = -(logl(1 + fabsl(t)) + 60 / df + 5), hi = logl(3 + fabsl(ncp)) + 1;
    long double peak = peak_of(&f, lo, hi);
    long double step = fminl(0.1L, 0.35L / sqrtl(2 * df + ncp * ncp));
    return total(&f, peak, step);
}

/* For a large ncp that integrand is a step in a wide range, and the other order is the
 * smooth one:  P(T <= t) = integral P(s >= (z + ncp) / t) dPhi(z)  with t, ncp > 0, where
 * z < -ncp does not count any more. */
static const long double large_ncp = 40;

static long double log_value_normal(const integrand *f, long double z)
{
    long double s = (z + f->ncp) / f->t;
    if (s <= 0)
        return f->upper ? -INFINITY : -0.5L * z * z + f->log_scale;
    tp_tails tails = tp_gamma_tails(0.5L * f->df * s * s, 0.5L * f->df);
    return -0.5L * z * z + f->log_scale + (f->upper ? tails.log_lower : tails.log_upper);
}

static long double by_normal(long double t, long double df, long double ncp, bool upper)
{
    integrand f = {.t = t,
                   .df = df,
                   .ncp = ncp,
                   .upper = upper,
                   .log_value = log_value_normal,
                   .log_scale = -0.918938533204672741780329736406L};
    return total(&f, peak_of(&f, -38, 38), 0.35L / sqrtl(1 + 2 * df / (t * t)));
}

double tp_nct_cdf(double t, double df, double ncp)
{
    if (isnan(t) || !(df > 0) || isnan(ncp) || isinf(ncp))
        return NAN;
    if (isinf(t))
        return t > 0 ? 1 : 0;
    if (df > 1e12)
        return tp_normal_cdf(t - ncp);
    if (fabs(ncp) < large_ncp)
        return (double)lower_tail(t, df, ncp);
    if ((t > 0) != (ncp > 0) || t == 0) /* beyond Phi(-40) */
        return ncp > 0 ? 0 : 1;
    return (double)(ncp > 0 ? by_normal(t, df, ncp, false) : by_normal(-t, df, -ncp, true));
}

double tp_nct_sf(double t, double df, double ncp) { return tp_nct_cdf(-t, df, -ncp); }
