/* gemm_finish.h - from f32 sums to elements of C: bias, accumulation, GELU, rounding.
 *
 * Plain loops that the compiler vectorises; every kernel file includes them and so
 * gets them in its own instruction set.  Nothing here calls the C library. */
#ifndef TP_ENGINE_BACKEND_CPU_GEMM_FINISH_H
#define TP_ENGINE_BACKEND_CPU_GEMM_FINISH_H

#include "engine/backend/cpu/gemm_kernel.h"

GEMM_INLINE float finish_bits_to_float(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* exp(x), relative error below 2e-7; saturates near the ends of the f32 range, NaN stays. */
GEMM_INLINE float finish_exp(float x)
{
    x = x > 88.0f ? 88.0f : x;
    x = x < -87.0f ? -87.0f : x;
    const float shifter = 0x1.8p23f; /* adding it rounds to an integer in the low bits */
    float shifted = x * 0x1.715476p0f + shifter;
    float n = shifted - shifter;
    float r = x - n * 0.693359375f + n * 2.12194440e-4f; /* ln 2 in two pieces */
    float p = 1.0f / 5040;
    p = p * r + 1.0f / 720;
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    uint32_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    return p * finish_bits_to_float((bits + 127u) << 23);
}

GEMM_INLINE float finish_gelu_tanh(float x)
{
    /* (1 + tanh u) / 2 = 1 / (1 + exp(-2u)) */
    float u2 = x * (1.595769122f + 0.071354816f * x * x);
    return x / (1.0f + finish_exp(-u2));
}

/* erfc by the Chebyshev fit of Numerical Recipes (erfcc), relative error 1.2e-7. */
GEMM_INLINE float finish_gelu_erf(float x)
{
    float z = (x < 0.0f ? -x : x) * 0.70710678f;
    z = z > 9.0f ? 9.0f : z; /* erfc is zero in f32 there, and infinity stays out of the sum */
    float t = 1.0f / (1.0f + 0.5f * z);
    float p = 0.17087277f;
    p = p * t - 0.82215223f;
    p = p * t + 1.48851587f;
    p = p * t - 1.13520398f;
    p = p * t + 0.27886807f;
    p = p * t - 0.18628806f;
    p = p * t + 0.09678418f;
    p = p * t + 0.37409196f;
    p = p * t + 1.00002368f;
    p = p * t - 1.26551223f;
    float half_erfc = 0.5f * t * finish_exp(p - z * z);
    return x * (x < 0.0f ? half_erfc : 1.0f - half_erfc);
}

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
    if (g->epilogue == TP_GEMM_EPILOGUE_GELU_TANH) {
        for (int j = 0; j < n; j++)
            value[j] = finish_gelu_tanh(value[j]);
    } else if (g->epilogue == TP_GEMM_EPILOGUE_GELU_ERF) {
        for (int j = 0; j < n; j++)
            value[j] = finish_gelu_erf(value[j]);
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
