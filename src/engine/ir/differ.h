/* differ.h - what the gradient function of a row (ops.h) may call. */
#ifndef TP_ENGINE_IR_DIFFER_H
#define TP_ENGINE_IR_DIFFER_H

#include "engine/ir/graph.h"

typedef struct tp_differ tp_differ;

/* Append a node to the backward graph of `n`; returns its first output. */
tp_ref tp_differ_emit(tp_differ *d, const tp_node *n, tp_op op, const tp_attrs *attrs, int n_in,
                      const tp_ref *in);
/* Add `grad` to what is known of the gradient of `value`, when anything wants it. */
void tp_differ_add(tp_differ *d, const tp_node *n, tp_ref value, tp_ref grad);
bool tp_differ_wants(const tp_differ *d, tp_ref value); /* it depends on a weight */

#endif
