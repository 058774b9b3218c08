/* gemm_avx2.c - the matrix product with AVX2 and FMA, in f32; bf16 widens while packing.
 *
 * A tile is 6 rows by 16 columns: 12 accumulators, 2 registers of B, 1 of A. */
#include <immintrin.h>

#include "engine/backend/cpu/gemm_finish.h"
#include "engine/backend/cpu/gemm_pack.h"
#include "engine/backend/cpu/gemm_squares.h"

enum { ROWS = 6, COLS = 16 };

static void pack_a(void *panels, const tp_gemm_operand *a, const tp_gemm_part *part)
{
    pack_panels_f32(panels, ROWS, a, part);
}

static void pack_b(void *panels, const tp_gemm_operand *b, const tp_gemm_part *part)
{
    pack_panels_f32(panels, COLS, b, part);
}

GEMM_INLINE void store_lanes(float *c, __m256 sum, bool add)
{
    if (add)
        sum = _mm256_add_ps(_mm256_loadu_ps(c), sum);
    _mm256_storeu_ps(c, sum);
}

GEMM_INLINE void tile_of(const int rows, int64_t k, const float *a, const float *b, float *c,
                         int64_t ldc, bool add)
{
    __m256 sum[ROWS][2];
#pragma GCC unroll 6
    for (int i = 0; i < rows; i++)
        sum[i][0] = sum[i][1] = _mm256_setzero_ps();
    for (; k > 0; k--, a += ROWS, b += COLS) {
        __m256 b0 = _mm256_loadu_ps(b);
        __m256 b1 = _mm256_loadu_ps(b + 8);
#pragma GCC unroll 6
        for (int i = 0; i < rows; i++) {
            __m256 ai = _mm256_broadcast_ss(a + i);
            sum[i][0] = _mm256_fmadd_ps(ai, b0, sum[i][0]);
            sum[i][1] = _mm256_fmadd_ps(ai, b1, sum[i][1]);
        }
    }
#pragma GCC unroll 6
    for (int i = 0; i < rows; i++) {
        store_lanes(c + i * ldc, sum[i][0], add);
        store_lanes(c + i * ldc + 8, sum[i][1], add);
    }
}

static void tile(int rows, int cols, int64_t k, const tp_gemm_lines *a, const void *b, float *c,
                 int64_t ldc, bool add, const tp_gemm_ahead *ahead)
{
    (void)cols;
    (void)ahead;
    switch (rows) {
    case 1:
        tile_of(1, k, (const void *)a->at, b, c, ldc, add);
        break;
    case 2:
        tile_of(2, k, (const void *)a->at, b, c, ldc, add);
        break;
    case 3:
        tile_of(3, k, (const void *)a->at, b, c, ldc, add);
        break;
    case 4:
        tile_of(4, k, (const void *)a->at, b, c, ldc, add);
        break;
    case 5:
        tile_of(5, k, (const void *)a->at, b, c, ldc, add);
        break;
    default:
        tile_of(6, k, (const void *)a->at, b, c, ldc, add);
        break;
    }
}

static void finish(const tp_gemm *g, const float *acc, int64_t ld_acc, int64_t i0, int rows,
                   int64_t j0, int cols, bool accumulate)
{
    finish_tile(g, acc, ld_acc, i0, rows, j0, cols, accumulate, COLS);
}

const tp_gemm_kernel GEMM_KERNEL(avx2) = {
    .name = GEMM_NAME("avx2"),
    .isa = TP_ISA_AVX2,
    .accepts_f32 = true,
    .half = GEMM_HALF,
    .rows = ROWS,
    .cols = COLS,
    .element_size = sizeof(float),
    .k_round = 1,
    .k_block = 2048,
    .k_chunk = 384,
    .pack_a = pack_a,
    .pack_b = pack_b,
    .tile = tile,
    .squares = squares_of_tile,
    .finish = finish,
};
