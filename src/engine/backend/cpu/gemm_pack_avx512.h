/* gemm_pack_avx512.h - packing of panels with AVX-512.
 *
 * Panels are made of lanes of 32 bits, an f32 or a pair of bf16:
 *     A in lines,   panel[step / 16][width][16]: 16 steps of a row are one cache line;
 *     B in columns, panel[step][width].
 * Where k is contiguous in memory a line is there already and only columns need blocks of 16
 * by 16 lanes transposed; where x is contiguous it is the other way round. */
#ifndef TP_ENGINE_BACKEND_CPU_GEMM_PACK_AVX512_H
#define TP_ENGINE_BACKEND_CPU_GEMM_PACK_AVX512_H

#include <immintrin.h>

#include "engine/backend/cpu/gemm_kernel.h"

/* What 32 bits of a panel hold, and what they are read from. */
typedef enum {
    LANE_F32,      /* f32 from f32        */
    LANE_WIDENED,  /* f32 from bf16       */
    LANE_BF16_PAIR /* two bf16 from bf16  */
} pack_lane;

enum { PACK_AHEAD = 512 }; /* bytes between a load and its prefetch */

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

/* Columns from nx rows with k contiguous; width is a multiple of 16. */
GEMM_INLINE void pack_columns_from_k(const pack_lane lane, uint32_t *panel, const char *src,
                             int64_t ld_bytes, int nx, int width, int64_t nk, int64_t steps)
{
    const int per_lane = lane == LANE_BF16_PAIR ? 2 : 1;
    const int64_t element = lane == LANE_F32 ? 4 : 2;
    for (int x0 = 0; x0 < width; x0 += 16) {
        uint32_t *to = panel + x0;
        for (int64_t s0 = 0; s0 < steps; s0 += 16, to += 16 * width) {
            __m512i row[16];
#pragma GCC unroll 16
            for (int x = 0; x < 16; x++) {
                row[x] = _mm512_setzero_si512();
                if (x0 + x < nx) {
                    const char *at = src + (x0 + x) * ld_bytes;
                    row[x] = pack_load_k(lane, at, s0 * per_lane, nk);
                    _mm_prefetch(at + s0 * per_lane * element + PACK_AHEAD, _MM_HINT_T0);
                }
            }
            pack_transpose(row);
#pragma GCC unroll 16
            for (int s = 0; s < 16; s++)
                _mm512_store_si512(to + s * width, row[s]);
        }
    }
}

/* Lines from nx rows with k contiguous: a copy.  Few rows at a time, so that the processor
 * sees few streams, and far enough ahead for it to keep up. */
GEMM_INLINE void pack_lines_from_k(const pack_lane lane, uint32_t *panel, const char *src,
                                   int64_t ld_bytes, int nx, int width, int64_t nk, int64_t steps)
{
    const int per_line = lane == LANE_BF16_PAIR ? 32 : 16;
    const int64_t element = lane == LANE_F32 ? 4 : 2;
    const int group = 4;
    for (int x0 = 0; x0 < width; x0 += group) {
        int x1 = x0 + group < width ? x0 + group : width;
        uint32_t *to = panel + x0 * 16;
        for (int64_t k = 0; k < steps / 16 * per_line; k += per_line, to += width * 16) {
            for (int x = x0; x < x1; x++) {
                const char *row = src + x * ld_bytes;
                __m512i line = _mm512_setzero_si512();
                if (x < nx) {
                    line = pack_load_k(lane, row, k, nk);
                    _mm_prefetch(row + k * element + PACK_AHEAD, _MM_HINT_T0);
                }
                _mm512_store_si512(to + (x - x0) * 16, line);
            }
        }
    }
}

/* Lines from rows with x contiguous: 16 steps by 16 x transposed. */
GEMM_INLINE void pack_lines_from_x(const pack_lane lane, uint32_t *panel, const void *src,
                                   int64_t ld, int nx, int width, int64_t nk, int64_t steps)
{
    const int per_lane = lane == LANE_BF16_PAIR ? 2 : 1;
    const int64_t element = lane == LANE_F32 ? 4 : 2;
    for (int64_t s0 = 0; s0 < steps; s0 += 16) {
        for (int x0 = 0; x0 < width; x0 += 16) {
            uint32_t *to = panel + s0 * width + x0 * 16;
            __mmask16 in_x = (__mmask16)pack_mask(nx - x0);
            __m512i lines[16];
#pragma GCC unroll 16
            for (int s = 0; s < 16; s++) {
                int64_t k = (s0 + s) * per_lane;
                const char *row = (const char *)src + (k * ld + x0) * element;
                lines[s] = pack_load_x(lane, row, ld, k + 1 < nk, k < nk ? in_x : 0);
            }
            pack_transpose(lines);
            int n = width - x0 < 16 ? width - x0 : 16;
            for (int x = 0; x < n; x++)
                _mm512_store_si512(to + x * 16, lines[x]);
        }
    }
}

/* Columns from rows with x contiguous: a copy, or two rows interleaved. */
GEMM_INLINE void pack_columns_from_x(const pack_lane lane, uint32_t *panel, const void *src, int64_t ld,
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
            _mm512_store_si512(panel + s * width + x0, lanes);
        }
    }
}

typedef struct {
    const char *src; /* element (x0, k0) */
    int64_t steps;   /* lanes */
} pack_source;

GEMM_INLINE pack_source pack_find_source(const pack_lane lane, const tp_gemm_operand *op,
                                         const tp_gemm_part *part)
{
    const int64_t element = lane == LANE_F32 ? 4 : 2;
    int64_t at = op->k_contiguous ? part->x0 * op->ld + part->k0 : part->k0 * op->ld + part->x0;
    return (pack_source){
        .src = (const char *)op->data + at * element,
        .steps = part->k_padded / (lane == LANE_BF16_PAIR ? 2 : 1),
    };
}

GEMM_INLINE void pack_lines(const pack_lane lane, void *panel, const tp_gemm_operand *op,
                            const tp_gemm_part *part)
{
    const int64_t element = lane == LANE_F32 ? 4 : 2;
    pack_source from = pack_find_source(lane, op, part);
    if (op->k_contiguous)
        pack_lines_from_k(lane, panel, from.src, op->ld * element, part->nx, part->width, part->nk,
                          from.steps);
    else
        pack_lines_from_x(lane, panel, from.src, op->ld, part->nx, part->width, part->nk,
                          from.steps);
}

GEMM_INLINE void pack_columns(const pack_lane lane, void *panel, const tp_gemm_operand *op,
                              const tp_gemm_part *part)
{
    const int64_t element = lane == LANE_F32 ? 4 : 2;
    pack_source from = pack_find_source(lane, op, part);
    if (op->k_contiguous)
        pack_columns_from_k(lane, panel, from.src, op->ld * element, part->nx, part->width,
                            part->nk, from.steps);
    else
        pack_columns_from_x(lane, panel, from.src, op->ld, part->nx, part->width, part->nk,
                            from.steps);
}

#endif
