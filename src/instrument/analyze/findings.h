/* findings.h - the bottlenecks of a trace, from the other analyses of it. */
#ifndef TP_INSTRUMENT_ANALYZE_FINDINGS_H
#define TP_INSTRUMENT_ANALYZE_FINDINGS_H

#include "instrument/analyze/communication.h"
#include "instrument/analyze/copies.h"
#include "instrument/analyze/finding.h"
#include "instrument/analyze/idle.h"
#include "instrument/analyze/launch.h"
#include "instrument/analyze/memory_usage.h"

/* From which time on, all calls together, an operator is a bottleneck, and a kernel slow on
 * average. */
typedef struct {
    int64_t operator_ns, kernel_ns;
} tp_finding_limits;
#define TP_FINDING_LIMITS ((tp_finding_limits){1000000, 1000000})

/* What the rules look at; members may be NULL.  Kernels, gaps and copies are those of all devices,
 * and are measured against the spans of all. */
typedef struct {
    tp_finding_limits limits;
    const tp_selection *selection;
    const tp_breakdown *sum; /* of the devices, each by itself */
    const tp_kernel_table *kernels;
    const tp_idle_table *idle;
    const tp_launch_table *launches;
    const tp_copy_table *copies;
    const tp_comm_table *comm;
    const tp_memory_usage *memory;
} tp_finding_inputs;

void tp_findings_make(const tp_finding_inputs *inputs, tp_findings *ret);

#endif
