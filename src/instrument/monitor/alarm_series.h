/* alarm_series.h - the values that a condition has seen, and whether it holds.
 *
 * A window is the newest values of so many steps (or seconds), 15 of them at least.  Its newest
 * fifth is held against the rest: d is the difference of the two medians, sigma the spread about
 * their line of the values before, four windows of them at most (1.4826 times the median absolute
 * residual, at least a thousandth of the rest's median), and
 *
 *     se = 1.2533 sigma sqrt((1 + r) / (1 - r)) sqrt(1 / n_new + 1 / n_rest)
 *
 * the standard error of d, r being the correlation of neighbouring residuals.
 *
 *     above, below A       the newest value; "for W": every one of the window, and where W is a
 *                          time no two of them are further apart than that
 *     rises, falls A       d reaches A and 4 se; A is a number, % of the rest's median, or sigma
 *                          (over 50 steps; of % without "over": the newest 20 values against all
 *                          before)
 *     flat within A        |d| is at most A (1 % of the rest's median), or within 3 standard errors
 *                          that differences of neighbours alone account for (over 100 steps)
 *     ... over the run     the newest 20 values against the first 20
 *     collapses to A       the median of the newest 5 is at most A (10 %) of that of the first 10
 *     is not finite        the newest value is NaN or infinite
 *     repeats              the newest values (over: so many, 10) are exactly those of some steps
 *                          before, and not all alike
 *
 * Values that are not finite are left out of all but "is not finite".  A window that has more than
 * TP_ALARM_MOST_VALUES is not judged. */
#ifndef TP_INSTRUMENT_MONITOR_ALARM_SERIES_H
#define TP_INSTRUMENT_MONITOR_ALARM_SERIES_H

#include "instrument/monitor/alarm_rule.h"

enum { TP_ALARM_MOST_VALUES = 65536 };

typedef struct {
    double *step, *wall, *value; /* of the newest */
    double *scratch;             /* as long */
    size_t n, cap;
    bool is_cut;      /* a window was longer than what is kept */
    double first[20]; /* of all, finite */
    size_t n_first;
    double newest; /* whatever it was */
    size_t n_seen, n_judged;
    /* The rest of a window, as it was judged last. */
    struct {
        size_t n;
        uint64_t until; /* values seen when it was computed */
        double median, sigma, r, noise;
    } rest;
} tp_alarm_series;

void tp_alarm_series_release(tp_alarm_series *s); /* zeroed is a no-op */
/* A value; one at a step below the last voids those above it, as a restart does, and one at the
 * same step replaces it unless it was measured later.  `step` NaN: the values are counted. */
void tp_alarm_series_add(tp_alarm_series *s, const tp_alarm_condition *c, double step, double wall,
                         double value);
/* Is it so now?  `text` gets how it is: "rose by 4.2 sigma within 50 steps (2.1 to 2.8)". */
bool tp_alarm_holds(tp_alarm_series *s, const tp_alarm_condition *c, const char *tag, char *text,
                    size_t size);

#endif
