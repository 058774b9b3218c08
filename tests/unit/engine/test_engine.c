/* test_engine.c - batched generation: the same text in any company, and what goes wrong. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/generate/engine.h"
#include "support/devices.h"
#include "support/logits.h"

/* Heads of 64 and odd sizes elsewhere. */
static const char config[] =
    "{\"model_type\": \"llama\", \"vocab_size\": 97, \"hidden_size\": 128, \"intermediate_size\":"
    " 200, \"num_hidden_layers\": 2, \"num_attention_heads\": 4, \"num_key_value_heads\": 2,"
    " \"head_dim\": 64, \"max_position_embeddings\": 256, \"rms_norm_eps\": 1e-5,"
    " \"rope_theta\": 10000.0, \"hidden_act\": \"silu\", \"tie_word_embeddings\": true}";
static const char gpt2_config[] =
    "{\"model_type\": \"gpt2\", \"vocab_size\": 75, \"n_embd\": 96, \"n_layer\": 2, \"n_head\": 3,"
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
    o.max_length = o.max_length ? o.max_length : 120;
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

static bool step(const fixture *f)
{
    bool is_busy;
    MUST(tp_engine_step(f->engine, &is_busy, NULL));
    return is_busy;
}

static int64_t submit(const fixture *f, tp_request r)
{
    tp_error err = {0};
    int64_t id = -1;
    if (tp_engine_submit(f->engine, &r, &id, &err) != TP_OK)
        fail_msg("%s", err.message);
    return id;
}

/* ---- the same text ---- */

enum { PROMPTS = 7, SAMPLES = 3, NEW = 40 };

typedef struct {
    int32_t ids[PROMPTS][SAMPLES][NEW];
    float logp[PROMPTS][SAMPLES][NEW], drawn[PROMPTS][SAMPLES][NEW];
    int64_t n[PROMPTS][SAMPLES];
    tp_engine_stats stats;
} texts;

static tp_request prompt(int i, int32_t *ids)
{
    static const size_t lengths[PROMPTS] = {1, 2, 16, 17, 33, 50, 5};
    for (size_t k = 0; k < lengths[i]; k++)
        ids[k] = (int32_t)((k * 7 + (size_t)i * 13) % 70);
    return (tp_request){.prompt = ids,
                        .n_prompt = lengths[i],
                        .n_samples = SAMPLES,
                        .max_new_tokens = NEW - i,
                        .sampling = {.temperature = i % 2 ? 0.8 : 1.2, .top_k = i == 3 ? 9 : 0},
                        .seed = 11,
                        .stream = (uint64_t)i * SAMPLES};
}

static void collect(const fixture *f, int64_t id, int i, texts *out)
{
    for (int j = 0; j < SAMPLES; j++) {
        tp_sample_result r = tp_engine_sample(f->engine, id, j);
        assert_int_equal(r.finish, TP_FINISH_LENGTH);
        assert_int_equal(r.n, NEW - i);
        out->n[i][j] = (int64_t)r.n;
        memcpy(out->ids[i][j], r.ids, r.n * sizeof *r.ids);
        memcpy(out->logp[i][j], r.logp, r.n * sizeof *r.logp);
        memcpy(out->drawn[i][j], r.sampled_logp, r.n * sizeof *r.sampled_logp);
    }
}

static void generate(const char *text, tp_engine_options o, bool one_by_one, texts *out)
{
    fixture f;
    int32_t ids[64];
    int64_t id[PROMPTS];
    set_up(&f, text, o);
    memset(out, 0, sizeof *out);
    for (int i = 0; i < PROMPTS; i++) {
        id[i] = submit(&f, prompt(i, ids));
        if (one_by_one)
            MUST(tp_engine_run(f.engine, NULL));
    }
    MUST(tp_engine_run(f.engine, NULL));
    for (int i = 0; i < PROMPTS; i++)
        collect(&f, id[i], i, out);
    out->stats = tp_engine_get_stats(f.engine);
    assert_int_equal(out->stats.used_bytes, 0);
    tear_down(&f);
}

static void assert_same(const texts *a, const texts *b, const char *what)
{
    if (memcmp(a->ids, b->ids, sizeof a->ids) != 0)
        fail_msg("%s: other tokens", what);
    if (memcmp(a->logp, b->logp, sizeof a->logp) != 0 ||
        memcmp(a->drawn, b->drawn, sizeof a->drawn) != 0)
        fail_msg("%s: other log-probabilities", what);
}

static void check_company(const char *text, tp_dtype compute, tp_dtype cache)
{
    static texts alone, other;
    tp_engine_options o = {.compute_dtype = compute, .cache_dtype = cache, .block_tokens = 16};
    o.max_running = 1;
    o.device = device_of("cpu", 1);
    generate(text, o, true, &alone);
    o.device = device_of("cpu", 2);
    o.max_running = 0;
    generate(text, o, false, &other);
    assert_same(&alone, &other, "all at once on two threads");
    assert_true(other.stats.shared_tokens > 0);
    o.step_tokens = 7;
    o.max_running = 5;
    generate(text, o, false, &other);
    assert_same(&alone, &other, "steps of 7 tokens");
    o.device = device_of("cpu", 3);
    o.step_tokens = 1;
    o.max_running = 1;
    generate(text, o, false, &other);
    assert_same(&alone, &other, "steps of 1 token on three threads");
    /* room for the longest sample (6 blocks) and little more */
    o = (tp_engine_options){.compute_dtype = compute, .cache_dtype = cache, .block_tokens = 16};
    size_t block = strstr(text, "gpt2") ? 2u * 2 * 16 * 96 : 2u * 2 * 16 * 128;
    o.cache_bytes = 8 * block * (cache == TP_DTYPE_F32 ? 4 : 2);
    generate(text, o, false, &other);
    assert_same(&alone, &other, "a cache of eight blocks");
    assert_true(other.stats.preemptions > 0 && other.stats.recomputed_tokens > 0);
}

static void test_a_text_does_not_depend_on_its_company(void **state)
{
    check_company(config, TP_DTYPE_F32, TP_DTYPE_F32);
    check_company(config, TP_DTYPE_BF16, TP_DTYPE_BF16);
    check_company(gpt2_config, TP_DTYPE_F32, TP_DTYPE_F32);
    check_company(gpt2_config, TP_DTYPE_BF16, TP_DTYPE_BF16);
}

static void test_cache_and_products_may_differ_in_dtype(void **state)
{
    check_company(config, TP_DTYPE_BF16, TP_DTYPE_F32);
    check_company(config, TP_DTYPE_F32, TP_DTYPE_BF16);
}

static void test_every_instruction_set_keeps_rows_apart(void **state)
{
    static const tp_isa levels[] = {TP_ISA_PORTABLE, TP_ISA_AVX2, TP_ISA_AVX512};
    tp_isa best = tp_cpu_detect();
    for (size_t i = 0; i < 3; i++) {
        if (levels[i] >= best)
            continue;
        assert_int_equal(tp_cpu_force_isa(levels[i], NULL), TP_OK);
        check_company(config, TP_DTYPE_BF16, TP_DTYPE_BF16);
        check_company(gpt2_config, TP_DTYPE_F32, TP_DTYPE_F32);
    }
    assert_int_equal(tp_cpu_force_isa(best, NULL), TP_OK);
}

/* ---- the law of sampling ---- */

/* First tokens of many samples against the softmax of the logits; cells of fewer than five
 * expected are put together.  The limit is about the 99.99 % point. */
static void check_law(tp_sampling sampling, bool (*is_kept)(const double *p, int i))
{
    enum { V = 75, DRAWS = 30000 };
    fixture f;
    float logits[V];
    const int32_t ids[] = {5, 6, 7};
    int counts[V] = {0}, cells = 0;
    double p[V], sum = 0, chi2 = 0, rest_expected = 0, rest = 0;
    set_up(&f, gpt2_config, (tp_engine_options){.max_running = 256});
    assert_int_equal(logits_after(f.engine, ids, 3, logits, NULL), TP_OK);
    for (int i = 0; i < V; i++)
        sum += p[i] = exp((double)logits[i] / sampling.temperature);
    for (int i = 0; i < V; i++)
        p[i] /= sum;
    int64_t id = submit(&f, (tp_request){.prompt = ids,
                                         .n_prompt = 3,
                                         .n_samples = DRAWS,
                                         .max_new_tokens = 1,
                                         .sampling = sampling,
                                         .seed = 1});
    MUST(tp_engine_run(f.engine, NULL));
    for (int64_t j = 0; j < DRAWS; j++)
        counts[tp_engine_sample(f.engine, id, j).ids[0]]++;
    sum = 0;
    for (int i = 0; i < V; i++)
        sum += is_kept(p, i) ? p[i] : 0;
    for (int i = 0; i < V; i++) {
        if (!is_kept(p, i)) {
            assert_int_equal(counts[i], 0);
            continue;
        }
        double expected = p[i] / sum * DRAWS;
        if (expected < 5) {
            rest_expected += expected;
            rest += counts[i];
            continue;
        }
        chi2 += (counts[i] - expected) * (counts[i] - expected) / expected;
        cells++;
    }
    if (rest_expected > 0)
        chi2 += (rest - rest_expected) * (rest - rest_expected) / rest_expected;
    double limit = cells + 4 * sqrt(2.0 * cells) + 10;
    if (!(chi2 < limit))
        fail_msg("chi-square %.1f over %d cells exceeds %.1f", chi2, cells, limit);
    assert_true(cells >= 3);
    tear_down(&f);
}

static int rank_of(const double *p, int i)
{
    int rank = 0;
    for (int k = 0; k < 75; k++)
        rank += p[k] > p[i];
    return rank;
}

static bool all(const double *p, int i) { return true; }
static bool best_eight(const double *p, int i) { return rank_of(p, i) < 8; }
static bool a_tenth_of_the_best(const double *p, int i)
{
    double best = 0;
    for (int k = 0; k < 75; k++)
        best = fmax(best, p[k]);
    return p[i] >= 0.1 * best;
}

static bool first_half(const double *p, int i)
{
    double above = 0;
    for (int k = 0; k < 75; k++)
        above += p[k] > p[i] ? p[k] : 0;
    return above < 0.5;
}

static void test_samples_follow_the_distribution(void **state)
{
    check_law((tp_sampling){.temperature = 1}, all);
    check_law((tp_sampling){.temperature = 0.6}, all);
    check_law((tp_sampling){.temperature = 1.3, .top_k = 8}, best_eight);
    check_law((tp_sampling){.temperature = 1, .top_p = 0.5}, first_half);
    check_law((tp_sampling){.temperature = 1, .min_p = 0.1}, a_tenth_of_the_best);
}

static void test_the_drawn_probability_is_that_of_what_was_left(void **state)
{
    fixture f;
    const int32_t ids[] = {5, 6, 7};
    set_up(&f, gpt2_config, (tp_engine_options){0});
    int64_t greedy = submit(&f, (tp_request){.prompt = ids, .n_prompt = 3, .max_new_tokens = 4});
    int64_t one = submit(&f, (tp_request){.prompt = ids,
                                          .n_prompt = 3,
                                          .max_new_tokens = 4,
                                          .sampling = {.temperature = 2, .top_k = 1}});
    MUST(tp_engine_run(f.engine, NULL));
    tp_sample_result a = tp_engine_sample(f.engine, greedy, 0);
    tp_sample_result b = tp_engine_sample(f.engine, one, 0);
    assert_memory_equal(a.ids, b.ids, 4 * sizeof *a.ids);
    assert_memory_equal(a.logp, b.logp, 4 * sizeof *a.logp);
    for (int i = 0; i < 4; i++) {
        assert_true(a.logp[i] < 0);
        assert_true(a.sampled_logp[i] == 0 && fabsf(b.sampled_logp[i]) < 1e-7f);
    }
    tear_down(&f);
}

/* ---- ends ---- */

static void test_a_stop_id_ends_a_text_and_is_its_last(void **state)
{
    fixture f;
    const int32_t ids[] = {1, 2};
    set_up(&f, config, (tp_engine_options){0});
    tp_request r = {.prompt = ids, .n_prompt = 2, .max_new_tokens = 12};
    int64_t free_run = submit(&f, r);
    MUST(tp_engine_run(f.engine, NULL));
    int32_t stops[] = {96, tp_engine_sample(f.engine, free_run, 0).ids[5]};
    r.stop_ids = stops;
    r.n_stop_ids = 2;
    int64_t id = submit(&f, r);
    MUST(tp_engine_run(f.engine, NULL));
    tp_sample_result got = tp_engine_sample(f.engine, id, 0);
    assert_int_equal(got.finish, TP_FINISH_STOP);
    assert_true(got.n >= 1 && got.n <= 6);
    assert_int_equal(got.ids[got.n - 1], stops[1]);
    assert_int_equal(got.stop_string, -1);
    tear_down(&f);
}

static void test_a_stop_string_may_lie_across_tokens(void **state)
{
    fixture f;
    tp_error err = {0};
    tp_tokenizer *tok;
    char path[1024];
    FILE *file;
    static char json[4 << 20];
    snprintf(path, sizeof path, "%s/tests/data/tokenizers/gpt2.json", TP_SOURCE_DIR);
    file = fopen(path, "r");
    assert_non_null(file);
    size_t n = fread(json, 1, sizeof json, file);
    fclose(file);
    assert_int_equal(tp_tokenizer_parse("gpt2", json, n, &tok, &err), TP_OK);
    const int32_t ids[] = {1, 2};
    set_up(&f, config, (tp_engine_options){.tokenizer = tok});
    tp_request r = {.prompt = ids, .n_prompt = 2, .max_new_tokens = 12, .sampling = {1, 0, 0, 0}};
    int64_t free_run = submit(&f, r);
    MUST(tp_engine_run(f.engine, NULL));
    tp_sample_result got = tp_engine_sample(f.engine, free_run, 0);
    tp_buf across = {0};
    tp_tokenizer_decode(tok, got.ids + 4, 3, true, &across);
    assert_true(across.len >= 3);
    const char *stops[] = {"never spoken", tp_buf_str(&across)};
    r.stop_strings = stops;
    r.n_stop_strings = 2;
    int64_t id = submit(&f, r);
    MUST(tp_engine_run(f.engine, NULL));
    got = tp_engine_sample(f.engine, id, 0);
    assert_int_equal(got.finish, TP_FINISH_STOP);
    assert_int_equal(got.stop_string, 1);
    assert_int_equal(got.n, 7);
    tp_buf_release(&across);
    tear_down(&f);
    tp_tokenizer_free(tok);
}

typedef struct {
    int n, last_sample;
} heard;

static bool until_four(void *user, const tp_engine_token *token)
{
    heard *h = user;
    h->last_sample = (int)token->sample;
    return ++h->n < 4;
}

static void test_a_listener_may_end_a_text(void **state)
{
    fixture f;
    heard h = {0};
    const int32_t ids[] = {1, 2};
    set_up(&f, config, (tp_engine_options){0});
    int64_t id = submit(&f, (tp_request){.prompt = ids,
                                         .n_prompt = 2,
                                         .max_new_tokens = 12,
                                         .on_token = until_four,
                                         .user = &h});
    MUST(tp_engine_run(f.engine, NULL));
    assert_int_equal(h.n, 4);
    assert_int_equal(tp_engine_sample(f.engine, id, 0).finish, TP_FINISH_CANCELLED);
    assert_int_equal(tp_engine_sample(f.engine, id, 0).n, 4);
    tear_down(&f);
}

static void test_a_text_ends_at_the_length_of_the_engine(void **state)
{
    fixture f;
    const int32_t ids[] = {1, 2, 3};
    set_up(&f, config, (tp_engine_options){.max_length = 20});
    int64_t id = submit(&f, (tp_request){.prompt = ids, .n_prompt = 3});
    MUST(tp_engine_run(f.engine, NULL));
    assert_int_equal(tp_engine_sample(f.engine, id, 0).finish, TP_FINISH_LENGTH);
    assert_int_equal(tp_engine_sample(f.engine, id, 0).n, 17);
    tear_down(&f);
}

static void test_cancelled_requests_leave_nothing_behind(void **state)
{
    fixture f;
    int32_t ids[64];
    set_up(&f, config, (tp_engine_options){.max_running = 4, .block_tokens = 16});
    int64_t first = submit(&f, prompt(5, ids)), second = submit(&f, prompt(4, ids));
    for (int i = 0; i < 3; i++)
        assert_true(step(&f));
    tp_engine_cancel(f.engine, first);
    tp_engine_forget(f.engine, second);
    assert_false(step(&f));
    assert_int_equal(tp_engine_sample(f.engine, first, 0).finish, TP_FINISH_CANCELLED);
    assert_int_equal(tp_engine_get_stats(f.engine).used_bytes, 0);
    assert_int_equal(tp_engine_get_stats(f.engine).waiting, 0);
    tear_down(&f);
}

/* ---- what goes wrong ---- */

static void refuse(const fixture *f, tp_request r, tp_status status, const char *message)
{
    tp_error err = {0};
    int64_t id = -1;
    assert_int_equal(tp_engine_submit(f->engine, &r, &id, &err), status);
    if (!strstr(err.message, message))
        fail_msg("'%s' lacks '%s'", err.message, message);
    assert_int_equal(id, -1);
}

static void test_requests_that_make_no_sense_are_refused(void **state)
{
    fixture f;
    const char *stops[] = {"x"};
    int32_t ids[120] = {1, 2, 3};
    set_up(&f, config, (tp_engine_options){0});
    refuse(&f, (tp_request){.prompt = ids}, TP_ERR_CONFIG, "the prompt is empty");
    refuse(&f, (tp_request){.prompt = ids, .n_prompt = 120}, TP_ERR_CONFIG, "at most 119 fit");
    refuse(&f,
           (tp_request){.prompt = ids, .n_prompt = 3, .stop_strings = stops, .n_stop_strings = 1},
           TP_ERR_CONFIG, "need a tokenizer");
    refuse(&f, (tp_request){.prompt = ids, .n_prompt = 3, .sampling = {.temperature = -1}},
           TP_ERR_CONFIG, "temperature is -1");
    refuse(&f, (tp_request){.prompt = ids, .n_prompt = 3, .sampling = {.min_p = 2}}, TP_ERR_CONFIG,
           "min_p 2");
    ids[2] = 97;
    refuse(&f, (tp_request){.prompt = ids, .n_prompt = 3}, TP_ERR_FORMAT,
           "token 2 of the prompt is 97, outside the model's vocabulary of 97");
    ids[2] = -1;
    refuse(&f, (tp_request){.prompt = ids, .n_prompt = 3}, TP_ERR_FORMAT, "is -1");
    assert_false(step(&f));
    tear_down(&f);
}

static void test_an_engine_needs_a_block(void **state)
{
    tp_model *model;
    tp_states states;
    tp_engine *engine = NULL;
    tp_error err = {0};
    tp_engine_options o = {.device = device_of("cpu", 1), .cache_bytes = 100};
    assert_int_equal(tp_model_parse("config", config, strlen(config), &model, &err), TP_OK);
    assert_int_equal(tp_states_init(&states, &err), TP_OK);
    assert_int_equal(tp_engine_create(model, &o, &states, &engine, &err), TP_ERR_CONFIG);
    assert_non_null(strstr(err.message, "does not hold one block of 32 tokens, 65536 bytes"));
    assert_null(engine);
    tp_states_release(&states);
    tp_model_free(model);
}

static void test_a_text_that_outgrows_the_cache_ends_there(void **state)
{
    fixture f;
    int32_t ids[64];
    /* three blocks of 16 tokens */
    set_up(&f, config,
           (tp_engine_options){.block_tokens = 16, .cache_bytes = 3 * 2 * 2 * 16 * 128 * 4});
    tp_request r = prompt(4, ids); /* 33 tokens */
    r.n_samples = 2;
    r.max_new_tokens = 60;
    int64_t id = submit(&f, r);
    tp_request big = prompt(5, ids); /* 50 tokens: never fits */
    int64_t never = submit(&f, big);
    MUST(tp_engine_run(f.engine, NULL));
    for (int j = 0; j < 2; j++) {
        assert_int_equal(tp_engine_sample(f.engine, id, j).finish, TP_FINISH_CAPACITY);
        assert_int_equal(tp_engine_sample(f.engine, id, j).n, 48 - 33 + 1);
    }
    for (int j = 0; j < SAMPLES; j++)
        assert_int_equal(tp_engine_sample(f.engine, never, j).finish, TP_FINISH_CAPACITY);
    assert_int_equal(tp_engine_get_stats(f.engine).used_bytes, 0);
    tear_down(&f);
}

static void test_ten_thousand_prompts(void **state)
{
    enum { N = 10000 };
    fixture f;
    set_up(&f, gpt2_config, (tp_engine_options){.max_running = 128, .max_length = 16});
    for (int i = 0; i < N; i++) {
        int32_t ids[3] = {i % 75, i / 75 % 75, 1};
        submit(&f, (tp_request){.prompt = ids, .n_prompt = 1 + (size_t)i % 3, .max_new_tokens = 2});
    }
    assert_int_equal(tp_engine_get_stats(f.engine).waiting, N);
    MUST(tp_engine_run(f.engine, NULL));
    for (int64_t i = 0; i < N; i++) {
        assert_int_equal(tp_engine_sample(f.engine, i, 0).n, 2);
        tp_engine_forget(f.engine, i);
    }
    assert_int_equal(tp_engine_get_stats(f.engine).decode_tokens, 2 * N);
    tear_down(&f);
}

static void test_broken_weights_end_texts_and_leave_no_trace(void **state)
{
    fixture f;
    int32_t ids[64], want[NEW];
    set_up(&f, config, (tp_engine_options){.block_tokens = 16});
    tp_request r = prompt(3, ids);
    int64_t id = submit(&f, r);
    MUST(tp_engine_run(f.engine, NULL));
    tp_sample_result before = tp_engine_sample(f.engine, id, 1);
    size_t n = before.n;
    memcpy(want, before.ids, n * sizeof *want);
    float *w = data_of(tp_states_find(&f.states, "model.layers.0.self_attn.v_proj.weight"));
    float kept = w[5];
    w[5] = NAN;
    MUST(tp_engine_weights_changed(f.engine, NULL));
    int64_t broken = submit(&f, r);
    MUST(tp_engine_run(f.engine, NULL));
    for (int j = 0; j < SAMPLES; j++) {
        assert_int_equal(tp_engine_sample(f.engine, broken, j).finish, TP_FINISH_NONFINITE);
        assert_int_equal(tp_engine_sample(f.engine, broken, j).n, 0);
    }
    w[5] = kept;
    MUST(tp_engine_weights_changed(f.engine, NULL));
    int64_t again = submit(&f, r);
    MUST(tp_engine_run(f.engine, NULL));
    tp_sample_result after = tp_engine_sample(f.engine, again, 1);
    assert_int_equal(after.n, n);
    assert_memory_equal(after.ids, want, n * sizeof *want);
    tear_down(&f);
}

static void test_samples_of_a_prompt_share_its_blocks(void **state)
{
    fixture f;
    int32_t ids[64];
    set_up(&f, config, (tp_engine_options){.block_tokens = 16, .max_running = 8});
    tp_request r = prompt(5, ids); /* 50 tokens: 49 are shared, three blocks whole */
    r.n_samples = 8;
    r.max_new_tokens = 4;
    submit(&f, r);
    MUST(tp_engine_run(f.engine, NULL));
    tp_engine_stats s = tp_engine_get_stats(f.engine);
    assert_int_equal(s.prefill_tokens, 50 + 7);
    assert_int_equal(s.shared_tokens, 7 * 49);
    assert_int_equal(s.peak_bytes, (3 + 8 + 1) * 2 * 2 * 16 * 128 * 4 - 2 * 2 * 16 * 128 * 4);
    tear_down(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_text_does_not_depend_on_its_company),
        cmocka_unit_test(test_cache_and_products_may_differ_in_dtype),
        cmocka_unit_test(test_every_instruction_set_keeps_rows_apart),
        cmocka_unit_test(test_samples_follow_the_distribution),
        cmocka_unit_test(test_the_drawn_probability_is_that_of_what_was_left),
        cmocka_unit_test(test_a_stop_id_ends_a_text_and_is_its_last),
        cmocka_unit_test(test_a_stop_string_may_lie_across_tokens),
        cmocka_unit_test(test_a_listener_may_end_a_text),
        cmocka_unit_test(test_a_text_ends_at_the_length_of_the_engine),
        cmocka_unit_test(test_cancelled_requests_leave_nothing_behind),
        cmocka_unit_test(test_requests_that_make_no_sense_are_refused),
        cmocka_unit_test(test_an_engine_needs_a_block),
        cmocka_unit_test(test_a_text_that_outgrows_the_cache_ends_there),
        cmocka_unit_test(test_ten_thousand_prompts),
        cmocka_unit_test(test_broken_weights_end_texts_and_leave_no_trace),
        cmocka_unit_test(test_samples_of_a_prompt_share_its_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
