/* gemm_block.h - a block of C with its range of k: where its packed panels and sums are, and how
 * panels are packed.  Shared by gemm.c and gemm_tiles.c. */
#ifndef TP_ENGINE_BACKEND_CPU_GEMM_BLOCK_H
#define TP_ENGINE_BACKEND_CPU_GEMM_BLOCK_H

#include "base/platform.h"
#include "engine/backend/cpu/gemm_plan.h"

/* Rows or columns of one block, cut into panels of `width`; the last may be narrower. */
typedef struct {
    int64_t total, count;
    int width;
} tp_gemm_cut;

static inline int tp_gemm_panel_size(const tp_gemm_cut *cut, int64_t p)
{
    return (int)TP_MIN(cut->total - p * cut->width, cut->width);
}

typedef struct {
    const tp_gemm_plan *plan;
    int64_t i0, j0, k0; /* origin in A, B and C */
    int64_t nk, k_padded;
    bool is_first, is_last; /* range of k */
    tp_gemm_cut rows, cols;
    char *a, *b;
    float *sums;     /* TP_GEMM_HOME_BLOCK */
    double *squares; /* (optional) of every tile of C */
    float *scratch;
    char *late; /* of this thread: a panel that is packed late */
} tp_gemm_block;

static inline char *tp_gemm_a_panel(const tp_gemm_block *block, int64_t p, int64_t k)
{
    const tp_gemm_plan *plan = block->plan;
    return block->a + (size_t)p * plan->a_stride +
           k * plan->kernel->rows * plan->kernel->element_size;
}

static inline char *tp_gemm_b_panel(const tp_gemm_block *block, int64_t q, int64_t k)
{
    const tp_gemm_plan *plan = block->plan;
    return block->b + (size_t)q * plan->b_stride +
           k * plan->kernel->cols * plan->kernel->element_size;
}

/* Of a tile, where they are known when this range of k is done, and wanted. */
static inline double *tp_gemm_squares(const tp_gemm_block *block, int64_t p, int64_t q)
{
    const tp_gemm_plan *plan = block->plan;
    int64_t across = tp_gemm_tiles_across(plan);
    int64_t i = block->i0 / plan->kernel->rows + p, j = block->j0 / plan->kernel->cols + q;
    return block->squares && block->is_last ? block->squares + i * across + j : NULL;
}

/* A panel, or a part of one, that was packed into lines. */
static inline tp_gemm_lines tp_gemm_packed_lines(const tp_gemm_plan *plan, const char *panel)
{
    return (tp_gemm_lines){panel, TP_GEMM_ALIGN, (int64_t)TP_GEMM_ALIGN * plan->kernel->rows};
}

/* Are steps of k whole, with what a row has behind its last?  Not always in a part of a larger run,
 * whose plan it has: a step that is not whole would read past the end of a row. */
static inline bool tp_gemm_is_whole(const tp_gemm_block *block)
{
    return block->k_padded - block->nk <= block->plan->a.padding;
}

/* Panel p of A from k on, where it lies. */
static inline tp_gemm_lines tp_gemm_source_lines(const tp_gemm_block *block, int64_t p, int64_t k)
{
    const tp_gemm_operand *a = &block->plan->a;
    int64_t element = (int64_t)tp_dtype_size(a->dtype);
    int64_t x = block->i0 + p * block->plan->kernel->rows;
    const char *at = (const char *)a->data + (x * a->ld + block->k0 + k) * element;
    return (tp_gemm_lines){at, a->ld * element, TP_GEMM_ALIGN};
}

/* k0 .. k0+nk-1 (relative to the block; a multiple of k_round) of panels p0 .. p1-1. */
static inline void tp_gemm_pack(const tp_gemm_block *block, bool is_a, void *to, int64_t p0,
                                int64_t p1, int64_t k0, int64_t nk)
{
    const tp_gemm_plan *plan = block->plan;
    const tp_gemm_cut *cut = is_a ? &block->rows : &block->cols;
    tp_gemm_part part = {
        .x0 = (is_a ? block->i0 : block->j0) + p0 * cut->width,
        .nx = TP_MIN(p1 * cut->width, cut->total) - p0 * cut->width,
        .k0 = block->k0 + k0,
        .nk = TP_MIN(nk, block->nk - k0),
        .k_padded = nk,
        .stride = is_a ? plan->a_stride : plan->b_stride,
    };
    if (is_a)
        plan->kernel->pack_a(to, &plan->a, &part);
    else
        plan->kernel->pack_b(to, &plan->b, &part);
}

/* The tiles of A panels p0 .. p1-1 with B panels q0 .. q1-1, by a kernel that has tiles(). */
void tp_gemm_compute_tiles(const tp_gemm_block *block, int64_t p0, int64_t p1, int64_t q0,
                           int64_t q1);

#endif
