/* solve.c - the root of a monotone function by the ITP method (Oliveira and Takahashi 2020):
 * secant steps that stay within reach of bisection. */
#include "stats/solve.h"

#include <math.h>

double tp_solve(tp_function f, void *context, double lo, double hi)
{
    double at_lo = f(lo, context), at_hi = f(hi, context);
    if (at_lo == 0 || at_hi == 0)
        return at_lo == 0 ? lo : hi;
    if (!(at_lo < 0) == !(at_hi < 0) || isnan(at_lo) || isnan(at_hi))
        return NAN;
    double slack = hi - lo, kappa = 0.2 / (hi - lo);
    for (int i = 0; i < 400; i++) {
        double middle = lo + 0.5 * (hi - lo), radius = 0.5 * (hi - lo);
        double tolerance = 4e-16 * fmax(fabs(lo), fabs(hi));
        if (radius <= tolerance || middle <= lo || middle >= hi)
            return middle;
        double secant = (at_hi * lo - at_lo * hi) / (at_hi - at_lo);
        double nudge = fmin(kappa * (hi - lo) * (hi - lo), fabs(middle - secant));
        double x = secant + (middle > secant ? nudge : -nudge);
        double reach = fmax(slack - radius, 0); /* how far bisection would be from here */
        if (!(fabs(x - middle) <= reach))
            x = middle + (x > middle ? reach : -reach);
        slack *= 0.5;
        if (!(x > lo && x < hi))
            x = middle;
        double at_x = f(x, context);
        if (at_x == 0)
            return x;
        if ((at_x < 0) == (at_lo < 0)) {
            lo = x;
            at_lo = at_x;
        } else {
            hi = x;
            at_hi = at_x;
        }
    }
    return lo + 0.5 * (hi - lo);
}
