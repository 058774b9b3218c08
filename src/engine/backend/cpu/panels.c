/* panels.c - products of few or many rows with weights that lie in panels of 64 outputs.
 *
 * An item is one panel and up to ROW_CHUNK rows; a thread takes neighbouring items, so
 * that a panel stays in its L2 cache while rows pass by, and a product of few rows reads
 * each panel once, in one stream.  Rows are taken as they lie.  A tile of TILE_ROWS rows by
 * TILE_VECTORS vectors stays in registers for all of K: every element is one chain of
 * additions over k, so its bits depend on its row and its column alone.
 *
 * Without an instruction for pairs of halves they are widened.  Beside the multiply-adds that costs
 * 20 instructions for 48 of them in a whole tile of AVX-512, so where rows make many tiles a range
 * of k is widened once; sums wait for the next range, and the chain is the same. */
#include "engine/backend/cpu/panels.h"
#include "engine/backend/cpu/transpose.h"
#include "engine/backend/cpu/vec_pair.h"

enum {
    TILE_VECTORS = 4,
    TILE_ROWS = VF_N == 16  ? 6
                : VF_N == 8 ? 3
                            : 2,
    ROW_CHUNK = 16 * TILE_ROWS,
    AHEAD = 4096 /* bytes of prefetch when few rows wait for memory */
};

/* Memory that a tile asks for while it computes: `bytes` from `at` on at every step, into the
 * second level: a panel is more than the first holds, and comes in slower when asked for there. */
typedef struct {
    const char *at;
    int64_t bytes;
} wanted;

enum {
    RANGE = 96,                /* of k; even, and whole vectors: w is a part of L1 then */
    WIDE_ROWS = ROW_CHUNK / 2, /* fewer wait for memory, and widening beside that costs nothing */
};

/* Of one thread. */
typedef struct {
    float x[ROW_CHUNK][RANGE];
    float w[RANGE][TP_PANEL];
    float sums[ROW_CHUNK][TP_PANEL];
} wide_item;

/* Whole lanes of k. */
static int64_t panel_steps(const product *p) { return p->bf16 ? p->K / 2 : p->K; }

/* Rows row .. row+rows-1 and TILE_VECTORS vectors from column `column` of a panel on. */
VF_INLINE void tile(const product *p, const bool bf16, const int rows, int64_t row, int64_t panel,
                    int64_t column, wanted next)
{
    const char *w = (const char *)row_at(p->w, panel) + column * LANE;
    const char *x[TILE_ROWS];
    int64_t steps = panel_steps(p);
    vf sum[TILE_ROWS][TILE_VECTORS];
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++) {
        x[i] = row_at(p->x, row + i);
#pragma GCC unroll 4
        for (int j = 0; j < TILE_VECTORS; j++)
            sum[i][j] = vf_zero();
    }
    for (int64_t s = 0; s < steps; s++, w += TP_PANEL * LANE, next.at += next.bytes) {
        vi right[TILE_VECTORS];
#pragma GCC unroll 4
        for (int j = 0; j < TILE_VECTORS; j++)
            right[j] = vp_load(w + j * VF_N * LANE);
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++)
            __builtin_prefetch(next.at + j * 64, 0, 2);
#pragma GCC unroll 8
        for (int i = 0; i < rows; i++) {
            vi left = vp_spread(x[i] + s * LANE);
#pragma GCC unroll 4
            for (int j = 0; j < TILE_VECTORS; j++)
                sum[i][j] = vp_add(bf16, sum[i][j], left, right[j]);
        }
    }
    if (bf16 && p->K % 2 == 1) { /* the last k stands alone in its pair */
#pragma GCC unroll 8
        for (int i = 0; i < rows; i++) {
            vf_half pair[2] = {((const vf_half *)(const void *)x[i])[p->K - 1], 0};
#pragma GCC unroll 4
            for (int j = 0; j < TILE_VECTORS; j++)
                sum[i][j] = vp_add(true, sum[i][j], vp_spread(pair), vp_load(w + j * VF_N * LANE));
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++) {
#pragma GCC unroll 4
        for (int j = 0; j < TILE_VECTORS; j++)
            finish(p, row + i, panel * TP_PANEL + column + j * VF_N, sum[i][j]);
    }
}

#define TILE_CASE(n)                                \
    case n:                                         \
        tile(p, bf16, n, row, panel, column, next); \
        break

VF_INLINE void tile_of(const product *p, const bool bf16, int64_t rows, int64_t row, int64_t panel,
                       int64_t column, wanted next)
{
    switch (rows) {
        TILE_CASE(1);
        TILE_CASE(2);
#if defined(__AVX2__)
        TILE_CASE(3);
#endif
#if defined(__AVX512F__)
        TILE_CASE(4);
        TILE_CASE(5);
        TILE_CASE(6);
#endif
    }
}

/* Rows in tiles of sizes that differ by one at most.  While they pass the panel they ask for
 * the one that `next` says, each for its part. */
VF_INLINE void run_item(const product *p, const bool bf16, int64_t panel, int64_t chunk,
                        int64_t next)
{
    int64_t first = chunk * ROW_CHUNK, left = p->rows - first;
    int64_t rows = left < ROW_CHUNK ? left : ROW_CHUNK, tiles = ceil_div(rows, TILE_ROWS);
    for (int64_t t = 0; t < tiles; t++) {
        int64_t from = rows * t / tiles, to = rows * (t + 1) / tiles;
        for (int64_t column = 0; column < TP_PANEL; column += TILE_VECTORS * VF_N) {
            wanted ahead = {(const char *)row_at(p->w, panel) + column * LANE + AHEAD,
                            TP_PANEL * LANE};
            if (tiles > 1) {
                int64_t bytes = next == panel ? 0 : TP_PANEL * LANE / tiles;
                ahead =
                    (wanted){(const char *)row_at(p->w, next) + t * bytes * panel_steps(p), bytes};
            }
            tile_of(p, bf16, to - from, first + from, panel, column, ahead);
        }
    }
}

/* ---- halves that are widened once ---- */

static void widen_x(const product *p, wide_item *s, int64_t first, int64_t rows, int64_t k0,
                    int64_t n)
{
    for (int64_t r = 0; r < rows; r++) {
        const char *row = row_at(p->x, first + r);
        for (int64_t i = 0; i < n; i += VF_N) {
            int64_t left = p->K - k0 - i;
            vf x = left >= VF_N ? vf_get(row, true, k0 + i)
                   : left > 0   ? vf_get_n(row, true, k0 + i, left)
                                : vf_zero();
            vf_store(&s->x[r][i], x);
        }
    }
}

static void widen_w(const product *p, wide_item *s, int64_t panel, int64_t k0, int64_t n)
{
    const char *w = (const char *)row_at(p->w, panel) + k0 / 2 * TP_PANEL * LANE;
    for (int64_t k = 0; k < n; k += 2, w += TP_PANEL * LANE) {
        for (int64_t j = 0; j < TP_PANEL; j += VF_N) {
            vi pairs = vp_load(w + j * LANE);
            vf_store(&s->w[k][j], vp_first(pairs));
            vf_store(&s->w[k + 1][j], vp_second(pairs));
        }
    }
}

/* n more links of the chains of a tile. */
VF_INLINE void wide_tile(wide_item *s, const int rows, int64_t row, int64_t column, int64_t n,
                         bool is_first, wanted next)
{
    vf sum[TILE_ROWS][TILE_VECTORS];
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++) {
#pragma GCC unroll 4
        for (int j = 0; j < TILE_VECTORS; j++)
            sum[i][j] = is_first ? vf_zero() : vf_load(&s->sums[row + i][column + j * VF_N]);
    }
    for (int64_t k = 0; k < n; k += 2, next.at += next.bytes) {
        __builtin_prefetch(next.at);
        __builtin_prefetch(next.at + 64);
#pragma GCC unroll 2
        for (int64_t half = k; half < k + 2; half++) {
            vf right[TILE_VECTORS];
#pragma GCC unroll 4
            for (int j = 0; j < TILE_VECTORS; j++)
                right[j] = vf_load(&s->w[half][column + j * VF_N]);
#pragma GCC unroll 8
            for (int i = 0; i < rows; i++) {
                vf left = vf_set(s->x[row + i][half]);
#pragma GCC unroll 4
                for (int j = 0; j < TILE_VECTORS; j++)
                    sum[i][j] = vf_fma(left, right[j], sum[i][j]);
            }
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++) {
#pragma GCC unroll 4
        for (int j = 0; j < TILE_VECTORS; j++)
            vf_store(&s->sums[row + i][column + j * VF_N], sum[i][j]);
    }
}

#define WIDE_CASE(rows)                                       \
    case rows:                                                \
        wide_tile(s, rows, from, column, n, is_first, ahead); \
        break

/* All tiles of a range; each asks for its part of the next panel. */
static void wide_tiles(const product *p, wide_item *s, int64_t rows, int64_t k0, int64_t n,
                       int64_t panel, int64_t next)
{
    int64_t tiles = ceil_div(rows, TILE_ROWS);
    bool is_first = k0 == 0;
    for (int64_t t = 0; t < tiles; t++) {
        int64_t from = rows * t / tiles, to = rows * (t + 1) / tiles;
        int64_t bytes = next == panel ? 0 : TP_PANEL * LANE / tiles;
        wanted ahead = {(const char *)row_at(p->w, next) + (t * panel_steps(p) + k0 / 2) * bytes,
                        bytes};
        for (int64_t column = 0; column < TP_PANEL; column += TILE_VECTORS * VF_N) {
            switch (to - from) {
                WIDE_CASE(1);
                WIDE_CASE(2);
#if defined(__AVX2__)
                WIDE_CASE(3);
#endif
#if defined(__AVX512F__)
                WIDE_CASE(4);
                WIDE_CASE(5);
                WIDE_CASE(6);
#endif
            }
        }
    }
}

static void run_wide_item(const product *p, wide_item *s, int64_t panel, int64_t chunk,
                          int64_t next)
{
    int64_t first = chunk * ROW_CHUNK, left = p->rows - first;
    int64_t rows = left < ROW_CHUNK ? left : ROW_CHUNK, K = p->K + p->K % 2;
    for (int64_t k0 = 0; k0 < K; k0 += RANGE) {
        int64_t n = K - k0 < RANGE ? K - k0 : RANGE;
        widen_x(p, s, first, rows, k0, n);
        widen_w(p, s, panel, k0, n);
        wide_tiles(p, s, rows, k0, n, panel, next);
    }
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < TP_PANEL; j += VF_N)
            finish(p, first + r, panel * TP_PANEL + j, vf_load(&s->sums[r][j]));
}

/* ---- the op ---- */

static void product_range(const void *context, int64_t begin, int64_t end, int thread)
{
    const product *p = context;
    bool is_wide = !MULTIPLIES_BF16 && p->bf16 && p->rows >= WIDE_ROWS;
    wide_item *s = is_wide ? (wide_item *)p->launch->workspace + thread : NULL;
    for (int64_t item = begin; item < end; item++) {
        int64_t panel = item / p->chunks, next = item + 1 < end ? (item + 1) / p->chunks : panel;
        if (is_wide)
            run_wide_item(p, s, panel, item % p->chunks, next);
        else if (p->bf16)
            run_item(p, true, panel, item % p->chunks, next);
        else
            run_item(p, false, panel, item % p->chunks, next);
    }
}

static void linear_panels(const tp_launch *launch)
{
    product p = product_of(launch, ROW_CHUNK);
    if (!is_bound(p.y) || p.rows == 0)
        return;
    int64_t bytes = p.w->dim[0] * p.w->dim[1] * (p.bf16 ? 2 : 4);
    tp_cpu_static(launch, p.w->dim[0] * p.chunks, bytes * ceil_div(p.rows, 4), product_range, &p);
}

static size_t workspace(const tp_launch *launch)
{
    bool is_wide = !MULTIPLIES_BF16 && is_half(&launch->in[0]) && launch->in[0].dim[0] >= WIDE_ROWS;
    return is_wide ? sizeof(wide_item) * (size_t)launch->threads : 0;
}

static bool accepts(const tp_launch *launch)
{
    return are_floats(launch, 7, 1) && launch->in[0].dtype == launch->in[1].dtype;
}

TP_CPU_KERNEL(linear_panels, .accepts = accepts, .workspace = workspace, .run = linear_panels);

/* ---- packing ---- */

enum { PACK_LANES = 16 }; /* lanes of k packed at a time */

typedef struct {
    const tp_operand *w, *panels;
    int64_t N, K;
    bool transposed;
} packing;

/* n elements of a row as lanes: f32, or pairs of bf16 (n and cap in lanes; zeros behind). */
static void put_lanes(const packing *p, const void *row, int64_t k, int64_t n, char *to)
{
    bool from_bf16 = is_half(p->w), to_bf16 = is_half(p->panels);
    for (int64_t i = 0; i < n; i += VF_N) {
        int64_t left = p->K - k - i;
        vf x = left >= VF_N ? vf_get(row, from_bf16, k + i)
               : left > 0   ? vf_get_n(row, from_bf16, k + i, left)
                            : vf_zero();
        vf_put(to, to_bf16, i, x);
    }
}

/* A weight [N,K]: 64 rows of a few k, turned. */
static void pack_rows(const packing *p, int64_t panel)
{
    int64_t g = is_half(p->panels) ? 2 : 1, lanes = (p->K + p->K % 2) / g;
    uint32_t block[TP_PANEL * PACK_LANES], turned[PACK_LANES * TP_PANEL];
    for (int64_t s = 0; s < lanes; s += PACK_LANES) {
        for (int64_t i = 0; i < TP_PANEL; i++) {
            int64_t n = panel * TP_PANEL + i;
            if (n < p->N)
                put_lanes(p, row_at(p->w, n), s * g, PACK_LANES * g,
                          (char *)(block + i * PACK_LANES));
            else
                memset(block + i * PACK_LANES, 0, PACK_LANES * sizeof *block);
        }
        transpose_32(block, TP_PANEL, PACK_LANES, turned);
        int64_t n = lanes - s < PACK_LANES ? lanes - s : PACK_LANES;
        memcpy((char *)row_at(p->panels, panel) + s * TP_PANEL * 4, turned,
               (size_t)(n * TP_PANEL) * 4);
    }
}

/* A weight [K,N]: rows of k lie as they should, but for pairs. */
static void pack_columns(const packing *p, int64_t panel)
{
    int64_t n = p->N - panel * TP_PANEL;
    n = n < TP_PANEL ? n : TP_PANEL;
    bool from_bf16 = is_half(p->w), to_bf16 = is_half(p->panels);
    char *to = row_at(p->panels, panel);
    for (int64_t k = 0; k < p->K + p->K % 2; k++) {
        vf_half half[TP_PANEL] = {0};
        float whole[TP_PANEL] = {0};
        for (int64_t i = 0; k < p->K && i < n; i += VF_N) {
            const char *row = row_at(p->w, k);
            int64_t at = panel * TP_PANEL + i, left = n - i;
            vf x = left >= VF_N ? vf_get(row, from_bf16, at) : vf_get_n(row, from_bf16, at, left);
            vf_put(to_bf16 ? (void *)half : (void *)whole, to_bf16, i, x);
        }
        if (!to_bf16) {
            memcpy(to + k * TP_PANEL * 4, whole, sizeof whole);
            continue;
        }
        vf_half *pairs = (vf_half *)(void *)(to + k / 2 * TP_PANEL * 4);
        for (int i = 0; i < TP_PANEL; i++)
            pairs[2 * i + k % 2] = half[i];
    }
}

static void pack_range(const void *context, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const packing *p = context;
    for (int64_t panel = begin; panel < end; panel++) {
        if (p->transposed)
            pack_columns(p, panel);
        else
            pack_rows(p, panel);
    }
}

static void pack_panels(const tp_launch *launch)
{
    const tp_operand *w = &launch->in[0], *panels = &launch->out[0];
    bool transposed = launch->attrs.transposed;
    packing p = {.w = w,
                 .panels = panels,
                 .N = w->dim[transposed ? 1 : 0],
                 .K = w->dim[transposed ? 0 : 1],
                 .transposed = transposed};
    if (is_bound(panels))
        tp_cpu_static(launch, panels->dim[0], w->dim[0] * w->dim[1] * 6, pack_range, &p);
}

static bool accepts_packing(const tp_launch *launch) { return are_floats(launch, 1, 1); }

TP_CPU_KERNEL(pack_panels, .accepts = accepts_packing, .run = pack_panels);
