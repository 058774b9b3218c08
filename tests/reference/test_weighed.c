/* test_weighed.c - a loss in plain C between log-probabilities and their gradient: the same
 * gradients as SFT for the same weights, and log-probabilities that do not depend on where
 * in a micro-batch a sequence lies. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "engine/train/session.h"
#include "support/devices.h"
#include "support/draws.h"

enum { T = 256, VOCAB = 97, N = 41 };

static tp_session *open_session(tp_model **model, bool weighed, tp_dtype dtype)
{
    static const char *const family = "qwen3";
    char folder[1024];
    tp_error err = {0};
    tp_session *s = NULL;
    snprintf(folder, sizeof folder, "%s/tests/data/reference/%s", TP_SOURCE_DIR, family);
    if (tp_model_open(folder, model, &err) != TP_OK)
        fail_msg("%s", err.message);
    tp_session_options o = {.compile.device = device_of("cpu", 2),
                            .tokens = T,
                            .max_positions = 64,
                            .compile.passes.compute_dtype = dtype,
                            .compile.passes.recompute_every = 1,
                            .weighed = weighed,
                            .compile.share_memory = true};
    tp_load_report report;
    if (tp_session_create(*model, &o, &s, &err) != TP_OK || tp_session_alloc(s, &err) != TP_OK ||
        tp_model_load(*model, tp_session_states(s), &report, &err) != TP_OK)
        fail_msg("%s", err.message);
    MUST(tp_session_weights_changed(s, NULL));
    return s;
}

typedef struct {
    int32_t tokens[T], positions[T], targets[T], cu[T + 1];
    float weights[T];
} arrays;

/* One sequence of N tokens at `at`, another before it. */
static tp_batch_view put(arrays *a, int32_t at)
{
    memset(a, 0, sizeof *a);
    int32_t n_cu = 0;
    if (at)
        a->cu[++n_cu] = at;
    for (int32_t k = 0; k < at; k++) {
        a->tokens[k] = (k * 31 + 3) % VOCAB;
        a->positions[k] = k % 64;
    }
    for (int32_t k = 0; k < N; k++) {
        a->tokens[at + k] = (k * k + 5 * k + 1) % VOCAB;
        a->positions[at + k] = k;
        a->targets[at + k] = ((k + 1) * (k + 1) + 5 * (k + 1) + 1) % VOCAB;
        a->weights[at + k] = k + 1 < N;
    }
    a->cu[++n_cu] = at + N;
    for (int32_t k = n_cu + 1; k <= T; k++)
        a->cu[k] = at + N;
    return (tp_batch_view){a->tokens, a->positions, a->targets, a->cu, a->weights, 0};
}

static float seen[T];

static void keep(void *user, const float *logp, float *w, int64_t n)
{
    const float *factors = user;
    memcpy(seen, logp, (size_t)n * sizeof *logp);
    for (int64_t i = 0; i < n; i++)
        w[i] = logp[i] != 0 ? factors[i] : 0;
}

static void the_gradient_is_that_of_the_weights(void **state)
{
    static arrays a, b;
    tp_model *model[2];
    tp_session *plain = open_session(&model[0], false, TP_DTYPE_F32);
    tp_session *weighed = open_session(&model[1], true, TP_DTYPE_F32);
    tp_batch_view batch = put(&a, 16), marked = put(&b, 16);
    static float factors[T];
    tp_rng rng = tp_rng_make(7, 0);
    for (int i = 0; i < T; i++) {
        factors[i] = i % 5 == 0 ? 0 : (float)draw_normal(&rng);
        a.weights[i] *= factors[i];
    }
    double loss;

    MUST(tp_session_train(plain, &batch, true, &loss, NULL));
    MUST(tp_session_train_weighed(weighed, &marked, true, keep, factors, NULL));

    size_t n;
    const tp_param *params = tp_model_params(model[0], &n);
    for (size_t i = 0; i < n; i++) {
        char name[512];
        snprintf(name, sizeof name, "grad.%s", params[i].name);
        const tp_tensor *x = tp_states_find(tp_session_states(plain), name);
        const tp_tensor *y = tp_states_find(tp_session_states(weighed), name);
        size_t count = (size_t)x->dim[0] * (size_t)x->dim[1];
        assert_memory_equal(data_of(x), data_of(y), count * sizeof(float));
    }
    tp_session_free(plain);
    tp_session_free(weighed);
    tp_model_free(model[0]);
    tp_model_free(model[1]);
}

static void logits_are_never_whole(void **state)
{
    tp_model *model;
    tp_session *s = open_session(&model, true, TP_DTYPE_BF16);
    const tp_program *p = tp_session_get_options(s)->program;
    const tp_graph *g = tp_program_graph(p, tp_program_find(p, "train"));
    for (uint32_t i = 1; i < g->n_nodes; i++) {
        assert_int_not_equal(g->nodes[i].op, TP_OP_cross_entropy);
        assert_int_not_equal(g->nodes[i].op, TP_OP_cross_entropy_grad);
    }
    tp_session_free(s);
    tp_model_free(model);
}

static void check_place(tp_dtype dtype, int32_t at, float allowed)
{
    static arrays a;
    static float first[T], factors[T];
    const float *logp;
    double loss;
    tp_model *model;
    tp_session *s = open_session(&model, true, dtype);
    tp_batch_view batch = put(&a, 0);
    MUST(tp_session_eval(s, &batch, &loss, &logp, NULL));
    memcpy(first, logp, sizeof first);
    MUST(tp_session_train_weighed(s, &batch, true, keep, factors, NULL));
    for (int k = 0; k + 1 < N; k++)
        if (fabsf(seen[k] - first[k]) > 0)
            fail_msg("token %d: training %.9g, evaluation %.9g", k, (double)seen[k],
                     (double)first[k]);
    batch = put(&a, at);
    MUST(tp_session_eval(s, &batch, &loss, &logp, NULL));
    for (int k = 0; k + 1 < N; k++)
        if (fabsf(logp[at + k] - first[k]) > allowed)
            fail_msg("at %d, token %d: %.9g, not %.9g", at, k, (double)logp[at + k],
                     (double)first[k]);
    tp_session_free(s);
    tp_model_free(model);
}

static void a_sequence_is_worth_the_same_anywhere(void **state)
{
    check_place(TP_DTYPE_F32, 17, 1e-5f);
    check_place(TP_DTYPE_F32, 64, 1e-6f);
    check_place(TP_DTYPE_BF16, 64, 1e-6f);
    check_place(TP_DTYPE_BF16, 128, 1e-6f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_gradient_is_that_of_the_weights),
        cmocka_unit_test(logits_are_never_whole),
        cmocka_unit_test(a_sequence_is_worth_the_same_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
