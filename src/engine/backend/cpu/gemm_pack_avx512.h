/* gemm_pack_avx512.h - packing of panels with AVX-512.
 *
 * Panels are made of lanes of 32 bits, an f32 or a pair of bf16:
 *     A in lines,   panel[step / 16][rows][16]: 16 steps of a row are one cache line;
 *     B in columns, panel[step][cols].
 * Where k is contiguous in memory a line is there already and only columns need blocks of 16
 * by 16 lanes transposed; where x is contiguous it is the other way round. */
#ifndef TP_ENGINE_BACKEND_CPU_GEMM_PACK_AVX512_H
#define TP_ENGINE_BACKEND_CPU_GEMM_PACK_AVX512_H

#include <immintrin.h>

#include "engine/backend/cpu/gemm_kernel.h"

/* What 32 bits of a panel hold, and what they are read from. */
typedef enum {
    LANE_F32,      /* f32 from f32        */
    LANE_WIDENED,  /* f32 from halves     */
    LANE_BF16_PAIR /* two bf16 from bf16  */
} pack_lane;

/* Bytes between a load and its prefetch: along a row, and where rows are crossed. */
enum { PACK_AHEAD = 512, PACK_ASIDE = 128 };
/* The same in rows, of few panels: what a row has of them is too short for the processor's own
 * prefetches. */
enum { PACK_ROWS_AHEAD = 32 };

/* 16 halves as f32. */
GEMM_INLINE __m512i gemm_widen(__m256i half)
{
#if defined(TP_CPU_F16)
    return _mm512_castps_si512(_mm512_cvtph_ps(half));
#else
    return _mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16);
#endif
}

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

/* 16 bytes at the same place of four rows, `apart` bytes from one to the next. */
GEMM_INLINE __m512i pack_gather(const char *at, int64_t apart)
{
    __m512i x = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)(const void *)at));
    x = _mm512_inserti32x4(x, _mm_loadu_si128((const __m128i *)(const void *)(at + apart)), 1);
    x = _mm512_inserti32x4(x, _mm_loadu_si128((const __m128i *)(const void *)(at + 2 * apart)), 2);
    return _mm512_inserti32x4(x, _mm_loadu_si128((const __m128i *)(const void *)(at + 3 * apart)),
                              3);
}

/* Halves i of 128 bits of 8 registers become 128 bits of register i, in each of four parts. */
GEMM_INLINE void pack_turn_parts(__m512i line[8])
{
    __m512i t[8];
#pragma GCC unroll 4
    for (int i = 0; i < 8; i += 2) {
        t[i] = _mm512_unpacklo_epi16(line[i], line[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi16(line[i], line[i + 1]);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 8; i += 4) {
        line[i] = _mm512_unpacklo_epi32(t[i], t[i + 2]);
        line[i + 1] = _mm512_unpackhi_epi32(t[i], t[i + 2]);
        line[i + 2] = _mm512_unpacklo_epi32(t[i + 1], t[i + 3]);
        line[i + 3] = _mm512_unpackhi_epi32(t[i + 1], t[i + 3]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        t[2 * i] = _mm512_unpacklo_epi64(line[i], line[4 + i]);
        t[2 * i + 1] = _mm512_unpackhi_epi64(line[i], line[4 + i]);
    }
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++)
        line[i] = t[i];
}

/* 32 rows of 8 halves, `ld` bytes apart -> line[x] = half x of all rows.  The parts of 128 bits are
 * in their order when they are loaded, so that only shuffles within them are left. */
GEMM_INLINE void pack_turn_halves(__m512i line[8], const char *src, int64_t ld)
{
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++)
        line[i] = pack_gather(src + i * ld, 8 * ld);
    pack_turn_parts(line);
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
    return gemm_widen(half);
}

/* Lanes along x: 32 of them from x on, zero from nx on, of the row of element k (and of the
 * next, for pairs, where k + 1 < nk). */
typedef struct {
    __m512i half[2];
} pack_row;

GEMM_INLINE pack_row pack_load_x(const pack_lane lane, const char *row, int64_t ld, int64_t nx,
                                 int64_t k, int64_t nk)
{
    pack_row r = {{_mm512_setzero_si512(), _mm512_setzero_si512()}};
    if (k >= nk)
        return r;
    __mmask32 mask = pack_mask(nx);
    if (lane == LANE_F32) {
        r.half[0] = _mm512_maskz_loadu_epi32((__mmask16)mask, row);
        r.half[1] = _mm512_maskz_loadu_epi32((__mmask16)(mask >> 16), row + 64);
        return r;
    }
    __m512i low = _mm512_maskz_loadu_epi16(mask, row);
    if (lane == LANE_WIDENED) {
        __m256i upper = _mm512_extracti64x4_epi64(low, 1);
        r.half[0] = gemm_widen(_mm512_castsi512_si256(low));
        r.half[1] = gemm_widen(upper);
        return r;
    }
    __m512i high = _mm512_setzero_si512();
    if (k + 1 < nk)
        high = _mm512_maskz_loadu_epi16(mask, row + ld * 2);
    /* 0, 32, 1, 33, ... of low and high */
    const __m512i first =
        _mm512_add_epi32(_mm512_set1_epi32(0x200000),
                         _mm512_mullo_epi32(_mm512_set1_epi32(0x10001),
                                            _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11,
                                                              12, 13, 14, 15)));
    const __m512i second = _mm512_add_epi32(first, _mm512_set1_epi32(0x100010));
    r.half[0] = _mm512_permutex2var_epi16(low, first, high);
    r.half[1] = _mm512_permutex2var_epi16(low, second, high);
    return r;
}

/* One column panel, panel[steps][width], from nx rows with k contiguous. */
GEMM_INLINE void pack_columns_from_k(const pack_lane lane, const int width, uint32_t *panel,
                                     const char *src, int64_t ld_bytes, int nx, int64_t nk,
                                     int64_t steps)
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

/* Two rows of 32 halves interleaved. */
GEMM_INLINE void pack_whole_pair(uint32_t *to, const char *row, int64_t ld)
{
    const char *next = row + ld * 2;
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        __m512i low = _mm512_cvtepu16_epi32(
            _mm256_loadu_si256((const __m256i *)(const void *)(row + i * 32)));
        __m512i high = _mm512_cvtepu16_epi32(
            _mm256_loadu_si256((const __m256i *)(const void *)(next + i * 32)));
        _mm512_store_si512(to + i * 16, _mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
    }
}

/* The same, width 32, from rows with x contiguous: a copy, or two rows interleaved. */
GEMM_INLINE void pack_columns_from_x(const pack_lane lane, uint32_t *panel, const char *src,
                                     int64_t ld, int64_t nx, int64_t nk, int64_t steps)
{
    const int per_lane = lane == LANE_BF16_PAIR ? 2 : 1;
    const int64_t element = lane == LANE_F32 ? 4 : 2;
    for (int64_t s = 0; s < steps; s++) {
        int64_t k = s * per_lane;
        const char *row = src + k * ld * element;
        pack_row r = pack_load_x(lane, row, ld, nx, k, nk);
        _mm512_store_si512(panel + s * 32, r.half[0]);
        _mm512_store_si512(panel + s * 32 + 16, r.half[1]);
        _mm_prefetch(row + PACK_ASIDE, _MM_HINT_T0);
        if (lane == LANE_BF16_PAIR)
            _mm_prefetch(row + PACK_ASIDE + ld * element, _MM_HINT_T0);
    }
}

/* Whole panels of columns, width 32, from rows of bf16 with x contiguous: along the rows, as they
 * lie. */
GEMM_INLINE void pack_whole_columns(char *panel, size_t stride, int64_t panels, const char *src,
                                    int64_t ld, int64_t steps)
{
    for (int64_t s = 0; s < steps; s++, src += 4 * ld, panel += 128)
        for (int64_t p = 0; p < panels; p++) {
            const char *ahead = src + p * 64 + PACK_ROWS_AHEAD * ld * 2;
            _mm_prefetch(ahead, _MM_HINT_T1);
            _mm_prefetch(ahead + ld * 2, _MM_HINT_T1);
            pack_whole_pair((uint32_t *)(void *)(panel + p * (int64_t)stride), src + p * 64, ld);
        }
}

/* One panel of lines, panel[steps / 16][width][16], from nx rows with k contiguous: a copy.
 * Few rows at a time, so that the processor sees few streams. */
GEMM_INLINE void pack_lines_from_k(const pack_lane lane, const int width, uint32_t *panel,
                                   const char *src, int64_t ld_bytes, int nx, int64_t nk,
                                   int64_t steps)
{
    const int per_line = lane == LANE_BF16_PAIR ? 32 : 16;
    const int64_t element = lane == LANE_F32 ? 4 : 2;
    const int group = 4;
    for (int x0 = 0; x0 < nx; x0 += group) {
        int x1 = x0 + group < nx ? x0 + group : nx;
        uint32_t *to = panel + x0 * 16;
        for (int64_t k = 0; k < steps / 16 * per_line; k += per_line, to += width * 16) {
            for (int x = x0; x < x1; x++) {
                const char *row = src + x * ld_bytes;
                _mm512_store_si512(to + (x - x0) * 16, pack_load_k(lane, row, k, nk));
                _mm_prefetch(row + k * element + PACK_AHEAD, _MM_HINT_T0);
            }
        }
    }
}

/* 32 k of whole panels of 32 lines of pairs.  Rows are copied together first: their distance may
 * be such that they all meet in few sets of L1. */
GEMM_INLINE void pack_whole_lines(char *panel, size_t stride, const char *src, int64_t ld,
                                  int64_t panels)
{
    for (int64_t p = 0; p < panels; p++, panel += stride, src += 64) {
        _Alignas(64) char rows[32][64];
#pragma GCC unroll 8
        for (int k = 0; k < 32; k++) {
            _mm512_store_si512(rows[k], _mm512_loadu_si512(src + k * ld * 2));
            _mm_prefetch(src + (k + 2 * PACK_ROWS_AHEAD) * ld * 2, _MM_HINT_T1);
        }
        for (int x = 0; x < 32; x += 8) {
            __m512i line[8];
            pack_turn_halves(line, &rows[0][x * 2], 64);
#pragma GCC unroll 8
            for (int i = 0; i < 8; i++)
                _mm512_store_si512(panel + (x + i) * 64, line[i]);
        }
    }
}

/* Panels of lines from rows with x contiguous: 16 steps by 16 x transposed; each line goes to
 * its row's panel. */
GEMM_INLINE void pack_lines_from_x(const pack_lane lane, const int width, char *panels,
                                   const char *src, int64_t ld, const tp_gemm_part *part,
                                   int64_t steps)
{
    const int per_lane = lane == LANE_BF16_PAIR ? 2 : 1;
    const int64_t element = lane == LANE_F32 ? 4 : 2;
    for (int64_t s0 = 0; s0 < steps; s0 += 16) {
        char *panel = panels + s0 * width * 4;
        int row_in_panel = 0;
        int64_t x0 = 0;
        if (lane == LANE_BF16_PAIR && width == 32 && (s0 + 16) * 2 <= part->nk) {
            x0 = part->nx / 32 * 32;
            pack_whole_lines(panel, part->stride, src + s0 * 2 * ld * 2, ld, part->nx / 32);
            panel += part->nx / 32 * (int64_t)part->stride;
        }
        for (; x0 < part->nx; x0 += 32) {
            __m512i lines[2][16];
#pragma GCC unroll 16
            for (int s = 0; s < 16; s++) {
                int64_t k = (s0 + s) * per_lane;
                const char *row = src + (k * ld + x0) * element;
                pack_row r = pack_load_x(lane, row, ld, part->nx - x0, k, part->nk);
                lines[0][s] = r.half[0];
                lines[1][s] = r.half[1];
                _mm_prefetch(row + PACK_ASIDE, _MM_HINT_T0);
                if (lane == LANE_BF16_PAIR)
                    _mm_prefetch(row + PACK_ASIDE + ld * element, _MM_HINT_T0);
            }
            pack_transpose(lines[0]);
            pack_transpose(lines[1]);
            int64_t n = part->nx - x0 < 32 ? part->nx - x0 : 32;
            for (int x = 0; x < n; x++) {
                _mm512_store_si512(panel + row_in_panel * 64, lines[x / 16][x % 16]);
                if (++row_in_panel == width) {
                    row_in_panel = 0;
                    panel += part->stride;
                }
            }
        }
    }
}

GEMM_INLINE void pack_lines(const pack_lane lane, const int width, void *panels,
                            const tp_gemm_operand *op, const tp_gemm_part *part)
{
    const int64_t element = lane == LANE_F32 ? 4 : 2, ld = op->ld;
    int64_t steps = part->k_padded / (lane == LANE_BF16_PAIR ? 2 : 1);
    const char *src = op->data;
    char *panel = panels;
    if (!op->k_contiguous) {
        src += (part->k0 * ld + part->x0) * element;
        pack_lines_from_x(lane, width, panel, src, ld, part, steps);
        return;
    }
    src += (part->x0 * ld + part->k0) * element;
    for (int64_t x = 0; x < part->nx; x += width, panel += part->stride) {
        int nx = (int)(part->nx - x < width ? part->nx - x : width);
        pack_lines_from_k(lane, width, (uint32_t *)(void *)panel, src + x * ld * element,
                          ld * element, nx, part->nk, steps);
    }
}

GEMM_INLINE void pack_columns(const pack_lane lane, const int width, void *panels,
                              const tp_gemm_operand *op, const tp_gemm_part *part)
{
    const int64_t element = lane == LANE_F32 ? 4 : 2, ld = op->ld;
    int64_t steps = part->k_padded / (lane == LANE_BF16_PAIR ? 2 : 1);
    const char *src = op->data;
    char *panel = panels;
    src += (op->k_contiguous ? part->x0 * ld + part->k0 : part->k0 * ld + part->x0) * element;
    int64_t x = 0;
    if (lane == LANE_BF16_PAIR && !op->k_contiguous && part->nk == part->k_padded &&
        part->nk % 2 == 0) {
        x = part->nx / 32 * 32;
        pack_whole_columns(panel, part->stride, x / 32, src, ld, steps);
        panel += x / 32 * (int64_t)part->stride;
    }
    for (; x < part->nx; x += width, panel += part->stride) {
        uint32_t *to = (uint32_t *)(void *)panel;
        int nx = (int)(part->nx - x < width ? part->nx - x : width);
        if (op->k_contiguous)
            pack_columns_from_k(lane, width, to, src + x * ld * element, ld * element, nx, part->nk,
                                steps);
        else
            pack_columns_from_x(lane, to, src + x * element, ld, nx, part->nk, steps);
    }
}

#endif
