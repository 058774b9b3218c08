/* gemm_avx512_bf16.c - the matrix product with vdpbf16ps: two bf16 products per f32 lane. */
#include <immintrin.h>

static inline __m512 multiply_lanes(__m512 sum, __m512i a, __m512i b)
{
    return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
}

#include "engine/backend/cpu/gemm_pack_avx512.h"
#include "engine/backend/cpu/gemm_tile_avx512.h"

static void pack(void *panel, const tp_gemm_operand *op, const tp_gemm_part *part)
{
    pack_lanes_avx512(LANE_BF16_PAIR, panel, op, part);
}

static void tile(int rows, int64_t k, const void *a, const void *b, float *c, int64_t ldc, bool add)
{
    tile_any_rows(rows, k / 2, a, b, c, ldc, add);
}

static void finish(const tp_gemm *g, const float *acc, int64_t ld_acc, int64_t i0, int rows,
                   int64_t j0, int cols, bool accumulate)
{
    finish_tile(g, acc, ld_acc, i0, rows, j0, cols, accumulate, TILE_COLS);
}

const tp_gemm_kernel tp_gemm_kernel_avx512_bf16 = {
    .name = "avx512_bf16",
    .isa = TP_ISA_AVX512_BF16,
    .accepts_bf16 = true,
    .rows = TILE_ROWS,
    .cols = TILE_COLS,
    .element_size = sizeof(tp_bf16),
    .k_round = 2,
    .k_block = 4096,
    .pack_a = pack,
    .pack_b = pack,
    .tile = tile,
    .finish = finish,
};
