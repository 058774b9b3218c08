/* gemm_pack.h - packing of panels in plain C, to f32, one k at a time (depth 1).
 *
 * For the kernels without packing instructions of their own.  Halves widen here. */
#ifndef TP_ENGINE_BACKEND_CPU_GEMM_PACK_H
#define TP_ENGINE_BACKEND_CPU_GEMM_PACK_H

#include "engine/backend/cpu/gemm_kernel.h"

#define PACK_INLINE static inline __attribute__((always_inline))

/* Walk k in blocks so that the strided side stays in the nearest cache. */
enum { PACK_K_BLOCK = 64 };

/* panel[k][width] from nx <= width columns; element (x, k) at src[x * x_stride + k * k_stride]. */
#define DEFINE_PACK_PANEL(name, type, widen)                                                 \
    PACK_INLINE void name(float *panel, const type *src, int64_t x_stride, int64_t k_stride, \
                          int nx, int width, int64_t nk)                                     \
    {                                                                                        \
        for (int64_t k0 = 0; k0 < nk; k0 += PACK_K_BLOCK) {                                  \
            int64_t k1 = k0 + PACK_K_BLOCK < nk ? k0 + PACK_K_BLOCK : nk;                    \
            if (k_stride == 1) {                                                             \
                for (int x = 0; x < nx; x++)                                                 \
                    for (int64_t k = k0; k < k1; k++)                                        \
                        panel[k * width + x] = widen(src[x * x_stride + k]);                 \
            } else {                                                                         \
                for (int64_t k = k0; k < k1; k++)                                            \
                    for (int x = 0; x < nx; x++)                                             \
                        panel[k * width + x] = widen(src[k * k_stride + x]);                 \
            }                                                                                \
        }                                                                                    \
        for (int64_t k = 0; k < nk && nx < width; k++)                                       \
            for (int x = nx; x < width; x++)                                                 \
                panel[k * width + x] = 0.0f;                                                 \
    }

DEFINE_PACK_PANEL(pack_panel_f32, float, )
DEFINE_PACK_PANEL(pack_panel_half, uint16_t, GEMM_HALF_TO_F32)

PACK_INLINE void pack_panels_f32(void *panels, const int width, const tp_gemm_operand *op,
                                 const tp_gemm_part *part)
{
    int64_t x_stride = op->k_contiguous ? op->ld : 1;
    int64_t k_stride = op->k_contiguous ? 1 : op->ld;
    char *panel = panels;
    for (int64_t x = 0; x < part->nx; x += width, panel += part->stride) {
        int64_t at = (part->x0 + x) * x_stride + part->k0 * k_stride;
        int nx = (int)(part->nx - x < width ? part->nx - x : width);
        float *to = (float *)(void *)panel;
        if (op->dtype == TP_DTYPE_F32)
            pack_panel_f32(to, (const float *)op->data + at, x_stride, k_stride, nx, width,
                           part->nk);
        else
            pack_panel_half(to, (const uint16_t *)op->data + at, x_stride, k_stride, nx, width,
                            part->nk);
    }
}

#endif
