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
 * Halves are stored rounded to nearest even; NaN stays NaN.  Kernels say bf16 for them: the same
 * sources are compiled for binary16 too, whose copies take that in its place. */
#ifndef TP_ENGINE_BACKEND_CPU_VEC_H
#define TP_ENGINE_BACKEND_CPU_VEC_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "engine/device/dtype.h"

/* What has 16 bits: bf16, in copies compiled with TP_CPU_F16 binary16. */
#if defined(TP_CPU_F16)
typedef tp_f16 vf_half;
#define VF_HALF_TO_F32 tp_f16_to_f32
#define VF_F32_TO_HALF tp_f32_to_f16
#else
typedef tp_bf16 vf_half;
#define VF_HALF_TO_F32 tp_bf16_to_f32
#define VF_F32_TO_HALF tp_f32_to_bf16
#endif

#define VF_INLINE static inline __attribute__((always_inline, unused))

#if defined(__AVX512F__)
#include "engine/backend/cpu/vec_avx512.h"
#elif defined(__AVX2__)
#include "engine/backend/cpu/vec_avx2.h"
#else
#include "engine/backend/cpu/vec_portable.h"
#endif

/* Elements i .. of a row whose dtype is half (bf16: true) or f32. */
VF_INLINE vf vf_get(const void *row, bool bf16, int64_t i)
{
    return bf16 ? vf_load_half((const vf_half *)row + i) : vf_load((const float *)row + i);
}

VF_INLINE vf vf_get_n(const void *row, bool bf16, int64_t i, int64_t n)
{
    return bf16 ? vf_load_half_n((const vf_half *)row + i, n)
                : vf_load_n((const float *)row + i, n);
}

VF_INLINE void vf_put(void *row, bool bf16, int64_t i, vf x)
{
    if (bf16)
        vf_store_half((vf_half *)row + i, x);
    else
        vf_store((float *)row + i, x);
}

VF_INLINE void vf_put_n(void *row, bool bf16, int64_t i, int64_t n, vf x)
{
    if (bf16)
        vf_store_half_n((vf_half *)row + i, n, x);
    else
        vf_store_n((float *)row + i, n, x);
}

/* A vector of the `left` elements from i on, or as many as there are. */
VF_INLINE vf vf_get_at(const void *row, bool bf16, int64_t i, int64_t left)
{
    return left >= VF_N ? vf_get(row, bf16, i) : vf_get_n(row, bf16, i, left);
}

VF_INLINE void vf_put_at(void *row, bool bf16, int64_t i, int64_t left, vf x)
{
    if (left >= VF_N)
        vf_put(row, bf16, i, x);
    else
        vf_put_n(row, bf16, i, left, x);
}

/* Asks for the lines of elements i .. i+n-1, as far ahead as memory is slow: the processor's own
 * prefetches end with the page. */
VF_INLINE void vf_fetch(const void *row, bool bf16, int64_t i, int n)
{
    enum { AHEAD = 2048, LINE = 64 }; /* bytes */
    const int64_t element = bf16 ? 2 : 4;
    for (int64_t byte = 0; byte < n * element; byte += LINE)
        __builtin_prefetch((const char *)row + i * element + AHEAD + byte);
}

/* One element, for what is left over or comes alone. */
VF_INLINE float vf_get_one(const void *row, bool bf16, int64_t i)
{
    return bf16 ? VF_HALF_TO_F32(((const vf_half *)row)[i]) : ((const float *)row)[i];
}

#endif
