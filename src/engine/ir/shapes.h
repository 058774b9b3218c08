/* shapes.h - operands held against the signature of their op. */
#ifndef TP_ENGINE_IR_SHAPES_H
#define TP_ENGINE_IR_SHAPES_H

#include "engine/ir/graph.h"

typedef struct tp_shapes {
    const tp_graph *g;
    tp_op op;
    const tp_attrs *attrs;
    int n_in;
    const tp_ref *in;
    tp_letters letters;
    uint8_t any_rank; /* of operands whose shape is [..] */
    tp_status status;
    tp_error *err;
} tp_shapes;

/* Hold the inputs against the signature; what the letters are. */
void tp_shapes_match(tp_shapes *s);

/* The operand, or a value of rank 0 when it is absent. */
const tp_value *tp_shapes_in(const tp_shapes *s, int i);

/* The rest of the message after "op <name>: ".  Only the first failure counts. */
void tp_shapes_refuse(tp_shapes *s, const char *fmt, ...) TP_PRINTF(2, 3);

#endif
