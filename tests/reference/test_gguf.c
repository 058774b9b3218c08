/* test_gguf.c - blocks and files of llama.cpp (tools/reference/make_gguf.py).
 *
 * ../shared/oracles/adapters, or the folder named as argument, is used as well where it is: blocks
 * of its quantisers, and what its converter makes of two models. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/files.h"
#include "base/platform.h"
#include "engine/model/ggml.h"
#include "engine/model/gguf_export.h"
#include "engine/model/gguf_names.h"
#include "engine/model/safetensors.h"
#include "text/gguf/gguf.h"
#include "text/tokenizer/tokenizer.h"

#define DATA TP_SOURCE_DIR "/tests/data/gguf/"

static const char *shared_root = TP_SOURCE_DIR "/../shared/oracles/adapters";

static const struct {
    const char *name;
    tp_ggml_type type;
} types[] = {{"q4_0", TP_GGML_Q4_0}, {"q5_0", TP_GGML_Q5_0}, {"q5_1", TP_GGML_Q5_1},
             {"q8_0", TP_GGML_Q8_0}, {"q4_K", TP_GGML_Q4_K}, {"q5_K", TP_GGML_Q5_K},
             {"q6_K", TP_GGML_Q6_K}};

static tp_safetensors *st;
static float *x; /* aligned */
static size_t n;

static int open_blocks(void **state)
{
    tp_error err = {0};
    if (tp_safetensors_open(DATA "blocks.safetensors", &st, &err) != TP_OK)
        return -1;
    const tp_tensor_entry *e = tp_safetensors_find(st, "x");
    n = e->bytes / sizeof *x;
    x = malloc(e->bytes);
    memcpy(x, e->data, e->bytes);
    return 0;
}

static int close_blocks(void **state)
{
    free(x);
    tp_safetensors_close(st);
    return 0;
}

static void encoders_give_the_bytes_of_llama_cpp(void **state)
{
    for (size_t i = 0; i < TP_COUNTOF(types); i++) {
        const tp_tensor_entry *wanted = tp_safetensors_find(st, types[i].name);
        unsigned char *blocks = malloc(wanted->bytes);
        tp_ggml_from_f32(types[i].type, x, blocks, n);
        assert_memory_equal(blocks, wanted->data, wanted->bytes);
        free(blocks);
    }
}

static void decoders_give_the_numbers_of_llama_cpp(void **state)
{
    for (size_t i = 0; i < TP_COUNTOF(types); i++) {
        char name[32];
        snprintf(name, sizeof name, "%s.deq", types[i].name);
        const tp_tensor_entry *blocks = tp_safetensors_find(st, types[i].name);
        const tp_tensor_entry *wanted = tp_safetensors_find(st, name);
        float *out = malloc(n * sizeof *out);
        tp_ggml_to_f32(types[i].type, blocks->data, out, n);
        assert_memory_equal(out, wanted->data, wanted->bytes);
        free(out);
    }
}

/* ---- Q4_K_M ---- */

static tp_model *open_model(const char *family, int heads, int kv_heads, int layers, bool is_tied)
{
    tp_buf text = {0};
    tp_model *model = NULL;
    tp_error err = {0};
    if (strcmp(family, "gpt2") == 0)
        tp_buf_addf(
            &text,
            "{\"model_type\": \"gpt2\", \"vocab_size\": 64, \"n_embd\": 256, \"n_layer\": %d, "
            "\"n_head\": %d, \"n_positions\": 128}",
            layers, heads);
    else
        tp_buf_addf(&text,
                    "{\"model_type\": \"%s\", \"vocab_size\": 64, \"hidden_size\": 256, "
                    "\"intermediate_size\": 256, \"num_hidden_layers\": %d, "
                    "\"num_attention_heads\": %d, \"num_key_value_heads\": %d, \"head_dim\": %d, "
                    "\"max_position_embeddings\": 128, \"tie_word_embeddings\": %s}",
                    family, layers, heads, kv_heads, 256 / heads, is_tied ? "true" : "false");
    if (tp_model_parse("config.json", text.data, text.len, &model, &err) != TP_OK)
        fail_msg("%s", err.message);
    tp_buf_release(&text);
    return model;
}

static char digit_of(uint32_t type)
{
    return type == TP_GGML_Q4_K   ? '4'
           : type == TP_GGML_Q5_K ? '5'
           : type == TP_GGML_Q6_K ? '6'
                                  : '?';
}

/* The types of all matrices called `part`, block after block. */
static size_t types_of(const tp_model *model, const char *part, char *ret)
{
    size_t n_params, found = 0;
    const tp_param *params = tp_model_params(model, &n_params);
    for (size_t i = 0; i < n_params; i++) {
        tp_gguf_place place;
        char whole[64];
        assert_true(tp_gguf_place_of(model, &params[i], &place));
        if (place.is_f32)
            continue;
        const char *own =
            strncmp(place.name, "blk.", 4) == 0 ? strchr(place.name + 4, '.') + 1 : place.name;
        snprintf(whole, sizeof whole, "%s.weight", part);
        if (strcmp(own, whole) == 0)
            ret[found++] = digit_of(tp_gguf_q4_k_m(model, &params[i], place.name));
    }
    ret[found] = '\0';
    return found;
}

static void the_mixture_is_that_of_llama_quantize(void **state)
{
    FILE *file = fopen(DATA "q4_k_m.txt", "r");
    char family[16], tied[8], part[32], digits[128], ours[128];
    int heads, kv_heads, layers, lines = 0;
    assert_non_null(file);
    while (fscanf(file, "%15s %d %d %d %7s %31s %127s", family, &heads, &kv_heads, &layers, tied,
                  part, digits) == 7) {
        tp_model *model = open_model(family, heads, kv_heads, layers, strcmp(tied, "tied") == 0);
        assert_int_equal(types_of(model, part, ours), strlen(digits));
        if (strcmp(ours, digits) != 0)
            fail_msg("%s of %d blocks, %s: %s, not %s", family, layers, part, ours, digits);
        tp_model_free(model);
        lines++;
    }
    fclose(file);
    assert_int_equal(lines, 74);
}

/* ---- files that strangers may bring ---- */

/* How many bytes are the wanted ones. */
static size_t count_equal(const unsigned char *a, const unsigned char *b, size_t bytes)
{
    size_t equal = 0;
    for (size_t i = 0; i < bytes; i++)
        equal += a[i] == b[i];
    return equal;
}

static void blocks_of_the_shared_oracle(void **state)
{
    static const struct {
        const char *name;
        uint32_t type;
        double least; /* of the bytes equal: the order of sums moves a search's winner in Q4_K */
    } of[] = {{"q8_0", TP_GGML_Q8_0, 1}, {"q4_0", TP_GGML_Q4_0, 1}, {"q4_k", TP_GGML_Q4_K, 0.99}};
    char path[1024];
    tp_safetensors *file;
    snprintf(path, sizeof path, "%s/gguf-blocks.safetensors", shared_root);
    if (!tp_file_exists(path))
        skip();
    assert_int_equal(tp_safetensors_open(path, &file, NULL), TP_OK);
    const tp_tensor_entry *numbers = tp_safetensors_find(file, "x");
    size_t count = numbers->bytes / sizeof(float);
    float *given = malloc(numbers->bytes), *back = malloc(numbers->bytes);
    memcpy(given, numbers->data, numbers->bytes);
    for (size_t i = 0; i < TP_COUNTOF(of); i++) {
        char name[32];
        snprintf(name, sizeof name, "%s.deq", of[i].name);
        const tp_tensor_entry *blocks = tp_safetensors_find(file, of[i].name);
        unsigned char *ours = malloc(blocks->bytes);
        tp_ggml_from_f32(of[i].type, given, ours, count);
        size_t equal = count_equal(ours, blocks->data, blocks->bytes);
        if ((double)equal < of[i].least * (double)blocks->bytes)
            fail_msg("%s: %zu of %zu bytes are equal", of[i].name, equal, blocks->bytes);
        tp_ggml_to_f32(of[i].type, blocks->data, back, count);
        assert_memory_equal(back, tp_safetensors_find(file, name)->data, numbers->bytes);
        free(ours);
    }
    free(given);
    free(back);
    tp_safetensors_close(file);
}

/* Every tensor of the model as `type` is that of the converter's file. */
static void check_export(const char *model_name, const char *type, const char *wanted)
{
    char folder[1024], tokens[1024], file[1024], path[64];
    tp_model *model;
    tp_tokenizer *tokenizer;
    tp_gguf *ours, *theirs;
    tp_gguf_export_result result;
    tp_error err = {0};
    const tp_gguf_export_options options = {.type = type, .name = "x", .threads = 2};
    snprintf(folder, sizeof folder, "%s/%s", shared_root, model_name);
    snprintf(tokens, sizeof tokens, "%s/tokenizer", shared_root);
    snprintf(file, sizeof file, "%s/gguf/%s", shared_root, wanted);
    snprintf(path, sizeof path, "/tmp/tp-export-%d", (int)getpid());
    if (tp_model_open(folder, &model, &err) != TP_OK ||
        tp_tokenizer_load(tokens, &tokenizer, &err) != TP_OK ||
        tp_gguf_export(model, tokenizer, path, &options, &result, &err) != TP_OK ||
        tp_gguf_open(path, &ours, &err) != TP_OK || tp_gguf_open(file, &theirs, &err) != TP_OK)
        fail_msg("%s", err.message);
    assert_int_equal(tp_gguf_tensor_count(ours), tp_gguf_tensor_count(theirs));
    for (size_t i = 0; i < tp_gguf_tensor_count(theirs); i++) {
        const tp_gguf_tensor *b = tp_gguf_tensor_at(theirs, i);
        const tp_gguf_tensor *a = tp_gguf_find_tensor(ours, b->name);
        if (!a || a->type != b->type || a->bytes != b->bytes || memcmp(a->data, b->data, b->bytes))
            fail_msg("%s: '%s' is not the converter's", wanted, b->name);
    }
    tp_gguf_close(ours);
    tp_gguf_close(theirs);
    tp_tokenizer_free(tokenizer);
    tp_model_free(model);
    unlink(path);
}

static void exports_are_those_of_the_converter(void **state)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/gguf/llama-f32.gguf", shared_root);
    if (!tp_file_exists(path))
        skip();
    check_export("llama-base", "F32", "llama-f32.gguf");
    check_export("llama-base", "Q8_0", "llama-q8_0.gguf");
    check_export("llama-base", "Q4_0", "llama-q4_0.gguf");
    check_export("gpt2-base", "F16", "gpt2-f16.gguf");
}

int main(int argc, char **argv)
{
    if (argc > 1)
        shared_root = argv[1];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encoders_give_the_bytes_of_llama_cpp),
        cmocka_unit_test(decoders_give_the_numbers_of_llama_cpp),
        cmocka_unit_test(the_mixture_is_that_of_llama_quantize),
        cmocka_unit_test(blocks_of_the_shared_oracle),
        cmocka_unit_test(exports_are_those_of_the_converter),
    };
    return cmocka_run_group_tests(tests, open_blocks, close_blocks);
}
