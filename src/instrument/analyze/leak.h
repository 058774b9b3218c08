/* leak.h - does memory grow from step to step?
 *
 * The series is bytes in use at the same phase of every step, never at arbitrary times.
 * The first steps are warm-up and dropped: 5, or those up to the last change of level in the first
 * half at which the slope changes as well (Theil-Sen intervals of 95 % before and behind it that do
 * not meet), unless whoever measured has dropped them already; at least MIN_STEPS values must
 * remain.  Then
 *   - Mann-Kendall, variance corrected for ties and for autocorrelation (Hamed-Rao, from 30
 *     values on), must say p < 0.01 (rising), and
 *   - the lower end of the 95 % interval of the Theil-Sen slope must exceed the larger of
 *     1 KiB per step, the grain of the series, and one millionth of what is in use.
 * A series that rose but is flat in its last third is a cache that filled, not a leak, unless it
 * stood still as long before it rose again.
 * Fewer steps give no verdict instead of a guess. */
#ifndef TP_INSTRUMENT_ANALYZE_LEAK_H
#define TP_INSTRUMENT_ANALYZE_LEAK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Without steps of warm-up there must be more: nothing else stands between a start and a trend. */
enum { TP_LEAK_MIN_STEPS = 6, TP_LEAK_MIN_WARM_UP = 5, TP_LEAK_MIN_WARM_STEPS = 10 };

typedef enum {
    TP_LEAK_CANNOT_TELL, /* too few steps */
    TP_LEAK_NONE,        /* shown */
    TP_LEAK_PLATEAU,     /* rose, then stopped */
    TP_LEAK_GROWING
} tp_leak_verdict;

const char *tp_leak_verdict_name(tp_leak_verdict verdict); /* "cannot tell", ... */

typedef struct {
    tp_leak_verdict verdict;
    size_t n_steps, n_dropped, n_used;
    double p_rising;       /* NaN without a test */
    bool is_corrected;     /* for autocorrelation */
    double slope, lo, hi;  /* bytes per step; NaN without */
    double smallest_slope; /* that counts as a leak */
    double last_bytes;
    double steps_to_limit; /* NaN when the limit is unknown or nothing grows */
} tp_leak;

typedef struct {
    double limit_bytes; /* of the device; 0: unknown */
    bool is_warm;       /* no step of the series is warm-up */
    double grain_bytes; /* the series counts in these: a page, of resident memory; 0: bytes */
} tp_leak_options;
#define TP_LEAK_DEFAULTS ((tp_leak_options){.limit_bytes = 0})

TP_CHECKED tp_status tp_leak_test(const double *bytes, size_t n, const tp_leak_options *options,
                                  tp_leak *ret, tp_error *err);

/* One group (a stack, an operator): survivors per step.  p of a rising trend, NaN when
 * there are too few values or nothing changes. */
TP_CHECKED tp_status tp_leak_group(const double *bytes, size_t n, double *ret_p, double *ret_slope,
                                   tp_error *err);

#endif
