/* kernels.c - the processor's kernels, fastest first for every op. */
#include "engine/backend/cpu/paths.h"
#include "engine/backend/cpu/peaks.h"
#include "engine/backend/host.h"

/* Ops whose kernels are written with vec.h: one copy per instruction set. */
#define VECTOR_KERNELS(ROW, isa) \
    ROW(add, isa)                \
    ROW(mul, isa)                \
    ROW(cast, isa)               \
    ROW(silu, isa)               \
    ROW(gelu, isa)               \
    ROW(swiglu, isa)             \
    ROW(silu_grad, isa)          \
    ROW(gelu_grad, isa)          \
    ROW(swiglu_grad, isa)        \
    ROW(concat, isa)             \
    ROW(rope, isa)               \
    ROW(scale, isa)              \
    ROW(dropout, isa)            \
    ROW(dora_norm, isa)          \
    ROW(dora, isa)               \
    ROW(dora_dm, isa)            \
    ROW(choose_rows, isa)        \
    ROW(unpack_int8, isa)        \
    ROW(unpack_nf4, isa)         \
    ROW(compress, isa)           \
    ROW(restore, isa)            \
    ROW(embed, isa)              \
    ROW(embed_grad, isa)         \
    ROW(rmsnorm, isa)            \
    ROW(layernorm, isa)          \
    ROW(add_rmsnorm, isa)        \
    ROW(add_layernorm, isa)      \
    ROW(rmsnorm_grad, isa)       \
    ROW(layernorm_grad, isa)     \
    ROW(linear_db, isa)          \
    ROW(pack_panels, isa)        \
    ROW(linear_panels, isa)      \
    ROW(paged_attention, isa)    \
    ROW(linear_ce, isa)          \
    ROW(linear_ce_train, isa)    \
    ROW(linear_ce_dx, isa)       \
    ROW(sample, isa)             \
    ROW(cross_entropy, isa)      \
    ROW(cross_entropy_part, isa) \
    ROW(cross_entropy_grad, isa) \
    ROW(sumsq, isa)              \
    ROW(clip_value, isa)         \
    ROW(clip_adaptive, isa)      \
    ROW(adamw, isa)              \
    ROW(adamw_8bit, isa)         \
    ROW(sgd, isa)                \
    ROW(adafactor, isa)          \
    ROW(adafactor_moment, isa)   \
    ATTENTION_KERNELS(ROW, isa)

/* Written once more with AMX, as are linear_panels and paged_attention. */
#define ATTENTION_KERNELS(ROW, isa) \
    ROW(attention, isa)             \
    ROW(attention_grad, isa)

#define DECLARE(op, isa) extern const tp_kernel tp_cpu_##op##_##isa;
#define ADDRESS(op, isa) &tp_cpu_##op##_##isa,

extern const tp_kernel tp_cpu_muon, tp_cpu_linear, tp_cpu_linear_gelu, tp_cpu_linear_dx,
    tp_cpu_linear_dw;
VECTOR_KERNELS(DECLARE, portable)
VECTOR_KERNELS(DECLARE, portable_f16)
#if defined(__x86_64__)
VECTOR_KERNELS(DECLARE, avx2)
VECTOR_KERNELS(DECLARE, avx512)
ATTENTION_KERNELS(DECLARE, amx)
DECLARE(linear_panels, amx)
DECLARE(paged_attention, amx)
VECTOR_KERNELS(DECLARE, avx512_bf16)
VECTOR_KERNELS(DECLARE, avx2_f16)
VECTOR_KERNELS(DECLARE, avx512_f16)
#endif

/* clang-format off */
static const tp_kernel *const kernels[] = {
    &tp_cpu_muon,
    &tp_cpu_linear,
    &tp_cpu_linear_gelu,
    &tp_cpu_linear_dx,
    &tp_cpu_linear_dw,
#if defined(__x86_64__)
    ATTENTION_KERNELS(ADDRESS, amx)
    ADDRESS(linear_panels, amx)
    ADDRESS(paged_attention, amx)
    VECTOR_KERNELS(ADDRESS, avx512_bf16)
    VECTOR_KERNELS(ADDRESS, avx512)
    VECTOR_KERNELS(ADDRESS, avx2)
#endif
    VECTOR_KERNELS(ADDRESS, portable)
    /* Where something is f16, which those above refuse. */
#if defined(__x86_64__)
    VECTOR_KERNELS(ADDRESS, avx512_f16)
    VECTOR_KERNELS(ADDRESS, avx2_f16)
#endif
    VECTOR_KERNELS(ADDRESS, portable_f16)
    NULL,
};
/* clang-format on */

const tp_backend tp_backend_cpu = {
    .name = "cpu",
    .kernels = kernels,
    .is_host = true,
    .prepare = tp_paths_prove,
    .open = tp_host_open,
    .close = tp_host_close,
    .alloc = tp_host_alloc,
    .free = tp_host_free,
    .copy = tp_host_copy,
    .submit = tp_host_submit,
    .unit_name = tp_cpu_unit_name,
    .unit_peak = tp_cpu_unit_peak,
    .read_peak = tp_cpu_read_peak,
};
