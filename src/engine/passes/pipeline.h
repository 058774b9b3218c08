/* pipeline.h - the passes over a set of graphs.  For exec/program.c alone: whoever wants a graph
 * rewritten adds it to a program. */
#ifndef TP_ENGINE_PASSES_PIPELINE_H
#define TP_ENGINE_PASSES_PIPELINE_H

#include "engine/passes/pass.h"

/* Each pass over all of the graphs before the next one.  An unknown name in `disabled` is
 * TP_ERR_CONFIG. */
TP_CHECKED tp_status tp_passes_run(tp_graph *const *set, size_t n, const tp_pass_options *options,
                                   tp_error *err);

#endif
