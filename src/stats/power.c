/* power.c - power, sample size and smallest detectable effect of t tests and the
 * sign test. */
#include "stats/power.h"

#include <math.h>

#include "stats/solve.h"
#include "stats/special.h"

static double power_of(double ncp, double df, double alpha, int sides)
{
    if (!(df > 0) || !(alpha > 0 && alpha < 1) || (sides != 1 && sides != 2) || isnan(ncp))
        return NAN;
    double critical = tp_t_isf(alpha / sides, df);
    double power = tp_nct_sf(critical, df, ncp);
    if (sides == 2)
        power += tp_nct_cdf(-critical, df, ncp);
    return fmin(power, 1);
}

static double ncp_two(double d, double n1, double n2) { return d * sqrt(n1 * n2 / (n1 + n2)); }

double tp_power_two_sample(double d, double n1, double n2, double alpha, int sides)
{
    return power_of(ncp_two(d, n1, n2), n1 + n2 - 2, alpha, sides);
}

double tp_power_paired(double dz, double n, double alpha, int sides)
{
    return power_of(dz * sqrt(n), n - 1, alpha, sides);
}

typedef struct {
    bool paired;
    double effect, alpha, power;
    double ncp, df; /* where the effect is sought: the noncentrality of one of 1 */
    int sides;
} plan;

static double shortfall_at_n(double n, void *context)
{
    const plan *p = context;
    return (p->paired ? tp_power_paired(p->effect, n, p->alpha, p->sides)
                      : tp_power_two_sample(p->effect, n, n, p->alpha, p->sides)) -
           p->power;
}

static double shortfall_at_effect(double d, void *context)
{
    const plan *p = context;
    return power_of(d * p->ncp, p->df, p->alpha, p->sides) - p->power;
}

static bool is_plan(double alpha, double power, int sides)
{
    return alpha > 0 && alpha < 1 && power > alpha && power < 1 && (sides == 1 || sides == 2);
}

/* From `lo`, where the power is too small, doubling until it is not. */
static double cross(tp_function f, plan *p, double lo, double first, double most)
{
    double hi = first;
    if (f(lo, p) >= 0)
        return lo;
    while (f(hi, p) < 0) {
        lo = hi;
        hi *= 2;
        if (hi > most)
            return NAN;
    }
    return tp_solve(f, p, lo, hi);
}

static double sample_size(plan p)
{
    if (!is_plan(p.alpha, p.power, p.sides) || isnan(p.effect) || p.effect == 0 ||
        (p.sides == 1 && p.effect < 0))
        return NAN;
    return cross(shortfall_at_n, &p, 2, 4, 1e11);
}

double tp_sample_size_two_sample(double d, double alpha, double power, int sides)
{
    return sample_size((plan){.effect = d, .alpha = alpha, .power = power, .sides = sides});
}

double tp_sample_size_paired(double dz, double alpha, double power, int sides)
{
    return sample_size(
        (plan){.paired = true, .effect = dz, .alpha = alpha, .power = power, .sides = sides});
}

static double mde(plan p)
{
    if (!is_plan(p.alpha, p.power, p.sides) || !(p.df > 0 && p.ncp > 0))
        return NAN;
    return cross(shortfall_at_effect, &p, 0, 1 / p.ncp, 1e6);
}

double tp_mde_errors(double df, double alpha, double power, int sides)
{
    return mde((plan){.ncp = 1, .df = df, .alpha = alpha, .power = power, .sides = sides});
}

double tp_mde_two_sample(double n1, double n2, double alpha, double power, int sides)
{
    return mde((plan){.ncp = n1 >= 1 && n2 >= 1 ? ncp_two(1, n1, n2) : NAN,
                      .df = n1 + n2 - 2,
                      .alpha = alpha,
                      .power = power,
                      .sides = sides});
}

double tp_mde_paired(double n, double alpha, double power, int sides)
{
    return mde((plan){.ncp = sqrt(n), .df = n - 1, .alpha = alpha, .power = power, .sides = sides});
}

double tp_sign_mde(double sigma, double n, double alpha, double power)
{
    if (!(n > 0) || !(sigma >= 0) || !is_plan(alpha, power, 1))
        return NAN;
    return (tp_normal_isf(alpha) + tp_normal_quantile(power)) * 1.2533141373155003 * sigma /
           sqrt(n);
}
