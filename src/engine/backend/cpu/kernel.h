/* kernel.h - what every kernel file of this folder needs.
 *
 * Files that use vec.h are compiled once per instruction set.  Each copy is
 * given TP_CPU_SUFFIX (avx512) and TP_CPU_ISA (TP_ISA_AVX512), puts the suffix
 * behind its kernels' names, and kernels.c lists them all. */
#ifndef TP_ENGINE_BACKEND_CPU_KERNEL_H
#define TP_ENGINE_BACKEND_CPU_KERNEL_H

#include "engine/backend/backend.h"
#include "engine/backend/cpu/parallel.h"

#define TP_CPU_PASTE2(a, b) a##_##b
#define TP_CPU_PASTE(a, b) TP_CPU_PASTE2(a, b)
#define TP_CPU_TEXT2(a) #a
#define TP_CPU_TEXT(a) TP_CPU_TEXT2(a)

/* tp_cpu_rope -> tp_cpu_rope_avx512 */
#define TP_CPU_NAME(name) TP_CPU_PASTE(name, TP_CPU_SUFFIX)

/* The row of kernels.c for one op in this copy's instruction set; further members follow. */
#define TP_CPU_KERNEL(name_, ...)                                                                 \
    const tp_kernel TP_CPU_NAME(tp_cpu_##name_) = {.name = #name_ "/" TP_CPU_TEXT(TP_CPU_SUFFIX), \
                                                   .op = TP_OP_##name_,                           \
                                                   .isa = TP_CPU_ISA,                             \
                                                   __VA_ARGS__}

static inline bool is_bound(const tp_operand *operand) { return operand->data != NULL; }
static inline bool is_present(const tp_operand *operand) { return operand->rank != 0; }

/* The half type of this copy. */
#if defined(TP_CPU_F16)
#define TP_CPU_HALF TP_DTYPE_F16
#else
#define TP_CPU_HALF TP_DTYPE_BF16
#endif
static inline bool is_half(const tp_operand *operand) { return operand->dtype == TP_CPU_HALF; }

static inline bool is_f32_or_half(const tp_operand *operand)
{
    return operand->dtype == TP_DTYPE_F32 || is_half(operand);
}

/* A vector is one row to elementwise kernels. */
static inline int64_t n_rows(const tp_operand *operand)
{
    return operand->rank == 1 ? 1 : operand->dim[0];
}

static inline int64_t row_width(const tp_operand *operand)
{
    return operand->rank == 1 ? operand->dim[0] : operand->dim[1];
}

/* All its elements lie one behind the other (or there are none). */
static inline bool has_no_gaps(const tp_operand *operand)
{
    return operand->rank <= 1 || operand->stride == operand->dim[1];
}

/* Nor has any other of the launch: its tensors are one row each, all alike. */
static inline bool is_one_row(const tp_launch *launch)
{
    bool is = true;
    for (int i = 0; i < launch->n_in + launch->n_out; i++)
        is &= has_no_gaps(i < launch->n_in ? &launch->in[i] : &launch->out[i - launch->n_in]);
    return is;
}

/* Where row r begins. */
static inline void *row_at(const tp_operand *operand, int64_t r)
{
    return (char *)operand->data + r * operand->stride * (operand->dtype == TP_DTYPE_F32 ? 4 : 2);
}

/* Every input and output given by `in` and `out` (bit i: operand i), if present, is f32 or
 * bf16; other dtypes (f64 in gradient checks) are left to ref. */
static inline bool are_floats(const tp_launch *launch, unsigned in, unsigned out)
{
    bool ok = true;
    for (int i = 0; i < TP_MAX_IN; i++)
        ok =
            ok && (!(in >> i & 1) || !is_present(&launch->in[i]) || is_f32_or_half(&launch->in[i]));
    for (int i = 0; i < TP_MAX_OUT; i++)
        ok = ok &&
             (!(out >> i & 1) || !is_present(&launch->out[i]) || is_f32_or_half(&launch->out[i]));
    return ok;
}

static inline bool is_f32_if_present(const tp_operand *operand)
{
    return !is_present(operand) || operand->dtype == TP_DTYPE_F32;
}

static inline bool is_i32(const tp_operand *operand) { return operand->dtype == TP_DTYPE_I32; }

/* Input `acc` holds something to add to. */
static inline bool adds_to(const tp_launch *launch, int acc)
{
    return launch->accumulate && is_bound(&launch->in[acc]);
}

/* A kernel that makes every row of its first output by itself, where that is asked for. */
#define TP_CPU_ROWS_KERNEL(name_, range, accepts_)                                         \
    static void name_(const tp_launch *launch)                                             \
    {                                                                                      \
        const tp_operand *y = &launch->out[0];                                             \
        if (is_bound(y))                                                                   \
            tp_cpu_static(launch, n_rows(y), n_rows(y) * row_width(y) * 8, range, launch); \
    }                                                                                      \
    TP_CPU_KERNEL(name_, .accepts = accepts_, .run = name_)

static inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* Workspaces are made of pieces that begin on a cache line. */
static inline size_t round_up_64(size_t bytes) { return (bytes + 63) & ~(size_t)63; }

#endif
