/* intervals.h - sets of time, in whole nanoseconds.
 *
 * Every "how long" of the analyses is the length of a set of half-open intervals
 * [start, end): time in which something ran is counted once, however many streams
 * ran it.  A set is normal when its intervals are in order, not empty and do not touch;
 * the operations take normal sets and give normal sets.
 *
 *     a      [====)   [=======)
 *     b         [=======)
 *     a + b  [================)
 *     a - b  [==)       [=====)                                                    */
#ifndef TP_INSTRUMENT_ANALYZE_INTERVALS_H
#define TP_INSTRUMENT_ANALYZE_INTERVALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    int64_t start, end;
} tp_interval;

typedef struct {
    tp_interval *v;
    size_t n, cap;
} tp_intervals; /* zeroed: the empty set */

void tp_intervals_release(tp_intervals *set);

/* Add to the end; the set need not be normal afterwards.  An empty or backward interval
 * is left out. */
void tp_intervals_add(tp_intervals *set, int64_t start, int64_t end);
/* The same for intervals that come in order of their starts: stays normal. */
void tp_intervals_extend(tp_intervals *set, int64_t start, int64_t end);
/* Make it normal: sort, then merge what overlaps or touches. */
void tp_intervals_normalize(tp_intervals *set);

int64_t tp_intervals_length(const tp_intervals *set);

/* Length of what both have, without making the set. */
int64_t tp_intervals_common(const tp_intervals *a, const tp_intervals *b);

/* `ret` is cleared first and must be neither a nor b. */
void tp_intervals_unite(const tp_intervals *a, const tp_intervals *b, tp_intervals *ret);
void tp_intervals_intersect(const tp_intervals *a, const tp_intervals *b, tp_intervals *ret);
void tp_intervals_subtract(const tp_intervals *a, const tp_intervals *b, tp_intervals *ret);

/* Length of the part of the set inside [start, end); binary search, then a walk. */
int64_t tp_intervals_within(const tp_intervals *set, int64_t start, int64_t end);

#endif
