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
typedef uint16_t tp_f16;  /* a binary16 */

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

static inline float tp_float_of_bits(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* Shifted into place, the exponent of a binary16 is too small by 112.  Subnormals are whole
 * multiples of 2^-24, formed without a subnormal in between: kernels take those for zero. */
static inline float tp_f16_to_f32(tp_f16 h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, magnitude = (uint32_t)(h & 0x7fff) << 13;
    if (magnitude >= 0x0f800000u) /* infinity, NaN */
        return tp_float_of_bits(sign | 0x7f800000u | magnitude);
    if (magnitude >= 0x00800000u)
        return tp_float_of_bits(sign | (magnitude + 0x38000000u));
    float small = (float)(h & 0x3ff) * 0x1p-24f;
    return sign ? -small : small;
}

/* Round to nearest even.  Adding a number whose last bit has the weight of the target's last bit
 * lets the addition itself do so where the result is subnormal. */
static inline tp_f16 tp_f32_to_f16(float f)
{
    uint32_t bits, sum;
    memcpy(&bits, &f, sizeof bits);
    uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) /* NaN, quiet */
        return (tp_f16)(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
    if (magnitude >= 0x477ff000u) /* rounds past 65504 */
        return (tp_f16)(sign | 0x7c00);
    if (magnitude < 0x38800000u) { /* below 2^-14 */
        float shifted = tp_float_of_bits(magnitude) + 0.5f;
        memcpy(&sum, &shifted, sizeof sum);
        return (tp_f16)(sign | (sum - 0x3f000000u));
    }
    magnitude += 0xfff + (magnitude >> 13 & 1);
    return (tp_f16)(sign | (magnitude - 0x38000000u) >> 13);
}

#endif
