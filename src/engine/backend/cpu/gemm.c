/* gemm.c - choice of kernel, packing and threads of the matrix product; gemm_plan.c has the
 * blocking.
 *
 * C is computed block by block.  For a block (m_block x n_block) and a range of k (k_block)
 * all threads first pack A and B together into shared panels; when that is done each computes a
 * rectangle of tiles.  Inside its rectangle a thread takes as many B panels as half of its L2
 * holds and runs all A panels past them.  A kernel that takes many tiles in one call has an order
 * of its own: gemm_tiles.c.
 *
 * Where the sums of a tile live until they are complete ("home"):
 *   - in C itself, when C is f32 and nothing but an addition is left to do;
 *   - else in a small scratch of the thread when one range of k covers all of it;
 *   - else in an f32 image of the block in the workspace.
 * The bits do not depend on threads or caches: ranges of k depend on the shape only, or, in
 * gemm_tiles.c, a sum is one chain over all of them. */
#include "engine/backend/cpu/gemm_block.h"
#include "engine/backend/cpu/parallel.h"

static const tp_gemm_kernel *const kernels[] = {
    &tp_gemm_kernel_amx,          &tp_gemm_kernel_avx512_bf16, &tp_gemm_kernel_avx512,
    &tp_gemm_kernel_avx2,         &tp_gemm_kernel_portable,
#if defined(__x86_64__)
    &tp_gemm_kernel_avx512_f16,   &tp_gemm_kernel_avx2_f16,
#endif
    &tp_gemm_kernel_portable_f16,
};

/* The half type among the operands, or f32: there are not two. */
static tp_dtype half_of(const tp_gemm *g)
{
    return g->ab_dtype != TP_DTYPE_F32  ? g->ab_dtype
           : g->c_dtype != TP_DTYPE_F32 ? g->c_dtype
                                        : g->bias_dtype;
}

static const tp_gemm_kernel *find_kernel(const tp_gemm *g)
{
    tp_dtype half = half_of(g);
    for (size_t i = 0; i < TP_COUNTOF(kernels); i++) {
        const tp_gemm_kernel *kernel = kernels[i];
        bool accepts = (half == TP_DTYPE_F32 || half == kernel->half) &&
                       (g->ab_dtype != TP_DTYPE_F32 || kernel->accepts_f32);
        if (tp_cpu_may_use(kernel->isa) && accepts)
            return kernel;
    }
    return NULL;
}

bool tp_gemm_is_possible(const tp_gemm *g) { return find_kernel(g) != NULL; }

static const tp_gemm_kernel *choose_kernel(const tp_gemm *g)
{
    const tp_gemm_kernel *kernel = find_kernel(g);
    TP_ASSERT(kernel && "tp_gemm_is_possible() was not asked");
    return kernel;
}

static tp_gemm_cut cut_panels(int64_t total, int width)
{
    return (tp_gemm_cut){total, tp_gemm_div_up(total, width), width};
}

enum { PACKED_K = 64 }; /* packed at a time where k is not contiguous */

/* k0 .. k1-1 of panels p0 .. p1-1.  Where k is not contiguous a cache line belongs to several
 * panels: all of them take a few k at a time, so that the line is read once. */
static void pack_panels(const tp_gemm_block *block, bool is_a, int64_t p0, int64_t p1, int64_t k0,
                        int64_t k1)
{
    const tp_gemm_plan *plan = block->plan;
    const tp_gemm_operand *operand = is_a ? &plan->a : &plan->b;
    int64_t step = operand->k_contiguous ? block->k_padded : PACKED_K;
    for (int64_t k = k0; p0 < p1 && k < k1; k += step) {
        int64_t nk = TP_MIN(step, k1 - k);
        char *to = is_a ? tp_gemm_a_panel(block, p0, k) : tp_gemm_b_panel(block, p0, k);
        tp_gemm_pack(block, is_a, to, p0, p1, k, nk);
    }
}

/* The panel of `count`, each `width` wide, at which a share of the work ends. */
static int64_t panels_before(int64_t work, int64_t count, int64_t width)
{
    return TP_MIN(tp_gemm_div_up(TP_MAX(work, 0), width), count);
}

/* The columns of the panels of A, then of B, are one list of which each thread takes an equal
 * part, to whole panels. */
static void pack_some_panels(const tp_gemm_block *block, bool needs_a, bool needs_b, int thread,
                             int threads)
{
    int64_t n_a = needs_a ? block->rows.count : 0;
    int64_t n_b = needs_b ? block->cols.count : 0;
    int64_t wide_a = block->plan->kernel->rows, wide_b = block->plan->kernel->cols;
    int64_t all_a = n_a * wide_a, all = all_a + n_b * wide_b;
    int64_t begin = all * thread / threads, end = all * (thread + 1) / threads, k = block->k_padded;
    pack_panels(block, true, panels_before(begin, n_a, wide_a), panels_before(end, n_a, wide_a), 0,
                k);
    pack_panels(block, false, panels_before(begin - all_a, n_b, wide_b),
                panels_before(end - all_a, n_b, wide_b), 0, k);
}

/* Both operands of a weight's gradient have rows of one k each: a thread takes whole rows, as they
 * follow each other in memory, of both, which take unlike time. */
static void pack_block(const tp_gemm_block *block, bool needs_a, bool needs_b, int thread,
                       int threads)
{
    const tp_gemm_plan *plan = block->plan;
    int64_t k = block->k_padded, units = tp_gemm_div_up(k, PACKED_K);
    bool has_rows = needs_a && needs_b && tp_gemm_is_gradient(plan->gemm);
    if (!has_rows || units < 2 * plan->threads) {
        pack_some_panels(block, needs_a, needs_b, thread, threads);
        return;
    }
    int64_t k0 = TP_MIN(units * thread / threads * PACKED_K, k);
    int64_t k1 = TP_MIN(units * (thread + 1) / threads * PACKED_K, k);
    pack_panels(block, true, 0, block->rows.count, k0, k1);
    pack_panels(block, false, 0, block->cols.count, k0, k1);
}

/* Where C has a tile of panels p and q. */
typedef struct {
    int64_t i, j, at; /* of its first element */
    int rows, cols;
} tile_place;

static tile_place place_of(const tp_gemm_block *block, int64_t p, int64_t q)
{
    const tp_gemm_plan *plan = block->plan;
    int rows = tp_gemm_panel_size(&block->rows, p), cols = tp_gemm_panel_size(&block->cols, q);
    int64_t i = block->i0 + p * plan->kernel->rows, j = block->j0 + q * plan->kernel->cols;
    tile_place place =
        plan->is_transposed ? (tile_place){j, i, 0, cols, rows} : (tile_place){i, j, 0, rows, cols};
    place.at = place.i * plan->gemm->ldc + place.j;
    return place;
}

/* A tile of finished sums to C. */
static void finish_tile(const tp_gemm_block *block, const tile_place *c, const float *sums,
                        int64_t ld, bool accumulate)
{
    const tp_gemm_plan *plan = block->plan;
    const tp_gemm_kernel *kernel = plan->kernel;
    if (plan->is_transposed)
        kernel->finish_transposed(plan->gemm, sums, ld, c->i, c->rows, c->j, c->cols, accumulate);
    else
        kernel->finish(plan->gemm, sums, ld, c->i, c->rows, c->j, c->cols, accumulate);
}

/* The lines of C that finish_tile() will write, to be there in time. */
static void prefetch_c(const tp_gemm *g, const tile_place *c)
{
    int64_t element = (int64_t)tp_dtype_size(g->c_dtype);
    for (int line = 0; line < c->rows; line++)
        __builtin_prefetch((const char *)g->c + (c->at + line * g->ldc) * element, 1);
}

/* The chunk of k that starts at k, of one tile. */
typedef struct {
    int64_t p, q, k;
    tp_gemm_lines a; /* the chunk of the A panel */
    float *home;     /* unless the home is C */
    int64_t ld_home;
    tp_gemm_ahead ahead;
} tile_job;

/* A tile whose sums wait elsewhere than in C. */
static void run_tile_at_home(const tp_gemm_block *block, const tile_job *job, int64_t nk,
                             bool is_whole, const tile_place *c)
{
    const tp_gemm_plan *plan = block->plan;
    const tp_gemm_kernel *kernel = plan->kernel;
    const char *b = tp_gemm_b_panel(block, job->q, job->k);
    bool is_first = block->is_first && job->k == 0;
    bool is_last = block->is_last && job->k + nk == block->k_padded;
    if (is_last)
        prefetch_c(plan->gemm, c);
    if (plan->is_finished && is_whole && is_first && is_last) {
        kernel->tile_finished(plan->gemm, nk, &job->a, b, c->i, c->j, plan->is_transposed,
                              &job->ahead);
        return;
    }
    kernel->tile(tp_gemm_panel_size(&block->rows, job->p), tp_gemm_panel_size(&block->cols, job->q),
                 nk, &job->a, b, job->home, job->ld_home, !is_first, &job->ahead);
    if (is_last)
        finish_tile(block, c, job->home, job->ld_home, plan->gemm->accumulate);
}

static void run_tile_in_c(const tp_gemm_block *block, const tile_job *job, int64_t nk,
                          const tile_place *place)
{
    const tp_gemm *g = block->plan->gemm;
    const tp_gemm_kernel *kernel = block->plan->kernel;
    const char *b = tp_gemm_b_panel(block, job->q, job->k);
    float *c = (float *)g->c + place->at;
    bool add = g->accumulate || !block->is_first || job->k > 0;
    if (place->cols == kernel->cols) {
        kernel->tile(place->rows, place->cols, nk, &job->a, b, c, g->ldc, add, &job->ahead);
        return;
    }
    kernel->tile(place->rows, place->cols, nk, &job->a, b, block->scratch, kernel->cols, false,
                 &job->ahead);
    finish_tile(block, place, block->scratch, kernel->cols, add);
}

static void run_tile(const tp_gemm_block *block, const tile_job *job)
{
    const tp_gemm_plan *plan = block->plan;
    const tp_gemm_kernel *kernel = plan->kernel;
    const tp_gemm *g = plan->gemm;
    int64_t nk = TP_MIN(plan->k_chunk, block->k_padded - job->k);
    bool is_whole = tp_gemm_panel_size(&block->rows, job->p) == kernel->rows &&
                    tp_gemm_panel_size(&block->cols, job->q) == kernel->cols;
    bool ends = job->k + nk == block->k_padded;
    double *squares = ends ? tp_gemm_squares(block, job->p, job->q) : NULL;
    tile_place place = place_of(block, job->p, job->q);
    float *c = (float *)g->c + place.at;
    if (plan->is_streamed && is_whole && (uintptr_t)c % TP_GEMM_ALIGN == 0) {
        double sum = kernel->tile_past_caches(nk, &job->a, tp_gemm_b_panel(block, job->q, job->k),
                                              c, g->ldc, &job->ahead);
        if (squares)
            *squares = sum;
        return;
    }
    if (plan->home == TP_GEMM_HOME_C)
        run_tile_in_c(block, job, nk, &place);
    else
        run_tile_at_home(block, job, nk, is_whole, &place);
    if (squares)
        *squares = kernel->squares(c, g->ldc, place.rows, place.cols);
}

/* What tile `tile` of `tiles` in a strip should prefetch: its share of the rows of the next A
 * panel, packed, or at its source where it is read in place or packed late. */
static tp_gemm_ahead next_panel(const tp_gemm_block *block, int64_t p, int64_t k, int64_t tile,
                                int64_t tiles)
{
    const int64_t few = 2; /* tiles: each asks for many lines */
    const tp_gemm_plan *plan = block->plan;
    if (p + 1 >= block->rows.count)
        return (tp_gemm_ahead){0};
    int64_t size = tp_gemm_panel_size(&block->rows, p + 1);
    int64_t row = size * tile / tiles;
    tp_gemm_lines lines = tp_gemm_packed_lines(plan, NULL);
    tp_gemm_ahead ahead = {.lines = (int)(size * (tile + 1) / tiles - row),
                           .is_far = tiles <= few,
                           .advance = lines.step};
    if (plan->is_in_place || plan->late == TP_GEMM_LATE_A) {
        int64_t element = (int64_t)tp_dtype_size(plan->a.dtype);
        lines = tp_gemm_source_lines(block, p + 1, k);
        ahead.advance = element * TP_GEMM_ALIGN / plan->kernel->element_size;
    } else {
        lines.at = tp_gemm_a_panel(block, p + 1, k);
    }
    ahead.stride = lines.row;
    ahead.at = lines.at + row * lines.row;
    return ahead;
}

/* The chunk from k on of A panel p: where it lies, or packed by the thread that needs it, or
 * before. */
static tp_gemm_lines lines_of_panel(const tp_gemm_block *block, int64_t p, int64_t k)
{
    const tp_gemm_plan *plan = block->plan;
    if (plan->is_in_place && tp_gemm_is_whole(block))
        return tp_gemm_source_lines(block, p, k);
    if (plan->late != TP_GEMM_LATE_A && !plan->is_in_place)
        return tp_gemm_packed_lines(plan, tp_gemm_a_panel(block, p, k));
    int64_t nk = TP_MIN(plan->k_chunk, block->k_padded - k);
    tp_gemm_pack(block, true, block->late, p, p + 1, k, nk);
    return tp_gemm_packed_lines(plan, block->late);
}

/* Where the sums of a tile wait between chunks: at `at` of the scratch, in rows of `ld`. */
static void choose_home(const tp_gemm_block *block, tile_job *job, int64_t at, int64_t ld)
{
    const tp_gemm_plan *plan = block->plan;
    int64_t rows = plan->kernel->rows, cols = plan->kernel->cols;
    bool in_one_chunk = plan->k_chunk >= block->k_padded;
    if (plan->home == TP_GEMM_HOME_BLOCK) {
        job->ld_home = block->cols.count * cols;
        job->home = block->sums + job->p * rows * job->ld_home + job->q * cols;
    } else if (plan->home == TP_GEMM_HOME_SCRATCH) {
        job->ld_home = in_one_chunk ? cols : ld;
        job->home = block->scratch + (in_one_chunk ? 0 : at);
    }
}

/* The tiles of A panel p with B panels q0 .. q1-1. */
static void run_strip(const tp_gemm_block *block, int64_t p, int64_t q0, int64_t q1)
{
    const tp_gemm_plan *plan = block->plan;
    int64_t cols = plan->kernel->cols;
    for (int64_t k = 0; k < block->k_padded; k += plan->k_chunk) {
        tile_job job = {.p = p, .k = k, .a = lines_of_panel(block, p, k)};
        for (int64_t q = q0; q < q1; q++) {
            job.q = q;
            job.ahead = next_panel(block, p, k, q - q0, q1 - q0);
            choose_home(block, &job, (q - q0) * cols, plan->near_panels * cols);
            run_tile(block, &job);
        }
    }
}

/* Threads in a grid: this one's range of panels [begin, end) along one side. */
typedef struct {
    int64_t begin, end;
} panel_range;

static panel_range share_of(int64_t count, int part, int parts)
{
    return (panel_range){count * part / parts, count * (part + 1) / parts};
}

/* Of what is added to C where rows of it are divided within pages: what one core asks for ahead
 * belongs to another.  For each k, as cost_of_cell(); measured in vectors only. */
static int64_t cost_of_sharing_rows(const tp_gemm_block *block, int64_t down, int64_t across)
{
    const int64_t page = 4096, of_element = 44;
    const tp_gemm_plan *plan = block->plan;
    bool adds = plan->home == TP_GEMM_HOME_C && plan->gemm->accumulate && !plan->kernel->tiles;
    bool is_divided = across < block->cols.count * plan->kernel->cols;
    bool is_short = across * (int64_t)sizeof(float) < page;
    return adds && is_divided && is_short ? of_element * down * across / plan->gemm->k : 0;
}

/* What a cell of a grid of `rows` rows costs for each k, in multiply-adds: those of its tiles, and
 * some for each row and column of its panels.  What all pack for each other comes from another
 * core, and its lines belong to two when they are written next; what is packed late is near, but
 * packed by every thread that needs it; rows that are read in place are clean.  In the time of one
 * multiply-add in vectors tiles of 16 by 16 do about 32. */
static int64_t cost_of_cell(const tp_gemm_block *block, int rows, int threads)
{
    const int64_t shared = 10, late_a = 8, late_b = 4, in_place = 5;
    const tp_gemm_plan *plan = block->plan;
    const tp_gemm_kernel *kernel = plan->kernel;
    int64_t speed = kernel->tiles ? 32 : 1;
    int64_t down = tp_gemm_div_up(block->rows.count, rows) * kernel->rows;
    int64_t across = tp_gemm_div_up(block->cols.count, threads / rows) * kernel->cols;
    int64_t row = plan->is_in_place ? in_place : plan->late == TP_GEMM_LATE_A ? late_a : shared;
    int64_t column = plan->late == TP_GEMM_LATE_B ? late_b : shared;
    return down * across + speed * (row * down + column * across) +
           cost_of_sharing_rows(block, down, across);
}

/* Rows of the grid of threads whose cells cost least; of two equal ones the grid in which fewer
 * threads read, or pack late, the same panel of A. */
static int grid_rows(const tp_gemm_block *block, int threads)
{
    int best = 1;
    int64_t least = INT64_MAX;
    bool late_a = block->plan->late == TP_GEMM_LATE_A || block->plan->is_in_place;
    for (int r = 1; r <= threads; r++) {
        if (threads % r)
            continue;
        int64_t cost = cost_of_cell(block, r, threads);
        if (cost < least || (cost == least && late_a)) {
            least = cost;
            best = r;
        }
    }
    return best;
}

/* Piece `piece` of what cell `cell` of the grid has to do: some of its rows, or of its columns
 * when those are packed late. */
static void compute_piece(const tp_gemm_block *block, int cell, int cells, int piece, int pieces)
{
    int down = grid_rows(block, cells);
    int across = cells / down;
    panel_range rows = share_of(block->rows.count, cell / across, down);
    panel_range cols = share_of(block->cols.count, cell % across, across);
    panel_range own = share_of(rows.end - rows.begin, piece, pieces);
    if (block->plan->late == TP_GEMM_LATE_B) {
        own = share_of(cols.end - cols.begin, piece, pieces);
        tp_gemm_compute_tiles(block, rows.begin, rows.end, cols.begin + own.begin,
                              cols.begin + own.end);
        return;
    }
    if (block->plan->kernel->tiles) {
        tp_gemm_compute_tiles(block, rows.begin + own.begin, rows.begin + own.end, cols.begin,
                              cols.end);
        return;
    }
    int64_t n_cols = cols.end - cols.begin; /* in even parts, of at most near_panels */
    int64_t step = tp_gemm_even(n_cols, block->plan->near_panels);
    for (int64_t q = cols.begin; q < cols.end; q += step) {
        int64_t q_end = TP_MIN(q + step, cols.end);
        for (int64_t p = own.begin; p < own.end; p++)
            run_strip(block, rows.begin + p, q, q_end);
    }
}

/* --- the whole product --- */

/* What the team does at one time: `step` of every part. */
typedef struct gemm_phase {
    void (*step)(const struct gemm_phase *phase, int part, int thread);
    int pieces; /* per thread */
    const tp_gemm_plan *plan;
    char *workspace;
    tp_gemm_block block;
    bool needs_a, needs_b;
} gemm_phase;

static char *scratch_of(const tp_gemm_plan *plan, char *workspace, int thread)
{
    return workspace + plan->a_bytes + plan->b_bytes + plan->block_bytes + plan->squares_bytes +
           (size_t)thread * plan->scratch_bytes;
}

static void pack_part(const gemm_phase *phase, int part, int thread)
{
    (void)thread;
    pack_block(&phase->block, phase->needs_a, phase->needs_b, part,
               phase->plan->threads * phase->pieces);
}

static void compute_part(const gemm_phase *phase, int part, int thread)
{
    const tp_gemm_plan *plan = phase->plan;
    tp_gemm_block block = phase->block;
    block.scratch = (float *)(void *)scratch_of(plan, phase->workspace, thread);
    block.late = (char *)block.scratch + plan->scratch_bytes - plan->late_bytes;
    compute_piece(&block, part / phase->pieces, plan->threads, part % phase->pieces, phase->pieces);
}

/* Columns in whole groups of 64, so that no two threads write one cache line. */
static void small_part(const gemm_phase *phase, int part, int thread)
{
    const tp_gemm_plan *plan = phase->plan;
    const tp_gemm *g = plan->gemm;
    const int64_t group = 64;
    panel_range groups = share_of(tp_gemm_div_up(g->n, group), part, plan->threads * phase->pieces);
    int64_t end = TP_MIN(groups.end * group, g->n);
    if (groups.begin * group < end)
        plan->kernel->small(g, groups.begin * group, end,
                            scratch_of(plan, phase->workspace, thread));
}

static void run_part(const void *context, int part, int thread)
{
    const gemm_phase *phase = context;
    const tp_gemm_kernel *kernel = phase->plan->kernel;
    unsigned state = tp_cpu_enter_kernel();
    if (kernel->enter)
        kernel->enter();
    phase->step(phase, part, thread);
    if (kernel->leave)
        kernel->leave();
    tp_cpu_leave_kernel(state);
}

/* `units` can be divided; a piece has at least `least` of them, a thread a few pieces, so that
 * others can take over. */
static void run_phase(gemm_phase *phase, void (*step)(const gemm_phase *phase, int, int),
                      int64_t units, int64_t least)
{
    const int64_t most = 4;
    int threads = phase->plan->threads;
    phase->step = step;
    phase->pieces = (int)TP_MAX(TP_MIN(units / least / threads, most), 1);
    tp_team_run(phase->plan->gemm->team, threads, threads * phase->pieces, run_part, phase);
}

static void run_blocks(gemm_phase *phase)
{
    const tp_gemm_plan *plan = phase->plan;
    tp_gemm_block *block = &phase->block;
    int64_t k = plan->gemm->k;
    bool one_a = plan->m_block >= plan->m && plan->k_block >= k;
    bool one_k = plan->k_block >= k;
    bool is_start = true;
    for (block->j0 = 0; block->j0 < plan->n; block->j0 += plan->n_block) {
        block->cols = cut_panels(TP_MIN(plan->n_block, plan->n - block->j0), plan->kernel->cols);
        for (block->i0 = 0; block->i0 < plan->m; block->i0 += plan->m_block) {
            block->rows =
                cut_panels(TP_MIN(plan->m_block, plan->m - block->i0), plan->kernel->rows);
            for (block->k0 = 0; block->k0 < k; block->k0 += plan->k_block) {
                block->nk = TP_MIN(plan->k_block, k - block->k0);
                block->k_padded = tp_gemm_round_up(block->nk, plan->kernel->k_round);
                block->is_first = block->k0 == 0;
                block->is_last = block->k0 + block->nk == k;
                phase->needs_a = plan->a_bytes > 0 && (is_start || !one_a);
                phase->needs_b = plan->b_bytes > 0 && (block->i0 == 0 || !one_k);
                if (phase->needs_a || phase->needs_b)
                    run_phase(phase, pack_part,
                              (phase->needs_a ? block->rows.count : 0) +
                                  (phase->needs_b ? block->cols.count : 0),
                              8);
                run_phase(phase, compute_part,
                          plan->late == TP_GEMM_LATE_B ? block->cols.count : block->rows.count,
                          plan->kernel->tiles && plan->is_in_place ? plan->near_panels : 4);
                is_start = false;
            }
        }
    }
}

size_t tp_gemm_kernel_workspace(const tp_gemm_kernel *kernel, const tp_gemm *g)
{
    tp_gemm_plan plan = tp_gemm_plan_make(kernel, g);
    return tp_gemm_plan_workspace(&plan);
}

/* Of C, from those of its tiles in their order; of few rows, without tiles, as they lie. */
static double sum_of_squares(const gemm_phase *phase)
{
    const tp_gemm_plan *plan = phase->plan;
    const tp_gemm *g = plan->gemm;
    double sum = 0;
    for (int64_t j = 0; plan->is_small && j < g->n; j += TP_GEMM_MAX_COLS)
        sum += plan->kernel->squares((const float *)g->c + j, g->ldc, (int)g->m,
                                     (int)TP_MIN(g->n - j, TP_GEMM_MAX_COLS));
    int64_t tiles = tp_gemm_tiles_in_all(plan);
    for (int64_t i = 0; !plan->is_small && i < tiles; i++)
        sum += phase->block.squares[i];
    return sum;
}

void tp_gemm_kernel_run(const tp_gemm_kernel *kernel, const tp_gemm *g, void *workspace)
{
    TP_ASSERT(g->m >= 1 && g->n >= 1 && g->k >= 1);
    TP_ASSERT(!g->squares || (g->may_have_squares && g->c_dtype == TP_DTYPE_F32));
    const tp_gemm_plan plan = tp_gemm_plan_make(kernel, g);
    char *panels = workspace, *sums = panels + plan.a_bytes + plan.b_bytes;
    double *squares = (double *)(void *)(sums + plan.block_bytes);
    gemm_phase phase = {.plan = &plan,
                        .workspace = panels,
                        .block = {.plan = &plan,
                                  .a = panels,
                                  .b = panels + plan.a_bytes,
                                  .sums = (float *)(void *)sums,
                                  .squares = g->squares ? squares : NULL}};
    if (plan.is_small)
        run_phase(&phase, small_part, tp_gemm_div_up(g->n, 64), 8);
    else
        run_blocks(&phase);
    if (g->squares)
        *g->squares = sum_of_squares(&phase);
}

size_t tp_gemm_workspace(const tp_gemm *g) { return tp_gemm_kernel_workspace(choose_kernel(g), g); }

void tp_gemm_run(const tp_gemm *g, void *workspace)
{
    tp_gemm_kernel_run(choose_kernel(g), g, workspace);
}

const char *tp_gemm_kernel_name(const tp_gemm *g) { return choose_kernel(g)->name; }
