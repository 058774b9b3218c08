/* test_library.c - tokenizers, chat, models and generation through libtemper.so. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <temper/temper.h>

#define REFERENCE TP_SOURCE_DIR "/tests/data/reference/"
#define CHATML                                                                    \
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + " \
    "message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}"                    \
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"

static char *read_file(const char *path, size_t *ret_n)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    long n = ftell(f);
    assert_true(n > 0);
    rewind(f);
    char *text = malloc((size_t)n);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, (size_t)n, f), n);
    fclose(f);
    *ret_n = (size_t)n;
    return text;
}

static tp_tokenizer *open_tokenizer(const char *name)
{
    char path[1024];
    size_t n;
    tp_tokenizer *tok = NULL;
    tp_error err;
    snprintf(path, sizeof path, "%s/tests/data/tokenizers/%s.json", TP_SOURCE_DIR, name);
    char *text = read_file(path, &n);
    if (tp_tokenizer_parse(path, text, n, &tok, &err) != TP_OK)
        fail_msg("%s", err.message);
    free(text);
    return tok;
}

static tp_text_generator *open_generator(const char *family, int64_t max_length)
{
    char path[1024];
    tp_text_generator *gen = NULL;
    tp_error err;
    tp_text_generator_options options = {
        .size = sizeof options, .precision = "float32", .threads = 2, .max_length = max_length};
    snprintf(path, sizeof path, REFERENCE "%s", family);
    if (tp_text_generator_open(path, &options, &gen, &err) != TP_OK)
        fail_msg("%s", err.message);
    return gen;
}

static void test_the_header_is_of_the_librarys_version(void **state)
{
    assert_string_equal(tp_version(), TP_VERSION_STRING);
    assert_string_equal(tp_status_name(TP_ERR_FORMAT), "format");
}

/* ---- tokenizer ---- */

static void check_ids(const tp_tokenizer *tok, const char *text, unsigned flags,
                      const int32_t *want, size_t n_want)
{
    int32_t *ids;
    size_t n;
    tp_error err;
    assert_int_equal(tp_tokenizer_to_ids(tok, NULL, text, strlen(text), flags, &ids, &n, &err), 0);
    assert_int_equal(n, n_want);
    assert_memory_equal(ids, want, n_want * sizeof *want);
    tp_free(ids);
}

static void test_a_text_becomes_ids_and_comes_back(void **state)
{
    static const int32_t hello[] = {39, 776, 78, 11, 483, 355, 0};
    tp_tokenizer *tok = open_tokenizer("qwen2");
    char *text;
    size_t n;
    tp_error err;

    check_ids(tok, "Hello, world!", 0, hello, 7);
    assert_int_equal(tp_tokenizer_to_text(tok, hello, 7, false, &text, &n, &err), TP_OK);

    assert_int_equal(n, 13);
    assert_string_equal(text, "Hello, world!");
    tp_free(text);
    tp_tokenizer_free(tok);
}

static void test_flags_say_what_special_tokens_are(void **state)
{
    static const int32_t parsed[] = {64, 1202, 65};
    static const int32_t spelled[] = {27, 91, 326, 62, 395, 91, 29};
    static const int32_t with_bos[] = {1105, 39, 789, 78, 11, 487, 356, 0};
    tp_tokenizer *qwen2 = open_tokenizer("qwen2"), *llama3 = open_tokenizer("llama3");

    check_ids(qwen2, "a<|im_end|>b", TP_ENCODE_PARSE_SPECIAL, parsed, 3);
    check_ids(qwen2, "<|im_end|>", 0, spelled, 7);
    check_ids(llama3, "Hello, world!", TP_ENCODE_ADD_SPECIAL, with_bos, 8);

    tp_tokenizer_free(qwen2);
    tp_tokenizer_free(llama3);
}

static void test_no_text_is_no_ids_but_memory_to_free(void **state)
{
    tp_tokenizer *tok = open_tokenizer("qwen2");
    int32_t *ids = NULL;
    char *text = NULL;
    size_t n = 9, n_text = 9;

    assert_int_equal(tp_tokenizer_to_ids(tok, NULL, NULL, 0, 0, &ids, &n, NULL), TP_OK);
    assert_int_equal(tp_tokenizer_to_text(tok, NULL, 0, false, &text, &n_text, NULL), TP_OK);

    assert_int_equal(n, 0);
    assert_non_null(ids);
    assert_int_equal(n_text, 0);
    assert_string_equal(text, "");
    tp_free(ids);
    tp_free(text);
    tp_tokenizer_free(tok);
}

static void test_wrong_arguments_are_errors(void **state)
{
    tp_tokenizer *tok = open_tokenizer("qwen2");
    int32_t *ids = NULL;
    size_t n = 9;
    tp_error err;

    assert_int_equal(tp_tokenizer_to_ids(NULL, NULL, "a", 1, 0, &ids, &n, &err), TP_ERR_ARG);
    assert_int_equal(tp_tokenizer_to_ids(tok, NULL, "a", 1, 8, &ids, &n, &err), TP_ERR_ARG);
    assert_string_equal(err.message, "tp_tokenizer_to_ids: unknown flags 0x8");
    assert_int_equal(tp_tokenizer_to_ids(tok, NULL, "a", (size_t)1 << 31, 0, &ids, &n, &err),
                     TP_ERR_ARG);

    assert_null(ids);
    assert_int_equal(n, 9);
    tp_tokenizer_free(tok);
}

/* ---- chat ---- */

static void check_chat(const char *json, bool prompt, const char *want)
{
    tp_tokenizer *tok = open_tokenizer("qwen2");
    tp_chat_options options = {
        .size = sizeof options, .chat_template = CHATML, .add_generation_prompt = prompt};
    char *text;
    size_t n;
    tp_error err;
    if (tp_chat_render(tok, json, strlen(json), &options, &text, &n, &err) != TP_OK)
        fail_msg("%s", err.message);
    assert_string_equal(text, want);
    assert_int_equal(n, strlen(want));
    tp_free(text);
    tp_tokenizer_free(tok);
}

static void test_a_conversation_is_rendered(void **state)
{
    check_chat("[{\"role\": \"user\", \"content\": \"2+2?\"}]", true,
               "<|im_start|>user\n2+2?<|im_end|>\n<|im_start|>assistant\n");
    check_chat("{\"messages\": [{\"role\": \"user\", \"content\": \"h\\u00e9\"}]}", false,
               "<|im_start|>user\nhé<|im_end|>\n");
}

static tp_status render(const char *json, const char *source, tp_error *err)
{
    tp_tokenizer *tok = open_tokenizer("qwen2");
    tp_chat_options options = {.size = sizeof options, .chat_template = source};
    char *text = NULL;
    size_t n;
    tp_status status = tp_chat_render(tok, json, strlen(json), &options, &text, &n, err);
    tp_free(text);
    tp_tokenizer_free(tok);
    return status;
}

static void test_the_variables_are_those_of_transformers(void **state)
{
    tp_tokenizer *tok = open_tokenizer("qwen2");
    static const char json[] = "{\"messages\": [{}], \"name\": \"x\"}";
    tp_chat_options options = {.size = sizeof options,
                               .chat_template =
                                   "{{ name }} {{ tools is none }} {{ documents is none }} "
                                   "{{ add_generation_prompt }} {{ other is defined }}"};
    char *text;
    size_t n;

    assert_int_equal(tp_chat_render(tok, json, sizeof json - 1, &options, &text, &n, NULL), TP_OK);

    assert_string_equal(text, "x True True False False");
    tp_free(text);
    tp_tokenizer_free(tok);
}

static void test_bad_conversations_and_templates_are_errors(void **state)
{
    tp_error err;

    assert_int_equal(render("[", CHATML, &err), TP_ERR_FORMAT);
    assert_int_equal(render("{\"message\": []}", CHATML, &err), TP_ERR_FORMAT);
    assert_non_null(strstr(err.message, "conversation:1: expected a list of messages"));
    assert_int_equal(render("[]", CHATML, &err), TP_ERR_FORMAT);
    assert_string_equal(err.message, "conversation:1: no messages");
    assert_int_equal(render("[{}]", NULL, &err), TP_ERR_CONFIG);
    assert_int_equal(render("[{}]", "{{ raise_exception('no system') }}", &err), TP_ERR_FORMAT);
    assert_non_null(strstr(err.message, "no system"));
}

/* ---- model ---- */

static void test_a_folder_says_what_its_model_is(void **state)
{
    tp_model *model;
    assert_int_equal(tp_model_open(REFERENCE "llama", &model, NULL), TP_OK);

    const tp_model_info *info = tp_model_get_info(model);

    assert_string_equal(info->family, "llama");
    assert_int_equal(info->hidden, 40);
    assert_int_equal(info->layers, 2);
    assert_int_equal(info->kv_heads, 2);
    assert_int_equal(info->vocab, 131);
    assert_int_equal(info->max_positions, 256);
    assert_false(info->tied);
    assert_int_equal(info->bos, 128);
    assert_int_equal(info->n_eos, 2);
    assert_int_equal(info->eos[1], 130);
    assert_int_equal(tp_model_param_count(model), 38520);
    tp_model_free(model);
}

static void test_a_missing_folder_is_named(void **state)
{
    tp_model *model = NULL;
    tp_tokenizer *tok = NULL;
    tp_text_generator *gen = NULL;
    tp_error err;

    assert_int_equal(tp_model_open("/nowhere/at/all", &model, &err), TP_ERR_IO);
    assert_non_null(strstr(err.message, "/nowhere/at/all"));
    assert_int_equal(tp_tokenizer_load("/nowhere/at/all", &tok, &err), TP_ERR_IO);
    assert_int_equal(tp_text_generator_open("/nowhere/at/all", NULL, &gen, &err), TP_ERR_CONFIG);
    assert_non_null(strstr(err.message, "there is no model '/nowhere/at/all'"));
    assert_null(model);
    assert_null(tok);
    assert_null(gen);
}

/* ---- generation ---- */

typedef struct {
    int32_t ids[64];
    size_t n, stop_after;
} collected;

static bool collect(void *user, const tp_text_piece *piece)
{
    collected *c = user;
    assert_true(piece->logp <= 0);
    assert_int_equal(piece->n_text, 0); /* the folder has no tokenizer */
    c->ids[c->n++] = piece->id;
    return c->n != c->stop_after;
}

static const int32_t smollm2_prompt[] = {36, 35, 95, 2, 68};
/* What transformers generates from it, greedily. */
static const int32_t smollm2_greedy[] = {92, 34, 34, 92, 7, 103, 14, 77, 89, 17, 66, 80,
                                         89, 50, 63, 38, 8, 106, 56, 81, 12, 38, 8,  108};

static void test_greedy_ids_are_those_of_transformers(void **state)
{
    tp_text_generator *gen = open_generator("smollm2", 0);
    collected got = {.n = 0};
    tp_text_result result = {.size = sizeof result};
    tp_error err;
    tp_text_request request = {
        .size = sizeof request, .max_new_tokens = 24, .on_piece = collect, .user = &got};

    if (tp_text_generator_continue_ids(gen, smollm2_prompt, 5, &request, &result, &err) != TP_OK)
        fail_msg("%s", err.message);

    assert_int_equal(got.n, 24);
    assert_memory_equal(got.ids, smollm2_greedy, sizeof smollm2_greedy);
    assert_int_equal(result.prompt_tokens, 5);
    assert_int_equal(result.new_tokens, 24);
    assert_false(result.hit_stop);
    tp_text_generator_free(gen);
}

static void copy_into(const char *folder, const char *name)
{
    char from[1024], to[1024];
    size_t n;
    snprintf(from, sizeof from, REFERENCE "smollm2/%s", name);
    snprintf(to, sizeof to, "%s/%s", folder, name);
    char *text = read_file(from, &n);
    FILE *f = fopen(to, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, n, f), n);
    fclose(f);
    free(text);
}

static tp_status open_with(const char *generation_config, tp_text_generator **ret, tp_error *err)
{
    char folder[] = "/tmp/temper-test-XXXXXX", path[1024];
    tp_text_generator_options options = {
        .size = sizeof options, .precision = "float32", .threads = 1};
    assert_non_null(mkdtemp(folder));
    copy_into(folder, "config.json");
    copy_into(folder, "model.safetensors");
    snprintf(path, sizeof path, "%s/generation_config.json", folder);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(generation_config, f);
    fclose(f);
    tp_status status = tp_text_generator_open(folder, &options, ret, err);
    unlink(path);
    snprintf(path, sizeof path, "%s/config.json", folder);
    unlink(path);
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    unlink(path);
    rmdir(folder);
    return status;
}

/* What the command obeys the library obeys, unless told otherwise. */
static void test_the_folders_generation_config_counts(void **state)
{
    tp_text_generator *gen = NULL;
    tp_error err;
    collected own = {.n = 0}, plain = {.n = 0};
    tp_text_result result = {.size = sizeof result};
    tp_text_request request = {.size = sizeof request, .on_piece = collect, .user = &own};
    assert_int_equal(
        open_with("{\"max_new_tokens\": 4, \"suppress_tokens\": [92, 34]}", &gen, &err), TP_OK);

    assert_int_equal(
        tp_text_generator_continue_ids(gen, smollm2_prompt, 5, &request, &result, &err), TP_OK);
    assert_int_equal(own.n, 4);
    for (int i = 0; i < 4; i++)
        assert_true(own.ids[i] != 92 && own.ids[i] != 34);
    assert_int_equal(tp_text_generator_continue_ids(gen, smollm2_prompt, 5, NULL, &result, &err),
                     TP_OK);
    assert_int_equal(result.new_tokens, 4);

    request.ignore_generation_config = true;
    request.max_new_tokens = 24;
    request.user = &plain;
    assert_int_equal(
        tp_text_generator_continue_ids(gen, smollm2_prompt, 5, &request, &result, &err), TP_OK);
    assert_memory_equal(plain.ids, smollm2_greedy, sizeof smollm2_greedy);
    tp_text_generator_free(gen);

    /* The likeliest id alone, whatever the seed. */
    own = (collected){.n = 0};
    request = (tp_text_request){.size = sizeof request,
                                .max_new_tokens = 24,
                                .temperature = NAN,
                                .seed = 3,
                                .on_piece = collect,
                                .user = &own};
    assert_int_equal(open_with("{\"do_sample\": true, \"top_p\": 0}", &gen, &err), TP_OK);
    assert_int_equal(
        tp_text_generator_continue_ids(gen, smollm2_prompt, 5, &request, &result, &err), TP_OK);
    assert_memory_equal(own.ids, smollm2_greedy, sizeof smollm2_greedy);
    tp_text_generator_free(gen);

    /* A length that the prompt has reached leaves nothing to say. */
    request = (tp_text_request){.size = sizeof request, .temperature = NAN};
    assert_int_equal(open_with("{\"max_length\": 5}", &gen, &err), TP_OK);
    assert_int_equal(
        tp_text_generator_continue_ids(gen, smollm2_prompt, 5, &request, &result, &err),
        TP_ERR_CONFIG);
    assert_non_null(strstr(err.message, "the prompt has 5 tokens, \"max_length\" of '"));
    request.max_new_tokens = 1;
    assert_int_equal(
        tp_text_generator_continue_ids(gen, smollm2_prompt, 5, &request, &result, &err), TP_OK);
    tp_text_generator_free(gen);

    /* What is not done is refused to those who do not ignore it. */
    assert_int_equal(open_with("{\"num_beams\": 4}", &gen, &err), TP_OK);
    assert_int_equal(
        tp_text_generator_continue_ids(gen, smollm2_prompt, 5, &request, &result, &err),
        TP_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "num_beams"));
    request.ignore_generation_config = true;
    assert_int_equal(
        tp_text_generator_continue_ids(gen, smollm2_prompt, 5, &request, &result, &err), TP_OK);
    tp_text_generator_free(gen);
}

static void test_an_answer_stops_when_told(void **state)
{
    static const int32_t stop[] = {500, 7};
    tp_text_generator *gen = open_generator("smollm2", 0);
    collected all = {.n = 0}, few = {.n = 0, .stop_after = 2};
    tp_text_result result = {.size = sizeof result};
    tp_text_request request = {.size = sizeof request,
                               .max_new_tokens = 24,
                               .stop_ids = stop,
                               .n_stop_ids = 2,
                               .on_piece = collect,
                               .user = &all};

    assert_int_equal(
        tp_text_generator_continue_ids(gen, smollm2_prompt, 5, &request, &result, NULL), TP_OK);
    assert_int_equal(all.n, 4); /* 92 34 34 92, then 7 */
    assert_true(result.hit_stop);
    request.user = &few;
    assert_int_equal(
        tp_text_generator_continue_ids(gen, smollm2_prompt, 5, &request, &result, NULL), TP_OK);
    assert_int_equal(few.n, 2);
    assert_int_equal(result.new_tokens, 2);
    assert_false(result.hit_stop);
    tp_text_generator_free(gen);
}

static void test_what_cannot_be_generated_is_an_error(void **state)
{
    static const int32_t outside[] = {113};
    tp_text_generator *gen = open_generator("smollm2", 5);
    tp_text_request request = {.size = sizeof request, .top_p = 1.5};
    tp_error err;

    assert_int_equal(tp_text_generator_continue(gen, "x", 1, NULL, NULL, &err), TP_ERR_CONFIG);
    assert_non_null(strstr(err.message, "has no tokenizer.json"));
    assert_int_equal(tp_text_generator_continue_ids(gen, smollm2_prompt, 5, NULL, NULL, &err),
                     TP_ERR_CONFIG);
    assert_int_equal(tp_text_generator_continue_ids(gen, outside, 1, NULL, NULL, &err),
                     TP_ERR_FORMAT);
    assert_int_equal(tp_text_generator_continue_ids(gen, smollm2_prompt, 1, &request, NULL, &err),
                     TP_ERR_ARG);
    assert_string_equal(err.message, "tp_text_request: top_p is not between 0 and 1");
    tp_text_generator_free(gen);
}

/* ---- structs that grow ---- */

static void test_a_struct_without_a_size_is_refused(void **state)
{
    tp_text_generator *gen = NULL;
    tp_text_generator_options options = {.threads = 1};
    tp_error err;

    assert_int_equal(tp_text_generator_open(REFERENCE "llama", &options, &gen, &err), TP_ERR_ARG);

    assert_string_equal(err.message, "tp_text_generator_options: size is 0; set it to "
                                     "sizeof(tp_text_generator_options)");
}

static void test_an_older_callers_struct_is_completed(void **state)
{
    tp_text_generator *gen = open_generator("smollm2", 0);
    /* As if only these two members existed; what lies behind is not the library's. */
    tp_text_request request = {.max_new_tokens = 3, .top_p = 77};
    tp_text_result result = {.new_tokens = 99};
    request.size = offsetof(tp_text_request, temperature);
    result.size = offsetof(tp_text_result, new_tokens);

    assert_int_equal(
        tp_text_generator_continue_ids(gen, smollm2_prompt, 5, &request, &result, NULL), TP_OK);

    assert_int_equal(result.prompt_tokens, 5);
    assert_int_equal(result.new_tokens, 99);
    tp_text_generator_free(gen);
}

static void test_a_newer_callers_struct_is_taken_unless_it_asks_for_more(void **state)
{
    struct {
        tp_text_generator_options options;
        int64_t invented;
    } newer = {.options = {.size = sizeof newer, .threads = 1, .max_length = 8}};
    tp_text_generator *gen = NULL;
    tp_error err;

    assert_int_equal(tp_text_generator_open(REFERENCE "llama", &newer.options, &gen, &err), TP_OK);
    tp_text_generator_free(gen);
    newer.invented = 1;
    assert_int_equal(tp_text_generator_open(REFERENCE "llama", &newer.options, &gen, &err),
                     TP_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "tp_text_generator_options: a member that this version"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_header_is_of_the_librarys_version),
        cmocka_unit_test(test_a_text_becomes_ids_and_comes_back),
        cmocka_unit_test(test_flags_say_what_special_tokens_are),
        cmocka_unit_test(test_no_text_is_no_ids_but_memory_to_free),
        cmocka_unit_test(test_wrong_arguments_are_errors),
        cmocka_unit_test(test_a_conversation_is_rendered),
        cmocka_unit_test(test_the_variables_are_those_of_transformers),
        cmocka_unit_test(test_bad_conversations_and_templates_are_errors),
        cmocka_unit_test(test_a_folder_says_what_its_model_is),
        cmocka_unit_test(test_a_missing_folder_is_named),
        cmocka_unit_test(test_greedy_ids_are_those_of_transformers),
        cmocka_unit_test(test_the_folders_generation_config_counts),
        cmocka_unit_test(test_an_answer_stops_when_told),
        cmocka_unit_test(test_what_cannot_be_generated_is_an_error),
        cmocka_unit_test(test_a_struct_without_a_size_is_refused),
        cmocka_unit_test(test_an_older_callers_struct_is_completed),
        cmocka_unit_test(test_a_newer_callers_struct_is_taken_unless_it_asks_for_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
