/* transpose.h - a matrix of 32-bit elements turned, in the widest form there is. */
#ifndef TP_ENGINE_BACKEND_CPU_TRANSPOSE_H
#define TP_ENGINE_BACKEND_CPU_TRANSPOSE_H

#include "engine/backend/cpu/vec.h"

#if defined(__AVX512F__)
#include "engine/backend/cpu/transpose_avx512.h"
#else
#include "engine/backend/cpu/transpose_portable.h"
#endif

#endif
