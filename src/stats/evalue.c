/* evalue.c - e-values of the sign test by a uniform mixture over rates. */
#include "stats/evalue.h"

#include <math.h>

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
