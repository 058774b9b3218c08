#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/data/arithmetic.h"

static tp_error err;

static tp_arithmetic make(const tp_arithmetic_options *options, tp_split split, uint64_t index)
{
    tp_arithmetic example;
    tp_arithmetic_make(options, split, index, &example);
    return example;
}

static void examples_are_a_function_of_seed_and_index(void **state)
{
    tp_arithmetic_options options = tp_arithmetic_defaults();
    tp_arithmetic third = make(&options, TP_SPLIT_TRAIN, 3);
    make(&options, TP_SPLIT_TRAIN, 2);
    tp_arithmetic again = make(&options, TP_SPLIT_TRAIN, 3);
    assert_string_equal(again.prompt, third.prompt);
    assert_string_equal(again.answer, third.answer);

    int n_equal = 0;
    options.seed = 1;
    for (uint64_t i = 0; i < 100; i++) {
        options.seed = 0;
        tp_arithmetic a = make(&options, TP_SPLIT_TRAIN, i);
        options.seed = 1;
        tp_arithmetic b = make(&options, TP_SPLIT_TRAIN, i);
        n_equal += strcmp(a.prompt, b.prompt) == 0;
    }
    assert_in_range(n_equal, 0, 10);
}

static void answers_are_right(void **state)
{
    tp_arithmetic_options options = tp_arithmetic_defaults();
    options.operators = "+-*";
    options.digits = 4;
    int seen[3] = {0};
    for (uint64_t i = 0; i < 2000; i++) {
        tp_arithmetic e = make(&options, TP_SPLIT_TRAIN, i);
        char op, *end, *equals = strchr(e.prompt, '=');
        long a = strtol(e.prompt, &end, 10);
        op = *end;
        long b = strtol(end + 1, &end, 10);
        assert_ptr_equal(end, equals);
        assert_string_equal(equals, "=");
        long expected = op == '+' ? a + b : op == '-' ? a - b : a * b;
        assert_int_equal(strtol(e.answer, &end, 10), expected);
        assert_int_equal(*end, 0);
        assert_true(expected >= 0); /* negative differences are off */
        assert_in_range(a, 0, 9999);
        seen[op == '+' ? 0 : op == '-' ? 1 : 2]++;
    }
    for (int k = 0; k < 3; k++)
        assert_in_range(seen[k], 500, 900);
}

static void splits_share_no_question(void **state)
{
    enum { N = 20000 };
    tp_arithmetic_options options = tp_arithmetic_defaults();
    static bool in[TP_SPLITS][2][100][100];
    int held_out = 0;
    for (int split = 0; split < TP_SPLITS; split++)
        for (uint64_t i = 0; i < N; i++) {
            options.seed = split; /* disjoint whatever the seeds */
            tp_arithmetic e = make(&options, (tp_split)split, i);
            in[split][e.operation == '-'][e.a][e.b] = true;
        }
    for (int op = 0; op < 2; op++)
        for (int a = 0; a < 100; a++)
            for (int b = 0; b < 100; b++) {
                assert_false(in[0][op][a][b] && in[1][op][a][b]);
                if (op == 0)
                    assert_false(in[0][op][a][b] && in[1][op][b][a]);
                held_out += op == 0 && a <= b &&
                            tp_arithmetic_split(&options, a, '+', b) == TP_SPLIT_VALIDATION;
            }
    assert_in_range(held_out, 404, 606); /* a tenth of 5050 */
}

static tp_arithmetic find(tp_arithmetic_options *options, int64_t a, char op, int64_t b)
{
    for (uint64_t i = 0; i < 2000000; i++)
        for (int split = 0; split < TP_SPLITS; split++) {
            tp_arithmetic e = make(options, (tp_split)split, i);
            if (e.a == a && e.b == b && e.operation == op)
                return e;
        }
    fail_msg("not found");
    return (tp_arithmetic){0};
}

static void answers_come_in_three_forms(void **state)
{
    tp_arithmetic_options options = tp_arithmetic_defaults();
    options.operators = "*+";
    assert_string_equal(find(&options, 23, '*', 45).answer, "1035");
    options.form = TP_ARITHMETIC_REVERSED;
    assert_string_equal(find(&options, 23, '*', 45).answer, "5301");
    options.form = TP_ARITHMETIC_STEPS;
    assert_string_equal(find(&options, 23, '*', 45).answer, "511+029=5301>1035");
    assert_string_equal(find(&options, 20, '*', 30).answer, "006=006>600");
    assert_string_equal(find(&options, 7, '*', 8).answer, "65>56");
    assert_string_equal(find(&options, 12, '+', 34).answer, "64>46");
    options.operators = "-";
    options.negative = true;
    assert_string_equal(find(&options, 3, '-', 15).answer, "-21>-12");
}

static void stories_hold_the_numbers(void **state)
{
    tp_arithmetic_options options = tp_arithmetic_defaults();
    options.operators = "+-*";
    options.word_problems = 1;
    for (uint64_t i = 0; i < 500; i++) {
        tp_arithmetic e = make(&options, TP_SPLIT_VALIDATION, i);
        char number[24];
        snprintf(number, sizeof number, "%lld ", (long long)e.a);
        assert_non_null(strstr(e.prompt, number));
        assert_null(strchr(e.prompt, '{'));
        assert_string_equal(e.prompt + strlen(e.prompt) - 2, "? ");
    }
    options.word_problems = 0.25;
    int n = 0;
    for (uint64_t i = 0; i < 1000; i++)
        n += strchr(make(&options, TP_SPLIT_TRAIN, i).prompt, '?') != NULL;
    assert_in_range(n, 200, 300);
}

static void nine_digits_fit(void **state)
{
    tp_arithmetic_options options = tp_arithmetic_defaults();
    options.operators = "*";
    options.digits = 9;
    options.form = TP_ARITHMETIC_STEPS;
    size_t longest = 0;
    for (uint64_t i = 0; i < 20000; i++) {
        tp_arithmetic e = make(&options, TP_SPLIT_TRAIN, i);
        size_t n = strlen(e.answer);
        longest = n > longest ? n : longest;
        char result[24];
        snprintf(result, sizeof result, ">%lld", (long long)(e.a * e.b));
        assert_string_equal(strchr(e.answer, '>'), result);
    }
    assert_in_range(longest, 100, 250);
}

static void text_has_one_example_per_line(void **state)
{
    tp_arithmetic_options options = tp_arithmetic_defaults();
    tp_buf text = {0};
    tp_arithmetic_text(&options, 3, &text);
    tp_arithmetic first = make(&options, TP_SPLIT_TRAIN, 0);
    char line[500];
    snprintf(line, sizeof line, "%s%s\n", first.prompt, first.answer);
    assert_memory_equal(text.data, line, strlen(line));
    int lines = 0;
    for (size_t i = 0; i < text.len; i++)
        lines += text.data[i] == '\n';
    assert_int_equal(lines, 3);
    tp_buf_release(&text);
}

static void impossible_options_are_refused(void **state)
{
    tp_arithmetic_options options = tp_arithmetic_defaults();
    assert_int_equal(tp_arithmetic_check(&options, NULL), TP_OK);
    options.operators = "+/";
    assert_int_equal(tp_arithmetic_check(&options, &err), TP_ERR_CONFIG);
    assert_string_equal(err.message,
                        "data.arithmetic.operators is \"+/\"; some of + - * are needed");
    options = tp_arithmetic_defaults();
    options.validation_share = 1e-9;
    assert_int_equal(tp_arithmetic_check(&options, &err), TP_ERR_CONFIG);
    assert_string_equal(err.message, "data.arithmetic has no question for validation; allow more "
                                     "digits or change validation_share");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(examples_are_a_function_of_seed_and_index),
        cmocka_unit_test(answers_are_right),
        cmocka_unit_test(splits_share_no_question),
        cmocka_unit_test(answers_come_in_three_forms),
        cmocka_unit_test(stories_hold_the_numbers),
        cmocka_unit_test(nine_digits_fit),
        cmocka_unit_test(text_has_one_example_per_line),
        cmocka_unit_test(impossible_options_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
