/* gguf_mix.c - the rules of llama-quantize (llama_tensor_get_type() of llama.cpp), for the families
 * that Temper has. */
#include "engine/model/gguf_mix.h"

#include <stdio.h>
#include <string.h>

#include "text/gguf/gguf.h"

/* The first eighth of the blocks, the last one, and every third between them. */
static bool gets_more_bits(int64_t layer, int64_t n)
{
    return layer < n / 8 || layer >= 7 * n / 8 || (layer - n / 8) % 3 == 2;
}

/* What llama.cpp calls a 70B: many heads share a small attn_v. */
static bool is_70b(const tp_model_info *info)
{
    bool is_qwen2 = strcmp(info->family, "qwen2") == 0;
    bool is_llama = strcmp(info->family, "llama") == 0 && info->heads != info->kv_heads;
    return info->layers == 80 && (is_qwen2 || is_llama);
}

uint32_t tp_gguf_q4_k_m(const tp_model *model, const tp_param *param, const char *name)
{
    const tp_model_info *info = tp_model_get_info(model);
    char part[32];
    int layer;
    if (tp_model_is_head(model, param))
        return TP_GGML_Q6_K;
    if (sscanf(name, "blk.%d.%31[a-z_].weight", &layer, part) != 2)
        return TP_GGML_Q4_K;
    bool is_value = strcmp(part, "attn_v") == 0 || strcmp(part, "attn_qkv") == 0;
    if ((is_value || strcmp(part, "ffn_down") == 0) && gets_more_bits(layer, info->layers))
        return TP_GGML_Q6_K;
    return is_value && is_70b(info) ? TP_GGML_Q5_K : TP_GGML_Q4_K;
}
