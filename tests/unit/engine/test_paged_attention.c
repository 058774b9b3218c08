/* test_paged_attention.c - attention from the cache, of every level, AMX trapped and emulated where
 * there is none: a row in any company, and beside attention as training computes it. */
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

extern const tp_kernel tp_cpu_paged_attention_portable, tp_cpu_paged_attention_avx2,
    tp_cpu_paged_attention_avx512, tp_cpu_paged_attention_avx512_bf16, tp_cpu_paged_attention_amx,
    tp_cpu_attention_portable, tp_cpu_attention_avx2, tp_cpu_attention_avx512,
    tp_cpu_attention_avx512_bf16, tp_cpu_attention_amx;

/* Another sequence of BEFORE tokens lies before this one of N in training; the cache's blocks of
 * PLACES lie from the last to the first. */
enum {
    H = 4,
    G = 2,
    D = 64,
    BEFORE = 43,
    N = 211,
    PLACES = 32,
    BLOCKS = (N + PLACES - 1) / PLACES
};

static tp_bf16 q[(BEFORE + N) * H * D], k[(BEFORE + N) * G * D], v[(BEFORE + N) * G * D];
static tp_bf16 cache_k[BLOCKS * G * D * PLACES], cache_v[BLOCKS * G * D * PLACES];
static tp_bf16 trained[(BEFORE + N) * H * D], prompt[N * H * D], in_pieces[N * H * D];
static float lse[H * (BEFORE + N)];
static int32_t positions[N], slots[N], table[BLOCKS], starts[3] = {0, BEFORE, BEFORE + N};

static void fill(tp_bf16 *to, size_t n, float scale, uint32_t seed)
{
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        to[i] = tp_f32_to_bf16(((float)(seed >> 8) * 0x1p-23f - 1.0f) * scale);
    }
}

static void fill_all(void)
{
    fill(q, sizeof q / sizeof *q, 3, 1);
    fill(k, sizeof k / sizeof *k, 2, 2);
    fill(v, sizeof v / sizeof *v, 1, 3);
    for (int i = 0; i < N; i++)
        positions[i] = i;
    for (int i = 0; i < BLOCKS; i++)
        table[i] = BLOCKS - 1 - i;
}

static tp_operand matrix(void *data, int64_t rows, int64_t columns)
{
    return (tp_operand){
        .data = data, .dtype = TP_DTYPE_BF16, .rank = 2, .dim = {rows, columns}, .stride = columns};
}

static tp_operand integers(int32_t *data, int64_t n)
{
    return (tp_operand){.data = data, .dtype = TP_DTYPE_I32, .rank = 1, .dim = {n, 1}, .stride = 1};
}

static void run(const tp_kernel *kernel, tp_launch *launch, uint16_t threads)
{
    launch->attrs = (tp_attrs){.heads = H, .kv_heads = G, .head_dim = D, .scale = 0.2f};
    launch->threads = threads;
    launch->team = team_of(threads);
    launch->kernel = kernel;
    assert_true(kernel->accepts(launch));
    launch->workspace_bytes = tp_kernel_workspace(kernel, launch);
    launch->workspace = aligned_alloc(64, (launch->workspace_bytes + 64) / 64 * 64);
    memset(launch->workspace, 0xff, launch->workspace_bytes); /* NaN */
    kernel->run(launch);
    free(launch->workspace);
}

/* Rows from `row` on of the sequence. */
static void run_paged(const tp_kernel *kernel, int64_t row, int64_t rows, tp_bf16 *o,
                      uint16_t threads)
{
    int64_t t = BEFORE + row;
    tp_launch launch = {.op = TP_OP_paged_attention, .n_in = 8, .n_out = 3};
    launch.in[0] = matrix(q + t * H * D, rows, H * D);
    launch.in[1] = matrix(k + t * G * D, rows, G * D);
    launch.in[2] = matrix(v + t * G * D, rows, G * D);
    launch.in[3] = launch.out[1] = matrix(cache_k, BLOCKS, G * D * PLACES);
    launch.in[4] = launch.out[2] = matrix(cache_v, BLOCKS, G * D * PLACES);
    launch.in[5] = integers(positions + row, rows);
    launch.in[6] = integers(slots + row, rows);
    launch.in[7] = (tp_operand){
        .data = table, .dtype = TP_DTYPE_I32, .rank = 2, .dim = {1, BLOCKS}, .stride = BLOCKS};
    launch.out[0] = matrix(o + row * H * D, rows, H * D);
    run(kernel, &launch, threads);
}

static void run_trained(const tp_kernel *kernel)
{
    tp_launch launch = {.op = TP_OP_attention, .n_in = 4, .n_out = 2};
    launch.in[0] = matrix(q, BEFORE + N, H * D);
    launch.in[1] = matrix(k, BEFORE + N, G * D);
    launch.in[2] = matrix(v, BEFORE + N, G * D);
    launch.in[3] = integers(starts, 3);
    launch.out[0] = matrix(trained, BEFORE + N, H * D);
    launch.out[1] = matrix(lse, H, BEFORE + N);
    launch.out[1].dtype = TP_DTYPE_F32;
    run(kernel, &launch, 2);
}

static void pieces_have_the_bits_of_the_whole(const tp_kernel *kernel)
{
    static const int pieces[] = {1, 16, 47, 1, 1, 62, 5, 33, 1};
    memset(cache_k, 0xff, sizeof cache_k);
    memset(cache_v, 0xff, sizeof cache_v);
    run_paged(kernel, 0, N, prompt, 2);
    memset(cache_k, 0xff, sizeof cache_k);
    memset(cache_v, 0xff, sizeof cache_v);
    int64_t row = 0;
    for (int i = 0; row < N; i++) {
        int64_t n = pieces[i % (int)(sizeof pieces / sizeof *pieces)];
        n = n < N - row ? n : N - row;
        run_paged(kernel, row, n, in_pieces, (uint16_t)(1 + i % 2));
        row += n;
    }
    assert_memory_equal(prompt, in_pieces, sizeof prompt);
}

/* P is rounded alike whatever the bounds of the softmax are, so that results differ by the order
 * of f32 sums alone: rarely by as much as changes a bf16. */
static void training_has_nearly_the_same_bits(const tp_kernel *kernel, const tp_kernel *attention)
{
    int differ = 0;
    run_trained(attention);
    for (int64_t i = 0; i < N * H * D; i++) {
        double generated = (double)tp_bf16_to_f32(prompt[i]);
        double wanted = (double)tp_bf16_to_f32(trained[BEFORE * H * D + i]);
        differ += generated != wanted;
        if (!(fabs(generated - wanted) <= 0x1p-7 * fabs(wanted) + 1e-6))
            fail_msg("%s: element %lld is %g, in training %g", kernel->name, (long long)i,
                     generated, wanted);
    }
    if (differ > N * H * D / 1000)
        fail_msg("%s: %d of %d differ from training", kernel->name, differ, N * H * D);
}

static void check(const tp_kernel *kernel, const tp_kernel *attention)
{
    fill_all();
    pieces_have_the_bits_of_the_whole(kernel);
    training_has_nearly_the_same_bits(kernel, attention);
}

static void vectors_agree_with_training_and_keep_rows_apart(void **state)
{
    (void)state;
    static const tp_kernel *const kernels[][2] = {
        {&tp_cpu_paged_attention_portable, &tp_cpu_attention_portable},
        {&tp_cpu_paged_attention_avx2, &tp_cpu_attention_avx2},
        {&tp_cpu_paged_attention_avx512, &tp_cpu_attention_avx512},
        {&tp_cpu_paged_attention_avx512_bf16, &tp_cpu_attention_avx512_bf16},
    };
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (kernels[i][0]->isa <= tp_cpu_detect())
            check(kernels[i][0], kernels[i][1]);
}

static void tiles_agree_with_training_and_keep_rows_apart(void **state)
{
    (void)state;
    if (tp_cpu_detect() < TP_ISA_AVX512_BF16) {
        print_message("skipped: no AVX-512 BF16 on this machine\n");
        skip();
    }
    check(&tp_cpu_paged_attention_amx, &tp_cpu_attention_amx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_agree_with_training_and_keep_rows_apart),
        cmocka_unit_test(tiles_agree_with_training_and_keep_rows_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
