/* gguf_mix.h - llama-quantize's mixture Q4_K_M: most matrices in Q4_K, those that lose most by it
 * in more bits. */
#ifndef TP_ENGINE_MODEL_GGUF_MIX_H
#define TP_ENGINE_MODEL_GGUF_MIX_H

#include "engine/model/model.h"

/* The type of a matrix whose name in GGUF is `name`: Q4_K, Q5_K or Q6_K. */
uint32_t tp_gguf_q4_k_m(const tp_model *model, const tp_param *param, const char *name);

#endif
