/* test_perturb.c - questions written otherwise: what changes, and what stays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/evaluate/perturb.h"

static void expect(const char *name, const char *text, const char *wanted)
{
    tp_buf out = {0};
    tp_perturbation_find(name)->apply(text, strlen(text), &out);
    assert_string_equal(tp_buf_str(&out), wanted);
    tp_buf_release(&out);
}

static void lists_are_turned(void **state)
{
    expect("order", "Use [3, 5,7] and [a b]; (1, 2)", "Use [7, 5, 3] and [a b]; (1, 2)");
    expect("order", "Which?\n- one\n- two\n  * three\nSay.\n",
           "Which?\n  * three\n- two\n- one\nSay.\n");
    expect("order", "- a\n- b", "- b\n- a");
    expect("order", "open [1, 2\n, 3]", "open [1, 2\n, 3]");
    expect("order", "[]", "[]");
    expect("order", "", "");
}

static void blanks_are_doubled(void **state)
{
    expect("space", "What is  2 + 3?\n x ", "What  is  2  +  3?\n x ");
    expect("space", "word", "word");
}

static void case_changes(void **state)
{
    expect("case", "What is NATO? \xc3\x84", "what is nato? \xc3\x84");
    expect("case", "what is it", "WHAT IS IT");
    expect("case", "2 + 3", "2 + 3");
}

static void numbers_are_written_otherwise(void **state)
{
    expect("digits", "12+7 of 1234 and 1234567.", "012+07 of 1,234 and 1,234,567.");
    expect("digits", "3.14, 1,000, a1, 2nd, x_1, 1/2, 007, 5,",
           "3.14, 1,000, a1, 2nd, x_1, 1/2, 007, 05,");
    expect("digits", "none", "none");
}

/* The user's turns alone; what is not changed is said to be. */
static void prompts_are_perturbed(void **state)
{
    static const char text[] = "[{\"role\": \"system\", \"content\": \"Be Good\"}, {\"role\": "
                               "\"user\", \"content\": [{\"type\": \"Text\", \"text\": \"Hi "
                               "You\"}]}, {\"role\": \"user\", \"content\": \"Go\"}]";
    tp_arena arena;
    const tp_json *messages;
    tp_prompt ret;
    tp_error err = {0};
    assert_int_equal(tp_arena_init(&arena, 1 << 20, &err), TP_OK);
    assert_int_equal(tp_json_parse(&arena, "m", text, strlen(text), NULL, &messages, &err), TP_OK);
    const tp_prompt prompt = {.id = "1", .messages = messages, .text = "Hi You"};
    assert_true(tp_perturb_prompt(tp_perturbation_find("case"), &arena, &prompt, &ret));
    assert_string_equal(tp_json_str(tp_json_get(tp_json_at(ret.messages, 0), "content")),
                        "Be Good");
    const tp_json *part = tp_json_at(tp_json_get(tp_json_at(ret.messages, 1), "content"), 0);
    assert_string_equal(tp_json_str(tp_json_get(part, "type")), "Text");
    assert_string_equal(tp_json_str(tp_json_get(part, "text")), "hi you");
    assert_string_equal(tp_json_str(tp_json_get(tp_json_at(ret.messages, 2), "content")), "go");
    assert_string_equal(tp_json_str(tp_json_get(tp_json_at(ret.messages, 2), "role")), "user");
    assert_string_equal(ret.text, "hi you");
    assert_false(tp_perturb_prompt(tp_perturbation_find("digits"), &arena, &prompt, &ret));
    assert_null(tp_perturbation_find("shape"));
    tp_arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_are_turned),      cmocka_unit_test(blanks_are_doubled),
        cmocka_unit_test(case_changes),          cmocka_unit_test(numbers_are_written_otherwise),
        cmocka_unit_test(prompts_are_perturbed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
