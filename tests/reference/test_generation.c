/* test_generation.c - the engine against transformers: greedy tokens, logits, and its
 * log-probabilities against those of the training graph. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/platform.h"
#include "engine/generate/engine.h"
#include "engine/model/safetensors.h"
#include "engine/train/session.h"
#include "support/devices.h"
#include "support/logits.h"

enum { MOST_TOKENS = 4096 }; /* of a vocabulary */

static const char *const families[] = {"gpt2", "llama", "smollm2", "qwen2", "qwen3"};

typedef struct {
    tp_model *model;
    tp_states states;
    tp_engine *engine;
    tp_safetensors *want;
} fixture;

static void set_up(fixture *f, const char *family, tp_engine_options o)
{
    char folder[1024], path[1100];
    tp_error err = {0};
    tp_load_report report;
    memset(f, 0, sizeof *f);
    snprintf(folder, sizeof folder, "%s/tests/data/reference/%s", TP_SOURCE_DIR, family);
    snprintf(path, sizeof path, "%s/expected.safetensors", folder);
    o.device = o.device ? o.device : device_of("cpu", 2);
    o.max_length = 40;
    if (tp_safetensors_open(path, &f->want, &err) != TP_OK ||
        tp_model_open(folder, &f->model, &err) != TP_OK ||
        tp_states_init(&f->states, &err) != TP_OK ||
        tp_engine_create(f->model, &o, &f->states, &f->engine, &err) != TP_OK ||
        tp_engine_alloc(f->engine, &err) != TP_OK ||
        tp_model_load(f->model, &f->states, &report, &err) != TP_OK)
        fail_msg("%s: %s", family, err.message);
    MUST(tp_engine_weights_changed(f->engine, NULL));
}

static void tear_down(fixture *f)
{
    tp_engine_free(f->engine);
    tp_states_release(&f->states);
    tp_model_free(f->model);
    tp_safetensors_close(f->want);
}

static void check_greedy(const char *family, const char *backend, int64_t step_tokens,
                         int64_t max_running)
{
    fixture f;
    tp_error err = {0};
    int64_t id;
    set_up(&f, family,
           (tp_engine_options){.device = device_of(backend, 2),
                               .step_tokens = step_tokens,
                               .max_running = max_running,
                               .block_tokens = 16});
    const tp_tensor_entry *greedy = tp_safetensors_find(f.want, "greedy");
    const int32_t *prompt = tp_safetensors_find(f.want, "input_ids")->data;
    tp_request r = {
        .prompt = prompt, .n_prompt = 5, .n_samples = 3, .max_new_tokens = greedy->dim[0]};

    if (tp_engine_submit(f.engine, &r, &id, &err) != TP_OK)
        fail_msg("%s: %s", family, err.message);
    MUST(tp_engine_run(f.engine, NULL));

    for (int64_t j = 0; j < 3; j++) {
        tp_sample_result got = tp_engine_sample(f.engine, id, j);
        assert_int_equal(got.finish, TP_FINISH_LENGTH);
        assert_int_equal(got.n, greedy->dim[0]);
        for (size_t i = 0; i < got.n; i++)
            if (got.ids[i] != ((const int32_t *)greedy->data)[i])
                fail_msg("%s on %s, sample %lld: token %zu is %d, transformers has %d", family,
                         backend, (long long)j, i, got.ids[i], ((const int32_t *)greedy->data)[i]);
    }
    tear_down(&f);
}

static void test_greedy_tokens_are_those_of_transformers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        check_greedy(families[i], "ref", 0, 0);
        check_greedy(families[i], "guard", 0, 0);
        check_greedy(families[i], "cpu", 0, 0);
        check_greedy(families[i], "cpu", 3, 3); /* the prompt in several pieces */
        check_greedy(families[i], "cpu", 1, 1); /* one sample after the other */
    }
}

/* Expected: generate(do_sample=False) of transformers 5.23 on the same folder and prompt. */
static void test_rules_are_those_of_transformers(void **state)
{
    enum { NEW = 12 };
    static const int32_t third[] = {88}, first[] = {41}, ends[] = {41, 35};
    static const struct {
        tp_logit_rules rules;
        size_t n_ends;
        int32_t want[NEW];
    } cases[] = {
        {{0}, 0, {41, 103, 88, 35, 102, 35, 102, 138, 48, 51, 114, 75}},
        {{.repetition_penalty = 1.3}, 0, {41, 103, 88, 35, 102, 138, 35, 26, 132, 8, 12, 61}},
        {{.no_repeat_ngram = 2}, 0, {41, 103, 88, 35, 102, 35, 26, 141, 61, 51, 90, 90}},
        {{.suppressed = third,
          .n_suppressed = 1,
          .suppressed_first = first,
          .n_suppressed_first = 1},
         0,
         {98, 138, 48, 35, 138, 129, 129, 129, 146, 57, 59, 138}},
        {{.min_new_tokens = 6}, 2, {98, 138, 48, 138, 129, 129, 8, 47, 47, 47, 120, 8}},
    };
    (void)state;
    fixture f;
    tp_error err = {0};
    int64_t id[TP_COUNTOF(cases)];
    set_up(&f, "qwen3", (tp_engine_options){.block_tokens = 16});
    for (size_t i = 0; i < TP_COUNTOF(cases); i++) { /* side by side */
        tp_request r = {.prompt = tp_safetensors_find(f.want, "input_ids")->data,
                        .n_prompt = 5,
                        .max_new_tokens = NEW,
                        .rules = cases[i].rules,
                        .stop_ids = ends,
                        .n_stop_ids = cases[i].n_ends};
        if (tp_engine_submit(f.engine, &r, &id[i], &err) != TP_OK)
            fail_msg("%s", err.message);
    }
    MUST(tp_engine_run(f.engine, NULL));
    for (size_t i = 0; i < TP_COUNTOF(cases); i++) {
        tp_sample_result got = tp_engine_sample(f.engine, id[i], 0);
        assert_int_equal(got.n, NEW);
        for (size_t k = 0; k < NEW; k++)
            if (got.ids[k] != cases[i].want[k])
                fail_msg("case %zu: token %zu is %d, not %d", i, k, got.ids[k], cases[i].want[k]);
    }
    tear_down(&f);
}

static void test_logits_are_those_of_transformers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        fixture f;
        tp_error err = {0};
        float logits[MOST_TOKENS];
        set_up(&f, families[i], (tp_engine_options){.step_tokens = 4, .max_running = 4});
        const int32_t *ids = tp_safetensors_find(f.want, "input_ids")->data;
        const tp_tensor_entry *want = tp_safetensors_find(f.want, "logits");
        size_t V = (size_t)want->dim[1];
        assert_true(V <= MOST_TOKENS);
        for (size_t n = 1; n <= 17; n++) { /* the first sequence of the dump has 17 tokens */
            if (logits_after(f.engine, ids, n, logits, &err) != TP_OK)
                fail_msg("%s", err.message);
            const float *row = (const float *)want->data + (n - 1) * V;
            double diff = 0, norm = 0;
            for (size_t v = 0; v < V; v++) {
                diff += pow((double)logits[v] - (double)row[v], 2);
                norm += pow((double)row[v], 2);
            }
            if (!(sqrt(diff / norm) <= 1e-5))
                fail_msg("%s: logits after %zu tokens are off by %.2e", families[i], n,
                         sqrt(diff / norm));
        }
        tear_down(&f);
    }
}

/* Heads of 64, of which the training graph's attention in bf16 rounds its weights. */
static const char wide[] =
    "{\"model_type\": \"llama\", \"vocab_size\": 97, \"hidden_size\": 128, \"intermediate_size\":"
    " 200, \"num_hidden_layers\": 2, \"num_attention_heads\": 4, \"num_key_value_heads\": 2,"
    " \"head_dim\": 64, \"max_position_embeddings\": 256, \"rms_norm_eps\": 1e-5,"
    " \"rope_theta\": 10000.0, \"hidden_act\": \"silu\", \"tie_word_embeddings\": true}";

static tp_status open_model(const char *family, tp_model **ret, tp_error *err)
{
    char folder[1024];
    if (strcmp(family, "wide") == 0)
        return tp_model_parse("wide", wide, strlen(wide), ret, err);
    snprintf(folder, sizeof folder, "%s/tests/data/reference/%s", TP_SOURCE_DIR, family);
    return tp_model_open(folder, ret, err);
}

static tp_status fill_weights(const char *family, const tp_model *model, tp_states *states,
                              tp_error *err)
{
    tp_load_report report;
    if (strcmp(family, "wide") != 0)
        return tp_model_load(model, states, &report, err);
    MUST(tp_model_init_random(model, states, 3, 0.08, NULL));
    return TP_OK;
}

/* The largest distance between what the engine says of its samples and what the evaluation
 * graph of a session on the same weights says of the same texts. */
static double distance_to_training(const char *family, tp_dtype dtype)
{
    enum { PROMPT = 5, NEW = 30, T = 40, SAMPLES = 4 };
    tp_error err = {0};
    tp_model *model = NULL;
    tp_session *session = NULL;
    tp_engine *engine = NULL;
    tp_session_options so = {.compile.device = device_of("cpu", 2),
                             .tokens = T,
                             .max_positions = T,
                             .compile.passes.compute_dtype = dtype,
                             .forward_only = true,
                             .compile.share_memory = true};
    tp_engine_options eo = {.device = device_of("cpu", 2),
                            .compute_dtype = dtype,
                            .cache_dtype = dtype,
                            .max_length = T};
    if (open_model(family, &model, &err) != TP_OK ||
        tp_session_create(model, &so, &session, &err) != TP_OK ||
        tp_engine_create(model, &eo, tp_session_states(session), &engine, &err) != TP_OK ||
        tp_session_alloc(session, &err) != TP_OK || tp_engine_alloc(engine, &err) != TP_OK ||
        fill_weights(family, model, tp_session_states(session), &err) != TP_OK)
        fail_msg("%s: %s", family, err.message);
    MUST(tp_session_weights_changed(session, NULL));
    MUST(tp_engine_weights_changed(engine, NULL));
    int64_t id;
    const int32_t prompt[PROMPT] = {1, 2, 3, 4, 5};
    tp_request r = {.prompt = prompt,
                    .n_prompt = PROMPT,
                    .n_samples = SAMPLES,
                    .max_new_tokens = NEW,
                    .sampling = {.temperature = 1},
                    .seed = 5};
    assert_int_equal(tp_engine_submit(engine, &r, &id, &err), TP_OK);
    MUST(tp_engine_run(engine, NULL));
    double worst = 0;
    for (int64_t j = 0; j < SAMPLES; j++) {
        tp_sample_result got = tp_engine_sample(engine, id, j);
        int32_t tokens[T] = {0}, positions[T], targets[T], cu[T + 1];
        float weights[T] = {0};
        for (int i = 0; i < T; i++) {
            tokens[i] = i < PROMPT ? prompt[i] : i < PROMPT + NEW ? got.ids[i - PROMPT] : 0;
            positions[i] = i;
            targets[i] = i + 1 >= PROMPT && i + 1 < PROMPT + NEW ? got.ids[i + 1 - PROMPT] : 0;
            weights[i] = i + 1 >= PROMPT && i + 1 < PROMPT + NEW ? 1.0f : 0.0f;
            cu[i + 1] = T;
        }
        cu[0] = 0;
        double loss;
        const float *logp;
        tp_batch_view batch = {tokens, positions, targets, cu, weights, 0};
        MUST(tp_session_eval(session, &batch, &loss, &logp, NULL));
        for (int i = 0; i < NEW; i++) {
            assert_true(isfinite(logp[PROMPT - 1 + i]));
            worst = fmax(worst, fabs((double)got.logp[i] - (double)logp[PROMPT - 1 + i]));
            assert_true(got.sampled_logp[i] == got.logp[i] ||
                        fabsf(got.sampled_logp[i] - got.logp[i]) < 2e-6f);
        }
    }
    tp_engine_free(engine);
    tp_session_free(session);
    tp_model_free(model);
    return worst;
}

static void check_distance(const char *family)
{
    double f32 = distance_to_training(family, TP_DTYPE_F32);
    double bf16 = distance_to_training(family, TP_DTYPE_BF16);
    printf("%s: logp off by %.2e (f32), %.2e (bf16)\n", family, f32, bf16);
    assert_true(f32 <= 1e-5);
    assert_true(bf16 <= 0.05);
}

static void test_log_probabilities_are_those_of_the_training_graph(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        check_distance(families[i]);
    check_distance("wide");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_greedy_tokens_are_those_of_transformers),
        cmocka_unit_test(test_rules_are_those_of_transformers),
        cmocka_unit_test(test_logits_are_those_of_transformers),
        cmocka_unit_test(test_log_probabilities_are_those_of_the_training_graph),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
