/* decoder.c - the block that Llama, Qwen2 and Qwen3 share, and these families, a row each.
 *
 * RMSNorm, grouped-query attention with rotary positions, RMSNorm, gated MLP, both
 * behind residuals.  The families differ in which projections have a bias, in the
 * norm of q and k, and in defaults. */
#include <string.h>

#include "engine/model/builder.h"
#include "engine/model/family.h"

static tp_status read_sizes(tp_model *model, const tp_fields *c, tp_error *err)
{
    tp_model_info *i = &model->info;
    const tp_family *family = model->family;
    TP_TRY(tp_fields_int(c, "vocab_size", 1, TP_MAX_VOCAB, TP_REQUIRED, &i->vocab, err));
    TP_TRY(tp_fields_int(c, "hidden_size", 1, TP_MAX_WIDTH, TP_REQUIRED, &i->hidden, err));
    TP_TRY(tp_fields_int(c, "intermediate_size", 1, TP_MAX_INTERMEDIATE, TP_REQUIRED,
                         &i->intermediate, err));
    TP_TRY(tp_fields_int(c, "num_hidden_layers", 1, TP_MAX_LAYERS, TP_REQUIRED, &i->layers, err));
    TP_TRY(tp_fields_int(c, "num_attention_heads", 1, TP_MAX_HEADS, TP_REQUIRED, &i->heads, err));
    /* A null is not the same as nothing: it always means as many as heads. */
    bool is_silent = family->default_kv_heads && !tp_json_get(c->object, "num_key_value_heads");
    TP_TRY(tp_fields_int(c, "num_key_value_heads", 1, TP_MAX_HEADS,
                         is_silent ? family->default_kv_heads : i->heads, &i->kv_heads, err));
    model->positions_field = "max_position_embeddings";
    TP_TRY(tp_family_read_positions(model, c, err));
    TP_TRY(tp_fields_int(c, "head_dim", 2, TP_MAX_HEAD_DIM, family->default_head_dim, &i->head_dim,
                         err));
    TP_TRY(tp_family_check_heads(model, c, "num_attention_heads", err));
    if (i->head_dim % 2 != 0)
        return tp_fields_fail(c, tp_fields_get(c, "head_dim") ? "head_dim" : "num_attention_heads",
                              TP_ERR_FORMAT, err, "heads of %lld are odd; positions rotate pairs",
                              (long long)i->head_dim);
    return TP_OK;
}

/* nn.Embedding's padding_idx: -1 counts from the end. */
static tp_status read_pad(tp_model *model, const tp_fields *c, tp_error *err)
{
    int64_t vocab = model->info.vocab, pad;
    TP_TRY(tp_fields_int(c, "pad_token_id", -vocab, vocab - 1, INT64_MAX, &pad, err));
    model->pad = pad == INT64_MAX ? -1 : pad < 0 ? vocab + pad : pad;
    return TP_OK;
}

/* Newer files say the kind of each layer. */
static tp_status check_kinds(const tp_model *model, const tp_fields *c, const tp_json *kinds,
                             tp_error *err)
{
    for (const tp_json *v = kinds->child; v; v = v->next) {
        const char *kind = tp_json_str(v);
        if (!kind || strcmp(kind, "full_attention") != 0)
            return tp_fields_fail(c, "layer_types", TP_ERR_UNSUPPORTED, err,
                                  "holds \"%.40s\"; only full_attention is supported",
                                  kind ? kind : "(not a string)");
    }
    if (kinds->type != TP_JSON_ARRAY || (int64_t)kinds->n != model->info.layers)
        return tp_fields_fail(c, "layer_types", TP_ERR_FORMAT, err,
                              "expected a list of %lld kinds, one per layer",
                              (long long)model->info.layers);
    return TP_OK;
}

/* A window is in use when it is switched on and some layer lies past the last one
 * with full attention. */
static tp_status check_windows(const tp_model *model, const tp_fields *c, tp_error *err)
{
    const tp_json *kinds = tp_fields_get(c, "layer_types");
    if (kinds)
        TP_TRY(check_kinds(model, c, kinds, err));
    bool is_on;
    int64_t n_full;
    TP_TRY(tp_fields_bool(c, "use_sliding_window", false, &is_on, err));
    TP_TRY(tp_fields_int(c, "max_window_layers", 0, INT32_MAX, 28, &n_full, err));
    const tp_json *window = tp_json_get(c->object, "sliding_window");
    if (is_on && (!window || window->type != TP_JSON_NULL) && !kinds && n_full < model->info.layers)
        return tp_fields_fail(c, "use_sliding_window", TP_ERR_UNSUPPORTED, err,
                              "sliding-window attention is not supported");
    return TP_OK;
}

static tp_status read_biases(tp_model *model, const tp_fields *c, tp_error *err)
{
    const tp_family *family = model->family;
    model->has_qkv_bias = family->has_qkv_bias;
    model->has_qk_norm = family->has_qk_norm;
    if (family->reads_attention_bias) {
        TP_TRY(tp_fields_bool(c, "attention_bias", false, &model->has_qkv_bias, err));
        model->has_out_bias = model->has_qkv_bias;
    }
    return family->reads_mlp_bias ? tp_fields_bool(c, "mlp_bias", false, &model->has_mlp_bias, err)
                                  : TP_OK;
}

static tp_status read(tp_model *model, const tp_fields *c, tp_error *err)
{
    TP_TRY(read_sizes(model, c, err));
    TP_TRY(read_pad(model, c, err));
    TP_TRY(tp_fields_number(c, "rms_norm_eps", 0, 1, 1e-6, &model->info.norm_eps, err));
    TP_TRY(tp_fields_bool(c, "tie_word_embeddings", false, &model->info.tied, err));
    TP_TRY(tp_family_read_activation(model, c, "hidden_act", "silu", err));
    TP_TRY(tp_rope_read(c, model->info.max_positions, &model->rope, err));
    model->info.rope_theta = model->rope.theta;
    model->embedding_name = "model.embed_tokens.weight";
    TP_TRY(read_biases(model, c, err));
    return check_windows(model, c, err);
}

static void list_projection(tp_model *m, int64_t layer, const char *name, int64_t out, int64_t in,
                            bool has_bias, bool is_residual_out)
{
    char full[64];
    snprintf(full, sizeof full, "%s.weight", name);
    tp_param *p = tp_model_add_layer_param(m, layer, full, out, in, TP_INIT_NORMAL);
    p->is_residual_out = is_residual_out;
    if (has_bias) {
        snprintf(full, sizeof full, "%s.bias", name);
        tp_model_add_layer_param(m, layer, full, out, 0, TP_INIT_ZERO);
    }
}

static void list_layer(tp_model *m, int64_t l)
{
    int64_t C = m->info.hidden, F = m->info.intermediate, D = m->info.head_dim;
    int64_t Q = m->info.heads * D, KV = m->info.kv_heads * D;
    list_projection(m, l, "self_attn.q_proj", Q, C, m->has_qkv_bias, false);
    list_projection(m, l, "self_attn.k_proj", KV, C, m->has_qkv_bias, false);
    list_projection(m, l, "self_attn.v_proj", KV, C, m->has_qkv_bias, false);
    list_projection(m, l, "self_attn.o_proj", C, Q, m->has_out_bias, true);
    if (m->has_qk_norm) {
        tp_model_add_layer_param(m, l, "self_attn.q_norm.weight", D, 0, TP_INIT_ONE);
        tp_model_add_layer_param(m, l, "self_attn.k_norm.weight", D, 0, TP_INIT_ONE);
    }
    list_projection(m, l, "mlp.gate_proj", F, C, m->has_mlp_bias, false);
    list_projection(m, l, "mlp.up_proj", F, C, m->has_mlp_bias, false);
    list_projection(m, l, "mlp.down_proj", C, F, m->has_mlp_bias, true);
    tp_model_add_layer_param(m, l, "input_layernorm.weight", C, 0, TP_INIT_ONE);
    tp_model_add_layer_param(m, l, "post_attention_layernorm.weight", C, 0, TP_INIT_ONE);
}

static void list_params(tp_model *m)
{
    const tp_model_info *i = &m->info;
    tp_model_add_param(m, "model.embed_tokens.weight", i->vocab, i->hidden, TP_INIT_NORMAL)->place =
        TP_PARAM_TABLE;
    for (int64_t l = 0; l < i->layers; l++)
        list_layer(m, l);
    tp_model_add_param(m, "model.norm.weight", i->hidden, 0, TP_INIT_ONE);
    if (!i->tied)
        tp_model_add_param(m, "lm_head.weight", i->vocab, i->hidden, TP_INIT_NORMAL)->place =
            TP_PARAM_HEAD;
}

static tp_ref norm(const tp_builder *b, tp_ref x, const char *weight, const char *label)
{
    tp_ref in[] = {x, tp_build_weight(b, weight)};
    tp_attrs attrs = {.eps = (float)b->model->info.norm_eps};
    return tp_build_op(b, TP_OP_rmsnorm, &attrs, 2, in, label);
}

static tp_ref rotate(const tp_builder *b, tp_ref x, tp_ref table, const char *label)
{
    tp_ref in[] = {x, b->f->positions, table};
    tp_attrs attrs = {.head_dim = (int32_t)b->model->info.head_dim};
    return tp_build_op(b, TP_OP_rope, &attrs, 3, in, label);
}

/* x[T,C] -> [T,C], before the residual */
static tp_ref attention_part(const tp_builder *b, tp_ref x, tp_ref table)
{
    const tp_model *m = b->model;
    tp_ref n = norm(b, x, "input_layernorm.weight", "input_norm");
    tp_ref q = tp_build_linear(b, n, "self_attn.q_proj", m->has_qkv_bias, "q_proj");
    tp_ref k = tp_build_linear(b, n, "self_attn.k_proj", m->has_qkv_bias, "k_proj");
    tp_ref v = tp_build_linear(b, n, "self_attn.v_proj", m->has_qkv_bias, "v_proj");
    if (m->has_qk_norm) {
        q = norm(b, q, "self_attn.q_norm.weight", "q_norm");
        k = norm(b, k, "self_attn.k_norm.weight", "k_norm");
    }
    q = rotate(b, q, table, "q_rope");
    k = rotate(b, k, table, "k_rope");
    tp_ref o = tp_build_attention(b, q, k, v);
    return tp_build_linear(b, o, "self_attn.o_proj", m->has_out_bias, "o_proj");
}

static tp_ref mlp_part(const tp_builder *b, tp_ref x)
{
    bool has_bias = b->model->has_mlp_bias;
    tp_ref n = norm(b, x, "post_attention_layernorm.weight", "post_norm");
    tp_ref gate = tp_build_linear(b, n, "mlp.gate_proj", has_bias, "gate_proj");
    tp_ref up = tp_build_linear(b, n, "mlp.up_proj", has_bias, "up_proj");
    tp_ref in[] = {tp_build_activation(b, gate, "activation"), up};
    tp_ref product = tp_build_op(b, TP_OP_mul, NULL, 2, in, "gated");
    return tp_build_linear(b, product, "mlp.down_proj", has_bias, "down_proj");
}

static tp_ref rope_table(const tp_builder *b)
{
    tp_tensor table = tp_rope_tensor(b->f->max_positions, b->model->info.head_dim);
    tp_ref known = tp_graph_find(b->g, table.name);
    return known ? known : tp_graph_state(b->g, &table);
}

static void forward(const tp_model *model, tp_graph *g, const tp_forward *f, tp_ref *ret_hidden)
{
    tp_builder b = {.model = model, .g = g, .f = f, .layer = -1};
    tp_ref table = rope_table(&b);
    tp_ref in[] = {f->tokens, tp_build_weight(&b, "model.embed_tokens.weight")};
    tp_attrs attrs = {.skip = (int32_t)(model->pad + 1)};
    tp_ref x = tp_build_op(&b, TP_OP_embed, &attrs, 2, in, "embed");
    for (int64_t l = 0; l < model->info.layers; l++) {
        tp_build_enter(&b, l);
        x = tp_build_add(&b, x, attention_part(&b, x, table), "attention_residual");
        x = tp_build_add(&b, x, mlp_part(&b, x), "mlp_residual");
    }
    tp_build_enter(&b, -1);
    *ret_hidden = norm(&b, x, "model.norm.weight", "norm");
}

/* ---- the families ---- */

static const char *const ignored[] = {"rotary_emb.inv_freq", NULL};

#define DECODER(type, name, bit, models_, ...)                              \
    const tp_family tp_family_##type = {.model_type = #type,                \
                                        .models = models_,                  \
                                        .architecture = name "ForCausalLM", \
                                        .base_architecture = name "Model",  \
                                        .prefix = "model.",                 \
                                        .layer_prefix = "model.layers.",    \
                                        .keys = bit,                        \
                                        .ignored = ignored,                 \
                                        .read = read,                       \
                                        .list_params = list_params,         \
                                        .forward = forward,                 \
                                        __VA_ARGS__}

DECODER(llama, "Llama", TP_KEYS_LLAMA, "Llama 2 and 3, SmolLM2", .reads_attention_bias = true,
        .reads_mlp_bias = true, .default_positions = 2048);
DECODER(qwen2, "Qwen2", TP_KEYS_QWEN2, "Qwen2, Qwen2.5", .has_qkv_bias = true,
        .default_kv_heads = 32, .default_positions = 32768);
DECODER(qwen3, "Qwen3", TP_KEYS_QWEN3, "Qwen3 dense", .reads_attention_bias = true,
        .has_qk_norm = true, .default_kv_heads = 32, .default_head_dim = 128,
        .default_positions = 32768);
