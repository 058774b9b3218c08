/* special.c - normal, t, chi-squared, F, beta, gamma and binomial tails by series, Lentz's
 * continued fraction and Newton's method. */
#include "stats/special.h"

#include <math.h>

#include "stats/special_internal.h"

static const long double two_pi = 6.283185307179586476925286766559L;
static const long double epsilon = 5e-20L;

long double tp_stirling_error(long double z)
{
    int sign;
    if (z < 16)
        return lgammal_r(z, &sign) - ((z - 0.5L) * logl(z) - z + 0.5L * logl(two_pi));
    long double w = 1 / (z * z);
    return (1.0L / 12 -
            w * (1.0L / 360 -
                 w * (1.0L / 1260 -
                      w * (1.0L / 1680 -
                           w * (1.0L / 1188 - w * (691.0L / 360360 -
                                                   w * (1.0L / 156 - w * (3617.0L / 122400)))))))) /
           z;
}

/* v - ln(1 + v) without cancellation: with r = v / (2 + v) the logarithm is 2 atanh r,
 * and v - 2 r = v r.  `w` is 1 + v, which keeps its digits where v is close to -1. */
static long double log_deficit(long double v, long double w)
{
    if (v < -0.4L || v > 0.6L)
        return v - logl(w);
    long double r = v / (2 + v), square = r * r, power = r * square, sum = 0;
    for (int k = 3; k < 60; k += 2) {
        long double term = power / k;
        sum += term;
        if (fabsl(term) <= epsilon * fabsl(sum))
            break;
        power *= square;
    }
    return v * r - 2 * sum;
}

/* ln(x^a y^b / B(a, b)) */
static long double log_beta_density(long double x, long double y, long double a, long double b)
{
    long double delta = a * y - b * x;
    long double stirling = tp_stirling_error(a + b) - tp_stirling_error(a) - tp_stirling_error(b);
    return 0.5L * logl(a / (a + b) * b / two_pi) + stirling -
           a * log_deficit(-delta / a, (a + b) * x / a) -
           b * log_deficit(delta / b, (a + b) * y / b);
}

/* Lentz's continued fraction for I_x(a, b) a / density; fast for x < (a+1) / (a+b+2). */
static long double beta_fraction(long double x, long double a, long double b)
{
    const long double tiny = 1e-3000L;
    long double c = 1, d = 1 - (a + b) * x / (a + 1);
    d = 1 / (fabsl(d) < tiny ? tiny : d);
    long double h = d;
    for (long m = 1; m < 3000000; m++) {
        long double i = (long double)m;
        long double even = i * (b - i) * x / ((a + 2 * i - 1) * (a + 2 * i));
        d = 1 + even * d;
        c = 1 + even / c;
        d = 1 / (fabsl(d) < tiny ? tiny : d);
        h *= d * c;
        long double odd = -(a + i) * (a + b + i) * x / ((a + 2 * i) * (a + 2 * i + 1));
        d = 1 + odd * d;
        c = 1 + odd / c;
        if (fabsl(c) < tiny)
            c = tiny;
        d = 1 / (fabsl(d) < tiny ? tiny : d);
        h *= d * c;
        if (fabsl(d * c - 1) < epsilon)
            break;
    }
    return h;
}

static tp_tails complete_lower(long double log_lower, long double log_density)
{
    long double lower = expl(log_lower);
    if (lower > 1)
        lower = 1;
    return (tp_tails){.lower = lower,
                      .upper = 1 - lower,
                      .log_lower = log_lower,
                      .log_upper = log1pl(-lower),
                      .log_density = log_density};
}

static tp_tails mirror(tp_tails t)
{
    return (tp_tails){t.upper, t.lower, t.log_upper, t.log_lower, t.log_density};
}

tp_tails tp_beta_tails(long double x, long double y, long double a, long double b)
{
    if (!(x > 0))
        return (tp_tails){0, 1, -INFINITY, 0, -INFINITY};
    if (!(y > 0))
        return (tp_tails){1, 0, 0, -INFINITY, -INFINITY};
    long double density = log_beta_density(x, y, a, b);
    if (x < (a + 1) / (a + b + 2))
        return complete_lower(density - logl(a) + logl(beta_fraction(x, a, b)), density);
    return mirror(complete_lower(density - logl(b) + logl(beta_fraction(y, b, a)), density));
}

static long double gamma_series(long double x, long double a)
{
    long double term = 1, sum = 1;
    for (long n = 1; n < 3000000; n++) {
        term *= x / (a + (long double)n);
        sum += term;
        if (term < epsilon * sum)
            break;
    }
    return sum;
}

static long double gamma_fraction(long double x, long double a)
{
    const long double tiny = 1e-3000L;
    long double b = x + 1 - a, c = 1 / tiny, d = 1 / b, h = d;
    for (long n = 1; n < 3000000; n++) {
        long double i = (long double)n, an = -i * (i - a);
        b += 2;
        d = an * d + b;
        c = b + an / c;
        if (fabsl(c) < tiny)
            c = tiny;
        d = 1 / (fabsl(d) < tiny ? tiny : d);
        h *= d * c;
        if (fabsl(d * c - 1) < epsilon)
            break;
    }
    return h;
}

tp_tails tp_gamma_tails(long double x, long double a)
{
    if (!(x > 0))
        return (tp_tails){0, 1, -INFINITY, 0, -INFINITY};
    if (isinf(x))
        return (tp_tails){1, 0, 0, -INFINITY, -INFINITY};
    long double density =
        0.5L * logl(a / two_pi) - tp_stirling_error(a) - a * log_deficit((x - a) / a, x / a);
    if (x < a + 1)
        return complete_lower(density - logl(a) + logl(gamma_series(x, a)), density);
    return mirror(complete_lower(density + logl(gamma_fraction(x, a)), density));
}

/* Newton on the logarithm of a tail.  As a function of the logit the logarithm of a beta
 * tail is concave and linear far out, so from its second point on the iteration comes
 * from the outside and cannot overshoot. */
static long double beta_solve(long double p, bool upper, long double a, long double b)
{
    long double u = logl(a / b), target = logl(p);
    for (int i = 0; i < 200; i++) {
        long double x = 1 / (1 + expl(-u)), y = 1 / (1 + expl(u));
        tp_tails t = tp_beta_tails(x, y, a, b);
        long double log_tail = upper ? t.log_upper : t.log_lower;
        long double step = (target - log_tail) * expl(log_tail - t.log_density);
        if (upper)
            step = -step;
        if (!isfinite(step))
            step = upper ? -1 : 1;
        u += step;
        if (fabsl(step) <= 1e-18L * (1 + fabsl(u)))
            break;
    }
    return u;
}

/* The same in ln x; there the upper tail falls like exp(-x), so steps to the right are
 * kept short. */
static long double gamma_solve(long double p, bool upper, long double a)
{
    long double u = logl(a), target = logl(p);
    for (int i = 0; i < 400; i++) {
        tp_tails t = tp_gamma_tails(expl(u), a);
        long double log_tail = upper ? t.log_upper : t.log_lower;
        long double step = (target - log_tail) * expl(log_tail - t.log_density);
        if (upper)
            step = -step;
        if (!isfinite(step))
            step = upper ? -1 : 1;
        if (step > 0.5L)
            step = 0.5L;
        u += step;
        if (fabsl(step) <= 1e-18L * (1 + fabsl(u)))
            break;
    }
    return u;
}

long double tp_normal_sf_long(long double z)
{
    return 0.5L * erfcl(z * 0.707106781186547524400844362105L);
}

long double tp_normal_isf_long(long double p)
{
    if (isnan(p) || p < 0 || p > 1)
        return NAN;
    if (p == 0)
        return INFINITY;
    if (p == 1)
        return -INFINITY;
    if (p == 0.5L)
        return 0;
    long double q = p < 0.5L ? p : 1 - p;
    long double s = sqrtl(-2 * logl(q)); /* Abramowitz and Stegun 26.2.23 to begin with */
    long double z = s - (2.515517L + s * (0.802853L + s * 0.010328L)) /
                            (1 + s * (1.432788L + s * (0.189269L + s * 0.001308L)));
    for (int i = 0; i < 6; i++) { /* Halley */
        long double density = expl(-0.5L * z * z) / sqrtl(two_pi);
        long double f = (tp_normal_sf_long(z) - q) / density;
        long double step = f / (1 - 0.5L * z * f);
        z += step;
        if (fabsl(step) <= 1e-19L * fabsl(z))
            break;
    }
    return p < 0.5L ? z : -z;
}

long double tp_t_isf_long(long double p, long double df)
{
    if (isnan(p) || !(df > 0) || p < 0 || p > 1)
        return NAN;
    if (p > 0.5L)
        return -tp_t_isf_long(1 - p, df);
    if (p == 0)
        return INFINITY;
    if (p == 0.5L)
        return 0;
    if (df > 1e12L) { /* first term of the Cornish-Fisher expansion */
        long double z = tp_normal_isf_long(p);
        return z + z * (z * z + 1) / (4 * df);
    }
    bool upper = p > 0.25L;
    long double u = beta_solve(upper ? 1 - 2 * p : 2 * p, upper, 0.5L * df, 0.5L);
    return sqrtl(df) * expl(-0.5L * u);
}

double tp_normal_sf(double z) { return (double)tp_normal_sf_long(z); }
double tp_normal_cdf(double z) { return (double)tp_normal_sf_long(-(long double)z); }
double tp_normal_isf(double p) { return (double)tp_normal_isf_long(p); }
double tp_normal_quantile(double p) { return (double)-tp_normal_isf_long(p); }

static tp_tails t_tails(long double t, long double df)
{
    long double square = t * t;
    return tp_beta_tails(df / (df + square), square / (df + square), 0.5L * df, 0.5L);
}

double tp_t_sf(double t, double df)
{
    if (isnan(t) || !(df > 0))
        return NAN;
    if (isinf(t))
        return t > 0 ? 0 : 1;
    long double z = t;
    if (df > 1e12) {
        long double density = expl(-0.5L * z * z) / sqrtl(two_pi);
        return (double)(tp_normal_sf_long(z) + density * z * (z * z + 1) / (4 * (long double)df));
    }
    long double tail = 0.5L * t_tails(z, df).lower;
    return (double)(t >= 0 ? tail : 1 - tail);
}

double tp_t_cdf(double t, double df) { return tp_t_sf(-t, df); }

double tp_t_two_sided(double t, double df)
{
    if (isnan(t) || !(df > 0))
        return NAN;
    if (t == 0)
        return 1;
    return df > 1e12 || isinf(t) ? 2 * tp_t_sf(fabs(t), df) : (double)t_tails(t, df).lower;
}

double tp_t_isf(double p, double df) { return (double)tp_t_isf_long(p, df); }
double tp_t_quantile(double p, double df) { return (double)-tp_t_isf_long(p, df); }

static tp_tails f_tails(double f, double df1, double df2)
{
    long double n = (long double)df1 * (long double)f, d = df2;
    return tp_beta_tails(d / (d + n), n / (d + n), 0.5L * d, 0.5L * (long double)df1);
}

static bool f_domain(double f, double df1, double df2) { return !isnan(f) && df1 > 0 && df2 > 0; }

double tp_f_sf(double f, double df1, double df2)
{
    if (!f_domain(f, df1, df2))
        return NAN;
    if (f <= 0 || isinf(f))
        return f <= 0 ? 1 : 0;
    return (double)f_tails(f, df1, df2).lower;
}

double tp_f_cdf(double f, double df1, double df2)
{
    if (!f_domain(f, df1, df2))
        return NAN;
    if (f <= 0 || isinf(f))
        return f <= 0 ? 0 : 1;
    return (double)f_tails(f, df1, df2).upper;
}

double tp_chi2_sf(double x, double df)
{
    return isnan(x) || !(df > 0)
               ? NAN
               : (double)tp_gamma_tails(0.5L * (long double)x, 0.5L * (long double)df).upper;
}

double tp_chi2_quantile(double p, double df)
{
    if (!(df > 0) || !(p >= 0 && p <= 1))
        return NAN;
    if (p == 0 || p == 1)
        return p == 0 ? 0 : INFINITY;
    long double a = 0.5L * (long double)df;
    return (double)(2 * expl(p < 0.5 ? gamma_solve(p, false, a)
                                     : gamma_solve(1 - (long double)p, true, a)));
}

static bool beta_domain(double x, double a, double b) { return !isnan(x) && a > 0 && b > 0; }

double tp_beta_quantile(double p, double a, double b)
{
    if (!beta_domain(p, a, b) || p < 0 || p > 1)
        return NAN;
    if (p == 0 || p == 1)
        return p;
    long double u =
        p < 0.5 ? beta_solve(p, false, a, b) : beta_solve(1 - (long double)p, true, a, b);
    return (double)(1 / (1 + expl(-u)));
}

static tp_tails binomial_tails(int64_t k, int64_t n, double p)
{
    return tp_beta_tails(1 - (long double)p, p, (long double)(n - k), (long double)k + 1);
}

double tp_binomial_cdf(int64_t k, int64_t n, double p)
{
    if (n < 0 || !(p >= 0 && p <= 1))
        return NAN;
    if (k < 0 || k >= n)
        return k < 0 ? 0 : 1;
    return (double)binomial_tails(k, n, p).lower;
}

double tp_binomial_sf(int64_t k, int64_t n, double p)
{
    if (n < 0 || !(p >= 0 && p <= 1))
        return NAN;
    if (k <= 0 || k > n)
        return k <= 0 ? 1 : 0;
    return (double)binomial_tails(k - 1, n, p).upper;
}

double tp_log_beta(double a, double b)
{
    if (!(a > 0 && b > 0))
        return NAN;
    long double x = a, y = b, x_share = x / (x + y);
    return (double)(x * logl(x_share) + y * logl(y / (x + y)) -
                    log_beta_density(x_share, y / (x + y), x, y));
}
