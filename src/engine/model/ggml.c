/* ggml.c - types of one level of scales, and the choice among all. */
#include "engine/model/ggml.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/platform.h"
#include "engine/device/quantised.h"
#include "engine/model/convert.h"

enum { BLOCK = 32 };

static float read_f16(const unsigned char *from)
{
    float f;
    (void)tp_convert_to_f32(from, TP_DTYPE_F16, &f, 1);
    return f;
}

static void write_f16(float f, unsigned char *to) { tp_convert_from_f32(&f, TP_DTYPE_F16, to, 1); }

/* ---- blocks of 32 ---- */

static void read_q8_0(const unsigned char *b, float *out)
{
    float d = read_f16(b);
    for (int i = 0; i < BLOCK; i++)
        out[i] = (float)(int8_t)b[2 + i] * d;
}

static void read_q4_0(const unsigned char *b, float *out)
{
    float d = read_f16(b);
    for (int i = 0; i < BLOCK / 2; i++) {
        out[i] = (float)((b[2 + i] & 15) - 8) * d;
        out[i + BLOCK / 2] = (float)((b[2 + i] >> 4) - 8) * d;
    }
}

static void read_q5_0(const unsigned char *b, float *out)
{
    float d = read_f16(b);
    uint32_t fifth;
    memcpy(&fifth, b + 2, sizeof fifth);
    for (int i = 0; i < BLOCK / 2; i++) {
        int low = (b[6 + i] & 15) | (int)(fifth >> i & 1) << 4;
        int high = b[6 + i] >> 4 | (int)(fifth >> (i + BLOCK / 2) & 1) << 4;
        out[i] = (float)(low - 16) * d;
        out[i + BLOCK / 2] = (float)(high - 16) * d;
    }
}

static void write_q8_0(const float *x, unsigned char *b)
{
    float most = 0;
    for (int i = 0; i < BLOCK; i++)
        most = fmaxf(most, fabsf(x[i]));
    float d = most / 127, inverse = d != 0 ? 1 / d : 0;
    write_f16(d, b);
    for (int i = 0; i < BLOCK; i++)
        b[2 + i] = (unsigned char)tp_int8_code(x[i], inverse);
}

/* The value of the greatest size, with its sign: it becomes the lowest code. */
static float extreme(const float *x)
{
    float most = 0, value = 0;
    for (int i = 0; i < BLOCK; i++)
        if (most < fabsf(x[i])) {
            most = fabsf(x[i]);
            value = x[i];
        }
    return value;
}

/* A scale below the smallest normal number may have no finite inverse. */
static int code(float x, float inverse, float half, int most)
{
    float q = x * inverse + half;
    return !(q > 0) ? 0 : q >= (float)most ? most : (int)q;
}

static void write_q4_0(const float *x, unsigned char *b)
{
    float d = extreme(x) / -8, inverse = d != 0 ? 1 / d : 0;
    write_f16(d, b);
    for (int i = 0; i < BLOCK / 2; i++) {
        int low = code(x[i], inverse, 8.5f, 15), high = code(x[i + BLOCK / 2], inverse, 8.5f, 15);
        b[2 + i] = (unsigned char)(low | high << 4);
    }
}

static void write_q5_0(const float *x, unsigned char *b)
{
    float d = extreme(x) / -16, inverse = d != 0 ? 1 / d : 0;
    uint32_t fifth = 0;
    write_f16(d, b);
    for (int i = 0; i < BLOCK / 2; i++) {
        unsigned low = (unsigned)code(x[i], inverse, 16.5f, 31);
        unsigned high = (unsigned)code(x[i + BLOCK / 2], inverse, 16.5f, 31);
        b[6 + i] = (unsigned char)((low & 15) | (high & 15) << 4);
        fifth |= (uint32_t)(low >> 4) << i | (uint32_t)(high >> 4) << (i + BLOCK / 2);
    }
    memcpy(b + 2, &fifth, sizeof fifth);
}

static void read_q5_1(const unsigned char *b, float *out)
{
    float d = read_f16(b), low = read_f16(b + 2);
    uint32_t fifth;
    memcpy(&fifth, b + 4, sizeof fifth);
    for (int i = 0; i < BLOCK; i++) {
        int nibble = i < BLOCK / 2 ? b[8 + i] & 15 : b[8 + i - BLOCK / 2] >> 4;
        out[i] = (float)(nibble | (int)(fifth >> i & 1) << 4) * d + low;
    }
}

static void write_q5_1(const float *x, unsigned char *b)
{
    float low = x[0], high = x[0];
    uint32_t fifth = 0;
    for (int i = 1; i < BLOCK; i++) {
        low = TP_MIN(low, x[i]);
        high = TP_MAX(high, x[i]);
    }
    float d = (high - low) / 31, inverse = d != 0 ? 1 / d : 0;
    write_f16(d, b);
    write_f16(low, b + 2);
    memset(b + 8, 0, BLOCK / 2);
    for (int i = 0; i < BLOCK; i++) {
        unsigned q = (unsigned)code(x[i] - low, inverse, 0.5f, 31);
        unsigned char *nibbles = &b[8 + i % (BLOCK / 2)];
        *nibbles = (unsigned char)(*nibbles | (q & 15) << (i < BLOCK / 2 ? 0 : 4));
        fifth |= (uint32_t)(q >> 4) << i;
    }
    memcpy(b + 4, &fifth, sizeof fifth);
}

/* ---- all types ---- */

typedef void (*reader)(const unsigned char *block, float *out);
typedef void (*writer)(const float *x, unsigned char *block);

static const struct {
    uint32_t type;
    reader read;
    writer write;
} kinds[] = {
    {TP_GGML_Q4_0, read_q4_0, write_q4_0},
    {TP_GGML_Q5_0, read_q5_0, write_q5_0},
    {TP_GGML_Q5_1, read_q5_1, write_q5_1},
    {TP_GGML_Q8_0, read_q8_0, write_q8_0},
    {TP_GGML_Q4_K, tp_ggml_read_q4_k, tp_ggml_write_q4_k},
    {TP_GGML_Q5_K, tp_ggml_read_q5_k, tp_ggml_write_q5_k},
    {TP_GGML_Q6_K, tp_ggml_read_q6_k, tp_ggml_write_q6_k},
};

/* Types of floats are converted as everywhere. */
static bool plain(uint32_t type, tp_dtype *ret)
{
    *ret = type == TP_GGML_F16 ? TP_DTYPE_F16 : type == TP_GGML_BF16 ? TP_DTYPE_BF16 : TP_DTYPE_F32;
    return type == TP_GGML_F16 || type == TP_GGML_BF16 || type == TP_GGML_F32;
}

void tp_ggml_to_f32(uint32_t type, const void *blocks, float *out, size_t n)
{
    tp_dtype dtype;
    if (plain(type, &dtype)) {
        (void)tp_convert_to_f32(blocks, dtype, out, n);
        return;
    }
    const tp_ggml_info *info = tp_ggml_info_of(type);
    const unsigned char *b = blocks;
    size_t k = 0;
    while (k < TP_COUNTOF(kinds) && kinds[k].type != type)
        k++;
    TP_ASSERT(info && k < TP_COUNTOF(kinds) && n % info->block == 0);
    for (size_t i = 0; i < n; i += info->block, b += info->bytes)
        kinds[k].read(b, out + i);
}

void tp_ggml_from_f32(uint32_t type, const float *x, void *blocks, size_t n)
{
    tp_dtype dtype;
    if (plain(type, &dtype)) {
        tp_convert_from_f32(x, dtype, blocks, n);
        return;
    }
    const tp_ggml_info *info = tp_ggml_info_of(type);
    unsigned char *b = blocks;
    size_t k = 0;
    while (k < TP_COUNTOF(kinds) && kinds[k].type != type)
        k++;
    TP_ASSERT(info && k < TP_COUNTOF(kinds) && n % info->block == 0);
    for (size_t i = 0; i < n; i += info->block, b += info->bytes)
        kinds[k].write(x + i, b);
}
