/* test_generation.c - greedy tokens against transformers, and the sampler's law. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "engine/generate/generate.h"
#include "engine/model/safetensors.h"

static const char *const families[] = {"gpt2", "llama", "smollm2", "qwen2", "qwen3"};

typedef struct {
    tp_model *model;
    tp_states states;
    tp_generator *generator;
    tp_safetensors *want;
} fixture;

static void set_up(fixture *f, const char *family, const char *backend, int64_t chunk)
{
    char folder[1024], path[1100];
    tp_error err = {0};
    tp_load_report report;
    memset(f, 0, sizeof *f);
    snprintf(folder, sizeof folder, "%s/tests/data/reference/%s", TP_SOURCE_DIR, family);
    snprintf(path, sizeof path, "%s/expected.safetensors", folder);
    tp_generator_options options = {.backend = tp_backend_find(backend),
                                    .threads = 2,
                                    .compute_dtype = TP_DTYPE_F32,
                                    .max_length = 40,
                                    .prefill_chunk = chunk};
    if (tp_safetensors_open(path, &f->want, &err) != TP_OK ||
        tp_model_open(folder, &f->model, &err) != TP_OK ||
        tp_states_init(&f->states, &err) != TP_OK ||
        tp_generator_create(f->model, &options, &f->states, &f->generator, &err) != TP_OK ||
        tp_model_load(f->model, &f->states, &report, &err) != TP_OK)
        fail_msg("%s: %s", family, err.message);
    tp_generator_weights_changed(f->generator);
}

static void tear_down(fixture *f)
{
    tp_generator_free(f->generator);
    tp_states_release(&f->states);
    tp_model_free(f->model);
    tp_safetensors_close(f->want);
}

typedef struct {
    int32_t ids[64];
    size_t n;
} collected;

static bool collect(void *user, int32_t id, float logp)
{
    collected *c = user;
    assert_true(logp <= 0);
    c->ids[c->n++] = id;
    return true;
}

static void check_greedy(const char *family, const char *backend, int64_t chunk)
{
    fixture f;
    tp_error err = {0};
    tp_generate_result r;
    collected got = {.n = 0};
    set_up(&f, family, backend, chunk);
    const tp_tensor_entry *greedy = tp_safetensors_find(f.want, "greedy");
    const int32_t *prompt = tp_safetensors_find(f.want, "input_ids")->data;
    tp_generate_options o = {.max_new_tokens = greedy->dim[0], .on_token = collect, .user = &got};

    if (tp_generate(f.generator, prompt, 5, &o, &r, &err) != TP_OK)
        fail_msg("%s: %s", family, err.message);

    assert_int_equal(got.n, greedy->dim[0]);
    for (size_t i = 0; i < got.n; i++)
        if (got.ids[i] != ((const int32_t *)greedy->data)[i])
            fail_msg("%s on %s: token %zu is %d, transformers has %d", family, backend, i,
                     got.ids[i], ((const int32_t *)greedy->data)[i]);
    tear_down(&f);
}

static void test_greedy_tokens_are_those_of_transformers(void **state)
{
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        check_greedy(families[i], "ref", 64);
        check_greedy(families[i], "cpu", 64);
        check_greedy(families[i], "cpu", 3); /* the prompt in several chunks */
    }
}

static void test_logits_are_those_of_transformers(void **state)
{
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        fixture f;
        tp_error err = {0};
        const float *logits;
        set_up(&f, families[i], "cpu", 4);
        const int32_t *ids = tp_safetensors_find(f.want, "input_ids")->data;
        const tp_tensor_entry *want = tp_safetensors_find(f.want, "logits");
        size_t V = (size_t)want->dim[1];
        for (size_t n = 1; n <= 17; n++) { /* the first sequence of the dump has 17 tokens */
            if (tp_generator_logits(f.generator, ids, n, &logits, &err) != TP_OK)
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

/* 40,000 draws over 6 ids; the chi-square statistic with 5 degrees of freedom stays
 * below its 99.99 % point. */
static void test_sampling_follows_the_softmax(void **state)
{
    const float logits[6] = {0.0f, 1.0f, -1.0f, 2.0f, 0.5f, -3.0f};
    enum { DRAWS = 40000 };
    uint64_t scratch[6];
    double expected[6], sum = 0, chi2 = 0;
    int counts[6] = {0};
    const double temperature = 0.7;
    for (int i = 0; i < 6; i++)
        sum += expected[i] = exp((double)logits[i] / temperature);
    tp_sampling s = {.temperature = temperature, .seed = 11};
    for (uint64_t k = 0; k < DRAWS; k++) {
        float logp;
        counts[tp_sample(logits, 6, 0, &s, k, scratch, &logp)]++;
    }
    for (int i = 0; i < 6; i++) {
        double e = expected[i] / sum * DRAWS;
        chi2 += (counts[i] - e) * (counts[i] - e) / e;
    }
    assert_true(chi2 < 25.74);
}

static void test_top_k_and_top_p_cut_the_tail(void **state)
{
    const float logits[5] = {1.0f, 3.0f, 2.0f, 3.0f, -1.0f};
    uint64_t scratch[5];
    float logp;
    tp_sampling k2 = {.temperature = 1, .top_k = 2, .seed = 3};
    tp_sampling p = {.temperature = 1, .top_p = 0.5, .seed = 3};
    for (uint64_t i = 0; i < 200; i++) {
        int32_t id = tp_sample(logits, 5, 0, &k2, i, scratch, &logp);
        assert_true(id == 1 || id == 3);
        id = tp_sample(logits, 5, 0, &p, i, scratch, &logp);
        assert_true(id == 1 || id == 3);
    }
}

static void test_greedy_takes_the_lowest_of_equals_and_no_id_without_token(void **state)
{
    const float logits[4] = {1.0f, 2.0f, 2.0f, 9.0f};
    uint64_t scratch[4];
    float logp;
    tp_sampling greedy = {0};
    assert_int_equal(tp_sample(logits, 4, 3, &greedy, 0, scratch, &logp), 1);
    assert_int_equal(tp_sample(logits, 4, 0, &greedy, 0, scratch, &logp), 3);
}

static void test_a_prompt_that_does_not_fit_is_refused(void **state)
{
    fixture f;
    tp_error err = {0};
    tp_generate_result r;
    int32_t prompt[64] = {0};
    tp_generate_options o = {.max_new_tokens = 1};
    set_up(&f, "llama", "ref", 8);
    assert_int_equal(tp_generate(f.generator, prompt, 40, &o, &r, &err), TP_ERR_CONFIG);
    prompt[0] = 1 << 20;
    assert_int_equal(tp_generate(f.generator, prompt, 2, &o, &r, &err), TP_ERR_FORMAT);
    tear_down(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_greedy_tokens_are_those_of_transformers),
        cmocka_unit_test(test_logits_are_those_of_transformers),
        cmocka_unit_test(test_sampling_follows_the_softmax),
        cmocka_unit_test(test_top_k_and_top_p_cut_the_tail),
        cmocka_unit_test(test_greedy_takes_the_lowest_of_equals_and_no_id_without_token),
        cmocka_unit_test(test_a_prompt_that_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
