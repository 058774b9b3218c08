#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/platform.h"
#include "base/rng.h"
#include "engine/reward/countdown.h"

static void expect_result(const char *text, const char *value)
{
    tp_expression e;
    char why[80] = "", got[TP_RATIONAL_TEXT];
    if (!tp_expression_read(tp_slice_of(text), &e, why))
        fail_msg("'%s': %s", text, why);
    if (!e.has_value)
        snprintf(got, sizeof got, "none");
    else
        tp_rational_text(e.value, got);
    if (strcmp(got, value) != 0)
        fail_msg("'%s' is %s, not %s", text, got, value);
}

static void values_of_expressions(void **state)
{
    static const char *const samples[][2] = {
        {"1", "1"},
        {"1+2*3", "7"},
        {"(1+2)*3", "9"},
        {"10-4-3", "3"},
        {"24/4/2", "3"},
        {"8/3", "8/3"},
        {"1/3*3", "1"},
        {"1/3+1/3+1/3", "1"},
        {"2*(3+4)-5/(6-1)", "13"},
        {"-3+5", "2"},
        {"2--3", "5"},
        {"2*-3", "-6"},
        {"-(2+3)*4", "-20"},
        {"+7", "7"},
        {"8/(3-8/3)", "24"},
        {" ( 1 + 2 ) ", "3"},
        {"[1+2]*3", "9"},
        {"3 × 4 ÷ 6 − 1", "1"},
        {"3 \\times 4 \\div 6", "2"},
        {"2 \\cdot 3 = 6", "6"},
        {"1+2=99", "3"},
        {"$5+5$", "10"},
        {"5/0", "none"},
        {"5/(3-3)", "none"},
        {"0/(5/0)", "none"},
    };
    for (size_t i = 0; i < TP_COUNTOF(samples); i++)
        expect_result(samples[i][0], samples[i][1]);
}

static void what_is_no_expression(void **state)
{
    static const char *const samples[] = {
        "",     "=",    "1+",   "+",      "1 2", "(1",     "1)",     "()",
        "1+()", "1**2", "1//2", "2^3",    "a+b", "1.5",    "1,2",    "3!",
        "1+2;", "*3",   "(1+2", "1 + 2)", "5 5", "4(3+2)", "(1)(2)", "1234567890123456"};
    for (size_t i = 0; i < TP_COUNTOF(samples); i++) {
        tp_expression e;
        char why[80] = "";
        if (tp_expression_read(tp_slice_of(samples[i]), &e, why))
            fail_msg("'%s' was read", samples[i]);
        assert_true(why[0]);
    }
}

static void depth_and_length_are_limited(void **state)
{
    tp_buf text = {0};
    tp_expression e;
    char why[80] = "";
    for (int i = 0; i < TP_EXPRESSION_DEPTH + 1; i++)
        tp_buf_addc(&text, '(');
    assert_false(tp_expression_read((tp_slice){text.data, text.len}, &e, why));
    assert_non_null(strstr(why, "nested deeper than 64"));

    tp_buf_clear(&text);
    for (int i = 0; i < TP_EXPRESSION_NUMBERS + 1; i++)
        tp_buf_adds(&text, "1+");
    assert_false(tp_expression_read((tp_slice){text.data, text.len}, &e, why));
    assert_non_null(strstr(why, "more than 64 numbers"));

    tp_buf_clear(&text);
    for (int i = 0; i < 100000; i++)
        tp_buf_addc(&text, '-');
    assert_false(tp_expression_read((tp_slice){text.data, text.len}, &e, why));
    assert_non_null(strstr(why, "operators are open"));
    tp_buf_release(&text);
}

/* An expression drawn at random, with the brackets it needs and some that it does not,
 * beside its value and how tightly it binds. */
typedef struct {
    char text[400];
    tp_rational value;
    bool has_value;
    int level; /* 1: a sum, 2: a product, 3: a number or in brackets */
} drawn;

static void in_brackets(drawn *d)
{
    char text[400];
    snprintf(text, sizeof text, "(%.390s)", d->text);
    memcpy(d->text, text, sizeof text);
    d->level = 3;
}

static drawn draw_number(tp_rng *rng)
{
    drawn d = {.value = {(tp_int128)tp_rng_below(rng, 100), 1}, .has_value = true, .level = 3};
    snprintf(d.text, sizeof d.text, "%d", (int)d.value.num);
    return d;
}

static drawn join(tp_rng *rng, drawn a, drawn b)
{
    char op = "+-*/"[tp_rng_below(rng, 4)];
    int level = op == '*' || op == '/' ? 2 : 1;
    if (a.level < level || tp_rng_below(rng, 8) == 0)
        in_brackets(&a);
    if (b.level < level || (b.level == level && (op == '-' || op == '/')) ||
        tp_rng_below(rng, 8) == 0)
        in_brackets(&b);
    drawn d = {.value = {0, 1}, .has_value = a.has_value && b.has_value, .level = level};
    d.has_value = d.has_value && (op == '+'   ? tp_rational_add(a.value, b.value, &d.value)
                                  : op == '-' ? tp_rational_sub(a.value, b.value, &d.value)
                                  : op == '*' ? tp_rational_mul(a.value, b.value, &d.value)
                                              : tp_rational_div(a.value, b.value, &d.value));
    const char *space = tp_rng_below(rng, 2) ? " " : "";
    snprintf(d.text, sizeof d.text, "%.190s%s%c%s%.190s", a.text, space, op, space, b.text);
    return d;
}

static void random_expressions_have_their_value(void **state)
{
    tp_rng rng = tp_rng_make(3, 1);
    for (int i = 0; i < 3000; i++) {
        drawn parts[6];
        int n = 1 + (int)tp_rng_below(&rng, 6);
        for (int k = 0; k < n; k++)
            parts[k] = draw_number(&rng);
        while (n > 1) {
            int k = (int)tp_rng_below(&rng, (uint64_t)n - 1);
            parts[k] = join(&rng, parts[k], parts[k + 1]);
            memmove(&parts[k + 1], &parts[k + 2], (size_t)(n - k - 2) * sizeof *parts);
            n--;
        }
        tp_expression e;
        char why[80];
        if (!tp_expression_read(tp_slice_of(parts[0].text), &e, why))
            fail_msg("'%s': %s", parts[0].text, why);
        if (e.has_value != parts[0].has_value ||
            (e.has_value && !tp_rational_equal(e.value, parts[0].value)))
            fail_msg("'%s' has another value", parts[0].text);
    }
}

static tp_countdown_options defaults(void)
{
    return (tp_countdown_options){.min_numbers = 3,
                                  .max_numbers = 5,
                                  .max_number = 20,
                                  .max_target = 100,
                                  .operators = "+-*/",
                                  .validation_share = 0.2};
}

static void every_question_has_a_solution(void **state)
{
    tp_countdown_options o = defaults();
    tp_error err = {0};
    assert_int_equal(tp_countdown_check(&o, &err), TP_OK);
    for (int split = 0; split < TP_SPLITS; split++)
        for (uint64_t i = 0; i < 500; i++) {
            tp_countdown q;
            tp_expression e;
            char why[80];
            tp_countdown_make(&o, (tp_split)split, i, &q);
            assert_true(tp_expression_read(tp_slice_of(q.solution), &e, why));
            assert_true(e.has_value);
            assert_true(e.value.num == q.target && e.value.den == 1);
            assert_int_equal(e.n_numbers, q.n_numbers);
            assert_int_equal(tp_countdown_split(&o, &q), split);
            assert_in_range(q.target, 1, 100);
        }
}

static void questions_are_a_function_of_their_index(void **state)
{
    tp_countdown_options o = defaults();
    tp_countdown a, b, c;
    tp_countdown_make(&o, TP_SPLIT_TRAIN, 7, &a);
    tp_countdown_make(&o, TP_SPLIT_TRAIN, 8, &c);
    tp_countdown_make(&o, TP_SPLIT_TRAIN, 7, &b);
    assert_string_equal(a.solution, b.solution);
    assert_string_not_equal(a.solution, c.solution);
    o.seed = 1;
    tp_countdown_make(&o, TP_SPLIT_TRAIN, 7, &b);
    assert_string_not_equal(a.solution, b.solution);
}

static void about_the_share_is_held_out(void **state)
{
    tp_countdown_options o = defaults();
    tp_rng rng = tp_rng_make(5, 0);
    int held = 0;
    for (int i = 0; i < 10000; i++) {
        tp_countdown q = {.n_numbers = 3, .target = (int64_t)tp_rng_below(&rng, 100)};
        for (int k = 0; k < 3; k++)
            q.numbers[k] = (int64_t)tp_rng_below(&rng, 50);
        held += tp_countdown_split(&o, &q) == TP_SPLIT_VALIDATION;
        int64_t t = q.numbers[0];
        q.numbers[0] = q.numbers[2];
        q.numbers[2] = t;
        held -= tp_countdown_split(&o, &q) == TP_SPLIT_VALIDATION;
        held += tp_countdown_split(&o, &q) == TP_SPLIT_VALIDATION;
    }
    assert_in_range(held, 1800, 2200);
}

static void options_are_checked(void **state)
{
    tp_error err = {0};
    tp_countdown_options o = defaults();
    o.operators = "+x";
    assert_int_equal(tp_countdown_check(&o, &err), TP_ERR_CONFIG);
    assert_non_null(strstr(err.message, "data.countdown.operators is \"+x\""));
    o = defaults();
    o.operators = "+";
    o.max_target = 1;
    assert_int_equal(tp_countdown_check(&o, &err), TP_ERR_CONFIG);
    assert_non_null(strstr(err.message, "raise max_number or max_target"));
    o = defaults();
    o.max_numbers = 9;
    assert_int_equal(tp_countdown_check(&o, &err), TP_ERR_CONFIG);
}

static void two_wordings(void **state)
{
    int64_t numbers[] = {3, 5, 7};
    tp_buf text = {0};
    tp_countdown_ask(TP_COUNTDOWN_PLAIN, numbers, 3, 56, &text);
    assert_string_equal(tp_buf_str(&text), "3 5 7=56:");
    tp_buf_clear(&text);
    tp_countdown_ask(TP_COUNTDOWN_INSTRUCT, numbers, 3, 56, &text);
    assert_string_equal(tp_buf_str(&text),
                        "Using each of the numbers 3, 5 and 7 exactly once, with +, -, *, / and "
                        "brackets, write an expression that equals 56. Give the expression "
                        "between <answer> and </answer>.");
    tp_buf_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_of_expressions),
        cmocka_unit_test(what_is_no_expression),
        cmocka_unit_test(depth_and_length_are_limited),
        cmocka_unit_test(random_expressions_have_their_value),
        cmocka_unit_test(every_question_has_a_solution),
        cmocka_unit_test(questions_are_a_function_of_their_index),
        cmocka_unit_test(about_the_share_is_held_out),
        cmocka_unit_test(options_are_checked),
        cmocka_unit_test(two_wordings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
