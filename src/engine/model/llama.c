/* llama.c - the Llama family: the shared decoder with its own defaults. */
#include "engine/model/decoder.h"

static tp_status read(tp_model *model, const tp_fields *c, tp_error *err)
{
    TP_TRY(tp_decoder_read(model, c, err));
    TP_TRY(tp_fields_bool(c, "attention_bias", false, &model->has_qkv_bias, err));
    model->has_out_bias = model->has_qkv_bias;
    TP_TRY(tp_fields_bool(c, "mlp_bias", false, &model->has_mlp_bias, err));
    return tp_decoder_check_windows(model, c, err);
}

const tp_family tp_family_llama = {
    .model_type = "llama",
    .models = "Llama 2 and 3, SmolLM2",
    .architecture = "LlamaForCausalLM",
    .base_architecture = "LlamaModel",
    .prefix = "model.",
    .layer_prefix = "model.layers.",
    .keys = TP_KEYS_LLAMA,
    .ignored = tp_decoder_ignored,
    .read = read,
    .list_params = tp_decoder_list_params,
    .forward = tp_decoder_forward,
};
