/* test_library_commands.c - what the commands do, through libtemper.so: many prompts, a talk, an
 * evaluation, configurations, tokenizers. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <temper/temper.h>

#define BASE TP_SOURCE_DIR "/tests/data/reference/llama"
#define ADAPTERS TP_SOURCE_DIR "/tests/data/reference/adapters/"

typedef struct {
    char folder[64], run[96];
} fixture;

static void write_file(const char *path, const char *text)
{
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    fputs(text, out);
    fclose(out);
}

/* A run of one step: a model of 26,912 parameters with a tokenizer. */
static int set_up(void **state)
{
    static const char model[] =
        "{\"architectures\": [\"LlamaForCausalLM\"], \"model_type\": \"llama\", \"vocab_size\": "
        "260, \"hidden_size\": 32, \"intermediate_size\": 64, \"num_hidden_layers\": 2, "
        "\"num_attention_heads\": 2, \"num_key_value_heads\": 1, \"head_dim\": 16, "
        "\"max_position_embeddings\": 64, \"rope_theta\": 10000.0, \"rms_norm_eps\": 1e-5, "
        "\"hidden_act\": \"silu\", \"tie_word_embeddings\": true}";
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    strcpy(f->folder, "/tmp/temper-commands-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    char path[96], run[128], config[128], cache[128];
    snprintf(path, sizeof path, "%s/model.json", f->folder);
    snprintf(f->run, sizeof f->run, "%s/run", f->folder);
    snprintf(run, sizeof run, "run.dir=%s/run", f->folder);
    snprintf(config, sizeof config, "policy.model_config=%s/model.json", f->folder);
    snprintf(cache, sizeof cache, "data.cache_dir=%s/cache", f->folder);
    write_file(path, model);
    const char *const settings[] = {run,
                                    config,
                                    cache,
                                    "policy.init=random",
                                    "policy.tokenizer.train_vocab_size=260",
                                    "policy.tokenizer.name=null",
                                    "policy.tokenizer.chat_template=null",
                                    "policy.train_global_batch_size=4",
                                    "policy.train_micro_batch_size=2",
                                    "policy.max_total_sequence_length=16",
                                    "data.train.dataset_name=arithmetic",
                                    "data.arithmetic.n_examples=8",
                                    "data.arithmetic.n_validation=2",
                                    "sft.max_num_steps=1",
                                    "sft.val_period=0",
                                    "sft.val_at_start=false",
                                    "checkpointing.metric_name=null",
                                    "engine.threads=1"};
    tp_error err;
    if (tp_training_run(NULL, settings, sizeof settings / sizeof *settings, NULL, NULL, &err) !=
        TP_OK)
        fail_msg("%s", err.message);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", f->folder);
    int status = system(command);
    free(f);
    return status;
}

static tp_text_generator *open_generator(const fixture *f, int64_t max_length)
{
    tp_text_generator *gen = NULL;
    tp_error err;
    const tp_text_generator_options options = {
        .size = sizeof options, .precision = "float32", .threads = 1, .max_length = max_length};
    if (tp_text_generator_open(f->run, &options, &gen, &err) != TP_OK)
        fail_msg("%s", err.message);
    return gen;
}

/* ---- many prompts ---- */

typedef struct {
    char texts[4][256];
    int n;
    int64_t most;
} answers;

static bool take(void *user, const tp_text_answer *a)
{
    answers *all = user;
    char *text = all->texts[2 * a->prompt + a->sample];
    assert_true(a->n_new <= a->n_text && a->n_text < 256);
    strncat(text, a->text + a->n_text - a->n_new, a->n_new);
    if (!a->finish)
        return true;
    assert_int_equal(2 * a->prompt + a->sample, all->n); /* in order */
    assert_int_equal(strlen(text), a->n_text);
    return ++all->n != all->most;
}

static tp_text_prompts *two_prompts(tp_text_generator *gen)
{
    tp_text_prompts *p = NULL;
    assert_int_equal(tp_text_prompts_new(gen, &p, NULL), TP_OK);
    assert_int_equal(tp_text_prompts_add(p, "first", "1+2=", 4, false, NULL), TP_OK);
    assert_int_equal(tp_text_prompts_add(p, "second", "30+4=", 5, false, NULL), TP_OK);
    return p;
}

typedef struct {
    int n;
    int32_t ids[16];
    float logp[16];
} pieces;

static bool keep_piece(void *user, const tp_text_piece *piece)
{
    pieces *all = user;
    all->ids[all->n] = piece->id;
    all->logp[all->n++] = piece->logp;
    return true;
}

static bool add_piece(void *user, const tp_text_piece *piece)
{
    strncat(user, piece->text, piece->n_text);
    return true;
}

static void test_answers_to_many_prompts_are_those_to_each_alone(void **state)
{
    tp_text_generator *gen = open_generator(*state, TP_TEXT_AS_NEEDED);
    tp_text_prompts *prompts = two_prompts(gen);
    answers all = {.n = 0};
    char alone[256] = "";
    tp_error err;
    tp_text_request request = {.size = sizeof request, .max_new_tokens = 8, .samples = 2};

    if (tp_text_generator_run(gen, prompts, &request, take, &all, NULL, &err) != TP_OK)
        fail_msg("%s", err.message);
    request.on_piece = add_piece;
    request.user = alone;
    assert_int_equal(tp_text_generator_continue(gen, "30+4=", 5, &request, NULL, &err), TP_OK);

    assert_int_equal(all.n, 4);
    assert_string_equal(all.texts[2], all.texts[3]); /* greedy */
    assert_string_equal(all.texts[2], alone);
    tp_text_prompts_free(prompts);
    tp_text_generator_free(gen);
}

/* LoRA and DoRA on one model: each says what it says alone, and so does the model. */
static void test_prompts_have_their_adapters(void **state)
{
    const tp_text_adapter adapters[] = {{"lora", ADAPTERS "llama-lora"},
                                        {"dora", ADAPTERS "llama-dora"}};
    const tp_text_generator_options options = {.size = sizeof options,
                                               .precision = "float32",
                                               .max_length = 64,
                                               .max_running = 4,
                                               .adapters = adapters,
                                               .n_adapters = 2};
    static const int32_t ids[] = {5, 9, 3};
    static const char *const folders[] = {ADAPTERS "llama-lora", ADAPTERS "llama-dora", BASE};
    static const char *const names[] = {"lora", "dora", NULL};
    tp_text_generator *all, *one;
    tp_error err;
    if (tp_text_generator_open(BASE, &options, &all, &err) != TP_OK)
        fail_msg("%s", err.message);
    for (int i = 0; i < 3; i++) {
        pieces together = {0}, alone = {0};
        tp_text_generator_options plain = options;
        plain.n_adapters = 0;
        tp_text_request request = {.size = sizeof request,
                                   .max_new_tokens = 8,
                                   .ignore_eos = true,
                                   .on_piece = keep_piece,
                                   .user = &together,
                                   .adapter = names[i]};
        assert_int_equal(tp_text_generator_continue_ids(all, ids, 3, &request, NULL, NULL), TP_OK);
        assert_int_equal(tp_text_generator_open(folders[i], &plain, &one, NULL), TP_OK);
        request.adapter = NULL;
        request.user = &alone;
        assert_int_equal(tp_text_generator_continue_ids(one, ids, 3, &request, NULL, NULL), TP_OK);
        assert_int_equal(alone.n, 8);
        assert_memory_equal(&together, &alone, sizeof alone);
        tp_text_generator_free(one);
    }
    tp_text_request request = {.size = sizeof request, .adapter = "ada"};
    assert_int_equal(tp_text_generator_continue_ids(all, ids, 3, &request, NULL, &err),
                     TP_ERR_CONFIG);
    assert_string_equal(err.message, "there is no adapter 'ada'; there are lora, dora");
    tp_text_generator_free(all);
}

static void test_nobody_who_takes_answers_ends_a_run(void **state)
{
    tp_text_generator *gen = open_generator(*state, TP_TEXT_AS_NEEDED);
    tp_text_prompts *prompts = two_prompts(gen);
    answers all = {.most = 1};
    tp_text_request request = {.size = sizeof request, .max_new_tokens = 4, .samples = 2};

    assert_int_equal(tp_text_generator_run(gen, prompts, &request, take, &all, NULL, NULL), TP_OK);
    assert_int_equal(all.n, 1);
    all = (answers){.n = 0};
    assert_int_equal(tp_text_generator_run(gen, prompts, &request, take, &all, NULL, NULL), TP_OK);
    assert_int_equal(all.n, 4); /* the generator is whole */
    tp_text_prompts_free(prompts);
    tp_text_generator_free(gen);
}

static void test_a_stop_string_is_no_part_of_the_answer(void **state)
{
    tp_text_generator *gen = open_generator(*state, 0);
    char whole[256] = "", cut[256] = "", stop[3] = "";
    const char *const stops[] = {stop};
    tp_text_result result = {.size = sizeof result};
    tp_text_request request = {.size = sizeof request,
                               .max_new_tokens = 12,
                               .ignore_eos = true,
                               .on_piece = add_piece,
                               .user = whole};
    assert_int_equal(tp_text_generator_continue(gen, "1+2=", 4, &request, &result, NULL), TP_OK);
    assert_string_equal(result.finish, "length");
    assert_true(strlen(whole) > 4);
    memcpy(stop, whole + 2, 2);

    request.stop_strings = stops;
    request.n_stop_strings = 1;
    request.user = cut;
    assert_int_equal(tp_text_generator_continue(gen, "1+2=", 4, &request, &result, NULL), TP_OK);

    assert_string_equal(result.finish, "stop");
    assert_true(result.hit_stop);
    assert_int_equal(strlen(cut), strstr(whole, stop) - whole);
    assert_memory_equal(cut, whole, strlen(cut));
    tp_text_generator_free(gen);
}

static void test_a_model_without_a_template_does_not_talk(void **state)
{
    tp_text_generator *gen = open_generator(*state, TP_TEXT_AS_NEEDED);
    tp_chat *chat = NULL;
    tp_error err;
    assert_int_equal(tp_chat_open(gen, NULL, NULL, &chat, &err), TP_ERR_CONFIG);
    assert_non_null(strstr(err.message, "has no chat template"));
    assert_null(chat);
    tp_text_generator_free(gen);
}

static void test_a_start_that_failed_can_be_tried_again(void **state)
{
    const fixture *f = *state;
    const tp_text_generator_options options = {.size = sizeof options,
                                               .precision = "float32",
                                               .threads = 1,
                                               .max_length = TP_TEXT_AS_NEEDED,
                                               .kv_bytes = 1};
    tp_text_generator *gen = NULL;
    tp_error err;
    assert_int_equal(tp_text_generator_open(f->run, &options, &gen, &err), TP_OK);
    for (int i = 0; i < 2; i++) /* not one block of keys and values fits into a byte */
        assert_int_equal(tp_text_generator_continue(gen, "1+2=", 4, NULL, NULL, &err),
                         TP_ERR_CONFIG);
    tp_text_generator_free(gen);
}

/* ---- evaluation ---- */

static void test_an_evaluation_gives_its_numbers_and_its_report(void **state)
{
    const fixture *f = *state;
    char model[128], out[96];
    snprintf(model, sizeof model, "generation.model_name=%s", f->run);
    snprintf(out, sizeof out, "%s/answers.json", f->folder);
    const char *const settings[] = {model,
                                    "data.dataset_name=arithmetic",
                                    "data.max_samples=5",
                                    "tokenizer.chat_template=null",
                                    "eval.num_tests_per_prompt=3",
                                    "generation.temperature=1",
                                    "generation.max_new_tokens=3"};
    const tp_evaluator_options options = {.size = sizeof options, .out = out};
    tp_evaluation_result r = {.size = sizeof r};
    tp_evaluator *e = NULL;
    tp_error err;
    if (tp_evaluator_open(NULL, settings, 7, &options, &e, &err) != TP_OK)
        fail_msg("%s", err.message);
    assert_int_equal(tp_evaluator_get_result(e, &r, NULL), TP_ERR_ARG); /* it has not run */
    if (tp_evaluator_run(e, &err) != TP_OK || tp_evaluator_get_result(e, &r, &err) != TP_OK ||
        tp_evaluator_write(e, &err) != TP_OK)
        fail_msg("%s", err.message);

    assert_int_equal(r.prompts, 5);
    assert_int_equal(r.answers, 15);
    assert_int_equal(r.judged + r.excluded, 15);
    assert_true(r.pass_lo <= r.pass_at_1 && r.pass_at_1 <= r.pass_hi && r.level == 0.95);
    assert_int_equal(tp_evaluator_run(e, NULL), TP_ERR_ARG); /* once */
    char *text = NULL;
    size_t n = 0;
    tp_evaluator_text(e, 2, false, &text, &n);
    assert_non_null(strstr(text, "pass@1"));
    assert_int_equal(strlen(text), n);
    tp_free(text);
    tp_evaluator_free(e);

    const tp_evaluation_file_options files = {.size = sizeof files};
    assert_int_equal(tp_evaluation_compare(out, out, &files, &text, &n, &err), TP_OK);
    assert_non_null(strstr(text, "paired by prompt over 5 prompts"));
    tp_free(text);
}

static void test_an_evaluation_that_cannot_be_is_an_error(void **state)
{
    const char *const settings[] = {"generation.model_name=/nowhere", "engine.isa=sse9",
                                    "data.dataset_name=arithmetic"};
    tp_evaluator *e = NULL;
    char *text = NULL;
    size_t n;
    tp_error err;
    (void)state;
    assert_int_equal(tp_evaluator_open(NULL, settings, 3, NULL, &e, &err), TP_ERR_CONFIG);
    assert_non_null(strstr(err.message, "engine.isa"));
    assert_non_null(strstr(err.message, "sse9"));
    assert_int_equal(tp_evaluation_summarize("/nowhere.json", NULL, &text, &n, &err), TP_ERR_IO);
    assert_null(e);
    assert_null(text);
}

/* ---- configurations, machines ---- */

static void test_a_configuration_says_what_is_missing_and_what_is_wrong(void **state)
{
    const char *const wrong[] = {"policy.trian_micro_batch_size=4", "policy.model_name=x"};
    tp_configuration *c = NULL;
    char *text;
    size_t n;
    tp_error err;
    (void)state;
    assert_int_equal(tp_configuration_open(NULL, NULL, 0, &c, &err), TP_OK);
    assert_int_equal(tp_configuration_check(c, &err), TP_OK);
    tp_configuration_text(c, true, &text, &n);
    assert_int_equal(text[0], '{');
    assert_int_equal(strlen(text), n);
    tp_free(text);
    tp_configuration_free(c);

    tp_status status = tp_configuration_open(NULL, wrong, 2, &c, &err);
    if (status == TP_OK) {
        status = tp_configuration_check(c, &err);
        tp_configuration_free(c);
    }
    assert_int_equal(status, TP_ERR_CONFIG);
    assert_non_null(strstr(err.message, "policy.train_micro_batch_size"));
}

static void test_a_diagnosis_finds_what_is_wrong_with_a_run(void **state)
{
    const fixture *f = *state;
    const tp_doctor_options options = {
        .size = sizeof options, .config = f->run, .use_cached = true, .seconds = 0.1, .threads = 1};
    tp_diagnosis *d = NULL;
    char path[160], command[512], *text;
    size_t n;
    tp_error err;
    if (tp_diagnosis_make(&options, &d, &err) != TP_OK)
        fail_msg("%s", err.message);
    assert_true(tp_diagnosis_count(d) > 0);
    assert_int_equal(tp_diagnosis_failures(d), 0);
    tp_diagnosis_free(d);

    snprintf(path, sizeof path, "%s/checkpoints/step-1/model/config.json", f->run);
    snprintf(command, sizeof command, "cp '%s' '%s.old' && echo >>'%s'", path, path, path);
    assert_int_equal(system(command), 0);
    assert_int_equal(tp_diagnosis_make(&options, &d, &err), TP_OK);
    assert_true(tp_diagnosis_failures(d) > 0);
    tp_diagnosis_text(d, false, &text, &n);
    assert_non_null(strstr(text, "FAILED: "));
    tp_free(text);
    tp_diagnosis_free(d);
    snprintf(command, sizeof command, "mv '%s.old' '%s'", path, path);
    assert_int_equal(system(command), 0);
}

/* ---- tokenizers ---- */

static void test_a_tokenizer_is_learned_and_not_replaced(void **state)
{
    const fixture *f = *state;
    char folder[96], file[96];
    snprintf(folder, sizeof folder, "%s/tokenizer", f->folder);
    snprintf(file, sizeof file, "%s/text", f->folder);
    write_file(file, "low lower lowest low lower lowest\n");
    const char *const files[] = {file};
    tp_tokenizer_learn_options options = {.size = sizeof options, .vocab_size = 262};
    tp_tokenizer *tok = NULL;
    tp_error err;

    if (tp_tokenizer_learn(folder, files, 1, &options, &err) != TP_OK ||
        tp_tokenizer_load(folder, &tok, &err) != TP_OK)
        fail_msg("%s", err.message);
    assert_int_equal(tp_tokenizer_vocab_size(tok), 262);
    assert_true(tp_tokenizer_id(tok, "low") >= 0);
    assert_non_null(tp_tokenizer_chat_template(tok));
    tp_tokenizer_free(tok);
    assert_int_equal(tp_tokenizer_learn(folder, files, 1, &options, &err), TP_ERR_CONFIG);
    options.replace = true;
    assert_int_equal(tp_tokenizer_learn(folder, files, 1, &options, &err), TP_OK);
    assert_int_equal(tp_tokenizer_learn(folder, files, 0, &options, &err), TP_ERR_ARG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers_to_many_prompts_are_those_to_each_alone),
        cmocka_unit_test(test_prompts_have_their_adapters),
        cmocka_unit_test(test_nobody_who_takes_answers_ends_a_run),
        cmocka_unit_test(test_a_stop_string_is_no_part_of_the_answer),
        cmocka_unit_test(test_a_model_without_a_template_does_not_talk),
        cmocka_unit_test(test_a_start_that_failed_can_be_tried_again),
        cmocka_unit_test(test_an_evaluation_gives_its_numbers_and_its_report),
        cmocka_unit_test(test_an_evaluation_that_cannot_be_is_an_error),
        cmocka_unit_test(test_a_configuration_says_what_is_missing_and_what_is_wrong),
        cmocka_unit_test(test_a_diagnosis_finds_what_is_wrong_with_a_run),
        cmocka_unit_test(test_a_tokenizer_is_learned_and_not_replaced),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
