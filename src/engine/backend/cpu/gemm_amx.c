/* gemm_amx.c - the matrix product with AMX tiles: 16 x 16 sums from 32 bf16 products each.
 *
 * A tile() call keeps 2 x 2 tiles of sums and loads 2 + 2 tiles per 32 k:
 *
 *                 B: tiles 6, 7: [16 pairs of k][16 columns][2]
 *     A: tile 4    0  1
 *        tile 5    2  3           A: [16 rows][32 k]
 *
 * The instructions stand behind TILE_* names so that the tests can compile this file a second
 * time with tiles in plain memory. */
#include <immintrin.h>

#ifdef TP_AMX_TILES_HEADER
#include TP_AMX_TILES_HEADER
#else
#define TILE_CONFIGURE(config) _tile_loadconfig(config)
#define TILE_RELEASE() _tile_release()
#define TILE_ZERO(t) _tile_zero(t)
#define TILE_LOAD(t, from, stride) _tile_loadd(t, from, stride)
#define TILE_STORE(t, to, stride) _tile_stored(t, to, stride)
#define TILE_MULTIPLY(sum, a, b) _tile_dpbf16ps(sum, a, b)
#endif

#include "engine/backend/cpu/gemm_pack_avx512.h"

enum {
    ROWS = 32,
    COLS = 32,
    DEPTH = 32,         /* k of one tile of A */
    LINE = 64,          /* bytes of a tile row */
    A_STEP = 2 * 1024,  /* bytes of two tiles of A */
    B_STEP = 2 * 1024,  /* of two tiles of B, row by row side by side */
    B_STRIDE = 2 * LINE /* bytes from pair to pair */
};

/* The memory operand of LDTILECFG; all tiles 16 rows of 64 bytes. */
typedef struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t bytes_per_row[16];
    uint8_t rows[16];
} tile_config;

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

/* A panel, k contiguous in memory: [k / 32][32 rows][32 k] by whole lines.  Eight rows at a
 * time, so that few streams are read at once. */
static void pack_a_lines(char *panel, const tp_bf16 *src, int64_t ld, const tp_gemm_part *part)
{
    const int group = 8;
    for (int x0 = 0; x0 < ROWS; x0 += group) {
        for (int64_t k = 0; k < part->k_padded; k += DEPTH) {
            char *to = panel + k / DEPTH * A_STEP + x0 * LINE;
            __mmask32 mask = pack_mask(part->nk - k);
            for (int x = x0; x < x0 + group; x++, to += LINE) {
                __m512i line = _mm512_setzero_si512();
                if (x < part->nx)
                    line = _mm512_maskz_loadu_epi16(mask, src + x * ld + k);
                _mm512_storeu_si512(to, line);
            }
        }
    }
}

/* A panel, rows contiguous in memory (a transposed A): pairs of k are interleaved, then 16
 * pairs by 16 rows transposed. */
static void pack_a_transposed(char *panel, const tp_bf16 *src, int64_t ld,
                              const tp_gemm_part *part)
{
    for (int64_t k0 = 0; k0 < part->k_padded; k0 += DEPTH) {
        for (int x0 = 0; x0 < ROWS; x0 += 16) {
            char *to = panel + k0 / DEPTH * A_STEP + x0 * LINE;
            __m512i lines[16];
            for (int s = 0; s < 16; s++) {
                int64_t k = k0 + 2 * s;
                __mmask16 mask = (__mmask16)(k < part->nk ? pack_mask(part->nx - x0) : 0);
                lines[s] =
                    pack_load_x(LANE_BF16_PAIR, src + k * ld + x0, ld, k + 1 < part->nk, mask);
            }
            pack_transpose(lines);
            for (int x = 0; x < 16; x++)
                _mm512_storeu_si512(to + x * LINE, lines[x]);
        }
    }
}

static void pack_a(void *panel, const tp_gemm_operand *a, const tp_gemm_part *part)
{
    const tp_bf16 *src = a->data;
    if (a->k_contiguous)
        pack_a_lines(panel, src + part->x0 * a->ld + part->k0, a->ld, part);
    else
        pack_a_transposed(panel, src + part->k0 * a->ld + part->x0, a->ld, part);
}

static void pack_b(void *panel, const tp_gemm_operand *b, const tp_gemm_part *part)
{
    pack_lanes_avx512(LANE_BF16_PAIR, panel, b, part);
}

static void tile(int rows, int64_t k, const void *a, const void *b, float *c, int64_t ldc, bool add)
{
    (void)rows; /* always all 32 */
    const char *a_lines = a, *b_lines = b;
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
    for (; k > 0; k -= DEPTH, a_lines += A_STEP, b_lines += B_STEP) {
        TILE_LOAD(4, a_lines, LINE);
        TILE_LOAD(6, b_lines, B_STRIDE);
        TILE_MULTIPLY(0, 4, 6);
        TILE_LOAD(7, b_lines + LINE, B_STRIDE);
        TILE_MULTIPLY(1, 4, 7);
        TILE_LOAD(5, a_lines + A_STEP / 2, LINE);
        TILE_MULTIPLY(2, 5, 6);
        TILE_MULTIPLY(3, 5, 7);
    }
    TILE_STORE(0, c, stride);
    TILE_STORE(1, c + 16, stride);
    TILE_STORE(2, c_low, stride);
    TILE_STORE(3, c_low + 16, stride);
}

static void finish(const tp_gemm *g, const float *acc, int64_t ld_acc, int64_t i0, int rows,
                   int64_t j0, int cols, bool accumulate)
{
    finish_tile(g, acc, ld_acc, i0, rows, j0, cols, accumulate, COLS);
}

const tp_gemm_kernel tp_gemm_kernel_amx = {
    .name = "amx",
    .isa = TP_ISA_AMX,
    .accepts_bf16 = true,
    .rows = ROWS,
    .cols = COLS,
    .fixed_rows = true,
    .element_size = sizeof(tp_bf16),
    .k_round = DEPTH,
    .k_block = 4096,
    .k_chunk = 512, /* an A panel of 32 KiB stays in L1 */
    .pack_a = pack_a,
    .pack_b = pack_b,
    .tile = tile,
    .finish = finish,
    .enter = enter,
    .leave = leave,
};
