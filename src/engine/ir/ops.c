/* ops.c - the table of all ops; their rows are in ir/ops. */
#include "engine/ir/ops.h"

#define OP(name) extern const tp_op_def tp_op_##name;
#include "engine/ir/ops.def"

const tp_op_def *const tp_ops[TP_OP_COUNT] = {
#define OP(name) [TP_OP_##name] = &tp_op_##name,
#include "engine/ir/ops.def"
};
