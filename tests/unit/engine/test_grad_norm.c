/* test_grad_norm.c - the norm of gradients whose squares are summed where they are made: of one
 * micro-batch and of several, tied and not, and where something else changes them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/platform.h"
#include "engine/train/session.h"
#include "support/devices.h"

enum { TOKENS = 96, VOCABULARY = 4111 };

/* Large enough: 4111 x 144, and with a width of 512 what is between. */
static const char tied[] =
    "{\"model_type\":\"gpt2\",\"architectures\":[\"GPT2LMHeadModel\"],\"vocab_size\":4111,"
    "\"n_positions\":96,\"n_embd\":144,\"n_layer\":1,\"n_head\":2,"
    "\"activation_function\":\"gelu_new\",\"layer_norm_epsilon\":1e-5}";
static const char untied[] =
    "{\"model_type\":\"llama\",\"architectures\":[\"LlamaForCausalLM\"],\"vocab_size\":4111,"
    "\"hidden_size\":512,\"intermediate_size\":1100,\"num_hidden_layers\":1,"
    "\"num_attention_heads\":4,\"num_key_value_heads\":2,\"max_position_embeddings\":96,"
    "\"rms_norm_eps\":1e-5,\"tie_word_embeddings\":false}";

typedef struct {
    int32_t tokens[TOKENS], positions[TOKENS], targets[TOKENS], cu[TOKENS + 1];
    float weights[TOKENS];
} batch;

/* Some ids twice; a third of the tokens weighs nothing, or all do. */
static tp_batch_view fill(batch *b, int seed, bool weighs)
{
    for (int i = 0; i < TOKENS; i++) {
        b->tokens[i] = (i * 37 + seed * 101) % (VOCABULARY / (1 + i % 3 * 40));
        b->positions[i] = i;
        b->targets[i] = (i * 91 + seed) % VOCABULARY;
        b->weights[i] = weighs && i % 3 ? 1.0f / TOKENS : 0;
    }
    for (int i = 0; i <= TOKENS; i++)
        b->cu[i] = i == 0 ? 0 : TOKENS;
    return (tp_batch_view){b->tokens, b->positions, b->targets, b->cu, b->weights, TOKENS};
}

static tp_session *new_session(const tp_model *model, tp_session_options options,
                               const char *backend, int threads)
{
    tp_session *s;
    tp_error err;
    options.compile.device = device_of(backend, threads);
    options.compile.share_memory = true;
    options.tokens = options.max_positions = TOKENS;
    if (tp_session_create(model, &options, &s, &err) != TP_OK)
        fail_msg("%s", err.message);
    MUST(tp_session_alloc(s, NULL));
    MUST(tp_model_init_random(model, tp_session_states(s), 5, 0, NULL));
    MUST(tp_session_weights_changed(s, NULL));
    return s;
}

/* By the gradients as they lie. */
static double norm_of(const tp_model *model, tp_session *s)
{
    size_t n;
    double sum = 0;
    const tp_param *params = tp_model_params(model, &n);
    for (size_t i = 0; i < n; i++) {
        char name[256];
        snprintf(name, sizeof name, "grad.%s", params[i].name);
        const tp_tensor *t = tp_states_find(tp_session_states(s), name);
        const float *g = data_of(t);
        for (size_t k = 0; k < tp_tensor_count(t); k++)
            sum += (double)g[k] * (double)g[k];
    }
    return sqrt(sum);
}

static void expect_norm(const tp_model *model, tp_session *s)
{
    double norm, want = norm_of(model, s);
    MUST(tp_session_grad_norm(s, &norm, NULL));
    assert_true(want > 1e-4);
    if (!(fabs(norm - want) <= 1e-6 * want))
        fail_msg("the norm is %.9g, that of the gradients %.9g", norm, want);
}

/* How many gradients have their squares from where they were made. */
static int count_squares(tp_session *s)
{
    int n = 0;
    const tp_states *states = tp_session_states(s);
    for (size_t i = 0; i < states->n; i++)
        n += strncmp(states->items[i].name, "squares.", 8) == 0;
    return n;
}

static tp_model *parse(const char *config)
{
    tp_model *model;
    tp_error err;
    if (tp_model_parse("config", config, strlen(config), &model, &err) != TP_OK)
        fail_msg("%s", err.message);
    return model;
}

static void train(tp_session *s, int seed, bool weighs, bool is_first)
{
    batch b;
    double loss;
    tp_batch_view view = fill(&b, seed, weighs);
    MUST(tp_session_train(s, &view, is_first, &loss, NULL));
}

static void follow(const char *config, int expected, tp_dtype dtype, const char *backend,
                   int threads)
{
    tp_model *model = parse(config);
    tp_session *s = new_session(model, (tp_session_options){.compile.passes.compute_dtype = dtype},
                                backend, threads);
    assert_int_equal(count_squares(s), expected);
    for (int step = 0; step < 2; step++) {
        for (int micro = 0; micro < 3; micro++) {
            train(s, 3 * step + micro, micro != 1, micro == 0);
            expect_norm(model, s);
        }
    }
    tp_session_free(s);
    tp_model_free(model);
}

static void the_norm_is_that_of_the_gradients(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 3; threads++) {
        follow(tied, 1, TP_DTYPE_F32, "cpu", threads);
        follow(tied, 1, TP_DTYPE_BF16, "cpu", threads);
        follow(untied, 5, TP_DTYPE_F32, "cpu", threads);
        follow(untied, 5, TP_DTYPE_BF16, "cpu", threads);
    }
}

static void so_it_is_by_the_meaning_of_the_ops(void **state)
{
    (void)state;
    follow(tied, 1, TP_DTYPE_F32, "ref", 1);
}

/* Logits are formed for a few rows at a time. */
static void only_the_last_chunk_counts(void **state)
{
    (void)state;
    tp_model *model = parse(tied);
    tp_session *s =
        new_session(model, (tp_session_options){.compile.passes.loss_chunk = 17}, "cpu", 2);
    train(s, 1, true, true);
    expect_norm(model, s);
    train(s, 2, true, false);
    expect_norm(model, s);
    tp_session_free(s);
    tp_model_free(model);
}

static void a_step_without_targets_has_no_norm(void **state)
{
    double norm;
    (void)state;
    tp_model *model = parse(tied);
    tp_session *s = new_session(model, (tp_session_options){0}, "cpu", 2);
    train(s, 1, true, true);
    train(s, 1, false, true);
    MUST(tp_session_grad_norm(s, &norm, NULL));
    assert_true(norm == 0);
    tp_session_free(s);
    tp_model_free(model);
}

/* What is clipped is read again. */
static void gradients_that_change_later_are_read(void **state)
{
    (void)state;
    tp_model *model = parse(tied);
    tp_session *s = new_session(model, (tp_session_options){.clips_value = true}, "cpu", 2);
    assert_int_equal(count_squares(s), 0);
    train(s, 1, true, true);
    expect_norm(model, s);
    MUST(tp_session_clip(s, 1, 1e-4, 0, NULL));
    expect_norm(model, s);
    tp_session_free(s);
    tp_model_free(model);
}

static void the_pass_can_be_left_out(void **state)
{
    static const char *const off[] = {"fuse-grad-norm"};
    (void)state;
    tp_model *model = parse(untied);
    tp_session *s = new_session(
        model,
        (tp_session_options){.compile.passes = {.disabled = off, .n_disabled = TP_COUNTOF(off)}},
        "cpu", 2);
    assert_int_equal(count_squares(s), 0);
    train(s, 1, true, true);
    expect_norm(model, s);
    tp_session_free(s);
    tp_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_norm_is_that_of_the_gradients),
        cmocka_unit_test(so_it_is_by_the_meaning_of_the_ops),
        cmocka_unit_test(only_the_last_chunk_counts),
        cmocka_unit_test(a_step_without_targets_has_no_norm),
        cmocka_unit_test(gradients_that_change_later_are_read),
        cmocka_unit_test(the_pass_can_be_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
