/* gemm.c - choice of kernel, blocking, packing and threads of the matrix product.
 *
 * C is computed block by block.  For a block (m_block x n_block) and a range of k (k_block)
 * all threads first pack A and B together into shared panels; when that is done each computes a
 * rectangle of tiles.  Inside its rectangle a thread takes as many B panels as half of its L2
 * holds and runs all A panels past them.
 *
 * Where the sums of a tile live until they are complete ("home"):
 *   - in C itself, when C is f32 and nothing but an addition is left to do;
 *   - else in a small scratch of the thread when one range of k covers all of it;
 *   - else in an f32 image of the block in the workspace.
 * Ranges of k depend on the shape only, so the bits do not depend on threads or caches. */
#include "base/platform.h"
#include "engine/backend/cpu/gemm_kernel.h"
#include "engine/backend/cpu/parallel.h"

enum { ALIGN = 64 };

typedef enum { HOME_C, HOME_SCRATCH, HOME_BLOCK } tile_home;

typedef struct {
    const tp_gemm *gemm;
    const tp_gemm_kernel *kernel;
    bool is_transposed;   /* below, "A" is the B of the caller and C is transposed */
    tp_gemm_operand a, b; /* m x k, k x n */
    int64_t m, n;
    int64_t m_block, n_block, k_block; /* of one round of packing */
    int64_t k_chunk;                   /* of one tile() call */
    int64_t near_panels;               /* B panels kept in L2 */
    tile_home home;
    bool packs_late; /* A, panel by panel, by the thread that needs it */
    bool is_small;
    int threads;
    size_t a_stride, b_stride;                           /* bytes from panel to panel */
    size_t a_bytes, b_bytes, block_bytes, scratch_bytes; /* of the workspace; scratch per thread */
} gemm_plan;

/* Rows or columns of one block, cut into panels of `width`; the last may be narrower. */
typedef struct {
    int64_t total, count;
    int width;
} panel_cut;

static const tp_gemm_kernel *const kernels[] = {
    &tp_gemm_kernel_amx,          &tp_gemm_kernel_avx512_bf16, &tp_gemm_kernel_avx512,
    &tp_gemm_kernel_avx2,         &tp_gemm_kernel_portable,
#if defined(__x86_64__)
    &tp_gemm_kernel_avx512_f16,   &tp_gemm_kernel_avx2_f16,
#endif
    &tp_gemm_kernel_portable_f16,
};

static int64_t div_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

static int64_t round_up(int64_t a, int64_t b) { return div_up(a, b) * b; }

static size_t align_up(size_t n) { return (n + ALIGN - 1) / ALIGN * ALIGN; }

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

static panel_cut cut_panels(int64_t total, int width)
{
    return (panel_cut){total, div_up(total, width), width};
}

static int panel_size(const panel_cut *cut, int64_t p)
{
    return (int)TP_MIN(cut->total - p * cut->width, cut->width);
}

/* --- the plan --- */

/* Equal parts of `total`, none longer than `most`, all but the last multiples of `unit`. */
static int64_t even_part(int64_t total, int64_t most, int64_t unit)
{
    int64_t parts = div_up(total, TP_MAX(most / unit * unit, unit));
    return round_up(div_up(total, parts), unit);
}

static tile_home choose_home(const gemm_plan *plan)
{
    const tp_gemm *g = plan->gemm;
    bool only_adds = !g->bias && !g->pre && g->epilogue == TP_GEMM_EPILOGUE_NONE;
    if (g->c_dtype == TP_DTYPE_F32 && only_adds && !plan->is_transposed)
        return HOME_C;
    return plan->k_block >= g->k ? HOME_SCRATCH : HOME_BLOCK;
}

/* Is it cheaper to compute C^T = B^T A^T?  Packing an operand into lines costs little where k
 * is contiguous, into columns where it is not; the units are about a tenth of a cycle per
 * element.  With few rows of A the weight decides: 0.3 cycles per element to pack it into
 * columns would be a fifth of the product with 64 rows. */
static bool is_cheaper_transposed(const tp_gemm_kernel *kernel, const tp_gemm *g)
{
    enum { LINES_FROM_K = 1, LINES_FROM_X = 3, COLUMNS_FROM_K = 3, COLUMNS_FROM_X = 2, TURN = 3 };
    if (!kernel->finish_transposed)
        return false;
    double m = (double)g->m, n = (double)g->n, k = (double)g->k;
    double straight = m * (g->a_trans ? LINES_FROM_X : LINES_FROM_K) +
                      n * (g->b_trans ? COLUMNS_FROM_K : COLUMNS_FROM_X);
    double turned = n * (g->b_trans ? LINES_FROM_K : LINES_FROM_X) +
                    m * (g->a_trans ? COLUMNS_FROM_X : COLUMNS_FROM_K);
    return turned * k + TURN * m * n < straight * k;
}

/* Threads cost a few microseconds to wake: not for less work than that. */
static int choose_threads(const tp_gemm *g)
{
    const double worth_a_team = 1 << 19; /* multiply-adds */
    return (double)g->m * (double)g->n * (double)g->k < worth_a_team ? 1 : TP_MAX(g->threads, 1);
}

static void plan_blocks(gemm_plan *plan)
{
    const tp_gemm_kernel *kernel = plan->kernel;
    int64_t k = plan->gemm->k;
    tp_cpu_caches caches = tp_cpu_cache_sizes();
    int64_t l2 = caches.l2 ? (int64_t)caches.l2 : 1 << 20;
    int64_t share = TP_MIN(TP_MAX((int64_t)caches.l3 / 4, 2 << 20), 8 << 20);

    const int k_unit = 32; /* a cache line of bf16; a multiple of every k_round */
    /* shorter ranges leave more B panels in L2; the sums of a narrow product are there anyway */
    bool is_narrow = TP_MIN(plan->m, plan->n) <= 512;
    int64_t most = is_narrow ? kernel->k_block / 4 : kernel->k_block;
    plan->k_block = TP_MIN(even_part(k, most, k_unit), round_up(k, kernel->k_round));
    int64_t k_bytes = plan->k_block * kernel->element_size;
    plan->k_chunk = kernel->k_chunk ? TP_MIN(kernel->k_chunk, plan->k_block) : plan->k_block;
    plan->m_block = TP_MIN(even_part(plan->m, share / k_bytes, kernel->rows), plan->m);

    int64_t col_panels = div_up(plan->n, kernel->cols);
    int64_t near = TP_MAX(l2 * 5 / 8 / (k_bytes * kernel->cols), 1);
    int64_t passes = div_up(col_panels, near); /* over the A panels */
    plan->near_panels = div_up(col_panels, passes);
    /* packing in advance costs about two late ones: it goes through the outer caches */
    plan->packs_late = kernel->packs_late && plan->a.k_contiguous && passes <= 2;

    /* B is packed no further ahead than the team's L2 caches hold, unless every block of B
     * would pack A again */
    bool one_a = plan->packs_late || (plan->m_block >= plan->m && plan->k_block >= k);
    int64_t cols = share / k_bytes;
    if (one_a)
        cols = TP_MIN(cols, near * plan->threads * kernel->cols);
    plan->n_block = TP_MIN(even_part(plan->n, cols, kernel->cols), plan->n);
    plan->near_panels = TP_MIN(plan->near_panels, div_up(plan->n_block, kernel->cols));
}

static void plan_memory(gemm_plan *plan)
{
    const tp_gemm_kernel *kernel = plan->kernel;
    const int64_t gap = ALIGN; /* panels of 2^n bytes would all start in one set of the cache */
    int64_t k_bytes = plan->k_block * kernel->element_size;
    int64_t row_panels = div_up(plan->m_block, kernel->rows);
    int64_t col_panels = div_up(plan->n_block, kernel->cols);
    size_t tile_bytes = sizeof(float) * (size_t)(kernel->rows * kernel->cols);
    plan->a_stride = align_up((size_t)(k_bytes * kernel->rows + gap));
    plan->b_stride = align_up((size_t)(k_bytes * kernel->cols + gap));
    plan->a_bytes = plan->packs_late ? 0 : plan->a_stride * (size_t)row_panels;
    plan->b_bytes = plan->b_stride * (size_t)col_panels;
    if (plan->home == HOME_BLOCK)
        plan->block_bytes = align_up(tile_bytes * (size_t)(row_panels * col_panels));
    plan->scratch_bytes = align_up(tile_bytes);
    if (plan->home == HOME_SCRATCH)
        plan->scratch_bytes = align_up(tile_bytes * (size_t)plan->near_panels);
    if (plan->packs_late)
        plan->scratch_bytes += plan->a_stride;
}

static gemm_plan make_plan(const tp_gemm_kernel *kernel, const tp_gemm *g)
{
    gemm_plan plan = {
        .gemm = g,
        .kernel = kernel,
        .a = {g->a, g->lda, !g->a_trans, g->ab_dtype},
        .b = {g->b, g->ldb, g->b_trans, g->ab_dtype},
        .m = g->m,
        .n = g->n,
        .is_small = kernel->small && g->m <= kernel->small_rows,
        .threads = choose_threads(g),
    };
    if (plan.is_small) {
        plan.scratch_bytes = align_up(kernel->small_scratch(g));
        return plan;
    }
    plan.is_transposed = is_cheaper_transposed(kernel, g);
    if (plan.is_transposed) {
        tp_gemm_operand a = plan.a;
        plan.a = plan.b;
        plan.b = a;
        plan.m = g->n;
        plan.n = g->m;
    }
    plan_blocks(&plan);
    plan.home = choose_home(&plan);
    plan_memory(&plan);
    return plan;
}

static size_t workspace_bytes(const gemm_plan *plan)
{
    return plan->a_bytes + plan->b_bytes + plan->block_bytes +
           plan->scratch_bytes * (size_t)plan->threads;
}

/* --- one block --- */

/* A block of C with its range of k, and where its packed panels and sums are. */
typedef struct {
    const gemm_plan *plan;
    int64_t i0, j0, k0; /* origin in A, B and C */
    int64_t nk, k_padded;
    bool is_first, is_last; /* range of k */
    panel_cut rows, cols;
    char *a, *b;
    float *sums; /* HOME_BLOCK */
    float *scratch;
    char *late_a; /* of this thread, when A is packed late */
} gemm_block;

static char *a_panel(const gemm_block *block, int64_t p, int64_t k)
{
    const gemm_plan *plan = block->plan;
    return block->a + (size_t)p * plan->a_stride +
           k * plan->kernel->rows * plan->kernel->element_size;
}

static char *b_panel(const gemm_block *block, int64_t q, int64_t k)
{
    const gemm_plan *plan = block->plan;
    return block->b + (size_t)q * plan->b_stride +
           k * plan->kernel->cols * plan->kernel->element_size;
}

/* k0 .. k0+nk-1 (relative to the block; a multiple of k_round) of panels p0 .. p1-1 of A. */
static void pack_a(const gemm_block *block, void *to, int64_t p0, int64_t p1, int64_t k0,
                   int64_t nk)
{
    const gemm_plan *plan = block->plan;
    const panel_cut *cut = &block->rows;
    tp_gemm_part part = {
        .x0 = block->i0 + p0 * cut->width,
        .nx = TP_MIN(p1 * cut->width, cut->total) - p0 * cut->width,
        .k0 = block->k0 + k0,
        .nk = TP_MIN(nk, block->nk - k0),
        .k_padded = nk,
        .stride = plan->a_stride,
    };
    plan->kernel->pack_a(to, &plan->a, &part);
}

static void pack_b(const gemm_block *block, void *to, int64_t p0, int64_t p1, int64_t k0,
                   int64_t nk)
{
    const gemm_plan *plan = block->plan;
    const panel_cut *cut = &block->cols;
    tp_gemm_part part = {
        .x0 = block->j0 + p0 * cut->width,
        .nx = TP_MIN(p1 * cut->width, cut->total) - p0 * cut->width,
        .k0 = block->k0 + k0,
        .nk = TP_MIN(nk, block->nk - k0),
        .k_padded = nk,
        .stride = plan->b_stride,
    };
    plan->kernel->pack_b(to, &plan->b, &part);
}

/* Panels p0 .. p1-1.  Where k is not contiguous a cache line belongs to several panels: all
 * of them take a few k at a time, so that the line is read once. */
static void pack_panels(const gemm_block *block, bool is_a, int64_t p0, int64_t p1)
{
    const gemm_plan *plan = block->plan;
    const tp_gemm_operand *operand = is_a ? &plan->a : &plan->b;
    const int64_t few = 64;
    int64_t step = operand->k_contiguous ? block->k_padded : few;
    for (int64_t k = 0; p0 < p1 && k < block->k_padded; k += step) {
        int64_t nk = TP_MIN(step, block->k_padded - k);
        if (is_a)
            pack_a(block, a_panel(block, p0, k), p0, p1, k, nk);
        else
            pack_b(block, b_panel(block, p0, k), p0, p1, k, nk);
    }
}

/* The panel of `count`, each `width` wide, at which a share of the work ends. */
static int64_t panels_before(int64_t work, int64_t count, int64_t width)
{
    return TP_MIN(div_up(TP_MAX(work, 0), width), count);
}

/* The columns of the panels of A, then of B, are one list of which each thread takes an equal
 * part, to whole panels. */
static void pack_block(const gemm_block *block, bool needs_a, bool needs_b, int thread, int threads)
{
    int64_t n_a = needs_a ? block->rows.count : 0;
    int64_t n_b = needs_b ? block->cols.count : 0;
    int64_t wide_a = block->plan->kernel->rows, wide_b = block->plan->kernel->cols;
    int64_t all_a = n_a * wide_a, all = all_a + n_b * wide_b;
    int64_t begin = all * thread / threads, end = all * (thread + 1) / threads;
    pack_panels(block, true, panels_before(begin, n_a, wide_a), panels_before(end, n_a, wide_a));
    pack_panels(block, false, panels_before(begin - all_a, n_b, wide_b),
                panels_before(end - all_a, n_b, wide_b));
}

/* A tile of finished sums to C. */
static void finish_tile(const gemm_block *block, int64_t p, int64_t q, const float *sums,
                        int64_t ld, bool accumulate)
{
    const gemm_plan *plan = block->plan;
    int rows = panel_size(&block->rows, p), cols = panel_size(&block->cols, q);
    int64_t i = block->i0 + p * plan->kernel->rows, j = block->j0 + q * plan->kernel->cols;
    if (plan->is_transposed)
        plan->kernel->finish_transposed(plan->gemm, sums, ld, j, cols, i, rows, accumulate);
    else
        plan->kernel->finish(plan->gemm, sums, ld, i, rows, j, cols, accumulate);
}

/* The lines of C that finish_tile() will write, to be there in time. */
static void prefetch_c(const gemm_block *block, int64_t p, int64_t q)
{
    const gemm_plan *plan = block->plan;
    int64_t element = (int64_t)tp_dtype_size(plan->gemm->c_dtype);
    int rows = panel_size(&block->rows, p), cols = panel_size(&block->cols, q);
    int64_t i = block->i0 + p * plan->kernel->rows, j = block->j0 + q * plan->kernel->cols;
    int64_t at = plan->is_transposed ? j * plan->gemm->ldc + i : i * plan->gemm->ldc + j;
    int lines = plan->is_transposed ? cols : rows;
    for (int line = 0; line < lines; line++)
        __builtin_prefetch((const char *)plan->gemm->c + (at + line * plan->gemm->ldc) * element,
                           1);
}

/* The chunk of k that starts at k, of one tile. */
typedef struct {
    int64_t p, q, k;
    const char *a; /* the chunk of the A panel */
    float *home;   /* unless the home is C */
    int64_t ld_home;
    tp_gemm_ahead ahead;
} tile_job;

static void run_tile(const gemm_block *block, const tile_job *job)
{
    const gemm_plan *plan = block->plan;
    const tp_gemm_kernel *kernel = plan->kernel;
    const tp_gemm *g = plan->gemm;
    int64_t k = job->k, nk = TP_MIN(plan->k_chunk, block->k_padded - k);
    int size = panel_size(&block->rows, job->p);
    int rows = kernel->fixed_rows ? kernel->rows : size;
    const char *b = b_panel(block, job->q, k);
    bool is_first = block->is_first && k == 0;
    bool is_last = block->is_last && k + nk == block->k_padded;

    if (plan->home != HOME_C) {
        if (is_last)
            prefetch_c(block, job->p, job->q);
        kernel->tile(rows, nk, job->a, b, job->home, job->ld_home, !is_first, job->ahead);
        if (is_last)
            finish_tile(block, job->p, job->q, job->home, job->ld_home, g->accumulate);
        return;
    }
    bool add = g->accumulate || !is_first;
    if (size == rows && panel_size(&block->cols, job->q) == kernel->cols) {
        int64_t i = block->i0 + job->p * kernel->rows, j = block->j0 + job->q * kernel->cols;
        float *c = (float *)g->c + i * g->ldc + j;
        kernel->tile(rows, nk, job->a, b, c, g->ldc, add, job->ahead);
        return;
    }
    kernel->tile(rows, nk, job->a, b, block->scratch, kernel->cols, false, job->ahead);
    finish_tile(block, job->p, job->q, block->scratch, kernel->cols, add);
}

/* What tile `tile` of `tiles` in a strip should prefetch: its share of the rows of the next A
 * panel, packed or, when that comes late, at its source. */
static tp_gemm_ahead next_panel(const gemm_block *block, int64_t p, int64_t k, int64_t tile,
                                int64_t tiles)
{
    const gemm_plan *plan = block->plan;
    if (p + 1 >= block->rows.count)
        return (tp_gemm_ahead){0};
    int64_t size = panel_size(&block->rows, p + 1);
    int64_t row = size * tile / tiles;
    tp_gemm_ahead ahead = {.lines = (int)(size * (tile + 1) / tiles - row)};
    if (plan->packs_late) {
        int64_t x = block->i0 + (p + 1) * plan->kernel->rows + row;
        int64_t element = (int64_t)tp_dtype_size(plan->a.dtype);
        ahead.stride = plan->a.ld * element;
        ahead.advance = element * ALIGN / plan->kernel->element_size;
        ahead.at = (const char *)plan->a.data + x * ahead.stride + (block->k0 + k) * element;
        return ahead;
    }
    ahead.stride = ALIGN;
    ahead.advance = ALIGN * plan->kernel->rows;
    ahead.at = a_panel(block, p + 1, k) + row * ALIGN;
    return ahead;
}

/* The tiles of A panel p with B panels q0 .. q1-1. */
static void run_strip(const gemm_block *block, int64_t p, int64_t q0, int64_t q1)
{
    const gemm_plan *plan = block->plan;
    int64_t cols = plan->kernel->cols;
    bool in_one_chunk = plan->k_chunk >= block->k_padded;
    for (int64_t k = 0; k < block->k_padded; k += plan->k_chunk) {
        tile_job job = {.p = p, .k = k, .a = a_panel(block, p, k)};
        if (plan->packs_late) {
            pack_a(block, block->late_a, p, p + 1, k, TP_MIN(plan->k_chunk, block->k_padded - k));
            job.a = block->late_a;
        }
        for (int64_t q = q0; q < q1; q++) {
            job.q = q;
            job.ahead = next_panel(block, p, k, q - q0, q1 - q0);
            if (plan->home == HOME_BLOCK) {
                job.ld_home = block->cols.count * cols;
                job.home = block->sums + p * plan->kernel->rows * job.ld_home + q * cols;
            } else if (plan->home == HOME_SCRATCH) {
                job.ld_home = in_one_chunk ? cols : plan->near_panels * cols;
                job.home = block->scratch + (in_one_chunk ? 0 : (q - q0) * cols);
            }
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

/* Rows of the grid of threads that give the fewest tiles to the busiest. */
static int grid_rows(int64_t row_panels, int64_t col_panels, int threads)
{
    int best = 1;
    int64_t least = INT64_MAX;
    for (int r = 1; r <= threads; r++) {
        if (threads % r)
            continue;
        int64_t most = div_up(row_panels, r) * div_up(col_panels, threads / r);
        if (most < least) {
            least = most;
            best = r;
        }
    }
    return best;
}

/* Piece `piece` of what cell `cell` of the grid has to do: some of its rows. */
static void compute_piece(const gemm_block *block, int cell, int cells, int piece, int pieces)
{
    int down = grid_rows(block->rows.count, block->cols.count, cells);
    int across = cells / down;
    panel_range rows = share_of(block->rows.count, cell / across, down);
    panel_range cols = share_of(block->cols.count, cell % across, across);
    panel_range own = share_of(rows.end - rows.begin, piece, pieces);
    int64_t n_cols = cols.end - cols.begin; /* in even parts, of at most near_panels */
    int64_t step = div_up(n_cols, TP_MAX(div_up(n_cols, block->plan->near_panels), 1));
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
    const gemm_plan *plan;
    char *workspace;
    gemm_block block;
    bool needs_a, needs_b;
} gemm_phase;

static char *scratch_of(const gemm_plan *plan, char *workspace, int thread)
{
    return workspace + plan->a_bytes + plan->b_bytes + plan->block_bytes +
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
    const gemm_plan *plan = phase->plan;
    gemm_block block = phase->block;
    block.scratch = (float *)(void *)scratch_of(plan, phase->workspace, thread);
    block.late_a = (char *)block.scratch + plan->scratch_bytes - plan->a_stride;
    compute_piece(&block, part / phase->pieces, plan->threads, part % phase->pieces, phase->pieces);
}

/* Columns in whole groups of 64, so that no two threads write one cache line. */
static void small_part(const gemm_phase *phase, int part, int thread)
{
    const gemm_plan *plan = phase->plan;
    const tp_gemm *g = plan->gemm;
    const int64_t group = 64;
    panel_range groups = share_of(div_up(g->n, group), part, plan->threads * phase->pieces);
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
    const gemm_plan *plan = phase->plan;
    gemm_block *block = &phase->block;
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
                block->k_padded = round_up(block->nk, plan->kernel->k_round);
                block->is_first = block->k0 == 0;
                block->is_last = block->k0 + block->nk == k;
                phase->needs_a = !plan->packs_late && (is_start || !one_a);
                phase->needs_b = block->i0 == 0 || !one_k;
                if (phase->needs_a || phase->needs_b)
                    run_phase(phase, pack_part,
                              (phase->needs_a ? block->rows.count : 0) +
                                  (phase->needs_b ? block->cols.count : 0),
                              8);
                run_phase(phase, compute_part, block->rows.count, 4);
                is_start = false;
            }
        }
    }
}

size_t tp_gemm_kernel_workspace(const tp_gemm_kernel *kernel, const tp_gemm *g)
{
    gemm_plan plan = make_plan(kernel, g);
    return workspace_bytes(&plan);
}

void tp_gemm_kernel_run(const tp_gemm_kernel *kernel, const tp_gemm *g, void *workspace)
{
    TP_ASSERT(g->m >= 1 && g->n >= 1 && g->k >= 1);
    const gemm_plan plan = make_plan(kernel, g);
    char *panels = workspace;
    gemm_phase phase = {.plan = &plan,
                        .workspace = panels,
                        .block = {.plan = &plan,
                                  .a = panels,
                                  .b = panels + plan.a_bytes,
                                  .sums = (float *)(void *)(panels + plan.a_bytes + plan.b_bytes)}};
    if (plan.is_small)
        run_phase(&phase, small_part, div_up(g->n, 64), 8);
    else
        run_blocks(&phase);
}

size_t tp_gemm_workspace(const tp_gemm *g) { return tp_gemm_kernel_workspace(choose_kernel(g), g); }

void tp_gemm_run(const tp_gemm *g, void *workspace)
{
    tp_gemm_kernel_run(choose_kernel(g), g, workspace);
}

const char *tp_gemm_kernel_name(const tp_gemm *g) { return choose_kernel(g)->name; }
