/* gemm_avx512.c - the matrix product with AVX-512 in f32; bf16 widens while packing. */
#include <immintrin.h>

static inline __m512 multiply_lanes(__m512 sum, __m512i a, __m512i b)
{
    return _mm512_fmadd_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b), sum);
}

#include "engine/backend/cpu/gemm_pack_avx512.h"
#include "engine/backend/cpu/gemm_tile_avx512.h"

static void pack(void *panel, const tp_gemm_operand *op, const tp_gemm_part *part)
{
    if (op->dtype == TP_DTYPE_F32)
        pack_lanes_avx512(LANE_F32, panel, op, part);
    else
        pack_lanes_avx512(LANE_WIDENED, panel, op, part);
}

static void tile(int rows, int64_t k, const void *a, const void *b, float *c, int64_t ldc, bool add)
{
    tile_any_rows(rows, k, a, b, c, ldc, add);
}

static void finish(const tp_gemm *g, const float *acc, int64_t ld_acc, int64_t i0, int rows,
                   int64_t j0, int cols, bool accumulate)
{
    finish_tile(g, acc, ld_acc, i0, rows, j0, cols, accumulate, TILE_COLS);
}

const tp_gemm_kernel tp_gemm_kernel_avx512 = {
    .name = "avx512",
    .isa = TP_ISA_AVX512,
    .accepts_f32 = true,
    .accepts_bf16 = true,
    .rows = TILE_ROWS,
    .cols = TILE_COLS,
    .element_size = sizeof(float),
    .k_round = 1,
    .k_block = 2048,
    .pack_a = pack,
    .pack_b = pack,
    .tile = tile,
    .finish = finish,
};
