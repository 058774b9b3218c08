/* common.h - what every statistic of this folder returns.
 *
 * A number that the data do not define (a standard deviation of one value, a t test of
 * two constant groups) is NaN, never 0, and the result carries a `why`: one lower-case
 * phrase, static, NULL when everything is defined.
 *
 * Inputs are arrays of finite doubles; a NaN or an infinity in them is TP_ERR_ARG with
 * its position.  Exhausted memory ends the call (no_memory.h).  Two-sample results are always x
 * minus y. */
#ifndef TP_STATS_COMMON_H
#define TP_STATS_COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* A confidence interval.  An end may be infinite where the theory says so. */
typedef struct {
    double lo, hi;   /* NaN when undefined */
    const char *why; /* the reason, or NULL */
} tp_interval;

/* The p-values of one test.  `greater` is the evidence that x (or the location of the
 * differences) lies above y (or 0); `less` that it lies below. */
typedef struct {
    double two, greater, less;
} tp_p_values;

tp_interval tp_interval_undefined(const char *why);
tp_p_values tp_p_undefined(void);

/* TP_ERR_ARG naming the first value that is not finite ("value 3 of x is nan"). */
TP_CHECKED tp_status tp_check_finite(const char *name, const double *x, size_t n, tp_error *err);

#endif
