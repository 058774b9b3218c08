/* draws.h - numbers that tests draw. */
#ifndef TP_TESTS_SUPPORT_DRAWS_H
#define TP_TESTS_SUPPORT_DRAWS_H

#include <math.h>

#include "base/rng.h"
#include "stats/bootstrap.h"

/* Mean 0, deviation 1: Box-Muller, whose second value is dropped so that no state is kept. */
static inline double draw_normal(tp_rng *rng)
{
    double u = 1.0 - tp_rng_uniform(rng);
    double v = tp_rng_uniform(rng);
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}

/* [0, 1) */
static inline double draw_uniform(tp_splitmix *s)
{
    return (double)(tp_splitmix_next(s) >> 11) * 0x1p-53;
}

#endif
