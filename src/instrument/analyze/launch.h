/* launch.h - from the call on the host to the start on the device.
 *
 *     call     [=== duration ===)
 *     device                        <- delay ->[==== work ====)
 *
 * delay = start of the work - end of its launching call, at least 0; work that starts
 * before its call even began is a sign of clocks that differ, and is counted.  A call that
 * launches many works, such as that of a graph, is one call: its work starts with the first
 * of them, and is short when all of them together are, those of other streams and names too.
 * The queue of a stream is what was launched and has not started: +1 at the start of a
 * call, -1 at the start of its work.  Its mean is weighted by time.  A queue at 0 means the
 * device waits for the host; one at its limit (1024) makes the host wait. */
#ifndef TP_INSTRUMENT_ANALYZE_LAUNCH_H
#define TP_INSTRUMENT_ANALYZE_LAUNCH_H

#include "instrument/analyze/selection.h"

enum { TP_QUEUE_LIMIT = 1024 };

typedef struct {
    uint32_t track; /* stream */
    uint32_t device;
    int64_t works, launched; /* on the stream; of these, with their call */
    int64_t calls;           /* that launched them */
    int64_t before_call;     /* started before the call did */
    int64_t during_call;     /* started before the call returned */
    int64_t delay_p50_ns, delay_p90_ns, delay_max_ns, delay_sum_ns;
    int64_t call_p50_ns, call_p90_ns, call_max_ns, call_sum_ns;
    int64_t short_works; /* took less time than their call, with all else that it launched */
    int64_t queue_max;
    double queue_mean;         /* NaN when there is no time to average over */
    int64_t queue_empty_ns;    /* between the first launch and the last start */
    int64_t queue_full_ns;     /* at TP_QUEUE_LIMIT or more */
    int64_t queue_observed_ns; /* first launch to last start */
} tp_launch_row;

typedef struct {
    tp_launch_row *rows; /* by works, descending */
    size_t n;
    tp_launch_row all; /* delays and calls of all streams; no queue */
} tp_launch_table;

void tp_launches_make(const tp_selection *selection, tp_launch_table *ret);
void tp_launches_release(tp_launch_table *table);

#endif
