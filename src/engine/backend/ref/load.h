/* load.h - one element of an operand, whatever its dtype.
 *
 * The ref kernels say what an op means; they read and write single elements
 * through these functions and compute in double in between, so that the only
 * rounding is that of the stored output.  An operand of f64 makes the whole op
 * exact to double precision: gradients are checked that way.
 *
 * Element (row, column) lies `row * stride + column` elements from `data`; a
 * vector has its elements in rows, so (i, 0) is its element i. */
#ifndef TP_ENGINE_BACKEND_REF_LOAD_H
#define TP_ENGINE_BACKEND_REF_LOAD_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "engine/backend/backend.h"

/* An absent optional input, or an output that nobody reads, has no data. */
static inline bool is_bound(const tp_operand *operand) { return operand->data != NULL; }

static inline double ref_f16_to_f64(uint16_t half)
{
    int exponent = (half >> 10) & 31;
    double fraction = half & 1023;
    double magnitude = exponent == 0    ? ldexp(fraction, -24)
                       : exponent == 31 ? (fraction == 0 ? INFINITY : NAN)
                                        : ldexp(fraction + 1024, exponent - 25);
    return half & 0x8000 ? -magnitude : magnitude;
}

/* Round to nearest even: the quantum is 2^-24 below 2^-14 and 2^-10 of the binade above. */
static inline uint16_t ref_f64_to_f16(double value)
{
    unsigned sign = signbit(value) ? 0x8000u : 0u;
    double magnitude = fabs(value);
    if (isnan(magnitude))
        return (uint16_t)(sign | 0x7e00u);
    if (magnitude >= 65520) /* halfway to the first value past the largest, 65504 */
        return (uint16_t)(sign | 0x7c00u);
    int exponent = -14;
    if (magnitude >= ldexp(1, -14))
        exponent = ilogb(magnitude);
    /* Rounding up to the next binade carries into the exponent field, as it should. */
    unsigned quanta = (unsigned)nearbyint(ldexp(magnitude, 10 - exponent));
    return (uint16_t)(sign | (quanta + ((unsigned)(exponent + 14) << 10)));
}

/* Every place of an operand; none of one that is not bound. */
#define ref_each(operand, r, c)                                          \
    for (int64_t r = 0; is_bound(operand) && r < (operand)->dim[0]; r++) \
        for (int64_t c = 0; c < (operand)->dim[1]; c++)

static inline double ref_load(const tp_operand *operand, int64_t row, int64_t column)
{
    int64_t i = row * operand->stride + column;
    switch (operand->dtype) {
    case TP_DTYPE_F32:
        return (double)((const float *)operand->data)[i];
    case TP_DTYPE_BF16:
        return (double)tp_bf16_to_f32(((const tp_bf16 *)operand->data)[i]);
    case TP_DTYPE_F16:
        return ref_f16_to_f64(((const uint16_t *)operand->data)[i]);
    case TP_DTYPE_U8:
        return (double)((const uint8_t *)operand->data)[i];
    default:
        TP_ASSERT(operand->dtype == TP_DTYPE_F64);
        return ((const double *)operand->data)[i];
    }
}

static inline void ref_store(const tp_operand *operand, int64_t row, int64_t column, double value)
{
    int64_t i = row * operand->stride + column;
    switch (operand->dtype) {
    case TP_DTYPE_F32:
        ((float *)operand->data)[i] = (float)value;
        return;
    case TP_DTYPE_BF16:
        ((tp_bf16 *)operand->data)[i] = tp_f32_to_bf16((float)value);
        return;
    case TP_DTYPE_F16:
        ((uint16_t *)operand->data)[i] = ref_f64_to_f16(value);
        return;
    case TP_DTYPE_U8: /* a code: a whole number below 256 */
        ((uint8_t *)operand->data)[i] = (uint8_t)value;
        return;
    default:
        TP_ASSERT(operand->dtype == TP_DTYPE_F64);
        ((double *)operand->data)[i] = value;
    }
}

/* What a store to `dtype` and a load would give. */
static inline double ref_round(tp_dtype dtype, double value)
{
    double storage = 0;
    tp_operand cell = {.data = &storage, .dtype = dtype, .rank = 1, .dim = {1, 1}, .stride = 1};
    ref_store(&cell, 0, 0, value);
    return ref_load(&cell, 0, 0);
}

static inline int64_t ref_index(const tp_operand *operand, int64_t i)
{
    if (operand->dtype == TP_DTYPE_I64)
        return ((const int64_t *)operand->data)[i];
    TP_ASSERT(operand->dtype == TP_DTYPE_I32);
    return ((const int32_t *)operand->data)[i];
}

static inline double ref_sum_of_squares(const tp_operand *x)
{
    double sum = 0;
    ref_each (x, r, c)
        sum += ref_load(x, r, c) * ref_load(x, r, c);
    return sum;
}

/* What an accumulator held before this launch: 0 when there is none, or nothing in it yet. */
static inline double ref_accumulated(const tp_launch *launch, int input, int64_t row,
                                     int64_t column)
{
    const tp_operand *acc = &launch->in[input];
    return launch->accumulate && is_bound(acc) ? ref_load(acc, row, column) : 0;
}

#endif
