/* idle.h - why a device did nothing.
 *
 * Between the first start and the last end of a device's work, each gap ends when the
 * next work starts.  With [launch, ...) the call that launched that work:
 *
 *     gap                [..............................)[work)
 *     launched inside    [  host: not launched   |launch)
 *     launched before    [        queued                )
 *
 *     host     nothing was launched: the device waits for the host.  Of this: while the host
 *              was blocked in a synchronising call, and while it waited for data
 *     launch   the call was made; the work was on its way
 *     queued   the work was launched before the gap began: it waited for another stream, an
 *              event, or the device's own overhead between two kernels
 *     unknown  the launching call is not in the file (a page of unified memory has none: it moves
 *              when the host or a kernel touches it, and what precedes it is the host's)
 *     graphs   under a whole graph launch whose kernels are not recorded: not idle at all
 *
 * The five add up to the idle time exactly. */
#ifndef TP_INSTRUMENT_ANALYZE_IDLE_H
#define TP_INSTRUMENT_ANALYZE_IDLE_H

#include "instrument/analyze/selection.h"

typedef struct {
    int64_t start, end;
    uint32_t next; /* activity of the selection that ended it */
    int64_t host_ns, launch_ns, queued_ns, unknown_ns, graph_ns;
} tp_idle_gap;

typedef struct {
    uint32_t device;
    int64_t idle_ns, gaps;
    int64_t host_ns, launch_ns, queued_ns, unknown_ns, graph_ns;
    int64_t host_sync_ns, host_data_ns;         /* parts of host_ns */
    int64_t gap_p50_ns, gap_p90_ns, gap_max_ns; /* TP_UNKNOWN without gaps */
} tp_idle_row;

typedef struct {
    tp_idle_row *rows; /* one per device */
    size_t n;
    tp_idle_gap *gaps; /* of all devices, longest first */
    size_t n_gaps;
} tp_idle_table;

void tp_idle_make(const tp_selection *selection, tp_idle_table *ret);
/* Time under whole graph launches of any device while no recorded work ran on any: part of
 * what tp_breakdown_make() over all devices calls idle, and not idle. */
int64_t tp_idle_under_graphs(const tp_selection *selection);
void tp_idle_release(tp_idle_table *table);

#endif
