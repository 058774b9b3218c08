/* gemm_avx512.c - the matrix product with AVX-512 in f32; bf16 widens while packing. */
#include <immintrin.h>

static inline __m512 multiply_lanes(__m512 sum, __m512i a, __m512i b)
{
    return _mm512_fmadd_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b), sum);
}

#include "engine/backend/cpu/gemm_finish_avx512.h"
#include "engine/backend/cpu/gemm_pack_avx512.h"
#include "engine/backend/cpu/gemm_small_avx512.h"
#include "engine/backend/cpu/gemm_squares.h"
#include "engine/backend/cpu/gemm_tile_avx512.h"

static void pack_a(void *panels, const tp_gemm_operand *a, const tp_gemm_part *part)
{
    if (a->dtype == TP_DTYPE_F32)
        pack_lines(LANE_F32, TILE_ROWS, panels, a, part);
    else
        pack_lines(LANE_WIDENED, TILE_ROWS, panels, a, part);
}

static void pack_b(void *panels, const tp_gemm_operand *b, const tp_gemm_part *part)
{
    if (b->dtype == TP_DTYPE_F32)
        pack_columns(LANE_F32, TILE_COLS, panels, b, part);
    else
        pack_columns(LANE_WIDENED, TILE_COLS, panels, b, part);
}

static void tile(int rows, int cols, int64_t k, const tp_gemm_lines *a, const void *b, float *c,
                 int64_t ldc, bool add, const tp_gemm_ahead *ahead)
{
    tile_any_size(rows, cols, k, a, b, c, ldc, add, ahead);
}

static double tile_past_caches(int64_t k, const tp_gemm_lines *a, const void *b, float *c,
                               int64_t ldc, const tp_gemm_ahead *ahead)
{
    return tile_streamed(k, a, b, c, ldc, ahead);
}

static void tile_finished(const tp_gemm *g, int64_t k, const tp_gemm_lines *a, const void *b,
                          int64_t i, int64_t j, bool is_transposed, const tp_gemm_ahead *ahead)
{
    if (is_transposed)
        tile_of_turned_halves(g, k, a, b, i, j, ahead);
    else
        tile_of_c(g, k, a, b, i, j, ahead);
}

static size_t small_scratch(const tp_gemm *g) { return small_scratch_bytes(LANE_F32, g); }

static void small(const tp_gemm *g, int64_t n0, int64_t n1, void *scratch)
{
    if (g->ab_dtype == TP_DTYPE_F32)
        small_product(LANE_F32, g, n0, n1, scratch);
    else
        small_product(LANE_WIDENED, g, n0, n1, scratch);
}

const tp_gemm_kernel GEMM_KERNEL(avx512) = {
    .name = GEMM_NAME("avx512"),
    .isa = TP_ISA_AVX512,
    .accepts_f32 = true,
    .half = GEMM_HALF,
    .rows = TILE_ROWS,
    .cols = TILE_COLS,
    .element_size = sizeof(float),
    .k_round = 16,
    .k_block = 2048,
    .k_part = 768,
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
    .small_scratch = small_scratch,
    .small = small,
};
