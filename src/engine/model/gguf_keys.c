/* gguf_keys.c - from a model to the keys of a GGUF file. */

#include "engine/model/gguf_config.h"

static tp_status refuse(const tp_model *model, tp_error *err, const char *what)
{
    return tp_fail(err, TP_ERR_UNSUPPORTED,
                   "%s: %s: llama.cpp's architecture \"%s\" does not compute that",
                   model->config_path, what, model->info.family);
}

static tp_status check(const tp_model *m, tp_error *err)
{
    bool is_gpt2 = m->family == &tp_family_gpt2, is_llama = m->family == &tp_family_llama;
    if (is_gpt2 && m->activation != TP_ACTIVATION_GELU_TANH)
        return refuse(m, err, "activation_function is not gelu_new");
    if (!is_gpt2 && m->activation != TP_ACTIVATION_SILU)
        return refuse(m, err, "hidden_act is not silu");
    if (m->has_plain_logits)
        return refuse(m, err, "scale_attn_weights is false");
    if (m->scales_by_layer)
        return refuse(m, err, "scale_attn_by_inverse_layer_idx is true");
    if (m->family == &tp_family_qwen3 && m->has_qkv_bias)
        return refuse(m, err, "attention_bias is true");
    if (m->rope.is_llama3 && !is_llama)
        return refuse(m, err, "rope_type is llama3");
    return TP_OK;
}

static void put(tp_gguf_keys *k, const tp_model *m, const char *name, int64_t value)
{
    char key[128];
    snprintf(key, sizeof key, "%s.%s", m->info.family, name);
    tp_gguf_put_u32(k, key, (uint32_t)value);
}

static void put_number(tp_gguf_keys *k, const tp_model *m, const char *name, double value)
{
    char key[128];
    snprintf(key, sizeof key, "%s.%s", m->info.family, name);
    tp_gguf_put_f32(k, key, (float)value);
}

/* "37K", "494M", "7.6B": as llama.cpp's tools call sizes. */
static void put_size(tp_gguf_keys *k, const tp_model *m)
{
    char text[32];
    double n = (double)m->param_count;
    double unit = n >= 1e12 ? 1e12 : n >= 1e9 ? 1e9 : n >= 1e6 ? 1e6 : 1e3;
    const char *letter = n >= 1e12 ? "T" : n >= 1e9 ? "B" : n >= 1e6 ? "M" : "K";
    snprintf(text, sizeof text, "%.*f%s", n / unit < 10 && unit > 1e3 ? 1 : 0, n / unit, letter);
    tp_gguf_put_string(k, "general.size_label", tp_slice_of(text));
}

tp_status tp_gguf_put_model(const tp_model *m, const char *name, tp_gguf_keys *k, tp_error *err)
{
    const tp_model_info *i = &m->info;
    TP_TRY(check(m, err));
    tp_gguf_put_string(k, "general.architecture", tp_slice_of(i->family));
    tp_gguf_put_string(k, "general.type", TP_SLICE("model"));
    tp_gguf_put_string(k, "general.name", tp_slice_of(name));
    put_size(k, m);
    put(k, m, "block_count", i->layers);
    put(k, m, "context_length", i->max_positions);
    put(k, m, "embedding_length", i->hidden);
    put(k, m, "feed_forward_length", i->intermediate);
    put(k, m, "attention.head_count", i->heads);
    if (m->family == &tp_family_gpt2) {
        put_number(k, m, "attention.layer_norm_epsilon", i->norm_eps);
        return TP_OK;
    }
    put(k, m, "attention.head_count_kv", i->kv_heads);
    put_number(k, m, "rope.freq_base", i->rope_theta);
    put_number(k, m, "attention.layer_norm_rms_epsilon", i->norm_eps);
    put(k, m, "attention.key_length", i->head_dim);
    put(k, m, "attention.value_length", i->head_dim);
    if (m->family == &tp_family_llama) {
        put(k, m, "vocab_size", i->vocab);
        put(k, m, "rope.dimension_count", i->head_dim);
    }
    return TP_OK;
}
