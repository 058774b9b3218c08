/* gemm_portable.c - the matrix product in plain C, for any processor. */
#include "engine/backend/cpu/gemm_finish.h"
#include "engine/backend/cpu/gemm_pack.h"
#include "engine/backend/cpu/gemm_squares.h"

enum { ROWS = 4, COLS = 8 };

static void pack_a(void *panels, const tp_gemm_operand *a, const tp_gemm_part *part)
{
    pack_panels_f32(panels, ROWS, a, part);
}

static void pack_b(void *panels, const tp_gemm_operand *b, const tp_gemm_part *part)
{
    pack_panels_f32(panels, COLS, b, part);
}

GEMM_INLINE void tile_of(const int rows, int64_t k, const float *a, const float *b, float *c,
                         int64_t ldc, bool add)
{
    float sum[ROWS][COLS] = {0};
    for (; k > 0; k--, a += ROWS, b += COLS)
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < COLS; j++)
                sum[i][j] += a[i] * b[j];
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < COLS; j++)
            c[i * ldc + j] = add ? c[i * ldc + j] + sum[i][j] : sum[i][j];
}

static void tile(int rows, int cols, int64_t k, const tp_gemm_lines *a, const void *b, float *c,
                 int64_t ldc, bool add, const tp_gemm_ahead *ahead)
{
    (void)cols;
    (void)ahead;
    if (rows == ROWS)
        tile_of(ROWS, k, (const void *)a->at, b, c, ldc, add);
    else
        tile_of(rows, k, (const void *)a->at, b, c, ldc, add);
}

static void finish(const tp_gemm *g, const float *acc, int64_t ld_acc, int64_t i0, int rows,
                   int64_t j0, int cols, bool accumulate)
{
    finish_tile(g, acc, ld_acc, i0, rows, j0, cols, accumulate, COLS);
}

const tp_gemm_kernel GEMM_KERNEL(portable) = {
    .name = GEMM_NAME("portable"),
    .isa = TP_ISA_PORTABLE,
    .accepts_f32 = true,
    .half = GEMM_HALF,
    .rows = ROWS,
    .cols = COLS,
    .element_size = sizeof(float),
    .k_round = 1,
    .k_block = 2048,
    .k_chunk = 256,
    .pack_a = pack_a,
    .pack_b = pack_b,
    .tile = tile,
    .squares = squares_of_tile,
    .finish = finish,
};
