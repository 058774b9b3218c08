/* Ranks that share the layers: what each has of a tensor, and that losses and every gradient are
 * those of one rank. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/platform.h"
#include "engine/train/parts.h"
#include "engine/train/session.h"
#include "support/local_ranks.h"

/* ---- what a rank has of a tensor ---- */

static void expect_runs(const tp_tensor *t, size_t first, size_t end, const size_t (*wanted)[3],
                        size_t n)
{
    tp_slice_run run;
    for (size_t i = 0; i < n; i++) {
        assert_true(tp_slice_next_held(t, &first, end, &run));
        assert_int_equal(run.at, wanted[i][0]);
        assert_int_equal(run.own, wanted[i][1]);
        assert_int_equal(run.n, wanted[i][2]);
    }
    assert_false(tp_slice_next_held(t, &first, end, &run));
}

static void rows_are_one_run(void **state)
{
    const tp_tensor t = {.rank = 2,
                         .dtype = TP_DTYPE_F32,
                         .dim = {2, 4},
                         .slice = {.index = 1, .count = 2, .axis = 0, .groups = 1, .length = 5}};
    (void)state;
    assert_int_equal(tp_tensor_count(&t), 20);
    expect_runs(&t, 0, 20, (const size_t[][3]){{12, 0, 8}}, 1);
    expect_runs(&t, 0, 14, (const size_t[][3]){{12, 0, 2}}, 1);
    expect_runs(&t, 15, 17, (const size_t[][3]){{15, 3, 2}}, 1);
    expect_runs(&t, 0, 12, NULL, 0);
}

static void columns_and_groups_are_a_comb(void **state)
{
    const tp_tensor columns = {
        .rank = 2,
        .dtype = TP_DTYPE_F32,
        .dim = {3, 2},
        .slice = {.index = 1, .count = 2, .axis = 1, .groups = 1, .length = 4}};
    const tp_tensor groups = {
        .rank = 2,
        .dtype = TP_DTYPE_F32,
        .dim = {2, 3},
        .slice = {.index = 0, .count = 2, .axis = 1, .groups = 3, .length = 6}};
    (void)state;
    expect_runs(&columns, 0, 12, (const size_t[][3]){{2, 0, 2}, {6, 2, 2}, {10, 4, 2}}, 3);
    expect_runs(&columns, 3, 11, (const size_t[][3]){{3, 1, 1}, {6, 2, 2}, {10, 4, 1}}, 3);
    expect_runs(&groups, 0, 7, (const size_t[][3]){{0, 0, 1}, {2, 1, 1}, {4, 2, 1}, {6, 3, 1}}, 4);
}

/* The second of two parts of the second of two slices, 20 x 2 numbers, has its last eight. */
static void a_part_of_a_slice_is_what_is_in_memory(void **state)
{
    const tp_tensor t = {.rank = 2,
                         .dtype = TP_DTYPE_F32,
                         .dim = {20, 2},
                         .keeps_part = true,
                         .shard = {1, 2},
                         .slice = {.index = 1, .count = 2, .axis = 1, .groups = 1, .length = 4}};
    const size_t wanted[][3] = {{66, 32, 2}, {70, 34, 2}, {74, 36, 2}, {78, 38, 2}};
    size_t at = 0, begin, end;
    tp_slice_run run;
    (void)state;
    for (size_t i = 0; i < TP_COUNTOF(wanted); i++) {
        assert_true(tp_slice_next_held(&t, &at, 80, &run));
        assert_int_equal(run.at, wanted[i][0]);
        assert_int_equal(run.own, wanted[i][1]);
        assert_int_equal(run.n, wanted[i][2]);
    }
    assert_false(tp_slice_next_held(&t, &at, 80, &run));
    tp_tensor_share(&t, 80, (tp_shard){3, 4}, &begin, &end); /* nobody else has it */
    assert_true(begin == 0 && end == 80);
}

/* What ranks 0 and 1 have, and 2 and 3, each writes a half of. */
static void what_two_have_of_a_part_they_write_together(void **state)
{
    const size_t wanted[][2] = {{0, 32}, {32, 64}, {64, 96}, {96, 100}};
    (void)state;
    for (int rank = 0; rank < 4; rank++) {
        const tp_tensor t = {.rank = 1,
                             .dtype = TP_DTYPE_F32,
                             .dim = {100, 1},
                             .keeps_part = true,
                             .shard = {rank / 2, 2},
                             .copies = 2};
        size_t begin, end;
        tp_tensor_share(&t, 100, (tp_shard){rank, 4}, &begin, &end);
        assert_int_equal(begin, wanted[rank][0]);
        assert_int_equal(end, wanted[rank][1]);
    }
}

/* Of two nodes with a part each of a slice the first writes it; of a slice that two have, the
 * first. */
static void what_others_have_as_well_the_first_write(void **state)
{
    tp_tensor t = {.rank = 2,
                   .dtype = TP_DTYPE_F32,
                   .dim = {20, 2},
                   .slice = {.count = 2, .axis = 1, .groups = 1, .length = 4}};
    size_t begin, end;
    (void)state;
    for (int parts = 0; parts <= 2; parts += 2) {
        t.keeps_part = parts > 0;
        t.shard.count = parts;
        for (int rank = 0; rank < 8; rank++) {
            tp_tensor_share(&t, 80, (tp_shard){rank, 8}, &begin, &end);
            assert_int_equal(begin, 0);
            assert_int_equal(end, rank < (parts ? 4 : 2) ? 80 : 0);
        }
    }
}

/* ---- all of what four ranks have a part of a slice of ---- */

static void must(tp_status status, const tp_error *err)
{
    if (status == TP_OK)
        return;
    fprintf(stderr, "%s\n", err->message);
    abort();
}

static void expect_whole(const tp_tensor *t)
{
    tp_error err;
    size_t n = tp_tensor_count(t);
    float *written = malloc(n * sizeof *written), *read = calloc(n, sizeof *read);
    for (size_t i = 0; i < n; i++)
        written[i] = (float)(i + 1);
    for (size_t at = 0; at < n; at += 50)
        must(tp_tensor_write(t, at * sizeof *written, written + at,
                             TP_MIN(n - at, 50) * sizeof *written, &err),
             &err);
    for (size_t at = 0; at < n; at += 33)
        must(tp_tensor_read(t, at * sizeof *read, read + at, TP_MIN(n - at, 33) * sizeof *read,
                            &err),
             &err);
    if (memcmp(written, read, n * sizeof *read) != 0)
        abort();
    free(written);
    free(read);
}

/* Two and two share the layers: rows, of which the last have less, columns by groups, and what is
 * not divided; with parts in memory where two ranks have the same of it. */
static void read_together(tp_comm *comm, void *user)
{
    static const tp_tensor tensors[] = {
        {.name = "rows", .dim = {37, 6}, .slice = {0, 2, .axis = 0, .groups = 1, .length = 37}},
        {.name = "columns", .dim = {10, 12}, .slice = {0, 2, .axis = 1, .groups = 3, .length = 12}},
        {.name = "whole", .dim = {41, 1}}};
    static const size_t held[4][3] = {{64, 32, 32}, {64, 32, 32}, {50, 28, 9}, {44, 28, 9}};
    const int rank = tp_comm_rank(comm);
    tp_ranks ranks = {.comm = comm, .rank = rank / 2, .ranks = 2, .tensor = {rank % 2, 2}};
    const tp_device_options one = {.threads = 1};
    tp_device *device;
    tp_states states;
    tp_error err;
    (void)user;
    must(tp_device_open(tp_backend_find("cpu"), &one, &device, &err), &err);
    must(tp_states_init(&states, &err), &err);
    tp_states_keep_parts(&states, tp_ranks_shard(&ranks), tp_ranks_row(&ranks),
                         1u << TP_ROLE_WEIGHT);
    states.reader = (tp_part_reader){tp_parts_read_together, &ranks};
    for (size_t i = 0; i < TP_COUNTOF(tensors); i++) {
        tp_tensor t = tensors[i];
        t.rank = t.dim[1] > 1 ? 2 : 1;
        const tp_tensor_slice slice = t.slice;
        t.slice = (tp_tensor_slice){0};
        must(tp_states_declare(&states, &t, &err), &err); /* as a model does; then as a graph */
        t.slice = slice;
        if (slice.count) {
            t.slice.index = rank % 2;
            t.dim[slice.axis] = tp_slice_length(t.slice);
            must(tp_states_declare(&states, &t, &err), &err);
        }
    }
    must(tp_states_alloc(&states, device, &err), &err);
    for (size_t i = 0; i < TP_COUNTOF(tensors); i++) {
        TP_ASSERT(states.items[i].bytes == held[rank][i] * sizeof(float));
        expect_whole(&states.items[i]);
    }
    tp_states_release(&states);
    tp_device_close(device);
}

static void parts_of_slices_are_read_as_one(void **state)
{
    (void)state;
    local_ranks_run(4, read_together, NULL);
}

/* ---- gradients ---- */

enum { TOKENS = 50, MOST = 4, SHORT = 20 };

#define DECODER(type, vocabulary, tied)                                                  \
    "{\"model_type\": \"" type "\", \"vocab_size\": " vocabulary                         \
    ", \"hidden_size\": 32, \"intermediate_size\": 28, \"num_hidden_layers\": 2, "       \
    "\"num_attention_heads\": 8, \"num_key_value_heads\": 4, \"head_dim\": 8, "          \
    "\"max_position_embeddings\": 64, \"rms_norm_eps\": 1e-5, \"rope_theta\": 10000.0, " \
    "\"hidden_act\": \"silu\", \"initializer_range\": 0.2, \"tie_word_embeddings\": " tied "}"

#define GPT2                                                                                      \
    "{\"model_type\": \"gpt2\", \"vocab_size\": 51, \"n_embd\": 32, \"n_layer\": 2, \"n_head\": " \
    "4, "                                                                                         \
    "\"n_positions\": 64, \"activation_function\": \"gelu_new\", \"initializer_range\": 0.2}"

static const char *const configs[] = {DECODER("llama", "48", "true"),
                                      DECODER("qwen2", "49", "false"),
                                      DECODER("qwen3", "48", "true"), GPT2};

/* What a run of so many ranks came to, as rank 0 tells. */
typedef struct {
    const tp_model *model;
    const char *backend;
    int ranks, used; /* tokens of the batch */
    bool shares_rows;
    double loss[2], norm, counted[MOST];
    float logp[TOKENS];
    float *gradients, *weights; /* of all parameters, one behind the other */
    size_t n;
    int32_t tokens[TOKENS], positions[TOKENS], targets[TOKENS], cu[TOKENS + 1];
    float loss_weights[TOKENS];
} trial;

static void make_batch(trial *r)
{
    for (int i = 0; i < TOKENS; i++) {
        r->tokens[i] = (i * 7 + 3) % 48;
        r->targets[i] = (i * 5 + 1) % 48;
        r->positions[i] = i < 11 ? i : i - 11;
        r->loss_weights[i] = i % 5 == 0 || i >= r->used ? 0 : 0.125f;
    }
    r->targets[0] = -100;
    r->targets[1] = 0;
    r->targets[2] = 47;
    for (int i = 0; i <= TOKENS; i++)
        r->cu[i] = i == 0 ? 0 : i == 1 ? 11 : r->used;
}

/* All ranks read together; rank 0 keeps it. */
static void read_all(trial *r, tp_session *s, int rank)
{
    size_t n, at = 0;
    tp_error err;
    const tp_param *params = tp_model_params(r->model, &n);
    const tp_states *states = tp_session_states(s);
    for (size_t i = 0; i < n; i++) {
        char name[256];
        snprintf(name, sizeof name, "grad.%s", params[i].name);
        const tp_tensor *gradient = tp_states_find(states, name);
        const tp_tensor *weight = tp_states_find(states, params[i].name);
        size_t count = tp_tensor_count(weight);
        float *some = malloc(2 * count * sizeof *some);
        must(tp_tensor_read(gradient, 0, some, count * sizeof *some, &err), &err);
        must(tp_tensor_read(weight, 0, some + count, count * sizeof *some, &err), &err);
        if (rank == 0) {
            memcpy(r->gradients + at, some, count * sizeof *some);
            memcpy(r->weights + at, some + count, count * sizeof *some);
        }
        at += count;
        free(some);
    }
    TP_ASSERT(at == r->n);
}

static void train(tp_comm *comm, void *user)
{
    trial *r = user;
    int rank = tp_comm_rank(comm);
    tp_error err;
    tp_device *device;
    tp_session *s;
    const tp_device_options one = {.threads = 1};
    must(tp_device_open(tp_backend_find(r->backend), &one, &device, &err), &err);
    const tp_session_options options = {
        .compile = {.device = device,
                    .share_memory = true,
                    .passes = {.shares_rows = r->shares_rows},
                    .ranks = {.comm = comm,
                              .ranks = 1,
                              .tensor = {r->ranks > 1 ? rank : 0, r->ranks > 1 ? r->ranks : 0},
                              .bucket_bytes = 256}},
        .tokens = TOKENS,
        .max_positions = TOKENS};
    must(tp_session_create(r->model, &options, &s, &err), &err);
    must(tp_session_alloc(s, &err), &err);
    must(tp_model_init_random(r->model, tp_session_states(s), 5, 0, &err), &err);
    must(tp_session_weights_changed(s, &err), &err);
    const tp_batch_view batch = {r->tokens, r->positions,    r->targets,
                                 r->cu,     r->loss_weights, r->used};
    const float *logp;
    double loss[2], norm;
    must(tp_session_eval(s, &batch, &loss[0], &logp, &err), &err);
    if (rank == 0)
        memcpy(r->logp, logp, sizeof r->logp);
    for (int micro = 0; micro < 2; micro++) {
        tp_session_set_last(s, micro == 1);
        must(tp_session_train(s, &batch, micro == 0, &loss[1], &err), &err);
    }
    must(tp_session_grad_norm(s, &norm, &err), &err);
    read_all(r, s, rank);
    r->counted[rank] = norm;
    if (rank == 0) {
        memcpy(r->loss, loss, sizeof loss);
        r->norm = norm;
    }
    tp_session_free(s);
    tp_device_close(device);
}

static trial run(const tp_model *model, const char *backend, int used, int ranks, bool shares_rows)
{
    size_t n;
    trial r = {.model = model,
               .backend = backend,
               .ranks = ranks,
               .used = used,
               .shares_rows = shares_rows};
    const tp_param *params = tp_model_params(model, &n);
    for (size_t i = 0; i < n; i++)
        r.n += (size_t)(params[i].dim[0] * (params[i].rank == 2 ? params[i].dim[1] : 1));
    r.gradients = calloc(r.n, sizeof(float));
    r.weights = calloc(r.n, sizeof(float));
    make_batch(&r);
    local_ranks_run(ranks, train, &r);
    return r;
}

static void let_go(trial *r)
{
    free(r->gradients);
    free(r->weights);
}

static void expect_near(const trial *one, const trial *many)
{
    double largest = 0, worst = 0;
    for (size_t i = 0; i < one->n; i++) {
        largest = fmax(largest, fabs((double)one->gradients[i]));
        worst = fmax(worst, fabs((double)one->gradients[i] - (double)many->gradients[i]));
    }
    assert_true(largest > 0.01 && worst <= 1e-5 * largest);
    assert_memory_equal(one->weights, many->weights, one->n * sizeof(float));
    assert_true(one->loss[0] > 1 && fabs(one->loss[0] - many->loss[0]) <= 1e-5 * one->loss[0]);
    assert_true(fabs(one->loss[1] - many->loss[1]) <= 1e-5 * one->loss[1]);
    assert_true(fabs(one->norm - many->norm) <= 1e-5 * one->norm);
    for (int i = 1; i < many->ranks; i++)
        assert_true(many->counted[i] == many->norm);
    for (int i = 0; i < TOKENS; i++)
        assert_true(fabsf(one->logp[i] - many->logp[i]) <= 1e-5f);
}

static void compare(const char *config, const char *backend, int used, bool shares_rows)
{
    tp_error err;
    tp_model *model;
    assert_int_equal(tp_model_parse("config", config, strlen(config), &model, &err), TP_OK);
    trial one = run(model, backend, used, 1, false);
    for (int ranks = 2; ranks <= MOST; ranks *= 2) {
        trial many = run(model, backend, used, ranks, shares_rows);
        expect_near(&one, &many);
        let_go(&many);
    }
    let_go(&one);
    tp_model_free(model);
}

static void every_gradient_is_that_of_one_rank(void **state)
{
    (void)state;
    for (size_t i = 0; i < TP_COUNTOF(configs); i++)
        compare(configs[i], "cpu", TOKENS, false);
}

/* Of 50 rows four ranks have 13, 13, 13 and 11. */
static void so_it_is_where_ranks_share_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < TP_COUNTOF(configs); i++)
        compare(configs[i], "cpu", TOKENS, true);
}

/* Of the 32 that are computed four ranks have 13, 13, 6 and none. */
static void a_rank_may_have_no_rows(void **state)
{
    (void)state;
    compare(configs[0], "cpu", SHORT, true);
    compare(configs[3], "cpu", SHORT, true);
}

static void also_where_memory_is_behind_a_wall(void **state)
{
    (void)state;
    compare(configs[3], "guard", TOKENS, false);
    compare(configs[3], "guard", SHORT, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_one_run),
        cmocka_unit_test(columns_and_groups_are_a_comb),
        cmocka_unit_test(a_part_of_a_slice_is_what_is_in_memory),
        cmocka_unit_test(what_two_have_of_a_part_they_write_together),
        cmocka_unit_test(what_others_have_as_well_the_first_write),
        cmocka_unit_test(parts_of_slices_are_read_as_one),
        cmocka_unit_test(every_gradient_is_that_of_one_rank),
        cmocka_unit_test(so_it_is_where_ranks_share_rows),
        cmocka_unit_test(a_rank_may_have_no_rows),
        cmocka_unit_test(also_where_memory_is_behind_a_wall),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
