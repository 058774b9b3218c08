/* trace.h - the recorder, as the rest of the code sees it: the public header.
 *
 *     clock.c      ticks, and what they are in nanoseconds
 *     ring.c       recording: one ring per thread, written by that thread alone
 *     recorder.c   start, stop, flush; fork
 *     events.c     rings read back as events
 *     chrome.c     events written as Chrome JSON, the way Kineto writes
 *     counters.c   named counters
 *     nvtx.c       zones handed to an NVTX tool
 *     summary.c    events summed up by name */
#ifndef TP_TRACE_TRACE_H
#define TP_TRACE_TRACE_H

#include "base/error.h"
#include "temper/trace.h"

/* Zones begin at a tick of the time stamp counter, and nobody else is told of them. */
static inline bool tp_trace_records_ticks(void)
{
    return __atomic_load_n(&tp_trace_mode, __ATOMIC_RELAXED) == 1;
}

/* Why the time stamp counter is not the clock of traces, NULL when it is; a few milliseconds,
 * once. */
const char *tp_clock_flaw_of_tsc(void);

/* Unix time, as the events that are recorded now are given it. */
int64_t tp_trace_unix_ns(void);

#endif
