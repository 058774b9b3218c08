/* test_render.c - rows rendered: tokens and what of them is learned. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "byte_tokenizer.h"
#include "engine/data/render.h"

/* One turn per line, as ChatML writes it. */
#define CHATML                                                                           \
    "{% for m in messages %}<|start|>{{ m.role }}\n{{ m.content }}<|end|>\n{% endfor %}" \
    "{% if add_generation_prompt %}<|start|>assistant\n{% endif %}"
/* The same with what the assistant writes marked. */
#define BLOCKS                                                                       \
    "{% for m in messages %}<|start|>{{ m.role }}\n{% if m.role == 'assistant' %}"   \
    "{% generation %}{{ m.content }}<|end|>{% endgeneration %}{{ '\\n' }}{% else %}" \
    "{{ m.content }}<|end|>\n{% endif %}{% endfor %}"
/* Writes <think> into the last turn alone, so that earlier turns are rewritten. */
#define THINKS                                                       \
    "{% for m in messages %}<|start|>{{ m.role }}\n"                 \
    "{% if loop.last and m.role == 'assistant' %}<think>{% endif %}" \
    "{{ m.content }}<|end|>\n{% endfor %}"                           \
    "{% if add_generation_prompt %}<|start|>assistant\n{% endif %}"

#define HELLO                                                \
    "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}," \
    "{\"role\":\"assistant\",\"content\":\"yo\"}]}"
#define TWICE                                               \
    "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}," \
    "{\"role\":\"assistant\",\"content\":\"b\"},"           \
    "{\"role\":\"user\",\"content\":\"c\"},"                \
    "{\"role\":\"assistant\",\"content\":\"d\"}]}"
#define SUM "{\"prompt\":\"1+1=\",\"completion\":\"2\"}"

static tp_arena arena;
static tp_tokenizer *tok;
static tp_error err;
static tp_buf shown;
static tp_rendered rendered;

static int set_up(void **state)
{
    return tp_arena_init(&arena, 64 << 20, NULL) != TP_OK || byte_tokenizer_make(NULL, &tok) != 0;
}

static int tear_down(void **state)
{
    tp_arena_release(&arena);
    tp_tokenizer_free(tok);
    tp_buf_release(&shown);
    return 0;
}

/* Render `text`; the result is in `rendered` and, as text, in `shown`. */
static tp_status render(const char *text, tp_render_options options)
{
    tp_renderer *renderer;
    tp_schema schema;
    tp_schema_options schema_options = {0};
    tp_example example;
    tp_row row = {.file = "f.jsonl", .line = 3, .text = text, .n = strlen(text)};
    tp_rendered_release(&rendered);
    tp_buf_clear(&shown);
    err.message[0] = 0;
    tp_status status = tp_renderer_new(tok, &options, &renderer, &err);
    if (status != TP_OK)
        return status;
    tp_rendered_init(&rendered, renderer);
    assert_int_equal(tp_schema_choose(&schema_options, &row, &arena, &schema, &err), TP_OK);
    assert_int_equal(tp_schema_read(&schema, &row, &arena, &example, &err), TP_OK);
    status = tp_render(renderer, &example, &row, &arena, &rendered, &err);
    tp_renderer_free(renderer);
    if (status == TP_OK) {
        assert_int_equal(rendered.ids.len, rendered.mask.len);
        tp_render_show(tok, rendered.ids.data, (const uint8_t *)rendered.mask.data,
                       rendered.ids.len, 0, &shown);
    }
    return status;
}

static void expect(const char *text, tp_render_options options, const char *picture)
{
    tp_status status = render(text, options);
    assert_string_equal(err.message, "");
    assert_int_equal(status, TP_OK);
    assert_string_equal(tp_buf_str(&shown), picture);
    tp_rendered_release(&rendered);
}

static void expect_failure(const char *text, tp_render_options options, const char *message)
{
    assert_int_not_equal(render(text, options), TP_OK);
    assert_string_equal(err.message, message);
    tp_rendered_release(&rendered);
}

static void only_the_completion_is_learned(void **state)
{
    expect(SUM, (tp_render_options){0}, "| 1+1=\n> 2\n");
    expect(SUM, (tp_render_options){.add_bos = true, .add_eos = true},
           "| <|bos|>1+1=\n> 2<|end|>\n");
    expect("{\"question\":\"q\",\"answer\":\"a\"}", (tp_render_options){0}, "| q\\n\n> a\n");
}

static void all_of_a_text_is_learned_but_its_first_token(void **state)
{
    expect("{\"text\":\"abc\"}", (tp_render_options){0}, "| a\n> bc\n");
    expect("{\"text\":\"abc\"}", (tp_render_options){.add_bos = true, .add_eos = true},
           "| <|bos|>\n> abc<|end|>\n");
}

static void prefixes_find_what_the_assistant_wrote(void **state)
{
    tp_render_options options = {.chat_template = CHATML};
    expect(HELLO, options,
           "| <|start|>user\\n\n| hi<|end|>\\n\n| <|start|>assistant\\n\n> yo<|end|>\\n\n");
    expect(TWICE, options,
           "| <|start|>user\\n\n| a<|end|>\\n\n| <|start|>assistant\\n\n> b<|end|>\\n\n"
           "| <|start|>user\\n\n| c<|end|>\\n\n| <|start|>assistant\\n\n> d<|end|>\\n\n");
    expect(SUM, options,
           "| <|start|>user\\n\n| 1+1=<|end|>\\n\n| <|start|>assistant\\n\n> 2<|end|>\\n\n");
}

static void a_header_is_learned_where_that_is_asked(void **state)
{
    tp_render_options options = {.chat_template = CHATML, .learn_header = true};
    expect(TWICE, options,
           "| <|start|>user\\n\n| a<|end|>\\n\n> <|start|>assistant\\n\n> b<|end|>\\n\n"
           "| <|start|>user\\n\n| c<|end|>\\n\n> <|start|>assistant\\n\n> d<|end|>\\n\n");
    options.chat_template = BLOCKS;
    expect(HELLO, options,
           "| <|start|>user\\n\n| hi<|end|>\\n\n| <|start|>assistant\\n\n> yo<|end|>\n| \\n\n");
}

/* A block that has the line feed behind the end says that it is learned; there is one end. */
static void a_line_feed_in_a_block_is_learned(void **state)
{
    static const char template[] =
        "{% for m in messages %}<|start|>{{ m.role }}{% if m.role == 'assistant' %}"
        "{% generation %}{{ '\n' + m.content + '<|end|>\n' }}{% endgeneration %}{% else %}"
        "{{ '\n' + m.content + '<|end|>\n' }}{% endif %}{% endfor %}";
    tp_render_options options = {.chat_template = template, .add_eos = true};
    expect(HELLO, options,
           "| <|start|>user\\n\n| hi<|end|>\\n\n| <|start|>assistant\n> \\n\n> yo<|end|>\\n\n");
    options.chat_template = BLOCKS;
    expect(HELLO, options,
           "| <|start|>user\\n\n| hi<|end|>\\n\n| <|start|>assistant\\n\n> yo<|end|>\n");
}

/* Two tokens of one character that NFC composed, each of which begins where that did. */
static void a_composed_character_is_learned_whole(void **state)
{
    tp_tokenizer *plain = tok;
    assert_int_equal(byte_tokenizer_make_like("qwen2", NULL, &tok), 0);
    expect("{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"},"
           "{\"role\":\"assistant\",\"content\":\"e\xcc\x81o\"}]}",
           (tp_render_options){.chat_template = CHATML},
           "| <|start|>user\\n\n| hi<|end|>\\n\n| <|start|>assistant\\n\n> \xc3\xa9o<|end|>\\n\n");
    tp_tokenizer_free(tok);
    tok = plain;
}

static void blocks_find_what_the_assistant_wrote(void **state)
{
    tp_render_options options = {.chat_template = BLOCKS};
    expect(HELLO, options,
           "| <|start|>user\\n\n| hi<|end|>\\n\n| <|start|>assistant\\n\n> yo<|end|>\n| \\n\n");
    options.only_unmask_final = true;
    expect(TWICE, options,
           "| <|start|>user\\n\n| a<|end|>\\n\n| <|start|>assistant\\n\n| b<|end|>\\n\n"
           "| <|start|>user\\n\n| c<|end|>\\n\n| <|start|>assistant\\n\n> d<|end|>\n| \\n\n");
}

#define WITH_TOOLS                                           \
    "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}," \
    "{\"role\":\"assistant\",\"content\":\"yo\"}],\"tools\":[{\"name\":\"f\"}]}"
#define LEARNED "| <|start|>user\\n\n| hi<|end|>\\n\n| <|start|>assistant\\n\n> yo<|end|>"

/* As where a folder has a template for tools, which nobody gave blocks, or the other way. */
static void a_template_without_blocks_is_learned_by_prefixes(void **state)
{
    tp_tokenizer *other = tok;
    assert_int_equal(byte_tokenizer_make_with("gpt2", BLOCKS, CHATML, &tok), 0);
    expect(HELLO, (tp_render_options){0}, LEARNED "\n| \\n\n");
    expect(WITH_TOOLS, (tp_render_options){0}, LEARNED "\\n\n");
    tp_tokenizer_free(tok);
    assert_int_equal(byte_tokenizer_make_with("gpt2", CHATML, BLOCKS, &tok), 0);
    expect(HELLO, (tp_render_options){0}, LEARNED "\\n\n");
    expect(WITH_TOOLS, (tp_render_options){0}, LEARNED "\n| \\n\n");
    tp_tokenizer_free(tok);
    tok = other;
}

/* As transformers' assistant mask: what no block holds is not to be learned. */
static void answers_without_a_block_are_left_out(void **state)
{
    tp_render_options options = {
        .chat_template = "{% for m in messages %}{% if m.weight == 1 %}{% generation %}"
                         "{{ m.content }}{% endgeneration %}{% else %}{{ m.content }}{% endif %}"
                         "{% endfor %}"};
    expect("{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"},"
           "{\"role\":\"assistant\",\"content\":\"yo\",\"weight\":0}]}",
           options, "| hiyo\n");
    expect("{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"},"
           "{\"role\":\"assistant\",\"content\":\"yo\",\"weight\":1}]}",
           options, "| hi\n> yo\n");
    options.chat_template = "{% if tools is none %}" BLOCKS "{% else %}" CHATML "{% endif %}";
    expect(WITH_TOOLS, options,
           "| <|start|>user\\n\n| hi<|end|>\\n\n| <|start|>assistant\\n\n| yo<|end|>\\n\n");
}

/* A block more for what ends the text, as some have, and none for an empty answer. */
#define UNEVEN                                                                        \
    "{% for m in messages %}<|start|>{{ m.role }}\n{% if m.role == 'assistant' %}"    \
    "{% if m.content %}{% generation %}{{ m.content }}{% endgeneration %}{% endif %}" \
    "<|end|>\n{% else %}{{ m.content }}<|end|>\n{% endif %}{% endfor %}"              \
    "{% if add_generation_prompt %}<|start|>assistant\n"                              \
    "{% else %}{% generation %}<|end|>{% endgeneration %}{% endif %}"

static void blocks_that_are_no_answers_do_not_teach_the_prompt(void **state)
{
    tp_render_options options = {.chat_template = UNEVEN};
    static const char prompted[] = "{\"prompt\":[{\"role\":\"user\",\"content\":\"a\"},"
                                   "{\"role\":\"assistant\",\"content\":\"b\"},"
                                   "{\"role\":\"user\",\"content\":\"c\"}],"
                                   "\"completion\":[{\"role\":\"assistant\",\"content\":\"d\"}]}";
    static const char last[] = "| <|start|>user\\n\n| a<|end|>\\n\n| <|start|>assistant\\n\n"
                               "| b<|end|>\\n\n| <|start|>user\\n\n| c<|end|>\\n\n"
                               "| <|start|>assistant\\n\n> d\n| <|end|>\\n\n> <|end|>\n";
    expect(prompted, options, last);
    options.only_unmask_final = true;
    expect(TWICE, options, last);
    expect("{\"messages\":[{\"role\":\"user\",\"content\":\"a\"},"
           "{\"role\":\"assistant\",\"content\":\"b\"},{\"role\":\"user\",\"content\":\"c\"},"
           "{\"role\":\"assistant\",\"content\":\"\"}]}",
           options,
           "| <|start|>user\\n\n| a<|end|>\\n\n| <|start|>assistant\\n\n| b<|end|>\\n\n"
           "| <|start|>user\\n\n| c<|end|>\\n\n| <|start|>assistant\\n\n| <|end|>\\n\n> "
           "<|end|>\n");
}

/* Rewrites earlier turns, and ends with a block of its own. */
#define REWRITES                                                                             \
    "{% for m in messages %}<|start|>{{ m.role }}\n{% if m.role == 'assistant' %}"           \
    "{% generation %}{% if loop.last %}<think>{% endif %}{{ m.content }}{% endgeneration %}" \
    "{% else %}{{ m.content }}{{ loop.last }}{% endif %}<|end|>\n{% endfor %}"               \
    "{% if not add_generation_prompt %}{% generation %}<|end|>{% endgeneration %}{% endif %}"

static void the_last_answer_is_found_where_earlier_turns_are_rewritten(void **state)
{
    tp_render_options options = {.chat_template = REWRITES, .only_unmask_final = true};
    expect(TWICE, options,
           "| <|start|>user\\n\n| aFalse<|end|>\\n\n| <|start|>assistant\\n\n| b<|end|>\\n\n"
           "| <|start|>user\\n\n| cFalse<|end|>\\n\n| <|start|>assistant\\n\n> <think>d\n"
           "| <|end|>\\n\n> <|end|>\n");
}

static void a_template_may_not_render_nothing(void **state)
{
    tp_render_options options = {.chat_template = "{{ messages[0].role }}{% for m in messages %}"
                                                  "<{{ m.content }}>{% endfor %}"};
    expect_failure("{\"messages\":[{\"role\":\"assistant\",\"content\":\"a\"},"
                   "{\"role\":\"user\",\"content\":\"b\"},"
                   "{\"role\":\"assistant\",\"content\":\"c\"}]}",
                   options,
                   "f.jsonl:3: the conversation begins with the assistant, and the chat template "
                   "renders no conversation without messages, so where the answer begins cannot be "
                   "told; set sft.only_unmask_final, use a template with {% generation %} blocks, "
                   "or begin with a system or user message");
}

static void the_final_message_alone(void **state)
{
    tp_render_options options = {.chat_template = CHATML, .only_unmask_final = true};
    expect(TWICE, options,
           "| <|start|>user\\n\n| a<|end|>\\n\n| <|start|>assistant\\n\n| b<|end|>\\n\n"
           "| <|start|>user\\n\n| c<|end|>\\n\n| <|start|>assistant\\n\n> d<|end|>\\n\n");
}

static void bos_and_eos_are_added_where_missing(void **state)
{
    tp_render_options options = {.chat_template = CHATML, .add_bos = true, .add_eos = true};
    expect(HELLO, options,
           "| <|bos|><|start|>user\\n\n| hi<|end|>\\n\n| <|start|>assistant\\n\n"
           "> yo<|end|>\n");
    options.chat_template = "{{ bos_token }}{% for m in messages %}{{ m.content }} {% endfor %}";
    expect(HELLO, options, "| <|bos|>hi \n> yo <|end|>\n");
}

static void rewritten_history_is_refused(void **state)
{
    tp_render_options options = {.chat_template = THINKS};
    expect_failure(TWICE, options,
                   "f.jsonl:3: the chat template renders the conversation up to message 1 "
                   "otherwise than in the whole conversation (it rewrites earlier turns, or its "
                   "generation prompt differs), so what the assistant wrote cannot be told apart; "
                   "set sft.only_unmask_final, or use a template with {% generation %} blocks");
    options.only_unmask_final = true;
    expect(TWICE, options,
           "| <|start|>user\\n\n| a<|end|>\\n\n| <|start|>assistant\\n\n| b<|end|>\\n\n"
           "| <|start|>user\\n\n| c<|end|>\\n\n| <|start|>assistant\\n\n> <think>d<|end|>\\n\n");
}

static void conversations_need_a_template_or_none_on_purpose(void **state)
{
    expect_failure(HELLO, (tp_render_options){0},
                   "f.jsonl:3: the rows are conversations, but the tokenizer has no chat template; "
                   "give one with policy.tokenizer.chat_template, or null to join the contents");
    expect(TWICE, (tp_render_options){.chat_template = ""}, "| a\n> b\n| c\n> d\n");
}

static void a_template_can_refuse_and_can_be_wrong(void **state)
{
    tp_render_options options = {.chat_template = "{{ raise_exception('no system') }}"};
    assert_int_equal(render(HELLO, options), TP_ERR_FORMAT);
    assert_memory_equal(err.message, "f.jsonl:3: ", 11);
    assert_non_null(strstr(err.message, "no system"));
    options.chat_template = "{% for %}";
    assert_int_not_equal(render(HELLO, options), TP_OK);
    tp_rendered_release(&rendered);
}

static void long_examples_are_cut(void **state)
{
    assert_int_equal(render("{\"prompt\":\"abc\",\"completion\":\"defg\"}",
                            (tp_render_options){.max_seq_length = 5}),
                     TP_OK);
    assert_string_equal(tp_buf_str(&shown), "| abc\n> de\n");
    assert_true(rendered.truncated);
    assert_int_equal(rendered.n_targets, 2);
    assert_int_equal(render("{\"prompt\":\"abc\",\"completion\":\"defg\"}",
                            (tp_render_options){.max_seq_length = 3}),
                     TP_OK);
    assert_int_equal(rendered.n_targets, 0);
    assert_int_equal(render("{\"prompt\":\"\",\"completion\":\"\"}", (tp_render_options){0}),
                     TP_OK);
    assert_int_equal(rendered.n_targets, 0);
    tp_rendered_release(&rendered);
}

/* As transformers prepares messages. */
static void members_that_are_null_are_absent(void **state)
{
    static const char row[] =
        "{\"messages\":[{\"role\":\"user\",\"content\":\"q\",\"tool_calls\":null},"
        "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":null}]}]}";
    expect(row,
           (tp_render_options){.chat_template = "{% for m in messages %}{{ m.role }}:"
                                                "{{ m.content }}{% if 'tool_calls' in m %}"
                                                "+{{ m.tool_calls[0] }}{% endif %};{% endfor %}"
                                                "{% if add_generation_prompt %}assistant:"
                                                "{% endif %}"},
           "| user:q;assistant:\n> +{'id': None};\n");
}

static void reasoning_has_each_of_its_names(void **state)
{
    static const char template[] =
        "{% for m in messages %}{{ m.role }}:{% for k in m %}{{ k }}={{ m[k] }},{% endfor %}"
        "{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}";
    static const struct {
        const char *given, *seen;
    } cases[] = {
        {"\"reasoning\":\"w\"", "thinking=w,role=assistant,reasoning=w,content=a,"
                                "reasoning_content=w,"},
        {"\"thinking\":\"w\"", "thinking=w,role=assistant,content=a,reasoning_content=w,"},
        {"\"reasoning_content\":\"w\",\"thinking\":\"x\"",
         "thinking=x,role=assistant,reasoning_content=w,content=a,"},
        {"\"reasoning_content\":null,\"thinking\":\"x\"",
         "thinking=x,role=assistant,content=a,reasoning_content=x,"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char row[300], picture[300];
        snprintf(row, sizeof row,
                 "{\"messages\":[{\"role\":\"user\",\"content\":\"q\"},"
                 "{\"role\":\"assistant\",%s,\"content\":\"a\"}]}",
                 cases[i].given);
        snprintf(picture, sizeof picture, "| user:role=user,content=q,assistant:\n> %s\n",
                 cases[i].seen);
        expect(row, (tp_render_options){.chat_template = template}, picture);
    }
}

#define PARTS                                                                              \
    "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"Hi \"}," \
    "{\"type\":\"text\",\"text\":\"you\"}]},{\"role\":\"assistant\",\"content\":"          \
    "[{\"type\":\"text\",\"text\":\"yo\"}]}]}"

static void parts_reach_the_template(void **state)
{
    static const char remedy[] =
        "content is a list of parts; for a template that knows text alone give it as one string";
    char message[300];
    expect(PARTS,
           (tp_render_options){.chat_template = "{% for m in messages %}{{ m.role }}:"
                                                "{% for p in m.content %}{{ p.text | trim }}"
                                                "{% endfor %};{% endfor %}"
                                                "{% if add_generation_prompt %}assistant:"
                                                "{% endif %}"},
           "| user:Hiyou;assistant:\n> yo;\n");
    expect(PARTS, (tp_render_options){.chat_template = ""}, "| Hi you\n> yo\n");
    snprintf(message, sizeof message, "f.jsonl:3: the chat template prints a Python list: %s",
             remedy);
    expect_failure(PARTS, (tp_render_options){.chat_template = CHATML}, message);
    expect_failure(PARTS, (tp_render_options){.chat_template = BLOCKS}, message);
    assert_int_not_equal(
        render(PARTS, (tp_render_options){.chat_template = "{{ messages[0].content + 'x' }}"}),
        TP_OK);
    assert_non_null(strstr(err.message, remedy));
    tp_rendered_release(&rendered);
}

static void the_picture_is_safe_for_a_terminal(void **state)
{
    const int32_t ids[] = {0, 1, 2};
    const uint8_t mask[] = {0, 1, 1};
    expect("{\"prompt\":\"\\u001b[2J\\t\",\"completion\":\"\\r\\u009b\\u007f\"}",
           (tp_render_options){0}, "| \\x1b[2J\\t\n> \\r\\u009b\\x7f\n");
    tp_buf_clear(&shown);
    tp_render_show(tok, ids, mask, 3, 2, &shown);
    assert_non_null(strstr(shown.data, "\n  ... and 1 more tokens\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_completion_is_learned),
        cmocka_unit_test(all_of_a_text_is_learned_but_its_first_token),
        cmocka_unit_test(prefixes_find_what_the_assistant_wrote),
        cmocka_unit_test(a_header_is_learned_where_that_is_asked),
        cmocka_unit_test(a_line_feed_in_a_block_is_learned),
        cmocka_unit_test(a_composed_character_is_learned_whole),
        cmocka_unit_test(blocks_find_what_the_assistant_wrote),
        cmocka_unit_test(a_template_without_blocks_is_learned_by_prefixes),
        cmocka_unit_test(answers_without_a_block_are_left_out),
        cmocka_unit_test(blocks_that_are_no_answers_do_not_teach_the_prompt),
        cmocka_unit_test(the_last_answer_is_found_where_earlier_turns_are_rewritten),
        cmocka_unit_test(a_template_may_not_render_nothing),
        cmocka_unit_test(the_final_message_alone),
        cmocka_unit_test(bos_and_eos_are_added_where_missing),
        cmocka_unit_test(rewritten_history_is_refused),
        cmocka_unit_test(conversations_need_a_template_or_none_on_purpose),
        cmocka_unit_test(a_template_can_refuse_and_can_be_wrong),
        cmocka_unit_test(long_examples_are_cut),
        cmocka_unit_test(members_that_are_null_are_absent),
        cmocka_unit_test(reasoning_has_each_of_its_names),
        cmocka_unit_test(parts_reach_the_template),
        cmocka_unit_test(the_picture_is_safe_for_a_terminal),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
