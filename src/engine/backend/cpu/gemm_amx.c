/* gemm_amx.c - the matrix product with AMX tiles: 16 x 16 sums from 32 bf16 products each.
 *
 * A tile() call keeps 2 x 2 tiles of sums and loads 2 + 2 tiles per 32 k:
 *
 *                 B: tiles 6, 7: [16 pairs of k][16 columns][2]
 *     A: tile 4    0  1
 *        tile 5    2  3           A: [16 rows][32 k] */
#include <immintrin.h>

#include "engine/backend/cpu/amx_tiles.h"

static inline __m256i round_lanes(__m512 x) { return (__m256i)_mm512_cvtneps_pbh(x); }

#include "engine/backend/cpu/gemm_finish_avx512.h"
#include "engine/backend/cpu/gemm_pack_avx512.h"

enum {
    ROWS = 32,
    COLS = 32,
    DEPTH = 32,         /* k of one tile of A */
    LINE = 64,          /* bytes of a tile row */
    B_STEP = 2 * 1024,  /* of two tiles of B, row by row side by side */
    B_STRIDE = 2 * LINE /* bytes from pair to pair */
};

/* All tiles 16 rows of 64 bytes. */
static void enter(void)
{
    tile_config config = {.palette = 1};
    for (int t = 0; t < 8; t++) {
        config.bytes_per_row[t] = LINE;
        config.rows[t] = 16;
    }
    TILE_CONFIGURE(&config);
}

static void leave(void) { TILE_RELEASE(); }

static void pack_a(void *panels, const tp_gemm_operand *a, const tp_gemm_part *part)
{
    pack_lines(LANE_BF16_PAIR, ROWS, panels, a, part);
}

static void pack_b(void *panels, const tp_gemm_operand *b, const tp_gemm_part *part)
{
    pack_columns(LANE_BF16_PAIR, COLS, panels, b, part);
}

static void tile(int rows, int64_t k, tp_gemm_lines a, const void *b, float *c, int64_t ldc,
                 bool add, tp_gemm_ahead ahead)
{
    (void)rows;  /* always all 32 */
    (void)ahead; /* a prefetch beside the tile instructions costs more than it brings */
    const char *a_lines = a.at, *a_low = a_lines + 16 * a.row, *b_lines = b;
    size_t stride = (size_t)ldc * sizeof(float);
    float *c_low = c + 16 * ldc;
    if (add) {
        TILE_LOAD(0, c, stride);
        TILE_LOAD(1, c + 16, stride);
        TILE_LOAD(2, c_low, stride);
        TILE_LOAD(3, c_low + 16, stride);
    } else {
        TILE_ZERO(0);
        TILE_ZERO(1);
        TILE_ZERO(2);
        TILE_ZERO(3);
    }
    for (; k > 0; k -= DEPTH, a_lines += a.step, a_low += a.step, b_lines += B_STEP) {
        TILE_LOAD(4, a_lines, a.row);
        TILE_LOAD(6, b_lines, B_STRIDE);
        TILE_MULTIPLY(0, 4, 6);
        TILE_LOAD(7, b_lines + LINE, B_STRIDE);
        TILE_MULTIPLY(1, 4, 7);
        TILE_LOAD(5, a_low, a.row);
        TILE_MULTIPLY(2, 5, 6);
        TILE_MULTIPLY(3, 5, 7);
    }
    TILE_STORE(0, c, stride);
    TILE_STORE(1, c + 16, stride);
    TILE_STORE(2, c_low, stride);
    TILE_STORE(3, c_low + 16, stride);
}

const tp_gemm_kernel tp_gemm_kernel_amx = {
    .name = "amx",
    .isa = TP_ISA_AMX,
    .half = TP_DTYPE_BF16,
    .rows = ROWS,
    .cols = COLS,
    .fixed_rows = true,
    .element_size = sizeof(tp_bf16),
    .k_round = DEPTH,
    .k_block = 4096,
    .k_chunk = 256, /* a panel's 16 KiB stay in L1 while the other operand streams past */
    .pack_a = pack_a,
    .pack_b = pack_b,
    .tile = tile,
    .reads_lines = true,
    .finish = finish_rows,
    .finish_transposed = finish_transposed_tile,
    .small_rows = TP_GEMM_SMALL_ROWS_BF16,
    .small_scratch = tp_gemm_small_scratch_bf16,
    .small = tp_gemm_small_bf16,
    .enter = enter,
    .leave = leave,
};
