/* test_gguf.c - blocks and files of llama.cpp (tools/reference/make_gguf.py). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/platform.h"
#include "engine/model/ggml.h"
#include "engine/model/safetensors.h"

#define DATA TP_SOURCE_DIR "/tests/data/gguf/"

static const struct {
    const char *name;
    tp_ggml_type type;
} types[] = {{"q4_0", TP_GGML_Q4_0}, {"q5_0", TP_GGML_Q5_0}, {"q8_0", TP_GGML_Q8_0},
             {"q4_K", TP_GGML_Q4_K}, {"q5_K", TP_GGML_Q5_K}, {"q6_K", TP_GGML_Q6_K}};

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
        if (types[i].type == TP_GGML_Q5_K) /* which is only read */
            continue;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encoders_give_the_bytes_of_llama_cpp),
        cmocka_unit_test(decoders_give_the_numbers_of_llama_cpp),
    };
    return cmocka_run_group_tests(tests, open_blocks, close_blocks);
}
