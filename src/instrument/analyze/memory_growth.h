/* memory_growth.h - allocations as steps see them, from instants or from a snapshot.
 *
 * Steps of a trace are its steps; those of a snapshot are the ends of the external
 * annotation that occurs most often (an optimizer's step).  Groups are operators in a
 * trace and stacks in a snapshot. */
#ifndef TP_INSTRUMENT_ANALYZE_MEMORY_GROWTH_H
#define TP_INSTRUMENT_ANALYZE_MEMORY_GROWTH_H

#include "instrument/analyze/leak.h"
#include "instrument/analyze/operators.h"
#include "instrument/analyze/survivors.h"
#include "instrument/ingest/memory_snapshot.h"

/* Groups of the result are strings of the trace; 0: outside operators. */
TP_CHECKED tp_status tp_growth_of_trace(const tp_selection *selection,
                                        const tp_operators *operators, tp_survivors *ret,
                                        tp_error *err);

typedef struct {
    uint32_t annotation; /* string of the snapshot; 0: none, no steps */
    size_t n_steps;
    tp_leak leak;           /* of all memory of the device */
    tp_survivors survivors; /* groups are stacks */
} tp_snapshot_growth;

TP_CHECKED tp_status tp_growth_of_snapshot(const tp_snapshot *snapshot, uint32_t device,
                                           int64_t initial_bytes, tp_snapshot_growth *ret,
                                           tp_error *err);
void tp_snapshot_growth_release(tp_snapshot_growth *growth);

#endif
