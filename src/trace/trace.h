/* trace.h - the recorder: what ran when, on which thread.
 *
 * Off by default and then one relaxed load per site.  When on, each thread writes
 * complete events (start, end, name, category, optional JSON arguments) into a ring
 * of its own; names and arguments are pointers that must outlive the trace.  A full
 * ring keeps the newest events and counts what it dropped.  Compiled out with
 * -DTEMPER_TRACE_OFF. */
#ifndef TP_TRACE_TRACE_H
#define TP_TRACE_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/error.h"

#ifdef TEMPER_TRACE_OFF
static inline bool tp_trace_enabled(void) { return false; }
#else
bool tp_trace_enabled(void);
#endif

/* Start recording (rings of `events_per_thread`, rounded up to a power of two), or
 * stop; stopping keeps what was recorded until the next start. */
TP_CHECKED tp_status tp_trace_start(uint32_t events_per_thread, tp_error *err);
void tp_trace_stop(void);
void tp_trace_release(void); /* free everything; no thread may be recording */

/* One finished event; times from tp_clock_ns(). `args` is a JSON object or NULL. */
void tp_trace_complete(const char *category, const char *name, uint64_t start_ns, uint64_t end_ns,
                       const char *args);
/* Names the calling thread in this trace and later ones (31 bytes of it). */
void tp_trace_thread_name(const char *name);

uint64_t tp_trace_dropped(void);

/* Chrome trace-event JSON (opens in Perfetto and chrome://tracing); microseconds with
 * nanosecond digits. */
TP_CHECKED tp_status tp_trace_write_chrome(const char *path, const char *process_name,
                                           tp_error *err);

typedef struct {
    const char *category, *name;
    uint64_t start_ns; /* 0: was off when the zone began */
} tp_zone;

static inline tp_zone tp_zone_begin(const char *category, const char *name)
{
    return (tp_zone){category, name, tp_trace_enabled() ? tp_clock_ns() : 0};
}

static inline void tp_zone_end(tp_zone *zone)
{
    if (zone->start_ns)
        tp_trace_complete(zone->category, zone->name, zone->start_ns, tp_clock_ns(), NULL);
}

/* The rest of the enclosing block, by name. */
#ifdef TEMPER_TRACE_OFF
#define TP_ZONE(category, name) ((void)0)
#else
#define TP_ZONE_VAR2(line) zone_##line
#define TP_ZONE_VAR(line) TP_ZONE_VAR2(line)
#define TP_ZONE(category, name)                                                   \
    __attribute__((cleanup(tp_zone_end), unused)) tp_zone TP_ZONE_VAR(__LINE__) = \
        tp_zone_begin((category), (name))
#endif

#endif
