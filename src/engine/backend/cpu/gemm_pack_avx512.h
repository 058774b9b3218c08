/* gemm_pack_avx512.h - packing of panels with AVX-512.
 *
 * A panel is made of lanes of 32 bits, panel[step][width]: an f32 or a pair of bf16.  Where k
 * is contiguous in memory a lane is there already and blocks of 16 by 16 lanes are
 * transposed; where x is contiguous rows are copied, and two rows interleaved for pairs. */
#ifndef TP_ENGINE_BACKEND_CPU_GEMM_PACK_AVX512_H
#define TP_ENGINE_BACKEND_CPU_GEMM_PACK_AVX512_H

#include <immintrin.h>

#include "engine/backend/cpu/gemm_finish.h"

/* What 32 bits of a panel hold, and what they are read from. */
typedef enum {
    LANE_F32,      /* f32 from f32        */
    LANE_WIDENED,  /* f32 from bf16       */
    LANE_BF16_PAIR /* two bf16 from bf16  */
} pack_lane;

/* Bits 0 .. n-1, with n cut to 0 .. 32. */
GEMM_INLINE uint32_t pack_mask(int64_t n)
{
    if (n <= 0)
        return 0;
    return n >= 32 ? ~0u : (1u << n) - 1;
}

/* row[x] = 16 lanes of row x  ->  row[s] = lane s of 16 rows. */
GEMM_INLINE void pack_transpose(__m512i row[16])
{
    __m512i t[16];
#pragma GCC unroll 8
    for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_epi32(row[i], row[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(row[i], row[i + 1]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 16; i += 4) {
        row[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
        row[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
        row[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
        row[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    /* row[4g + j] holds lanes j, 4+j, 8+j, 12+j of rows 4g .. 4g+3 */
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
        t[j] = _mm512_shuffle_i32x4(row[j], row[4 + j], 0x88);
        t[4 + j] = _mm512_shuffle_i32x4(row[j], row[4 + j], 0xdd);
        t[8 + j] = _mm512_shuffle_i32x4(row[8 + j], row[12 + j], 0x88);
        t[12 + j] = _mm512_shuffle_i32x4(row[8 + j], row[12 + j], 0xdd);
    }
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
        row[j] = _mm512_shuffle_i32x4(t[j], t[8 + j], 0x88);
        row[8 + j] = _mm512_shuffle_i32x4(t[j], t[8 + j], 0xdd);
        row[4 + j] = _mm512_shuffle_i32x4(t[4 + j], t[12 + j], 0x88);
        row[12 + j] = _mm512_shuffle_i32x4(t[4 + j], t[12 + j], 0xdd);
    }
}

/* 16 lanes along k from `src` at element k, zero from element nk on. */
GEMM_INLINE __m512i pack_load_k(const pack_lane lane, const void *src, int64_t k, int64_t nk)
{
    if (lane == LANE_F32)
        return _mm512_maskz_loadu_epi32((__mmask16)pack_mask(nk - k), (const float *)src + k);
    const tp_bf16 *h = (const tp_bf16 *)src + k;
    if (lane == LANE_BF16_PAIR)
        return _mm512_maskz_loadu_epi16(pack_mask(nk - k), h);
    __m256i half = _mm256_maskz_loadu_epi16((__mmask16)pack_mask(nk - k), h);
    return _mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16);
}

/* 16 lanes along x, under `mask`, from row k (and k + 1, when there is one, for pairs). */
GEMM_INLINE __m512i pack_load_x(const pack_lane lane, const void *row, int64_t ld, bool has_next,
                                __mmask16 mask)
{
    if (lane == LANE_F32)
        return _mm512_maskz_loadu_epi32(mask, row);
    const tp_bf16 *h = row;
    __m512i low = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, h));
    if (lane == LANE_WIDENED)
        return _mm512_slli_epi32(low, 16);
    if (!has_next)
        return low;
    __m512i high = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, h + ld));
    return _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
}

/* panel[steps][width] from nx rows with k contiguous.  A store of 16 lanes may run over the
 * end of a narrow row: the next step overwrites it, the slack behind the panel takes the last. */
GEMM_INLINE void pack_from_k(const pack_lane lane, uint32_t *panel, const char *src,
                             int64_t ld_bytes, int nx, int width, int64_t nk, int64_t steps)
{
    const int per_lane = lane == LANE_BF16_PAIR ? 2 : 1;
    for (int64_t s0 = 0; s0 < steps; s0 += 16) {
        int n = (int)(steps - s0 < 16 ? steps - s0 : 16);
        for (int x0 = 0; x0 < width; x0 += 16) {
            __m512i row[16];
#pragma GCC unroll 16
            for (int x = 0; x < 16; x++)
                row[x] = x0 + x < nx
                             ? pack_load_k(lane, src + (x0 + x) * ld_bytes, s0 * per_lane, nk)
                             : _mm512_setzero_si512();
            pack_transpose(row);
            uint32_t *to = panel + s0 * width + x0;
            if (n == 16) {
#pragma GCC unroll 16
                for (int s = 0; s < 16; s++)
                    _mm512_storeu_si512(to + s * width, row[s]);
            } else {
                for (int s = 0; s < n; s++)
                    _mm512_storeu_si512(to + s * width, row[s]);
            }
        }
    }
}

/* The same from rows with x contiguous. */
GEMM_INLINE void pack_from_x(const pack_lane lane, uint32_t *panel, const void *src, int64_t ld,
                             int nx, int width, int64_t nk, int64_t steps)
{
    const int per_lane = lane == LANE_BF16_PAIR ? 2 : 1;
    const int64_t element = lane == LANE_F32 ? 4 : 2;
    for (int64_t s = 0; s < steps; s++) {
        int64_t k = s * per_lane;
        const char *row = (const char *)src + k * ld * element;
        for (int x0 = 0; x0 < width; x0 += 16) {
            __mmask16 mask = (__mmask16)(k < nk ? pack_mask(nx - x0) : 0);
            __m512i lanes = pack_load_x(lane, row + x0 * element, ld, k + 1 < nk, mask);
            _mm512_storeu_si512(panel + s * width + x0, lanes);
        }
    }
}

GEMM_INLINE void pack_lanes_avx512(const pack_lane lane, void *panel, const tp_gemm_operand *op,
                                   const tp_gemm_part *part)
{
    const int64_t element = lane == LANE_F32 ? 4 : 2;
    const int per_lane = lane == LANE_BF16_PAIR ? 2 : 1;
    int64_t steps = (part->k_padded + per_lane - 1) / per_lane;
    int64_t at = op->k_contiguous ? part->x0 * op->ld + part->k0 : part->k0 * op->ld + part->x0;
    const char *src = (const char *)op->data + at * element;
    if (op->k_contiguous)
        pack_from_k(lane, panel, src, op->ld * element, part->nx, part->width, part->nk, steps);
    else
        pack_from_x(lane, panel, src, op->ld, part->nx, part->width, part->nk, steps);
}

#endif
