/* check_plan.h - is a memory plan right?  The slow and obvious way.
 *
 * Memory is played through byte by byte: each byte of a place remembers which element
 * of which value was last written there, and every read must find what it asks for. */
#ifndef TP_TESTS_PROPERTY_CHECK_PLAN_H
#define TP_TESTS_PROPERTY_CHECK_PLAN_H

#include "engine/passes/pass.h"

/* NULL when the plan is right, else what is wrong with it, in `arena`. */
const char *check_plan(const tp_graph *g, const tp_memory_plan *plan, tp_arena *arena);

#endif
