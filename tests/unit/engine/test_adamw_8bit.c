/* test_adamw_8bit.c - moments in 8 bits against bitsandbytes' formula with the nearest codes
 * (tools/reference/make_optimizers.py), and the dynamic map against its table. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "engine/backend/backend.h"
#include "engine/device/dynamic_map.h"
#include "engine/exec/program.h"
#include "engine/model/safetensors.h"
#include "engine/train/optimizers/optimizer.h"

#define MUST(x)                                  \
    do {                                         \
        if ((x) != TP_OK)                        \
            fail_msg("%s: %s", #x, err.message); \
    } while (0)

enum { N = 1100, BLOCKS = 5, STEPS = 3 };
static tp_error err;

static const char vectors[] =
    TP_SOURCE_DIR "/tests/data/reference/optimizers/adamw_8bit.safetensors";

static const void *vector(const tp_safetensors *st, const char *name, size_t bytes)
{
    const tp_tensor_entry *e = tp_safetensors_find(st, name);
    assert_non_null(e);
    assert_int_equal(e->bytes, bytes);
    return e->data;
}

static void the_map_is_that_of_bitsandbytes(void **unused)
{
    (void)unused;
    tp_safetensors *st;
    MUST(tp_safetensors_open(vectors, &st, &err));
    const float *of_m = vector(st, "qmap1", sizeof(float[256]));
    const float *of_v = vector(st, "qmap2", sizeof(float[256]));
    for (int i = 0; i < 256; i++) {
        float m = tp_dynamic_map_signed()->value[i], v = tp_dynamic_map_unsigned()->value[i];
        assert_true(fabsf(m - of_m[i]) <= 3e-7f * fabsf(m)); /* computed in f32 there */
        assert_true(fabsf(v - of_v[i]) <= 3e-7f * fabsf(v));
    }
    tp_safetensors_close(st);
}

static uint8_t nearest(const tp_dynamic_map *map, float x)
{
    int best = 0;
    for (int i = 1; i < 256; i++)
        if (x > (map->value[i - 1] + map->value[i]) / 2)
            best = i;
    return (uint8_t)best;
}

static void a_code_is_that_of_the_nearest_value(void **unused)
{
    (void)unused;
    const tp_dynamic_map *maps[] = {tp_dynamic_map_signed(), tp_dynamic_map_unsigned()};
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < 255; i++) {
            float boundary = maps[k]->boundary[i];
            assert_int_equal(tp_dynamic_code(maps[k], boundary), i);
            assert_int_equal(tp_dynamic_code(maps[k], nextafterf(boundary, 2)), i + 1);
            assert_int_equal(tp_dynamic_code(maps[k], maps[k]->value[i]), i);
        }
        for (int i = -4000; i <= 4000; i++) {
            float x = (float)i * 0x1p-12f;
            assert_int_equal(tp_dynamic_code(maps[k], x), nearest(maps[k], x));
            x *= 1e-4f;
            assert_int_equal(tp_dynamic_code(maps[k], x), nearest(maps[k], x));
        }
        assert_int_equal(tp_dynamic_code(maps[k], 1), 255);
        assert_int_equal(tp_dynamic_code(maps[k], NAN), 0);
    }
    assert_int_equal(tp_dynamic_code(maps[0], 0), 127);
    assert_int_equal(tp_dynamic_code(maps[1], 0), 0);
}

/* At most one in a hundred lies so near a boundary that the order of additions decides. */
static void expect_codes(const uint8_t *codes, const uint8_t *wanted)
{
    int n_other = 0;
    for (int i = 0; i < N; i++) {
        assert_true(abs(codes[i] - wanted[i]) <= 1);
        n_other += codes[i] != wanted[i];
    }
    assert_true(n_other <= N / 100);
}

static void expect_step(const tp_states *states, const tp_safetensors *st, int t)
{
    char name[32];
    float p[N];
    uint8_t codes[2 * N];
    MUST(tp_tensor_read(tp_states_find(states, "p"), 0, p, sizeof p, &err));
    MUST(tp_tensor_read(tp_states_find(states, "codes"), 0, codes, sizeof codes, &err));
    snprintf(name, sizeof name, "exact.p%d", t);
    const float *wanted = vector(st, name, sizeof p);
    for (int i = 0; i < N; i++)
        assert_true(fabsf(p[i] - wanted[i]) <= (t == 1 ? 1e-6f : 5e-4f));
    for (int k = 0; k < 2; k++) {
        snprintf(name, sizeof name, "exact.state%d.%d", k + 1, t);
        expect_codes(codes + k * N, vector(st, name, N));
    }
}

static tp_ref declare(tp_graph *g, const char *name, tp_role role, tp_dtype dtype, uint8_t rank,
                      int64_t rows, int64_t columns)
{
    const tp_tensor t = {
        .name = name, .role = role, .dtype = dtype, .rank = rank, .dim = {rows, columns}};
    return tp_graph_state(g, &t);
}

static void build(tp_graph *g)
{
    const int64_t n = 8;
    tp_ref in[] = {declare(g, "p", TP_ROLE_WEIGHT, TP_DTYPE_F32, 1, N, 1),
                   declare(g, "g", TP_ROLE_GRADIENT, TP_DTYPE_F32, 1, N, 1),
                   tp_graph_input(g, "scalars", TP_DTYPE_F64, 1, &n),
                   declare(g, "codes", TP_ROLE_MOMENT, TP_DTYPE_U8, 2, 2, N),
                   declare(g, "absmax", TP_ROLE_MOMENT, TP_DTYPE_F32, 2, 2, BLOCKS)};
    tp_attrs attrs = {.decay = 1};
    tp_ref first = tp_graph_op(g, TP_OP_adamw_8bit, &attrs, 5, in, "p");
    for (tp_ref k = 0; k < 3; k++)
        tp_graph_output(g, first + k);
}

static void expect_trajectory(const char *backend)
{
    tp_safetensors *st;
    tp_device *device;
    tp_states states;
    tp_program *program;
    int update;
    const tp_device_options one = {.threads = 1};
    MUST(tp_safetensors_open(vectors, &st, &err));
    MUST(tp_device_open(tp_backend_find(backend), &one, &device, &err));
    MUST(tp_states_init(&states, &err));
    MUST(tp_program_create(&(tp_program_options){.device = device}, &program, &err));
    MUST(tp_program_add(program, "update", &states, 0, &update, &err));
    build(tp_program_graph(program, update));
    MUST(tp_program_compile(program, &err));
    MUST(tp_program_alloc(program, &states, &err));
    MUST(tp_tensor_write(tp_states_find(&states, "p"), 0, vector(st, "p0", sizeof(float[N])),
                         sizeof(float[N]), &err));
    const float *gradients = vector(st, "grads", sizeof(float[STEPS][N]));
    for (int t = 1; t <= STEPS; t++) {
        tp_exec *exec = tp_program_exec(program, update);
        tp_optimizer_scalars scalars = tp_adamw_scalars(1e-2, 0.9, 0.95, 1e-8, 0.1, t, 1);
        MUST(tp_tensor_write(tp_states_find(&states, "g"), 0, gradients + (t - 1) * N,
                             sizeof(float[N]), &err));
        MUST(tp_exec_write(exec, tp_exec_input(exec, "scalars"), scalars.v, -1, &err));
        MUST(tp_program_run(program, update, true, &err));
        expect_step(&states, st, t);
    }
    tp_program_free(program);
    tp_states_release(&states);
    tp_device_close(device);
    tp_safetensors_close(st);
}

static void the_tree_finds_every_code(void **unused)
{
    (void)unused;
    const tp_dynamic_map *maps[] = {tp_dynamic_map_signed(), tp_dynamic_map_unsigned()};
    for (int m = 0; m < 2; m++)
        for (uint32_t upper = 0; upper < 1 << 16; upper++) {
            uint32_t bits = upper << 16 | 0x8001;
            unsigned at = 1;
            float x;
            memcpy(&x, &bits, sizeof x);
            for (int level = 0; level < 8; level++)
                at = 2 * at + (x > maps[m]->tree[at]);
            if (!isnan(x))
                assert_int_equal(at - 256, tp_dynamic_code(maps[m], x));
        }
}

static void three_steps_are_those_of_the_formula(void **unused)
{
    (void)unused;
    expect_trajectory("ref");
    expect_trajectory("cpu");
}

static void blocks_have_to_be_those_of_the_elements(void **unused)
{
    (void)unused;
    tp_graph g;
    tp_ref ret;
    const int64_t n = 8;
    MUST(tp_graph_init(&g, &err));
    tp_ref in[] = {declare(&g, "p", TP_ROLE_WEIGHT, TP_DTYPE_F32, 2, 20, 30),
                   declare(&g, "g", TP_ROLE_GRADIENT, TP_DTYPE_F32, 2, 20, 30),
                   tp_graph_input(&g, "scalars", TP_DTYPE_F64, 1, &n),
                   declare(&g, "codes", TP_ROLE_MOMENT, TP_DTYPE_U8, 2, 2, 600),
                   declare(&g, "absmax", TP_ROLE_MOMENT, TP_DTYPE_F32, 2, 2, 2)};
    assert_int_equal(tp_graph_try_op(&g, TP_OP_adamw_8bit, NULL, 5, in, "p", &ret, &err),
                     TP_ERR_FORMAT);
    assert_string_equal(err.message, "op adamw_8bit: 600 elements are not 2 blocks of 256");
    tp_graph_release(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_map_is_that_of_bitsandbytes),
        cmocka_unit_test(a_code_is_that_of_the_nearest_value),
        cmocka_unit_test(the_tree_finds_every_code),
        cmocka_unit_test(three_steps_are_those_of_the_formula),
        cmocka_unit_test(blocks_have_to_be_those_of_the_elements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
