/* The loops are written for the vectoriser: no branches, integer arithmetic on the
 * bits, memcpy for loads that may be unaligned.  Conversion and the search for
 * non-finite values alternate in blocks that stay in the first-level cache. */
#include "engine/model/convert.h"

#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "base/platform.h"

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

enum { BLOCK = 2048 };

bool tp_convert_is_float(tp_dtype dtype)
{
    return dtype == TP_DTYPE_F32 || dtype == TP_DTYPE_BF16 || dtype == TP_DTYPE_F16 ||
           dtype == TP_DTYPE_F64;
}

/* The thread's state of floating point may have denormals as zeros, or round otherwise: numbers
 * from files and to files are converted exactly and to nearest even all the same. */
#if defined(__SSE__)
static unsigned set_exact(void)
{
    unsigned state = _mm_getcsr();
    _mm_setcsr(0x1f80);
    return state;
}

static void restore(unsigned state) { _mm_setcsr(state); }
#else
static unsigned set_exact(void) { return 0; }
static void restore(unsigned state) { (void)state; }
#endif

static uint32_t bits_of(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

static bool all_finite(const float *x, size_t n)
{
    uint32_t bad = 0;
    for (size_t i = 0; i < n; i++)
        bad |= (uint32_t)((bits_of(x[i]) & 0x7f800000u) == 0x7f800000u);
    return !bad;
}

static void block_to_f32(const char *src, tp_dtype dtype, float *restrict out, size_t n)
{
    switch (dtype) {
    case TP_DTYPE_F32:
        memcpy(out, src, n * sizeof *out);
        return;
    case TP_DTYPE_BF16:
        for (size_t i = 0; i < n; i++) {
            uint16_t half;
            memcpy(&half, src + 2 * i, sizeof half);
            out[i] = tp_bf16_to_f32(half);
        }
        return;
    case TP_DTYPE_F16:
        for (size_t i = 0; i < n; i++) {
            uint16_t half;
            memcpy(&half, src + 2 * i, sizeof half);
            out[i] = tp_f16_to_f32(half);
        }
        return;
    default:
        TP_ASSERT(dtype == TP_DTYPE_F64);
        for (size_t i = 0; i < n; i++) {
            double wide;
            memcpy(&wide, src + 8 * i, sizeof wide);
            out[i] = (float)wide;
        }
    }
}

bool tp_convert_to_f32(const void *src, tp_dtype dtype, float *out, size_t n)
{
    const char *bytes = src;
    size_t size = tp_dtype_size(dtype);
    bool finite = true;
    unsigned state = set_exact();
    for (size_t i = 0; i < n; i += BLOCK) {
        size_t count = TP_MIN(n - i, (size_t)BLOCK);
        block_to_f32(bytes + i * size, dtype, out + i, count);
        finite &= all_finite(out + i, count);
    }
    restore(state);
    return finite;
}

static void from_f32(const float *src, tp_dtype dtype, void *out, size_t n)
{
    switch (dtype) {
    case TP_DTYPE_F32:
        memcpy(out, src, n * sizeof *src);
        return;
    case TP_DTYPE_BF16:
        for (size_t i = 0; i < n; i++)
            ((tp_bf16 *)out)[i] = tp_f32_to_bf16(src[i]);
        return;
    case TP_DTYPE_F16:
        for (size_t i = 0; i < n; i++)
            ((uint16_t *)out)[i] = tp_f32_to_f16(src[i]);
        return;
    default:
        TP_ASSERT(dtype == TP_DTYPE_F64);
        for (size_t i = 0; i < n; i++)
            ((double *)out)[i] = (double)src[i];
    }
}

void tp_convert_from_f32(const float *src, tp_dtype dtype, void *out, size_t n)
{
    unsigned state = set_exact();
    from_f32(src, dtype, out, n);
    restore(state);
}
