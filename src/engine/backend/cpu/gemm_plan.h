/* gemm_plan.h - how one matrix product is cut: blocks, panels, where sums wait, threads.
 *
 * A plan depends on the shapes, the kernel, the caches and the number of threads; the ranges of
 * k depend on the shapes and the kernel only, so that the bits do not depend on the rest, unless
 * the kernel has tiles(), whose sums are one chain over all ranges.  A run that is part of a larger
 * one has the larger one's ranges, and room. */
#ifndef TP_ENGINE_BACKEND_CPU_GEMM_PLAN_H
#define TP_ENGINE_BACKEND_CPU_GEMM_PLAN_H

#include "engine/backend/cpu/gemm_kernel.h"

enum {
    TP_GEMM_ALIGN = 64,
    TP_GEMM_GROUP = 4 /* tiles side by side whose sums stay in L1, 4 KiB each */
};

static inline int64_t tp_gemm_div_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

static inline int64_t tp_gemm_round_up(int64_t a, int64_t b) { return tp_gemm_div_up(a, b) * b; }

/* The length of equal parts of `total` panels, none longer than `most`. */
static inline int64_t tp_gemm_even(int64_t total, int64_t most)
{
    return total < 1 ? 1 : tp_gemm_div_up(total, tp_gemm_div_up(total, most < 1 ? 1 : most));
}

/* Is C a weight's gradient, of operands that have rows of one k each? */
static inline bool tp_gemm_is_gradient(const tp_gemm *gemm)
{
    return gemm->a_trans && !gemm->b_trans;
}

/* The operand that each thread packs itself, panel by panel, when it needs them. */
typedef enum { TP_GEMM_LATE_NONE, TP_GEMM_LATE_A, TP_GEMM_LATE_B } tp_gemm_late;

/* Where the sums of a tile wait until they are complete; see gemm.c. */
typedef enum { TP_GEMM_HOME_C, TP_GEMM_HOME_SCRATCH, TP_GEMM_HOME_BLOCK } tp_gemm_home;

typedef struct {
    const tp_gemm *gemm;
    const tp_gemm_kernel *kernel;
    bool is_transposed;   /* below, "A" is the B of the caller and C is transposed */
    tp_gemm_operand a, b; /* m x k, k x n */
    int64_t m, n;
    int64_t m_block, n_block, k_block; /* of one round of packing */
    int64_t k_chunk;                   /* of one tile() call */
    int64_t near_panels; /* kept in L2: of B, or of A when it is read in place or B comes late */
    tp_gemm_home home;
    bool is_in_place; /* A is read where it lies, but for what tiles() or a part's k need packed */
    tp_gemm_late late;
    bool is_small;
    bool is_finished; /* whole tiles become elements of C in registers */
    bool is_streamed; /* C goes past the caches, which would not hold it */
    int threads;
    size_t a_stride, b_stride;                           /* bytes from panel to panel */
    size_t a_bytes, b_bytes, block_bytes, scratch_bytes; /* of the workspace; scratch per thread */
    size_t squares_bytes;                                /* a number for each tile of C */
    size_t late_bytes;                                   /* of the scratch, at its end */
} tp_gemm_plan;

/* Tiles of C, or of the transposed one: side by side, and in all. */
static inline int64_t tp_gemm_tiles_across(const tp_gemm_plan *plan)
{
    return tp_gemm_div_up(plan->n, plan->kernel->cols);
}

static inline int64_t tp_gemm_tiles_in_all(const tp_gemm_plan *plan)
{
    return tp_gemm_div_up(plan->m, plan->kernel->rows) * tp_gemm_tiles_across(plan);
}

tp_gemm_plan tp_gemm_plan_make(const tp_gemm_kernel *kernel, const tp_gemm *gemm);

/* Bytes of scratch of a run. */
size_t tp_gemm_plan_workspace(const tp_gemm_plan *plan);

#endif
