#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "unit/rl/environment_fixture.h"

#define NO_WORDS ((const char *const[]){NULL})
#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* One row of a table: what an environment says to a text. */
typedef struct {
    const char *truth, *text;
    double reward;
    const char *answer; /* NULL: none */
} sample;

static void expect_samples(const char *name, const char *const *words, const sample *samples,
                           size_t n)
{
    fixture f;
    if (fixture_open(&f, name, words) != TP_OK)
        fail_msg("%s", f.err.message);
    for (size_t i = 0; i < n; i++) {
        const sample *s = &samples[i];
        tp_rewards r = fixture_score(&f, s->truth, NULL, &s->text, 1);
        assert_int_equal(r.n, 1);
        if (r.v[0].status != TP_REWARD_OK)
            fail_msg("'%s': %s", s->text, r.v[0].why);
        if (r.v[0].reward != s->reward)
            fail_msg("'%s' for '%s' is worth %g, not %g", s->text, s->truth, r.v[0].reward,
                     s->reward);
        const char *answer = r.v[0].answer;
        if (!answer != !s->answer || (answer && strcmp(answer, s->answer) != 0))
            fail_msg("'%s': the answer is '%s', not '%s'", s->text, answer ? answer : "(none)",
                     s->answer ? s->answer : "(none)");
        tp_rewards_release(&r);
    }
    fixture_close(&f);
}

static void math_finds_the_answer(void **state)
{
    static const sample samples[] = {
        {"42", "It is 42.", 1, "42"},
        {"42", "It is 41.", 0, "41"},
        {"42", "\\boxed{42}", 1, "42"},
        {"42", "first \\boxed{41}, no, \\boxed{42}", 1, "42"},
        {"42", "\\boxed{42} or perhaps 43", 1, "42"},
        {"42", "\\boxed{x = 42\\text{ km}}", 1, "42"},
        {"42", "\\boxed{42", 1, "42"},
        {"1/2", "\\boxed{\\frac{1}{2}}", 1, "1/2"},
        {"\\frac{1}{2}", "so it is 0.5", 1, "1/2"},
        {"0.5", "\\boxed{50\\%}", 1, "1/2"},
        {"50", "\\boxed{50\\%}", 1, "50"}, /* right answers are one in a vote */
        {"3", "\\boxed{50\\%}", 0, "1/2"},
        {"0", "It is 1/0.", 0, NULL},
        {"0", "It is 1,00.", 0, NULL},
        {"0", "It is 1 000.", 0, "1000"},
        {"1000000", "\\boxed{1.000.000}", 1, "1000000"},
        {"1000", "That makes 1,000 dollars", 1, "1000"},
        {"3\\sqrt{2}", "\\boxed{3 \\sqrt{2}}", 1, "3\\sqrt{2}"},
        {"3\\sqrt{2}", "\\boxed{3\\sqrt{3}}", 0, "3\\sqrt{3}"},
        {"2", "\\boxed{\\sqrt{2}}", 0, "\\sqrt{2}"},
        {"x+1", "\\boxed{x + 1}", 1, "x+1"},
        {"2", "\\boxed{2x+1}", 0, "2x+1"},
        {"11", "\\boxed{11 apples in 2 boxes}", 0, "11applesin2boxes"},
        {"$7 i$", "\\boxed{7}", 0, "7"},
        {"7", "\\boxed{7 i}", 0, "7i"},
        {"$m^{2}$", "\\boxed{2}", 0, "2"},
        {"3s^2", "\\boxed{3}", 0, "3"},
        {"3s^2", "\\boxed{3 s^2}", 1, "3s^2"},
        {"900000000", "\\boxed{900,\\!000,\\!000}", 1, "900000000"},
        {"250", "so the number is $3,\\!250$", 0, "3250"},
        {"0,245", "\\boxed{245}", 0, "245"},
        {"(2,100)", "\\boxed{2100}", 0, "2100"},
        {"(2,100)", "\\boxed{(2, 100)}", 1, "(2,100)"},
        {"34", "\\boxed{3 4}", 0, "3 4"},
        {"12", "\\boxed{1\\,2}", 0, "1 2"},
        {"4530", "\\boxed{45^\\circ 30}", 0, "45 30"},
        {"10000 + x", "\\boxed{10\\,000+x}", 1, "10000+x"},
        {"1234567", "\\boxed{1 234 567}", 1, "1234567"},
        {"9 (apples)", "\\boxed{9}", 1, "9"},
        {"2", "#### 2+3", 0, "2+3"},
        {"11", "<answer>11 apples in 2 boxes</answer>", 1, "11"},
        {"3", "<answer>[3,4]</answer>", 0, "[3,4]"},
        {"-5", "\\boxed{≈-5}", 1, "-5"},
        {"\\text{Tuesday}", "\\boxed{Tuesday}", 1, "tuesday"},
        {"18", "#### 18", 1, "18"},
        {"18", "20 #### 18\nmore 7", 1, "18"},
        {"long story\n#### 18", "18", 1, "18"},
        {"Some \\boxed{7} text", "7", 1, "7"},
        {"42", "<answer>42</answer> 7", 1, "42"},
        {"42", "", 0, NULL},
        {"42", "no idea", 0, NULL},
    };
    expect_samples("math", NO_WORDS, samples, TP_COUNTOF(samples));
    expect_samples("math_default", NO_WORDS, samples, 3);
}

static void math_with_a_tolerance(void **state)
{
    static const sample samples[] = {{"3.14159", "3.1416", 1, "314159/100000"},
                                     {"3.14159", "3.15", 0, "63/20"}};
    expect_samples("math", WORDS("env.math.tolerance=1e-4"), samples, TP_COUNTOF(samples));
}

static void gsm8k_wants_its_marker(void **state)
{
    static const sample samples[] = {
        {"He has 5 + 6 = <<5+6=11>>11.\n#### 11", "5+6 is 11\n#### 11", 1, "11"},
        {"#### 1,100", "#### $1100", 1, "1100"},
        {"#### 11", "#### 11 apples", 1, "11"},
        {"#### 11", "#### 11 apples in 2 boxes", 1, "11"},
        {"#### 11", "#### 11 * 2", 0, "11*2"},
        {"#### 11", "The answer is 11", 0, NULL},
        {"#### 11", "#### 12\n#### 11", 1, "11"},
        {"#### 11", "####", 0, NULL},
    };
    expect_samples("gsm8k", NO_WORDS, samples, TP_COUNTOF(samples));
    static const sample lenient[] = {{"#### 11", "The answer is 11", 1, "11"}};
    expect_samples("gsm8k", WORDS("env.gsm8k.strict=false"), lenient, 1);
}

static void numeric_behind_a_marker(void **state)
{
    static const sample samples[] = {{"7", "Answer: 7\nThat is 8 - 1.", 1, "7"},
                                     {"7", "The last is 7", 1, "7"}};
    expect_samples("numeric",
                   WORDS("env.numeric.marker='Answer:'", "env.numeric.answer_from=marker"), samples,
                   TP_COUNTOF(samples));
}

static void multiple_choice(void **state)
{
    static const sample samples[] = {{"B", "I think.\nAnswer: B", 1, "B"},
                                     {"B", "Answer: A, no. answer:  B", 1, "B"},
                                     {"B", "**Answer**: B", 1, "B"},
                                     {"B", "Answer\n: B", 1, "B"},
                                     {"B", "Answer: $\\boxed{B}$", 1, "B"},
                                     {"B", "Answer: \\text{B}", 1, "B"},
                                     {"B", "Answer: \\(\\mathrm{B}\\)", 1, "B"},
                                     {"**B**", "Answer: B", 1, "B"},
                                     {"b", "Answer: b", 1, "b"},
                                     {"B", "Answer: (B)", 0, NULL},
                                     {"B", "Answer:\nB", 0, NULL},
                                     {"B", "Answer: b", 0, NULL},
                                     {"B", "Answer: C", 0, "C"},
                                     {"B", "B", 0, NULL}};
    expect_samples("math", WORDS("env.math.verifier_type=english_multichoice"), samples,
                   TP_COUNTOF(samples));
}

static void an_expected_choice_is_a_letter(void **state)
{
    static const char *const truths[] = {"(B)", "Paris", "B. Paris", ""};
    fixture f;
    const char *text = "Answer: B";
    assert_int_equal(fixture_open(&f, "math", WORDS("env.math.verifier_type=english_multichoice")),
                     TP_OK);
    for (size_t i = 0; i < TP_COUNTOF(truths); i++) {
        tp_rewards r = fixture_score(&f, truths[i], NULL, &text, 1);
        assert_int_equal(r.v[0].status, TP_REWARD_REFUSED);
        assert_non_null(strstr(r.v[0].why, "is no letter alone"));
        tp_rewards_release(&r);
    }
    fixture_close(&f);
}

static void exact_text(void **state)
{
    static const sample samples[] = {{"Paris", " Paris\n", 1, "Paris"},
                                     {"Paris", "paris", 0, "paris"},
                                     {"Paris", "Paris.", 0, "Paris."}};
    expect_samples("exact", NO_WORDS, samples, TP_COUNTOF(samples));
    static const sample loose[] = {{"New  York", "new york", 1, "new york"}};
    expect_samples("exact", WORDS("env.exact.ignore_case=true", "env.exact.squeeze_spaces=true"),
                   loose, 1);
    static const sample alnum[] = {{"Straße 7", "<answer>STRASSE-7</answer>", 0, "strasse7"},
                                   {"Éa 7!", "<answer>éA-7</answer>", 1, "éa7"},
                                   {"A", "A", 0, NULL}};
    expect_samples("exact_alnum", NO_WORDS, alnum, TP_COUNTOF(alnum));
}

static void format_of_nemo_rl(void **state)
{
    static const sample samples[] = {
        {"", "<think>a</think><answer>b</answer>", 1, NULL},
        {"", "<think>a</think>", 0.25, NULL},
        {"", "<answer>b</answer>", 0.75, NULL},
        {"", "</answer><answer>", 0, NULL},
    };
    expect_samples("format", NO_WORDS, samples, TP_COUNTOF(samples));
}

#define TEN "0123456789"
#define LONG TEN TEN TEN TEN TEN TEN TEN TEN TEN

static void tags_may_be_long(void **state)
{
    static const sample found[] = {
        {"1", "<" LONG "a>1</" LONG "a><" LONG "b>2</" LONG "b>", 1, "1"}};
    expect_samples("exact", WORDS("env.exact.answer_from=tag", "env.exact.tag=" LONG "a"), found,
                   1);
    static const sample form[] = {{"", "<" LONG "a>1</" LONG "a>", 0.25, NULL},
                                  {"", "<" LONG "b>1</" LONG "b>", 0.75, NULL}};
    expect_samples("format",
                   WORDS("env.format.think_tag=" LONG "a", "env.format.answer_tag=" LONG "b"), form,
                   2);
    static const sample tags[] = {{"", "<" LONG "a></" LONG "a><" LONG "b></" LONG "b>", 1, NULL}};
    expect_samples("format", WORDS("env.format.tags=[" LONG "a, " LONG "b]"), tags, 1);
}

static void format_by_tags_and_pattern(void **state)
{
    static const sample tags[] = {
        {"", "<a>1</a> <b>2</b>", 1, NULL},
        {"", "<b>2</b><a>1</a>", 0, NULL},
        {"", "<a>1</a><a>1</a><b>2</b>", 0, NULL},
        {"", "<a>1<b>2</b></a>", 0, NULL},
    };
    expect_samples("format", WORDS("env.format.tags=[a, b]"), tags, TP_COUNTOF(tags));
    static const sample pattern[] = {{"", "x 12 y", 1, NULL}, {"", "x y", 0, NULL}};
    expect_samples("format", WORDS("env.format.pattern=\"\\\\d+\""), pattern, 2);
    static const sample whole[] = {{"", "12", 1, NULL}, {"", "x 12", 0, NULL}};
    expect_samples("format", WORDS("env.format.pattern=\"\\\\d+\"", "env.format.match=whole"),
                   whole, 2);
}

static void a_pattern_without_an_end_is_refused(void **state)
{
    fixture f;
    tp_buf text = {0};
    for (int i = 0; i < 200; i++)
        tp_buf_addc(&text, 'a');
    assert_int_equal(fixture_open(&f, "format", WORDS("env.format.pattern=\"^(a+)+$b\"")), TP_OK);
    tp_buf_addc(&text, 'c');
    const char *texts[] = {tp_buf_str(&text)};

    tp_rewards r = fixture_score(&f, NULL, NULL, texts, 1);

    assert_int_equal(r.n, 1);
    if (r.v[0].status == TP_REWARD_OK)
        assert_true(r.v[0].reward == 0); /* an optimiser may see that nothing can match */
    else
        assert_int_equal(r.v[0].status, TP_REWARD_REFUSED);
    tp_rewards_release(&r);
    tp_buf_release(&text);
    fixture_close(&f);
}

static double length_reward(fixture *f, size_t n_ids)
{
    static const int32_t ids[64];
    tp_prompt prompt = {.id = "x"};
    tp_completion c = {.prompt = &prompt, .text = "", .ids = ids, .n_ids = n_ids};
    tp_rewards r;
    assert_int_equal(tp_environment_score(f->env, &c, 1, NULL, &r, &f->err), TP_OK);
    double reward = r.v[0].reward;
    assert_int_equal(r.v[0].correct, TP_CORRECT_UNKNOWN);
    tp_rewards_release(&r);
    return reward;
}

static void overlong_answers_cost(void **state)
{
    fixture f;
    assert_int_equal(fixture_open(&f, "length",
                                  WORDS("env.length.max_response_length=20",
                                        "env.length.overlong_buffer_length=4",
                                        "env.length.overlong_buffer_penalty=2.0")),
                     TP_OK);
    assert_true(length_reward(&f, 16) == 0);
    assert_true(length_reward(&f, 17) == -0.5);
    assert_true(length_reward(&f, 20) == -2);
    assert_true(length_reward(&f, 40) == -2);
    fixture_close(&f);
}

/* numbers 3 5 7, target 56 = (3+5)*7 */
static const tp_json *countdown_row(tp_arena *arena)
{
    const char *text = "{\"nums\":[3,5,7],\"target\":56}";
    const tp_json *row;
    tp_error err;
    assert_int_equal(tp_json_parse(arena, "row", text, strlen(text), NULL, &row, &err), TP_OK);
    return row;
}

static void countdown_uses_each_number_once(void **state)
{
    static const struct {
        const char *text;
        double reward;
    } samples[] = {
        {"<answer>(3+5)*7</answer>", 1},
        {"<answer> (5 + 3) × 7 = 56 </answer>", 1},
        {"thinking...\n7*(3+5)", 1},
        {"\\boxed{7*(3+5)}", 1},
        {"<answer>7*8</answer>", 0.1},
        {"<answer>(3+5)*7+3-3</answer>", 0.1},
        {"<answer>56</answer>", 0.1},
        {"<answer>3+5+7</answer>", 0.1},
        {"<answer>3/(5-5)</answer>", 0.1},
        {"<answer>nothing</answer>", 0},
        {"", 0},
    };
    fixture f;
    tp_arena arena;
    tp_error err;
    assert_int_equal(tp_arena_init(&arena, 1 << 16, &err), TP_OK);
    const tp_json *row = countdown_row(&arena);
    assert_int_equal(fixture_open(&f, "countdown", WORDS("env.countdown.format_score=0.1")), TP_OK);
    for (size_t i = 0; i < TP_COUNTOF(samples); i++) {
        tp_rewards r = fixture_score(&f, NULL, row, &samples[i].text, 1);
        if (r.v[0].reward != samples[i].reward)
            fail_msg("'%s' is worth %g, not %g", samples[i].text, r.v[0].reward, samples[i].reward);
        assert_int_equal(r.v[0].correct, samples[i].reward == 1 ? TP_CORRECT_YES : TP_CORRECT_NO);
        tp_rewards_release(&r);
    }
    tp_arena_release(&arena);
    fixture_close(&f);
}

static void a_missing_truth_is_no_zero(void **state)
{
    static const char *const names[] = {"math",  "gsm8k",     "numeric",
                                        "exact", "countdown", "arithmetic"};
    for (size_t i = 0; i < TP_COUNTOF(names); i++) {
        fixture f;
        const char *texts[] = {"42"};
        assert_int_equal(fixture_open(&f, names[i], NO_WORDS), TP_OK);
        tp_rewards r = fixture_score(&f, NULL, NULL, texts, 1);
        assert_int_equal(r.n, 1);
        assert_int_equal(r.v[0].status, TP_REWARD_REFUSED);
        assert_true(isnan(r.v[0].reward));
        assert_non_null(strstr(r.v[0].why, "test:1"));
        assert_int_equal(r.counts[TP_REWARD_REFUSED], 1);
        tp_rewards_release(&r);
        fixture_close(&f);
    }
}

static void weights_are_shares(void **state)
{
    fixture f;
    const char *texts[] = {"<think>x</think><answer>42</answer>", "<answer>42</answer>",
                           "<think>x</think><answer>41</answer>", "42"};
    const double expected[] = {1, 0.8 + 0.2 * 0.75, 0.2, 0};
    const char *functions = "env.mine.reward_functions=[{name: format, weight: 1}, "
                            "{name: math_expr, weight: 4}]";
    if (fixture_open(&f, "mine", WORDS(functions)) != TP_OK)
        fail_msg("%s", f.err.message);

    tp_rewards r = fixture_score(&f, "42", NULL, texts, 4);

    assert_int_equal(r.n, 4);
    for (int i = 0; i < 4; i++) {
        assert_true(fabs(r.v[i].reward - expected[i]) < 1e-12);
        assert_int_equal(r.v[i].correct, i < 2 ? TP_CORRECT_YES : TP_CORRECT_NO);
        assert_int_equal(r.v[i].n_parts, 2);
        assert_string_equal(r.v[i].parts[0].name, "format");
        assert_string_equal(r.v[i].parts[1].name, "math_expr");
    }
    assert_true(r.v[1].parts[0].value == 0.75);
    assert_string_equal(r.v[0].answer, "42");
    tp_rewards_release(&r);
    fixture_close(&f);
}

static void a_plain_sum(void **state)
{
    fixture f;
    const char *texts[] = {"42"};
    const char *functions = "env.mine.reward_functions=[{name: math}, {name: length, per_token: "
                            "-0.25, weight: 2}]";
    assert_int_equal(fixture_open(&f, "mine", WORDS(functions, "env.mine.normalize_weights=false")),
                     TP_OK);
    tp_rewards r = fixture_score(&f, "42", NULL, texts, 1);
    assert_true(r.v[0].reward == 1 - 2 * 0.25 * 2);
    assert_int_equal(r.v[0].correct, TP_CORRECT_YES);
    tp_rewards_release(&r);
    fixture_close(&f);
}

static void a_sum_without_a_part_is_excluded(void **state)
{
    fixture f;
    const char *texts[] = {"<answer>42</answer>"};
    const char *functions = "env.mine.reward_functions=[{name: format}, {name: math}]";
    assert_int_equal(fixture_open(&f, "mine", WORDS(functions)), TP_OK);
    tp_rewards r = fixture_score(&f, NULL, NULL, texts, 1);
    assert_int_equal(r.v[0].status, TP_REWARD_REFUSED);
    assert_true(isnan(r.v[0].reward));
    assert_non_null(strstr(r.v[0].why, "math: test:1 has no expected answer"));
    tp_rewards_release(&r);
    fixture_close(&f);
}

static void expect_refusal(const char *name, const char *const *words, const char *message)
{
    fixture f;
    assert_int_not_equal(fixture_open(&f, name, words), TP_OK);
    if (!strstr(f.err.message, message))
        fail_msg("'%s' does not say '%s'", f.err.message, message);
    fixture_close(&f);
}

static void configuration_errors_name_the_place(void **state)
{
    expect_refusal("maths", NO_WORDS,
                   "env.maths: there is no environment \"maths\"; there are math");
    expect_refusal("mine", WORDS("env.mine.type=maths"), "there is no environment \"maths\"");
    expect_refusal(
        "math", WORDS("env.math.tolerence=1"),
        "command line: unknown key env.math.tolerence; did you mean env.math.tolerance?");
    expect_refusal("math", WORDS("env.math.tolerance=wide"),
                   "command line: env.math.tolerance: \"wide\" is not a number");
    expect_refusal("math", WORDS("env.math.answer_from=there"), "is not one of auto, boxed");
    expect_refusal("math", WORDS("env.math=7"), "expected a section");
    expect_refusal("format", WORDS("env.format.pattern='(('"), "format: pattern \"((\"");
    expect_refusal("mine", WORDS("env.mine.reward_functions=[]"), "must be a list");
    expect_refusal("mine", WORDS("env.mine.reward_functions=[{weight: 1}]"), "needs a name");
    expect_refusal("mine",
                   WORDS("env.mine.reward_functions=[{name: math, weight: 1}, {name: format, "
                         "weight: -1}]"),
                   "the weights add up to 0");
    expect_refusal("program", NO_WORDS, "command: must be set");
    expect_refusal("program", WORDS("env.program.command=[/nonexistent/judge]"),
                   "cannot run '/nonexistent/judge': No such file or directory");
    expect_refusal("library", WORDS("env.library.path=/nonexistent.so"), "/nonexistent.so");
}

static void which_environment_is_meant(void **state)
{
    fixture f;
    char name[TP_ENVIRONMENT_NAME];
    assert_int_equal(fixture_config(&f, WORDS("env.math={}")), TP_OK);
    assert_int_equal(tp_environment_choose(f.config, NULL, NULL, "data.env_name", name, &f.err),
                     TP_OK);
    assert_string_equal(name, "math");
    assert_int_equal(tp_environment_choose(f.config, "exact", NULL, "data.env_name", name, &f.err),
                     TP_OK);
    assert_string_equal(name, "exact");
    fixture_close(&f);

    assert_int_equal(fixture_config(&f, NO_WORDS), TP_OK);
    assert_int_equal(
        tp_environment_choose(f.config, NULL, "arithmetic", "data.env_name", name, &f.err), TP_OK);
    assert_string_equal(name, "arithmetic");
    assert_int_equal(tp_environment_choose(f.config, NULL, "gsm8k", "data.env_name", name, &f.err),
                     TP_ERR_CONFIG);
    fixture_close(&f);

    assert_int_equal(fixture_config(&f, WORDS("env={math: {}, exact: {}}")), TP_OK);
    assert_int_equal(tp_environment_choose(f.config, NULL, NULL, "data.env_name", name, &f.err),
                     TP_ERR_CONFIG);
    assert_non_null(strstr(f.err.message, "env has 2 environments; name the one that judges with "
                                          "data.env_name"));
    fixture_close(&f);
}

/* Verdicts do not depend on how many threads give them. */
static void threads_change_nothing(void **state)
{
    enum { N = 500 };
    static char texts[N][32];
    tp_prompt prompt = {.id = "x", .truth = "250"};
    tp_completion completions[N];
    for (int i = 0; i < N; i++) {
        snprintf(texts[i], sizeof texts[i], "it is %d", i);
        completions[i] =
            (tp_completion){.prompt = &prompt, .text = texts[i], .n_text = strlen(texts[i])};
    }
    fixture f;
    tp_pool *pool;
    tp_rewards alone, together;
    assert_int_equal(fixture_open(&f, "math", NO_WORDS), TP_OK);
    assert_int_equal(tp_pool_create(&pool, 3, &f.err), TP_OK);
    assert_int_equal(tp_environment_score(f.env, completions, N, NULL, &alone, &f.err), TP_OK);
    assert_int_equal(tp_environment_score(f.env, completions, N, pool, &together, &f.err), TP_OK);
    assert_int_equal(alone.counts[TP_REWARD_OK], N);
    for (int i = 0; i < N; i++) {
        assert_true(alone.v[i].reward == (i == 250));
        assert_true(alone.v[i].reward == together.v[i].reward);
        assert_string_equal(alone.v[i].answer, together.v[i].answer);
    }
    tp_rewards_release(&alone);
    tp_rewards_release(&together);
    tp_pool_free(pool);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(math_finds_the_answer),
        cmocka_unit_test(math_with_a_tolerance),
        cmocka_unit_test(gsm8k_wants_its_marker),
        cmocka_unit_test(numeric_behind_a_marker),
        cmocka_unit_test(multiple_choice),
        cmocka_unit_test(an_expected_choice_is_a_letter),
        cmocka_unit_test(exact_text),
        cmocka_unit_test(format_of_nemo_rl),
        cmocka_unit_test(tags_may_be_long),
        cmocka_unit_test(format_by_tags_and_pattern),
        cmocka_unit_test(a_pattern_without_an_end_is_refused),
        cmocka_unit_test(overlong_answers_cost),
        cmocka_unit_test(countdown_uses_each_number_once),
        cmocka_unit_test(a_missing_truth_is_no_zero),
        cmocka_unit_test(weights_are_shares),
        cmocka_unit_test(a_plain_sum),
        cmocka_unit_test(a_sum_without_a_part_is_excluded),
        cmocka_unit_test(configuration_errors_name_the_place),
        cmocka_unit_test(which_environment_is_meant),
        cmocka_unit_test(threads_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
