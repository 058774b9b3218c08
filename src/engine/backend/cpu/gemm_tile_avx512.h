/* gemm_tile_avx512.h - the tile of 14 rows by 32 columns in AVX-512.
 *
 * 28 accumulators, 2 registers of B, 1 of A broadcast: 31 of 32 registers, and 16 loads for
 * 28 multiply-adds.  Where at most 16 columns are left, 14 accumulators.  A lane of 32 bits is one
 * f32 or a pair of bf16; the including file defines before the include
 *     static inline __m512 multiply_lanes(__m512 sum, __m512i a, __m512i b); */
#ifndef TP_ENGINE_BACKEND_CPU_GEMM_TILE_AVX512_H
#define TP_ENGINE_BACKEND_CPU_GEMM_TILE_AVX512_H

#include <immintrin.h>
#include <string.h>

#include "engine/backend/cpu/gemm_finish_avx512.h"

enum { TILE_ROWS = 14, TILE_COLS = 32 };

/* The sums of a tile, in registers.  `steps` lanes deep; b[steps][32], of which 16 * vectors
 * columns count.  Every fourth row has a pointer, from which those after it are an index away, so
 * that rows at any distance take one instruction each. */
GEMM_INLINE void tile_sums(const int rows, const int vectors, int64_t steps, const tp_gemm_lines *a,
                           const uint32_t *b, const tp_gemm_ahead *ahead, __m512 sum[TILE_ROWS][2])
{
    const int64_t row = a->row, step = a->step;
    const char *at[] = {a->at, a->at + 4 * row, a->at + 8 * row, a->at + 12 * row};
    const char *coming = ahead->at;
    const int64_t stride = ahead->stride, advance = ahead->advance;
    const int lines = ahead->lines;
    const bool is_far = ahead->is_far;
#pragma GCC unroll 14
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++)
            sum[i][v] = _mm512_setzero_ps();
    for (; steps > 0; steps -= 16, coming += advance) {
        if (is_far)
            for (int line = 0; line < lines; line++)
                _mm_prefetch(coming + line * stride, _MM_HINT_T1);
        else
            for (int line = 0; line < lines; line++)
                _mm_prefetch(coming + line * stride, _MM_HINT_T0);
        for (int s = 0; s < 16; s += 2) { /* two steps: fewer pointers to move */
#pragma GCC unroll 2
            for (int half = 0; half < 2; half++, b += TILE_COLS) {
                __m512i bv[2];
#pragma GCC unroll 2
                for (int v = 0; v < vectors; v++)
                    bv[v] = _mm512_load_si512(b + 16 * v);
#pragma GCC unroll 14
                for (int i = 0; i < rows; i++) {
                    const char *lane = at[i / 4] + i % 4 * row + half * 4;
                    int bits; /* rows of halves may begin between two words */
                    memcpy(&bits, lane, sizeof bits);
                    __m512i ai = _mm512_set1_epi32(bits);
                    /* one broadcast for two products, not a memory operand in each */
                    __asm__("" : "+v"(ai));
#pragma GCC unroll 2
                    for (int v = 0; v < vectors; v++)
                        sum[i][v] = multiply_lanes(sum[i][v], ai, bv[v]);
                }
            }
#pragma GCC unroll 4
            for (int i = 0; i < rows; i += 4)
                at[i / 4] += 8;
        }
#pragma GCC unroll 4
        for (int i = 0; i < rows; i += 4)
            at[i / 4] += step - 64;
    }
}

/* f32 sums become c, or are added to it. */
GEMM_INLINE void tile_rows(const int rows, const int vectors, int64_t steps, const tp_gemm_lines *a,
                           const uint32_t *b, float *c, int64_t ldc, bool add,
                           const tp_gemm_ahead *ahead)
{
    __m512 sum[TILE_ROWS][2];
#pragma GCC unroll 14
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++)
            _mm_prefetch(c + i * ldc + 16 * v, _MM_HINT_T0); /* for the end */
    tile_sums(rows, vectors, steps, a, b, ahead, sum);
    if (add) {
#pragma GCC unroll 14
        for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
            for (int v = 0; v < vectors; v++)
                sum[i][v] = _mm512_add_ps(_mm512_loadu_ps(c + i * ldc + 16 * v), sum[i][v]);
    }
#pragma GCC unroll 14
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++)
            _mm512_storeu_ps(c + i * ldc + 16 * v, sum[i][v]);
}

#define TILE_CASE(n)                                      \
    case n:                                               \
        tile_rows(n, 2, steps, a, b, c, ldc, add, ahead); \
        break

/* A tile of fewer rows, or of at most 16 columns; columns behind the last are zeros, so that fewer
 * rows compute them too.  Not inlined: the whole tile has the registers for itself. */
static __attribute__((noinline)) void tile_part(int rows, int64_t steps, const tp_gemm_lines *a,
                                                const uint32_t *b, float *c, int64_t ldc, bool add,
                                                const tp_gemm_ahead *ahead)
{
    switch (rows) {
        TILE_CASE(1);
        TILE_CASE(2);
        TILE_CASE(3);
        TILE_CASE(4);
        TILE_CASE(5);
        TILE_CASE(6);
        TILE_CASE(7);
        TILE_CASE(8);
        TILE_CASE(9);
        TILE_CASE(10);
        TILE_CASE(11);
        TILE_CASE(12);
        TILE_CASE(13);
    default:
        tile_rows(TILE_ROWS, 1, steps, a, b, c, ldc, add, ahead);
        break;
    }
}

GEMM_INLINE void tile_any_size(int rows, int cols, int64_t steps, const tp_gemm_lines *a,
                               const uint32_t *b, float *c, int64_t ldc, bool add,
                               const tp_gemm_ahead *ahead)
{
    if (rows < TILE_ROWS || cols <= TILE_COLS / 2)
        tile_part(rows, steps, a, b, c, ldc, add, ahead);
    else
        tile_rows(TILE_ROWS, 2, steps, a, b, c, ldc, add, ahead);
}

/* A whole tile of C, past the caches: lines that are written whole are not read for it.  Nor are
 * they read again for their squares. */
static double tile_streamed(int64_t steps, const tp_gemm_lines *a, const uint32_t *b, float *c,
                            int64_t ldc, const tp_gemm_ahead *ahead)
{
    __m512 sum[TILE_ROWS][2];
    tile_sums(TILE_ROWS, 2, steps, a, b, ahead, sum);
#pragma GCC unroll 14
    for (int i = 0; i < TILE_ROWS; i++)
#pragma GCC unroll 2
        for (int v = 0; v < 2; v++)
            _mm512_stream_ps(c + i * ldc + 16 * v, sum[i][v]);
    __m512 squares[2] = {_mm512_mul_ps(sum[0][0], sum[0][0]), _mm512_mul_ps(sum[0][1], sum[0][1])};
#pragma GCC unroll 14
    for (int i = 1; i < TILE_ROWS; i++)
#pragma GCC unroll 2
        for (int v = 0; v < 2; v++)
            squares[v] = _mm512_fmadd_ps(sum[i][v], sum[i][v], squares[v]);
    return (double)_mm512_reduce_add_ps(_mm512_add_ps(squares[0], squares[1]));
}

/* A whole tile at C[i, j], from registers. */
static void tile_of_c(const tp_gemm *g, int64_t steps, const tp_gemm_lines *a, const uint32_t *b,
                      int64_t i, int64_t j, const tp_gemm_ahead *ahead)
{
    const int64_t at = i * g->ldc + j;
    __m512 sum[TILE_ROWS][2];
    tile_sums(TILE_ROWS, 2, steps, a, b, ahead, sum);
    if (g->bias) {
        __m512 low = finish_load16(g->bias, g->bias_dtype, j, 0xffff);
        __m512 high = finish_load16(g->bias, g->bias_dtype, j + 16, 0xffff);
#pragma GCC unroll 14
        for (int row = 0; row < TILE_ROWS; row++) {
            sum[row][0] = _mm512_add_ps(sum[row][0], low);
            sum[row][1] = _mm512_add_ps(sum[row][1], high);
        }
    }
    if (g->accumulate) {
#pragma GCC unroll 14
        for (int row = 0; row < TILE_ROWS; row++)
#pragma GCC unroll 2
            for (int v = 0; v < 2; v++)
                sum[row][v] =
                    _mm512_add_ps(sum[row][v], finish_load16(g->c, g->c_dtype,
                                                             at + row * g->ldc + 16 * v, 0xffff));
    }
    if (g->c_dtype == TP_DTYPE_F32) {
#pragma GCC unroll 14
        for (int row = 0; row < TILE_ROWS; row++)
#pragma GCC unroll 2
            for (int v = 0; v < 2; v++)
                _mm512_storeu_ps((float *)g->c + at + row * g->ldc + 16 * v, sum[row][v]);
        return;
    }
#pragma GCC unroll 14
    for (int row = 0; row < TILE_ROWS; row++)
        _mm512_storeu_si512((tp_bf16 *)g->c + at + row * g->ldc,
                            vf_round_halves(sum[row][0], sum[row][1]));
}

/* Halves of the transposed product: sums of row i of the tile belong to column j + i of C, those
 * of column x to its row i0 + x. */
static void tile_of_turned_halves(const tp_gemm *g, int64_t steps, const tp_gemm_lines *a,
                                  const uint32_t *b, int64_t i0, int64_t j,
                                  const tp_gemm_ahead *ahead)
{
    const __mmask16 columns = (1 << TILE_ROWS) - 1;
    const __m512i pairs[] = {_mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11),
                             _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15)};
    tp_bf16 *c = (tp_bf16 *)g->c + i0 * g->ldc + j;
    __m512 sum[TILE_ROWS][2];
    __m512i line[16];
    tile_sums(TILE_ROWS, 2, steps, a, b, ahead, sum);
    if (g->bias) {
#pragma GCC unroll 14
        for (int i = 0; i < TILE_ROWS; i++) {
            __m512 bias = _mm512_broadcastss_ps(
                _mm512_castps512_ps128(finish_load16(g->bias, g->bias_dtype, j + i, 1)));
            sum[i][0] = _mm512_add_ps(sum[i][0], bias);
            sum[i][1] = _mm512_add_ps(sum[i][1], bias);
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++)
        line[i] = i < TILE_ROWS ? vf_round_halves(sum[i][0], sum[i][1]) : _mm512_setzero_si512();
    pack_turn_parts(line); /* part p of line[i]: row 8p + i of C, its first 8 columns */
    pack_turn_parts(line + 8);
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) {
#pragma GCC unroll 2
        for (int half = 0; half < 2; half++) {
            __m512i rows = _mm512_permutex2var_epi64(line[i], pairs[half], line[8 + i]);
            tp_bf16 *to = c + (16 * half + i) * g->ldc;
            _mm256_mask_storeu_epi16(to, columns, _mm512_castsi512_si256(rows));
            _mm256_mask_storeu_epi16(to + 8 * g->ldc, columns, _mm512_extracti64x4_epi64(rows, 1));
        }
    }
}

/* What was streamed is there for other threads before they are told. */
static void tile_fence(void) { _mm_sfence(); }

#endif
