/* test_judge_library.c - examples/judge.c, loaded as a user's library would be. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "unit/rl/environment_fixture.h"

static void palindromes(void **state)
{
    fixture f;
    const char *const words[] = {"env.mine.type=library", "env.mine.path=" TP_JUDGE_LIBRARY,
                                 "env.mine.settings={shortest: 3}", NULL};
    if (fixture_open(&f, "mine", words) != TP_OK)
        fail_msg("%s", f.err.message);
    const char *texts[] = {"anna", "otto", "aa", "hanna"};

    tp_rewards r = fixture_score(&f, NULL, NULL, texts, 4);

    const double expected[] = {1, 1, 0, 0};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(r.v[i].status, TP_REWARD_OK);
        assert_true(r.v[i].reward == expected[i]);
        assert_string_equal(r.v[i].answer, texts[i]);
        assert_int_equal(r.v[i].correct, expected[i] == 1 ? TP_CORRECT_YES : TP_CORRECT_NO);
    }
    tp_rewards_release(&r);
    fixture_close(&f);
}

static void a_library_may_refuse(void **state)
{
    fixture f;
    const char *const words[] = {"env.mine={type: library, path: " TP_JUDGE_LIBRARY "}", NULL};
    assert_int_equal(fixture_open(&f, "mine", words), TP_OK);
    tp_prompt prompt = {.id = "x", .text = "?"};
    tp_completion c = {.prompt = &prompt, .text = "ann", .n_text = 3, .is_truncated = true};
    tp_rewards r;
    assert_int_equal(tp_environment_score(f.env, &c, 1, NULL, &r, &f.err), TP_OK);
    assert_int_equal(r.v[0].status, TP_REWARD_REFUSED);
    assert_true(isnan(r.v[0].reward));
    assert_string_equal(r.v[0].why, "half an answer cannot be judged");
    tp_rewards_release(&r);
    fixture_close(&f);
}

static void a_library_without_the_functions(void **state)
{
    fixture f;
    const char *const words[] = {"env.mine={type: library, path: libm.so.6}", NULL};
    assert_int_equal(fixture_open(&f, "mine", words), TP_ERR_FORMAT);
    assert_non_null(strstr(f.err.message, "env.mine: 'libm.so.6' does not export tp_judge_open"));
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(palindromes),
        cmocka_unit_test(a_library_may_refuse),
        cmocka_unit_test(a_library_without_the_functions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
