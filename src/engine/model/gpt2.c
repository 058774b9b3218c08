/* GPT-2: learned positions, LayerNorm with bias, one projection for q, k and v, and
 * weights stored [in, out] (Conv1D). */
#include "engine/model/builder.h"

static const char *const ignored[] = {".attn.bias", ".attn.masked_bias", NULL};

/* Published files ask for dropout; fine-tuning runs without it. */
static tp_status read_dropout(tp_model *model, const tp_fields *c, tp_error *err)
{
    static const char *const fields[] = {"attn_pdrop", "embd_pdrop", "resid_pdrop"};
    for (int i = 0; i < 3; i++) {
        double p;
        TP_TRY(tp_fields_number(c, fields[i], -1, 1, 0.1, &p, err));
        model->info.ignored_dropout =
            p > model->info.ignored_dropout ? p : model->info.ignored_dropout;
    }
    return TP_OK;
}

/* The general name of a size goes before GPT-2's own, as in transformers. */
static const char *name_of(const tp_fields *c, const char *own, const char *general)
{
    return tp_fields_get(c, general) ? general : own;
}

static tp_status read_sizes(tp_model *model, const tp_fields *c, tp_error *err)
{
    tp_model_info *i = &model->info;
    TP_TRY(tp_fields_int(c, "vocab_size", 1, TP_MAX_VOCAB, TP_REQUIRED, &i->vocab, err));
    const char *width = name_of(c, "n_embd", "hidden_size");
    const char *layers = name_of(c, "n_layer", "num_hidden_layers");
    const char *heads = name_of(c, "n_head", "num_attention_heads");
    model->positions_field = name_of(c, "n_positions", "max_position_embeddings");
    TP_TRY(tp_fields_int(c, width, 1, TP_MAX_WIDTH, TP_REQUIRED, &i->hidden, err));
    TP_TRY(
        tp_fields_int(c, "n_inner", 1, TP_MAX_INTERMEDIATE, 4 * i->hidden, &i->intermediate, err));
    TP_TRY(tp_fields_int(c, layers, 1, TP_MAX_LAYERS, TP_REQUIRED, &i->layers, err));
    TP_TRY(tp_fields_int(c, heads, 1, TP_MAX_HEADS, TP_REQUIRED, &i->heads, err));
    TP_TRY(tp_family_read_positions(model, c, err));
    i->kv_heads = i->heads;
    return tp_family_check_heads(model, c, heads, err);
}

static tp_status read(tp_model *model, const tp_fields *c, tp_error *err)
{
    TP_TRY(read_sizes(model, c, err));
    TP_TRY(tp_fields_number(c, "layer_norm_epsilon", 0, 1, 1e-5, &model->info.norm_eps, err));
    TP_TRY(tp_fields_bool(c, "tie_word_embeddings", true, &model->info.tied, err));
    TP_TRY(tp_family_read_activation(model, c, "activation_function", "gelu_new", err));
    TP_TRY(read_dropout(model, c, err));
    bool is_scaled;
    TP_TRY(tp_fields_bool(c, "scale_attn_weights", true, &is_scaled, err));
    TP_TRY(
        tp_fields_bool(c, "scale_attn_by_inverse_layer_idx", false, &model->scales_by_layer, err));
    model->has_plain_logits = !is_scaled;
    model->embedding_name = "transformer.wte.weight";
    return TP_OK;
}

static void list_norm(tp_model *m, int64_t layer, const char *weight, const char *bias)
{
    tp_model_add_layer_param(m, layer, weight, m->info.hidden, 0, TP_INIT_ONE);
    tp_model_add_layer_param(m, layer, bias, m->info.hidden, 0, TP_INIT_ZERO);
}

static void list_conv(tp_model *m, int64_t layer, const char *name, int64_t in, int64_t out,
                      bool is_residual_out)
{
    char full[64];
    snprintf(full, sizeof full, "%s.weight", name);
    tp_param *weight = tp_model_add_layer_param(m, layer, full, in, out, TP_INIT_NORMAL);
    weight->is_residual_out = is_residual_out;
    weight->is_transposed = true;
    snprintf(full, sizeof full, "%s.bias", name);
    tp_model_add_layer_param(m, layer, full, out, 0, TP_INIT_ZERO);
}

static void list_params(tp_model *m)
{
    int64_t C = m->info.hidden, F = m->info.intermediate, V = m->info.vocab;
    tp_model_add_param(m, "transformer.wte.weight", V, C, TP_INIT_NORMAL)->place = TP_PARAM_TABLE;
    tp_model_add_param(m, "transformer.wpe.weight", m->info.max_positions, C, TP_INIT_NORMAL)
        ->place = TP_PARAM_TABLE;
    for (int64_t l = 0; l < m->info.layers; l++) {
        list_norm(m, l, "ln_1.weight", "ln_1.bias");
        list_conv(m, l, "attn.c_attn", C, 3 * C, false);
        list_conv(m, l, "attn.c_proj", C, C, true);
        list_norm(m, l, "ln_2.weight", "ln_2.bias");
        list_conv(m, l, "mlp.c_fc", C, F, false);
        list_conv(m, l, "mlp.c_proj", F, C, true);
    }
    tp_model_add_param(m, "transformer.ln_f.weight", C, 0, TP_INIT_ONE);
    tp_model_add_param(m, "transformer.ln_f.bias", C, 0, TP_INIT_ZERO);
    if (!m->info.tied)
        tp_model_add_param(m, "lm_head.weight", V, C, TP_INIT_NORMAL)->place = TP_PARAM_HEAD;
}

static tp_ref norm(const tp_builder *b, tp_ref x, const char *weight, const char *bias,
                   const char *label)
{
    tp_ref in[] = {x, tp_build_weight(b, weight), tp_build_weight(b, bias)};
    tp_attrs attrs = {.eps = (float)b->model->info.norm_eps};
    return tp_build_op(b, TP_OP_layernorm, &attrs, 3, in, label);
}

static tp_ref attention_part(const tp_builder *b, tp_ref x)
{
    int32_t C = (int32_t)b->model->info.hidden;
    tp_attrs thirds = {.n0 = C, .n1 = C, .n2 = C};
    tp_ref n = norm(b, x, "ln_1.weight", "ln_1.bias", "ln_1");
    tp_ref qkv = tp_build_linear(b, n, "attn.c_attn", true, "c_attn");
    tp_ref q = tp_build_op(b, TP_OP_split, &thirds, 1, &qkv, "qkv");
    tp_ref o = tp_build_attention(b, q, q + 1, q + 2);
    return tp_build_linear(b, o, "attn.c_proj", true, "attn_c_proj");
}

static tp_ref mlp_part(const tp_builder *b, tp_ref x)
{
    tp_ref n = norm(b, x, "ln_2.weight", "ln_2.bias", "ln_2");
    tp_ref h = tp_build_linear(b, n, "mlp.c_fc", true, "c_fc");
    h = tp_build_activation(b, h, "activation");
    return tp_build_linear(b, h, "mlp.c_proj", true, "mlp_c_proj");
}

static void forward(const tp_model *model, tp_graph *g, const tp_forward *f, tp_ref *ret_hidden)
{
    tp_builder b = {.model = model, .g = g, .f = f, .layer = -1};
    tp_ref words[] = {f->tokens, tp_build_weight(&b, "transformer.wte.weight")};
    tp_ref places[] = {f->positions, tp_build_weight(&b, "transformer.wpe.weight")};
    tp_ref x = tp_build_op(&b, TP_OP_embed, NULL, 2, words, "wte");
    x = tp_build_add(&b, x, tp_build_op(&b, TP_OP_embed, NULL, 2, places, "wpe"), "embed");
    for (int64_t l = 0; l < model->info.layers; l++) {
        tp_build_enter(&b, l);
        x = tp_build_add(&b, x, attention_part(&b, x), "attention_residual");
        x = tp_build_add(&b, x, mlp_part(&b, x), "mlp_residual");
    }
    tp_build_enter(&b, -1);
    *ret_hidden = norm(&b, x, "transformer.ln_f.weight", "transformer.ln_f.bias", "ln_f");
}

const tp_family tp_family_gpt2 = {
    .model_type = "gpt2",
    .models = "GPT-2",
    .architecture = "GPT2LMHeadModel",
    .base_architecture = "GPT2Model",
    .prefix = "transformer.",
    .layer_prefix = "transformer.h.",
    .keys = TP_KEYS_GPT2,
    .default_positions = 1024,
    .has_conv1d = true,
    .ignored = ignored,
    .read = read,
    .list_params = list_params,
    .forward = forward,
};
