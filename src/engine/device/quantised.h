/* quantised.h - weights in 8 or 4 bits: how numbers become codes, and back.
 *
 * int8: blocks of 32 with an f32 scale, largest / 127; 9 bits a weight, and the error of Q8_0.
 * nf4: blocks of 64, each of 16 levels of the normal distribution times the block's largest, which
 * is itself in 8 bits, by groups of 256 with an f32 scale around a common offset (QLoRA's double
 * quantisation); 4.127 bits a weight.  Values and codes are those of bitsandbytes.
 *
 * Blocks run over a matrix row after row; the last may be short.  Codes are bytes: of nf4 element
 * 2i is the upper half of byte i, 2i + 1 the lower. */
#ifndef TP_ENGINE_DEVICE_QUANTISED_H
#define TP_ENGINE_DEVICE_QUANTISED_H

#include "engine/device/dynamic_map.h"

enum { TP_INT8_BLOCK = 32, TP_NF4_BLOCK = 64, TP_NF4_GROUP = 256 };

extern const float tp_nf4_levels[16];

/* Lengths of the parts of n weights: bytes of codes, scales; sizes, and groups with the offset
 * last. */
int64_t tp_int8_scales(int64_t n);
int64_t tp_nf4_bytes(int64_t n);
int64_t tp_nf4_sizes(int64_t n);
int64_t tp_nf4_groups(int64_t n);

/* To the nearest, halves away from zero.  A scale below the smallest normal number may have no
 * finite inverse. */
int8_t tp_int8_code(float x, float inverse);
void tp_int8_encode(const float *x, int64_t n, int8_t *codes, float *scales);
void tp_nf4_encode(const float *x, int64_t n, uint8_t *codes, uint8_t *sizes, float *groups);

/* What the levels of a block are multiplied with. */
static inline float tp_nf4_size(const uint8_t *sizes, const float *groups, int64_t n_groups,
                                const tp_dynamic_map *map, int64_t block)
{
    float part = map->value[sizes[block]] * groups[block / TP_NF4_GROUP];
    return part + groups[n_groups - 1];
}

void tp_int8_decode(const int8_t *codes, const float *scales, int64_t n, float *out);
void tp_nf4_decode(const uint8_t *codes, const uint8_t *sizes, const float *groups, int64_t n,
                   float *out);

#endif
