/* sources.c - values that are bound before a run. */
#include "engine/ir/ops.h"

/* What a run is given: a batch, scalars. */
const tp_op_def tp_op_input = {.name = "input", .signature = "-> x:f[..]", .traits = TP_OP_SOURCE};

/* Memory that outlives a run: parameters, moments, caches. */
const tp_op_def tp_op_state = {.name = "state", .signature = "-> x:f[..]", .traits = TP_OP_SOURCE};
