/* test_advantage.c - from rewards to advantages: NeMo RL's vectors, and its known troubles. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "engine/algorithms/advantage.h"

enum { GRPO, RLOO, DR_GRPO, REINFORCE, RAW };

static void check(const tp_advantage_options *o, size_t n, const double *rewards,
                  const double *want)
{
    bool valid[16];
    double got[16];
    for (size_t i = 0; i < n; i++)
        valid[i] = !isnan(rewards[i]);

    tp_advantage_group(o, rewards, valid, n, got);

    for (size_t i = 0; i < n; i++)
        if (fabs(got[i] - want[i]) > 5e-6)
            fail_msg("advantage %zu is %.8f, not %.8f", i, got[i], want[i]);
}

static void leave_one_out_and_normalised(void **state)
{
    tp_advantage_options o = tp_advantage_of_kind(GRPO, true, true, true);
    check(&o, 4, (double[]){1, 0, 0, 0}, (double[]){1, -.57735, -.57735, -.57735});
    check(&o, 4, (double[]){1, 1, 0, 0}, (double[]){1.1547, 1.1547, -1.1547, -1.1547});
    check(&o, 4, (double[]){1, 1, 1, 0}, (double[]){.57735, .57735, .57735, -1});
    check(&o, 2, (double[]){1, 0}, (double[]){1, -1});
}

static void mean_of_the_group_and_normalised(void **state)
{
    tp_advantage_options o = tp_advantage_of_kind(GRPO, false, true, true);
    check(&o, 4, (double[]){1, 0, 0, 0}, (double[]){1.5, -.5, -.5, -.5});
    check(&o, 4, (double[]){1, 1, 0, 0}, (double[]){.866025, .866025, -.866025, -.866025});
}

static void not_normalised(void **state)
{
    tp_advantage_options o = tp_advantage_of_kind(GRPO, false, false, true);
    check(&o, 4, (double[]){3, 1, 0, 0}, (double[]){2, 0, -1, -1});
    o = tp_advantage_of_kind(RLOO, false, true, true); /* neither choice is RLOO's */
    check(&o, 4, (double[]){3, 1, 0, 0}, (double[]){8.0 / 3, 0, -4.0 / 3, -4.0 / 3});
    o = tp_advantage_of_kind(DR_GRPO, true, true, true);
    check(&o, 4, (double[]){3, 1, 0, 0}, (double[]){2, 0, -1, -1});
    o = tp_advantage_of_kind(RAW, true, false, true);
    check(&o, 3, (double[]){3, -1, 2}, (double[]){3, -1, 2});
}

/* 0.1 + 0.1 + 0.1 is not three times 0.1 in single precision: a spread of 1e-9 must not
 * become an advantage of thousands. */
static void equal_rewards_teach_nothing(void **state)
{
    tp_advantage_options o = tp_advantage_of_kind(GRPO, true, true, true);
    double same[7], zero[7] = {0};
    const double values[] = {0.1, 1.0 / 3, 0.7, 1e6 + 0.1, -0.3, 0};
    for (size_t k = 0; k < sizeof values / sizeof *values; k++) {
        for (size_t i = 0; i < 7; i++)
            same[i] = values[k];
        same[3] = nextafter(values[k], 2e6);
        check(&o, 7, same, zero);
    }
}

/* What a judge says may be of any size: neither a sum nor a square of it overflows. */
static void huge_rewards_have_means_and_spreads(void **state)
{
    tp_advantage_options o = tp_advantage_of_kind(GRPO, true, true, true);
    const double rewards[] = {1e308, 1e308, -1e308, -1e308};
    const bool valid[] = {true, true, true, true};
    check(&o, 4, rewards, (double[]){1.1547, 1.1547, -1.1547, -1.1547});
    o = tp_advantage_of_kind(GRPO, false, true, true);
    check(&o, 4, rewards, (double[]){.866025, .866025, -.866025, -.866025});
    tp_group_stats s = tp_group_summary(rewards, valid, 4, 1e-9);
    assert_true(s.mean == 0 && fabs(s.spread / 1.154700538e308 - 1) < 1e-9);
    assert_true(tp_group_summary(rewards, valid, 2, 1e-9).mean == 1e308);
    double v[] = {1e308, -1e308, 1e308, -1e308}, weights[] = {1, 1, 1, 1};
    tp_advantage_whiten(v, weights, 4);
    assert_true(v[0] == 1 && v[1] == -1 && v[2] == 1 && v[3] == -1);
}

static void samples_without_reward_take_no_part(void **state)
{
    tp_advantage_options o = tp_advantage_of_kind(GRPO, true, true, true);
    check(&o, 6, (double[]){1, NAN, 0, 0, NAN, 0}, (double[]){1, 0, -.57735, -.57735, 0, -.57735});
    check(&o, 3, (double[]){NAN, 5, NAN}, (double[]){0, 0, 0});
    check(&o, 2, (double[]){NAN, NAN}, (double[]){0, 0});
}

static void a_group_is_summarised(void **state)
{
    const double rewards[] = {2, NAN, 4, 6};
    const bool valid[] = {true, false, true, true};
    tp_group_stats s = tp_group_summary(rewards, valid, 4, 1e-9);
    assert_int_equal(s.n_valid, 3);
    assert_true(s.mean == 4 && s.spread == 2 && !s.is_flat);
    s = tp_group_summary(rewards, valid, 2, 1e-9);
    assert_true(s.is_flat && s.mean == 2 && s.spread == 0);
}

static void whitening_looks_at_trained_tokens_only(void **state)
{
    double v[] = {1, 2, 3, 100};
    const double weights[] = {1, 1, 1, 0};
    tp_advantage_whiten(v, weights, 4);
    assert_true(fabs(v[0] + 1.224745) < 1e-6 && fabs(v[1]) < 1e-12 && fabs(v[2] - 1.224745) < 1e-6);
    assert_true(v[3] == 0);
    double same[] = {4, 4};
    tp_advantage_whiten(same, weights, 2); /* the least variance is 1e-8 */
    assert_true(same[0] == 0 && same[1] == 0);
}

static void advantages_are_clipped(void **state)
{
    tp_advantage_options o = tp_advantage_of_kind(GRPO, true, true, true);
    double v[] = {-3, -1, 0, 2};
    tp_advantage_clip(&o, v, 4);
    assert_true(v[0] == -3 && v[3] == 2);
    o.clip_low = -2;
    o.clip_high = 1.5;
    tp_advantage_clip(&o, v, 4);
    assert_true(v[0] == -2 && v[1] == -1 && v[2] == 0 && v[3] == 1.5);
}

static void rewards_are_scaled_and_shaped(void **state)
{
    tp_reward_scaling scaling = {true, 0, 1, -1, 3};
    assert_true(tp_reward_scale(&scaling, 0.5) == 1);
    assert_true(tp_reward_scale(&scaling, 7) == 3);
    assert_true(tp_reward_scale(&scaling, -7) == -1);
    assert_true(isnan(tp_reward_scale(&scaling, NAN)));
    scaling.enabled = false;
    assert_true(tp_reward_scale(&scaling, 7) == 7);

    /* DAPO: free up to 80 of 100 tokens, then down to -1 at 100, and on. */
    tp_reward_shaping shaping = {true, 20, 1, 100, NAN};
    assert_true(tp_reward_shape(&shaping, 1, 80, false) == 1);
    assert_true(fabs(tp_reward_shape(&shaping, 1, 90, false) - 0.5) < 1e-12);
    assert_true(fabs(tp_reward_shape(&shaping, 1, 100, true)) < 1e-12);
    assert_true(fabs(tp_reward_shape(&shaping, 1, 120, true) + 1) < 1e-12);
    shaping.stop_properly_penalty_coef = 0.25;
    assert_true(tp_reward_shape(&shaping, 2, 100, true) == 0.5);
    assert_true(tp_reward_shape(&shaping, 2, 100, false) == 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leave_one_out_and_normalised),
        cmocka_unit_test(mean_of_the_group_and_normalised),
        cmocka_unit_test(not_normalised),
        cmocka_unit_test(equal_rewards_teach_nothing),
        cmocka_unit_test(huge_rewards_have_means_and_spreads),
        cmocka_unit_test(samples_without_reward_take_no_part),
        cmocka_unit_test(a_group_is_summarised),
        cmocka_unit_test(whitening_looks_at_trained_tokens_only),
        cmocka_unit_test(advantages_are_clipped),
        cmocka_unit_test(rewards_are_scaled_and_shaped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
