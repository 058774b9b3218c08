/* gemm_finish_avx512.h - from f32 sums to elements of C with AVX-512; see gemm_finish.h. */
#ifndef TP_ENGINE_BACKEND_CPU_GEMM_FINISH_AVX512_H
#define TP_ENGINE_BACKEND_CPU_GEMM_FINISH_AVX512_H

#include <immintrin.h>

#include "engine/backend/cpu/gemm_gelu.h"
#include "engine/backend/cpu/gemm_pack_avx512.h"

GEMM_INLINE __m512 finish_load16(const void *from, tp_dtype dtype, int64_t at, __mmask16 mask)
{
    if (dtype == TP_DTYPE_F32)
        return _mm512_maskz_loadu_ps(mask, (const float *)from + at);
    __m256i half = _mm256_maskz_loadu_epi16(mask, (const tp_bf16 *)from + at);
    return _mm512_castsi512_ps(gemm_widen(half));
}

GEMM_INLINE void finish_store16(void *to, tp_dtype dtype, int64_t at, __m512 x, __mmask16 mask)
{
    if (dtype == TP_DTYPE_F32)
        _mm512_mask_storeu_ps((float *)to + at, mask, x);
    else if (mask == 0xffff)
        _mm256_storeu_si256((__m256i *)(void *)((tp_bf16 *)to + at), vf_round_half(x));
    else
        _mm256_mask_storeu_epi16((tp_bf16 *)to + at, mask, vf_round_half(x));
}

/* The final values of 16 elements of C: row offset `at`, column j. */
GEMM_INLINE __m512 finish_values(const tp_gemm *g, __m512 value, int64_t at, int64_t j,
                                 __mmask16 mask, bool accumulate)
{
    if (g->bias)
        value = _mm512_add_ps(value, finish_load16(g->bias, g->bias_dtype, j, mask));
    if (accumulate)
        value = _mm512_add_ps(value, finish_load16(g->c, g->c_dtype, at, mask));
    if (g->pre)
        finish_store16(g->pre, g->c_dtype, at, value, mask);
    return finish_gelu(g, value);
}

GEMM_INLINE void finish_lanes(const tp_gemm *g, __m512 value, int64_t at, int64_t j, __mmask16 mask,
                              bool accumulate)
{
    value = finish_values(g, value, at, j, mask, accumulate);
    finish_store16(g->c, g->c_dtype, at, value, mask);
}

/* 32 halves of a row, a cache line, in one store: half the entries of the store buffer. */
GEMM_INLINE void finish_line(const tp_gemm *g, const float *acc, int64_t at, int64_t j,
                             bool accumulate)
{
    __m512 low = finish_values(g, _mm512_loadu_ps(acc), at, j, 0xffff, accumulate);
    __m512 high = finish_values(g, _mm512_loadu_ps(acc + 16), at + 16, j + 16, 0xffff, accumulate);
    _mm512_storeu_si512((tp_bf16 *)g->c + at, vf_round_halves(low, high));
}

GEMM_INLINE void finish_rows(const tp_gemm *g, const float *acc, int64_t ld_acc, int64_t i0,
                             int rows, int64_t j0, int cols, bool accumulate)
{
    for (int i = 0; i < rows; i++) {
        int64_t at = (i0 + i) * g->ldc + j0;
        if (cols == 32 && g->c_dtype != TP_DTYPE_F32) {
            finish_line(g, acc + i * ld_acc, at, j0, accumulate);
            continue;
        }
        for (int j = 0; j < cols; j += 16)
            finish_lanes(g, _mm512_loadu_ps(acc + i * ld_acc + j), at + j, j0 + j,
                         (__mmask16)pack_mask(cols - j), accumulate);
    }
}

/* Up to 16 columns of 16 rows of C from `at` on, with nothing to do but to store. */
GEMM_INLINE void finish_plain16(const tp_gemm *g, const __m512i lanes[16], int64_t at,
                                __mmask16 mask)
{
#pragma GCC unroll 16
    for (int x = 0; x < 16; x++)
        finish_store16(g->c, g->c_dtype, at + x * g->ldc, _mm512_castsi512_ps(lanes[x]), mask);
}

/* acc[cols of C, up to 32][rows of C, up to 32], a tile of the transposed product. */
GEMM_INLINE void finish_transposed_tile(const tp_gemm *g, const float *acc, int64_t ld_acc,
                                        int64_t i0, int rows, int64_t j0, int cols, bool accumulate)
{
    bool is_plain = !accumulate && !g->bias && !g->pre && g->epilogue == TP_GEMM_EPILOGUE_NONE;
    for (int j = 0; j < cols; j += 16) {
        __mmask16 mask = (__mmask16)pack_mask(cols - j);
        for (int i = 0; i < rows; i += 16) {
            int64_t at = (i0 + i) * g->ldc + j0 + j;
            __m512i lanes[16];
#pragma GCC unroll 16
            for (int x = 0; x < 16; x++)
                lanes[x] = j + x < cols ? _mm512_loadu_si512(acc + (j + x) * ld_acc + i)
                                        : _mm512_setzero_si512();
            pack_transpose(lanes);
            int n = rows - i < 16 ? rows - i : 16;
            if (n == 16 && is_plain) {
                finish_plain16(g, lanes, at, mask);
                continue;
            }
            for (int x = 0; x < n; x++)
                finish_lanes(g, _mm512_castsi512_ps(lanes[x]), at + x * g->ldc, j0 + j, mask,
                             accumulate);
        }
    }
}

#endif
