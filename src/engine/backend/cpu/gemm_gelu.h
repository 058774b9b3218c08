/* gemm_gelu.h - the nonlinearity of a product, of a vector of sums. */
#ifndef TP_ENGINE_BACKEND_CPU_GEMM_GELU_H
#define TP_ENGINE_BACKEND_CPU_GEMM_GELU_H

#include "engine/backend/cpu/gemm_kernel.h"
#include "engine/backend/cpu/vec_gelu.h"

GEMM_INLINE vf finish_gelu(const tp_gemm *g, vf value)
{
    bool to_half = g->c_dtype != TP_DTYPE_F32;
    if (g->epilogue == TP_GEMM_EPILOGUE_NONE)
        return value;
    if (g->epilogue == TP_GEMM_EPILOGUE_GELU_TANH)
        return vf_gelu(value, true, to_half);
    return vf_gelu(value, false, to_half);
}

#endif
