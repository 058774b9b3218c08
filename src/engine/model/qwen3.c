/* qwen3.c - the Qwen3 family: norms on queries and keys. */
#include "engine/model/decoder.h"

static tp_status read(tp_model *model, const tp_fields *c, tp_error *err)
{
    TP_TRY(tp_decoder_read(model, c, err));
    TP_TRY(tp_fields_bool(c, "attention_bias", false, &model->has_qkv_bias, err));
    model->has_out_bias = model->has_qkv_bias;
    model->has_qk_norm = true;
    return tp_decoder_check_windows(model, c, err);
}

const tp_family tp_family_qwen3 = {
    .model_type = "qwen3",
    .models = "Qwen3 dense",
    .architecture = "Qwen3ForCausalLM",
    .base_architecture = "Qwen3Model",
    .prefix = "model.",
    .layer_prefix = "model.layers.",
    .keys = TP_KEYS_QWEN3,
    .default_kv_heads = 32,
    .default_head_dim = 128, /* whatever the width is */
    .ignored = tp_decoder_ignored,
    .read = read,
    .list_params = tp_decoder_list_params,
    .forward = tp_decoder_forward,
};
