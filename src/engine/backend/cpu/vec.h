/* vec.h - one vector of f32, in the widest form of the instruction set that the
 * including file is compiled for.
 *
 * Kernels are written once against these functions and compiled once per
 * instruction set; CMakeLists.txt gives every copy its options and its suffix.
 *
 *   vf, vi, vm   VF_N floats, VF_N int32, a mask of VF_N lanes
 *   + - * /      work on vf; GCC and Clang both have them as operators
 *   *_n          the first n lanes (0 <= n < VF_N): loads give zeros behind them, and memory
 *                behind them is neither read nor written
 *
 * bf16 is loaded by a shift and stored rounded to nearest even; NaN stays NaN. */
#ifndef TP_ENGINE_BACKEND_CPU_VEC_H
#define TP_ENGINE_BACKEND_CPU_VEC_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "engine/device/dtype.h"

#define VF_INLINE static inline __attribute__((always_inline, unused))

#if defined(__AVX512F__)
#include "engine/backend/cpu/vec_avx512.h"
#elif defined(__AVX2__)
#include "engine/backend/cpu/vec_avx2.h"
#else
#include "engine/backend/cpu/vec_portable.h"
#endif

/* Elements i .. of a row whose dtype is bf16 or f32. */
VF_INLINE vf vf_get(const void *row, bool bf16, int64_t i)
{
    return bf16 ? vf_load_bf16((const tp_bf16 *)row + i) : vf_load((const float *)row + i);
}

VF_INLINE vf vf_get_n(const void *row, bool bf16, int64_t i, int64_t n)
{
    return bf16 ? vf_load_bf16_n((const tp_bf16 *)row + i, n)
                : vf_load_n((const float *)row + i, n);
}

VF_INLINE void vf_put(void *row, bool bf16, int64_t i, vf x)
{
    if (bf16)
        vf_store_bf16((tp_bf16 *)row + i, x);
    else
        vf_store((float *)row + i, x);
}

VF_INLINE void vf_put_n(void *row, bool bf16, int64_t i, int64_t n, vf x)
{
    if (bf16)
        vf_store_bf16_n((tp_bf16 *)row + i, n, x);
    else
        vf_store_n((float *)row + i, n, x);
}

/* One element, for what is left over or comes alone. */
VF_INLINE float vf_get_one(const void *row, bool bf16, int64_t i)
{
    return bf16 ? tp_bf16_to_f32(((const tp_bf16 *)row)[i]) : ((const float *)row)[i];
}

#endif
