/* periods.h - sets of time, in whole nanoseconds.
 *
 * Every "how long" of the analyses is the length of a set of half-open periods
 * [start, end): time in which something ran is counted once, however many streams
 * ran it.  A set is normal when its periods are in order, not empty and do not touch;
 * the operations take normal sets and give normal sets.
 *
 *     a      [====)   [=======)
 *     b         [=======)
 *     a + b  [================)
 *     a - b  [==)       [=====)                                                    */
#ifndef TP_INSTRUMENT_ANALYZE_PERIODS_H
#define TP_INSTRUMENT_ANALYZE_PERIODS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A set lies between these two, so that no length overflows; what a damaged file has beyond is cut
 * off.  Damaged buffers gave durations of 236 years, which still fit. */
#define TP_PERIODS_FIRST (-(INT64_C(1) << 60))
#define TP_PERIODS_LAST (INT64_MAX - (INT64_C(1) << 60))

typedef struct {
    int64_t start, end;
} tp_period;

typedef struct {
    tp_period *v;
    size_t n, cap;
} tp_periods; /* zeroed: the empty set */

void tp_periods_release(tp_periods *set);

/* Add to the end; the set need not be normal afterwards.  An empty or backward period
 * is left out. */
void tp_periods_add(tp_periods *set, int64_t start, int64_t end);
/* The same for periods that come in order of their starts: stays normal. */
void tp_periods_extend(tp_periods *set, int64_t start, int64_t end);
/* Make it normal: sort, then merge what overlaps or touches. */
void tp_periods_normalize(tp_periods *set);

int64_t tp_periods_length(const tp_periods *set);

/* Length of what both have, without making the set. */
int64_t tp_periods_common(const tp_periods *a, const tp_periods *b);

/* `ret` is cleared first and must be neither a nor b. */
void tp_periods_unite(const tp_periods *a, const tp_periods *b, tp_periods *ret);
void tp_periods_subtract(const tp_periods *a, const tp_periods *b, tp_periods *ret);

/* Length of the part of the set inside [start, end); binary search, then a walk. */
int64_t tp_periods_within(const tp_periods *set, int64_t start, int64_t end);

#endif
