/* test_attention_amx.c - attention.c and attention_grad.c as compiled for AMX, trapped and
 * emulated where there is none, against ref.  What else attention must do is asked of every
 * kernel by tests/ops. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "engine/backend/backend.h"
#include "support/devices.h"

extern const tp_kernel tp_cpu_attention_amx, tp_cpu_attention_grad_amx;

enum { T = 203, N_SEQUENCES = 4 };
static int32_t starts[N_SEQUENCES + 1] = {0, 130, 131, 195, 195}; /* then 8 rows of padding */

static tp_operand operand(tp_dtype dtype, int64_t rows, int64_t columns)
{
    tp_operand x = {.dtype = dtype, .rank = 2, .dim = {rows, columns}, .stride = columns};
    x.data = calloc((size_t)(rows * columns), tp_dtype_size(dtype));
    assert_non_null(x.data);
    return x;
}

static tp_operand random_operand(int64_t rows, int64_t columns, uint32_t seed)
{
    tp_operand x = operand(TP_DTYPE_BF16, rows, columns);
    for (int64_t i = 0; i < rows * columns; i++) {
        seed = seed * 1664525u + 1013904223u;
        ((tp_bf16 *)x.data)[i] = tp_f32_to_bf16((float)(seed >> 8) * 0x1p-23f - 1.0f);
    }
    return x;
}

static void run(const tp_kernel *kernel, tp_launch *launch, uint16_t threads)
{
    launch->threads = threads;
    launch->team = team_of(threads);
    launch->kernel = kernel;
    launch->workspace_bytes = tp_kernel_workspace(kernel, launch);
    launch->workspace = aligned_alloc(64, (launch->workspace_bytes + 63) / 64 * 64);
    assert_non_null(launch->workspace);
    memset(launch->workspace, 0xff, launch->workspace_bytes); /* NaN in any dtype */
    kernel->run(launch);
    free(launch->workspace);
}

static double value(const tp_operand *x, int64_t i)
{
    return x->dtype == TP_DTYPE_F32 ? (double)((const float *)x->data)[i]
                                    : (double)tp_bf16_to_f32(((const tp_bf16 *)x->data)[i]);
}

/* The largest difference, relative to the largest magnitude. */
static void assert_close(const tp_operand *got, const tp_operand *expected, double most)
{
    double difference = 0, magnitude = 0;
    for (int64_t i = 0; i < got->dim[0] * got->dim[1]; i++) {
        assert_true(value(got, i) == value(got, i)); /* a number */
        difference = fmax(difference, fabs(value(got, i) - value(expected, i)));
        magnitude = fmax(magnitude, fabs(value(expected, i)));
    }
    if (difference > most * magnitude)
        fail_msg("differs by %g of %g", difference, magnitude);
}

static void assert_same(const tp_operand *a, const tp_operand *b)
{
    size_t bytes = (size_t)(a->dim[0] * a->dim[1]) * tp_dtype_size(a->dtype);
    assert_memory_equal(a->data, b->data, bytes);
}

static void release(tp_operand *operands, int n)
{
    for (int i = 0; i < n; i++)
        free(operands[i].data);
}

static tp_launch forward_launch(int64_t H, int64_t G, int64_t D)
{
    tp_launch launch = {.op = TP_OP_attention, .n_in = 4, .n_out = 2};
    launch.attrs.heads = (int32_t)H;
    launch.attrs.kv_heads = (int32_t)G;
    launch.attrs.head_dim = (int32_t)D;
    launch.attrs.scale = 0.3f;
    launch.in[0] = random_operand(T, H * D, 1);
    launch.in[1] = random_operand(T, G * D, 2);
    launch.in[2] = random_operand(T, G * D, 3);
    launch.in[3] = (tp_operand){
        .data = starts, .dtype = TP_DTYPE_I32, .rank = 1, .dim = {N_SEQUENCES + 1, 1}, .stride = 1};
    return launch;
}

/* Runs the kernel under test with one and with two threads, and ref, on fresh outputs. */
static void check(tp_launch *launch, const tp_kernel *kernel, const tp_operand *like, double most)
{
    tp_operand got[TP_MAX_OUT], again[TP_MAX_OUT], expected[TP_MAX_OUT];
    for (int i = 0; i < launch->n_out; i++) {
        got[i] = operand(like[i].dtype, like[i].dim[0], like[i].dim[1]);
        again[i] = operand(like[i].dtype, like[i].dim[0], like[i].dim[1]);
        expected[i] = operand(like[i].dtype, like[i].dim[0], like[i].dim[1]);
    }
    memcpy(launch->out, got, sizeof got);
    run(kernel, launch, 1);
    memcpy(launch->out, again, sizeof again);
    run(kernel, launch, 2);
    memcpy(launch->out, expected, sizeof expected);
    run(tp_kernel_find(device_of("ref", 1), launch), launch, 1);

    for (int i = 0; i < launch->n_out; i++) {
        assert_close(&got[i], &expected[i], most);
        assert_same(&got[i], &again[i]);
    }
    release(got, launch->n_out);
    release(again, launch->n_out);
    memcpy(launch->out, expected, sizeof expected);
}

static void check_shape(int64_t H, int64_t G, int64_t D)
{
    if (!__builtin_cpu_supports("avx512bf16")) {
        print_message("skipped: the emulation needs AVX-512 BF16\n");
        skip();
    }
    tp_launch forward = forward_launch(H, G, D);
    tp_operand outputs[] = {{.dtype = TP_DTYPE_BF16, .dim = {T, H * D}},
                            {.dtype = TP_DTYPE_F32, .dim = {H, T}}};
    check(&forward, &tp_cpu_attention_amx, outputs, 0.008);

    tp_launch backward = {.op = TP_OP_attention_grad, .n_in = 7, .n_out = 3};
    backward.attrs = forward.attrs;
    memcpy(backward.in, forward.in, 3 * sizeof(tp_operand));
    backward.in[3] = forward.out[0];
    backward.in[4] = forward.out[1];
    backward.in[5] = random_operand(T, H * D, 4);
    backward.in[6] = forward.in[3];
    tp_operand gradients[] = {{.dtype = TP_DTYPE_BF16, .dim = {T, H * D}},
                              {.dtype = TP_DTYPE_BF16, .dim = {T, G * D}},
                              {.dtype = TP_DTYPE_BF16, .dim = {T, G * D}}};
    check(&backward, &tp_cpu_attention_grad_amx, gradients, 0.012);

    release(backward.out, 3);
    release(backward.in, 6);
}

static void test_one_head_of_64(void **state) { check_shape(1, 1, 64); }
static void test_shared_heads_of_64(void **state) { check_shape(4, 2, 64); }
static void test_heads_of_96(void **state) { check_shape(2, 2, 96); }
static void test_heads_of_128(void **state) { check_shape(2, 1, 128); }

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_head_of_64),
        cmocka_unit_test(test_shared_heads_of_64),
        cmocka_unit_test(test_heads_of_96),
        cmocka_unit_test(test_heads_of_128),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
