#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/data/row_message.h"

static tp_arena arena;
static tp_error err;

static int make_arena(void **state) { return tp_arena_init(&arena, 64 << 20, NULL) != TP_OK; }

static int drop_arena(void **state)
{
    tp_arena_release(&arena);
    return 0;
}

static tp_row row_of(const char *text)
{
    return (tp_row){.file = "f.jsonl", .line = 7, .text = text, .n = strlen(text)};
}

static tp_schema choose(const char *text, tp_schema_options options)
{
    tp_row row = row_of(text);
    tp_schema schema;
    err.message[0] = 0;
    tp_status status = tp_schema_choose(&options, &row, &arena, &schema, &err);
    assert_string_equal(err.message, "");
    assert_int_equal(status, TP_OK);
    return schema;
}

static tp_example read_as(const tp_schema *schema, const char *text)
{
    tp_row row = row_of(text);
    tp_example example;
    err.message[0] = 0;
    tp_status status = tp_schema_read(schema, &row, &arena, &example, &err);
    assert_string_equal(err.message, "");
    assert_int_equal(status, TP_OK);
    return example;
}

/* What it returns points into the schema. */
static tp_example read_row(const char *text)
{
    static tp_schema schema;
    schema = choose(text, (tp_schema_options){0});
    return read_as(&schema, text);
}

static void expect_choice_error(const char *text, tp_schema_options options, const char *message)
{
    tp_row row = row_of(text);
    tp_schema schema;
    assert_int_not_equal(tp_schema_choose(&options, &row, &arena, &schema, &err), TP_OK);
    assert_string_equal(err.message, message);
}

static void expect_row_error(const char *good, const char *bad, const char *message)
{
    tp_schema schema = choose(good, (tp_schema_options){0});
    tp_row row = row_of(bad);
    tp_example example;
    assert_int_equal(tp_schema_read(&schema, &row, &arena, &example, &err), TP_ERR_FORMAT);
    assert_string_equal(err.message, message);
}

static void expect_message(const tp_example *example, size_t i, const char *role,
                           const char *content)
{
    const tp_json *message = tp_json_at(example->messages, i);
    assert_non_null(message);
    assert_string_equal(tp_json_str(tp_json_get(message, "role")), role);
    assert_string_equal(tp_json_str(tp_json_get(message, "content")), content);
}

static void expect_pair(const tp_example *example, const char *prompt, const char *answer)
{
    assert_true(example->is_pair);
    assert_int_equal(example->messages->n, 2);
    expect_message(example, 0, "user", prompt);
    expect_message(example, 1, "assistant", answer);
}

static void rows_are_recognised_by_their_keys(void **state)
{
    static const struct {
        const char *text;
        tp_schema_kind kind;
    } cases[] = {
        {"{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}", TP_SCHEMA_MESSAGES},
        {"{\"conversations\":[{\"from\":\"human\",\"value\":\"a\"}]}", TP_SCHEMA_SHAREGPT},
        {"{\"prompt\":\"a\",\"completion\":\"b\"}", TP_SCHEMA_PROMPT_COMPLETION},
        {"{\"prompt\":\"a\",\"completion\":\"b\",\"label\":\"c\"}", TP_SCHEMA_PROMPT_COMPLETION},
        {"{\"instruction\":\"a\",\"input\":\"\",\"output\":\"b\",\"text\":\"c\"}",
         TP_SCHEMA_ALPACA},
        {"{\"input\":\"a\",\"output\":\"b\"}", TP_SCHEMA_INPUT_OUTPUT},
        {"{\"question\":\"a\",\"answer\":\"b\"}", TP_SCHEMA_QUESTION_ANSWER},
        {"{\"id\":3,\"text\":\"a\"}", TP_SCHEMA_TEXT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tp_schema schema = choose(cases[i].text, (tp_schema_options){0});
        assert_int_equal(schema.kind, cases[i].kind);
        assert_true(schema.detected);
    }
    assert_string_equal(tp_schema_name(TP_SCHEMA_QUESTION_ANSWER), "question_answer");
}

static void configured_keys_override_detection(void **state)
{
    const char *text = "{\"messages\":[],\"q\":\"2+2\",\"a\":\"4\",\"output\":\"x\"}";

    tp_schema schema = choose(text, (tp_schema_options){.input_key = "q", .output_key = "a"});

    assert_int_equal(schema.kind, TP_SCHEMA_INPUT_OUTPUT);
    assert_false(schema.detected);
    tp_example example = read_as(&schema, text);
    expect_pair(&example, "2+2", "4");
    schema = choose(text, (tp_schema_options){.input_key = "q"});
    example = read_as(&schema, text);
    expect_pair(&example, "2+2", "x");
    schema = choose(text, (tp_schema_options){.chat_key = "talk"});
    assert_int_equal(schema.kind, TP_SCHEMA_MESSAGES);
    expect_choice_error(text, (tp_schema_options){.input_key = "q", .chat_key = "talk"},
                        "data names several kinds of rows at once; set only one of input_key with "
                        "output_key, prompt_key, chat_key, text_key");
}

static void pairs_become_two_messages(void **state)
{
    tp_example example = read_row("{\"prompt\":\"Hi\\n\",\"completion\":\"Ho \\u00e9\"}");
    expect_pair(&example, "Hi\n", "Ho \xc3\xa9");
    assert_int_equal(example.first_target, 1);
    assert_string_equal(example.separator, "");

    example = read_row("{\"question\":\"q\",\"answer\":\"a #### 3\"}");
    expect_pair(&example, "q", "a #### 3");
    assert_string_equal(example.separator, "\n");

    example = read_row("{\"instruction\":\"Sum\",\"input\":\"1 2\",\"output\":\"3\"}");
    expect_pair(&example, "Sum\n\n1 2", "3");
    example = read_row("{\"instruction\":\"Sum\",\"input\":null,\"output\":\"3\"}");
    expect_pair(&example, "Sum", "3");
    assert_int_equal(example.line, 7);
}

static void completion_may_be_messages(void **state)
{
    tp_example example = read_row(
        "{\"prompt\":[{\"role\":\"system\",\"content\":\"s\"},{\"role\":\"user\",\"content\":\"u\"}"
        ","
        "{\"role\":\"assistant\",\"content\":\"a\"},{\"role\":\"user\",\"content\":\"v\"}],"
        "\"completion\":[{\"role\":\"assistant\",\"content\":\"b\"}]}");

    assert_int_equal(example.messages->n, 5);
    assert_int_equal(example.first_target, 4);
    assert_false(example.is_pair);
    expect_message(&example, 0, "system", "s");
    expect_message(&example, 4, "assistant", "b");
}

static void messages_keep_tools_calls_and_parts(void **state)
{
    const char *text =
        "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},"
        "{\"type\":\"text\",\"text\":\"b\"}]},"
        "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"name\":\"f\"}]},"
        "{\"role\":\"tool\",\"content\":\"1\"}],\"tools\":[{\"name\":\"f\"}]}";

    tp_example example = read_row(text);

    assert_int_equal(example.messages->n, 3);
    assert_int_equal(tp_json_get(tp_json_at(example.messages, 0), "content")->n, 2);
    tp_slice joined = tp_message_text(&arena, tp_json_at(example.messages, 0));
    assert_true(tp_slice_is(joined, "ab"));
    assert_non_null(tp_json_get(tp_json_at(example.messages, 1), "tool_calls"));
    assert_int_equal(example.tools->n, 1);
    example = read_row("{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],"
                       "\"tools\":\"[{\\\"name\\\":\\\"f\\\"},{}]\"}");
    assert_int_equal(example.tools->n, 2);
    example = read_row("{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"tools\":[]}");
    assert_null(example.tools);
}

static void sharegpt_roles_are_translated(void **state)
{
    tp_example example = read_row("{\"conversations\":[{\"from\":\"system\",\"value\":\"s\"},"
                                  "{\"from\":\"human\",\"value\":\"u\"},"
                                  "{\"from\":\"gpt\",\"value\":\"a\"}]}");

    assert_int_equal(example.messages->n, 3);
    expect_message(&example, 0, "system", "s");
    expect_message(&example, 1, "user", "u");
    expect_message(&example, 2, "assistant", "a");
}

static void prompt_template_and_system_prompt_apply(void **state)
{
    const char *text = "{\"input\":\"1+1\",\"output\":\"2\",\"sys\":\"from the row\"}";
    tp_schema_options options = {.prompt_template = "Solve {{x}}: {}!",
                                 .system_prompt = "Be brief."};
    tp_schema schema = choose(text, options);
    tp_example example = read_as(&schema, text);
    assert_int_equal(example.messages->n, 3);
    assert_int_equal(example.first_target, 2);
    assert_true(example.is_pair);
    expect_message(&example, 0, "system", "Be brief.");
    expect_message(&example, 1, "user", "Solve {x}: 1+1!");
    expect_message(&example, 2, "assistant", "2");

    options.system_key = "sys";
    schema = choose(text, options);
    example = read_as(&schema, text);
    expect_message(&example, 0, "system", "from the row");

    const char *chat = "{\"messages\":[{\"role\":\"system\",\"content\":\"own\"},"
                       "{\"role\":\"user\",\"content\":\"x\"}]}";
    schema = choose(chat, (tp_schema_options){.system_prompt = "Be brief."});
    example = read_as(&schema, chat);
    assert_int_equal(example.messages->n, 2);
    expect_message(&example, 0, "system", "own");
}

static void prompt_templates_are_checked(void **state)
{
    assert_int_equal(tp_prompt_format_check("p.txt", "a {} b {{}}", NULL), TP_OK);
    assert_int_equal(tp_prompt_format_check("p.txt", "no place", &err), TP_ERR_CONFIG);
    assert_string_equal(err.message,
                        "p.txt has 0 places for the prompt; exactly one \"{}\" is needed");
    assert_int_equal(tp_prompt_format_check("p.txt", "{} {}", &err), TP_ERR_CONFIG);
    assert_int_equal(tp_prompt_format_check("p.txt", "a\n{} {question}", &err), TP_ERR_CONFIG);
    assert_string_equal(err.message, "p.txt, line 2: a lone '{'; \"{}\" stands for the prompt, a "
                                     "brace is written twice");
}

#define PAIR "{\"prompt\":\"a\",\"completion\":\"b\"}"
#define CHAT "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}"

static void wrong_rows_name_the_place(void **state)
{
    expect_row_error(PAIR, "{\"prompt\":\"a\"}",
                     "f.jsonl:7:1: \"completion\" is missing from this prompt_completion row");
    expect_row_error(PAIR, "{\"prompt\":\"a\",\"completion\":null}",
                     "f.jsonl:7:28: \"completion\" is null; a string is needed");
    expect_row_error(PAIR, "{\"pr\\u006fmpt\":3,\"completion\":\"x\"}",
                     "f.jsonl:7:16: \"prompt\" is a number; a string is needed");
    expect_row_error(CHAT, "{\"messages\":{}}",
                     "f.jsonl:7:13: \"messages\" is an object; a list of messages is needed");
    expect_row_error(CHAT, "{\"messages\":[]}",
                     "f.jsonl:7:13: \"messages\" is empty; there is nothing to learn from it");
    expect_row_error(CHAT, "{\"messages\":[\"hi\"]}",
                     "f.jsonl:7:14: messages[0] is a string; an object with role and content is "
                     "needed");
    expect_row_error(CHAT,
                     "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"},"
                     "{\"role\":\"assistant\",\"content\":null}]}",
                     "f.jsonl:7:74: messages[1].content is null; a string is needed");
    expect_row_error(CHAT, "{\"messages\":[{\"role\":\"asistant\",\"content\":\"a\"}]}",
                     "f.jsonl:7:22: messages[0].role is \"asistant\"; known roles are system, "
                     "developer, user, assistant, tool, function");
    expect_row_error(
        CHAT, "{\"messages\":[{\"content\":\"a\"}]}",
        "f.jsonl:7:14: messages[0].role is missing; a role such as \"user\" is needed");
    expect_row_error(CHAT,
                     "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image\"}]}]}",
                     "f.jsonl:7:39: messages[0].content has a part that is not text; only text can "
                     "be used here");
    expect_row_error(CHAT,
                     "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image\","
                     "\"text\":\"a\"}]}]}",
                     "f.jsonl:7:39: messages[0].content has a part that is not text; only text can "
                     "be used here");
    expect_row_error(PAIR, "[1,2]", "f.jsonl:7:1: a row must be a JSON object, this is an array");
}

static void broken_json_names_the_place(void **state)
{
    tp_schema schema = choose(PAIR, (tp_schema_options){0});
    tp_row row = row_of("{\"prompt\":\"a\" \"completion\":\"b\"}");
    tp_example example;

    assert_int_equal(tp_schema_read(&schema, &row, &arena, &example, &err), TP_ERR_FORMAT);

    assert_memory_equal(err.message, "f.jsonl:7:15: ", 14);
}

static void unknown_rows_say_which_keys_exist(void **state)
{
    expect_choice_error("{\"foo\":1,\"bar\":2}", (tp_schema_options){0},
                        "f.jsonl:7:1: no known kind of row has the keys \"foo\", \"bar\"; name the "
                        "columns with data.train.input_key and output_key, chat_key or text_key");
    expect_choice_error(
        "{}", (tp_schema_options){0},
        "f.jsonl:7:1: no known kind of row has the keys of an empty object; name "
        "the columns with data.train.input_key and output_key, chat_key or text_key");
    expect_choice_error("{\"prompt\":\"a\",\"chosen\":\"b\",\"rejected\":\"c\"}",
                        (tp_schema_options){0},
                        "f.jsonl:7:1: a preference pair (chosen, rejected) is no example to "
                        "imitate; train on it with dpo");
    expect_choice_error(
        "{\"prompt\":\"a\",\"answer\":\"b\"}", (tp_schema_options){0},
        "f.jsonl:7:1: there is a \"prompt\" but no \"completion\" to learn (keys: "
        "\"prompt\", \"answer\"); name both with data.train.input_key and output_key");
}

#define JUDGED(name)                                                                    \
    "f.jsonl:7:1: an answer with a \"" name                                             \
    "\" of true or false was judged (KTO), bad ones are no "                            \
    "example to imitate; keep the good ones, as `jq -c 'select(." name ") | del(." name \
    ")'` does; `del(." name ")` alone learns all"
#define ASKED "{\"role\":\"user\",\"content\":\"a\"}"

/* Of every kind but a text, in which there is no answer. */
static void judged_answers_are_refused(void **state)
{
    static const char *const rows[] = {
        "\"prompt\":\"a\",\"completion\":\"b\"", "\"messages\":[" ASKED "]",
        "\"conversations\":[{\"from\":\"human\",\"value\":\"a\"}]",
        "\"instruction\":\"a\",\"output\":\"b\"", "\"question\":\"a\",\"answer\":\"b\""};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int good = 0; good < 2; good++) {
            char text[200];
            snprintf(text, sizeof text, "{%s,\"label\":%s}", rows[i], good ? "true" : "false");
            expect_choice_error(text, (tp_schema_options){0}, JUDGED("label"));
            snprintf(text, sizeof text, "{%s,\"kto_tag\":%s}", rows[i], good ? "true" : "false");
            expect_choice_error(text, (tp_schema_options){0}, JUDGED("kto_tag"));
        }
    tp_schema schema = choose("{\"text\":\"a\",\"label\":true}", (tp_schema_options){0});
    assert_int_equal(schema.kind, TP_SCHEMA_TEXT);
    /* Also behind rows that were not. */
    expect_row_error("{\"messages\":[" ASKED "],\"label\":null}",
                     "{\"messages\":[" ASKED "],\"label\":false}", JUDGED("label"));
}

/* A conversation that a pair of answers goes on; messages with an answer are whole. */
static void pairs_beside_a_conversation_are_refused(void **state)
{
#define ANSWERS "\"chosen\":{\"value\":\"b\"},\"rejected\":{\"value\":\"c\"}}"
    static const char refused[] = "f.jsonl:7:1: a preference pair (chosen, rejected) is no example "
                                  "to imitate; train on it with dpo";
    expect_choice_error("{\"conversations\":[{\"from\":\"human\",\"value\":\"a\"}]," ANSWERS,
                        (tp_schema_options){0}, refused);
    expect_choice_error("{\"messages\":[" ASKED "]," ANSWERS, (tp_schema_options){0}, refused);
    tp_schema schema =
        choose("{\"messages\":[" ASKED ",{\"role\":\"assistant\",\"content\":\"b\"}]," ANSWERS,
               (tp_schema_options){0});
    assert_int_equal(schema.kind, TP_SCHEMA_MESSAGES);
    schema = choose("{\"conversations\":[{\"from\":\"human\",\"value\":\"a\"},"
                    "{\"from\":\"gpt\",\"value\":\"b\"}]," ANSWERS,
                    (tp_schema_options){0});
    assert_int_equal(schema.kind, TP_SCHEMA_SHAREGPT);
    schema = choose("{\"messages\":[" ASKED "],\"chosen\":null,\"rejected\":null}",
                    (tp_schema_options){0});
    assert_int_equal(schema.kind, TP_SCHEMA_MESSAGES);
}

/* Empty columns, which a table of mixed rows has, are none. */
static void pictures_beside_the_text_are_refused(void **state)
{
    read_row("{\"messages\":[" ASKED "],\"images\":[],\"audios\":null,\"image\":\"\"}");
    read_row("{\"messages\":[" ASKED "],\"images\":[null],\"image\":{\"bytes\":null,"
             "\"path\":\"\"}}");
    expect_row_error(CHAT, "{\"messages\":[" ASKED "],\"images\":[\"1.jpg\"]}",
                     "f.jsonl:7:54: \"images\" has something in it; only text can be used here: "
                     "leave such rows out, or remove the column");
    expect_row_error(PAIR, "{\"prompt\":\"a\",\"completion\":\"b\",\"audio\":\"a.wav\"}",
                     "f.jsonl:7:40: \"audio\" has something in it; only text can be used here: "
                     "leave such rows out, or remove the column");
    expect_row_error("{\"text\":\"a\"}", "{\"text\":\"a\",\"videos\":[\"b.mp4\"]}",
                     "f.jsonl:7:22: \"videos\" has something in it; only text can be used here: "
                     "leave such rows out, or remove the column");
}

static void columns_that_are_not_read_are_known(void **state)
{
    const char *text = "{\"system\":\"s\",\"history\":[[\"a\",\"b\"]],\"instruction\":\"a\","
                       "\"output\":\"b\",\"text\":\"c\"}";
    assert_int_equal(read_row(text).unread, 7);
    tp_schema schema = choose(text, (tp_schema_options){.text_key = "text"});
    assert_int_equal(read_as(&schema, text).unread, 0);
    text = "{\"system\":null,\"history\":[],\"prompt\":\"a\",\"completion\":\"b\"}";
    schema = choose(text, (tp_schema_options){.system_key = "system"});
    tp_example example = read_as(&schema, text);
    assert_int_equal(example.unread, 0);
    assert_int_equal(example.messages->n, 2);
    text = "{\"system\":\"s\",\"messages\":[{\"role\":\"system\",\"content\":\"t\"}," ASKED "]}";
    assert_int_equal(read_row(text).unread, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_recognised_by_their_keys),
        cmocka_unit_test(configured_keys_override_detection),
        cmocka_unit_test(pairs_become_two_messages),
        cmocka_unit_test(completion_may_be_messages),
        cmocka_unit_test(messages_keep_tools_calls_and_parts),
        cmocka_unit_test(sharegpt_roles_are_translated),
        cmocka_unit_test(prompt_template_and_system_prompt_apply),
        cmocka_unit_test(prompt_templates_are_checked),
        cmocka_unit_test(wrong_rows_name_the_place),
        cmocka_unit_test(broken_json_names_the_place),
        cmocka_unit_test(unknown_rows_say_which_keys_exist),
        cmocka_unit_test(judged_answers_are_refused),
        cmocka_unit_test(pairs_beside_a_conversation_are_refused),
        cmocka_unit_test(pictures_beside_the_text_are_refused),
        cmocka_unit_test(columns_that_are_not_read_are_known),
    };
    return cmocka_run_group_tests(tests, make_arena, drop_arena);
}
