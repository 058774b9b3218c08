/* test_quantised.c - weights in 8 and 4 bits: codes, errors, and what a product loses by them.
 *
 * Values of bitsandbytes in ../shared/oracles/adapters/nf4.safetensors, or the file named as
 * argument, are used as well where they are. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/files.h"
#include "base/rng.h"
#include "engine/device/quantised.h"
#include "engine/model/adapter.h"
#include "engine/model/family.h"
#include "engine/model/frozen.h"
#include "engine/model/safetensors.h"
#include "support/devices.h"

static const char *oracle = TP_SOURCE_DIR "/../shared/oracles/adapters/nf4.safetensors";

enum { N = 256 * 1024 };

static void draw(float *x, int64_t n)
{
    tp_rng rng = tp_rng_make(7, 1);
    for (int64_t i = 0; i < n; i++) {
        double radius = sqrt(-2 * log(1 - tp_rng_uniform(&rng)));
        x[i] = (float)(radius * cos(2 * M_PI * tp_rng_uniform(&rng)));
    }
}

/* Root mean square of the difference, of the values'. */
static double error_of(const float *is, const float *want, int64_t n)
{
    double off = 0, all = 0;
    for (int64_t i = 0; i < n; i++) {
        double d = (double)is[i] - (double)want[i];
        off += d * d;
        all += (double)want[i] * (double)want[i];
    }
    return sqrt(off / all);
}

/* Through codes and back. */
static void squeeze_int8(const float *x, int64_t n, float *out)
{
    int8_t *codes = malloc((size_t)n);
    float *scales = malloc((size_t)tp_int8_scales(n) * sizeof *scales);
    tp_int8_encode(x, n, codes, scales);
    tp_int8_decode(codes, scales, n, out);
    free(codes);
    free(scales);
}

static void squeeze_nf4(const float *x, int64_t n, float *out)
{
    uint8_t *codes = malloc((size_t)tp_nf4_bytes(n)), *sizes = malloc((size_t)tp_nf4_sizes(n));
    float *groups = malloc((size_t)tp_nf4_groups(n) * sizeof *groups);
    tp_nf4_encode(x, n, codes, sizes, groups);
    tp_nf4_decode(codes, sizes, groups, n, out);
    free(codes);
    free(sizes);
    free(groups);
}

static void test_levels_are_their_own_codes(void **state)
{
    float x[64], groups[2], back[64];
    uint8_t codes[32], sizes[1];
    for (int i = 0; i < 64; i++)
        x[i] = 3 * tp_nf4_levels[i % 16];
    tp_nf4_encode(x, 64, codes, sizes, groups);
    assert_int_equal(codes[0], 0x01);
    assert_int_equal(codes[7], 0xef);
    assert_int_equal(codes[8], 0x01);
    assert_int_equal(sizes[0], 127); /* no different from the mean, which is the offset */
    assert_true(groups[0] == 0 && groups[1] == 3);
    tp_nf4_decode(codes, sizes, groups, 64, back);
    assert_memory_equal(x, back, sizeof x);
}

static void test_zeros_and_short_blocks(void **state)
{
    const float x[3] = {0, 0, 0};
    float groups[2], scales[1], back[3] = {1, 1, 1};
    uint8_t codes[2], sizes[1];
    int8_t bytes[3];
    tp_nf4_encode(x, 3, codes, sizes, groups);
    assert_int_equal(codes[0], 0x77);
    assert_int_equal(codes[1], 0x77); /* the half that is left over has 0's code */
    tp_nf4_decode(codes, sizes, groups, 3, back);
    assert_true(back[0] == 0 && back[1] == 0 && back[2] == 0);
    tp_int8_encode(x, 3, bytes, scales);
    assert_true(scales[0] == 0 && bytes[0] == 0 && bytes[2] == 0);
}

static void test_int8_rounds_half_away_from_zero(void **state)
{
    const float x[4] = {-127, 0.5f, -0.5f, 126.4f};
    int8_t codes[4];
    float scales[1];
    tp_int8_encode(x, 4, codes, scales);
    assert_true(scales[0] == 1);
    assert_int_equal(codes[0], -127);
    assert_int_equal(codes[1], 1);
    assert_int_equal(codes[2], -1);
    assert_int_equal(codes[3], 126);
}

/* The figures of bitsandbytes and of Q8_0 on the same distribution. */
static void test_errors_on_a_normal_distribution(void **state)
{
    float *x = malloc(N * sizeof *x), *y = malloc(N * sizeof *y);
    draw(x, N);
    squeeze_int8(x, N, y);
    double int8 = error_of(y, x, N);
    squeeze_nf4(x, N, y);
    double nf4 = error_of(y, x, N);
    printf("relative error: int8 %.5f, nf4 %.5f\n", int8, nf4);
    assert_true(fabs(int8 - 0.00536) < 0.01 * 0.00536);
    assert_true(fabs(nf4 - 0.09201) < 0.01 * 0.09201);
    free(x);
    free(y);
}

static void test_bitsandbytes(void **state)
{
    tp_safetensors *file;
    if (!tp_file_exists(oracle))
        skip();
    MUST(tp_safetensors_open(oracle, &file, NULL));
    const tp_tensor_entry *w = tp_safetensors_find(file, "w");
    int64_t n = w->dim[0] * w->dim[1];
    float *x = malloc((size_t)n * sizeof *x), *y = malloc((size_t)n * sizeof *y);
    for (int64_t i = 0; i < n; i++)
        x[i] = tp_bf16_to_f32(((const tp_bf16 *)w->data)[i]);
    uint8_t *codes = malloc((size_t)tp_nf4_bytes(n)), *sizes = malloc((size_t)tp_nf4_sizes(n));
    float *groups = malloc((size_t)tp_nf4_groups(n) * sizeof *groups);
    tp_nf4_encode(x, n, codes, sizes, groups);
    tp_nf4_decode(codes, sizes, groups, n, y);

    assert_memory_equal(codes, tp_safetensors_find(file, "nf4")->data, (size_t)tp_nf4_bytes(n));
    assert_memory_equal(tp_dynamic_map_signed()->value,
                        tp_safetensors_find(file, "map_signed")->data, 256 * sizeof(float));
    assert_memory_equal(tp_dynamic_map_unsigned()->value,
                        tp_safetensors_find(file, "map_unsigned")->data, 256 * sizeof(float));
    const uint8_t *want = tp_safetensors_find(file, "dq.absmax_u8")->data;
    for (int64_t i = 0; i < tp_nf4_sizes(n); i++)
        assert_true(abs(sizes[i] - want[i]) <= 1);
    float offset = *(const float *)tp_safetensors_find(file, "dq.offset")->data;
    assert_true(fabsf(groups[tp_nf4_groups(n) - 1] - offset) <= 1e-6f * offset);
    const float *end = tp_safetensors_find(file, "dq.deq")->data;
    assert_true(error_of(y + n - 2048, end, 2048) < 1e-3);
    free(x);
    free(y);
    free(codes);
    free(sizes);
    free(groups);
    tp_safetensors_close(file);
}

/* What one product of every matrix of a model loses: printed, and of the order of its weights'. */
static void check_products(tp_base_storage storage, const char *name, double limit)
{
    tp_model *model;
    tp_states exact, packed;
    tp_load_report report;
    size_t n;
    tp_device *device = device_of("ref", 1);
    const char *folder = TP_SOURCE_DIR "/tests/data/reference/adapters/llama-lora";
    MUST(tp_model_open(folder, &model, NULL));
    MUST(tp_states_init(&exact, NULL));
    MUST(tp_model_declare(model, 1, &exact, NULL));
    MUST(tp_states_alloc(&exact, device, NULL));
    MUST(tp_model_load(model, &exact, &report, NULL));
    tp_model_freeze(model, storage, TP_DTYPE_F32);
    MUST(tp_states_init(&packed, NULL));
    MUST(tp_model_declare(model, 1, &packed, NULL));
    MUST(tp_states_alloc(&packed, device, NULL));
    MUST(tp_model_load(model, &packed, &report, NULL));
    const tp_param *params = tp_model_params(model, &n);
    for (size_t i = 0; i < n; i++) {
        const tp_param *p = &params[i];
        int64_t out = p->dim[0], in = p->dim[1];
        if (!tp_param_is_packed(p))
            continue;
        float *w = malloc((size_t)(out * in) * sizeof *w), *x = malloc((size_t)in * sizeof *x);
        float *y = calloc((size_t)out, sizeof *y), *want = calloc((size_t)out, sizeof *want);
        const float *plain = data_of(tp_states_find(&exact, p->name));
        MUST(tp_param_unpack(p, &packed, w, NULL));
        draw(x, in);
        for (int64_t o = 0; o < out; o++)
            for (int64_t k = 0; k < in; k++) {
                y[o] += w[o * in + k] * x[k];
                want[o] += plain[o * in + k] * x[k];
            }
        double error = error_of(y, want, out);
        printf("%s  %-45s product %.5f, weights %.5f\n", name, p->name, error,
               error_of(w, plain, out * in));
        assert_true(error > 0 && error < limit);
        free(w);
        free(x);
        free(y);
        free(want);
    }
    tp_states_release(&exact);
    tp_states_release(&packed);
    tp_model_free(model);
}

static void test_products(void **state)
{
    check_products(TP_BASE_INT8, "int8", 0.02);
    check_products(TP_BASE_NF4, "nf4 ", 0.2);
}

/* GPT-2 has [in, out]: packed it is [out, in], as bitsandbytes and GGUF turn it. */
static void test_gpt2_is_packed_by_outputs(void **state)
{
    static const char name[] = "transformer.h.0.attn.c_attn.weight";
    tp_model *model;
    tp_states exact, packed;
    tp_load_report report;
    tp_device *device = device_of("ref", 1);
    MUST(tp_model_open(TP_SOURCE_DIR "/tests/data/reference/gpt2", &model, NULL));
    MUST(tp_states_init(&exact, NULL));
    MUST(tp_model_declare(model, 1, &exact, NULL));
    MUST(tp_states_alloc(&exact, device, NULL));
    MUST(tp_model_load(model, &exact, &report, NULL));
    tp_model_freeze(model, TP_BASE_INT8, TP_DTYPE_F32);
    MUST(tp_states_init(&packed, NULL));
    MUST(tp_model_declare(model, 1, &packed, NULL));
    MUST(tp_states_alloc(&packed, device, NULL));
    MUST(tp_model_load(model, &packed, &report, NULL));
    const tp_param *p = tp_model_find_param(model, name);
    const float *plain = data_of(tp_states_find(&exact, name));
    const float *scales =
        data_of(tp_states_find(&packed, "transformer.h.0.attn.c_attn.weight.int8.scales"));

    int64_t in = p->dim[0], out = p->dim[1];
    assert_int_equal(out, 3 * in);
    assert_int_equal(in % 8, 0);
    float most = 0; /* of the first block: 32 values, output after output */
    for (int64_t i = 0; i < 32; i++)
        most = fmaxf(most, fabsf(plain[i % in * out + i / in]));
    assert_true(scales[0] == most / 127);
    tp_states_release(&exact);
    tp_states_release(&packed);
    tp_model_free(model);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_levels_are_their_own_codes),
        cmocka_unit_test(test_zeros_and_short_blocks),
        cmocka_unit_test(test_int8_rounds_half_away_from_zero),
        cmocka_unit_test(test_errors_on_a_normal_distribution),
        cmocka_unit_test(test_bitsandbytes),
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_gpt2_is_packed_by_outputs),
    };
    if (argc > 1)
        oracle = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
