#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/files.h"
#include "engine/reward/prompts_file.h"
#include "text/json/tree.h"
#include "unit/data/byte_tokenizer.h"
#include "unit/rl/environment_fixture.h"

static char folder[64];
static tp_arena arena;
static tp_error err;

static int enter(void **state)
{
    snprintf(folder, sizeof folder, "/tmp/temper-prompts-XXXXXX");
    return !mkdtemp(folder) || chdir(folder) != 0 || tp_arena_init(&arena, 16 << 20, &err) != TP_OK;
}

static int leave(void **state)
{
    tp_arena_release(&arena);
    return chdir("/") != 0 || tp_dir_remove(folder, NULL) != TP_OK;
}

static void put(const char *path, const char *text)
{
    assert_int_equal(tp_file_write_atomic(path, text, strlen(text), NULL), TP_OK);
}

static tp_prompts *open_prompts(const tp_prompts_options *o)
{
    tp_prompts *p;
    if (tp_prompts_open(o, &p, &err) != TP_OK)
        fail_msg("%s", err.message);
    return p;
}

static tp_prompt get(const tp_prompts *p, uint64_t i)
{
    tp_prompt prompt;
    tp_arena_rewind(&arena, 0);
    if (tp_prompts_get(p, i, &arena, &prompt, &err) != TP_OK)
        fail_msg("%s", err.message);
    return prompt;
}

static const char *content(const tp_prompt *p, size_t message)
{
    return tp_json_str(tp_json_get(tp_json_at(p->messages, message), "content"));
}

/* Rows of all known kinds. */
static void rows_are_recognised_by_their_keys(void **state)
{
    static const struct {
        const char *row, *text, *truth;
        size_t messages;
    } rows[] = {
        {"{\"question\":\"q\",\"answer\":\"#### 2\"}", "q\n", "#### 2", 1},
        {"{\"problem\":\"q\",\"solution\":\"s\"}", "q\n", "s", 1},
        {"{\"problem\":\"q\",\"solution\":\"s\",\"answer\":7}", "q\n", "7", 1},
        {"{\"prompt\":\"q\",\"ground_truth\":1.50}", "q", "1.50", 1},
        {"{\"prompt\":[{\"role\":\"system\",\"content\":\"s\"},{\"role\":\"user\",\"content\":"
         "\"q\"}],\"completion\":[{\"role\":\"assistant\",\"content\":\"a\"}]}",
         "sq", "a", 2},
        {"{\"messages\":[{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"assistant\","
         "\"content\":\"a\"}]}",
         "q", "a", 1},
        {"{\"messages\":[{\"role\":\"user\",\"content\":\"q\"}],\"label\":true}", "q", "true", 1},
        {"{\"input\":\"q\",\"output\":\"a\"}", "q", "a", 1},
        {"{\"instruction\":\"i\",\"input\":\"x\",\"output\":\"a\"}", "i\n\nx\n", "a", 1},
        {"{\"prompt\":\"q\"}", "q", NULL, 1},
    };
    for (size_t i = 0; i < TP_COUNTOF(rows); i++) {
        put("rows.jsonl", rows[i].row);
        tp_prompts *p = open_prompts(&(tp_prompts_options){.data_path = "rows.jsonl"});
        assert_int_equal(tp_prompts_count(p), 1);
        tp_prompt prompt = get(p, 0);
        assert_string_equal(prompt.text, rows[i].text);
        if (rows[i].truth)
            assert_string_equal(prompt.truth, rows[i].truth);
        else
            assert_null(prompt.truth);
        assert_int_equal(prompt.messages->n, rows[i].messages);
        assert_string_equal(prompt.id, "rows.jsonl:1");
        assert_non_null(prompt.row);
        tp_prompts_close(p);
    }
}

static void named_columns_templates_and_system_prompts(void **state)
{
    put("rows.jsonl",
        "{\"ask\":\"q\",\"key\":3,\"who\":\"be brief\"}\n\n{\"ask\":\"r\",\"key\":4}");
    put("prompt.txt", "Think: {}!");
    put("system.txt", "You count.");
    tp_prompts *p = open_prompts(&(tp_prompts_options){.data_path = "rows.jsonl",
                                                       .rows.input_key = "ask",
                                                       .rows.output_key = "key",
                                                       .rows.system_key = "who",
                                                       .rows.prompt_file = "prompt.txt",
                                                       .rows.system_prompt_file = "system.txt",
                                                       .rows.separator = "|"});
    tp_prompt prompt = get(p, 0);
    assert_string_equal(prompt.text, "be briefThink: q!|");
    assert_string_equal(content(&prompt, 0), "be brief");
    assert_string_equal(content(&prompt, 1), "Think: q!");
    assert_string_equal(prompt.truth, "3");
    prompt = get(p, 1);
    assert_string_equal(prompt.id, "rows.jsonl:3");
    assert_string_equal(content(&prompt, 0), "You count.");
    tp_prompts_close(p);
}

static void expect_refusal(const char *rows, const tp_prompts_options *o, const char *message)
{
    tp_prompts *p = NULL;
    put("rows.jsonl", rows);
    assert_int_not_equal(tp_prompts_open(o, &p, &err), TP_OK);
    assert_null(p);
    if (!strstr(err.message, message))
        fail_msg("'%s' does not say '%s'", err.message, message);
}

static void bad_rows_are_told_with_their_place(void **state)
{
    const tp_prompts_options plain = {.data_path = "rows.jsonl"};
    expect_refusal("{\"question\":\"a\"}\n{\"text\":\"b\"}", &plain,
                   "rows.jsonl:2:1: there is no question under");
    expect_refusal("{\"question\": 7}", &plain,
                   "rows.jsonl:1:14: \"question\", the question, is a "
                   "number");
    expect_refusal("{\"prompt\":[]}", &plain, "\"prompt\" is empty");
    expect_refusal("{\"prompt\":[{\"role\":\"user\"}]}", &plain, "prompt[0].content is missing");
    expect_refusal("{\"question\":\"a\\u0000b\"}", &plain,
                   "rows.jsonl:1:1: a text of this row has the character U+0000");
    expect_refusal("{\"question\":\"a\",\"answer\":\"1\\u00002\"}", &plain, "U+0000");
    expect_refusal("{\"question\":\"a\",\"tools\":\"x\"}", &plain,
                   "rows.jsonl:1:25: \"tools\" is a string without JSON");
    expect_refusal("{\"question\":\"a\",\"tools\":{}}", &plain, "\"tools\" is an object");
    expect_refusal("{\"question\":\"a\",\"answer\":\"b\",\"chat_template_kwargs\":{\"a\":1}}",
                   &plain, "variables of a single row are not supported");
    expect_refusal("{\"question\":\"a\",\"chat_template_kwargs\":\"{}\"}", &plain,
                   "remove it (those of all rows are policy.tokenizer.chat_template_kwargs of a ");
    expect_refusal("{\"prompt\":[{\"role\":\"user\",\"content\":[{\"type\":\"image\"}]}]}", &plain,
                   "prompt[0].content has a part that is not text");
    expect_refusal("[1]", &plain, "is a JSON array; one object per line is needed");
    expect_refusal("7", &plain, "rows.jsonl has no line that begins with '{'");
    expect_refusal("{\"question\":\"a\"}\n7", &plain,
                   "rows.jsonl:2:1: a row must be a JSON object, this is a number");
    expect_refusal("{\"question\":\"a\"", &plain, "rows.jsonl:1:");
    expect_refusal("\n\n", &plain, "rows.jsonl is empty; one JSON object per line is needed");
    expect_refusal("{\"question\":\"a\",\"k\":[]}",
                   &(tp_prompts_options){.data_path = "rows.jsonl", .rows.output_key = "k"},
                   "\"k\", the expected answer, is an array");
    expect_refusal("{}", &(tp_prompts_options){.dataset_name = "AIME2024"},
                   "\"AIME2024\" makes no questions; arithmetic and countdown do");
    expect_refusal("{}", &(tp_prompts_options){0}, "there are no questions; give a JSONL file");
    expect_refusal("{}", &(tp_prompts_options){.data_path = "none.jsonl"}, "none.jsonl");
}

/* As many as asked for, disjoint, and the same whenever they are asked for. */
static void a_file_is_divided_as_in_training(void **state)
{
    tp_buf rows = {0};
    for (int i = 0; i < 100; i++)
        tp_buf_addf(&rows, "{\"question\":\"%d\",\"answer\":\"%d\"}\n", i, i);
    put("rows.jsonl", tp_buf_str(&rows));
    tp_buf_release(&rows);
    tp_prompts_options o = {.data_path = "rows.jsonl", .split_validation_size = 0.2, .seed = 3};
    bool seen[100] = {false};
    for (int split = 0; split < 2; split++) {
        o.split = (tp_split)split;
        tp_prompts *p = open_prompts(&o);
        assert_int_equal(tp_prompts_count(p), split == TP_SPLIT_TRAIN ? 80 : 20);
        for (uint64_t i = 0; i < tp_prompts_count(p); i++) {
            int number = atoi(get(p, i).truth);
            assert_false(seen[number]);
            seen[number] = true;
        }
        tp_prompts_close(p);
    }
    o.max_samples = 7;
    tp_prompts *p = open_prompts(&o);
    assert_int_equal(tp_prompts_count(p), 7);
    tp_prompts_close(p);
}

/* A generator's questions, judged by the environment it belongs to: the expected answer
 * is worth 1, and the splits differ. */
static void made_questions_accept_their_answers(void **state)
{
    static const char *const names[] = {"arithmetic", "countdown"};
    static const char *const words[] = {
        "data.arithmetic={form: steps, operators: '+-*', digits: 2}",
        "data.countdown={form: plain, max_numbers: 5}"};
    for (int k = 0; k < 2; k++) {
        fixture f;
        const char *const overrides[] = {words[k], NULL};
        assert_int_equal(fixture_open(&f, names[k], overrides), TP_OK);
        tp_prompts *p = open_prompts(&(tp_prompts_options){
            .dataset_name = names[k],
            .seed = 9,
            .split = TP_SPLIT_VALIDATION,
            .max_samples = 50,
            .config = f.config,
            .generator = tp_json_get(tp_config_find(f.config, "data"), names[k])});
        assert_int_equal(tp_prompts_count(p), 50);
        for (uint64_t i = 0; i < 50; i++) {
            tp_prompt prompt = get(p, i);
            tp_completion c = {
                .prompt = &prompt, .text = prompt.truth, .n_text = strlen(prompt.truth)};
            tp_rewards r;
            assert_int_equal(tp_environment_score(f.env, &c, 1, NULL, &r, &f.err), TP_OK);
            if (r.v[0].reward != 1)
                fail_msg("%s: %s for %s", prompt.id, prompt.truth, prompt.text);
            tp_rewards_release(&r);
            c.text = "7";
            c.n_text = 1;
            if (strcmp(prompt.truth, "7") != 0 && strcmp(prompt.truth, "7>7") != 0) {
                assert_int_equal(tp_environment_score(f.env, &c, 1, NULL, &r, &f.err), TP_OK);
                assert_true(r.v[0].reward == 0);
                tp_rewards_release(&r);
            }
        }
        tp_buf text = {0};
        tp_prompts_describe(p, &text);
        assert_non_null(strstr(tp_buf_str(&text), names[k]));
        assert_non_null(strstr(tp_buf_str(&text), "50 prompts of validation"));
        tp_buf_release(&text);
        tp_prompts_close(p);
        fixture_close(&f);
    }
}

/* The questions are those of supervised training, letter by letter. */
static void sums_are_those_of_training(void **state)
{
    tp_arithmetic_options o = tp_arithmetic_defaults();
    tp_arithmetic q;
    o.seed = 4;
    tp_prompts *p = open_prompts(&(tp_prompts_options){.dataset_name = "arithmetic", .seed = 4});
    for (uint64_t i = 0; i < 20; i++) {
        tp_arithmetic_make(&o, TP_SPLIT_TRAIN, i, &q);
        tp_prompt prompt = get(p, i);
        assert_string_equal(prompt.text, q.prompt);
        assert_string_equal(prompt.truth, q.answer);
    }
    tp_prompts_close(p);
}

static void a_generator_checks_its_settings(void **state)
{
    fixture f;
    tp_prompts *p = NULL;
    const char *const words[] = {"data.countdown={max_numbres: 5}", NULL};
    assert_int_equal(fixture_config(&f, words), TP_OK);
    const tp_json *section = tp_json_get(tp_config_find(f.config, "data"), "countdown");
    tp_prompts_options o = {.dataset_name = "countdown", .config = f.config, .generator = section};
    assert_int_equal(tp_prompts_open(&o, &p, &err), TP_ERR_CONFIG);
    assert_non_null(strstr(err.message, "command line: unknown key data.countdown.max_numbres; did "
                                        "you mean data.countdown.max_numbers?"));
    fixture_close(&f);
}

static void tools_calls_and_parts_are_kept(void **state)
{
    put("rows.jsonl",
        "{\"prompt\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},"
        "{\"type\":\"text\",\"text\":\"b\"}]},"
        "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"name\":\"f\"}]},"
        "{\"role\":\"tool\",\"content\":\"c\"}],"
        "\"completion\":[{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"7\"}]}]"
        ","
        "\"tools\":\"[{\\\"name\\\": \\\"f\\\"}]\",\"others\":[{},{}]}");
    tp_prompts *p = open_prompts(&(tp_prompts_options){.data_path = "rows.jsonl"});
    tp_prompt prompt = get(p, 0);
    assert_string_equal(prompt.text, "abc");
    assert_string_equal(prompt.truth, "7");
    assert_int_equal(tp_json_get(tp_json_at(prompt.messages, 0), "content")->n, 2);
    assert_int_equal(prompt.tools->n, 1);
    tp_prompts_close(p);
    p = open_prompts(&(tp_prompts_options){.data_path = "rows.jsonl", .rows.tool_key = "others"});
    assert_int_equal(get(p, 0).tools->n, 2);
    tp_prompts_close(p);
}

static void prompts_become_ids(void **state)
{
    tp_tokenizer *tok = NULL;
    tp_prompt_encoder *e;
    tp_ids ids = {0};
    tp_buf text = {0};
    assert_int_equal(byte_tokenizer_make(NULL, &tok), 0);
    put("rows.jsonl", "{\"question\":\"hi\"}");
    tp_prompts *p = open_prompts(&(tp_prompts_options){.data_path = "rows.jsonl"});
    tp_prompt prompt = get(p, 0);

    assert_int_equal(tp_prompt_encoder_new(tok, "", NULL, true, &e, &err), TP_OK);
    assert_int_equal(tp_prompt_encode(e, &prompt, &ids, &text, &err), TP_OK);
    assert_string_equal(tp_buf_str(&text), "hi\n");
    tp_prompt_encoder_free(e);

    const char *source = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
                         "{% if add_generation_prompt %}<assistant>{% endif %}";
    tp_buf_clear(&text);
    assert_int_equal(tp_prompt_encoder_new(tok, source, NULL, true, &e, &err), TP_OK);
    assert_int_equal(tp_prompt_encode(e, &prompt, &ids, &text, &err), TP_OK);
    assert_string_equal(tp_buf_str(&text), "<user>hi<assistant>");
    tp_prompt_encoder_free(e);

    tp_json null_name = {.type = TP_JSON_NULL, .key = tp_slice_of("name")};
    tp_json *message = tp_tree_message(&arena, "user", tp_slice_of("hi"));
    tp_tree_append(message, &null_name);
    tp_json named = {.type = TP_JSON_ARRAY, .child = message, .n = 1};
    tp_buf_clear(&text);
    assert_int_equal(
        tp_prompt_encoder_new(tok, "{{ 'name' in messages[0] }}", NULL, true, &e, &err), TP_OK);
    assert_int_equal(
        tp_prompt_encode(e, &(tp_prompt){.id = "x", .messages = &named}, &ids, &text, &err), TP_OK);
    assert_string_equal(tp_buf_str(&text), "False");
    tp_prompt_encoder_free(e);

    tp_json yes = {.type = TP_JSON_TRUE, .key = tp_slice_of("aloud")};
    tp_json variables = {.type = TP_JSON_OBJECT, .child = &yes, .n = 1};
    tp_buf_clear(&text);
    assert_int_equal(
        tp_prompt_encoder_new(tok, "{{ 'HI' if aloud else 'hi' }}", &variables, true, &e, &err),
        TP_OK);
    assert_int_equal(tp_prompt_encode(e, &prompt, &ids, &text, &err), TP_OK);
    assert_string_equal(tp_buf_str(&text), "HI");
    tp_prompt_encoder_free(e);

    assert_int_equal(
        tp_prompt_encoder_new(tok, "{{ raise_exception('no') }}", NULL, true, &e, &err), TP_OK);
    assert_int_not_equal(tp_prompt_encode(e, &prompt, &ids, &text, &err), TP_OK);
    assert_non_null(strstr(err.message, "rows.jsonl:1: "));
    tp_prompt_encoder_free(e);
    tp_prompts_close(p);
    tp_ids_release(&ids);
    tp_buf_release(&text);
    tp_tokenizer_free(tok);
}

/* The real test set: the reference solution is worth 1, another number 0, and the bare
 * number in a box 1 again. */
static void gsm8k_accepts_its_own_solutions(void **state)
{
    const char *path = TP_SOURCE_DIR "/../shared/data/gsm8k_test.jsonl";
    fixture f, g;
    if (!tp_file_exists(path)) {
        print_message("skipped: there is no %s\n", path);
        skip();
    }
    const char *const none[] = {NULL};
    tp_prompts *p = open_prompts(&(tp_prompts_options){.data_path = path});
    assert_int_equal(tp_prompts_count(p), 1319);
    assert_int_equal(fixture_open(&f, "gsm8k", none), TP_OK);
    assert_int_equal(fixture_open(&g, "math", none), TP_OK);
    for (uint64_t i = 0; i < tp_prompts_count(p); i++) {
        tp_prompt prompt = get(p, i);
        char wrong[64], boxed[64];
        const char *answer = strstr(prompt.truth, "#### ") + 5;
        snprintf(wrong, sizeof wrong, "#### 1%s", answer);
        snprintf(boxed, sizeof boxed, "so \\boxed{%s}", answer);
        const struct {
            fixture *env;
            const char *text;
            double reward;
        } samples[] = {
            {&f, prompt.truth, 1}, {&f, wrong, 0}, {&g, boxed, 1}, {&g, prompt.truth, 1}};
        for (size_t k = 0; k < TP_COUNTOF(samples); k++) {
            tp_completion c = {
                .prompt = &prompt, .text = samples[k].text, .n_text = strlen(samples[k].text)};
            tp_rewards r;
            assert_int_equal(tp_environment_score(samples[k].env->env, &c, 1, NULL, &r, &err),
                             TP_OK);
            if (r.v[0].status != TP_REWARD_OK || r.v[0].reward != samples[k].reward)
                fail_msg("%s: '%s' is worth %g", prompt.id, samples[k].text, r.v[0].reward);
            tp_rewards_release(&r);
        }
    }
    tp_prompts_close(p);
    fixture_close(&f);
    fixture_close(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_recognised_by_their_keys),
        cmocka_unit_test(named_columns_templates_and_system_prompts),
        cmocka_unit_test(bad_rows_are_told_with_their_place),
        cmocka_unit_test(a_file_is_divided_as_in_training),
        cmocka_unit_test(made_questions_accept_their_answers),
        cmocka_unit_test(sums_are_those_of_training),
        cmocka_unit_test(a_generator_checks_its_settings),
        cmocka_unit_test(tools_calls_and_parts_are_kept),
        cmocka_unit_test(prompts_become_ids),
        cmocka_unit_test(gsm8k_accepts_its_own_solutions),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
