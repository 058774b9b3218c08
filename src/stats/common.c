/* common.c - intervals and p-values that are undefined, with the reason; the check for finite
 * data. */
#include "stats/common.h"

#include <math.h>

tp_interval tp_interval_undefined(const char *why)
{
    return (tp_interval){.lo = NAN, .hi = NAN, .why = why};
}

tp_p_values tp_p_undefined(void) { return (tp_p_values){.two = NAN, .greater = NAN, .less = NAN}; }

tp_status tp_check_finite(const char *name, const double *x, size_t n, tp_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(x[i]))
            return tp_fail(err, TP_ERR_ARG, "value %zu of %s is %g; statistics need finite numbers",
                           i + 1, name, x[i]);
    return TP_OK;
}
