/* named_work.h - everything in a trace that has a name and took time, one piece after another.
 *
 * What is compared between traces and what is counted over several of them is the same work
 * under the same names: kernels, copies and fills by name; operators with the time of the
 * device work that they launched themselves, or with their own time on the host; annotations
 * of the host that are no steps. */
#ifndef TP_INSTRUMENT_ANALYZE_NAMED_WORK_H
#define TP_INSTRUMENT_ANALYZE_NAMED_WORK_H

#include "instrument/analyze/operators.h"

/* `step`: of the selection's, or -1. */
typedef void (*tp_named_visit)(void *context, tp_slice name, int64_t step, int64_t ns);

void tp_each_device_work(const tp_selection *selection, tp_named_visit visit, void *context);
void tp_each_operator_work(const tp_selection *selection, const tp_operators *operators,
                           bool by_host, tp_named_visit visit, void *context);
void tp_each_phase(const tp_selection *selection, tp_named_visit visit, void *context);

#endif
