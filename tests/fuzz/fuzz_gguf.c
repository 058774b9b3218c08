/* fuzz_gguf.c - any bytes as a GGUF file.
 *
 * What is accepted must hold what it promises: every key and tensor finds itself, every byte of a
 * tensor can be read and dequantised, and what its keys become (config.json, tokenizer.json,
 * tokenizer_config.json) is taken or refused with a message.  Where they describe a model, its
 * weights are read, or what is missing is said.  The same bytes as numbers that an
 * export takes: every encoder must give blocks that decode to numbers. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/model/ggml.h"
#include "engine/model/gguf_config.h"
#include "engine/model/weights.h"
#include "own_file.h"
#include "text/gguf/gguf.h"
#include "text/json/json.h"
#include "text/tokenizer/tokenizer_gguf.h"

enum { MAX_BLOCK = 256 };

static volatile float sum; /* keeps the reads from being optimised away */

static void must_say(tp_status status, const tp_error *err)
{
    if (status != TP_OK && !err->message[0])
        abort();
}

static void read_tensor(const tp_gguf *g, const tp_gguf_tensor *t)
{
    float out[MAX_BLOCK];
    const tp_ggml_info *info = tp_ggml_info_of(t->type);
    if (tp_gguf_find_tensor(g, t->name) != t)
        abort();
    for (size_t at = 0; info && info->is_read && at + info->bytes <= t->bytes; at += info->bytes) {
        tp_ggml_to_f32(t->type, t->data + at, out, info->block);
        sum += out[info->block - 1];
    }
}

static void read_key(const tp_gguf *g, const tp_gguf_value *v)
{
    char key[256];
    snprintf(key, sizeof key, "%.*s", (int)v->key.len, v->key.data);
    if (v->key.len < sizeof key && tp_gguf_find(g, key) != v)
        abort();
    size_t at = 0;
    for (uint64_t i = 0; v->item == TP_GGUF_STRING && i < v->n; i++) {
        tp_slice s = tp_gguf_next_string(v, &at);
        for (size_t k = 0; k < s.len; k++)
            sum += (float)s.data[k];
    }
}

static void read_param(const tp_weights *w, size_t param)
{
    const tp_param *p = &w->model->params[param];
    int64_t rows = tp_weights_rows(p), length = tp_weights_row_length(p);
    int64_t piece = tp_weights_piece(w, param);
    float *x = malloc((size_t)(piece * length) * sizeof *x);
    tp_error err = {0};
    if (!x)
        abort();
    for (int64_t i = 0; i < rows; i += piece) {
        int64_t n = i + piece < rows ? piece : rows - i;
        bool is_finite;
        must_say(tp_weights_read(w, param, i, n, x, &is_finite, &err), &err);
        sum += x[n * length - 1];
    }
    free(x);
}

static void read_weights(const uint8_t *data, size_t size)
{
    tp_model *model = NULL;
    tp_weights w;
    tp_error err = {0};
    const char *path = tp_fuzz_file("x.gguf", data, size);
    must_say(tp_model_open(path, &model, &err), &err);
    err = (tp_error){0};
    if (model) {
        tp_status status = tp_weights_open(model, &w, &err);
        must_say(status, &err);
        for (size_t i = 0; status == TP_OK && i < model->n_params; i++)
            read_param(&w, i);
        tp_weights_close(&w);
    }
    tp_model_free(model);
    unlink(path);
}

/* True: its keys are those of a model. */
static bool build(const tp_gguf *g)
{
    tp_error err = {0};
    tp_buf config = {0}, tokenizer = {0}, names = {0};
    tp_model *model = NULL;
    tp_tokenizer *tok = NULL;
    tp_status status = tp_gguf_config(g, &config, &err);
    must_say(status, &err);
    if (status == TP_OK) {
        err = (tp_error){0};
        must_say(tp_model_parse("fuzz", config.data, config.len, &model, &err), &err);
    }
    err = (tp_error){0};
    status = tp_tokenizer_json_of_gguf(g, &tokenizer, &err);
    must_say(status, &err);
    if (status == TP_OK) {
        err = (tp_error){0};
        must_say(tp_tokenizer_parse("fuzz", tokenizer.data, tokenizer.len, &tok, &err), &err);
        err = (tp_error){0};
        must_say(tp_tokenizer_config_of_gguf(g, &names, &err), &err);
    }
    bool is_model = model != NULL;
    tp_model_free(model);
    tp_tokenizer_free(tok);
    tp_buf_release(&config);
    tp_buf_release(&tokenizer);
    tp_buf_release(&names);
    return is_model;
}

static void encode(const uint8_t *data, size_t size)
{
    static const uint32_t types[] = {TP_GGML_Q4_0, TP_GGML_Q5_0, TP_GGML_Q5_1, TP_GGML_Q8_0,
                                     TP_GGML_Q4_K, TP_GGML_Q5_K, TP_GGML_Q6_K};
    float x[MAX_BLOCK] = {0}, back[MAX_BLOCK];
    unsigned char blocks[MAX_BLOCK * sizeof(float)];
    memcpy(x, data, size < sizeof x ? size : sizeof x);
    for (int i = 0; i < MAX_BLOCK; i++)
        x[i] = fabsf(x[i]) < 65520 ? x[i] : 0; /* others are refused before */
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        tp_ggml_from_f32(types[t], x, blocks, MAX_BLOCK);
        tp_ggml_to_f32(types[t], blocks, back, MAX_BLOCK);
        for (int i = 0; i < MAX_BLOCK; i++)
            if (!isfinite(back[i]))
                abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tp_gguf *g = NULL;
    tp_error err = {0};
    if (size > 1 << 16)
        return 0;
    encode(data, size);
    if (tp_gguf_parse("fuzz", data, size, &g, &err) != TP_OK) {
        if (g || !err.message[0])
            abort();
        return 0;
    }
    for (size_t i = 0; i < tp_gguf_key_count(g); i++)
        read_key(g, tp_gguf_key_at(g, i));
    for (size_t i = 0; i < tp_gguf_tensor_count(g); i++)
        read_tensor(g, tp_gguf_tensor_at(g, i));
    bool is_model = build(g);
    tp_gguf_close(g);
    if (is_model)
        read_weights(data, size);
    return 0;
}
