/* ggml.h - rows of f32 to the blocks that llama.cpp computes with, and back.
 *
 * Encoders give the bytes of llama.cpp's reference quantisers: operations are done in f32, one
 * after the other, in the order that its formulas have (this file's objects are compiled without
 * fused multiply-add).  Decoders are exact.
 *
 *     Q8_0   32 values: f16 scale, 32 signed bytes                      8.5 bits a weight
 *     Q4_0   32 values: f16 scale, 32 nibbles around 8                  4.5
 *     Q5_0   32 values: f16 scale, 32 fifth bits, 32 nibbles around 16  5.5
 *     Q5_1   32 values: f16 scale, f16 minimum, 32 fifth bits, 32 nibbles   6
 *     Q4_K   256 values: f16 scale of scales, f16 scale of minima, eight pairs of 6 bits, nibbles
 *     Q5_K   the same with fifth bits                                   4.5 and 5.5
 *     Q6_K   256 values: low nibbles, upper pairs of bits, 16 signed scales, f16 scale   6.6 */
#ifndef TP_ENGINE_MODEL_GGML_H
#define TP_ENGINE_MODEL_GGML_H

#include <stdbool.h>
#include <stddef.h>

#include "text/gguf/gguf.h"

/* `n` is a multiple of the type's block; the type is one that tp_ggml_info calls readable. */
void tp_ggml_to_f32(uint32_t type, const void *blocks, float *out, size_t n);

void tp_ggml_from_f32(uint32_t type, const float *x, void *blocks, size_t n);

/* For ggml.c: one block of the types with two levels of scales (ggml_k.c). */
void tp_ggml_read_q4_k(const unsigned char *block, float *out);
void tp_ggml_read_q5_k(const unsigned char *block, float *out);
void tp_ggml_read_q6_k(const unsigned char *block, float *out);
void tp_ggml_write_q4_k(const float *x, unsigned char *block);
void tp_ggml_write_q5_k(const float *x, unsigned char *block);
void tp_ggml_write_q6_k(const float *x, unsigned char *block);

#endif
