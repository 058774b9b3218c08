/* quantised.c - the codes of bitsandbytes' NF4, and of 8 bits in blocks. */
#include "engine/device/quantised.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/platform.h"

/* Quantiles of the normal distribution, as the paper's appendix and bitsandbytes have them. */
const float tp_nf4_levels[16] = {
    -1.0f,
    -0.6961928009986877f,
    -0.5250730514526367f,
    -0.39491748809814453f,
    -0.28444138169288635f,
    -0.18477343022823334f,
    -0.09105003625154495f,
    0.0f,
    0.07958029955625534f,
    0.16093020141124725f,
    0.24611230194568634f,
    0.33791524171829224f,
    0.44070982933044434f,
    0.5626170039176941f,
    0.7229568362236023f,
    1.0f,
};

/* ---- lengths ---- */

static int64_t parts(int64_t n, int64_t size) { return (n + size - 1) / size; }

int64_t tp_int8_scales(int64_t n) { return parts(n, TP_INT8_BLOCK); }
int64_t tp_nf4_bytes(int64_t n) { return parts(n, 2); }
int64_t tp_nf4_sizes(int64_t n) { return parts(n, TP_NF4_BLOCK); }
int64_t tp_nf4_groups(int64_t n) { return parts(parts(n, TP_NF4_BLOCK), TP_NF4_GROUP) + 1; }

/* ---- encoding ---- */

static float largest(const float *x, int64_t n)
{
    float most = 0;
    for (int64_t i = 0; i < n; i++)
        most = fabsf(x[i]) > most ? fabsf(x[i]) : most; /* as fmaxf(): NaN is passed over */
    return most;
}

int8_t tp_int8_code(float x, float inverse)
{
    float code = roundf(x * inverse);
    if (isnan(code))
        return 0;
    return (int8_t)(code > 127 ? 127 : code < -127 ? -127 : code);
}

void tp_int8_encode(const float *x, int64_t n, int8_t *codes, float *scales)
{
    for (int64_t begin = 0; begin < n; begin += TP_INT8_BLOCK) {
        int64_t end = TP_MIN(begin + TP_INT8_BLOCK, n);
        float scale = largest(x + begin, end - begin) / 127;
        float inverse = scale != 0 ? 1 / scale : 0;
        scales[begin / TP_INT8_BLOCK] = scale;
        for (int64_t i = begin; i < end; i++)
            codes[i] = tp_int8_code(x[i], inverse);
    }
}

/* The nearest level of each; of two as near the lower one.  As many middles lie below a number as
 * its level has before it: counted without a branch, many numbers at once. */
static void nearest_levels(const float x[TP_NF4_BLOCK], int32_t code[TP_NF4_BLOCK])
{
    memset(code, 0, TP_NF4_BLOCK * sizeof *code);
    for (int k = 0; k < 15; k++) {
        const float middle = (tp_nf4_levels[k] + tp_nf4_levels[k + 1]) / 2;
        for (int i = 0; i < TP_NF4_BLOCK; i++)
            code[i] += x[i] > middle;
    }
}

static float clamp(float x) { return x < -1 ? -1 : x > 1 ? 1 : x; }

/* Sizes of blocks in 8 bits, around their mean. */
static void encode_sizes(float *largest_of, int64_t n, uint8_t *sizes, float *groups)
{
    const tp_dynamic_map *map = tp_dynamic_map_signed();
    int64_t n_groups = parts(n, TP_NF4_GROUP);
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)largest_of[i];
    float offset = (float)(sum / (double)n);
    for (int64_t i = 0; i < n; i++)
        largest_of[i] -= offset;
    for (int64_t g = 0; g < n_groups; g++) {
        int64_t begin = g * TP_NF4_GROUP, end = TP_MIN(begin + TP_NF4_GROUP, n);
        groups[g] = largest(largest_of + begin, end - begin);
        float inverse = groups[g] != 0 ? 1 / groups[g] : 0;
        for (int64_t i = begin; i < end; i++)
            sizes[i] = tp_dynamic_code(map, clamp(largest_of[i] * inverse));
    }
    groups[n_groups] = offset;
}

void tp_nf4_encode(const float *x, int64_t n, uint8_t *codes, uint8_t *sizes, float *groups)
{
    int64_t n_blocks = parts(n, TP_NF4_BLOCK);
    TP_FREED float *largest_of = malloc((size_t)n_blocks * sizeof *largest_of);
    TP_ASSERT(largest_of);
    for (int64_t block = 0; block < n_blocks; block++) {
        int64_t begin = block * TP_NF4_BLOCK, end = TP_MIN(begin + TP_NF4_BLOCK, n);
        float most = largest(x + begin, end - begin), inverse = most != 0 ? 1 / most : 0;
        largest_of[block] = most;
        float scaled[TP_NF4_BLOCK] = {0};
        int32_t code[TP_NF4_BLOCK];
        for (int64_t i = begin; i < end; i++)
            scaled[i - begin] = clamp(x[i] * inverse);
        nearest_levels(scaled, code);
        for (int64_t i = begin; i < end; i += 2)
            codes[i / 2] = (uint8_t)(code[i - begin] << 4 | code[i - begin + 1]);
    }
    encode_sizes(largest_of, n_blocks, sizes, groups);
}

/* ---- decoding ---- */

void tp_int8_decode(const int8_t *codes, const float *scales, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = (float)codes[i] * scales[i / TP_INT8_BLOCK];
}

void tp_nf4_decode(const uint8_t *codes, const uint8_t *sizes, const float *groups, int64_t n,
                   float *out)
{
    const tp_dynamic_map *map = tp_dynamic_map_signed();
    int64_t n_groups = tp_nf4_groups(n);
    for (int64_t begin = 0; begin < n; begin += TP_NF4_BLOCK) {
        float size = tp_nf4_size(sizes, groups, n_groups, map, begin / TP_NF4_BLOCK);
        for (int64_t i = begin; i < TP_MIN(begin + TP_NF4_BLOCK, n); i++)
            out[i] = tp_nf4_levels[i % 2 ? codes[i / 2] & 15 : codes[i / 2] >> 4] * size;
    }
}
