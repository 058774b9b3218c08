/* rope.h - rotary position tables, from the configuration to the numbers. */
#ifndef TP_ENGINE_MODEL_ROPE_H
#define TP_ENGINE_MODEL_ROPE_H

#include "engine/device/tensor.h"
#include "engine/model/fields.h"

/* How fast pair i of a head turns: theta^(-2i/D) per position, slowed down for long
 * wavelengths when is_llama3. */
typedef struct {
    double theta;
    bool is_llama3;
    double factor, low_freq_factor, high_freq_factor, original_positions;
} tp_rope;

/* From "rope_parameters" (transformers 5) or "rope_theta" and "rope_scaling".
 * Other kinds of scaling are TP_ERR_UNSUPPORTED. */
TP_CHECKED tp_status tp_rope_read(const tp_fields *c, int64_t max_positions, tp_rope *ret,
                                  tp_error *err);

/* What llama3 scaling divides the frequency of pair i by; 1 without it. */
float tp_rope_divisor(const tp_rope *rope, int64_t head_dim, int64_t i);

/* The record of a model's table. */
tp_tensor tp_rope_tensor(int64_t positions, int64_t head_dim);

/* Row p of `table` [positions, head_dim]: cos of the D/2 angles, then their sin. */
void tp_rope_fill(const tp_rope *rope, int64_t head_dim, int64_t positions, float *table);

#endif
