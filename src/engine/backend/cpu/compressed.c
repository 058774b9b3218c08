/* compressed.c - activations in 8 bits while they wait for the backward pass, row by row. */
#include "engine/backend/cpu/kernel.h"
#include "engine/backend/cpu/vec.h"

#include <float.h>
#include <math.h>

enum { PIECE = 256 }; /* elements of a row at a time: whole vectors */

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static uint8_t *codes_at(const tp_operand *codes, int64_t r)
{
    return (uint8_t *)codes->data + r * codes->stride;
}

/* NaN where a number is not finite, 0 where all are nearly zero. */
VF_INLINE float scale_of(const void *row, bool half, int64_t n)
{
    vf most = vf_zero(), sum = vf_zero();
    for (int64_t c = 0; c < n; c += VF_N) {
        vf x = vf_get_at(row, half, c, n - c);
        most = vf_max(vf_abs(x), most);
        sum = vf_fma(x, vf_zero(), sum);
    }
    float nothing = vf_sum(sum), scale = vf_largest(most) / 127;
    return nothing != 0 ? NAN : scale < FLT_MIN ? 0 : scale;
}

/* Added to a whole number, its last byte is the number's and 128 more. */
VF_INLINE void compress_row(const void *row, bool half, int64_t n, float scale, uint8_t *codes)
{
    float shifted[PIECE];
    uint32_t bits[PIECE];
    for (int64_t first = 0; first < n; first += PIECE) {
        int64_t m = least(n - first, PIECE);
        for (int64_t c = 0; c < m; c += VF_N) {
            vf parts = vf_round(vf_get_at(row, half, first + c, m - c) / vf_set(scale));
            vf_store(shifted + c, parts + vf_set(0x1.8p23f + 128));
        }
        memcpy(bits, shifted, (size_t)m * sizeof *bits);
        for (int64_t c = 0; c < m; c++)
            codes[first + c] = (uint8_t)bits[c];
    }
}

static void compress_range(const void *context, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const tp_launch *launch = context;
    const tp_operand *x = &launch->in[0], *codes = &launch->out[0];
    int64_t n = x->dim[1];
    for (int64_t r = begin; r < end; r++) {
        float scale = scale_of(row_at(x, r), is_half(x), n);
        if (is_bound(&launch->out[1]))
            ((float *)launch->out[1].data)[r] = scale;
        if (is_bound(codes) && scale > 0)
            compress_row(row_at(x, r), is_half(x), n, scale, codes_at(codes, r));
        else if (is_bound(codes))
            memset(codes_at(codes, r), 128, (size_t)n);
    }
}

static void compress(const tp_launch *launch)
{
    const tp_operand *x = &launch->in[0];
    tp_cpu_static(launch, x->dim[0], x->dim[0] * x->dim[1] * 5, compress_range, launch);
}

static bool compress_accepts(const tp_launch *launch) { return are_floats(launch, 1, 0); }

TP_CPU_KERNEL(compress, .accepts = compress_accepts, .run = compress);

static void restore_range(const void *context, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const tp_launch *launch = context;
    const tp_operand *codes = &launch->in[0], *y = &launch->out[0];
    const float *scales = launch->in[1].data;
    float parts[PIECE];
    int64_t n = y->dim[1];
    for (int64_t r = begin; r < end; r++)
        for (int64_t first = 0; first < n; first += PIECE) {
            int64_t m = least(n - first, PIECE);
            const uint8_t *from = codes_at(codes, r) + first;
            for (int64_t c = 0; c < m; c++)
                parts[c] = (float)((int)from[c] - 128);
            for (int64_t c = 0; c < m; c += VF_N)
                vf_put_at(row_at(y, r), is_half(y), first + c, m - c,
                          vf_get_at(parts, false, c, m - c) * vf_set(scales[r]));
        }
}

static bool restore_accepts(const tp_launch *launch)
{
    return are_floats(launch, 0, 1) && launch->in[1].dtype == TP_DTYPE_F32;
}

TP_CPU_ROWS_KERNEL(restore, restore_range, restore_accepts);
