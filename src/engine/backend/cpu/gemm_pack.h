/* gemm_pack.h - packing of panels in plain C, to f32, one k at a time (depth 1).
 *
 * For the kernels without packing instructions of their own.  bf16 widens here. */
#ifndef TP_ENGINE_BACKEND_CPU_GEMM_PACK_H
#define TP_ENGINE_BACKEND_CPU_GEMM_PACK_H

#include "engine/backend/cpu/gemm_kernel.h"

#define PACK_INLINE static inline __attribute__((always_inline))

/* Walk k in blocks so that the strided side stays in the nearest cache. */
enum { PACK_K_BLOCK = 64 };

PACK_INLINE void pack_lanes_f32(float *panel, const float *src, int64_t x_stride, int64_t k_stride,
                                const tp_gemm_part *part)
{
    for (int64_t k0 = 0; k0 < part->nk; k0 += PACK_K_BLOCK) {
        int64_t k1 = k0 + PACK_K_BLOCK < part->nk ? k0 + PACK_K_BLOCK : part->nk;
        if (k_stride == 1) {
            for (int x = 0; x < part->nx; x++)
                for (int64_t k = k0; k < k1; k++)
                    panel[k * part->width + x] = src[x * x_stride + k];
        } else {
            for (int64_t k = k0; k < k1; k++)
                for (int x = 0; x < part->nx; x++)
                    panel[k * part->width + x] = src[k * k_stride + x];
        }
    }
}

PACK_INLINE void pack_lanes_bf16(float *panel, const tp_bf16 *src, int64_t x_stride,
                                 int64_t k_stride, const tp_gemm_part *part)
{
    for (int64_t k0 = 0; k0 < part->nk; k0 += PACK_K_BLOCK) {
        int64_t k1 = k0 + PACK_K_BLOCK < part->nk ? k0 + PACK_K_BLOCK : part->nk;
        if (k_stride == 1) {
            for (int x = 0; x < part->nx; x++)
                for (int64_t k = k0; k < k1; k++)
                    panel[k * part->width + x] = tp_bf16_to_f32(src[x * x_stride + k]);
        } else {
            for (int64_t k = k0; k < k1; k++)
                for (int x = 0; x < part->nx; x++)
                    panel[k * part->width + x] = tp_bf16_to_f32(src[k * k_stride + x]);
        }
    }
}

PACK_INLINE void pack_lanes(void *panel, const tp_gemm_operand *op, const tp_gemm_part *part)
{
    float *to = panel;
    int64_t x_stride = op->k_contiguous ? op->ld : 1;
    int64_t k_stride = op->k_contiguous ? 1 : op->ld;
    int64_t first = part->x0 * x_stride + part->k0 * k_stride;
    if (op->dtype == TP_DTYPE_F32)
        pack_lanes_f32(to, (const float *)op->data + first, x_stride, k_stride, part);
    else
        pack_lanes_bf16(to, (const tp_bf16 *)op->data + first, x_stride, k_stride, part);
    for (int64_t k = 0; k < part->nk; k++)
        for (int x = part->nx; x < part->width; x++)
            to[k * part->width + x] = 0.0f;
}

#endif
