/* gemm_avx512_bf16.c - the matrix product with vdpbf16ps: two bf16 products per f32 lane. */
#include <immintrin.h>

static inline __m512 multiply_lanes(__m512 sum, __m512i a, __m512i b)
{
    return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
}

#include "engine/backend/cpu/gemm_finish_avx512.h"
#include "engine/backend/cpu/gemm_pack_avx512.h"
#include "engine/backend/cpu/gemm_small_avx512.h"
#include "engine/backend/cpu/gemm_squares.h"
#include "engine/backend/cpu/gemm_tile_avx512.h"

static void pack_a(void *panels, const tp_gemm_operand *a, const tp_gemm_part *part)
{
    pack_lines(LANE_BF16_PAIR, TILE_ROWS, panels, a, part);
}

static void pack_b(void *panels, const tp_gemm_operand *b, const tp_gemm_part *part)
{
    pack_columns(LANE_BF16_PAIR, TILE_COLS, panels, b, part);
}

static void tile(int rows, int cols, int64_t k, const tp_gemm_lines *a, const void *b, float *c,
                 int64_t ldc, bool add, const tp_gemm_ahead *ahead)
{
    tile_any_size(rows, cols, k / 2, a, b, c, ldc, add, ahead);
}

static double tile_past_caches(int64_t k, const tp_gemm_lines *a, const void *b, float *c,
                               int64_t ldc, const tp_gemm_ahead *ahead)
{
    return tile_streamed(k / 2, a, b, c, ldc, ahead);
}

static void tile_finished(const tp_gemm *g, int64_t k, const tp_gemm_lines *a, const void *b,
                          int64_t i, int64_t j, bool is_transposed, const tp_gemm_ahead *ahead)
{
    if (is_transposed)
        tile_of_turned_halves(g, k / 2, a, b, i, j, ahead);
    else
        tile_of_c(g, k / 2, a, b, i, j, ahead);
}

size_t tp_gemm_small_scratch_bf16(const tp_gemm *g)
{
    return small_scratch_bytes(LANE_BF16_PAIR, g);
}

void tp_gemm_small_bf16(const tp_gemm *g, int64_t n0, int64_t n1, void *scratch)
{
    small_product(LANE_BF16_PAIR, g, n0, n1, scratch);
}

const tp_gemm_kernel tp_gemm_kernel_avx512_bf16 = {
    .name = "avx512_bf16",
    .isa = TP_ISA_AVX512_BF16,
    .half = TP_DTYPE_BF16,
    .rows = TILE_ROWS,
    .cols = TILE_COLS,
    .element_size = sizeof(tp_bf16),
    .k_round = 32,
    .k_block = 4096,
    .k_part = 1536,
    .pack_a = pack_a,
    .pack_b = pack_b,
    .packs_late = true,
    .reads_rows = true,
    .tile = tile,
    .tile_past_caches = tile_past_caches,
    .tile_finished = tile_finished,
    .leave = tile_fence,
    .squares = squares_of_tile,
    .finish = finish_rows,
    .finish_transposed = finish_transposed_tile,
    .small_rows = 16,
    .small_dots = SMALL_PASS,
    .small_scratch = tp_gemm_small_scratch_bf16,
    .small = tp_gemm_small_bf16,
};
