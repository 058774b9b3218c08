/* test_gguf.c - GGUF files: reading, damage, writing, and what becomes of keys. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/files.h"
#include "base/output.h"
#include "base/platform.h"
#include "engine/model/gguf_config.h"
#include "engine/model/gguf_export.h"
#include "engine/model/weights.h"
#include "text/gguf/gguf.h"
#include "text/tokenizer/tokenizer.h"
#include "text/tokenizer/tokenizer_gguf.h"

#define SAMPLE TP_SOURCE_DIR "/tests/data/gguf/llama-q4_0.gguf"

/* A file by hand: each field with its width. */
typedef struct {
    tp_buf bytes;
} image;

static void u32(image *f, uint32_t v) { tp_buf_add(&f->bytes, &v, sizeof v); }
static void u64(image *f, uint64_t v) { tp_buf_add(&f->bytes, &v, sizeof v); }

static void text(image *f, const char *s)
{
    u64(f, strlen(s));
    tp_buf_adds(&f->bytes, s);
}

static void start(image *f, uint32_t version, uint64_t tensors, uint64_t keys)
{
    tp_buf_adds(&f->bytes, "GGUF");
    u32(f, version);
    u64(f, tensors);
    u64(f, keys);
}

static void tensor(image *f, const char *name, uint64_t length, uint64_t rows, uint32_t type,
                   uint64_t offset)
{
    text(f, name);
    u32(f, 2);
    u64(f, length);
    u64(f, rows);
    u32(f, type);
    u64(f, offset);
}

static void pad(image *f, size_t to)
{
    while (f->bytes.len < to)
        tp_buf_addc(&f->bytes, 0);
}

static void refuse(image *f, const char *message)
{
    tp_gguf *g = NULL;
    tp_error err = {0};
    tp_status status = tp_gguf_parse("x.gguf", f->bytes.data, f->bytes.len, &g, &err);
    assert_int_not_equal(status, TP_OK);
    assert_null(g);
    assert_string_equal(err.message, message);
    tp_buf_release(&f->bytes);
}

static void reads_keys_and_tensors(void **state)
{
    image f = {0};
    tp_gguf *g;
    int64_t number = 0;
    start(&f, 3, 1, 2);
    text(&f, "a.b");
    u32(&f, TP_GGUF_U32);
    u32(&f, 7);
    text(&f, "words");
    u32(&f, TP_GGUF_ARRAY);
    u32(&f, TP_GGUF_STRING);
    u64(&f, 2);
    text(&f, "one");
    text(&f, "");
    tensor(&f, "t", 32, 2, TP_GGML_Q8_0, 0);
    size_t data = (f.bytes.len + 31) / 32 * 32;
    pad(&f, data + 68);
    assert_int_equal(tp_gguf_parse("x.gguf", f.bytes.data, f.bytes.len, &g, NULL), TP_OK);

    assert_int_equal(tp_gguf_get_int(g, "a.b", 0, 9, &number, NULL), TP_OK);
    assert_int_equal(number, 7);
    const tp_gguf_value *words = tp_gguf_find(g, "words");
    size_t at = 0;
    assert_int_equal(words->n, 2);
    assert_true(tp_slice_is(tp_gguf_next_string(words, &at), "one"));
    assert_int_equal(tp_gguf_next_string(words, &at).len, 0);
    const tp_gguf_tensor *t = tp_gguf_find_tensor(g, "t");
    assert_int_equal(t->bytes, 68);
    assert_int_equal(t->dim[0], 32);
    assert_ptr_equal(t->data, f.bytes.data + data);
    assert_null(tp_gguf_find(g, "a"));
    assert_null(tp_gguf_find_tensor(g, "u"));
    tp_gguf_close(g);
    tp_buf_release(&f.bytes);
}

static void refuses_what_is_no_such_file(void **state)
{
    image f = {0};
    tp_buf_adds(&f.bytes, "GGML....");
    refuse(&f, "x.gguf is no GGUF file: it does not begin with \"GGUF\"");
    f = (image){0};
    start(&f, 1, 0, 0);
    refuse(&f, "x.gguf: byte 4: GGUF version 1 is not supported; 2 and 3 are");
    f = (image){0};
    start(&f, 0x03000000, 0, 0);
    refuse(&f, "x.gguf: byte 4: a big-endian file; convert it to little-endian with gguf's "
               "gguf-convert-endian");
}

static void refuses_counts_that_nothing_backs(void **state)
{
    image f = {0};
    start(&f, 3, UINT64_MAX, 0);
    refuse(&f, "x.gguf: byte 8: more tensors than the file has room for, or any model has; the "
               "file is cut off or damaged: fetch or export it again");
    f = (image){0};
    start(&f, 3, 0, 1);
    text(&f, "words");
    u32(&f, TP_GGUF_ARRAY);
    u32(&f, TP_GGUF_U32);
    u64(&f, UINT64_MAX);
    refuse(&f, "x.gguf: byte 24: 'words' has 18446744073709551615 values, of which the file has 0; "
               "the file is cut off or damaged: fetch or export it again");
    f = (image){0};
    start(&f, 3, 0, 1);
    u64(&f, 1000);
    tp_buf_adds(&f.bytes, "abcde");
    refuse(&f, "x.gguf: byte 24: a key of 1000 bytes, of which the file has 5; the file is cut off "
               "or damaged: fetch or export it again");
}

static void refuses_arrays_of_arrays_and_keys_twice(void **state)
{
    image f = {0};
    start(&f, 3, 0, 1);
    text(&f, "nested");
    u32(&f, TP_GGUF_ARRAY);
    u32(&f, TP_GGUF_ARRAY);
    u64(&f, 1);
    refuse(&f, "x.gguf: byte 24: 'nested' has values of type 9, which is an array of arrays: that "
               "is not supported");
    f = (image){0};
    start(&f, 3, 0, 2);
    for (int i = 0; i < 2; i++) {
        text(&f, "k");
        u32(&f, TP_GGUF_U32);
        u32(&f, 1);
    }
    refuse(&f, "x.gguf: byte 41: 'k' is there twice; the file is cut off or damaged: fetch or "
               "export it again");
}

static void refuses_tensors_that_are_not_there(void **state)
{
    image f = {0};
    start(&f, 3, 1, 0);
    tensor(&f, "t", 4, 1, TP_GGML_F32, 0);
    pad(&f, 96 + 12);
    refuse(&f, "x.gguf: byte 24: tensor 't' takes bytes 0 to 16 of the data, which has 12; the "
               "file is cut off or damaged: fetch or export it again");
    f = (image){0};
    start(&f, 3, 1, 0);
    tensor(&f, "t", 4, 1, TP_GGML_F32, 8);
    pad(&f, 200);
    refuse(&f, "x.gguf: byte 24: tensor 't' does not begin at a multiple of general.alignment; the "
               "file is cut off or damaged: fetch or export it again");
    f = (image){0};
    start(&f, 3, 1, 0);
    tensor(&f, "t", (uint64_t)1 << 40, (uint64_t)1 << 40, TP_GGML_F32, 0);
    refuse(&f, "x.gguf: byte 24: tensor 't' has a shape that is not possible; the file is cut off "
               "or damaged: fetch or export it again");
    f = (image){0};
    start(&f, 3, 1, 0);
    tensor(&f, "t", 48, 1, TP_GGML_Q4_0, 0);
    refuse(&f, "x.gguf: byte 24: tensor 't' has rows of 48 elements; blocks of Q4_0 hold 32");
    f = (image){0};
    start(&f, 3, 2, 0);
    tensor(&f, "t", 1, 1, TP_GGML_F32, 0);
    tensor(&f, "t", 1, 1, TP_GGML_F32, 32);
    pad(&f, 256);
    refuse(&f, "x.gguf: byte 65: tensor 't' is there twice; the file is cut off or damaged: fetch "
               "or export it again");
}

/* In any order, with anything between them, but each with data of its own. */
static void tensors_that_overlap_are_refused(void **state)
{
    image f = {0};
    start(&f, 3, 2, 0);
    tensor(&f, "b", 16, 1, TP_GGML_F32, 32);
    tensor(&f, "a", 16, 1, TP_GGML_F32, 0);
    pad(&f, 256);
    refuse(&f, "x.gguf: byte 24: tensor 'b' begins within the data of 'a'; the file is cut off or "
               "damaged: fetch or export it again");
    f = (image){0};
    start(&f, 3, 2, 0);
    tensor(&f, "a", 1, 1, TP_GGML_F32, 0);
    tensor(&f, "b", 1, 1, TP_GGML_F32, 0);
    pad(&f, 256);
    refuse(&f, "x.gguf: byte 65: tensor 'b' begins within the data of 'a'; the file is cut off or "
               "damaged: fetch or export it again");
    f = (image){0};
    tp_gguf *g;
    start(&f, 3, 2, 0);
    tensor(&f, "b", 16, 1, TP_GGML_F32, 96);
    tensor(&f, "a", 8, 1, TP_GGML_F32, 0);
    pad(&f, 288);
    assert_int_equal(tp_gguf_parse("x.gguf", f.bytes.data, f.bytes.len, &g, NULL), TP_OK);
    tp_gguf_close(g);
    tp_buf_release(&f.bytes);
}

/* Cut at every byte: always refused, never read beyond. */
static void refuses_every_beginning_of_a_file(void **state)
{
    tp_buf whole = {0};
    assert_int_equal(tp_file_read(SAMPLE, 0, &whole, NULL), TP_OK);
    for (size_t n = 0; n < whole.len; n += n < 7200 ? 1 : 97) {
        char *part = malloc(n + 1); /* a sanitizer sees its end */
        tp_gguf *g = NULL;
        tp_error err = {0};
        memcpy(part, whole.data, n);
        if (tp_gguf_parse("x.gguf", part, n, &g, &err) == TP_OK)
            fail_msg("%zu bytes were taken", n);
        free(part);
    }
    tp_buf_release(&whole);
}

/* ---- a file of llama-quantize ---- */

static void opens_a_file_of_llama_cpp(void **state)
{
    tp_model *model;
    tp_tokenizer *tok;
    tp_error err = {0};
    assert_int_equal(tp_model_open(SAMPLE, &model, &err), TP_OK);
    const tp_model_info *info = tp_model_get_info(model);
    assert_string_equal(info->family, "llama");
    assert_int_equal(info->hidden, 32);
    assert_int_equal(info->intermediate, 64);
    assert_int_equal(info->kv_heads, 2);
    assert_int_equal(info->head_dim, 8);
    assert_int_equal(info->vocab, 292);
    assert_int_equal(info->max_positions, 128);
    assert_true(info->norm_eps == 1e-5);
    assert_true(info->rope_theta == 10000);
    assert_false(info->tied);
    assert_int_equal(info->n_eos, 1);
    assert_int_equal(info->eos[0], 287);
    assert_int_equal(info->bos, 285);
    tp_model_free(model);

    assert_int_equal(tp_tokenizer_load(SAMPLE, &tok, &err), TP_OK);
    static const char said[] = "the a<|im_start|>x";
    static const int32_t wanted[] = {257, 258, 286, 87};
    tp_tokenizer_scratch *scratch = tp_tokenizer_scratch_new(tok);
    tp_ids ids = {0};
    tp_tokenizer_encode(tok, scratch, said, strlen(said), (tp_encode_options){true, true}, &ids,
                        NULL);
    assert_int_equal(ids.len, 4);
    assert_memory_equal(ids.data, wanted, sizeof wanted);
    assert_int_equal(tp_tokenizer_eos(tok), 287);
    assert_int_equal(tp_tokenizer_pad(tok), 285);
    assert_true(tp_tokenizer_is_special(tok, 286));
    assert_false(tp_tokenizer_is_special(tok, 288)); /* <think>, user defined */
    assert_false(tp_tokenizer_has_id(tok, 291));     /* [PAD291], unused */
    assert_true(tp_str_starts(tp_tokenizer_chat_template(tok), "{% for m in messages %}"));
    tp_ids_release(&ids);
    tp_tokenizer_scratch_free(scratch);
    tp_tokenizer_free(tok);
}

/* Fewer blocks than the file has tensors of: another model, which llama.cpp refuses as well. */
static void refuses_tensors_that_no_key_explains(void **state)
{
    static const char key[] = "llama.block_count";
    tp_buf file = {0};
    tp_model *model;
    tp_weights weights;
    tp_error err = {0};
    char path[64];
    snprintf(path, sizeof path, "/tmp/tp-gguf-%d", (int)getpid());
    assert_int_equal(tp_file_read(SAMPLE, 0, &file, NULL), TP_OK);
    char *value = memmem(file.data, file.len, key, sizeof key - 1);
    assert_non_null(value);
    value[sizeof key - 1 + 4] = 1; /* behind the key's name and type: 2 blocks */
    assert_int_equal(tp_output_put(path, file.data, file.len, &err), TP_OK);
    assert_int_equal(tp_model_open(path, &model, &err), TP_OK);
    assert_int_equal(tp_weights_open(model, &weights, &err), TP_ERR_UNSUPPORTED);
    if (!strstr(err.message, "tensor 'blk.1.") ||
        !strstr(err.message, "is not known here and may change what the model computes"))
        fail_msg("%s", err.message);
    tp_model_free(model);
    tp_buf_release(&file);
    unlink(path);
}

/* ---- keys that decide what is computed ---- */

/* A model's keys and its embedding alone; `more` adds to them. */
static tp_status config_of(const char *architecture, void (*more)(tp_gguf_keys *k),
                           const float *divisors, tp_buf *config, tp_error *err)
{
    static const char *const sizes[] = {"block_count", "context_length", "embedding_length",
                                        "feed_forward_length", "attention.head_count"};
    tp_gguf_keys k = {0};
    tp_gguf_tensor tensors[] = {
        {.name = "token_embd.weight", .type = TP_GGML_F32, .rank = 2, .dim = {16, 3}},
        {.name = "rope_freqs.weight", .type = TP_GGML_F32, .rank = 1, .dim = {8}}};
    tp_buf file = {0};
    uint64_t bytes;
    tp_gguf *g;
    tp_gguf_put_string(&k, "general.architecture", tp_slice_of(architecture));
    for (size_t i = 0; i < TP_COUNTOF(sizes); i++) {
        char key[64];
        snprintf(key, sizeof key, "%s.%s", architecture, sizes[i]);
        tp_gguf_put_u32(&k, key, i < 4 ? 16 : 1);
    }
    tp_gguf_put_f32(&k, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
    if (more)
        more(&k);
    assert_int_equal(tp_gguf_header(&k, tensors, divisors ? 2 : 1, &file, &bytes, NULL), TP_OK);
    size_t data = file.len;
    while (file.len < bytes)
        tp_buf_addc(&file, 0);
    if (divisors)
        memcpy(file.data + data + 192, divisors, 32);
    assert_int_equal(tp_gguf_parse("x.gguf", file.data, file.len, &g, err), TP_OK);
    tp_status status = tp_gguf_config(g, config, err);
    tp_gguf_close(g);
    tp_buf_release(&file);
    tp_buf_release(&k.bytes);
    return status;
}

/* A tokenizer without merges; NULL: it has no such key. */
static void refuse_tokenizer(const char *kind, const char *pre, bool has_tokens,
                             const char *message)
{
    tp_gguf_keys k = {0};
    tp_buf file = {0}, json = {0};
    tp_error err = {0};
    uint64_t bytes;
    tp_gguf *g;
    if (kind)
        tp_gguf_put_string(&k, "tokenizer.ggml.model", tp_slice_of(kind));
    if (pre)
        tp_gguf_put_string(&k, "tokenizer.ggml.pre", tp_slice_of(pre));
    if (has_tokens) {
        tp_gguf_put_array(&k, "tokenizer.ggml.tokens", TP_GGUF_STRING, 2);
        tp_gguf_item_string(&k, TP_SLICE("a"));
        tp_gguf_item_string(&k, TP_SLICE("b"));
    }
    assert_int_equal(tp_gguf_header(&k, NULL, 0, &file, &bytes, NULL), TP_OK);
    while (file.len < bytes)
        tp_buf_addc(&file, 0);
    assert_int_equal(tp_gguf_parse("x.gguf", file.data, file.len, &g, &err), TP_OK);
    assert_true(tp_tokenizer_json_of_gguf(g, &json, &err) != TP_OK);
    if (!strstr(err.message, message))
        fail_msg("%s", err.message);
    tp_gguf_close(g);
    tp_buf_release(&json);
    tp_buf_release(&file);
    tp_buf_release(&k.bytes);
}

static void refuse_config(const char *architecture, void (*more)(tp_gguf_keys *k),
                          const char *message)
{
    tp_buf config = {0};
    tp_error err = {0};
    assert_int_equal(config_of(architecture, more, NULL, &config, &err), TP_ERR_UNSUPPORTED);
    if (!strstr(err.message, message))
        fail_msg("%s", err.message);
    tp_buf_release(&config);
}

static void add_experts(tp_gguf_keys *k) { tp_gguf_put_u32(k, "llama.expert_count", 8); }
static void add_no_experts(tp_gguf_keys *k) { tp_gguf_put_u32(k, "llama.expert_count", 0); }
static void add_adapter(tp_gguf_keys *k)
{
    tp_gguf_put_string(k, "general.type", TP_SLICE("adapter"));
}
static void add_split(tp_gguf_keys *k) { tp_gguf_put_u32(k, "split.count", 3); }
static void add_yarn(tp_gguf_keys *k)
{
    tp_gguf_put_string(k, "llama.rope.scaling.type", TP_SLICE("yarn"));
}
static void add_linear(tp_gguf_keys *k) { tp_gguf_put_f32(k, "llama.rope.scaling.factor", 4); }
static void add_half_rotation(tp_gguf_keys *k)
{
    tp_gguf_put_u32(k, "llama.rope.dimension_count", 8);
}

/* ---- keys that decide what is drawn ---- */

/* Of a file with these keys alone, which is left at `path`. */
static tp_status settings_of(const char *path, const tp_gguf_keys *k, tp_generation_config *ret,
                             tp_error *err)
{
    tp_buf file = {0};
    uint64_t bytes;
    assert_int_equal(tp_gguf_header(k, NULL, 0, &file, &bytes, NULL), TP_OK);
    while (file.len < bytes)
        tp_buf_addc(&file, 0);
    assert_int_equal(tp_output_put(path, file.data, file.len, err), TP_OK);
    tp_buf_release(&file);
    return tp_generation_config_read(path, NULL, 0, ret, err);
}

static void add_settings(tp_gguf_keys *k)
{
    tp_gguf_put_f32(k, "general.sampling.temp", 0.6f);
    tp_gguf_put_f32(k, "general.sampling.top_p", 0.95f);
    tp_gguf_put_f32(k, "general.sampling.min_p", 0.05f);
    tp_gguf_put_i32(k, "general.sampling.top_k", 20);
    tp_gguf_put_f32(k, "general.sampling.penalty_repeat", 1.5f);
    tp_gguf_put_i32(k, "general.sampling.penalty_last_n", -1);
    tp_gguf_put_array(k, "tokenizer.ggml.suppress_tokens", TP_GGUF_I32, 2);
    tp_gguf_item_i32(k, 178);
    tp_gguf_item_i32(k, 163);
}

static void settings_of_generation_come_and_go(void **state)
{
    tp_gguf_keys k = {0}, again = {0}, usual = {0}, none = {0};
    tp_buf notes = {0}, json = {0};
    tp_error err = {0};
    tp_generation_config c;
    char path[64];
    snprintf(path, sizeof path, "/tmp/tp-settings-%d.gguf", (int)getpid());
    add_settings(&k);
    if (settings_of(path, &k, &c, &err) != TP_OK)
        fail_msg("%s", err.message);
    assert_true(c.is_there && c.do_sample);
    assert_true(c.temperature == 0.6 && c.top_p == 0.95 && c.min_p == 0.05 && c.top_k == 20);
    assert_true(c.repetition_penalty == 1.5);
    assert_int_equal(c.n_suppressed, 2);
    assert_int_equal(c.suppressed[0], 178);

    /* As the file of a folder that begins with it. */
    assert_int_equal(tp_gguf_generation_text(path, &c, &json, &err), TP_OK);
    assert_non_null(strstr(tp_buf_str(&json), "\"temperature\": 0.6,"));
    assert_non_null(strstr(tp_buf_str(&json), "\"do_sample\": true"));

    tp_gguf_put_generation(&c, &again, &notes);
    assert_int_equal(again.bytes.len, k.bytes.len);
    assert_memory_equal(again.bytes.data, k.bytes.data, k.bytes.len);
    assert_int_equal(notes.len, 0);

    /* Where the file of a folder is silent, transformers' own numbers go out. */
    c = (tp_generation_config){.do_sample = true,
                               .temperature = NAN,
                               .top_p = NAN,
                               .min_p = NAN,
                               .repetition_penalty = NAN,
                               .top_k = -1,
                               .max_new_tokens = 7};
    tp_gguf_put_generation(&c, &usual, &notes);
    assert_string_equal(tp_buf_str(&notes),
                        "generation_config.json: max_new_tokens: GGUF has no key "
                        "for that, the file does not ask for it\n");
    tp_gguf_keys of_model = {0};
    notes.len = 0;
    c.is_of_model = true;
    tp_gguf_put_generation(&c, &of_model, &notes);
    assert_memory_equal(tp_buf_str(&notes), "config.json: max_new_tokens: ", 29);
    tp_buf_release(&of_model.bytes);
    assert_int_equal(settings_of(path, &usual, &c, &err), TP_OK);
    assert_true(c.do_sample && c.temperature == 1 && c.top_p == 1 && c.min_p == 0 && c.top_k == 50);

    assert_int_equal(settings_of(path, &none, &c, &err), TP_OK);
    assert_true(!c.is_there && !c.do_sample);
    unlink(path);
    tp_buf_release(&k.bytes);
    tp_buf_release(&again.bytes);
    tp_buf_release(&usual.bytes);
    tp_buf_release(&notes);
    tp_buf_release(&json);
}

static void check_text(void (*more)(tp_gguf_keys *k), const char *expected)
{
    tp_gguf_keys k = {0};
    tp_buf json = {0};
    tp_error err = {0};
    tp_generation_config c;
    char path[64];
    snprintf(path, sizeof path, "/tmp/tp-settings-%d.gguf", (int)getpid());
    more(&k);
    assert_int_equal(settings_of(path, &k, &c, &err), TP_OK);
    assert_int_equal(tp_gguf_generation_text(path, &c, &json, &err), TP_OK);
    assert_string_equal(tp_buf_str(&json), expected);
    unlink(path);
    tp_buf_release(&json);
    tp_buf_release(&k.bytes);
}

static void add_ids(tp_gguf_keys *k)
{
    tp_gguf_put_u32(k, "tokenizer.ggml.bos_token_id", 1);
    tp_gguf_put_u32(k, "tokenizer.ggml.eos_token_id", 2);
    tp_gguf_put_u32(k, "tokenizer.ggml.eot_token_id", 7);
}
static void add_ids_and_temperature(tp_gguf_keys *k)
{
    add_ids(k);
    tp_gguf_put_f32(k, "general.sampling.temp", 0.5f);
}
static void add_greedy(tp_gguf_keys *k)
{
    tp_gguf_put_f32(k, "general.sampling.temp", 0);
    tp_gguf_put_f32(k, "general.sampling.top_p", 0.5f);
    tp_gguf_put_i32(k, "general.sampling.top_k", 20);
    tp_gguf_put_f32(k, "general.sampling.penalty_repeat", 1.5f);
}

/* transformers takes the ids of this file alone, and no temperature of 0. */
static void texts_of_settings_are_whole(void **state)
{
    check_text(add_ids, "");
    check_text(add_ids_and_temperature,
               "{\n  \"bos_token_id\": 1,\n  \"eos_token_id\": [\n    2,\n    7\n  ],\n"
               "  \"do_sample\": true,\n  \"temperature\": 0.5\n}\n");
    check_text(add_greedy, "{\n  \"do_sample\": false,\n  \"repetition_penalty\": 1.5\n}\n");
}

static void refuse_settings(void (*more)(tp_gguf_keys *k), const char *message)
{
    tp_gguf_keys k = {0};
    tp_error err = {0};
    tp_generation_config c;
    char path[64];
    snprintf(path, sizeof path, "/tmp/tp-settings-%d.gguf", (int)getpid());
    more(&k);
    assert_true(settings_of(path, &k, &c, &err) != TP_OK);
    if (!strstr(err.message, message))
        fail_msg("%s", err.message);
    unlink(path);
    tp_buf_release(&k.bytes);
}

static void add_mirostat(tp_gguf_keys *k) { tp_gguf_put_i32(k, "general.sampling.mirostat", 2); }
static void add_xtc(tp_gguf_keys *k)
{
    tp_gguf_put_f32(k, "general.sampling.xtc_probability", 0.5f);
}
static void add_sequence(tp_gguf_keys *k)
{
    tp_gguf_put_string(k, "general.sampling.sequence", TP_SLICE("top_k;temperature"));
}
static void add_last_n(tp_gguf_keys *k)
{
    tp_gguf_put_f32(k, "general.sampling.penalty_repeat", 1.5f);
    tp_gguf_put_i32(k, "general.sampling.penalty_last_n", 64);
}
static void add_wide_top_p(tp_gguf_keys *k) { tp_gguf_put_f32(k, "general.sampling.top_p", 2); }

static void refuses_other_ways_to_draw_by_name(void **state)
{
    refuse_settings(add_mirostat, "'general.sampling.mirostat' may change what is drawn");
    refuse_settings(add_xtc, "'general.sampling.xtc_probability' may change what is drawn");
    refuse_settings(add_sequence, "'general.sampling.sequence' may change what is drawn");
    refuse_settings(add_last_n, "'general.sampling.penalty_last_n' is 64: a penalty on the last");
    refuse_settings(add_wide_top_p, "'general.sampling.top_p' is 2; expected a number from 0 to 1");
}

/* The tokenizers library numbers new added tokens behind the vocabulary: those that stand elsewhere
 * are in it. */
static void special_tokens_before_others_keep_their_ids(void **state)
{
    static const char *const words[] = {"<s>", "a", "b", "ab", "</s>"};
    static const int32_t types[] = {TP_GGUF_TOKEN_CONTROL, TP_GGUF_TOKEN_NORMAL,
                                    TP_GGUF_TOKEN_NORMAL, TP_GGUF_TOKEN_NORMAL,
                                    TP_GGUF_TOKEN_CONTROL};
    tp_gguf_keys k = {0};
    tp_buf file = {0}, json = {0};
    tp_error err = {0};
    uint64_t bytes;
    tp_gguf *g;
    tp_tokenizer *tok = NULL;
    tp_gguf_put_string(&k, "tokenizer.ggml.model", TP_SLICE("gpt2"));
    tp_gguf_put_string(&k, "tokenizer.ggml.pre", TP_SLICE("gpt-2"));
    tp_gguf_put_array(&k, "tokenizer.ggml.tokens", TP_GGUF_STRING, TP_COUNTOF(words));
    for (size_t i = 0; i < TP_COUNTOF(words); i++)
        tp_gguf_item_string(&k, tp_slice_of(words[i]));
    tp_gguf_put_array(&k, "tokenizer.ggml.token_type", TP_GGUF_I32, TP_COUNTOF(types));
    for (size_t i = 0; i < TP_COUNTOF(types); i++)
        tp_gguf_item_i32(&k, types[i]);
    tp_gguf_put_array(&k, "tokenizer.ggml.merges", TP_GGUF_STRING, 1);
    tp_gguf_item_string(&k, TP_SLICE("a b"));
    assert_int_equal(tp_gguf_header(&k, NULL, 0, &file, &bytes, NULL), TP_OK);
    while (file.len < bytes)
        tp_buf_addc(&file, 0);
    assert_int_equal(tp_gguf_parse("x.gguf", file.data, file.len, &g, &err), TP_OK);

    tp_status status = tp_tokenizer_json_of_gguf(g, &json, &err);
    assert_string_equal(err.message, "");
    assert_int_equal(status, TP_OK);
    status = tp_tokenizer_parse("x.gguf", json.data, json.len, &tok, &err);
    assert_string_equal(err.message, "");
    assert_int_equal(status, TP_OK);
    for (size_t i = 0; i < TP_COUNTOF(words); i++) {
        assert_string_equal(tp_tokenizer_token(tok, (int32_t)i), words[i]);
        assert_int_equal(tp_tokenizer_is_special(tok, (int32_t)i),
                         types[i] == TP_GGUF_TOKEN_CONTROL);
    }
    assert_non_null(strstr(tp_buf_str(&json), "\"<s>\": 0"));
    tp_tokenizer_free(tok);
    tp_gguf_close(g);
    tp_buf_release(&json);
    tp_buf_release(&file);
    tp_buf_release(&k.bytes);
}

static void refuses_other_tokenizers_by_name(void **state)
{
    refuse_tokenizer(NULL, NULL, true, "has no tokenizer ('tokenizer.ggml.model')");
    refuse_tokenizer("llama", "default", true,
                     "'tokenizer.ggml.model' is \"llama\"; byte-level BPE, \"gpt2\", is "
                     "supported (\"llama\" is SentencePiece)");
    refuse_tokenizer("gpt2", NULL, true,
                     "has no 'tokenizer.ggml.pre', so how text is cut into words is "
                     "unknown; export the model again");
    refuse_tokenizer("gpt2", "tekken", true,
                     "'tokenizer.ggml.pre' is \"tekken\"; gpt-2, smollm, llama-bpe, "
                     "smaug-bpe and qwen2 are supported");
    refuse_tokenizer("gpt2", "gpt-2", false, "has no 'tokenizer.ggml.tokens'");
    refuse_tokenizer("gpt2", "gpt-2", true, "has no 'tokenizer.ggml.merges'");
}

static void refuses_what_changes_the_model_by_name(void **state)
{
    tp_buf config = {0};
    refuse_config("mamba", NULL, "'general.architecture' is \"mamba\"; supported are llama");
    refuse_config("llama", add_experts,
                  "'llama.expert_count' is not known here and may change what the model computes");
    refuse_config("llama", add_adapter,
                  "'general.type' is \"adapter\"; only whole models are read");
    refuse_config("llama", add_split, "join them with llama.cpp's llama-gguf-split --merge");
    refuse_config("llama", add_yarn, "'llama.rope.scaling.type' is \"yarn\"");
    refuse_config("llama", add_linear, "'llama.rope.scaling.factor' is 4");
    refuse_config("llama", add_half_rotation, "values of 16 and rotate 8");
    assert_int_equal(config_of("llama", add_no_experts, NULL, &config, NULL), TP_OK);
    assert_non_null(strstr(config.data, "\"rms_norm_eps\": 1e-5,"));
    assert_non_null(strstr(config.data, "\"tie_word_embeddings\": true"));
    tp_buf_release(&config);
}

/* head_dim 16, theta 10000, bounds 1 and 4: the divisors of the converter. */
static void check_scaling(double factor, double context, const char *wanted)
{
    tp_rope rope = {.theta = 10000,
                    .is_llama3 = true,
                    .factor = factor,
                    .low_freq_factor = 1,
                    .high_freq_factor = 4,
                    .original_positions = context};
    float divisors[8];
    tp_buf config = {0};
    tp_error err = {0};
    for (int i = 0; i < 8; i++)
        divisors[i] = tp_rope_divisor(&rope, 16, i);
    if (config_of("llama", NULL, divisors, &config, &err) != TP_OK)
        fail_msg("factor %g, context %g: %s", factor, context, err.message);
    assert_non_null(strstr(config.data, "\"rope_type\": \"llama3\""));
    if (!strstr(config.data, wanted))
        fail_msg("%s is not in %s", wanted, config.data);
    tp_buf_clear(&config);
    divisors[0] = 3;
    assert_int_equal(config_of("llama", NULL, divisors, &config, &err), TP_ERR_UNSUPPORTED);
    tp_buf_release(&config);
}

static void finds_the_scaling_that_gave_the_divisors(void **state)
{
    check_scaling(8, 256, "\"original_max_position_embeddings\": 256");
    check_scaling(8, 256, "\"factor\": 8,");
    check_scaling(2.5, 512, "\"factor\": 2.5,");
    /* No pair is slowed by the whole factor: the slowest turns once in 19869 positions. */
    check_scaling(32, 32768, "\"factor\": 32,");
    check_scaling(32, 32768, "\"original_max_position_embeddings\": 32768");
}

/* ---- writing ---- */

static tp_status export_to(const char *path, const char *type, tp_error *err)
{
    tp_model *model;
    tp_tokenizer *tok;
    tp_gguf_export_result result;
    tp_gguf_export_options options = {.type = type, .name = "Tiny Llama", .threads = 2};
    assert_int_equal(tp_model_open(SAMPLE, &model, NULL), TP_OK);
    assert_int_equal(tp_tokenizer_load(SAMPLE, &tok, NULL), TP_OK);
    tp_status status = tp_gguf_export(model, tok, path, &options, &result, err);
    tp_tokenizer_free(tok);
    tp_model_free(model);
    return status;
}

/* Q4_0 of numbers that came from Q4_0 is the same blocks: the tensors of llama-quantize. */
static void writes_the_tensors_that_it_read(void **state)
{
    tp_gguf *ours, *theirs;
    tp_error err = {0};
    char path[64];
    snprintf(path, sizeof path, "/tmp/tp-gguf-%d", (int)getpid());
    assert_int_equal(export_to(path, "Q4_0", &err), TP_OK);
    assert_int_equal(tp_gguf_open(path, &ours, &err), TP_OK);
    assert_int_equal(tp_gguf_open(SAMPLE, &theirs, &err), TP_OK);
    assert_int_equal(tp_gguf_tensor_count(ours), tp_gguf_tensor_count(theirs));
    for (size_t i = 0; i < tp_gguf_tensor_count(theirs); i++) {
        const tp_gguf_tensor *b = tp_gguf_tensor_at(theirs, i);
        const tp_gguf_tensor *a = tp_gguf_find_tensor(ours, b->name);
        assert_non_null(a);
        assert_int_equal(a->type, b->type);
        assert_int_equal(a->bytes, b->bytes);
        assert_memory_equal(a->data, b->data, a->bytes);
    }
    for (size_t i = 0; i < tp_gguf_key_count(theirs); i++) {
        const tp_gguf_value *b = tp_gguf_key_at(theirs, i);
        char key[128];
        snprintf(key, sizeof key, "%.*s", (int)b->key.len, b->key.data);
        const tp_gguf_value *a = tp_gguf_find(ours, key);
        if (!a)
            fail_msg("no key %s", key);
        assert_int_equal(a->type, b->type);
        assert_int_equal(a->n, b->n);
        assert_memory_equal(a->data, b->data, b->type == TP_GGUF_STRING ? 8 : 4);
    }
    assert_int_equal(tp_gguf_key_count(ours), tp_gguf_key_count(theirs) + 1); /* add_bos_token */
    tp_gguf_close(ours);
    tp_gguf_close(theirs);
    unlink(path);
}

/* Whatever write fails, the file is the old one or the new one. */
static void a_failed_write_leaves_the_old_file(void **state)
{
    char path[64];
    tp_error err = {0};
    tp_status status = TP_ERR_IO;
    snprintf(path, sizeof path, "/tmp/tp-gguf-%d", (int)getpid());
    for (uint64_t n = 1; status != TP_OK && n < 100; n++) {
        tp_buf now = {0};
        assert_int_equal(tp_output_put(path, "old", 3, &err), TP_OK);
        tp_fault_arm(n, false);
        status = export_to(path, "F16", &err);
        tp_fault_arm(0, false);
        assert_int_equal(tp_file_read(path, 0, &now, &err), TP_OK);
        if (status != TP_OK && now.len != 3)
            assert_memory_equal(now.data, "GGUF", 4); /* only the folder's sync failed */
        tp_buf_release(&now);
    }
    assert_int_equal(status, TP_OK);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_keys_and_tensors),
        cmocka_unit_test(refuses_what_is_no_such_file),
        cmocka_unit_test(refuses_counts_that_nothing_backs),
        cmocka_unit_test(refuses_arrays_of_arrays_and_keys_twice),
        cmocka_unit_test(refuses_tensors_that_are_not_there),
        cmocka_unit_test(tensors_that_overlap_are_refused),
        cmocka_unit_test(refuses_every_beginning_of_a_file),
        cmocka_unit_test(opens_a_file_of_llama_cpp),
        cmocka_unit_test(refuses_tensors_that_no_key_explains),
        cmocka_unit_test(settings_of_generation_come_and_go),
        cmocka_unit_test(texts_of_settings_are_whole),
        cmocka_unit_test(refuses_other_ways_to_draw_by_name),
        cmocka_unit_test(special_tokens_before_others_keep_their_ids),
        cmocka_unit_test(refuses_other_tokenizers_by_name),
        cmocka_unit_test(refuses_what_changes_the_model_by_name),
        cmocka_unit_test(finds_the_scaling_that_gave_the_divisors),
        cmocka_unit_test(writes_the_tensors_that_it_read),
        cmocka_unit_test(a_failed_write_leaves_the_old_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
