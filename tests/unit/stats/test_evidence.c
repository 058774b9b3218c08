/* test_evidence.c - what the oracle does not ask: empty and broken input, undefined
 * results with their reasons, words, threads, large inputs against small ones. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "stats/bootstrap.h"
#include "stats/descriptive.h"
#include "stats/stats.h"
#include "support/draws.h"

#define CLOSE(actual, wanted, tolerance)                                \
    do {                                                                \
        double a_ = (actual), w_ = (wanted);                            \
        if (!(fabs(a_ - w_) <= (tolerance) * (w_ == 0 ? 1 : fabs(w_)))) \
            fail_msg("%s is %.17g, not %.17g", #actual, a_, w_);        \
    } while (0)

static void words_have_cohens_bounds(void **state)
{
    assert_string_equal(tp_effect_word(0.199), "negligible");
    assert_string_equal(tp_effect_word(0.2), "small");
    assert_string_equal(tp_effect_word(-0.5), "medium");
    assert_string_equal(tp_effect_word(0.8), "large");
    assert_string_equal(tp_effect_word(NAN), "unknown");
    assert_string_equal(tp_cliff_word(0.146), "negligible");
    assert_string_equal(tp_cliff_word(-0.474), "large");
}

static void what_is_not_finite_is_refused_by_name(void **state)
{
    const double x[] = {1, NAN, 3};
    tp_description d = {.n = 77};
    tp_error err = {0};
    assert_int_equal(tp_describe(x, 3, 0.95, &d, &err), TP_ERR_ARG);
    assert_non_null(strstr(err.message, "value 2 of x is nan"));
    assert_int_equal(d.n, 77);
    assert_int_equal(tp_describe(x, 1, 1.5, &d, &err), TP_ERR_ARG);
}

static void nothing_is_described_as_nothing(void **state)
{
    tp_description d;
    assert_int_equal(tp_describe(NULL, 0, 0.95, &d, NULL), TP_OK);
    assert_true(isnan(d.mean) && isnan(d.sd) && isnan(d.median));
    assert_string_equal(d.why_spread, "there are no values");
}

static void constant_groups_have_no_t_but_a_delta(void **state)
{
    const double x[] = {5, 5, 5}, y[] = {7, 7, 7};
    tp_t_test t = tp_welch(x, 3, y, 3, 0.95);
    tp_effect e = tp_effect_two(x, 3, y, 3, 0.95);
    tp_mann_whitney_result m;
    assert_true(isnan(t.t) && isnan(t.p.two) && isnan(t.ci.lo) && t.diff == -2);
    assert_non_null(strstr(t.why, "constant"));
    assert_true(isnan(e.d) && isnan(e.g) && e.why);
    assert_int_equal(tp_mann_whitney(x, 3, y, 3, 0.95, &m, NULL), TP_OK);
    assert_true(m.cliffs_delta == -1);
}

static void equivalence_needs_the_interval_inside(void **state)
{
    const double x[] = {10.1, 9.9, 10.0, 10.2, 9.8, 10.0}, y[] = {10.0, 10.1, 9.9, 10.0, 10.1, 9.9};
    tp_t_test t = tp_welch(x, 6, y, 6, 0.90);
    tp_tost_result wide = tp_tost(&t, 0.5), narrow = tp_tost(&t, 0.05);
    assert_true(wide.p < 0.05 && t.ci.lo > -0.5 && t.ci.hi < 0.5);
    assert_true(narrow.p > 0.05 && (t.ci.lo < -0.05 || t.ci.hi > 0.05));
    assert_true(isnan(tp_tost(&t, 0).p));
}

static void exact_interval_of_d_gives_the_tails_back(void **state)
{
    tp_interval ci = tp_ncp_interval(2.5, 18, 0.95);
    CLOSE(tp_nct_sf(2.5, 18, ci.lo), 0.025, 1e-10);
    CLOSE(tp_nct_cdf(2.5, 18, ci.hi), 0.025, 1e-10);
    tp_interval mirror = tp_ncp_interval(-2.5, 18, 0.95);
    CLOSE(mirror.lo, -ci.hi, 1e-10);
}

static void monte_carlo_permutation_never_says_zero(void **state)
{
    double x[30], y[30];
    tp_permutation_result r;
    for (int i = 0; i < 30; i++) {
        x[i] = i;
        y[i] = i + 1000;
    }
    assert_int_equal(tp_permutation_test(x, 30, y, 30, 999, 1, &r, NULL), TP_OK);
    assert_false(r.is_exact);
    CLOSE(r.p.two, 0.001, 1e-12);
    CLOSE(r.p.less, 0.001, 1e-12);
    assert_int_equal(tp_permutation_test(x, 30, y, 30, 0, 1, &r, NULL), TP_OK);
    assert_true(isnan(r.p.two) && r.why);
    assert_int_equal(tp_signflip_test(y, 30, 999, 1, &r, NULL), TP_OK);
    CLOSE(r.p.greater, 0.001, 1e-12);
}

/* 0.1 + 0.2 and 0.3: arrangements that decimals call equal count as equal. */
static void ties_of_decimals_count(void **state)
{
    const double x[] = {0.1, 0.2, 0.6}, y[] = {0.3, 0.5, 0.4}, d[] = {0.1, 0.2, -0.3, 0.7};
    double tenths_x[3], tenths_y[3], tenths_d[4];
    tp_permutation_result r, exact;
    for (int i = 0; i < 3; i++) {
        tenths_x[i] = nearbyint(10 * x[i]);
        tenths_y[i] = nearbyint(10 * y[i]);
    }
    for (int i = 0; i < 4; i++)
        tenths_d[i] = nearbyint(10 * d[i]);
    assert_int_equal(tp_permutation_test(x, 3, y, 3, 0, 1, &r, NULL), TP_OK);
    assert_int_equal(tp_permutation_test(tenths_x, 3, tenths_y, 3, 0, 1, &exact, NULL), TP_OK);
    CLOSE(r.p.two, exact.p.two, 0);

    /* Far from 0 the rounding is that of the values, not that of their differences. */
    const double far_x[] = {99999.9, 100000.3, 99999.9, 100000.2, 100000.9};
    const double far_y[] = {100002.2, 99999.9, 99999.5, 100000.1, 99999.8, 100000.7};
    double whole_x[5], whole_y[6];
    for (int i = 0; i < 6; i++) {
        whole_y[i] = nearbyint(10 * far_y[i]) - 1e6;
        if (i < 5)
            whole_x[i] = nearbyint(10 * far_x[i]) - 1e6;
    }
    assert_int_equal(tp_permutation_test(far_x, 5, far_y, 6, 0, 1, &r, NULL), TP_OK);
    assert_int_equal(tp_permutation_test(whole_x, 5, whole_y, 6, 0, 1, &exact, NULL), TP_OK);
    CLOSE(r.p.two, exact.p.two, 0);
    assert_int_equal(tp_signflip_test(d, 4, 0, 1, &r, NULL), TP_OK);
    assert_int_equal(tp_signflip_test(tenths_d, 4, 0, 1, &exact, NULL), TP_OK);
    CLOSE(r.p.two, exact.p.two, 0);
}

static double plain_median(double *x, size_t n, void *context)
{
    (void)context;
    tp_sort(x, n);
    return tp_median_sorted(x, n);
}

static void fast_median_draws_as_the_slow_one(void **state)
{
    double x[70], y[] = {2, 7, 1, 8, 2, 8, 1};
    tp_bootstrap_options o = {.n_resamples = 500, .seed = 3, .level = 0.95};
    tp_bootstrap_result fast, slow;
    for (size_t i = 0; i < 70; i++) /* with ties */
        x[i] = (double)(i * i * 7 % 31);
    for (size_t n = 1; n <= 70; n++) {
        assert_int_equal(tp_bootstrap(x, n, tp_statistic_median, NULL, &o, &fast, NULL), TP_OK);
        assert_int_equal(tp_bootstrap(x, n, plain_median, NULL, &o, &slow, NULL), TP_OK);
        assert_true(fast.percentile.lo == slow.percentile.lo && fast.mean == slow.mean);
        assert_int_equal(fast.n_equal, slow.n_equal);
        assert_true(fast.a == slow.a || (isnan(fast.a) && isnan(slow.a)));
        assert_true(fast.bca.lo == slow.bca.lo && fast.bca.hi == slow.bca.hi);
    }
    assert_int_equal(tp_bootstrap_two(x, 10, y, 7, tp_statistic_median, NULL, TP_COMBINE_DIFFERENCE,
                                      &o, &fast, NULL),
                     TP_OK);
    assert_int_equal(
        tp_bootstrap_two(x, 10, y, 7, plain_median, NULL, TP_COMBINE_DIFFERENCE, &o, &slow, NULL),
        TP_OK);
    assert_true(fast.percentile.hi == slow.percentile.hi && fast.mean == slow.mean);
    assert_true(fast.a == slow.a);
}

static void huge_and_tiny_values_bootstrap_as_others(void **state)
{
    const double x[] = {1.0, 1.7, 1.2, 1.1, 1.3, 1.5, 1.6};
    const tp_statistic statistics[] = {tp_statistic_mean, tp_statistic_median};
    const int exponents[] = {1023, -1000};
    tp_bootstrap_options o = {.n_resamples = 500, .seed = 3, .level = 0.95};
    tp_bootstrap_result plain, scaled;
    double y[7];
    for (int k = 0; k < 4; k++) {
        int e = exponents[k / 2];
        for (int i = 0; i < 7; i++)
            y[i] = ldexp(x[i], e);
        assert_int_equal(tp_bootstrap(x, 7, statistics[k % 2], NULL, &o, &plain, NULL), TP_OK);
        assert_int_equal(tp_bootstrap(y, 7, statistics[k % 2], NULL, &o, &scaled, NULL), TP_OK);
        assert_true(isfinite(scaled.bca.hi) && !scaled.bca_fallback);
        assert_true(fabs(ldexp(scaled.bca.lo, -e) - plain.bca.lo) < 1e-12);
        assert_true(fabs(ldexp(scaled.bca.hi, -e) - plain.bca.hi) < 1e-12);
        assert_true(fabs(ldexp(scaled.se, -e) - plain.se) < 1e-12);
    }
}

static void bca_says_when_it_falls_back(void **state)
{
    const double x[] = {1, 1, 1, 1};
    tp_bootstrap_options o = {.n_resamples = 100, .seed = 1, .level = 0.95};
    tp_bootstrap_result r;
    assert_int_equal(tp_bootstrap(x, 4, tp_statistic_mean, NULL, &o, &r, NULL), TP_OK);
    assert_non_null(r.bca_fallback);
    assert_true(r.bca.lo == 1 && r.bca.hi == 1 && r.n_equal == 100);
}

static void long_series_agree_with_all_pairs(void **state)
{
    enum { N = 2600 };
    static double x[N], y[N], slopes[N * (N - 1) / 2];
    tp_splitmix s = {4};
    tp_theil_sen_result t;
    size_t at = 0;
    for (int i = 0; i < N; i++) {
        x[i] = floor(draw_uniform(&s) * 700); /* many equal x */
        y[i] = 0.01 * x[i] + floor(draw_uniform(&s) * 8);
    }
    for (int i = 0; i < N; i++)
        for (int j = i + 1; j < N; j++)
            if (x[i] < x[j] || x[i] > x[j])
                slopes[at++] = (y[j] - y[i]) / (x[j] - x[i]);
    tp_sort(slopes, at);
    assert_int_equal(tp_theil_sen(x, y, N, 0.95, &t, NULL), TP_OK);
    assert_int_equal(t.n_pairs, at);
    CLOSE(t.slope, tp_median_sorted(slopes, at), 1e-9);
    CLOSE(t.lo, slopes[t.rank_lo], 1e-9);
    CLOSE(t.hi, slopes[t.rank_hi], 1e-9);
}

static void kendall_counts_as_the_double_loop(void **state)
{
    double x[40], y[40], wanted = 0;
    tp_splitmix s = {8};
    tp_mann_kendall_result r;
    for (int i = 0; i < 40; i++) {
        x[i] = floor(draw_uniform(&s) * 12);
        y[i] = floor(draw_uniform(&s) * 9);
    }
    for (int i = 0; i < 40; i++)
        for (int j = 0; j < i; j++)
            wanted += ((x[i] > x[j]) - (x[i] < x[j])) * ((y[i] > y[j]) - (y[i] < y[j]));
    assert_int_equal(tp_mann_kendall(x, y, 40, 0.05, &r, NULL), TP_OK);
    assert_true(r.s == wanted);
}

static void autocorrelation_takes_evidence_away(void **state)
{
    double y[100];
    tp_splitmix s = {21};
    tp_mann_kendall_result r;
    y[0] = 0;
    for (int i = 1; i < 100; i++)
        y[i] = 0.9 * y[i - 1] + draw_uniform(&s) - 0.5;
    assert_int_equal(tp_mann_kendall(NULL, y, 100, 0.05, &r, NULL), TP_OK);
    assert_true(r.correction > 2);
    assert_true(r.corrected_p_two > r.p_two);
}

static void change_points_are_found_and_none_invented(void **state)
{
    double y[60];
    tp_splitmix s = {2};
    tp_changepoint_options o = TP_CHANGEPOINT_DEFAULTS;
    tp_changepoint found[20];
    size_t n;
    for (int i = 0; i < 60; i++)
        y[i] = 100 + draw_uniform(&s);
    assert_int_equal(tp_changepoints(y, 60, &o, found, &n, NULL), TP_OK);
    assert_int_equal(n, 0);
    for (int i = 20; i < 60; i++)
        y[i] += i < 45 ? 5 : 2;
    assert_int_equal(tp_changepoints(y, 60, &o, found, &n, NULL), TP_OK);
    assert_int_equal(n, 2);
    assert_int_equal(found[0].index, 20);
    assert_int_equal(found[1].index, 45);
    assert_true(found[0].p <= 0.01 && found[0].median_after > found[0].median_before + 4);
    y[7] = 1000; /* one spike is no segment */
    assert_int_equal(tp_changepoints(y, 20, &o, found, &n, NULL), TP_OK);
    assert_int_equal(n, 0);
}

static void lines_and_constants_are_no_decay(void **state)
{
    double y[30];
    tp_decay r;
    for (int t = 0; t < 30; t++)
        y[t] = 5;
    assert_int_equal(tp_fit_decay(NULL, y, 30, &r, NULL), TP_OK);
    assert_true(isnan(r.k) && r.why);
    for (int t = 0; t < 30; t++)
        y[t] = 5 - 0.1 * t;
    assert_int_equal(tp_fit_decay(NULL, y, 30, &r, NULL), TP_OK);
    assert_true(isnan(r.k) && strstr(r.why, "line"));
}

/* Near together first, then far apart, from anywhere: the rate is that of the axis. */
static void a_decay_is_over_its_axis(void **state)
{
    double x[200], y[200];
    tp_decay r;
    for (int i = 0; i < 200; i++) {
        x[i] = 500 + (i < 100 ? 0.02 * i : 2 + 2 * (i - 100));
        y[i] = 1 + 2 * exp(-3 * (x[i] - 500));
    }
    assert_int_equal(tp_fit_decay(x, y, 200, &r, NULL), TP_OK);
    assert_null(r.why);
    assert_true(fabs(r.k - 3) < 1e-6 && fabs(r.c - 1) < 1e-9 && fabs(r.a - 2) < 1e-9);
    for (int i = 0; i < 200; i++)
        y[i] = 300 - x[i];
    assert_int_equal(tp_fit_decay(x, y, 200, &r, NULL), TP_OK);
    assert_true(r.why && strstr(r.why, "line"));
}

static void overfitting_begins_where_the_gap_grows(void **state)
{
    double gap[40];
    size_t onset;
    for (int i = 0; i < 40; i++)
        gap[i] = 0.1 + 0.001 * (i * 7 % 5) + (i > 20 ? 0.02 * (i - 20) : 0);
    assert_int_equal(tp_overfit_onset(gap, 40, 8, 0, 0.01, &onset, NULL), TP_OK);
    assert_in_range(onset, 22, 30);
    assert_int_equal(tp_overfit_onset(gap, 20, 8, 0, 0.01, &onset, NULL), TP_OK);
    assert_int_equal(onset, 20);
}

static void plans_meet_their_power(void **state)
{
    double n = tp_sample_size_paired(0.5, 0.05, 0.8, 2);
    CLOSE(n, 33.36713, 1e-5);
    CLOSE(tp_power_paired(0.5, n, 0.05, 2), 0.8, 1e-9);
    CLOSE(tp_power_two_sample(tp_mde_two_sample(12, 20, 0.05, 0.9, 1), 12, 20, 0.05, 1), 0.9, 1e-9);
    assert_true(isnan(tp_sample_size_two_sample(0, 0.05, 0.8, 2)));
    assert_true(isnan(tp_sample_size_two_sample(0.5, 0.05, 0.01, 2)));
}

static void adjusting_leaves_the_unknown_out(void **state)
{
    const double p[] = {0.01, NAN, 0.04};
    double r[3];
    assert_int_equal(tp_adjust(TP_ADJUST_HOLM, p, 3, r, NULL), TP_OK);
    assert_true(isnan(r[1]));
    CLOSE(r[0], 0.02, 1e-15);
    CLOSE(r[2], 0.04, 1e-15);
    const double bad[] = {1.2};
    assert_int_equal(tp_adjust(TP_ADJUST_BH, bad, 1, r, NULL), TP_ERR_ARG);
}

static void large_samples_have_approximate_intervals(void **state)
{
    static double x[3000], y[2500];
    tp_splitmix s = {77};
    tp_mann_whitney_result m;
    tp_wilcoxon_result w;
    for (int i = 0; i < 3000; i++)
        x[i] = draw_uniform(&s) + 0.25;
    for (int i = 0; i < 2500; i++)
        y[i] = draw_uniform(&s);
    assert_int_equal(tp_mann_whitney(x, 3000, y, 2500, 0.95, &m, NULL), TP_OK);
    assert_true(!m.has_exact && m.why_exact && isnan(m.shift_ci.lo));
    assert_true(fabs(m.shift - 0.25) < 0.03 && m.shift_ci_approximate.lo < m.shift &&
                m.shift_ci_approximate.hi > m.shift);
    assert_int_equal(tp_wilcoxon(x, 3000, 0.95, &w, NULL), TP_OK);
    assert_true(fabs(w.pseudomedian - 0.75) < 0.02 && w.p.greater < 1e-10);
}

static void batches_and_blocks_summarise_in_order(void **state)
{
    const double x[] = {1, 3, 5, 7, 9, 11, 100};
    double means[3], medians[3];
    tp_batch_means(x, 7, 3, means);
    assert_true(means[0] == 2 && means[1] == 6 && means[2] == 10);
    assert_int_equal(tp_block_medians(x, 7, 3, medians, NULL), TP_OK);
    assert_true(medians[0] == 2 && medians[1] == 6 && medians[2] == 11);
    assert_int_equal(tp_block_medians(x, 7, 8, medians, NULL), TP_ERR_ARG);
}

/* Exponential quantiles are skewed (G1 near 2): BCa with many resamples and its closed form agree
 * to a fiftieth of the standard error, where the symmetric interval is off by three times that. */
static void the_closed_form_is_what_bca_tends_to(void **state)
{
    enum { N = 2000 };
    static double x[N];
    tp_description d;
    tp_bootstrap_result r;
    const tp_bootstrap_options o = {.n_resamples = 20000, .seed = 1, .level = 0.95};
    (void)state;
    for (int i = 0; i < N; i++)
        x[i] = -log((i + 0.5) / N);
    assert_int_equal(tp_describe(x, N, 0.95, &d, NULL), TP_OK);
    assert_int_equal(tp_bootstrap(x, N, tp_statistic_mean, NULL, &o, &r, NULL), TP_OK);
    tp_interval closed = tp_skew_interval(&d, 0.95);
    assert_true(fabs(closed.lo - r.bca.lo) < 0.03 * d.sem);
    assert_true(fabs(closed.hi - r.bca.hi) < 0.03 * d.sem);
    assert_true(closed.lo - d.t_ci.lo > 0.05 * d.sem);
    assert_true(closed.hi - d.t_ci.hi > 0.05 * d.sem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_closed_form_is_what_bca_tends_to),
        cmocka_unit_test(words_have_cohens_bounds),
        cmocka_unit_test(what_is_not_finite_is_refused_by_name),
        cmocka_unit_test(nothing_is_described_as_nothing),
        cmocka_unit_test(constant_groups_have_no_t_but_a_delta),
        cmocka_unit_test(equivalence_needs_the_interval_inside),
        cmocka_unit_test(exact_interval_of_d_gives_the_tails_back),
        cmocka_unit_test(monte_carlo_permutation_never_says_zero),
        cmocka_unit_test(ties_of_decimals_count),
        cmocka_unit_test(fast_median_draws_as_the_slow_one),
        cmocka_unit_test(bca_says_when_it_falls_back),
        cmocka_unit_test(huge_and_tiny_values_bootstrap_as_others),
        cmocka_unit_test(long_series_agree_with_all_pairs),
        cmocka_unit_test(kendall_counts_as_the_double_loop),
        cmocka_unit_test(autocorrelation_takes_evidence_away),
        cmocka_unit_test(change_points_are_found_and_none_invented),
        cmocka_unit_test(lines_and_constants_are_no_decay),
        cmocka_unit_test(a_decay_is_over_its_axis),
        cmocka_unit_test(overfitting_begins_where_the_gap_grows),
        cmocka_unit_test(plans_meet_their_power),
        cmocka_unit_test(adjusting_leaves_the_unknown_out),
        cmocka_unit_test(large_samples_have_approximate_intervals),
        cmocka_unit_test(batches_and_blocks_summarise_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
