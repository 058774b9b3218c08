/* findings.h - bottlenecks: what costs how much, how one knows, what to try.
 *
 * A finding is a rule over the other analyses that fired.  Its cost is time that was
 * measured, never a prediction of what a change would save; costs overlap and do not add
 * up.  Severity is the cost's share of the span: high from 20 %, medium from 5 %. */
#ifndef TP_INSTRUMENT_ANALYZE_FINDINGS_H
#define TP_INSTRUMENT_ANALYZE_FINDINGS_H

#include "instrument/analyze/communication.h"
#include "instrument/analyze/copies.h"
#include "instrument/analyze/idle.h"
#include "instrument/analyze/launch.h"
#include "instrument/analyze/memory_usage.h"
#include "instrument/analyze/severity.h"

typedef struct {
    tp_severity severity;
    const char *title;
    char evidence[320];
    int64_t cost_ns; /* TP_UNKNOWN: costs memory or certainty, not time */
    const char *advice;
} tp_finding;

enum { TP_MAX_FINDINGS = 16 };

typedef struct {
    tp_finding list[TP_MAX_FINDINGS]; /* by cost, descending */
    size_t n;
} tp_findings;

/* What the rules look at; members may be NULL. */
typedef struct {
    const tp_selection *selection;
    const tp_breakdown *all;
    const tp_kernel_table *kernels;
    const tp_idle_table *idle;
    const tp_launch_table *launches;
    const tp_copy_table *copies;
    const tp_comm_table *comm;
    const tp_memory_usage *memory;
} tp_finding_inputs;

void tp_findings_make(const tp_finding_inputs *inputs, tp_findings *ret);

#endif
