/* kernels.h - the ref kernels, one per op; their meaning is written with the rows of ir/ops.
 *
 * Plain loops, one thread, any float dtype, any stride.  A kernel skips outputs
 * that nobody reads.  Those that need memory for one row of intermediate values
 * have a workspace function. */
#ifndef TP_ENGINE_BACKEND_REF_KERNELS_H
#define TP_ENGINE_BACKEND_REF_KERNELS_H

#include "engine/backend/backend.h"

extern const tp_kernel *const tp_ref_kernels[]; /* ends with NULL */

#define OP(name) extern const tp_kernel tp_ref_##name;
#define UNCOMPUTED(name)
#include "engine/ir/ops.def"

/* An op's kernel: its row, and the head of the function that follows; workspace_<op>() stands
 * before. */
#define TP_REF_KERNEL(op_, ...)                               \
    static void run_##op_(const tp_launch *launch);           \
    const tp_kernel tp_ref_##op_ = {.name = #op_ "/ref",      \
                                    .op = TP_OP_##op_,        \
                                    .is_always_usable = true, \
                                    .run = run_##op_,         \
                                    __VA_ARGS__};             \
    static void run_##op_(const tp_launch *launch)

/* The two kinds of gelu; also the epilogue of linear_gelu. */
double tp_ref_gelu_of(double x, bool use_tanh);

#endif
