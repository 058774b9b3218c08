/* sources.c - values that are bound before a run. */
#include "engine/ir/ops.h"

/* What a run is given: a batch, scalars. */
TP_OP(input, "-> x:f[..]", .traits = TP_OP_SOURCE);

/* Memory that outlives a run: parameters, moments, caches. */
TP_OP(state, "-> x:f[..]", .traits = TP_OP_SOURCE);
