/* qwen2.c - the Qwen2 family: biases on the attention's projections. */
#include "engine/model/decoder.h"

static tp_status read(tp_model *model, const tp_fields *c, tp_error *err)
{
    TP_TRY(tp_decoder_read(model, c, err));
    model->has_qkv_bias = true;
    return tp_decoder_check_windows(model, c, err);
}

const tp_family tp_family_qwen2 = {
    .model_type = "qwen2",
    .models = "Qwen2, Qwen2.5",
    .architecture = "Qwen2ForCausalLM",
    .base_architecture = "Qwen2Model",
    .prefix = "model.",
    .layer_prefix = "model.layers.",
    .keys = TP_KEYS_QWEN2,
    .default_kv_heads = 32,
    .ignored = tp_decoder_ignored,
    .read = read,
    .list_params = tp_decoder_list_params,
    .forward = tp_decoder_forward,
};
