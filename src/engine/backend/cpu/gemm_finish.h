/* gemm_finish.h - from f32 sums to elements of C: bias, accumulation, GELU, rounding.
 *
 * Plain loops that the compiler vectorises, but for GELU; every kernel file includes them and so
 * gets them in its own instruction set.  Nothing here calls the C library. */
#ifndef TP_ENGINE_BACKEND_CPU_GEMM_FINISH_H
#define TP_ENGINE_BACKEND_CPU_GEMM_FINISH_H

#include "engine/backend/cpu/gemm_gelu.h"

GEMM_INLINE void finish_load(float *to, const void *from, tp_dtype dtype, int64_t at, int n)
{
    if (dtype == TP_DTYPE_F32) {
        memcpy(to, (const float *)from + at, (size_t)n * sizeof(float));
        return;
    }
    const uint16_t *h = (const uint16_t *)from + at;
    for (int j = 0; j < n; j++)
        to[j] = GEMM_HALF_TO_F32(h[j]);
}

GEMM_INLINE void finish_store(void *to, tp_dtype dtype, int64_t at, const float *from, int n)
{
    if (dtype == TP_DTYPE_F32) {
        memcpy((float *)to + at, from, (size_t)n * sizeof(float));
        return;
    }
    uint16_t *h = (uint16_t *)to + at;
    for (int j = 0; j < n; j++)
        h[j] = GEMM_F32_TO_HALF(from[j]);
}

GEMM_INLINE void finish_row(const tp_gemm *g, const float *acc, int64_t at, int64_t j0, int n,
                            bool accumulate)
{
    float value[TP_GEMM_MAX_COLS], other[TP_GEMM_MAX_COLS];
    for (int j = 0; j < n; j++)
        value[j] = acc[j];
    if (g->bias) {
        finish_load(other, g->bias, g->bias_dtype, j0, n);
        for (int j = 0; j < n; j++)
            value[j] += other[j];
    }
    if (accumulate) {
        finish_load(other, g->c, g->c_dtype, at, n);
        for (int j = 0; j < n; j++)
            value[j] += other[j];
    }
    if (g->pre)
        finish_store(g->pre, g->c_dtype, at, value, n);
    for (int j = 0; g->epilogue != TP_GEMM_EPILOGUE_NONE && j < n; j += VF_N) {
        int left = n - j;
        if (left >= VF_N)
            vf_store(value + j, finish_gelu(g, vf_load(value + j)));
        else
            vf_store_n(value + j, left, finish_gelu(g, vf_load_n(value + j, left)));
    }
    finish_store(g->c, g->c_dtype, at, value, n);
}

/* `full` is the kernel's tile width: a constant trip count for nearly all tiles. */
GEMM_INLINE void finish_tile(const tp_gemm *g, const float *acc, int64_t ld_acc, int64_t i0,
                             int rows, int64_t j0, int cols, bool accumulate, const int full)
{
    bool is_plain = !g->bias && !accumulate && !g->pre && g->epilogue == TP_GEMM_EPILOGUE_NONE;
    for (int i = 0; i < rows; i++) {
        const float *row = acc + i * ld_acc;
        int64_t at = (i0 + i) * g->ldc + j0;
        if (is_plain && cols == full)
            finish_store(g->c, g->c_dtype, at, row, full);
        else if (cols == full)
            finish_row(g, row, at, j0, full, accumulate);
        else
            finish_row(g, row, at, j0, cols, accumulate);
    }
}

#endif
