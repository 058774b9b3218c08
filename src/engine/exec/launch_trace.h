/* launch_trace.h - launches as events of a trace: one zone each, written as an operator with
 * shapes, kernel, FLOPs and bytes, and the temporaries that begin and end to live there as
 * memory events.
 *
 * Everything but addresses and times is made when the executor is, so recording allocates
 * nothing.  A reader sees "Total Allocated" as what is alive and "Total Reserved" as what was
 * asked of the system: the activation arena is reserved once, its values come and go. */
#ifndef TP_ENGINE_EXEC_LAUNCH_TRACE_H
#define TP_ENGINE_EXEC_LAUNCH_TRACE_H

#include "engine/exec/exec.h"
#include "trace/trace.h"

typedef struct {
    tp_trace_site site; /* owner and kind */
    size_t offset;      /* in the activation arena */
    int64_t bytes;      /* + taken, - given back */
} tp_launch_change;

typedef struct {
    tp_trace_site *sites;      /* per launch */
    bool *depends;             /* per launch: its work depends on its data */
    tp_launch_change *changes; /* by launch: taken, then given back */
    uint32_t *first_change;    /* per launch, and the end */
} tp_launch_trace;

/* All in `arena`.  node_of: launch -> node, rising. */
void tp_launch_trace_init(tp_launch_trace *t, tp_arena *arena, const tp_graph *g,
                          const tp_memory_plan *memory, const tp_launch *launches,
                          const tp_launch_info *info, const uint32_t *node_of, size_t n);

/* Launch i will run with fewer rows than planned, another number each time: FLOPs and bytes are
 * written with each event, where they are known. */
void tp_launch_trace_vary(tp_launch_trace *t, size_t i, tp_arena *arena, const tp_launch *launch,
                          const tp_launch_info *info);

/* Run launch i between these two; `base` is where the activation arena is. */
tp_zone tp_launch_trace_begin(const tp_launch_trace *t, size_t i, const char *base);
/* `done`: written with the event where it is another each time (work.h). */
void tp_launch_trace_end(const tp_launch_trace *t, size_t i, const char *base, const tp_zone *zone,
                         tp_cost done);
/* A launch that is left out: its temporaries have their places all the same. */
void tp_launch_trace_skip(const tp_launch_trace *t, size_t i, const char *base);

#endif
