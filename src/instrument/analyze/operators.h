/* operators.h - what each operator cost, on the host and on the device.
 *
 * Operators are the cpu_op events (in traces without any: the spans of other kinds on
 * host threads; in Nsight exports: NVTX ranges).  They nest by time on their thread
 * (nesting.h).  One that has nothing but an operator of its own name below, no annotation
 * either, is called once, as PyTorch's profiler counts: aten::sum that dispatches to aten::sum.
 * Of a scope of steps, calls that begin in them count.  Per name, over all threads:
 *
 *     total by sum    every call's duration; a recursive call counts in itself and its caller
 *     total by union  time in which at least one call was running, thread by thread
 *     self            durations without the children, by union and by sum of the children
 *     device self     sum of the device work that the operator launched itself
 *     device total    the same with everything below it: by sum, which exceeds the wall when
 *                     streams run side by side, and by union, which does not on one device;
 *                     those of several devices are added up
 *
 * Device work belongs to the operator with its External id; without one, to the innermost
 * operator around the launching call. */
#ifndef TP_INSTRUMENT_ANALYZE_OPERATORS_H
#define TP_INSTRUMENT_ANALYZE_OPERATORS_H

#include <stdbool.h>

#include "instrument/analyze/nesting.h"
#include "instrument/analyze/selection.h"

typedef struct {
    uint32_t name;
    uint32_t first; /* event of one call */
    int64_t calls;
    int64_t total_sum_ns, total_union_ns;
    int64_t self_union_ns, self_sum_ns;
    int64_t device_self_ns, device_total_sum_ns, device_total_union_ns;
    int64_t kernels; /* launched by it or below it */
} tp_operator_row;

typedef struct {
    tp_event_kind kind;    /* what counted as an operator */
    tp_operator_row *rows; /* by device total (union), then host self, descending */
    size_t n;
    int64_t calls;
    int64_t device_unattributed_ns; /* of device work without an operator, by sum */
    size_t n_unattributed;

    /* The tree: spans in the order of nesting.h. */
    tp_time_span *spans;
    uint32_t *parent;
    int64_t *self_ns; /* by union */
    bool *is_repeat;  /* a part of the call of its parent */
    size_t n_spans;
    uint32_t *op_of; /* per activity of the selection: its span, or TP_NO_PARENT */
} tp_operators;

void tp_operators_make(const tp_selection *selection, tp_operators *ret);
void tp_operators_release(tp_operators *operators);

#endif
