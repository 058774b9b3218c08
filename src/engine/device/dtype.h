/* dtype.h - element types of tensors, and the two conversions that everything needs. */
#ifndef TP_ENGINE_DEVICE_DTYPE_H
#define TP_ENGINE_DEVICE_DTYPE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef enum {
    TP_DTYPE_F32,
    TP_DTYPE_BF16,
    TP_DTYPE_F16,
    TP_DTYPE_F64,
    TP_DTYPE_I32,
    TP_DTYPE_I64,
    TP_DTYPE_U8,
    TP_DTYPE_COUNT
} tp_dtype;

typedef uint16_t tp_bf16; /* the upper half of a binary32 */

size_t tp_dtype_size(tp_dtype dtype);
const char *tp_dtype_name(tp_dtype dtype);                 /* "f32", "bf16", ... */
int tp_dtype_parse(const char *name, tp_dtype *ret_dtype); /* 1 when known */

static inline float tp_bf16_to_f32(tp_bf16 h)
{
    uint32_t bits = (uint32_t)h << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* Round to nearest even; a NaN stays a (quiet) NaN. */
static inline tp_bf16 tp_f32_to_bf16(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (tp_bf16)((bits >> 16) | 0x40u);
    bits += 0x7fffu + ((bits >> 16) & 1u);
    return (tp_bf16)(bits >> 16);
}

#endif
