/* gemm_squares.h - the sum of the squares of a tile of C that is finished.  Included by every
 * kernel file, and so in its own instruction set. */
#ifndef TP_ENGINE_BACKEND_CPU_GEMM_SQUARES_H
#define TP_ENGINE_BACKEND_CPU_GEMM_SQUARES_H

#include "engine/backend/cpu/gemm_kernel.h"
#include "engine/backend/cpu/vec.h"

/* c[rows, cols] in f32.  A tile has few enough elements for sums in f32. */
static double squares_of_tile(const float *c, int64_t ldc, int rows, int cols)
{
    vf even = vf_zero(), odd = vf_zero();
    for (int i = 0; i < rows; i++, c += ldc) {
        int j = 0;
        for (; j + 2 * VF_N <= cols; j += 2 * VF_N) {
            vf left = vf_load(c + j), right = vf_load(c + j + VF_N);
            even = vf_fma(left, left, even);
            odd = vf_fma(right, right, odd);
        }
        for (; j < cols; j += VF_N) {
            vf x = vf_load_n(c + j, cols - j < VF_N ? cols - j : VF_N);
            even = vf_fma(x, x, even);
        }
    }
    return (double)vf_sum(even + odd);
}

#endif
