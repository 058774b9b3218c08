/* work.h - what a launch did, where that depends on its data and not on its shapes alone. */
#ifndef TP_ENGINE_EXEC_WORK_H
#define TP_ENGINE_EXEC_WORK_H

#include "engine/backend/backend.h"
#include "engine/ir/graph.h"

/* The operand that decides how much of its shapes an op works through: the weights of
 * linear_ce, whose rows of weight 0 are left out, the starts of the sequences of attention,
 * where keys of other sequences are.  -1: the op does what its shapes say. */
int tp_work_operand(tp_op op);

/* Of a launch of such an op; `values` of that operand are the host's, NULL when unknown;
 * `planned` is its cost by shapes with `avg_context` keys per query. */
tp_cost tp_work_of(const tp_launch *launch, const void *values, tp_cost planned,
                   double avg_context);

#endif
