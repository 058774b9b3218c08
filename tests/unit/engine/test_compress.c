/* test_compress.c - gradients that are sent in fewer bits: formats by literal values, exchanges by
 * a plain loop that says in which order numbers are rounded and added. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/platform.h"
#include "engine/exec/program.h"
#include "support/local_ranks.h"

enum { LENGTH = 679, MOST_RANKS = 5, STEPS = 4, KEEP = 16 };

/* ---- formats ---- */

static void round_trip(tp_wire wire, const float *x, size_t n, float *ret)
{
    char code[4096];
    tp_wire_encode(&wire, x, n, code);
    tp_wire_decode(&wire, code, ret, n);
}

static void halves_round_to_nearest_even(void **state)
{
    static const float x[] = {1.0f, 1.00390625f, 1.01171875f, -3.4e38f, 65519.0f, 65520.0f};
    float y[6];
    round_trip((tp_wire){TP_WIRE_BF16, 0}, x, 6, y);
    assert_true(y[0] == 1.0f && y[1] == 1.0f && y[2] == 1.015625f && isinf(y[3]) && y[4] == 65536);
    round_trip((tp_wire){TP_WIRE_FP16, 0}, x, 6, y);
    assert_true(y[1] == 1.00390625f && isinf(y[3]) && y[4] == 65504.0f && isinf(y[5]));
}

static void int8_has_a_scale_for_every_block(void **state)
{
    float x[130] = {12.7f, 0.05f, -6.36f, 0.15f}, y[130];
    x[128] = 127.0f;
    x[129] = 0.5f;
    round_trip((tp_wire){TP_WIRE_INT8, 0}, x, 130, y);
    float scale = 12.7f / 127.0f;
    assert_true(y[0] == scale * 127 && y[1] == 0 && y[2] == scale * -64 && y[3] == scale * 2);
    assert_true(y[128] == 127.0f && y[129] == 0); /* 0.5 is even when it is 0 */
}

static void zeros_and_numbers_too_small_for_a_scale_are_zeros(void **state)
{
    static const float x[] = {0, 1e-40f, -1e-38f};
    float y[3];
    round_trip((tp_wire){TP_WIRE_INT8, 0}, x, 3, y);
    assert_true(y[0] == 0 && y[1] == 0 && y[2] == 0);
}

static void what_is_not_finite_is_not_hidden(void **state)
{
    float x[300] = {1, NAN, 3}, y[300];
    x[200] = 5;
    round_trip((tp_wire){TP_WIRE_INT8, 0}, x, 300, y);
    assert_true(isnan(y[0]) && isnan(y[1]) && isnan(y[127]) && y[200] == 5);
    round_trip((tp_wire){TP_WIRE_TOPK, 1}, x, 300, y);
    assert_true(isnan(y[1]) && y[0] == 0 && y[200] == 0);
    x[1] = INFINITY;
    round_trip((tp_wire){TP_WIRE_INT8, 0}, x, 300, y);
    assert_true(isnan(y[0]));
}

static void topk_sends_the_largest_and_of_equal_ones_the_first(void **state)
{
    static const float x[] = {1, -4, 2, 2, -2, 0.5f};
    float y[6];
    round_trip((tp_wire){TP_WIRE_TOPK, 3}, x, 6, y);
    assert_true(y[0] == 0 && y[1] == -4 && y[2] == 2 && y[3] == 2 && y[4] == 0 && y[5] == 0);
}

static void sizes_are_those_of_the_table(void **state)
{
    const tp_wire int8 = {TP_WIRE_INT8, 0}, topk = {TP_WIRE_TOPK, 16}, bf16 = {TP_WIRE_BF16, 0};
    assert_int_equal(tp_wire_block_bytes(&int8), 132);
    assert_int_equal(tp_wire_block_bytes(&topk), 80);
    assert_int_equal(tp_wire_block_bytes(&bf16), 32);
}

/* ---- the plain loop ---- */

static int by_magnitude(const void *a, const void *b)
{
    const float *const *x = a, *const *y = b;
    if (fabsf(**x) != fabsf(**y))
        return fabsf(**x) > fabsf(**y) ? -1 : 1;
    return *x < *y ? -1 : 1;
}

/* What a block of n numbers is to others. */
static void plain_block(tp_wire_kind kind, const float *v, size_t n, float *ret)
{
    float most = 0;
    const float *order[256];
    for (size_t i = 0; i < n; i++) {
        most = fmaxf(most, fabsf(v[i]));
        order[i] = &v[i];
        ret[i] = kind == TP_WIRE_BF16   ? tp_bf16_to_f32(tp_f32_to_bf16(v[i]))
                 : kind == TP_WIRE_FP16 ? tp_f16_to_f32(tp_f32_to_f16(v[i]))
                                        : 0;
    }
    if (kind == TP_WIRE_INT8 && most > 0) {
        float scale = most / 127.0f, inverse = 1.0f / scale;
        for (size_t i = 0; i < n; i++)
            ret[i] = scale * (float)lrintf(v[i] * inverse); /* no zero has a sign */
    }
    if (kind == TP_WIRE_TOPK) {
        qsort(order, n, sizeof *order, by_magnitude);
        for (size_t i = 0; i < n && i < KEEP; i++)
            ret[order[i] - v] = *order[i];
    }
}

static void plain(tp_wire_kind kind, const float *v, size_t n, float *ret)
{
    size_t block = kind == TP_WIRE_INT8 ? 128 : kind == TP_WIRE_TOPK ? 256 : 16;
    for (size_t at = 0; at < n; at += block)
        plain_block(kind, v + at, TP_MIN(block, n - at), ret + at);
}

typedef struct {
    tp_wire_kind kind;
    int ranks;
    bool keeps_errors, is_sharded, is_part;
    size_t bucket_bytes;
    bool overlaps;
    /* [ranks][LENGTH], of the step at hand */
    float gradients[MOST_RANKS][LENGTH], errors[MOST_RANKS][LENGTH], sums[MOST_RANKS][LENGTH];
    tp_comm_stats stats[MOST_RANKS];
    double plain_bytes;
} scene;

/* v = g + e; what of it is kept. */
static void plain_send(const scene *s, float *v, float *e, size_t n, float *sent)
{
    for (size_t i = 0; i < n; i++)
        v[i] += e[i];
    plain(s->kind, v, n, sent);
    for (size_t i = 0; i < n; i++)
        e[i] = s->keeps_errors ? v[i] - sent[i] : 0;
}

static void plain_part(scene *s, int owner)
{
    size_t begin, end;
    float v[LENGTH], sent[LENGTH], sum[LENGTH];
    tp_shard_part(LENGTH, (tp_shard){owner, s->ranks}, &begin, &end);
    size_t n = end - begin;
    memcpy(sum, s->gradients[owner] + begin, n * sizeof *sum);
    for (int k = 1; k < s->ranks; k++) {
        int from = (owner + k) % s->ranks;
        memcpy(v, s->gradients[from] + begin, n * sizeof *v);
        plain_send(s, v, s->errors[from] + begin, n, sent);
        for (size_t i = 0; i < n; i++)
            sum[i] += sent[i];
    }
    if (s->is_sharded) { /* exact, with what is kept of the own part */
        for (size_t i = 0; i < n; i++)
            s->sums[owner][begin + i] =
                s->keeps_errors ? sum[i] + s->errors[owner][begin + i] : sum[i];
        return;
    }
    plain_send(s, sum, s->errors[owner] + begin, n, sent);
    for (int r = 0; r < s->ranks; r++)
        memcpy(s->sums[r] + begin, sent, n * sizeof *sent);
}

/* ---- the same by the code of a run ---- */

typedef struct {
    tp_device *device;
    tp_program *program;
    tp_states states;
    int graph;
} trainee;

static void must(tp_status status, const tp_error *err)
{
    if (status == TP_OK)
        return;
    fprintf(stderr, "test_compress: %s\n", err->message);
    abort();
}

/* The gradient is the input: a product with 1.  A second one shares its bucket. */
static const char graph_text[] = "%1 = input f32[1,679] \"x\"\n"
                                 "%2 = input f32[1,1] \"one\"\n"
                                 "%3 = state f32[1,679] \"grad.w\" role=gradient of \"w\"\n"
                                 "%4 = state f32[1,679] \"grad.v\" role=gradient of \"v\"\n"
                                 "%5 = linear_dw %1, %2, %3\n"
                                 "%6 = linear_dw %1, %2, %4\n"
                                 "output %5\n"
                                 "output %6\n";

static void open_trainee(trainee *t, const scene *s, tp_comm *comm)
{
    static const char *const off[] = {"overlap"};
    tp_error err;
    const tp_device_options one = {.threads = 1};
    must(tp_device_open(tp_backend_find("ref"), &one, &t->device, &err), &err);
    const tp_ranks ranks = {.comm = comm,
                            .rank = tp_comm_rank(comm),
                            .ranks = s->ranks,
                            .bucket_bytes = s->bucket_bytes};
    const tp_program_options o = {.device = t->device,
                                  .passes = {.shards_optimizer = s->is_sharded,
                                             .wire = (int32_t)s->kind,
                                             .wire_keep = s->kind == TP_WIRE_TOPK ? KEEP : 0,
                                             .keeps_errors = s->keeps_errors,
                                             .disabled = off,
                                             .n_disabled = !s->overlaps},
                                  .ranks = ranks};
    uint32_t parts = 1u << TP_ROLE_ERROR | (s->is_part ? 1u << TP_ROLE_GRADIENT : 0);
    must(tp_states_init(&t->states, &err), &err);
    tp_states_keep_parts(&t->states, tp_ranks_shard(&ranks), (tp_shard){ranks.rank, ranks.ranks},
                         parts);
    must(tp_program_create(&o, &t->program, &err), &err);
    must(tp_program_add(t->program, "train", &t->states, 0, &t->graph, &err), &err);
    tp_graph *g = tp_program_graph(t->program, t->graph);
    tp_graph_release(g);
    must(tp_graph_parse("train", graph_text, strlen(graph_text), g, &err), &err);
    g->parts = parts;
    must(tp_program_compile(t->program, &err), &err);
    must(tp_program_alloc(t->program, &t->states, &err), &err);
}

static void close_trainee(trainee *t)
{
    tp_program_free(t->program);
    tp_states_release(&t->states);
    tp_device_close(t->device);
}

/* This rank's sum, where it has it. */
static void read_sum(const trainee *t, const scene *s, const char *name, int rank, float *ret)
{
    size_t begin = 0, end = LENGTH;
    tp_error err;
    if (s->is_sharded)
        tp_shard_part(LENGTH, (tp_shard){rank, s->ranks}, &begin, &end);
    must(tp_tensor_read_held(tp_states_find(&t->states, name), begin * sizeof *ret, ret + begin,
                             (end - begin) * sizeof *ret, &err),
         &err);
}

static void exchange(const trainee *t, const scene *s, int rank, const float *gradient, float *ret)
{
    static const float one = 1;
    float again[LENGTH] = {0};
    tp_error err;
    tp_exec *e = tp_program_exec(t->program, t->graph);
    must(tp_exec_write(e, tp_exec_input(e, "x"), gradient, -1, &err), &err);
    must(tp_exec_write(e, tp_exec_input(e, "one"), &one, -1, &err), &err);
    must(tp_program_run(t->program, t->graph, false, &err), &err);
    read_sum(t, s, "grad.w", rank, ret);
    read_sum(t, s, "grad.v", rank, again);
    for (size_t i = 0; i < LENGTH; i++) /* of the other tensor: the same */
        if (again[i] != 0 && memcmp(&again[i], &ret[i], sizeof *ret) != 0)
            abort();
}

/* ---- both ---- */

static float gradient_of(int step, int rank, size_t i)
{
    uint32_t h = (uint32_t)(step * 7919 + rank * 104729 + (int)i * 31) * 2654435761u;
    return ((float)(h >> 8) / 8388608.0f - 1.0f) * (i % 50 == 0 ? 10.0f : 1.0f);
}

static scene results; /* of the code */

static void take_steps(tp_comm *comm, void *user)
{
    scene *s = user;
    trainee t;
    int rank = tp_comm_rank(comm);
    float gradient[LENGTH];
    tp_error err;
    open_trainee(&t, s, comm);
    for (int step = 0; step < STEPS; step++) {
        for (size_t i = 0; i < LENGTH; i++)
            gradient[i] = gradient_of(step, rank, i);
        exchange(&t, s, rank, gradient, s->sums[rank]);
    }
    const tp_tensor *errors = tp_states_find(&t.states, "error.w");
    if (errors)
        must(tp_tensor_read_held(errors, (size_t)rank * (size_t)errors->dim[1] * sizeof(float),
                                 s->errors[rank], LENGTH * sizeof(float), &err),
             &err);
    s->stats[rank] = tp_comm_get_stats(comm);
    if (rank == 0)
        s->plain_bytes =
            tp_traffic_wire_stats(tp_exec_traffic(tp_program_exec(t.program, t.graph))).plain_bytes;
    close_trainee(&t);
}

static void run_scene(tp_wire_kind kind, int ranks, bool keeps_errors, bool sharded, bool part,
                      size_t bucket)
{
    memset(&results, 0, sizeof results);
    results.kind = kind;
    results.ranks = ranks;
    results.keeps_errors = keeps_errors;
    results.is_sharded = sharded;
    results.is_part = part;
    results.bucket_bytes = bucket;
    results.overlaps = bucket > 1024;
    local_ranks_run(ranks, take_steps, &results);
}

static void check_scene(void)
{
    static scene plain_loop;
    plain_loop = results;
    memset(plain_loop.sums, 0, sizeof plain_loop.sums);
    memset(plain_loop.errors, 0, sizeof plain_loop.errors);
    for (int step = 0; step < STEPS; step++) {
        for (int r = 0; r < results.ranks; r++)
            for (size_t i = 0; i < LENGTH; i++)
                plain_loop.gradients[r][i] = gradient_of(step, r, i);
        for (int owner = 0; owner < results.ranks; owner++)
            plain_part(&plain_loop, owner);
    }
    for (int r = 0; r < results.ranks; r++) {
        if (results.is_sharded) { /* the rest is lost */
            size_t begin, end;
            tp_shard_part(LENGTH, (tp_shard){r, results.ranks}, &begin, &end);
            assert_memory_equal(results.sums[r] + begin, plain_loop.sums[r] + begin,
                                (end - begin) * sizeof(float));
        } else
            assert_memory_equal(results.sums[r], plain_loop.sums[r], LENGTH * sizeof(float));
        assert_memory_equal(results.errors[r], plain_loop.errors[r], LENGTH * sizeof(float));
    }
}

static void sums_and_errors_are_those_of_the_plain_loop(void **state)
{
    for (int kind = TP_WIRE_FP16; kind < TP_WIRES; kind++)
        for (int ranks = 2; ranks <= MOST_RANKS; ranks++)
            for (int way = 0; way < 4; way++) {
                run_scene((tp_wire_kind)kind, ranks, way != 3, way == 1 || way == 2, way == 2,
                          1 << 20);
                check_scene();
            }
}

/* A bucket of 64 numbers sends a block at a time. */
static void buckets_change_no_bit(void **state)
{
    for (int kind = TP_WIRE_FP16; kind < TP_WIRES; kind++)
        for (int part = 0; part <= 1; part++) {
            run_scene((tp_wire_kind)kind, 3, true, part, part, 256);
            check_scene();
        }
}

/* 4 ranks: parts of 176, 176, 176 and 151 numbers are two blocks of int8 each. */
static void bytes_are_those_of_blocks(void **state)
{
    uint64_t sent = 0;
    run_scene(TP_WIRE_INT8, 4, true, false, false, 1 << 20);
    for (int r = 0; r < 4; r++)
        sent += results.stats[r].encoded_bytes;
    /* both tensors; every part goes to 3 others, and back */
    assert_int_equal(sent, STEPS * 2 * (2 * 3 * 4 * 2 * 132));
    assert_true(results.plain_bytes == STEPS * 2 * (2 * 3 / 4.0) * LENGTH * 4);
}

/* ---- what errors that are kept are for ---- */

typedef struct {
    scene s;
    double worst; /* distance from the minimum, of rank 0 */
} descent;

/* Ranks pull towards places of their own; the minimum of the sum is in their middle. */
static float place_of(int rank, size_t i) { return gradient_of(0, rank, i); }

static void descend(tp_comm *comm, void *user)
{
    enum { DESCENTS = 300 };
    descent *d = user;
    trainee t;
    int rank = tp_comm_rank(comm), n = tp_comm_size(comm);
    float x[LENGTH] = {0}, gradient[LENGTH], sum[LENGTH] = {0};
    open_trainee(&t, &d->s, comm);
    for (int step = 0; step < DESCENTS; step++) {
        for (size_t i = 0; i < LENGTH; i++)
            gradient[i] = (x[i] - place_of(rank, i)) / (float)n;
        exchange(&t, &d->s, rank, gradient, sum);
        for (size_t i = 0; i < LENGTH; i++)
            x[i] -= 1.0f / (1.0f + (float)step / 4.0f) * sum[i] / 4.0f;
    }
    for (size_t i = 0; i < LENGTH && rank == 0; i++) {
        double middle = 0;
        for (int r = 0; r < n; r++)
            middle += (double)place_of(r, i) / n;
        d->worst = fmax(d->worst, fabs((double)x[i] - middle));
    }
    close_trainee(&t);
}

static double worst_of(tp_wire_kind kind, bool keeps_errors)
{
    static descent d;
    d = (descent){.s = {.kind = kind,
                        .ranks = 2,
                        .keeps_errors = keeps_errors,
                        .bucket_bytes = 1 << 20,
                        .overlaps = true}};
    local_ranks_run(2, descend, &d);
    return d.worst;
}

static void errors_that_are_kept_lead_to_the_minimum(void **state)
{
    double with = worst_of(TP_WIRE_TOPK, true), without = worst_of(TP_WIRE_TOPK, false);
    print_message("topk: %.3g from the minimum, %.3g where nothing is kept\n", with, without);
    assert_true(with < 0.1);
    assert_true(without > 0.5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(halves_round_to_nearest_even),
        cmocka_unit_test(int8_has_a_scale_for_every_block),
        cmocka_unit_test(zeros_and_numbers_too_small_for_a_scale_are_zeros),
        cmocka_unit_test(what_is_not_finite_is_not_hidden),
        cmocka_unit_test(topk_sends_the_largest_and_of_equal_ones_the_first),
        cmocka_unit_test(sizes_are_those_of_the_table),
        cmocka_unit_test(sums_and_errors_are_those_of_the_plain_loop),
        cmocka_unit_test(buckets_change_no_bit),
        cmocka_unit_test(bytes_are_those_of_blocks),
        cmocka_unit_test(errors_that_are_kept_lead_to_the_minimum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
