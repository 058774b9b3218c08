/* survivors.h - whose memory stays longer than it should?
 *
 * What is alive at the end of a step and was allocated at least two steps earlier has
 * survived.  A group (an allocating stack, an operator) whose surviving bytes rise from
 * step to step leaks.  Each group is tested like memory as a whole (leak.h: warm-up dropped,
 * Mann-Kendall, Theil-Sen); many groups are many tests, so p is adjusted after Benjamini and
 * Hochberg. */
#ifndef TP_INSTRUMENT_ANALYZE_SURVIVORS_H
#define TP_INSTRUMENT_ANALYZE_SURVIVORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* One allocation, in numbers of steps: step s ends after all of its events. */
typedef struct {
    uint32_t group;
    uint32_t from; /* the step it was allocated in */
    uint32_t to;   /* the step it was freed in; the number of steps: never */
    int64_t bytes;
} tp_allocation;

typedef struct {
    uint32_t group;
    double p;           /* adjusted; NaN without a test */
    double slope;       /* bytes per step */
    int64_t last_bytes; /* surviving at the last step */
    bool is_growing;    /* p < 0.01 and slope > 0 */
} tp_survivor_row;

typedef struct {
    tp_survivor_row *rows; /* by adjusted p, then slope; only groups with survivors */
    size_t n, n_steps;
} tp_survivors;

TP_CHECKED tp_status tp_survivors_make(const tp_allocation *v, size_t n, size_t n_groups,
                                       size_t n_steps, tp_survivors *ret, tp_error *err);
void tp_survivors_release(tp_survivors *survivors);

#endif
