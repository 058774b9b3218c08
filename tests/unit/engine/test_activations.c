/* test_activations.c - GELU, SiLU, SwiGLU and their derivatives of every half there is, and of the
 * same numbers in f32, at every level: by themselves, GELU at the ends of both products as well,
 * against double precision. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "base/platform.h"
#include "engine/backend/backend.h"
#include "support/devices.h"

enum { HALVES = 65536, N = 40 };

/* Bits of a significand, the exponent of its last bit at most, and what a kernel may be off before
 * it rounds; denormal numbers may become zeros. */
static const struct {
    tp_dtype dtype;
    int bits, smallest;
    double off[4]; /* by function */
    double tiny;
} kinds[] = {
    {TP_DTYPE_BF16, 8, -133, {2e-6, 4e-6, 7e-5, 2e-4}, 0x1p-126},
    {TP_DTYPE_F16, 11, -24, {2e-6, 4e-6, 4e-7, 2e-6}, 0x1p-14},
    {TP_DTYPE_F32, 24, -149, {4e-7, 8e-7, 4e-7, 2e-6}, 0x1p-126},
};

typedef enum { GELU, GELU_SLOPE, SILU, SILU_SLOPE } function;

static char x[HALVES * 4], one[HALVES * 4], ones[N * 4], panels[2 * 64 * 4], y[HALVES * N * 4],
    pre[HALVES * N * 4];

static float get(const void *from, tp_dtype dtype, int64_t i)
{
    if (dtype == TP_DTYPE_F32)
        return ((const float *)from)[i];
    tp_bf16 half = ((const tp_bf16 *)from)[i];
    return dtype == TP_DTYPE_BF16 ? tp_bf16_to_f32(half) : tp_f16_to_f32((tp_f16)half);
}

static void put(void *to, tp_dtype dtype, int64_t i, float value)
{
    if (dtype == TP_DTYPE_F32)
        ((float *)to)[i] = value;
    else
        ((tp_bf16 *)to)[i] =
            dtype == TP_DTYPE_BF16 ? tp_f32_to_bf16(value) : (tp_bf16)tp_f32_to_f16(value);
}

/* Every bit pattern of a half; f32 takes those of bf16. */
static void fill(tp_dtype dtype)
{
    for (int i = 0; i < HALVES; i++) {
        if (dtype == TP_DTYPE_F32)
            ((float *)(void *)x)[i] = tp_bf16_to_f32((tp_bf16)i);
        else
            ((tp_bf16 *)(void *)x)[i] = (tp_bf16)i;
        put(one, dtype, i, 1);
    }
    for (int i = 0; i < N; i++)
        put(ones, dtype, i, 1);
}

static double share(double v, bool is_tanh)
{
    const double u = sqrt(2 / M_PI) * (v + 0.044715 * v * v * v);
    return is_tanh ? 1 / (1 + exp(-2 * u)) : erfc(-v * M_SQRT1_2) / 2;
}

static double slope(double v, bool is_tanh)
{
    if (!is_tanh)
        return share(v, false) + v * exp(-v * v / 2) / sqrt(2 * M_PI);
    const double du = sqrt(2 / M_PI) * (1 + 3 * 0.044715 * v * v);
    double s = share(v, true), rest = share(-v, true);
    return s + 2 * v * s * rest * du;
}

static double exact(function f, double v, bool is_tanh)
{
    double s = 1 / (1 + exp(-v)), rest = 1 / (1 + exp(v));
    switch (f) {
    case GELU:
        return v * share(v, is_tanh);
    case GELU_SLOPE:
        return slope(v, is_tanh);
    case SILU:
        return v * s;
    case SILU_SLOPE:
        return s + v * s * rest;
    }
    return NAN;
}

static tp_operand matrix(void *data, tp_dtype dtype, int64_t rows, int64_t columns)
{
    return (tp_operand){
        .data = data, .dtype = dtype, .rank = 2, .dim = {rows, columns}, .stride = columns};
}

static void run(tp_launch *launch)
{
    launch->threads = 2;
    launch->team = team_of(2);
    launch->kernel = tp_kernel_find_prepared(&tp_backend_cpu, launch);
    launch->workspace_bytes = tp_kernel_workspace(launch->kernel, launch);
    launch->workspace = aligned_alloc(64, (launch->workspace_bytes + 64) / 64 * 64);
    assert_non_null(launch->workspace);
    launch->kernel->run(launch);
    free(launch->workspace);
}

/* Element i*n + j of y is f of half i. */
static void check(const char *what, size_t kind, function f, bool is_tanh, int64_t n)
{
    tp_dtype dtype = kinds[kind].dtype;
    for (int64_t i = 0; i < HALVES; i++) {
        double v = (double)get(x, dtype, i);
        double want = exact(f, v, is_tanh);
        for (int64_t j = 0; j < n; j++) {
            double got = (double)get(y, dtype, i * n + j);
            if (isnan(v) ? isnan(got) : isinf(v))
                continue;
            int last =
                TP_MAX(ilogb(fmax(fmax(fabs(want), fabs(got)), 0x1p-200)) - kinds[kind].bits + 1,
                       kinds[kind].smallest);
            double most =
                ldexp(0.5, last) + kinds[kind].off[f] * fmax(fabs(want), 1) + kinds[kind].tiny;
            if (!(fabs(got - want) <= most))
                fail_msg("%s, %s, %s: f(%.9g) is %.9g, not %.9g", what, tp_dtype_name(dtype),
                         is_tanh ? "tanh" : "", v, got, want);
        }
    }
}

/* The op's result of x, and of ones for all other inputs. */
static void check_op(const char *what, tp_op op, int n_in, size_t kind, function f, bool is_tanh)
{
    tp_dtype dtype = kinds[kind].dtype;
    tp_launch launch = {.op = op, .n_in = (uint8_t)n_in, .n_out = 1, .attrs.tanh = is_tanh};
    launch.in[0] = matrix(x, dtype, 1, HALVES);
    for (int i = 1; i < n_in; i++)
        launch.in[i] = matrix(one, dtype, 1, HALVES);
    launch.out[0] = matrix(y, dtype, 1, HALVES);
    if (op == TP_OP_swiglu_grad) {
        launch.n_out = 2;
        launch.out[1] = matrix(pre, dtype, 1, HALVES);
    }
    run(&launch);
    check(what, kind, f, is_tanh, 1);
    if (op != TP_OP_swiglu_grad)
        return;
    memcpy(y, pre, (size_t)HALVES * tp_dtype_size(dtype));
    check("swiglu_grad of up", kind, SILU, is_tanh, 1);
}

static void check_elementwise(size_t kind, bool is_tanh)
{
    check_op("gelu", TP_OP_gelu, 1, kind, GELU, is_tanh);
    check_op("gelu_grad", TP_OP_gelu_grad, 2, kind, GELU_SLOPE, is_tanh);
    check_op("silu", TP_OP_silu, 1, kind, SILU, false);
    check_op("swiglu", TP_OP_swiglu, 2, kind, SILU, false);
    check_op("silu_grad", TP_OP_silu_grad, 2, kind, SILU_SLOPE, false);
    check_op("swiglu_grad", TP_OP_swiglu_grad, 3, kind, SILU_SLOPE, false);
}

/* Every output of a row is the row's one input. */
static void check_products(size_t kind, bool is_tanh)
{
    tp_dtype dtype = kinds[kind].dtype;
    tp_launch product = {.op = TP_OP_linear_gelu, .n_in = 3, .n_out = 2, .attrs.tanh = is_tanh};
    product.in[0] = matrix(x, dtype, HALVES, 1);
    product.in[1] = matrix(ones, dtype, N, 1);
    product.out[0] = matrix(y, dtype, HALVES, N);
    product.out[1] = matrix(pre, dtype, HALVES, N);
    run(&product);
    check("linear_gelu", kind, GELU, is_tanh, N);
    tp_launch pack = {.op = TP_OP_pack_panels, .n_in = 1, .n_out = 1};
    pack.in[0] = product.in[1];
    pack.out[0] = matrix(panels, dtype, 1, 2 * 64);
    run(&pack);
    tp_launch packed = {.op = TP_OP_linear_panels, .n_in = 3, .n_out = 1};
    packed.attrs = (tp_attrs){.n0 = N, .activation = is_tanh ? 2 : 1};
    packed.in[0] = product.in[0];
    packed.in[1] = pack.out[0];
    packed.out[0] = product.out[0];
    run(&packed);
    check("linear_panels", kind, GELU, is_tanh, N);
}

static void every_half_has_its_activation(void **state)
{
    for (tp_isa isa = TP_ISA_PORTABLE; isa <= tp_cpu_detect(); isa++) {
        assert_int_equal(tp_cpu_force_isa(isa, NULL), TP_OK);
        for (size_t kind = 0; kind < TP_COUNTOF(kinds); kind++) {
            fill(kinds[kind].dtype);
            for (int is_tanh = 0; is_tanh < 2; is_tanh++) {
                check_elementwise(kind, is_tanh);
                check_products(kind, is_tanh);
            }
        }
    }
    assert_int_equal(tp_cpu_force_isa(tp_cpu_detect(), NULL), TP_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_half_has_its_activation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
