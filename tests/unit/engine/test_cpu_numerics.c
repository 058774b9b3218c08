/* test_cpu_numerics.c - what a thread's state of floating point may not change, what kernels leave
 * behind, teams of any size for one launch, and AdamW beside PyTorch. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <xmmintrin.h>

#include <cmocka.h>

#include "base/platform.h"
#include "engine/backend/backend.h"
#include "engine/model/convert.h"
#include "support/devices.h"

enum { PLAIN = 0x1f80, FLUSHING = 0x9fc0, DOWNWARD = 0x3f80 };
static const unsigned states[] = {PLAIN, FLUSHING, DOWNWARD};

/* ---- conversions ---- */

static double value_of_half(unsigned half)
{
    int exponent = (int)(half >> 10 & 31);
    double fraction = (double)(half & 1023);
    double magnitude = exponent == 0 ? ldexp(fraction, -24) : ldexp(fraction + 1024, exponent - 25);
    return half & 0x8000 ? -magnitude : magnitude;
}

static void every_f16_is_read_and_written_exactly_in_any_state(void **state)
{
    static uint16_t halves[65536], back[65536];
    static float got[2][65536];
    for (unsigned i = 0; i < 65536; i++)
        halves[i] = (uint16_t)i;
    for (size_t s = 0; s < TP_COUNTOF(states); s++) {
        _mm_setcsr(states[s]);
        tp_convert_to_f32(halves, TP_DTYPE_F16, got[s > 0], 65536);
        tp_convert_from_f32(got[s > 0], TP_DTYPE_F16, back, 65536);
        assert_int_equal(_mm_getcsr() & ~0x3fu, states[s]);
        _mm_setcsr(PLAIN);
        assert_memory_equal(got[0], got[s > 0], sizeof got[0]);
        for (unsigned i = 0; i < 65536; i++) {
            if ((i & 0x7c00) == 0x7c00)
                continue; /* infinities, NaNs */
            assert_true((double)got[0][i] == value_of_half(i));
            assert_int_equal(back[i], i);
        }
        assert_true(isinf(got[0][0x7c00]) && isnan(got[0][0x7e00]));
        assert_int_equal(back[0x7c00], 0x7c00);
    }
}

/* Halfway cases of f16, and f32 that are subnormal themselves. */
static void f32_is_rounded_alike_in_any_state(void **state)
{
    static const float x[8] = {0x1.002p0f, 0x1.006p0f, 0x1.8p-24f, 0x1p-25f,
                               0x1.8p-25f, 0x1p-140f,  65519.996f, -0x1.ffcp-15f};
    static const uint16_t halves[8] = {0x3c00, 0x3c02, 0x0002, 0, 1, 0, 0x7bff, 0x8400};
    static const tp_bf16 brains[8] = {0x3f80, 0x3f80, 0x33c0, 0x3300,
                                      0x3340, 0x0000, 0x4780, 0xb880};
    for (size_t s = 0; s < TP_COUNTOF(states); s++) {
        uint16_t half[8];
        tp_bf16 brain[8];
        double wide[8];
        float narrow[8];
        _mm_setcsr(states[s]);
        tp_convert_from_f32(x, TP_DTYPE_F16, half, 8);
        tp_convert_from_f32(x, TP_DTYPE_BF16, brain, 8);
        tp_convert_from_f32(x, TP_DTYPE_F64, wide, 8);
        tp_convert_to_f32(wide, TP_DTYPE_F64, narrow, 8);
        _mm_setcsr(PLAIN);
        assert_memory_equal(half, halves, sizeof half);
        assert_memory_equal(narrow, x, sizeof x);
        for (int i = 0; i < 8; i++)
            if (i != 5)
                assert_int_equal(brain[i], brains[i]);
        assert_true(wide[5] == 0x1p-140);
    }
}

/* ---- launches ---- */

static tp_operand matrix(void *data, tp_dtype dtype, int64_t rows, int64_t columns)
{
    return (tp_operand){
        .data = data, .dtype = dtype, .rank = 2, .dim = {rows, columns}, .stride = columns};
}

/* In a workspace of exactly the size that was planned. */
static void run_by(tp_team *team, const tp_backend *backend, tp_launch *launch, uint16_t threads)
{
    launch->threads = threads;
    launch->team = team;
    launch->kernel = tp_kernel_find_prepared(backend, launch);
    launch->workspace_bytes = tp_kernel_workspace(launch->kernel, launch);
    void *memory = malloc(launch->workspace_bytes + 64);
    assert_non_null(memory);
    launch->workspace = (void *)(((uintptr_t)memory + 63) / 64 * 64);
    launch->kernel->run(launch);
    free(memory);
}

static void run(const tp_backend *backend, tp_launch *launch, uint16_t threads)
{
    run_by(team_of(threads), backend, launch, threads);
}

enum { T = 130, K = 96, N = 160 };
static float x[T * K], w[N * K], y[4][T * N];

static tp_launch product(float *to)
{
    for (int i = 0; i < T * K; i++)
        x[i] = (float)(i % 37 - 18) * 0.0625f;
    for (int i = 0; i < N * K; i++)
        w[i] = (float)(i % 29 - 14) * 0.03125f;
    return (tp_launch){.op = TP_OP_linear,
                       .n_in = 2,
                       .n_out = 1,
                       .in = {matrix(x, TP_DTYPE_F32, T, K), matrix(w, TP_DTYPE_F32, N, K)},
                       .out = {matrix(to, TP_DTYPE_F32, T, N)}};
}

static tp_launch sum(float *to)
{
    tp_launch l = product(to);
    l.op = TP_OP_add;
    l.in[0] = matrix(y[0], TP_DTYPE_F32, T, N);
    l.in[1] = l.in[0];
    return l;
}

/* The caller's and, of a program that calls from several threads, each one's. */
static void kernels_leave_each_thread_its_state(void **state)
{
    for (size_t s = 0; s < TP_COUNTOF(states); s++) {
        _mm_setcsr(states[s]);
        tp_launch l = product(y[s]), add = sum(y[3]);
        run(&tp_backend_cpu, &l, 2);
        run(&tp_backend_cpu, &add, 2);
        unsigned after = _mm_getcsr();
        _mm_setcsr(PLAIN);
        assert_int_equal(after & ~0x3fu, states[s]);
        assert_memory_equal(y[0], y[s], sizeof y[0]);
    }
}

/* Workers are made with the state of the thread that opens a device. */
static void workers_compute_in_no_state_but_their_own(void **state)
{
    tp_launch alone = product(y[0]), four = product(y[1]);
    run(&tp_backend_cpu, &alone, 1);
    _mm_setcsr(DOWNWARD);
    tp_team *team = NULL;
    MUST(tp_team_create(&team, 4, 4, NULL));
    _mm_setcsr(PLAIN);
    for (int round = 0; round < 20; round++) {
        memset(y[1], 0, sizeof y[1]);
        run_by(team, &tp_backend_cpu, &four, 4);
        assert_memory_equal(y[0], y[1], sizeof y[0]);
    }
    tp_team_free(team);
}

/* As does a planned launch that another team runs, a smaller one, a larger one or none. */
static void whoever_runs_a_launch_gives_the_same_bits(void **state)
{
    tp_team *teams[] = {team_of(4), team_of(3), team_of(2), team_of(8), NULL};
    tp_launch alone = product(y[0]), four = product(y[1]);
    run(&tp_backend_cpu, &alone, 1);
    for (size_t i = 0; i < TP_COUNTOF(teams); i++) {
        memset(y[1], 0, sizeof y[1]);
        run_by(teams[i], &tp_backend_cpu, &four, 4);
        assert_memory_equal(y[0], y[1], sizeof y[0]);
    }
}

typedef struct {
    tp_launch launch;
    uint16_t threads;
} call;

static void *run_call(void *argument)
{
    call *c = argument;
    for (int round = 0; round < 20; round++)
        run_by(team_of(2), &tp_backend_cpu, &c->launch, c->threads);
    return NULL;
}

/* Both even ask the same team. */
static void threads_of_the_program_may_call_at_once(void **state)
{
    call calls[2] = {{product(y[0]), 1}, {product(y[1]), 4}};
    pthread_t other;
    (void)team_of(2);
    assert_int_equal(pthread_create(&other, NULL, run_call, &calls[0]), 0);
    run_call(&calls[1]);
    pthread_join(other, NULL);
    assert_memory_equal(y[0], y[1], sizeof y[0]);
}

/* ---- AdamW ---- */

/* torch.optim.AdamW 2.15.0 on float32, foreach=False, ten steps with lr 1e-2, beta1 0.9, eps 1e-8,
 * weight_decay 0.1; p[i] = (i - 3.5) / 4, grad[i] = ((5 i + 3 t) % 7 - 3) / 8 + 1/16 in step t
 * from 0 on. */
static const struct {
    double beta2;
    float p[8], v[8];
} torch[] = {
    {0.999,
     {-0.867978275f, -0.649362087f, -0.420276701f, -0.118582472f, 0.0793292224f, 0.347098708f,
      0.609231353f, 0.864600539f},
     {0.000754614652f, 0.00062980107f, 0.000661082217f, 0.00063014339f, 0.000754209992f,
      0.000598613231f, 0.000599111256f, 0.000754614652f}},
    {0.9999,
     {-0.86797905f, -0.649361968f, -0.420278698f, -0.118583724f, 0.0793359801f, 0.347097784f,
      0.609226882f, 0.864599764f},
     {7.57491798e-05f, 6.32510564e-05f, 6.6376364e-05f, 6.32544907e-05f, 7.57451198e-05f,
      6.01266802e-05f, 6.01316751e-05f, 7.57491798e-05f}},
};

static void ten_steps(const tp_backend *backend, size_t which)
{
    float p[8], g[8], m[8] = {0}, v[8] = {0};
    double s[8] = {1e-2, 0.9, torch[which].beta2, 1e-8, 0.1, 0, 0, 1};
    tp_launch l = {.op = TP_OP_adamw, .n_in = 5, .n_out = 3, .attrs.decay = 1};
    float *data[4] = {p, g, m, v};
    for (int i = 0; i < 8; i++)
        p[i] = ((float)i - 3.5f) * 0.25f;
    for (int k = 0; k < 4; k++)
        l.in[k] = matrix(data[k], TP_DTYPE_F32, 1, 8);
    l.in[4] = (tp_operand){.data = s, .dtype = TP_DTYPE_F64, .rank = 1, .dim = {8, 1}, .stride = 1};
    l.out[0] = l.in[0];
    l.out[1] = l.in[2];
    l.out[2] = l.in[3];
    for (int t = 0; t < 10; t++) {
        for (int i = 0; i < 8; i++)
            g[i] = (float)((i * 5 + t * 3) % 7 - 3) * 0.125f + 0.0625f;
        s[5] = 1 - pow(s[1], t + 1);
        s[6] = 1 - pow(s[2], t + 1);
        run(backend, &l, 1);
    }
    for (int i = 0; i < 8; i++) {
        if (fabsf(v[i] - torch[which].v[i]) > 1e-6f * torch[which].v[i])
            fail_msg("v[%d] is %.9g, PyTorch has %.9g", i, (double)v[i], (double)torch[which].v[i]);
        if (fabsf(p[i] - torch[which].p[i]) > 5e-7f)
            fail_msg("p[%d] is %.9g, PyTorch has %.9g", i, (double)p[i], (double)torch[which].p[i]);
    }
}

static void adamw_keeps_up_with_torch_at_beta2_near_1(void **state)
{
    for (size_t which = 0; which < TP_COUNTOF(torch); which++) {
        ten_steps(&tp_backend_ref, which);
        for (tp_isa isa = TP_ISA_PORTABLE; isa <= tp_cpu_detect(); isa++) {
            assert_int_equal(tp_cpu_force_isa(isa, NULL), TP_OK);
            ten_steps(&tp_backend_cpu, which);
        }
    }
}

enum { ROWS = 1030, COLUMNS = 1025, LARGE = ROWS * COLUMNS, SPARE = 64 };
static float large[4][LARGE]; /* p, g, m, v */
static _Alignas(64) tp_bf16 copy[LARGE + SPARE];

/* `at`: where in the memory the copy lies. */
static void check_large_copy(int64_t at)
{
    double s[8] = {1e-2, 0.9, 0.99, 1e-8, 0, 0.1, 0.01, 1};
    tp_launch l = {.op = TP_OP_adamw, .n_in = 6, .n_out = 4};
    for (int k = 0; k < 4; k++)
        l.in[k] = matrix(large[k], TP_DTYPE_F32, ROWS, COLUMNS);
    l.in[4] = (tp_operand){.data = s, .dtype = TP_DTYPE_F64, .rank = 1, .dim = {8, 1}, .stride = 1};
    l.in[5] = matrix(copy + at, TP_DTYPE_BF16, ROWS, COLUMNS);
    l.out[0] = l.in[0];
    l.out[1] = l.in[2];
    l.out[2] = l.in[3];
    l.out[3] = l.in[5];
    for (int i = 0; i < LARGE; i++) {
        large[0][i] = (float)(i % 97 - 48) * 0.0625f;
        large[1][i] = (float)(i % 41 - 20) + 0.5f;
        large[2][i] = large[3][i] = 0;
    }
    memset(copy, 0xa5, sizeof copy);
    run(&tp_backend_cpu, &l, 3);
    for (int64_t i = 0; i < LARGE; i++)
        if (copy[at + i] != tp_f32_to_bf16(large[0][i]))
            fail_msg("element %lld of the copy is %#x of %.9g", (long long)i, copy[at + i],
                     (double)large[0][i]);
    for (int64_t i = 0; i < SPARE; i++)
        assert_int_equal(copy[i < at ? i : i + LARGE], 0xa5a5);
}

/* A copy that L2 does not hold goes past the caches. */
static void adamw_rounds_all_of_a_large_copy(void **state)
{
    for (tp_isa isa = TP_ISA_PORTABLE; isa <= tp_cpu_detect(); isa++) {
        assert_int_equal(tp_cpu_force_isa(isa, NULL), TP_OK);
        check_large_copy(0);
        check_large_copy(1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_f16_is_read_and_written_exactly_in_any_state),
        cmocka_unit_test(f32_is_rounded_alike_in_any_state),
        cmocka_unit_test(kernels_leave_each_thread_its_state),
        cmocka_unit_test(workers_compute_in_no_state_but_their_own),
        cmocka_unit_test(whoever_runs_a_launch_gives_the_same_bits),
        cmocka_unit_test(threads_of_the_program_may_call_at_once),
        cmocka_unit_test(adamw_keeps_up_with_torch_at_beta2_near_1),
        cmocka_unit_test(adamw_rounds_all_of_a_large_copy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
