/* work.h - what a launch did, where that depends on its data and not on its shapes alone. */
#ifndef TP_ENGINE_EXEC_WORK_H
#define TP_ENGINE_EXEC_WORK_H

#include "engine/backend/backend.h"
#include "engine/ir/graph.h"

/* Rows of weight 0 (linear_ce) and keys of other sequences (attention) are left out. */
bool tp_work_depends_on_data(tp_op op);

/* Of a launch of such an op that is bound and about to run; `planned` is its cost by shapes with
 * `avg_context` keys per query.  Anything else did what was planned. */
tp_cost tp_work_of(const tp_launch *launch, tp_cost planned, double avg_context);

#endif
