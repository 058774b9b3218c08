/* compressed.c - activations in 8 bits, and back. */
#include <float.h>

#include "engine/backend/ref/kernels.h"
#include "engine/backend/ref/load.h"

/* Of a row: NaN where a number is not finite, 0 where all are nearly zero. */
static float scale_of(const tp_operand *x, int64_t r)
{
    float most = 0, sum = 0;
    for (int64_t c = 0; c < x->dim[1]; c++) {
        float value = (float)ref_load(x, r, c);
        most = fmaxf(most, fabsf(value));
        sum += 0 * value;
    }
    float scale = most / 127;
    return isnan(sum) ? NAN : scale < FLT_MIN ? 0 : scale;
}

TP_REF_KERNEL(compress)
{
    const tp_operand *x = &launch->in[0], *codes = &launch->out[0], *scales = &launch->out[1];
    for (int64_t r = 0; r < x->dim[0]; r++) {
        float scale = scale_of(x, r);
        bool has_codes = scale > 0;
        for (int64_t c = 0; c < x->dim[1] && is_bound(codes); c++) {
            float code = has_codes ? rintf((float)ref_load(x, r, c) / scale) : 0;
            ref_store(codes, r, c, (double)(128 + code));
        }
        if (is_bound(scales))
            ref_store(scales, r, 0, (double)scale);
    }
}

TP_REF_KERNEL(restore)
{
    const tp_operand *codes = &launch->in[0], *scales = &launch->in[1], *y = &launch->out[0];
    ref_each (y, r, c) {
        float code = (float)ref_load(codes, r, c) - 128;
        ref_store(y, r, c, (double)(code * (float)ref_load(scales, r, 0)));
    }
}
