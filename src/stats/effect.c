/* effect.c - Cohen's d, Hedges' g and their intervals by inverting the noncentral t; Cliff's
 * delta in words. */
#include "stats/effect.h"

#include <math.h>

#include "stats/descriptive.h"
#include "stats/solve.h"
#include "stats/special.h"
#include "stats/two_sample.h"

double tp_hedges_j(double df)
{
    if (!(df > 1))
        return NAN;
    long double h = 0.5L * (long double)df;
    int sign;
    if (df > 1e6) /* the logarithms would cancel */
        return (double)(1 - 3 / (4 * (long double)df - 1));
    return (double)expl(lgammal_r(h, &sign) - lgammal_r(h - 0.5L, &sign) - 0.5L * logl(h));
}

typedef struct {
    double t, df, tail;
} ncp_problem;

/* Falls from above `tail` to below it as the ncp grows; the logarithm straightens it. */
static double excess(double ncp, void *context)
{
    const ncp_problem *p = context;
    double lower = tp_nct_cdf(p->t, p->df, ncp);
    if (lower < 0.5)
        return lower > 0 ? log(lower / p->tail) : -1e300;
    double upper = tp_nct_sf(p->t, p->df, ncp);
    return upper > 0 ? log((1 - p->tail) / upper) : 1e300;
}

static double ncp_at(double t, double df, double tail)
{
    ncp_problem p = {t, df, tail};
    double lo = t - 1, hi = t + 1, width = 2 + fabs(t) / sqrt(2 * df);
    for (int i = 0; i < 60 && excess(lo, &p) < 0; i++, width *= 2)
        lo -= width;
    width = 2 + fabs(t) / sqrt(2 * df);
    for (int i = 0; i < 60 && excess(hi, &p) > 0; i++, width *= 2)
        hi += width;
    return tp_solve(excess, &p, lo, hi);
}

tp_interval tp_ncp_interval(double t, double df, double level)
{
    double tail = 0.5 * (1 - level);
    if (isnan(t) || isinf(t) || !(df > 0) || !(tail > 0 && tail < 0.5))
        return tp_interval_undefined("the t statistic is undefined");
    if (fabs(t) > 1e4 || df > 1e8) { /* beyond that the integral is slow, and normal */
        double half = tp_normal_isf(tail) * sqrt(1 + t * t / (2 * df));
        return (tp_interval){.lo = t - half, .hi = t + half};
    }
    return (tp_interval){.lo = ncp_at(t, df, 1 - tail), .hi = ncp_at(t, df, tail)};
}

static tp_interval times(tp_interval ci, double factor)
{
    return (tp_interval){.lo = ci.lo * factor, .hi = ci.hi * factor, .why = ci.why};
}

tp_effect tp_effect_two(const double *x, size_t nx, const double *y, size_t ny, double level)
{
    tp_effect r = {NAN, NAN, NAN, NAN, NAN, NAN, .why = NULL};
    double df = (double)nx + (double)ny - 2, n1 = (double)nx, n2 = (double)ny;
    tp_t_test t = tp_student(x, nx, y, ny, level);
    double sd_y = tp_sd(y, ny);
    if (df >= 2) {
        r.j = tp_hedges_j(df);
        r.j_approximate = 1 - 3 / (4 * df - 1);
    } else {
        r.why_j = "needs at least four values in all";
    }
    if (sd_y > 0)
        r.glass_delta = t.diff / sd_y;
    else
        r.why_glass = ny < 2 ? "y needs at least two values" : "y is constant";
    if (t.why) {
        r.why = t.why;
        r.d_ci = r.g_ci = tp_interval_undefined(t.why);
        return r;
    }
    double per_t = sqrt(1 / n1 + 1 / n2);
    r.d = t.t * per_t;
    r.g = r.d * r.j;
    r.d_variance = (n1 + n2) / (n1 * n2) + r.d * r.d / (2 * (n1 + n2));
    r.d_ci = times(tp_ncp_interval(t.t, df, level), per_t);
    r.g_ci = r.why_j ? tp_interval_undefined(r.why_j) : times(r.d_ci, r.j);
    return r;
}

tp_effect_paired_result tp_effect_paired(const double *x, const double *y, size_t n, double level)
{
    tp_effect_paired_result r = {.dz = NAN, .dav = NAN};
    tp_t_test t = tp_paired_t(x, y, n, level);
    double vx = tp_variance(x, n), vy = tp_variance(y, n), sx = tp_sd(x, n), sy = tp_sd(y, n);
    double average = isfinite(vx + vy) ? sqrt(0.5 * (vx + vy)) : hypot(sx, sy) * sqrt(0.5);
    if (average > 0)
        r.dav = t.diff / average;
    else
        r.why_dav = n < 2 ? "needs at least two pairs" : "both samples are constant";
    r.why = t.why;
    if (t.why) {
        r.dz_ci = tp_interval_undefined(t.why);
        return r;
    }
    r.dz = t.t / sqrt((double)n);
    r.dz_ci = times(tp_ncp_interval(t.t, t.df, level), 1 / sqrt((double)n));
    return r;
}

static const char *word_of(double size, const double bounds[3])
{
    static const char *const words[] = {"negligible", "small", "medium", "large"};
    int i = 0;
    if (isnan(size))
        return "unknown";
    while (i < 3 && fabs(size) >= bounds[i])
        i++;
    return words[i];
}

const char *tp_effect_word(double d) { return word_of(d, (const double[]){0.2, 0.5, 0.8}); }

const char *tp_cliff_word(double delta)
{
    return word_of(delta, (const double[]){0.147, 0.33, 0.474});
}
