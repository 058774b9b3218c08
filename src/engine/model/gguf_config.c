/* gguf_config.c - from the keys of a GGUF file to a config.json. */
#include "engine/model/gguf_config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/platform.h"
#include "text/json/json.h"

enum { MAX_HALF_HEAD = TP_MAX_HEAD_DIM / 2 };

/* What the keys say. */
typedef struct {
    const tp_gguf *g;
    tp_error *err;
    const tp_family *family;
    int64_t layers, context, width, inner, heads, kv_heads, head_dim, vocab;
    double eps, theta;
    bool tied, has_qkv_bias, has_mlp_bias;
    tp_gguf_ids ids;
    tp_rope rope; /* is_llama3 and what goes with it */
} keys;

/* "llama.block_count"; `out` holds at least 128 bytes and is returned. */
static const char *full(const keys *k, const char *name, char *out)
{
    snprintf(out, 128, "%s.%s", k->family->model_type, name);
    return out;
}

static tp_status count(const keys *k, const char *name, int64_t most, int64_t fallback,
                       int64_t *ret)
{
    char key[128];
    *ret = fallback;
    TP_TRY(tp_gguf_get_int(k->g, full(k, name, key), 1, most, ret, k->err));
    if (*ret == TP_REQUIRED)
        return tp_fail(k->err, TP_ERR_FORMAT, "%s: has no key '%s'", tp_gguf_name(k->g), key);
    return TP_OK;
}

static tp_status number(const keys *k, const char *name, double fallback, double *ret)
{
    char key[128];
    *ret = fallback;
    TP_TRY(tp_gguf_get_number(k->g, full(k, name, key), ret, k->err));
    if (isnan(*ret))
        return tp_fail(k->err, TP_ERR_FORMAT, "%s: has no key '%s'", tp_gguf_name(k->g), key);
    return TP_OK;
}

static tp_status find_family(keys *k)
{
    char list[256];
    tp_slice name = {0};
    TP_TRY(tp_gguf_get_string(k->g, "general.architecture", &name, k->err));
    const tp_gguf_value *v = tp_gguf_find(k->g, "general.architecture");
    if (!v)
        return tp_fail(k->err, TP_ERR_FORMAT, "%s: has no key 'general.architecture'",
                       tp_gguf_name(k->g));
    for (size_t i = 0; tp_model_family_at(i); i++)
        if (tp_slice_is(name, tp_model_family_at(i)->model_type))
            k->family = tp_model_family_at(i);
    if (!k->family)
        return tp_gguf_fail(k->g, v, TP_ERR_UNSUPPORTED, k->err, "is \"%.*s\"; supported are %s",
                            (int)TP_MIN(name.len, 60), name.data,
                            tp_model_supported(list, sizeof list));
    return TP_OK;
}

static tp_status check_general(const keys *k)
{
    tp_slice type = TP_SLICE("model");
    int64_t split = 1;
    TP_TRY(tp_gguf_get_string(k->g, "general.type", &type, k->err));
    TP_TRY(tp_gguf_get_int(k->g, "split.count", 0, INT32_MAX, &split, k->err));
    if (!tp_slice_is(type, "model"))
        return tp_gguf_fail(k->g, tp_gguf_find(k->g, "general.type"), TP_ERR_UNSUPPORTED, k->err,
                            "is \"%.*s\"; only whole models are read", (int)TP_MIN(type.len, 60),
                            type.data);
    if (split > 1)
        return tp_gguf_fail(k->g, tp_gguf_find(k->g, "split.count"), TP_ERR_UNSUPPORTED, k->err,
                            "is %lld: the model is in several files; join them with llama.cpp's "
                            "llama-gguf-split --merge",
                            (long long)split);
    return TP_OK;
}

/* ---- keys of the architecture ---- */

static bool is_known(tp_slice name)
{
    static const char *const known[] = {"block_count",
                                        "context_length",
                                        "embedding_length",
                                        "feed_forward_length",
                                        "attention.head_count",
                                        "attention.head_count_kv",
                                        "attention.key_length",
                                        "attention.value_length",
                                        "attention.layer_norm_epsilon",
                                        "attention.layer_norm_rms_epsilon",
                                        "attention.causal",
                                        "rope.freq_base",
                                        "rope.dimension_count",
                                        "rope.scaling.type",
                                        "rope.scaling.factor",
                                        "rope.scaling.original_context_length",
                                        "rope.scaling.finetuned",
                                        "rope.scale_linear",
                                        "vocab_size"};
    for (size_t i = 0; i < TP_COUNTOF(known); i++)
        if (tp_slice_is(name, known[i]))
            return true;
    return false;
}

bool tp_gguf_is_zero(const tp_gguf_value *v)
{
    size_t sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    bool zero = v->type < TP_COUNTOF(sizes) && sizes[v->type];
    for (size_t i = 0; zero && i < sizes[v->type]; i++)
        zero = v->data[i] == 0;
    return zero;
}

static tp_status check_keys(const keys *k)
{
    size_t prefix = strlen(k->family->model_type) + 1;
    for (size_t i = 0; i < tp_gguf_key_count(k->g); i++) {
        const tp_gguf_value *v = tp_gguf_key_at(k->g, i);
        if (v->key.len <= prefix || strncmp(v->key.data, k->family->model_type, prefix - 1) != 0 ||
            v->key.data[prefix - 1] != '.')
            continue;
        tp_slice name = {v->key.data + prefix, v->key.len - prefix};
        if (!is_known(name) && !tp_gguf_is_zero(v))
            return tp_gguf_fail(k->g, v, TP_ERR_UNSUPPORTED, k->err,
                                "is not known here and may change what the model computes");
    }
    bool is_causal = true;
    char key[128];
    TP_TRY(tp_gguf_get_bool(k->g, full(k, "attention.causal", key), &is_causal, k->err));
    if (!is_causal)
        return tp_gguf_fail(k->g, tp_gguf_find(k->g, key), TP_ERR_UNSUPPORTED, k->err,
                            "is false: attention that sees what follows is not supported");
    return TP_OK;
}

static tp_status read_sizes(keys *k)
{
    bool is_gpt2 = k->family == &tp_family_gpt2;
    const tp_gguf_tensor *table = tp_gguf_find_tensor(k->g, "token_embd.weight");
    int64_t value_length, rotated;
    if (!table || table->rank != 2)
        return tp_fail(k->err, TP_ERR_FORMAT, "%s: has no matrix 'token_embd.weight'",
                       tp_gguf_name(k->g));
    k->vocab = table->dim[1];
    TP_TRY(count(k, "block_count", TP_MAX_LAYERS, TP_REQUIRED, &k->layers));
    TP_TRY(count(k, "context_length", TP_MAX_POSITIONS, TP_REQUIRED, &k->context));
    TP_TRY(count(k, "embedding_length", TP_MAX_WIDTH, TP_REQUIRED, &k->width));
    TP_TRY(count(k, "feed_forward_length", TP_MAX_INTERMEDIATE, TP_REQUIRED, &k->inner));
    TP_TRY(count(k, "attention.head_count", TP_MAX_HEADS, TP_REQUIRED, &k->heads));
    TP_TRY(count(k, "attention.head_count_kv", TP_MAX_HEADS, k->heads, &k->kv_heads));
    TP_TRY(count(k, "attention.key_length", TP_MAX_HEAD_DIM, k->width / k->heads, &k->head_dim));
    TP_TRY(count(k, "attention.value_length", TP_MAX_HEAD_DIM, k->head_dim, &value_length));
    TP_TRY(count(k, "rope.dimension_count", TP_MAX_HEAD_DIM, k->head_dim, &rotated));
    if (value_length != k->head_dim || (rotated != k->head_dim && !is_gpt2))
        return tp_fail(k->err, TP_ERR_UNSUPPORTED,
                       "%s: heads have keys of %lld, values of %lld and rotate %lld; only heads in "
                       "which all three are the same are supported",
                       tp_gguf_name(k->g), (long long)k->head_dim, (long long)value_length,
                       (long long)rotated);
    if (is_gpt2 && (k->kv_heads != k->heads || k->head_dim * k->heads != k->width))
        return tp_fail(k->err, TP_ERR_UNSUPPORTED,
                       "%s: GPT-2's heads share nothing and divide its width, %lld",
                       tp_gguf_name(k->g), (long long)k->width);
    TP_TRY(number(k, is_gpt2 ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon",
                  NAN, &k->eps));
    return number(k, "rope.freq_base", 10000, &k->theta);
}

tp_status tp_gguf_ids_read(const tp_gguf *g, int64_t vocab, tp_gguf_ids *ret, tp_error *err)
{
    static const char *const ends[] = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                       "tokenizer.ggml.eom_token_id"};
    *ret = (tp_gguf_ids){.bos = -1, .pad = -1};
    TP_TRY(tp_gguf_get_int(g, "tokenizer.ggml.bos_token_id", 0, vocab - 1, &ret->bos, err));
    TP_TRY(tp_gguf_get_int(g, "tokenizer.ggml.padding_token_id", 0, vocab - 1, &ret->pad, err));
    for (size_t i = 0; i < TP_COUNTOF(ends); i++) {
        int64_t id = -1;
        TP_TRY(tp_gguf_get_int(g, ends[i], 0, vocab - 1, &id, err));
        if (id >= 0)
            ret->eos[ret->n_eos++] = id;
    }
    return TP_OK;
}

static bool has_tensor(const keys *k, const char *name)
{
    return tp_gguf_find_tensor(k->g, name) != NULL;
}

/* ---- the rotation ---- */

static tp_status check_scaling(const keys *k)
{
    char key[128], factor_key[128];
    tp_slice type = TP_SLICE("none");
    double factor = 1;
    TP_TRY(tp_gguf_get_string(k->g, full(k, "rope.scaling.type", key), &type, k->err));
    const tp_gguf_value *v = tp_gguf_find(k->g, key);
    TP_TRY(number(k, "rope.scale_linear", 1, &factor));
    if (factor == 1)
        TP_TRY(number(k, "rope.scaling.factor", 1, &factor));
    const char *name =
        factor != 1 && !tp_gguf_find(k->g, full(k, "rope.scaling.factor", factor_key))
            ? full(k, "rope.scale_linear", factor_key)
            : factor_key;
    bool is_off = tp_slice_is(type, "none") || (tp_slice_is(type, "linear") && factor == 1);
    if (!is_off)
        return tp_gguf_fail(k->g, v, TP_ERR_UNSUPPORTED, k->err,
                            "is \"%.*s\"; supported is the scaling of Llama 3, which is the tensor "
                            "rope_freqs.weight",
                            (int)TP_MIN(type.len, 40), type.data);
    if (factor != 1 && !v)
        return tp_gguf_fail(k->g, tp_gguf_find(k->g, name), TP_ERR_UNSUPPORTED, k->err,
                            "is %g; linear scaling of positions is not supported", factor);
    return TP_OK;
}

static bool gives(const tp_rope *rope, const float *divisors, int64_t head_dim)
{
    for (int64_t i = 0; i < head_dim / 2; i++)
        if (!(fabsf(tp_rope_divisor(rope, head_dim, i) - divisors[i]) <= 1e-5f * divisors[i]))
            return false;
    return true;
}

/* The factor that gives the slowest pair this divisor. */
static double factor_of(tp_rope rope, double divisor, int64_t head_dim)
{
    rope.factor = INFINITY; /* divides by what is kept alone: 1 no slowing, 0 the whole factor */
    double kept = 1 / (double)tp_rope_divisor(&rope, head_dim, head_dim / 2 - 1);
    double factor = kept < 1 ? (1 - kept) / (1 / divisor - kept) : 1;
    return fabs(round(factor) - factor) <= 1e-4 * factor ? round(factor) : factor;
}

/* The file has the divisors that follow from factor, bounds and context; config.json has these.
 * All models with such a scaling have the bounds 1 and 4 and a power of two as context; where
 * several would do, one with a whole factor. */
static bool find_llama3(keys *k, const float *divisors)
{
    enum { CONTEXTS = 24, FIRST = 13 /* 8192 */ };
    double slowest = (double)divisors[k->head_dim / 2 - 1];
    for (int i = 0; i < 2 * CONTEXTS; i++) {
        tp_rope rope = {
            .theta = k->theta, .is_llama3 = true, .low_freq_factor = 1, .high_freq_factor = 4};
        rope.original_positions = ldexp(1, (i + FIRST) % CONTEXTS);
        rope.factor = factor_of(rope, slowest, k->head_dim);
        bool may_be_any = i >= CONTEXTS;
        if (rope.factor > 0 && (may_be_any || rope.factor == round(rope.factor)) &&
            gives(&rope, divisors, k->head_dim)) {
            k->rope = rope;
            return true;
        }
    }
    return false;
}

static tp_status read_rope(keys *k)
{
    const tp_gguf_tensor *t = tp_gguf_find_tensor(k->g, "rope_freqs.weight");
    float divisors[MAX_HALF_HEAD];
    TP_TRY(check_scaling(k));
    if (!t)
        return TP_OK;
    bool fits = k->family == &tp_family_llama && t->type == TP_GGML_F32 &&
                t->bytes == (size_t)(k->head_dim / 2) * sizeof *divisors;
    if (fits)
        memcpy(divisors, t->data, t->bytes);
    if (!fits || !find_llama3(k, divisors))
        return tp_fail(
            k->err, TP_ERR_UNSUPPORTED,
            "%s: byte %zu: tensor 'rope_freqs.weight' is not what Llama 3's scaling with "
            "the bounds 1 and 4 gives for any context; another is not supported",
            tp_gguf_name(k->g), t->at);
    return TP_OK;
}

/* ---- the text ---- */

double tp_gguf_as_written(double value)
{
    char text[40];
    for (int digits = 1; digits < 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtof(text, NULL) == (float)value)
            return strtod(text, NULL);
    }
    return value;
}

static void write_rope(const keys *k, tp_json_w *w)
{
    tp_json_w_put_begin(w, "rope_parameters", '{');
    tp_json_w_put_f64(w, "rope_theta", tp_gguf_as_written(k->theta));
    tp_json_w_put_str(w, "rope_type", k->rope.is_llama3 ? "llama3" : "default");
    if (k->rope.is_llama3) {
        tp_json_w_put_f64(w, "factor", tp_gguf_as_written(k->rope.factor));
        tp_json_w_put_f64(w, "low_freq_factor", k->rope.low_freq_factor);
        tp_json_w_put_f64(w, "high_freq_factor", k->rope.high_freq_factor);
        tp_json_w_put_i64(w, "original_max_position_embeddings",
                          (int64_t)k->rope.original_positions);
    }
    tp_json_w_end(w, '}');
}

void tp_gguf_ids_write(const tp_gguf_ids *ids, tp_json_w *w)
{
    if (ids->bos >= 0)
        tp_json_w_put_i64(w, "bos_token_id", ids->bos);
    if (ids->pad >= 0)
        tp_json_w_put_i64(w, "pad_token_id", ids->pad);
    if (ids->n_eos == 1)
        tp_json_w_put_i64(w, "eos_token_id", ids->eos[0]);
    else if (ids->n_eos > 1) {
        tp_json_w_put_begin(w, "eos_token_id", '[');
        for (int i = 0; i < ids->n_eos; i++)
            tp_json_w_i64(w, ids->eos[i]);
        tp_json_w_end(w, ']');
    }
}

static void write_gpt2(const keys *k, tp_json_w *w)
{
    tp_json_w_put_str(w, "activation_function", "gelu_new");
    tp_json_w_put_i64(w, "n_embd", k->width);
    tp_json_w_put_i64(w, "n_inner", k->inner);
    tp_json_w_put_i64(w, "n_layer", k->layers);
    tp_json_w_put_i64(w, "n_head", k->heads);
    tp_json_w_put_i64(w, "n_positions", k->context);
    tp_json_w_put_f64(w, "layer_norm_epsilon", tp_gguf_as_written(k->eps));
}

static void write_decoder(const keys *k, tp_json_w *w)
{
    tp_json_w_put_str(w, "hidden_act", "silu");
    tp_json_w_put_i64(w, "hidden_size", k->width);
    tp_json_w_put_i64(w, "intermediate_size", k->inner);
    tp_json_w_put_i64(w, "num_hidden_layers", k->layers);
    tp_json_w_put_i64(w, "num_attention_heads", k->heads);
    tp_json_w_put_i64(w, "num_key_value_heads", k->kv_heads);
    tp_json_w_put_i64(w, "head_dim", k->head_dim);
    tp_json_w_put_i64(w, "max_position_embeddings", k->context);
    tp_json_w_put_f64(w, "rms_norm_eps", tp_gguf_as_written(k->eps));
    write_rope(k, w);
    if (k->has_qkv_bias && k->family != &tp_family_qwen2)
        tp_json_w_put_bool(w, "attention_bias", true);
    if (k->has_mlp_bias)
        tp_json_w_put_bool(w, "mlp_bias", true);
}

static void write_config(const keys *k, tp_buf *out)
{
    tp_json_w w = tp_json_w_open(out, 2, '{');
    tp_json_w_put_begin(&w, "architectures", '[');
    tp_json_w_str(&w, k->family->architecture);
    tp_json_w_end(&w, ']');
    tp_json_w_put_str(&w, "model_type", k->family->model_type);
    tp_json_w_put_str(&w, "dtype", "float32");
    if (k->family == &tp_family_gpt2)
        write_gpt2(k, &w);
    else
        write_decoder(k, &w);
    tp_json_w_put_i64(&w, "vocab_size", k->vocab);
    tp_json_w_put_bool(&w, "tie_word_embeddings", k->tied);
    tp_gguf_ids_write(&k->ids, &w);
    tp_json_w_close(&w, '}');
}

tp_status tp_gguf_config(const tp_gguf *g, tp_buf *out, tp_error *err)
{
    keys k = {.g = g, .err = err};
    TP_TRY(find_family(&k));
    TP_TRY(check_general(&k));
    TP_TRY(check_keys(&k));
    TP_TRY(read_sizes(&k));
    TP_TRY(tp_gguf_ids_read(g, k.vocab, &k.ids, err));
    TP_TRY(read_rope(&k));
    k.tied = !has_tensor(&k, "output.weight");
    k.has_qkv_bias = has_tensor(&k, "blk.0.attn_q.bias");
    k.has_mlp_bias = has_tensor(&k, "blk.0.ffn_up.bias") && k.family == &tp_family_llama;
    write_config(&k, out);
    return TP_OK;
}
