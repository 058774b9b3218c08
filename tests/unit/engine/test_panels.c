/* test_panels.c - linear_panels of every level, AMX trapped and emulated where there is none,
 * against ref, and a row in any company. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "engine/backend/backend.h"
#include "support/devices.h"

extern const tp_kernel tp_cpu_linear_panels_portable, tp_cpu_linear_panels_avx2,
    tp_cpu_linear_panels_avx512, tp_cpu_linear_panels_avx512_bf16, tp_cpu_linear_panels_amx;

enum { MOST_ROWS = 300, MOST_K = 1100, MOST_N = 600 };

typedef struct {
    int64_t T, N, K;
    int32_t activation;
} shape;

static tp_bf16 x[MOST_ROWS * MOST_K], w[(MOST_N + 63) / 64 * 64 * MOST_K];
static float bias[MOST_N], got[MOST_ROWS * MOST_N], want[MOST_ROWS * MOST_N],
    alone[MOST_ROWS * MOST_N];

static void fill(tp_bf16 *to, size_t n, uint32_t seed)
{
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        to[i] = tp_f32_to_bf16((float)(seed >> 8) * 0x1p-23f - 1.0f);
    }
}

static tp_operand matrix(void *data, tp_dtype dtype, int64_t rows, int64_t columns)
{
    return (tp_operand){
        .data = data, .dtype = dtype, .rank = 2, .dim = {rows, columns}, .stride = columns};
}

static void run(const tp_kernel *kernel, const shape *s, int64_t row, int64_t rows, float *y,
                uint16_t threads)
{
    tp_launch launch = {.op = TP_OP_linear_panels,
                        .n_in = 3,
                        .n_out = 1,
                        .threads = threads,
                        .team = team_of(threads),
                        .kernel = kernel,
                        .attrs = {.n0 = (int32_t)s->N, .activation = s->activation}};
    launch.in[0] = matrix(x + row * s->K, TP_DTYPE_BF16, rows, s->K);
    launch.in[1] = matrix(w, TP_DTYPE_BF16, (s->N + 63) / 64, 64 * (s->K + s->K % 2));
    launch.in[2] =
        (tp_operand){.data = bias, .dtype = TP_DTYPE_F32, .rank = 1, .dim = {s->N, 1}, .stride = 1};
    launch.out[0] = matrix(y + row * s->N, TP_DTYPE_F32, rows, s->N);
    launch.workspace_bytes = tp_kernel_workspace(kernel, &launch);
    launch.workspace = aligned_alloc(64, (launch.workspace_bytes + 64) / 64 * 64);
    memset(launch.workspace, 0xff, launch.workspace_bytes); /* NaN */
    kernel->run(&launch);
    free(launch.workspace);
}

static void check(const tp_kernel *kernel, const shape *s)
{
    tp_launch any = {.op = TP_OP_linear_panels};
    const tp_kernel *ref = tp_kernel_find(device_of("ref", 1), &any);
    run(kernel, s, 0, s->T, got, 2);
    run(ref, s, 0, s->T, want, 1);
    for (int64_t i = 0; i < s->T * s->N; i++)
        if (!(fabsf(got[i] - want[i]) <= 1e-5f * (float)s->K))
            fail_msg("%s, T=%lld N=%lld K=%lld: element %lld is %g, not %g", kernel->name,
                     (long long)s->T, (long long)s->N, (long long)s->K, (long long)i,
                     (double)got[i], (double)want[i]);
    for (int64_t row = 0; row < s->T; row += 7)
        run(kernel, s, row, s->T - row < 7 ? s->T - row : 7, alone, 1);
    assert_memory_equal(got, alone, (size_t)(s->T * s->N) * sizeof *got);
}

static void check_all_shapes(const tp_kernel *kernel)
{
    static const shape shapes[] = {{1, 1, 1, 0},     {1, 64, 32, 1},    {16, 65, 33, 0},
                                   {17, 130, 64, 2}, {33, 600, 100, 0}, {150, 300, 1099, 0},
                                   {300, 70, 513, 2}};
    fill(x, sizeof x / sizeof *x, 1);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const shape *s = &shapes[i];
        fill(w, sizeof w / sizeof *w, 2);
        if (s->K % 2 == 1) /* what has no weight is 0 */
            for (int64_t p = 0; p < (s->N + 63) / 64; p++)
                for (int64_t n = 0; n < 64; n++)
                    w[(p + 1) * 64 * (s->K + 1) - 128 + 2 * n + 1] = 0;
        for (int n = 0; n < MOST_N; n++)
            bias[n] = (float)n * 0.01f;
        check(kernel, s);
    }
}

static void vectors_compute_what_ref_does_and_keep_rows_apart(void **state)
{
    (void)state;
    static const tp_kernel *const kernels[] = {
        &tp_cpu_linear_panels_portable,
        &tp_cpu_linear_panels_avx2,
        &tp_cpu_linear_panels_avx512,
        &tp_cpu_linear_panels_avx512_bf16,
    };
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (kernels[i]->isa <= tp_cpu_detect())
            check_all_shapes(kernels[i]);
}

static void tiles_compute_what_ref_does_and_keep_rows_apart(void **state)
{
    (void)state;
    if (tp_cpu_detect() < TP_ISA_AVX512_BF16) {
        print_message("skipped: no AVX-512 BF16 on this machine\n");
        skip();
    }
    check_all_shapes(&tp_cpu_linear_panels_amx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_compute_what_ref_does_and_keep_rows_apart),
        cmocka_unit_test(tiles_compute_what_ref_does_and_keep_rows_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
