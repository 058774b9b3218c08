#include <math.h>

#include "stats/special.h"
#include "stats/special_internal.h"

/* P(T <= t) is the integral of Phi(t s - ncp) over the distribution of s = sqrt(chi2/nu).
 * In w = ln s the integrand is analytic and falls off at least exponentially on both
 * sides, so the trapezoidal rule converges faster than any power of its step; every term
 * is positive, so each tail keeps its digits.  The step is a fraction of the narrowest
 * bump the integrand can have (2 nu from chi2 and ncp^2 from Phi bound its curvature) and
 * of the strip |Im w| < pi/4 in which it stays bounded. */

typedef struct {
    long double t, df, ncp;
    long double log_scale; /* of the density of w */
} integrand;

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

static long double peak_of(const integrand *f)
{
    const long double golden = 0.618033988749894848204586834366L;
    long double lo = -(logl(1 + fabsl(f->t)) + 60 / f->df + 5);
    long double hi = logl(3 + fabsl(f->ncp)) + 1;
    long double a = hi - golden * (hi - lo), b = lo + golden * (hi - lo);
    long double fa = log_value(f, a), fb = log_value(f, b);
    for (int i = 0; i < 60; i++) {
        if (fa < fb) {
            lo = a;
            a = b;
            fa = fb;
            b = lo + golden * (hi - lo);
            fb = log_value(f, b);
        } else {
            hi = b;
            b = a;
            fb = fa;
            a = hi - golden * (hi - lo);
            fa = log_value(f, a);
        }
    }
    return 0.5L * (lo + hi);
}

static long double walk(const integrand *f, long double from, long double step)
{
    long double sum = 0;
    for (long i = 1; i < 10000000; i++) {
        long double term = expl(log_value(f, from + (long double)i * step));
        sum += term;
        if (term <= 1e-23L * sum)
            break;
    }
    return sum;
}

static long double lower_tail(long double t, long double df, long double ncp)
{
    integrand f = {.t = t,
                   .df = df,
                   .ncp = ncp,
                   .log_scale = 0.5L * logl(df / 3.141592653589793238462643383280L) -
                                tp_stirling_error(0.5L * df)};
    long double peak = peak_of(&f);
    long double step = fminl(0.1L, 0.35L / sqrtl(2 * df + ncp * ncp));
    long double sum = expl(log_value(&f, peak)) + walk(&f, peak, step) + walk(&f, peak, -step);
    long double p = sum * step;
    return p > 1 ? 1 : p;
}

double tp_nct_cdf(double t, double df, double ncp)
{
    if (isnan(t) || !(df > 0) || isnan(ncp) || isinf(ncp))
        return NAN;
    if (isinf(t))
        return t > 0 ? 1 : 0;
    if (df > 1e12)
        return tp_normal_cdf(t - ncp);
    return (double)lower_tail(t, df, ncp);
}

double tp_nct_sf(double t, double df, double ncp) { return tp_nct_cdf(-t, df, -ncp); }
