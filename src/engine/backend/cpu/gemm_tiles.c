/* gemm_tiles.c - the order of tiles for a kernel that takes many in one call.
 *
 * Such a kernel is so fast that what surrounds a tile weighs.  As many panels of one operand as a
 * part of L2 holds stay there, the panels of the other come one after the other and meet them all:
 *
 *     A read in place   rows of A stay as they lie, panels of B come, packed in advance
 *     A packed late     panels of B stay, packed in advance; those of A come
 *     B packed late     panels of A stay, packed in advance; those of B come
 *
 * What comes late is packed by the thread that needs it into its own L2: packing in advance would
 * write it to the outer caches and read it again.  Its tiles go by groups, all k of a group
 * before the next, so that a chunk of it and the sums of the group stay in L1. */
#include "engine/backend/cpu/gemm_block.h"

/* Tiles below one another (`is_column`), or side by side, and what they read at k = 0. */
typedef struct {
    int64_t p, q, count;
    bool is_column;
    tp_gemm_lines a;
    const char *b;
    int64_t a_next, b_next; /* bytes to what the next tile reads */
    int64_t a_element;      /* bytes per k of the lines of A */
    const char *ahead;      /* what the stream brings next, */
    int64_t ahead_stride;   /* line by line, */
    int ahead_lines;        /* so many in each step of k */
} tile_run;

/* The chunk of a run that starts at k. */
static tp_gemm_tiles chunk_of(const tp_gemm_block *block, const tile_run *run, int64_t k)
{
    const tp_gemm_plan *plan = block->plan;
    const tp_gemm *g = plan->gemm;
    int64_t rows = plan->kernel->rows, cols = plan->kernel->cols;
    int64_t nk = TP_MIN(plan->k_chunk, block->k_padded - k), end = k + nk;
    int64_t column_bytes = cols * plan->kernel->element_size;
    int64_t depth = plan->kernel->k_round;
    bool ends_here = plan->home == TP_GEMM_HOME_C || block->is_last;
    bool starts_here = plan->home == TP_GEMM_HOME_C || block->is_first;
    tp_gemm_tiles tiles = {
        .gemm = g,
        .count = run->count,
        .k_padded = nk,
        .a = run->a,
        .b = run->b + k * column_bytes,
        .a_next = run->a_next,
        .b_next = run->b_next,
        .sums = block->scratch,
        .ld = cols,
        .sums_next = rows * cols,
        .adds = !starts_here || k > 0,
        .is_last = ends_here && end == block->k_padded,
        .is_last_but_one =
            ends_here && end < block->k_padded && end + plan->k_chunk >= block->k_padded,
        .accumulates = g->accumulate || (plan->home == TP_GEMM_HOME_C && !block->is_first),
        .ahead_stride = run->ahead_stride,
        .ahead_lines = run->ahead_lines,
        .is_transposed = plan->is_transposed,
        .is_streamed = plan->is_streamed,
    };
    if (tiles.is_last) {
        tiles.squares = tp_gemm_squares(block, run->p, run->q);
        tiles.squares_next = run->is_column ? tp_gemm_tiles_across(plan) : 1;
    }
    tiles.a.at += k * run->a_element;
    if (run->ahead_lines > 0)
        tiles.ahead = run->ahead + run->count * (k / depth) * run->ahead_lines * run->ahead_stride;
    if (plan->home == TP_GEMM_HOME_BLOCK) {
        tiles.ld = block->cols.count * cols;
        tiles.sums = block->sums + run->p * rows * tiles.ld + run->q * cols;
        tiles.sums_next = run->is_column ? rows * tiles.ld : cols;
    }
    return tiles;
}

/* Where in C the tiles of a run are. */
static void place(const tp_gemm_block *block, const tile_run *run, tp_gemm_tiles *tiles)
{
    const tp_gemm_plan *plan = block->plan;
    int64_t i = block->i0 + run->p * plan->kernel->rows;
    int64_t j = block->j0 + run->q * plan->kernel->cols;
    int rows = tp_gemm_panel_size(&block->rows, run->p);
    int cols = tp_gemm_panel_size(&block->cols, run->q);
    bool turned = plan->is_transposed, goes_down = run->is_column != turned;
    tiles->i = turned ? j : i;
    tiles->j = turned ? i : j;
    tiles->rows = turned ? cols : rows;
    tiles->cols = turned ? rows : cols;
    tiles->i_next = goes_down ? plan->kernel->rows : 0;
    tiles->j_next = goes_down ? 0 : plan->kernel->cols;
}

/* All k of a run whose tiles have one size. */
static void run_tiles(const tp_gemm_block *block, const tile_run *run)
{
    const tp_gemm_plan *plan = block->plan;
    for (int64_t k = 0; k < block->k_padded; k += plan->k_chunk) {
        tp_gemm_tiles tiles = chunk_of(block, run, k);
        place(block, run, &tiles);
        plan->kernel->tiles(&tiles);
    }
}

/* `count` tiles, the last of which may be smaller. */
static void run_all(const tp_gemm_block *block, tile_run run, int64_t count)
{
    const tp_gemm_cut *cut = run.is_column ? &block->rows : &block->cols;
    int64_t last = (run.is_column ? run.p : run.q) + count - 1;
    run.count = count - (tp_gemm_panel_size(cut, last) < cut->width);
    if (run.count > 0)
        run_tiles(block, &run);
    if (run.count == count)
        return;
    run.a.at += run.count * run.a_next;
    run.b += run.count * run.b_next;
    *(run.is_column ? &run.p : &run.q) = last;
    run.count = 1;
    run_tiles(block, &run);
}

/* Panels x .. x_end-1 of an operand. */
static char *pack_late(const tp_gemm_block *block, bool is_a, int64_t x, int64_t x_end)
{
    tp_gemm_pack(block, is_a, block->late, x, x_end, 0, block->k_padded);
    return block->late;
}

/* A where it lies; a last panel that is not full is packed, and all where steps of k are not whole.
 */
static void run_in_place(const tp_gemm_block *block, int64_t p0, int64_t p1, int64_t q)
{
    enum { AHEAD = 2 }; /* lines: all of the next chunk within 16 tiles */
    const tp_gemm_plan *plan = block->plan;
    int64_t rows = plan->kernel->rows, element = plan->kernel->element_size;
    int64_t whole = p1 - (tp_gemm_panel_size(&block->rows, p1 - 1) < rows);
    if (!tp_gemm_is_whole(block))
        whole = p0;
    tp_gemm_lines lines = tp_gemm_source_lines(block, p0, 0);
    tile_run run = {
        .p = p0,
        .q = q,
        .is_column = true,
        .a = lines,
        .a_element = element,
        .a_next = rows * lines.row,
        .b = tp_gemm_b_panel(block, q, 0),
        .ahead = tp_gemm_b_panel(block, q, TP_MIN(plan->k_chunk, block->k_padded)),
        .ahead_stride = TP_GEMM_ALIGN,
        .ahead_lines = AHEAD,
    };
    if (whole > p0)
        run_all(block, run, whole - p0);
    run.a_element = rows * element;
    for (run.p = whole; run.p < p1; run.p++) {
        run.a = tp_gemm_packed_lines(plan, pack_late(block, true, run.p, run.p + 1));
        run_all(block, run, 1);
    }
}

/* The tiles of packed A panel p side by side with B panels q0 .. q1-1, which lie at `b`. */
static void run_group(const tp_gemm_block *block, const char *a, int64_t p, const char *b,
                      int64_t q0, int64_t q1)
{
    const tp_gemm_plan *plan = block->plan;
    tile_run run = {
        .p = p,
        .q = q0,
        .a = tp_gemm_packed_lines(plan, a),
        .a_element = (int64_t)plan->kernel->rows * plan->kernel->element_size,
        .b = b,
        .b_next = (int64_t)plan->b_stride,
    };
    run_all(block, run, q1 - q0);
}

/* Panels are packed late by groups: lines of memory that are neighbours come faster. */
static void run_late_a(const tp_gemm_block *block, int64_t p, int64_t p_end, int64_t q0, int64_t q1)
{
    const char *a = pack_late(block, true, p, p_end);
    for (int64_t x = p; x < p_end; x++, a += block->plan->a_stride)
        for (int64_t q = q0; q < q1; q += TP_GEMM_GROUP)
            run_group(block, a, x, tp_gemm_b_panel(block, q, 0), q, TP_MIN(q + TP_GEMM_GROUP, q1));
}

static void run_late_b(const tp_gemm_block *block, int64_t q, int64_t q_end, int64_t p0, int64_t p1)
{
    const char *b = pack_late(block, false, q, q_end);
    for (int64_t p = p0; p < p1; p++)
        run_group(block, tp_gemm_a_panel(block, p, 0), p, b, q, q_end);
}

static void meet_all(const tp_gemm_block *block, int64_t p0, int64_t p1, int64_t q0, int64_t q1)
{
    if (block->plan->late == TP_GEMM_LATE_A) {
        for (int64_t p = p0; p < p1; p += TP_GEMM_GROUP)
            run_late_a(block, p, TP_MIN(p + TP_GEMM_GROUP, p1), q0, q1);
    } else if (block->plan->late == TP_GEMM_LATE_B) {
        for (int64_t q = q0; q < q1; q += TP_GEMM_GROUP)
            run_late_b(block, q, TP_MIN(q + TP_GEMM_GROUP, q1), p0, p1);
    } else {
        for (int64_t q = q0; q < q1; q++)
            run_in_place(block, p0, p1, q);
    }
}

void tp_gemm_compute_tiles(const tp_gemm_block *block, int64_t p0, int64_t p1, int64_t q0,
                           int64_t q1)
{
    const tp_gemm_plan *plan = block->plan;
    bool b_stays = plan->late == TP_GEMM_LATE_A;
    int64_t begin = b_stays ? q0 : p0, end = b_stays ? q1 : p1;
    int64_t step = tp_gemm_even(end - begin, plan->near_panels);
    for (int64_t x = begin; x < end; x += step) {
        int64_t x_end = TP_MIN(x + step, end);
        if (b_stays)
            meet_all(block, p0, p1, x, x_end);
        else
            meet_all(block, x, x_end, q0, q1);
    }
}
