/* wire.c - formats of gradients between ranks, block by block. */
#include "engine/exec/wire.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/platform.h"
#include "engine/device/dtype.h"

enum { HALVES = 16, CODES = 128, LARGEST = TP_WIRE_LARGEST_BLOCK };

/* ---- fp16, bf16 ---- */

static void encode_fp16(const tp_wire *wire, const float *x, char *out)
{
    (void)wire;
    tp_f16 h[HALVES];
    for (int i = 0; i < HALVES; i++)
        h[i] = tp_f32_to_f16(x[i]);
    memcpy(out, h, sizeof h);
}

static void decode_fp16(const tp_wire *wire, const char *in, float *ret)
{
    (void)wire;
    tp_f16 h[HALVES];
    memcpy(h, in, sizeof h);
    for (int i = 0; i < HALVES; i++)
        ret[i] = tp_f16_to_f32(h[i]);
}

static void encode_bf16(const tp_wire *wire, const float *x, char *out)
{
    (void)wire;
    tp_bf16 h[HALVES];
    for (int i = 0; i < HALVES; i++)
        h[i] = tp_f32_to_bf16(x[i]);
    memcpy(out, h, sizeof h);
}

static void decode_bf16(const tp_wire *wire, const char *in, float *ret)
{
    (void)wire;
    tp_bf16 h[HALVES];
    memcpy(h, in, sizeof h);
    for (int i = 0; i < HALVES; i++)
        ret[i] = tp_bf16_to_f32(h[i]);
}

/* ---- int8 ---- */

static uint32_t magnitude_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits & 0x7fffffffu;
}

/* Magnitudes compare as integers; a NaN is above all numbers. */
static uint32_t largest_of(const float *x, int n)
{
    uint32_t most = 0;
    for (int i = 0; i < n; i++)
        most = TP_MAX(most, magnitude_of(x[i]));
    return most;
}

static void encode_int8(const tp_wire *wire, const float *x, char *out)
{
    (void)wire;
    const float to_integers = 12582912.0f; /* 1.5 * 2^23: the sum has no bits below 1 */
    uint32_t largest = largest_of(x, CODES);
    float scale = largest >= 0x7f800000u ? NAN : tp_float_of_bits(largest) / 127.0f;
    float inverse = scale >= FLT_MIN ? 1.0f / scale : 0;
    int8_t codes[CODES];
    if (scale < FLT_MIN)
        scale = 0;
    for (int i = 0; i < CODES; i++) {
        float rounded = inverse == 0 ? 0 : (x[i] * inverse + to_integers) - to_integers;
        codes[i] = (int8_t)rounded;
    }
    memcpy(out, &scale, sizeof scale);
    memcpy(out + sizeof scale, codes, sizeof codes);
}

static void decode_int8(const tp_wire *wire, const char *in, float *ret)
{
    (void)wire;
    float scale;
    int8_t codes[CODES];
    memcpy(&scale, in, sizeof scale);
    memcpy(codes, in + sizeof scale, sizeof codes);
    for (int i = 0; i < CODES; i++)
        ret[i] = scale * (float)codes[i];
}

/* ---- topk ---- */

static int count_from(const uint32_t *magnitudes, uint32_t least)
{
    int n = 0;
    for (int i = 0; i < LARGEST; i++)
        n += magnitudes[i] >= least;
    return n;
}

/* The largest magnitude that at least `keep` elements reach. */
static uint32_t find_threshold(const uint32_t *magnitudes, int keep)
{
    uint32_t threshold = 0;
    for (uint32_t bit = 1u << 30; bit; bit >>= 1)
        if (count_from(magnitudes, threshold | bit) >= keep)
            threshold |= bit;
    return threshold;
}

static void encode_topk(const tp_wire *wire, const float *x, char *out)
{
    uint32_t magnitudes[LARGEST];
    for (int i = 0; i < LARGEST; i++)
        magnitudes[i] = magnitude_of(x[i]);
    uint32_t threshold = find_threshold(magnitudes, wire->keep);
    int equal = wire->keep - count_from(magnitudes, threshold + 1), n = 0;
    for (int i = 0; i < LARGEST && n < wire->keep; i++) {
        if (magnitudes[i] < threshold || (magnitudes[i] == threshold && equal-- <= 0))
            continue;
        uint8_t place = (uint8_t)i;
        memcpy(out + n, &place, 1);
        memcpy(out + wire->keep + (size_t)n * sizeof(float), &x[i], sizeof(float));
        n++;
    }
}

static void decode_topk(const tp_wire *wire, const char *in, float *ret)
{
    memset(ret, 0, LARGEST * sizeof *ret);
    for (int n = 0; n < wire->keep; n++) {
        uint8_t place;
        memcpy(&place, in + n, 1);
        memcpy(&ret[place], in + wire->keep + (size_t)n * sizeof(float), sizeof(float));
    }
}

/* ---- the table ---- */

static const struct {
    const char *name;
    size_t block, bytes; /* bytes of what is kept, for topk */
    void (*encode)(const tp_wire *wire, const float *x, char *out);
    void (*decode)(const tp_wire *wire, const char *in, float *ret);
} formats[TP_WIRES] = {
    [TP_WIRE_PLAIN] = {"none", 1, sizeof(float), NULL, NULL},
    [TP_WIRE_FP16] = {"fp16", HALVES, HALVES * sizeof(tp_f16), encode_fp16, decode_fp16},
    [TP_WIRE_BF16] = {"bf16", HALVES, HALVES * sizeof(tp_bf16), encode_bf16, decode_bf16},
    [TP_WIRE_INT8] = {"int8", CODES, sizeof(float) + CODES, encode_int8, decode_int8},
    [TP_WIRE_TOPK] = {"topk", LARGEST, 1 + sizeof(float), encode_topk, decode_topk},
};

const char *tp_wire_name(tp_wire_kind kind) { return formats[kind].name; }

size_t tp_wire_block(const tp_wire *wire) { return formats[wire->kind].block; }

size_t tp_wire_block_bytes(const tp_wire *wire)
{
    return formats[wire->kind].bytes * (wire->kind == TP_WIRE_TOPK ? (size_t)wire->keep : 1);
}

void tp_wire_encode(const tp_wire *wire, const float *x, size_t n, void *out)
{
    size_t block = tp_wire_block(wire), bytes = tp_wire_block_bytes(wire), whole = n / block;
    char *to = out;
    for (size_t i = 0; i < whole; i++)
        formats[wire->kind].encode(wire, x + i * block, to + i * bytes);
    if (whole * block < n) {
        float last[TP_WIRE_LARGEST_BLOCK] = {0};
        memcpy(last, x + whole * block, (n - whole * block) * sizeof *last);
        formats[wire->kind].encode(wire, last, to + whole * bytes);
    }
}

void tp_wire_decode(const tp_wire *wire, const void *in, float *ret, size_t n)
{
    size_t block = tp_wire_block(wire), bytes = tp_wire_block_bytes(wire), whole = n / block;
    const char *from = in;
    for (size_t i = 0; i < whole; i++)
        formats[wire->kind].decode(wire, from + i * bytes, ret + i * block);
    if (whole * block < n) {
        float last[TP_WIRE_LARGEST_BLOCK];
        formats[wire->kind].decode(wire, from + whole * bytes, last);
        memcpy(ret + whole * block, last, (n - whole * block) * sizeof *ret);
    }
}
