/* gemm_plan.c - how one matrix product is cut; see gemm_plan.h. */
#include "engine/backend/cpu/gemm_plan.h"

#include "base/platform.h"

static size_t align_up(size_t n) { return (n + TP_GEMM_ALIGN - 1) / TP_GEMM_ALIGN * TP_GEMM_ALIGN; }

/* Equal parts of `total`, none longer than `most`, all but the last multiples of `unit`. */
static int64_t even_part(int64_t total, int64_t most, int64_t unit)
{
    return tp_gemm_round_up(tp_gemm_even(total, TP_MAX(most / unit * unit, unit)), unit);
}

/* Are sums of C f32 of C itself, with nothing to do but to add? */
static bool only_adds(const tp_gemm *g)
{
    bool is_plain = !g->may_have_bias && !g->may_have_pre && g->epilogue == TP_GEMM_EPILOGUE_NONE;
    return g->c_dtype == TP_DTYPE_F32 && is_plain;
}

static bool adds_in_place(const tp_gemm_plan *plan)
{
    return only_adds(plan->gemm) && !plan->is_transposed;
}

static tp_gemm_home choose_home(const tp_gemm_plan *plan)
{
    const tp_gemm *g = plan->gemm;
    if (adds_in_place(plan))
        return TP_GEMM_HOME_C;
    return plan->k_block >= g->k ? TP_GEMM_HOME_SCRATCH : TP_GEMM_HOME_BLOCK;
}

/* Can a tile become elements of C in registers? */
static bool is_finished(const tp_gemm_plan *plan)
{
    const tp_gemm *g = plan->gemm;
    bool turns = plan->is_transposed && (g->accumulate || g->c_dtype == TP_DTYPE_F32);
    return plan->kernel->tile_finished && !turns && !g->may_have_pre &&
           g->epilogue == TP_GEMM_EPILOGUE_NONE;
}

/* A weight's gradient that is set once and is more than the L2 caches of the team: it is read when
 * those of the other weights are there. */
static bool is_streamed(const tp_gemm_plan *plan)
{
    const tp_gemm *g = plan->gemm;
    const int64_t line = TP_GEMM_ALIGN / (int64_t)sizeof(float);
    int64_t l2 = (int64_t)tp_cpu_l2_bytes() * plan->threads;
    bool can = plan->kernel->tile_past_caches || plan->kernel->tiles;
    return can && plan->home == TP_GEMM_HOME_C && tp_gemm_is_gradient(plan->gemm) &&
           !g->accumulate && plan->k_block >= g->k && g->ldc % line == 0 &&
           g->m * g->n * (int64_t)sizeof(float) > l2;
}

/* Can x lines of an operand be read where they lie?  Only whole steps of k, padding included.
 * tiles() packs the last lines, where they fill no panel, again for each panel of B: not worth it
 * for few.  tile() finds lines in L1 only where they do not all meet in one set. */
static bool lies_in_lines(const tp_gemm_kernel *kernel, int64_t k, const tp_gemm_operand *operand,
                          int64_t x)
{
    const int64_t apart = 4096; /* bytes between places of one set */
    int64_t element = (int64_t)tp_dtype_size(operand->dtype);
    if (!operand->k_contiguous || tp_gemm_round_up(k, kernel->k_round) - k > operand->padding)
        return false;
    if (kernel->tiles)
        return x >= 2 * kernel->rows;
    return kernel->reads_rows && element == kernel->element_size &&
           operand->ld * element % apart != 0;
}

/* Is it cheaper to compute C^T = B^T A^T?  Packing an operand into lines costs little where k
 * is contiguous, into columns where it is not; the units are about a tenth of a cycle per
 * element.  With few rows of A the weight decides: 0.3 cycles per element to pack it into
 * columns would be a fifth of the product with 64 rows.  Lines that are read in place cost
 * nothing.  The sums of a weight's gradient lie in C, between ranges of k that are as short as
 * suits L2: turned, they would not. */
static bool is_cheaper_transposed(const tp_gemm_plan *plan)
{
    const tp_gemm_kernel *kernel = plan->kernel;
    const tp_gemm *g = plan->gemm;
    enum { LINES_FROM_K = 1, LINES_FROM_X = 3, COLUMNS_FROM_K = 3, COLUMNS_FROM_X = 2, TURN = 3 };
    if (!kernel->finish_transposed || (tp_gemm_is_gradient(g) && only_adds(g)))
        return false;
    double m = (double)g->m, n = (double)g->n, k = (double)g->k;
    int a_lines = lies_in_lines(kernel, g->k, &plan->a, g->m) ? 0
                  : g->a_trans                                ? LINES_FROM_X
                                                              : LINES_FROM_K;
    int b_lines = lies_in_lines(kernel, g->k, &plan->b, g->n) ? 0
                  : g->b_trans                                ? LINES_FROM_K
                                                              : LINES_FROM_X;
    double straight = m * a_lines + n * (g->b_trans ? COLUMNS_FROM_K : COLUMNS_FROM_X);
    double turned = n * b_lines + m * (g->a_trans ? COLUMNS_FROM_X : COLUMNS_FROM_K);
    return turned * k + TURN * m * n < straight * k;
}

/* Threads cost a few microseconds to wake: not for less work than that. */
static int choose_threads(const tp_gemm *g)
{
    const double worth_a_team = 1 << 19; /* multiply-adds */
    return (double)g->m * (double)g->n * (double)g->k < worth_a_team ? 1 : TP_MAX(g->threads, 1);
}

/* Rows of A from L2 stream past a chunk of a B panel in L1: all that is packed is B, as far
 * ahead as the outer cache holds. */
static void plan_in_place(tp_gemm_plan *plan, int64_t share, int64_t l2)
{
    const tp_gemm_kernel *kernel = plan->kernel;
    const int64_t least = 8; /* panels: fewer would wait for those of B */
    int64_t k_bytes = plan->k_block * kernel->element_size;
    int64_t near = TP_MAX(l2 * 3 / 8 / (k_bytes * kernel->rows), least);
    if (plan->k_block >= plan->gemm->k)
        plan->m_block = plan->m;
    plan->n_block = TP_MIN(even_part(plan->n, share / k_bytes, kernel->cols), plan->n);
    plan->near_panels = TP_MIN(near, tp_gemm_div_up(plan->m_block, kernel->rows));
}

/* Panels of the narrower operand stay in L2 while those of the other are packed late.  A short
 * range of k leaves room for more of them, so that the other is packed fewer times; sums that lie
 * in C are read and written once for each range, others make a range as long as can be. */
static void plan_late(tp_gemm_plan *plan, int64_t share, int64_t l2)
{
    const int64_t shortest = 512, unit = 32; /* k */
    const tp_gemm_kernel *kernel = plan->kernel;
    bool a_stays = plan->m < plan->n, in_c = adds_in_place(plan);
    int64_t k = plan->gemm->k, room = l2 * 3 / 8, most = kernel->k_block;
    int64_t width = a_stays ? kernel->rows : kernel->cols;
    int64_t staying = TP_MIN(plan->m, plan->n), coming = TP_MAX(plan->m, plan->n);
    if (in_c)
        most = TP_MIN(TP_MAX(room / (staying * kernel->element_size), shortest), most);
    plan->k_block = TP_MIN(even_part(k, most, unit), tp_gemm_round_up(k, kernel->k_round));
    int64_t k_bytes = plan->k_block * kernel->element_size;
    staying = TP_MIN(even_part(staying, share / k_bytes, width), staying);
    if (!in_c && plan->k_block < k) /* the sums of a block wait in an image of it */
        coming = TP_MIN(even_part(coming, share / k_bytes, width), coming);
    plan->late = a_stays ? TP_GEMM_LATE_B : TP_GEMM_LATE_A;
    plan->m_block = a_stays ? staying : coming;
    plan->n_block = a_stays ? coming : staying;
    plan->near_panels = tp_gemm_even(tp_gemm_div_up(staying, width), room / (k_bytes * width));
}

/* k of the longest range.  Between two ranges sums wait in C or in an image of it, which is read
 * and written once for each; shorter ranges leave more B panels in L2, so that A passes by fewer
 * times.  With B in 5/8 of 2 MiB both together are least from 768 f32 on, unless all of a narrow
 * operand stays, or A is not packed for it.  Gradients of weights, to which others are added, are
 * in no cache: long ranges; where they are small, as long as can be, for threads wait for each
 * other between two. */
static int64_t longest_range(const tp_gemm_plan *plan)
{
    const tp_gemm_kernel *kernel = plan->kernel;
    const int64_t narrow = 512, small = 256, near = (2 << 20) * 5 / 8;
    int64_t k = plan->gemm->k, width = TP_MIN(plan->m, plan->n);
    bool is_narrow = width <= narrow;
    bool is_gradient = tp_gemm_is_gradient(plan->gemm);
    if (kernel->k_part && !is_gradient) {
        int64_t longest = 2 * kernel->k_part;
        if (is_narrow && !plan->is_in_place)
            return TP_MIN(near / kernel->element_size / width, longest);
        return is_narrow || k <= longest ? longest : kernel->k_part;
    }
    if (kernel->tiles && plan->is_in_place && k > kernel->k_block && !is_narrow)
        return kernel->k_block / 2;
    bool is_small = is_gradient && TP_MAX(plan->m, plan->n) <= small;
    return is_narrow && !is_small ? kernel->k_block / 4 : kernel->k_block;
}

/* Is A better packed though it could be read in place?  A packed panel that just fits L1 is found
 * there by one panel of B after another, its lines that lie apart less often: of use for many. */
static bool is_better_packed(const tp_gemm_plan *plan, int64_t l1)
{
    const int64_t few = 8;
    const tp_gemm_kernel *kernel = plan->kernel;
    int64_t panel = plan->k_block * kernel->element_size * kernel->rows;
    bool just_fits = panel > l1 * 3 / 4 && panel <= l1;
    return !kernel->tiles && plan->n > few * kernel->cols && just_fits;
}

static void plan_blocks(tp_gemm_plan *plan)
{
    const tp_gemm_kernel *kernel = plan->kernel;
    int64_t k = plan->gemm->k;
    tp_cpu_caches caches = tp_cpu_cache_sizes();
    int64_t l2 = (int64_t)tp_cpu_l2_bytes();
    int64_t share = TP_MIN(TP_MAX((int64_t)caches.l3 / 4, 2 << 20), 8 << 20);

    const int k_unit = 32; /* a cache line of bf16; a multiple of every k_round */
    int64_t most = longest_range(plan);
    plan->k_block = TP_MIN(even_part(k, most, k_unit), tp_gemm_round_up(k, kernel->k_round));
    plan->is_in_place = plan->is_in_place && !is_better_packed(plan, (int64_t)caches.l1d);
    int64_t k_bytes = plan->k_block * kernel->element_size;
    plan->k_chunk = kernel->k_chunk ? TP_MIN(kernel->k_chunk, plan->k_block) : plan->k_block;
    plan->m_block = TP_MIN(even_part(plan->m, share / k_bytes, kernel->rows), plan->m);
    if (kernel->tiles && plan->is_in_place) {
        plan_in_place(plan, share, l2);
        return;
    }
    if (kernel->tiles) {
        plan_late(plan, share, l2);
        plan->k_chunk = TP_MIN(kernel->k_chunk, plan->k_block);
        return;
    }

    int64_t col_panels = tp_gemm_div_up(plan->n, kernel->cols);
    int64_t near = TP_MAX(l2 * 5 / 8 / (k_bytes * kernel->cols), 1);
    int64_t passes = tp_gemm_div_up(col_panels, near); /* over the A panels */
    plan->near_panels = tp_gemm_div_up(col_panels, passes);
    /* packing in advance costs about two late ones: it goes through the outer caches */
    if (kernel->packs_late && plan->a.k_contiguous && passes <= 2 && !plan->is_in_place)
        plan->late = TP_GEMM_LATE_A;

    /* B is packed no further ahead than the team's L2 caches hold, unless every block of B
     * would pack A again */
    bool one_a = plan->late == TP_GEMM_LATE_A || plan->is_in_place ||
                 (plan->m_block >= plan->m && plan->k_block >= k);
    int64_t cols = share / k_bytes;
    if (one_a)
        cols = TP_MIN(cols, near * plan->threads * kernel->cols);
    plan->n_block = TP_MIN(even_part(plan->n, cols, kernel->cols), plan->n);
    plan->near_panels = TP_MIN(plan->near_panels, tp_gemm_div_up(plan->n_block, kernel->cols));
}

static void plan_memory(tp_gemm_plan *plan)
{
    const tp_gemm_kernel *kernel = plan->kernel;
    const int64_t gap =
        TP_GEMM_ALIGN; /* panels of 2^n bytes would all start in one set of the cache */
    int64_t k_bytes = plan->k_block * kernel->element_size;
    int64_t row_panels = tp_gemm_div_up(plan->m_block, kernel->rows);
    int64_t col_panels = tp_gemm_div_up(plan->n_block, kernel->cols);
    size_t tile_bytes = sizeof(float) * (size_t)(kernel->rows * kernel->cols);
    plan->a_stride = align_up((size_t)(k_bytes * kernel->rows + gap));
    plan->b_stride = align_up((size_t)(k_bytes * kernel->cols + gap));
    bool packs_a = plan->late != TP_GEMM_LATE_A && !plan->is_in_place;
    bool packs_b = plan->late != TP_GEMM_LATE_B;
    plan->a_bytes = packs_a ? plan->a_stride * (size_t)row_panels : 0;
    plan->b_bytes = packs_b ? plan->b_stride * (size_t)col_panels : 0;
    if (plan->home == TP_GEMM_HOME_BLOCK)
        plan->block_bytes = align_up(tile_bytes * (size_t)(row_panels * col_panels));
    int64_t waiting = 1; /* tiles between chunks of k */
    if (kernel->tiles)
        waiting = plan->is_in_place ? plan->near_panels : TP_GEMM_GROUP;
    else if (plan->home == TP_GEMM_HOME_SCRATCH)
        waiting = plan->near_panels;
    plan->scratch_bytes = align_up(tile_bytes * (size_t)waiting);
    plan->late_bytes = 0;
    if (plan->late != TP_GEMM_LATE_NONE || plan->is_in_place)
        plan->late_bytes = plan->late == TP_GEMM_LATE_B ? plan->b_stride : plan->a_stride;
    if (kernel->tiles && plan->late != TP_GEMM_LATE_NONE)
        plan->late_bytes *= TP_GEMM_GROUP;
    plan->scratch_bytes += plan->late_bytes;
    if (plan->gemm->may_have_squares)
        plan->squares_bytes = align_up(sizeof(double) * (size_t)tp_gemm_tiles_in_all(plan));
}

static bool is_small(const tp_gemm_kernel *kernel, const tp_gemm *g)
{
    return kernel->small && g->m <= (g->b_trans ? kernel->small_dots : kernel->small_rows);
}

static tp_gemm_plan plan_for(const tp_gemm_kernel *kernel, const tp_gemm *g)
{
    tp_gemm_plan plan = {
        .gemm = g,
        .kernel = kernel,
        .a = {g->a, g->lda, !g->a_trans, g->a_padding, g->ab_dtype},
        .b = {g->b, g->ldb, g->b_trans, 0, g->ab_dtype},
        .m = g->m,
        .n = g->n,
        .is_small = is_small(kernel, g),
        .threads = choose_threads(g),
    };
    if (plan.is_small) {
        plan.scratch_bytes = align_up(kernel->small_scratch(g));
        return plan;
    }
    plan.is_transposed = is_cheaper_transposed(&plan);
    if (plan.is_transposed) {
        tp_gemm_operand a = plan.a;
        plan.a = plan.b;
        plan.b = a;
        plan.m = g->n;
        plan.n = g->m;
    }
    plan.is_in_place = lies_in_lines(kernel, g->k, &plan.a, plan.m);
    plan_blocks(&plan);
    plan.home = choose_home(&plan);
    plan.is_finished = is_finished(&plan);
    plan.is_streamed = is_streamed(&plan);
    plan_memory(&plan);
    return plan;
}

/* The plan of a larger run, for the part of it that this one is. */
static tp_gemm_plan part_of(const tp_gemm_plan *whole, const tp_gemm *g)
{
    tp_gemm_plan plan = *whole;
    plan.gemm = g;
    plan.threads = choose_threads(g);
    plan.m = plan.is_transposed ? g->n : g->m;
    plan.n = plan.is_transposed ? g->m : g->n;
    plan.m_block = TP_MIN(plan.m_block, plan.m);
    plan.n_block = TP_MIN(plan.n_block, plan.n);
    return plan;
}

tp_gemm_plan tp_gemm_plan_make(const tp_gemm_kernel *kernel, const tp_gemm *g)
{
    tp_gemm whole = *g;
    whole.m = TP_MAX(g->m, g->planned_m);
    whole.k = TP_MAX(g->k, g->planned_k);
    tp_gemm_plan plan = plan_for(kernel, &whole);
    bool is_part = !plan.is_small && (whole.m > g->m || whole.k > g->k);
    return is_small(kernel, g) || !is_part ? plan_for(kernel, g) : part_of(&plan, g);
}

size_t tp_gemm_plan_workspace(const tp_gemm_plan *plan)
{
    return plan->a_bytes + plan->b_bytes + plan->block_bytes + plan->squares_bytes +
           plan->scratch_bytes * (size_t)plan->threads;
}
