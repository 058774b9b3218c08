#include "engine/ir/ops.h"

const tp_op_info tp_ops[TP_OP_COUNT] = {
#define OP(name, inputs, outputs, shape, gradient, traits) \
    [TP_OP_##name] = {#name, inputs, outputs, traits},
#include "engine/ir/ops.def"
#undef OP
};

int tp_op_alias(tp_op op, int output)
{
    switch (op) {
    case TP_OP_linear_dx:
    case TP_OP_linear_dw:
    case TP_OP_embed_grad:
        return 2;
    case TP_OP_linear_db:
    case TP_OP_sumsq:
        return 1;
    case TP_OP_rmsnorm_grad:
        return output == 1 ? 4 : -1;
    case TP_OP_layernorm_grad:
        return output == 0 ? -1 : 4 + output; /* dw: input 5, db: input 6 */
    case TP_OP_linear_ce_train:
        return output == 3 ? 5 : -1;
    case TP_OP_paged_attention:
        return output == 0 ? -1 : 2 + output; /* caches: inputs 3 and 4 */
    case TP_OP_adamw: {
        static const int in_of[] = {0, 2, 3, 5}; /* p, m, v, shadow */
        return in_of[output];
    }
    default:
        return -1;
    }
}
