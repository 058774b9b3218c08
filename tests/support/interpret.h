/* interpret.h - run a graph node by node, for tests.
 *
 * Every value gets memory of its own, except where the meaning demands sharing:
 * states live in tp_states, `split` makes views, accumulators and caches share the
 * memory of the input they update.  No plan, no reuse: what a planner must not
 * change is computed here.
 *
 *     tp_interpreter it;
 *     tp_interpreter_init(&it, &graph, device_of("ref", 1), &states);
 *     memcpy(tp_interpreter_data(&it, tokens), ids, sizeof ids);
 *     tp_interpreter_run(&it);
 *     const float *y = tp_interpreter_data(&it, logits); */
#ifndef TP_TESTS_SUPPORT_INTERPRET_H
#define TP_TESTS_SUPPORT_INTERPRET_H

#include "engine/backend/backend.h"
#include "engine/device/states.h"
#include "engine/ir/graph.h"

typedef struct {
    const tp_graph *g;
    tp_device *device;
    tp_operand *values; /* by reference */
    void **owned;       /* by reference: what init allocated, or NULL */
    bool overwrite;     /* accumulators start anew, as in the first micro-batch */
    uint16_t threads;   /* 1 unless changed */
} tp_interpreter;

/* Allocates every value, zeroed.  States that `states` (may be NULL) lacks get memory
 * of their own.  The graph must stay as it is; anything wrong aborts with a message. */
void tp_interpreter_init(tp_interpreter *it, const tp_graph *g, tp_device *device,
                         const tp_states *states);
void tp_interpreter_release(tp_interpreter *it);

void tp_interpreter_run(tp_interpreter *it);

/* The memory of a value; rows of a view are `stride` elements apart. */
void *tp_interpreter_data(const tp_interpreter *it, tp_ref ref);
const tp_operand *tp_interpreter_operand(const tp_interpreter *it, tp_ref ref);

#endif
