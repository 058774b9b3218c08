/* test_drafts.c - speculative decoding by prompt lookup: whatever is tried, the answers are what
 * they are without, to the bit of their log-probabilities. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/generate/engine.h"
#include "support/devices.h"

static const char llama[] =
    "{\"model_type\": \"llama\", \"vocab_size\": 61, \"hidden_size\": 64, \"intermediate_size\":"
    " 100, \"num_hidden_layers\": 2, \"num_attention_heads\": 4, \"num_key_value_heads\": 2,"
    " \"head_dim\": 32, \"max_position_embeddings\": 256, \"rms_norm_eps\": 1e-5,"
    " \"rope_theta\": 10000.0, \"hidden_act\": \"silu\", \"tie_word_embeddings\": true}";
static const char gpt2[] =
    "{\"model_type\": \"gpt2\", \"vocab_size\": 43, \"n_embd\": 48, \"n_layer\": 2, \"n_head\": 3,"
    " \"n_positions\": 200, \"layer_norm_epsilon\": 1e-5, \"activation_function\": \"gelu_new\"}";

typedef struct {
    tp_model *model;
    tp_states states;
    tp_engine *engine;
} fixture;

static void set_up(fixture *f, const char *text, tp_engine_options o)
{
    tp_error err = {0};
    o.device = o.device ? o.device : device_of("cpu", 2);
    o.max_length = o.max_length ? o.max_length : 96;
    o.block_tokens = 16;
    if (tp_model_parse("config", text, strlen(text), &f->model, &err) != TP_OK ||
        tp_states_init(&f->states, &err) != TP_OK ||
        tp_engine_create(f->model, &o, &f->states, &f->engine, &err) != TP_OK ||
        tp_engine_alloc(f->engine, &err) != TP_OK)
        fail_msg("%s", err.message);
    MUST(tp_model_init_random(f->model, &f->states, 3, 0.12, NULL));
    MUST(tp_engine_weights_changed(f->engine, NULL));
}

static void tear_down(fixture *f)
{
    tp_engine_free(f->engine);
    tp_states_release(&f->states);
    tp_model_free(f->model);
}

/* ---- many answers, each in its own way ---- */

enum { REQUESTS = 10, SAMPLES = 2, NEW = 48 };

typedef struct {
    struct {
        int32_t ids[NEW];
        float logp[NEW], drawn[NEW];
        int64_t n;
        int finish;
    } v[REQUESTS][SAMPLES];
    tp_engine_stats stats;
} texts;

/* Prompts that go round in a circle, and one that does not. */
static size_t fill_prompt(int i, int32_t *ids)
{
    static const size_t lengths[REQUESTS] = {1, 30, 17, 40, 8, 12, 33, 24, 20, 16};
    size_t period = i == 4 ? 1000 : 3 + (size_t)i;
    for (size_t k = 0; k < lengths[i]; k++)
        ids[k] = (int32_t)((k % period * 7 + (size_t)i * 5) % 40);
    return lengths[i];
}

static const tp_sampling samplings[REQUESTS] = {
    [1] = {.temperature = 0.2},
    [2] = {.temperature = 1},
    [3] = {.temperature = 0.5, .top_k = 3},
    [4] = {.temperature = 0.7, .top_p = 0.6},
    [5] = {.temperature = 0.4, .min_p = 0.2},
    [7] = {.temperature = 0.3},
};
static const int32_t forbidden[] = {4, 11};
static const tp_logit_rules rules[REQUESTS] = {
    [6] = {.repetition_penalty = 1.05},
    [7] = {.min_new_tokens = 20, .suppressed = forbidden, .n_suppressed = 2},
    [8] = {.no_repeat_ngram = 4, .suppressed_first = forbidden, .n_suppressed_first = 2},
};

static int64_t submit(const fixture *f, int i)
{
    static const int32_t stops[] = {7, 19, 28};
    int32_t ids[64];
    tp_error err = {0};
    int64_t id = -1;
    bool may_stop = i == 2 || i == 7 || i == 9;
    tp_request r = {.prompt = ids,
                    .n_prompt = fill_prompt(i, ids),
                    .n_samples = SAMPLES,
                    .max_new_tokens = NEW - i % 4,
                    .sampling = samplings[i],
                    .rules = rules[i],
                    .seed = 5,
                    .stream = (uint64_t)i * SAMPLES,
                    .stop_ids = stops,
                    .n_stop_ids = may_stop ? 3 : 0};
    if (tp_engine_submit(f->engine, &r, &id, &err) != TP_OK)
        fail_msg("%s", err.message);
    return id;
}

static void generate(const char *text, tp_engine_options o, texts *out)
{
    fixture f;
    int64_t id[REQUESTS];
    set_up(&f, text, o);
    memset(out, 0, sizeof *out);
    for (int i = 0; i < REQUESTS; i++)
        id[i] = submit(&f, i);
    MUST(tp_engine_run(f.engine, NULL));
    for (int i = 0; i < REQUESTS; i++)
        for (int j = 0; j < SAMPLES; j++) {
            tp_sample_result r = tp_engine_sample(f.engine, id[i], j);
            out->v[i][j].n = (int64_t)r.n;
            out->v[i][j].finish = (int)r.finish;
            memcpy(out->v[i][j].ids, r.ids, r.n * sizeof *r.ids);
            memcpy(out->v[i][j].logp, r.logp, r.n * sizeof *r.logp);
            memcpy(out->v[i][j].drawn, r.sampled_logp, r.n * sizeof *r.sampled_logp);
        }
    out->stats = tp_engine_get_stats(f.engine);
    assert_int_equal(out->stats.used_bytes, 0);
    tear_down(&f);
}

static void assert_same(const texts *want, const texts *got, const char *what)
{
    for (int i = 0; i < REQUESTS; i++)
        for (int j = 0; j < SAMPLES; j++)
            if (memcmp(&want->v[i][j], &got->v[i][j], sizeof got->v[i][j]) != 0)
                fail_msg("%s: sample %d of request %d is another", what, j, i);
    assert_int_equal(got->stats.decode_tokens, want->stats.decode_tokens);
    if (!(got->stats.accepted_tokens > 0 && got->stats.drafted_tokens > got->stats.accepted_tokens))
        fail_msg("%s: %lld of %lld were right; expected some, and some not", what,
                 (long long)got->stats.accepted_tokens, (long long)got->stats.drafted_tokens);
}

static const tp_drafting usual = {.tokens = 4, .lookup_max = 3, .lookup_min = 1, .rows = 24};

static void check(const char *text, const char *backend, tp_dtype compute, tp_dtype cache)
{
    static texts plain, drafted;
    tp_engine_options o = {.compute_dtype = compute, .cache_dtype = cache};
    o.device = device_of(backend, 2);
    generate(text, o, &plain);
    assert_int_equal(plain.stats.drafted_tokens, 0);
    o.drafting = usual;
    generate(text, o, &drafted);
    assert_same(&plain, &drafted, backend);
}

static void test_answers_are_the_same(void **state)
{
    check(llama, "cpu", TP_DTYPE_F32, TP_DTYPE_F32);
    check(llama, "cpu", TP_DTYPE_BF16, TP_DTYPE_BF16);
    check(llama, "cpu", TP_DTYPE_BF16, TP_DTYPE_F32);
    check(gpt2, "cpu", TP_DTYPE_F32, TP_DTYPE_F32);
    check(gpt2, "cpu", TP_DTYPE_BF16, TP_DTYPE_BF16);
}

static void test_answers_are_the_same_on_other_backends(void **state)
{
    check(llama, "ref", TP_DTYPE_F32, TP_DTYPE_F32);
    check(gpt2, "ref", TP_DTYPE_BF16, TP_DTYPE_BF16);
    check(gpt2, "guard", TP_DTYPE_F32, TP_DTYPE_F32);
}

static void test_every_instruction_set_says_the_same(void **state)
{
    static const tp_isa levels[] = {TP_ISA_PORTABLE, TP_ISA_AVX2, TP_ISA_AVX512};
    tp_isa best = tp_cpu_detect();
    for (size_t i = 0; i < 3; i++) {
        if (levels[i] >= best)
            continue;
        assert_int_equal(tp_cpu_force_isa(levels[i], NULL), TP_OK);
        check(llama, "cpu", TP_DTYPE_BF16, TP_DTYPE_BF16);
        check(gpt2, "cpu", TP_DTYPE_F32, TP_DTYPE_F32);
    }
    assert_int_equal(tp_cpu_force_isa(best, NULL), TP_OK);
}

static void test_drafts_of_any_size_in_any_company(void **state)
{
    static const struct {
        const char *what;
        tp_drafting drafting;
        int64_t max_running, step_tokens;
        int threads;
    } cases[] = {
        {"one token", {1, 2, 1, 40}, 0, 0, 2},      {"twenty tokens", {20, 4, 1, 500}, 0, 0, 2},
        {"long runs only", {5, 9, 3, 60}, 0, 0, 2}, {"one answer at a time", {6, 3, 1, 0}, 1, 0, 1},
        {"small steps", {4, 3, 1, 7}, 3, 5, 3},     {"two rows to share", {3, 2, 2, 6}, 4, 0, 2},
    };
    static texts plain, drafted;
    tp_engine_options o = {.compute_dtype = TP_DTYPE_F32, .cache_dtype = TP_DTYPE_F32};
    generate(llama, o, &plain);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        o.device = device_of("cpu", cases[i].threads);
        o.drafting = cases[i].drafting;
        o.max_running = cases[i].max_running;
        o.step_tokens = cases[i].step_tokens;
        generate(llama, o, &drafted);
        assert_same(&plain, &drafted, cases[i].what);
    }
}

static void test_drafts_take_nobodys_blocks(void **state)
{
    static texts plain, drafted;
    /* room for the longest answer (6 blocks) and little more */
    tp_engine_options o = {.compute_dtype = TP_DTYPE_F32,
                           .cache_dtype = TP_DTYPE_F32,
                           .cache_bytes = (size_t)8 * 2 * 2 * 16 * 64 * 4};
    generate(llama, o, &plain);
    o.drafting = usual;
    generate(llama, o, &drafted);
    assert_same(&plain, &drafted, "a cache of eight blocks");
    assert_true(drafted.stats.preemptions > 0 && drafted.stats.recomputed_tokens > 0);
}

static void test_fewer_steps_where_a_text_repeats_itself(void **state)
{
    fixture f;
    const int32_t ids[] = {1, 2, 3};
    tp_engine_options o = {.drafting = {.tokens = 7, .lookup_max = 3}};
    int64_t id;
    set_up(&f, llama, o);
    tp_request r = {.prompt = ids, .n_prompt = 3, .max_new_tokens = 90};
    MUST(tp_engine_submit(f.engine, &r, &id, NULL)); /* greedy: it ends in a circle */
    MUST(tp_engine_run(f.engine, NULL));
    tp_engine_stats s = tp_engine_get_stats(f.engine);
    assert_int_equal(s.decode_tokens, 90);
    assert_int_equal(s.steps + s.accepted_tokens, 90);
    assert_true(s.steps < 60);
    tear_down(&f);
}

/* The next draft is one longer than what was right of the last one, or twice as long as all of it:
 * a text that does not repeat itself pays for few tokens. */
static void test_drafts_are_as_long_as_they_are_right(void **state)
{
    static texts drafted;
    tp_engine_options o = {.drafting = {.tokens = 16, .lookup_max = 1, .rows = 4096}};
    generate(llama, o, &drafted);
    const tp_engine_stats *s = &drafted.stats;
    int64_t first = (int64_t)REQUESTS * SAMPLES * o.drafting.tokens;
    int64_t drafts = s->decode_tokens - s->accepted_tokens; /* at most */
    assert_in_range(s->drafted_tokens, 1, first + 2 * s->accepted_tokens + drafts);
}

/* ---- ends ---- */

typedef struct {
    int n;
    int32_t ids[NEW];
} heard;

static bool until_nine(void *user, const tp_engine_token *token)
{
    heard *h = user;
    h->ids[h->n++] = token->id;
    return h->n < 9;
}

static void listen(const tp_drafting *drafting, heard *ret)
{
    fixture f;
    const int32_t ids[] = {1, 2, 1, 2, 1, 2};
    int64_t id;
    set_up(&f, gpt2, (tp_engine_options){.drafting = *drafting});
    tp_request r = {
        .prompt = ids, .n_prompt = 6, .max_new_tokens = 30, .on_token = until_nine, .user = ret};
    MUST(tp_engine_submit(f.engine, &r, &id, NULL));
    MUST(tp_engine_run(f.engine, NULL));
    assert_int_equal(tp_engine_sample(f.engine, id, 0).finish, TP_FINISH_CANCELLED);
    assert_int_equal(tp_engine_sample(f.engine, id, 0).n, 9);
    tear_down(&f);
}

static void test_a_listener_hears_tokens_in_order_and_no_more(void **state)
{
    static heard plain, drafted;
    listen(&(tp_drafting){0}, &plain);
    listen(&(tp_drafting){.tokens = 16, .lookup_max = 2, .lookup_min = 1}, &drafted);
    assert_int_equal(drafted.n, 9);
    assert_memory_equal(plain.ids, drafted.ids, 9 * sizeof *plain.ids);
}

/* Position 40 is no number: a draft that reaches it says nothing about the answers before it. */
static void test_what_is_broken_further_on_ends_an_answer_there(void **state)
{
    for (int drafts = 0; drafts < 2; drafts++) {
        fixture f;
        const int32_t ids[] = {1, 2, 3, 1, 2, 3};
        int64_t id;
        set_up(&f, gpt2, (tp_engine_options){.drafting = drafts ? usual : (tp_drafting){0}});
        tp_tensor *positions = tp_states_find(&f.states, "transformer.wpe.weight");
        positions = positions ? positions : tp_states_find(&f.states, "wpe.weight");
        assert_non_null(positions);
        ((float *)data_of(positions))[40 * 48] = NAN;
        MUST(tp_engine_weights_changed(f.engine, NULL));
        tp_request r = {.prompt = ids, .n_prompt = 6, .n_samples = 2, .max_new_tokens = 80};
        MUST(tp_engine_submit(f.engine, &r, &id, NULL));
        MUST(tp_engine_run(f.engine, NULL));
        for (int j = 0; j < 2; j++) {
            assert_int_equal(tp_engine_sample(f.engine, id, j).finish, TP_FINISH_NONFINITE);
            assert_int_equal(tp_engine_sample(f.engine, id, j).n, 40 - 6 + 1);
        }
        assert_int_equal(tp_engine_get_stats(f.engine).drafted_tokens > 0, drafts);
        assert_int_equal(tp_engine_get_stats(f.engine).used_bytes, 0);
        tear_down(&f);
    }
}

static void refuse(tp_drafting drafting, const char *message)
{
    tp_model *model;
    tp_states states;
    tp_engine *engine = NULL;
    tp_error err = {0};
    tp_engine_options o = {.device = device_of("cpu", 1), .drafting = drafting};
    MUST(tp_model_parse("config", gpt2, strlen(gpt2), &model, &err));
    MUST(tp_states_init(&states, &err));
    assert_int_equal(tp_engine_create(model, &o, &states, &engine, &err), TP_ERR_CONFIG);
    if (!strstr(err.message, message))
        fail_msg("'%s' lacks '%s'", err.message, message);
    tp_states_release(&states);
    tp_model_free(model);
}

static void test_drafts_that_make_no_sense_are_refused(void **state)
{
    refuse((tp_drafting){.tokens = -1}, "drafts of -1 tokens");
    refuse((tp_drafting){.tokens = 5000}, "drafts of 5000 tokens");
    refuse((tp_drafting){.tokens = 2, .lookup_max = 2, .lookup_min = 3},
           "prompt_lookup_min is 3, prompt_lookup_max 2");
    refuse((tp_drafting){.tokens = 2, .lookup_max = -2},
           "prompt_lookup_min is -2, prompt_lookup_max -2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers_are_the_same),
        cmocka_unit_test(test_answers_are_the_same_on_other_backends),
        cmocka_unit_test(test_every_instruction_set_says_the_same),
        cmocka_unit_test(test_drafts_of_any_size_in_any_company),
        cmocka_unit_test(test_drafts_take_nobodys_blocks),
        cmocka_unit_test(test_fewer_steps_where_a_text_repeats_itself),
        cmocka_unit_test(test_drafts_are_as_long_as_they_are_right),
        cmocka_unit_test(test_a_listener_hears_tokens_in_order_and_no_more),
        cmocka_unit_test(test_what_is_broken_further_on_ends_an_answer_there),
        cmocka_unit_test(test_drafts_that_make_no_sense_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
