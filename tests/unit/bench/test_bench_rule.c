/* test_bench_rule.c - the rule of comparisons: verdicts, exact figures, when to stop. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "instrument/bench/gate.h"
#include "instrument/bench/order.h"
#include "stats/stats.h"
#include "support/draws.h"

static const tp_metric time_metric = {.name = "time", .unit = "s"};
static const tp_metric speed = {
    .name = "speed", .unit = "tokens/s", .direction = TP_HIGHER_IS_BETTER};
static const tp_metric memory = {.name = "memory", .unit = "bytes", .kind = TP_METRIC_EXACT};
static const tp_rule rule = {.alpha = 0.05, .tolerance = 0.05, .family = 1};
static const char order[] = "ABBAABBABAABBAABABBA";

/* Ten rounds whose differences of logs are these. */
static tp_bench_comparison compare(const tp_rule *r, const tp_metric *metric, const double d[10])
{
    double a[10], b[10];
    tp_bench_comparison c;
    for (int i = 0; i < 10; i++) {
        a[i] = 2;
        b[i] = 2 * exp(d[i]);
    }
    tp_rule_paired(r, metric, a, b, order, 10, &c);
    return c;
}

static void assert_near(double found, double expected, double slack)
{
    if (!(fabs(found - expected) <= slack))
        fail_msg("%.17g is not within %g of %.17g", found, slack, expected);
}

/* With n = 10 and one-sided 0.05 the interval is the second to the ninth value. */
static void the_interval_is_the_second_to_the_ninth_value(void **state)
{
    const double d[10] = {0.07, 0.01, 0.02, 0.09, 0.03, 0.08, 0.04, 0.06, 0.05, 0.1};
    tp_bench_comparison c = compare(&rule, &time_metric, d);

    assert_near(c.lower, 0.02, 1e-12);
    assert_near(c.upper, 0.09, 1e-12);
    assert_near(c.center, 0.055, 1e-12);
    assert_near(c.ratio, exp(0.055), 1e-12);
    assert_near(c.mean, 0.055, 1e-12);
    assert_near(c.hodges_lehmann, 0.055, 1e-12);
    assert_int_equal(c.verdict, TP_BENCH_INCONCLUSIVE);
}

static void beyond_the_tolerance_is_a_regression(void **state)
{
    const double d[10] = {0.02, 0.06, 0.07, 0.06, 0.08, 0.06, 0.07, 0.09, 0.06, 0.3};
    tp_bench_comparison c = compare(&rule, &time_metric, d);

    assert_int_equal(c.verdict, TP_BENCH_REGRESSION);
    assert_int_equal(c.point, TP_BENCH_REGRESSION);
    /* nine of ten rounds above ln 1.05: P(Bin(10, 1/2) >= 9) = 11/1024 */
    assert_near(c.p, 11.0 / 1024, 1e-15);
}

static void a_small_slowdown_is_shown_and_allowed(void **state)
{
    const double d[10] = {0.02, 0.021, 0.02, 0.019, 0.022, 0.02, 0.018, 0.02, 0.021, 0.02};
    assert_int_equal(compare(&rule, &time_metric, d).verdict, TP_BENCH_SLOWER);
}

static void nothing_shown_within_the_tolerance_passes(void **state)
{
    const double d[10] = {0.01, -0.01, 0.01, -0.01, 0.01, -0.01, 0.01, -0.01, 0.01, -0.01};
    assert_int_equal(compare(&rule, &time_metric, d).verdict, TP_BENCH_PASS);
}

static void better_by_more_than_the_tolerance_is_improved(void **state)
{
    const double d[10] = {-0.06, -0.07, -0.06, -0.08, -0.06, -0.07, -0.06, -0.09, -0.06, -0.05};
    assert_int_equal(compare(&rule, &time_metric, d).verdict, TP_BENCH_IMPROVED);
    /* of a speed, the same change is a loss */
    assert_int_equal(compare(&rule, &speed, d).verdict, TP_BENCH_REGRESSION);
}

static void a_difference_below_the_floor_cannot_fail(void **state)
{
    const double d[10] = {0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2};
    tp_metric coarse = time_metric;
    coarse.floor = 1; /* 2 s against 2.44 s */
    tp_bench_comparison c = compare(&rule, &coarse, d);

    assert_int_equal(c.verdict, TP_BENCH_PASS);
    assert_true(c.is_below_floor);
    assert_int_equal(compare(&rule, &time_metric, d).verdict, TP_BENCH_REGRESSION);
}

static void four_rounds_can_show_nothing(void **state)
{
    const double a[] = {1, 1, 1, 1}, b[] = {9, 9, 9, 9};
    tp_bench_comparison c;
    tp_rule_paired(&rule, &time_metric, a, b, order, 4, &c);

    assert_int_equal(c.verdict, TP_BENCH_INCONCLUSIVE);
    assert_string_equal(c.reason, "4 rounds can show nothing at alpha 0.05");
}

static void the_least_rounds_grow_with_the_suite(void **state)
{
    tp_rule r = rule;
    assert_int_equal(tp_rule_least_rounds(&r), 6); /* 2^-5 = 0.031, made even */
    r.family = 20;
    assert_int_equal(tp_rule_least_rounds(&r), 10); /* 2^-9 = 0.00195 <= 0.05 / 20 */
}

static void equal_rounds_are_counted(void **state)
{
    const double d[10] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    tp_bench_comparison c = compare(&rule, &time_metric, d);
    assert_int_equal(c.n_ties, 10);
    assert_int_equal(c.verdict, TP_BENCH_PASS);
}

/* ---- stopping ---- */

static void seven_wins_decide_alone_and_more_are_needed_in_a_suite(void **state)
{
    double a[20], b[20];
    tp_rule r = rule;
    tp_bench_comparison c;
    r.is_sequential = true;
    for (int i = 0; i < 20; i++) {
        a[i] = 1;
        b[i] = 1.2;
    }
    size_t n = 0;
    do
        tp_rule_paired(&r, &time_metric, a, b, order, ++n, &c);
    while (!tp_rule_decided(&r, &c));
    assert_int_equal(n, 7);
    assert_int_equal(c.verdict, TP_BENCH_REGRESSION);

    r.family = 20;
    for (n = 0, c = (tp_bench_comparison){0}; n < 20;) {
        tp_rule_paired(&r, &time_metric, a, b, order, ++n, &c);
        if (tp_rule_decided(&r, &c))
            break;
    }
    assert_int_equal(n, 12); /* 2^13 / 13 = 630 >= 20 / 0.05 > 2^12 / 12 = 341 */
}

/* ---- exact figures ---- */

static void one_byte_more_is_a_regression(void **state)
{
    tp_bench_comparison c;
    tp_rule_exact(&rule, &memory, 1048576, 1048577, &c);
    assert_int_equal(c.verdict, TP_BENCH_REGRESSION);
    tp_rule_exact(&rule, &memory, 1048576, 1048576, &c);
    assert_int_equal(c.verdict, TP_BENCH_PASS);
    tp_rule_exact(&rule, &memory, 1048576, 1048575, &c);
    assert_int_equal(c.verdict, TP_BENCH_IMPROVED);
}

static void exact_figures_have_a_tolerance_of_their_own(void **state)
{
    tp_rule r = rule;
    tp_bench_comparison c;
    r.exact_tolerance = 0.1;
    tp_rule_exact(&r, &memory, 100, 110, &c);
    assert_int_equal(c.verdict, TP_BENCH_SLOWER);
    tp_rule_exact(&r, &memory, 100, 111, &c);
    assert_int_equal(c.verdict, TP_BENCH_REGRESSION);
    tp_rule_exact(&r, &memory, 0, 1, &c);
    assert_int_equal(c.verdict, TP_BENCH_REGRESSION);
}

/* ---- the plain rule ---- */

static void the_plain_rule_is_the_documented_formula(void **state)
{
    assert_int_equal(tp_rule_point(TP_HIGHER_IS_BETTER, 0.05, 1000, 950), TP_BENCH_PASS);
    assert_int_equal(tp_rule_point(TP_HIGHER_IS_BETTER, 0.05, 1000, 949), TP_BENCH_REGRESSION);
    assert_int_equal(tp_rule_point(TP_LOWER_IS_BETTER, 0.05, 1000, 1050), TP_BENCH_PASS);
    assert_int_equal(tp_rule_point(TP_LOWER_IS_BETTER, 0.05, 1000, 1051), TP_BENCH_REGRESSION);
    assert_int_equal(tp_rule_point(TP_HIGHER_IS_BETTER, 0.05, 1000, NAN), TP_BENCH_REGRESSION);
}

/* ---- what cannot be judged ---- */

static void nan_zero_and_short_are_refused_with_the_reason(void **state)
{
    char why[200];
    const double good[] = {1, 2, 3, 4, 5}, nan_value[] = {1, 2, NAN, 4, 5},
                 zero[] = {1, 0, 3, 4, 5};
    assert_true(tp_rule_check(&time_metric, good, 5, 5, why, sizeof why));
    assert_false(tp_rule_check(&time_metric, nan_value, 5, 5, why, sizeof why));
    assert_string_equal(why, "time is NaN in round 3");
    assert_false(tp_rule_check(&time_metric, zero, 5, 5, why, sizeof why));
    assert_string_equal(why, "time is 0 in round 2");
    assert_false(tp_rule_check(&time_metric, good, 4, 5, why, sizeof why));
    assert_string_equal(why, "time has 4 rounds, at least 5 are needed");
    assert_false(tp_rule_check(&time_metric, good, 0, 5, why, sizeof why));
}

static void an_exact_figure_that_varies_is_an_error(void **state)
{
    char why[200];
    const double same[] = {7, 7, 7}, varies[] = {7, 7, 8}, zeros[] = {0, 0};
    assert_true(tp_rule_check(&memory, same, 3, 5, why, sizeof why));
    assert_true(tp_rule_check(&memory, zeros, 2, 5, why, sizeof why));
    assert_false(tp_rule_check(&memory, varies, 3, 5, why, sizeof why));
    assert_string_equal(why, "memory is 7, then 8 in round 3: it should be deterministic");
}

/* ---- stored values ---- */

static void a_stored_level_is_judged_with_the_spread_of_sessions(void **state)
{
    const double b[] = {110, 111, 109, 110, 112, 108, 110, 110};
    tp_bench_comparison c;
    tp_stored_level stored = {.level = 100, .n_sessions = 5, .sd_between = 0.005, .assumed = 0.06};
    tp_rule_baseline(&rule, &time_metric, &stored, b, 8, &c);
    assert_int_equal(c.verdict, TP_BENCH_REGRESSION);
    assert_false(c.is_sd_assumed);
    /* ln 1.1 = 0.0953; of the variance 0.005^2 * 6/5 + sd^2 / 8, with df = 7.82: t = 1.8650 */
    assert_near(c.lower, 0.09531 - 1.8650 * sqrt(0.005 * 0.005 * 1.2 + 0.010867 * 0.010867 / 8),
                1e-5);

    stored.sd_between = NAN;
    tp_rule_baseline(&rule, &time_metric, &stored, b, 8, &c);
    assert_int_equal(c.verdict, TP_BENCH_INCONCLUSIVE);
    assert_true(c.is_sd_assumed);
}

/* Nine of ten sessions lie in the interval, however few the level is of. */
static void a_stored_level_predicts_the_next_session(void **state)
{
    enum { TRIALS = 4000 };
    tp_rng rng = tp_rng_make(3, 0);
    for (size_t k = 3; k <= 10; k += 7) {
        int held = 0;
        for (int i = 0; i < TRIALS; i++) {
            double logs[10], next;
            tp_bench_comparison c;
            for (size_t j = 0; j < k; j++)
                logs[j] = 0.06 * draw_normal(&rng);
            next = exp(0.06 * draw_normal(&rng));
            tp_stored_level stored = {
                .level = exp(tp_mean(logs, k)), .n_sessions = k, .sd_between = tp_sd(logs, k)};
            tp_rule_baseline(&rule, &time_metric, &stored, (const double[]){next, next}, 2, &c);
            held += c.lower <= 0 && c.upper >= 0;
        }
        assert_near((double)held / TRIALS, 0.9, 0.02);
    }
}

static void unpaired_samples_are_labelled(void **state)
{
    const double a[] = {10.0, 10.1, 10.2, 10.05, 10.15, 9.95, 9.9, 10.3};
    const double b[] = {12.0, 12.1, 12.2, 12.05, 12.15, 11.95, 11.9, 12.3};
    tp_bench_comparison c;
    tp_rule_unpaired(&rule, &time_metric, a, 8, b, 8, &c);
    assert_int_equal(c.verdict, TP_BENCH_REGRESSION);
    assert_true(strncmp(c.reason, "unpaired", 8) == 0);
    tp_rule_unpaired(&rule, &time_metric, b, 8, a, 8, &c);
    assert_int_equal(c.verdict, TP_BENCH_IMPROVED);
}

/* Many calm rounds and few wild ones: ranks alone see a shift beyond the tolerance, the means do
 * not. */
static void worse_is_what_ranks_and_means_both_say(void **state)
{
    double a[40], b[8] = {1.06, 1.07, 1.08, 1.09, 1.1, 1.4, 0.7, 1.3};
    tp_mann_whitney_result ranks;
    tp_bench_comparison c;
    for (int i = 0; i < 40; i++)
        a[i] = 1 + 0.0001 * (i % 7);
    for (int i = 0; i < 8; i++)
        b[i] *= 1.02;
    tp_rule_unpaired(&rule, &time_metric, a, 40, b, 8, &c);
    assert_int_equal(tp_mann_whitney(b, 8, a, 40, 0.9, &ranks, NULL), TP_OK);
    assert_true(ranks.shift_ci_approximate.lo > 0.05);
    assert_int_equal(c.verdict, TP_BENCH_INCONCLUSIVE);
    assert_near(c.lower, c.mean_lower, 0);
    assert_true(c.p > 0.05);
}

static void unpaired_rounds_that_resemble_each_other_are_told(void **state)
{
    double a[20], b[20];
    tp_bench_comparison c;
    for (int i = 0; i < 20; i++) {
        a[i] = 1 + 0.01 * (i / 5 % 2);
        b[i] = a[19 - i];
    }
    tp_rule_unpaired(&rule, &time_metric, a, 20, b, 20, &c);
    assert_non_null(strstr(c.reason, "resemble the ones before"));
    assert_true(c.lag1 > 0.5 && c.n_effective < 10);
}

static void one_value_each_shows_nothing(void **state)
{
    tp_bench_comparison c;
    tp_rule_point_only(&rule, &time_metric, 1, 3, &c);
    assert_int_equal(c.verdict, TP_BENCH_INCONCLUSIVE);
    assert_int_equal(c.point, TP_BENCH_REGRESSION);
}

/* ---- the suite ---- */

/* A report of benchmarks, each ten rounds of +8 % or of nothing. */
static void make_report(tp_bench_report *r, const double *slowdowns, size_t n, size_t n_worse)
{
    assert_int_equal(tp_bench_report_init(r, NULL), TP_OK);
    r->rule = rule;
    for (size_t i = 0; i < n; i++) {
        char name[16];
        double a[10], b[10];
        snprintf(name, sizeof name, "b%zu", i);
        for (size_t k = 0; k < 10; k++) {
            a[k] = 1;
            b[k] = k < n_worse ? exp(slowdowns[i]) : 1;
        }
        tp_bench_result *result = tp_bench_report_add(r, name, 1);
        tp_bench_metric *m = &result->metrics[0];
        m->metric = time_metric;
        m->is_compared = true;
        tp_rule_paired(&rule, &time_metric, a, b, order, 10, &m->comparison);
    }
}

static void holm_takes_back_what_chance_explains(void **state)
{
    const double one[] = {0.08}, twenty[20] = {0.08};
    tp_gate_options options = {0};
    tp_bench_report r;
    make_report(&r, one, 1, 9); /* p = 11/1024 = 0.0107 */
    assert_int_equal(tp_gate_settle(&r, NULL), TP_OK);
    assert_int_equal(r.results[0].verdict, TP_BENCH_REGRESSION);
    assert_int_equal(tp_gate_conclude(&r, &options).exit_status, 1);
    tp_bench_report_release(&r);

    make_report(&r, twenty, 20, 9);
    assert_int_equal(tp_gate_settle(&r, NULL), TP_OK);
    assert_int_equal(r.results[0].verdict, TP_BENCH_INCONCLUSIVE);
    assert_near(r.results[0].metrics[0].comparison.p_holm, 20 * 11.0 / 1024, 1e-12);
    assert_int_equal(tp_gate_conclude(&r, &options).exit_status, 0);
    options.strict = true;
    assert_int_equal(tp_gate_conclude(&r, &options).exit_status, 1);
    tp_bench_report_release(&r);

    make_report(&r, twenty, 20, 10); /* p = 2^-10, times 20 = 0.0195 */
    assert_int_equal(tp_gate_settle(&r, NULL), TP_OK);
    assert_int_equal(r.results[0].verdict, TP_BENCH_REGRESSION);
    tp_bench_report_release(&r);
}

static void the_exit_status_says_what_happened(void **state)
{
    static const struct {
        tp_bench_verdict verdict;
        int plain, strict, allowing;
    } cases[] = {
        {TP_BENCH_PASS, 0, 0, 0},       {TP_BENCH_SLOWER, 0, 0, 0},
        {TP_BENCH_IMPROVED, 0, 0, 0},   {TP_BENCH_INCONCLUSIVE, 0, 1, 0},
        {TP_BENCH_REGRESSION, 1, 1, 1}, {TP_BENCH_FAILED, 3, 3, 3},
        {TP_BENCH_MISSING, 1, 1, 0},    {TP_BENCH_NEW, 1, 1, 0},
    };
    tp_bench_report r;
    tp_gate_options plain = {0}, strict = {.strict = true}, allowing = {.allow_missing = true};
    assert_int_equal(tp_bench_report_init(&r, NULL), TP_OK);
    assert_int_equal(tp_gate_conclude(&r, &plain).exit_status, 2); /* nothing matched */
    tp_bench_report_add(&r, "x", 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        r.results[0].verdict = cases[i].verdict;
        assert_int_equal(tp_gate_conclude(&r, &plain).exit_status, cases[i].plain);
        assert_int_equal(tp_gate_conclude(&r, &strict).exit_status, cases[i].strict);
        assert_int_equal(tp_gate_conclude(&r, &allowing).exit_status, cases[i].allowing);
    }
    tp_bench_report_release(&r);
}

static void rounds_come_in_blocks_that_turn_around(void **state)
{
    char text[41] = "";
    size_t first_a = 0;
    for (size_t i = 0; i < 40; i++)
        text[i] = tp_order_first(1, i);
    for (size_t i = 0; i < 40; i += 2)
        assert_int_not_equal(text[i], text[i + 1]);
    for (size_t i = 0; i < 1000; i++)
        first_a += tp_order_first(3, 2 * i) == 'A';
    assert_in_range(first_a, 440, 560);
    assert_string_equal(text, "ABBABABAABABABABABBAABABBABAABBABAABBAAB");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_interval_is_the_second_to_the_ninth_value),
        cmocka_unit_test(beyond_the_tolerance_is_a_regression),
        cmocka_unit_test(a_small_slowdown_is_shown_and_allowed),
        cmocka_unit_test(nothing_shown_within_the_tolerance_passes),
        cmocka_unit_test(better_by_more_than_the_tolerance_is_improved),
        cmocka_unit_test(a_difference_below_the_floor_cannot_fail),
        cmocka_unit_test(four_rounds_can_show_nothing),
        cmocka_unit_test(the_least_rounds_grow_with_the_suite),
        cmocka_unit_test(equal_rounds_are_counted),
        cmocka_unit_test(seven_wins_decide_alone_and_more_are_needed_in_a_suite),
        cmocka_unit_test(one_byte_more_is_a_regression),
        cmocka_unit_test(exact_figures_have_a_tolerance_of_their_own),
        cmocka_unit_test(the_plain_rule_is_the_documented_formula),
        cmocka_unit_test(nan_zero_and_short_are_refused_with_the_reason),
        cmocka_unit_test(an_exact_figure_that_varies_is_an_error),
        cmocka_unit_test(a_stored_level_is_judged_with_the_spread_of_sessions),
        cmocka_unit_test(a_stored_level_predicts_the_next_session),
        cmocka_unit_test(unpaired_samples_are_labelled),
        cmocka_unit_test(worse_is_what_ranks_and_means_both_say),
        cmocka_unit_test(unpaired_rounds_that_resemble_each_other_are_told),
        cmocka_unit_test(one_value_each_shows_nothing),
        cmocka_unit_test(holm_takes_back_what_chance_explains),
        cmocka_unit_test(the_exit_status_says_what_happened),
        cmocka_unit_test(rounds_come_in_blocks_that_turn_around),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
