/* test_preference.c - pairs of answers, in every shape that preference data comes in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/data/preference.h"

static const char tokenizer_text[] =
    "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"c\":2,\"d\":3,\"\\u0120\":4,\"x\":5,"
    "\"y\":6},\"merges\":[]},"
    "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":true},"
    "\"decoder\":{\"type\":\"ByteLevel\"}}";
static const char chat[] =
    "{% for m in messages %}{% if m.role == 'user' %}x{{ m.content }}{% else %}y{{ m.content }}"
    "{% endif %}{% endfor %}{% if add_generation_prompt %}y{% endif %}";

static tp_tokenizer *tokenizer;
static tp_renderer *plain, *chatting;

static int enter(void **state)
{
    tp_error err = {0};
    tp_render_options options = {
        .chat_template = "", .only_unmask_final = true, .max_seq_length = 8};
    if (tp_tokenizer_parse("test", tokenizer_text, sizeof tokenizer_text - 1, &tokenizer, &err) !=
            TP_OK ||
        tp_renderer_new(tokenizer, &options, &plain, &err) != TP_OK)
        fail_msg("%s", err.message);
    options.chat_template = chat;
    if (tp_renderer_new(tokenizer, &options, &chatting, &err) != TP_OK)
        fail_msg("%s", err.message);
    return 0;
}

static int leave(void **state)
{
    tp_renderer_free(plain);
    tp_renderer_free(chatting);
    tp_tokenizer_free(tokenizer);
    return 0;
}

static const char *prompt_key; /* of the options */

static tp_status read_text(const char *text, const tp_renderer *renderer, int64_t skip,
                           tp_preferences *ret, tp_error *err)
{
    char path[] = "/tmp/temper-preference-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
    tp_preference_options o = {
        .path = path, .renderer = renderer, .skip_bad = skip, .prompt_key = prompt_key};
    tp_status status = tp_preferences_read(&o, ret, err);
    unlink(path);
    return status;
}

/* "abc|d": ids as letters, a bar before each answer token that begins the answer. */
static void spell(const tp_preference_answer *a, char *out)
{
    static const char letters[] = "abcd_xy";
    bool inside = false;
    for (int32_t k = 0; k < a->n; k++) {
        if (a->mask[k] && !inside)
            *out++ = '|';
        inside = a->mask[k];
        *out++ = letters[a->ids[k]];
    }
    *out = 0;
}

static void check(const char *row, const tp_renderer *renderer, const char *chosen,
                  const char *rejected, const char *kind)
{
    tp_preferences p;
    tp_error err = {0};
    char text[64];
    if (read_text(row, renderer, 0, &p, &err) != TP_OK)
        fail_msg("%s: %s", row, err.message);
    assert_int_equal(p.n, 1);
    spell(&p.pairs[0].chosen, text);
    assert_string_equal(text, chosen);
    spell(&p.pairs[0].rejected, text);
    assert_string_equal(text, rejected);
    assert_string_equal(p.kind, kind);
    tp_preferences_release(&p);
}

static void every_shape_is_read(void **state)
{
    check("{\"prompt\":\"ab\",\"chosen\":\"c\",\"rejected\":\"da\"}", plain, "ab|c", "ab|da",
          "prompt, chosen, rejected");
    check("{\"chosen\":\"ab cd\",\"rejected\":\"ab ca\"}", plain, "ab_c|d", "ab_c|a",
          "chosen, rejected");
    check("{\"chosen\":\"ab cd\",\"rejected\":\"ab da\"}", plain, "ab|_cd", "ab|_da",
          "chosen, rejected");
    check("{\"prompt\":\"a\",\"chosen\":\"c\",\"rejected\":\"d\"}", chatting, "xay|c", "xay|d",
          "prompt, chosen, rejected");
    check("{\"prompt\":[{\"role\":\"user\",\"content\":\"a\"}],"
          "\"chosen\":[{\"role\":\"assistant\",\"content\":\"c\"}],"
          "\"rejected\":[{\"role\":\"assistant\",\"content\":\"d\"}]}",
          chatting, "xay|c", "xay|d", "prompt, chosen, rejected");
    check("{\"chosen\":[{\"role\":\"user\",\"content\":\"a\"},"
          "{\"role\":\"assistant\",\"content\":\"c\"}],"
          "\"rejected\":[{\"role\":\"user\",\"content\":\"a\"},"
          "{\"role\":\"assistant\",\"content\":\"d\"}]}",
          chatting, "xay|c", "xay|d", "chosen, rejected");
    check("{\"context\":[{\"role\":\"user\",\"content\":\"a\"}],\"completions\":["
          "{\"rank\":1,\"completion\":[{\"role\":\"assistant\",\"content\":\"d\"}]},"
          "{\"rank\":0,\"completion\":[{\"role\":\"assistant\",\"content\":\"c\"}]}]}",
          chatting, "xay|c", "xay|d", "context, completions");
}

static void only_the_last_message_counts(void **state)
{
    check("{\"prompt\":[{\"role\":\"user\",\"content\":\"a\"},"
          "{\"role\":\"assistant\",\"content\":\"b\"},{\"role\":\"user\",\"content\":\"a\"}],"
          "\"chosen\":[{\"role\":\"assistant\",\"content\":\"c\"}],"
          "\"rejected\":[{\"role\":\"assistant\",\"content\":\"d\"}]}",
          chatting, "xaybxay|c", "xaybxay|d", "prompt, chosen, rejected");
}

#define QUESTION "{\"role\":\"user\",\"content\":\"a\"}"
#define ANSWER(text) "{\"role\":\"assistant\",\"content\":\"" text "\"}"

/* As TRL 1.16's extract_prompt and maybe_extract_prompt. */
static void a_prompt_beside_whole_conversations_is_a_copy(void **state)
{
    check("{\"prompt\":\"a\",\"chosen\":[" QUESTION "," ANSWER("c") "],\"rejected\":[" QUESTION
                                                                    "," ANSWER("d") "]}",
          chatting, "xay|c", "xay|d", "chosen, rejected; their conversations have the prompt");
    check("{\"prompt\":\"b\",\"chosen\":[{\"role\":\"system\",\"content\":\"b\"}," QUESTION
          "," ANSWER("c") "],\"rejected\":[" QUESTION "," ANSWER("d") "]}",
          chatting, "ybxay|c", "xay|d", "chosen, rejected; their conversations have the prompt");
    check("{\"prompt\":\"a\",\"chosen\":[" ANSWER("c") "],\"rejected\":[" ANSWER("d") "]}",
          chatting, "xay|c", "xay|d", "prompt, chosen, rejected");
    check("{\"prompt\":null,\"chosen\":[" QUESTION "," ANSWER("c") "],\"rejected\":[" QUESTION
                                                                   "," ANSWER("d") "]}",
          chatting, "xay|c", "xay|d", "chosen, rejected");
}

/* Prompts of another name are not left out in silence: Intel's Orca has question and system. */
static void a_prompt_of_another_name_is_refused(void **state)
{
    static const struct {
        const char *row, *end; /* of the message, behind file, line and column */
    } cases[] = {
        {"{\"question\":\"a\",\"chosen\":\"c\",\"rejected\":\"d\"}",
         "chosen and rejected have no \"prompt\" before them, and \"question\" would be left out; "
         "name "
         "the prompt with data.train.prompt_key, or remove that column"},
        {"{\"system\":\"a\",\"chosen\":[" ANSWER("c") "],\"rejected\":[" ANSWER("d") "]}",
         "chosen and rejected have no \"prompt\" before them, and \"system\" would be left out; "
         "name "
         "the prompt with data.train.prompt_key, or remove that column"},
        {"{\"prompt\":\"a\",\"chosen\":\"c\",\"rejected\":\"d\",\"images\":[\"b\"]}",
         "\"images\" has something in it; only text can be used here: leave such rows out, or "
         "remove "
         "the column"},
        {"{\"context\":[" QUESTION "],\"completions\":[{\"rank\":0,\"completion\":\"c\"},"
         "{\"rank\":1,\"completion\":\"d\"}],\"images\":[\"b\"]}",
         "\"images\" has something in it"},
        {"{\"conversations\":[{\"from\":\"human\",\"value\":\"a\"}],\"chosen\":{\"from\":\"gpt\","
         "\"value\":\"c\"},\"rejected\":{\"from\":\"gpt\",\"value\":\"d\"}}",
         "\"chosen\" is a message of LLaMA-Factory; lists of messages are needed, as `jq -c 'def "
         "m: "},
        {"{\"question\":\"b\",\"chosen\":\"ac\",\"rejected\":\"ad\"}",
         "\"question\" would be left out"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tp_preferences p;
        tp_error err = {0};
        assert_int_equal(read_text(cases[i].row, chatting, 0, &p, &err), TP_ERR_FORMAT);
        assert_non_null(strstr(err.message, cases[i].end));
    }
    /* A column that is named has a prompt. */
    tp_preferences p;
    tp_error err = {0};
    prompt_key = "question";
    assert_int_equal(
        read_text("{\"question\":null,\"chosen\":\"c\",\"rejected\":\"d\"}", plain, 0, &p, &err),
        TP_ERR_FORMAT);
    assert_non_null(strstr(err.message, "\"question\" is null in this preference row"));
    prompt_key = NULL;
    /* Transcripts have what they begin with. */
    check("{\"question\":\"b\",\"chosen\":\"abc\",\"rejected\":\"abd\"}", plain, "ab|c", "ab|d",
          "chosen, rejected");
    check("{\"messages\":[{\"role\":\"user\",\"content\":\"b\"}],\"chosen\":\"abc\","
          "\"rejected\":\"abd\"}",
          plain, "ab|c", "ab|d", "chosen, rejected");
    check("{\"question\":\"\",\"id\":\"7\",\"chosen\":\"ab\",\"rejected\":\"ac\"}", plain, "a|b",
          "a|c", "chosen, rejected");
    check("{\"question\":\"a\",\"chosen\":[" QUESTION "," ANSWER("c") "],\"rejected\":[" QUESTION
                                                                      "," ANSWER("d") "]}",
          chatting, "xay|c", "xay|d", "chosen, rejected");
}

static void of_a_text_that_begins_the_other_the_last_character_is_the_answer(void **state)
{
    check("{\"chosen\":\"abc\",\"rejected\":\"abcd\"}", plain, "ab|c", "ab|cd", "chosen, rejected");
    check("{\"chosen\":\"ab\",\"rejected\":\"ab\"}", plain, "a|b", "a|b", "chosen, rejected");
}

static void pairs_that_differ_early_are_counted(void **state)
{
    tp_preferences p;
    tp_error err = {0};
    const char *rows = "{\"chosen\":[" QUESTION "," ANSWER("c") "," QUESTION "," ANSWER(
        "b") "],"
             "\"rejected\":[" QUESTION "," ANSWER("d") "," QUESTION "," ANSWER(
                 "b") "]}\n"
                      "{\"chosen\":[" QUESTION
                      "," ANSWER("c") "," QUESTION
                                      "," ANSWER("b") "],"
                                                      "\"rejected\":[" QUESTION
                                                      "," ANSWER("c") "," QUESTION
                                                                      "," ANSWER("a") "]}\n";
    assert_int_equal(read_text(rows, chatting, 0, &p, &err), TP_OK);
    assert_int_equal(p.n, 2);
    assert_int_equal(p.n_early, 1);
    tp_preferences_release(&p);
}

static void what_is_left_out_is_counted(void **state)
{
    tp_preferences p;
    tp_error err = {0};
    const char *rows = "{\"prompt\":\"abcdabcd\",\"chosen\":\"c\",\"rejected\":\"d\"}\n"
                       "{\"prompt\":\"a\",\"chosen\":\"\",\"rejected\":\"d\"}\n\n"
                       "{\"prompt\":\"a\",\"chosen\":\"c\",\"rejected\":\"c\"}\n"
                       "{\"prompt\":\"a\",\"chosen\":7,\"rejected\":\"c\"}\n"
                       "{\"prompt\":\"abcd\",\"chosen\":\"abcd\",\"rejected\":\"dcbadcba\"}\n";
    assert_int_equal(read_text(rows, plain, 1, &p, &err), TP_OK);
    assert_int_equal(p.n, 2);
    assert_int_equal(p.n_empty, 2); /* one cut off, one empty */
    assert_int_equal(p.n_equal, 1);
    assert_int_equal(p.n_bad, 1);
    assert_int_equal(p.n_truncated, 1);
    if (!strstr(p.first_bad, "\"chosen\" is a number"))
        fail_msg("%s", p.first_bad);
    assert_int_equal(p.pairs[1].line, 6);
    tp_preferences_release(&p);
}

static void mistakes_are_explained(void **state)
{
    static const struct {
        const char *row, *says;
    } cases[] = {
        {"{\"prompt\":\"a\",\"chosen\":\"b\"}", "\"rejected\" is missing"},
        {"{\"prompt\":\"a\",\"chosen\":\"b\",\"rejected\":null}", "\"rejected\" is null"},
        {"7", "has no line that begins with '{'"},
        {"{\"chosen\":\"b\",\"rejected\":[]}", "a string, the other a list"},
        {"{\"prompt\":\"a\",\"chosen\":\"b\",\"rejected\":[]}", "a string, the other a list"},
        {"{\"prompt\":\"a\",\"chosen\":\"b\",\"rejected\":\"c\",\"chat_template_kwargs\":{\"a\":1}"
         "}",
         "variables of a single row are not supported"},
        {"{\"context\":\"a\",\"completions\":[]}", "exactly two"},
        {"{\"context\":\"a\",\"completions\":[{\"rank\":0,\"completion\":\"b\"},{\"rank\":0,"
         "\"completion\":\"c\"}]}",
         "both completions have rank 0"},
        {"{\"context\":\"a\",\"completions\":[{\"completion\":\"b\"},{\"rank\":0}]}",
         "has no number as rank"},
        {"{\"prompt\":\"a\",\"chosen\":\"b\",", "it is cut off"},
        {"", "is empty; one JSON object per line is needed"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tp_preferences p;
        tp_error err = {0};
        assert_int_not_equal(read_text(cases[i].row, plain, 0, &p, &err), TP_OK);
        if (!strstr(err.message, cases[i].says))
            fail_msg("%s: \"%s\" does not say \"%s\"", cases[i].row, err.message, cases[i].says);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_shape_is_read),
        cmocka_unit_test(only_the_last_message_counts),
        cmocka_unit_test(a_prompt_beside_whole_conversations_is_a_copy),
        cmocka_unit_test(a_prompt_of_another_name_is_refused),
        cmocka_unit_test(of_a_text_that_begins_the_other_the_last_character_is_the_answer),
        cmocka_unit_test(pairs_that_differ_early_are_counted),
        cmocka_unit_test(what_is_left_out_is_counted),
        cmocka_unit_test(mistakes_are_explained),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
