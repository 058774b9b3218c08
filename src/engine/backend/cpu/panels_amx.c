/* panels_amx.c - linear_panels of bf16 with AMX tiles.
 *
 * A tile of x is 16 rows by 32 k as they lie, one of a panel 16 pairs of k by 16 outputs, its
 * rows 256 bytes apart. Up to 16 rows take all four tiles of a panel's outputs at once, so
 * that the panel is read in one stream:
 *
 *     sums 0 1 2 3 += x (tile 4) * outputs 0.., 16.., 32.., 48.. (tiles 6, 7 in turn)
 *
 * More rows go by 32 with half a panel, in ranges of k that keep x in the first-level cache
 * while several panels pass; the sums wait in memory in between, unrounded:
 *
 *     sums 0 1 += rows 0.. (tile 4) * outputs (tiles 6, 7)
 *          2 3 += rows 16.. (tile 5)
 *
 * Either way an element is one chain over k in steps of 32.  What comes from memory is asked for
 * into the second level, by the first rows that meet it: from a panel's halves no processor guesses
 * what is read next. */
#include "engine/backend/cpu/amx_tiles.h"
#include "engine/backend/cpu/panels.h"

enum {
    DEPTH = 32,                /* k of a tile */
    LINE = 64,                 /* bytes of a tile row */
    STRIDE = TP_PANEL * 4,     /* bytes from pair to pair of k in a panel */
    STEP = DEPTH / 2 * STRIDE, /* bytes of 32 k of a panel */
    ROWS = 32,                 /* of a block */
    RANGE = 512,               /* k of a block of 32 rows that stay in L1 */
    ROW_CHUNK = 128,
    GROUP = 4, /* panels that pass a block of rows; of one chunk one, in one stream from memory */
    AHEAD = STEP,            /* bytes that a stream of whole panels is asked for ahead ... */
    FAR = RANGE / 2 * STRIDE /* ... and one of halves, each half of them: a range */
};

/* One thread's memory: sums of a block, and the last k of x and of a panel, with zeros behind. */
typedef struct {
    float sums[ROWS][GROUP * TP_PANEL];
    tp_bf16 x_tail[ROWS][DEPTH];
    char w_tail[STEP];
} scratch;

typedef struct {
    product p;
    scratch *scratch;
    int64_t group, groups;
} amx_product;

/* Tiles 0 1 4 have `upper` rows, 2 3 5 `lower`, or all four sums `upper` when there are no
 * lower ones. */
static void configure(int64_t upper, int64_t lower)
{
    uint8_t u = (uint8_t)upper, l = (uint8_t)(lower > 0 ? lower : upper);
    configure_tiles((const uint8_t[]){u, u, l, l, u, l, AMX_ROWS, AMX_ROWS});
}

/* A step of 32 k: where x and the panel lie, and how far rows of x are apart. */
typedef struct {
    const char *x, *w;
    size_t stride;
} step;

static step step_at(const amx_product *a, scratch *s, int64_t row, int64_t panel, int64_t k)
{
    const product *p = &a->p;
    const char *w = (const char *)row_at(p->w, panel) + k / 2 * STRIDE;
    if (k + DEPTH <= p->K)
        return (step){(const char *)row_at(p->x, row) + k * 2, w, (size_t)p->x->stride * 2};
    size_t bytes = (size_t)((p->K - k + 1) / 2 * STRIDE);
    memcpy(s->w_tail, w, bytes);
    memset(s->w_tail + bytes, 0, STEP - bytes);
    return (step){(const char *)s->x_tail, s->w_tail, DEPTH * 2};
}

static void load_x_tail(const amx_product *a, scratch *s, int64_t row, int64_t rows)
{
    int64_t whole = a->p.K / DEPTH * DEPTH;
    if (whole == a->p.K)
        return;
    memset(s->x_tail, 0, sizeof s->x_tail);
    for (int64_t i = 0; i < rows; i++)
        memcpy(s->x_tail[i], (const tp_bf16 *)row_at(a->p.x, row + i) + whole,
               (size_t)(a->p.K - whole) * 2);
}

static void finish_block(const amx_product *a, const scratch *s, int64_t row, int64_t rows,
                         int64_t panel, int64_t panels)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t n = 0; n < panels * TP_PANEL; n += VF_N)
            finish(&a->p, row + i, panel * TP_PANEL + n, vf_load(&s->sums[i][n]));
}

static void expect(const char *from, int64_t bytes)
{
    for (int64_t at = 0; at < bytes; at += LINE)
        __builtin_prefetch(from + at, 0, 2);
}

/* Up to 16 rows and one panel. */
static void few_rows(const amx_product *a, scratch *s, int64_t row, int64_t panel)
{
    enum { SUMS_STRIDE = sizeof s->sums[0] };
    TILE_ZERO(0);
    TILE_ZERO(1);
    TILE_ZERO(2);
    TILE_ZERO(3);
    for (int64_t k = 0; k < a->p.K; k += DEPTH) {
        step at = step_at(a, s, row, panel, k);
        expect(at.w + AHEAD, STEP);
        TILE_LOAD(4, at.x, at.stride);
        TILE_LOAD(6, at.w, STRIDE);
        TILE_MULTIPLY(0, 4, 6);
        TILE_LOAD(7, at.w + LINE, STRIDE);
        TILE_MULTIPLY(1, 4, 7);
        TILE_LOAD(6, at.w + 2 * LINE, STRIDE);
        TILE_MULTIPLY(2, 4, 6);
        TILE_LOAD(7, at.w + 3 * LINE, STRIDE);
        TILE_MULTIPLY(3, 4, 7);
    }
    TILE_STORE(0, &s->sums[0][0], SUMS_STRIDE);
    TILE_STORE(1, &s->sums[0][16], SUMS_STRIDE);
    TILE_STORE(2, &s->sums[0][32], SUMS_STRIDE);
    TILE_STORE(3, &s->sums[0][48], SUMS_STRIDE);
}

/* 17 to 32 rows, half a panel, k0 .. k1.  `brings`: what comes after it is not in a cache. */
static void half_panel(const amx_product *a, scratch *s, int64_t row, int64_t panel, int64_t half,
                       int64_t k0, int64_t k1, float *sums, bool brings)
{
    enum { SUMS_STRIDE = sizeof s->sums[0] };
    float *low = sums + 16 * GROUP * TP_PANEL;
    if (k0 == 0) {
        TILE_ZERO(0);
        TILE_ZERO(1);
        TILE_ZERO(2);
        TILE_ZERO(3);
    } else {
        TILE_LOAD(0, sums, SUMS_STRIDE);
        TILE_LOAD(1, sums + 16, SUMS_STRIDE);
        TILE_LOAD(2, low, SUMS_STRIDE);
        TILE_LOAD(3, low + 16, SUMS_STRIDE);
    }
    for (int64_t k = k0; k < k1; k += DEPTH) {
        step at = step_at(a, s, row, panel, k);
        const char *w = at.w + half * 2 * LINE;
        expect(at.w + FAR + half * (STEP / 2), brings ? STEP / 2 : 0);
        TILE_LOAD(4, at.x, at.stride);
        TILE_LOAD(6, w, STRIDE);
        TILE_MULTIPLY(0, 4, 6);
        TILE_LOAD(7, w + LINE, STRIDE);
        TILE_MULTIPLY(1, 4, 7);
        TILE_LOAD(5, at.x + 16 * at.stride, at.stride);
        TILE_MULTIPLY(2, 5, 6);
        TILE_MULTIPLY(3, 5, 7);
    }
    TILE_STORE(0, sums, SUMS_STRIDE);
    TILE_STORE(1, sums + 16, SUMS_STRIDE);
    TILE_STORE(2, low, SUMS_STRIDE);
    TILE_STORE(3, low + 16, SUMS_STRIDE);
}

static void run_block(const amx_product *a, scratch *s, int64_t row, int64_t rows, int64_t panel,
                      int64_t panels, bool brings)
{
    load_x_tail(a, s, row, rows);
    if (rows <= 16) {
        configure(rows, 0);
        for (int64_t q = 0; q < panels; q++) {
            few_rows(a, s, row, panel + q);
            finish_block(a, s, row, rows, panel + q, 1);
        }
        return;
    }
    configure(16, rows - 16);
    for (int64_t k = 0; k < a->p.K; k += RANGE) {
        int64_t end = k + RANGE < a->p.K ? k + RANGE : a->p.K;
        for (int64_t q = 0; q < 2 * panels; q++)
            half_panel(a, s, row, panel + q / 2, q % 2, k, end, &s->sums[0][q * TP_PANEL / 2],
                       brings);
    }
    finish_block(a, s, row, rows, panel, panels);
}

/* Items are (group of panels, chunk of rows). */
static void product_range(const void *context, int64_t begin, int64_t end, int thread)
{
    const amx_product *a = context;
    const product *p = &a->p;
    for (int64_t item = begin; item < end; item++) {
        int64_t panel = item / p->chunks * a->group, left = p->w->dim[0] - panel;
        int64_t first = item % p->chunks * ROW_CHUNK;
        int64_t last = first + ROW_CHUNK < p->rows ? first + ROW_CHUNK : p->rows;
        for (int64_t row = first; row < last; row += ROWS)
            run_block(a, &a->scratch[thread], row, last - row < ROWS ? last - row : ROWS, panel,
                      left < a->group ? left : a->group,
                      row == first && (item == begin || item % p->chunks == 0));
    }
    TILE_RELEASE();
}

static void linear_panels(const tp_launch *launch)
{
    amx_product a = {.p = product_of(launch, ROW_CHUNK), .scratch = launch->workspace};
    int64_t panels = a.p.w->dim[0], bytes = panels * a.p.w->dim[1] * 2;
    if (!is_bound(a.p.y) || a.p.rows == 0)
        return;
    a.group = a.p.chunks > 1 && panels * a.p.chunks >= 4 * GROUP * launch->threads ? GROUP : 1;
    a.groups = ceil_div(panels, a.group);
    tp_cpu_static(launch, a.groups * a.p.chunks, bytes * ceil_div(a.p.rows, 16), product_range, &a);
}

static size_t workspace(const tp_launch *launch)
{
    return round_up_64(sizeof(scratch)) * launch->threads;
}

static bool accepts(const tp_launch *launch)
{
    return is_half(&launch->in[0]) && is_half(&launch->in[1]) && are_floats(launch, 4, 1);
}

TP_CPU_KERNEL(linear_panels, .accepts = accepts, .workspace = workspace, .run = linear_panels);
