/* kernels.c - the table of the ref backend: every op that computes has one row. */
#include "engine/backend/ref/kernels.h"

#define KERNEL(name_, ...)                                                    \
    &(const tp_kernel)                                                        \
    {                                                                         \
        .name = #name_ "/ref", .op = TP_OP_##name_, .is_always_usable = true, \
        .run = tp_ref_##name_, __VA_ARGS__                                    \
    }
#define KERNEL_WITH_WORKSPACE(name_) KERNEL(name_, .workspace = tp_ref_##name_##_workspace)

static const tp_kernel *const kernels[] = {
    KERNEL(add),
    KERNEL(mul),
    KERNEL(silu),
    KERNEL(gelu),
    KERNEL(swiglu),
    KERNEL(cast),
    KERNEL(host),
    KERNEL(concat),
    KERNEL(embed),
    KERNEL(rmsnorm),
    KERNEL(layernorm),
    KERNEL(add_rmsnorm),
    KERNEL(add_layernorm),
    KERNEL(rope),
    KERNEL(linear),
    KERNEL(linear_gelu),
    KERNEL_WITH_WORKSPACE(attention),
    KERNEL(pack_panels),
    KERNEL(linear_panels),
    KERNEL_WITH_WORKSPACE(paged_attention),
    KERNEL_WITH_WORKSPACE(sample),
    KERNEL(cross_entropy),
    KERNEL(linear_ce),
    KERNEL_WITH_WORKSPACE(linear_ce_train),
    KERNEL(linear_dx),
    KERNEL(linear_dw),
    KERNEL(linear_db),
    KERNEL(silu_grad),
    KERNEL(gelu_grad),
    KERNEL(swiglu_grad),
    KERNEL(embed_grad),
    KERNEL(rmsnorm_grad),
    KERNEL(layernorm_grad),
    KERNEL_WITH_WORKSPACE(attention_grad),
    KERNEL(cross_entropy_grad),
    KERNEL(sumsq),
    KERNEL(adamw),
};

const tp_backend tp_backend_ref = {
    .name = "ref",
    .kernels = kernels,
    .n_kernels = sizeof kernels / sizeof kernels[0],
};
