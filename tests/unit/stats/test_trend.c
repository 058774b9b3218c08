/* test_trend.c - the median of very many slopes against all of them made and sorted, and what the
 * search for it costs. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/rng.h"
#include "stats/changepoint.h"
#include "stats/descriptive.h"
#include "stats/trend.h"

enum { N = 2600 }; /* more than the search makes itself */

typedef double series(tp_rng *rng, size_t i);

static double noisy(tp_rng *rng, size_t i) { return tp_rng_uniform(rng) + 1e-4 * (double)i; }
static double digits(tp_rng *rng, size_t i) { return i % 7 ? (double)tp_rng_below(rng, 10) : 3; }
static double line(tp_rng *rng, size_t i)
{
    (void)rng;
    return 0.25 * (double)i;
}
static double steps(tp_rng *rng, size_t i)
{
    return 1e5 * (double)(i / 100) + (tp_rng_below(rng, 2) ? 1e9 : 0);
}
static double heavy(tp_rng *rng, size_t i) { return pow(tp_rng_uniform(rng), -3) - (double)i; }

/* Every slope, in order; returns how many. */
static size_t all_slopes(const double *x, const double *y, size_t n, double *ret)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = i + 1; j < n; j++) {
            double dx = x ? x[j] - x[i] : (double)(j - i);
            if (dx > 0 || dx < 0)
                ret[count++] = (y[j] - y[i]) / dx;
        }
    tp_sort(ret, count);
    return count;
}

static void close_to(double a, double wanted)
{
    if (!(fabs(a - wanted) <= 1e-12 * fabs(wanted)))
        fail_msg("%.17g is not %.17g", a, wanted);
}

static void compare_with_all(series *make, bool with_x)
{
    static double x[N], y[N];
    tp_rng rng = tp_rng_make(7, 1);
    tp_theil_sen_result r;
    double *slopes = malloc((size_t)N * N * sizeof *slopes);
    assert_non_null(slopes);
    for (size_t i = 0; i < N; i++) {
        x[i] = (double)tp_rng_below(&rng, N / 2); /* many places twice, in no order */
        y[i] = make(&rng, i);
    }
    size_t n = all_slopes(with_x ? x : NULL, y, N, slopes);
    assert_int_equal(tp_theil_sen(with_x ? x : NULL, y, N, 0.95, &r, NULL), TP_OK);
    assert_int_equal(r.n_pairs, n);
    double median = n % 2 ? slopes[n / 2] : 0.5 * slopes[n / 2] + 0.5 * slopes[n / 2 - 1];
    close_to(r.slope, median);
    close_to(r.lo, slopes[r.rank_lo]);
    close_to(r.hi, slopes[r.rank_hi]);
    free(slopes);
}

static void the_slope_is_the_median_of_all(void **state)
{
    series *made[] = {noisy, digits, line, steps, heavy};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
        compare_with_all(made[i], false);
        compare_with_all(made[i], true);
    }
}

/* A count of all slopes is a sort: a search that needs many makes ten million values wait for
 * minutes. */
static void a_search_needs_few_counts(void **state)
{
    const size_t many = 300000;
    series *made[] = {noisy, digits, heavy};
    double *y = calloc(many, sizeof *y);
    assert_non_null(y);
    for (size_t k = 0; k < sizeof made / sizeof *made; k++) {
        tp_rng rng = tp_rng_make(3, k);
        tp_theil_sen_result r;
        for (size_t i = 0; i < many; i++)
            y[i] = made[k](&rng, i);
        assert_int_equal(tp_theil_sen(NULL, y, many, 0.95, &r, NULL), TP_OK);
        if (r.n_counted > 24)
            fail_msg("series %zu: %zu counts", k, r.n_counted);
    }
    free(y);
}

static void extreme_values_have_a_trend(void **state)
{
    static double y[N];
    tp_theil_sen_result r;
    for (size_t i = 0; i < N; i++)
        y[i] = i % 3 == 0 ? -1e308 : i % 3 == 1 ? 1e308 : 0;
    assert_int_equal(tp_theil_sen(NULL, y, N, 0.95, &r, NULL), TP_OK);
    assert_true(r.slope <= 1e308 && r.slope >= -1e308);
}

/* A slope that is rounding and not 0 would turn equal residuals into a series that rises, and the
 * correction for autocorrelation into a hundredfold. */
static void equal_values_are_not_autocorrelated(void **state)
{
    enum { FLIPS = 20000 };
    static double y[FLIPS];
    tp_rng rng = tp_rng_make(5, 0);
    tp_mann_kendall_result m;
    tp_theil_sen_result r;
    for (size_t i = 0; i < FLIPS; i++)
        y[i] = (double)tp_rng_below(&rng, 2);
    assert_int_equal(tp_trend_of(NULL, y, FLIPS, 0.95, &m, &r, NULL), TP_OK);
    close_to(r.slope, 0);
    close_to(r.lo, 0);
    close_to(r.hi, 0);
    if (!(m.correction > 0.5 && m.correction < 2))
        fail_msg("the correction is %g", m.correction);
}

/* Of values that follow one another the interval holds the slope, 0, no less often than the test
 * keeps silent; the plain one, as scipy has it, stays beside it. */
static void the_interval_of_a_slope_is_that_of_its_test(void **state)
{
    enum { LENGTH = 60, SERIES = 300 };
    double y[LENGTH];
    int wider = 0;
    tp_rng rng = tp_rng_make(11, 0);
    for (int k = 0; k < SERIES; k++) {
        tp_mann_kendall_result m;
        tp_theil_sen_result r, plain;
        for (int i = -20; i < LENGTH; i++)
            y[i < 0 ? 0 : i] =
                (i > -20 ? 0.6 * y[i <= 0 ? 0 : i - 1] : 0) + tp_rng_uniform(&rng) - 0.5;
        assert_int_equal(tp_trend_of(NULL, y, LENGTH, 0.95, &m, &r, NULL), TP_OK);
        assert_int_equal(tp_theil_sen(NULL, y, LENGTH, 0.95, &plain, NULL), TP_OK);
        close_to(r.lo, plain.lo);
        close_to(r.hi, plain.hi);
        assert_true(r.corrected_lo <= r.lo && r.corrected_hi >= r.hi);
        wider += r.corrected_hi - r.corrected_lo > r.hi - r.lo;
        bool is_shown = fmax(m.p_two, m.corrected_p_two) < 0.05;
        bool excludes = r.corrected_lo > 0 || r.corrected_hi < 0;
        if (is_shown && !excludes)
            fail_msg("series %d: p = %g, %g to %g", k, m.corrected_p_two, r.corrected_lo,
                     r.corrected_hi);
        if (excludes && !is_shown) /* at the limit only: the test is corrected for continuity */
            assert_true(fmax(m.p_two, m.corrected_p_two) < 0.055);
    }
    assert_true(wider > SERIES / 2);
}

static double about_normal(tp_rng *rng)
{
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += tp_rng_uniform(rng);
    return sum;
}

/* Values that depend on the ones before wander, and permutations find changes in that; steps in
 * independent values do not, however many. */
static void a_series_that_wanders_is_told_from_one_that_changes(void **state)
{
    enum { LENGTH = 120 };
    double walk[LENGTH], steps[LENGTH], lag1;
    tp_changepoint found[LENGTH];
    tp_changepoint_options o = TP_CHANGEPOINT_DEFAULTS;
    tp_rng rng = tp_rng_make(7, 0);
    size_t n;
    for (size_t i = 0; i < LENGTH; i++) {
        walk[i] = (i ? 0.8 * walk[i - 1] : 0) + about_normal(&rng);
        steps[i] = about_normal(&rng) + 4.0 * (double)(i / 30 % 2);
    }
    assert_int_equal(tp_changepoints(walk, LENGTH, &o, found, &n, NULL), TP_OK);
    assert_true(n > 0 && tp_changes_wander(walk, LENGTH, found, n, &lag1));
    assert_int_equal(tp_changepoints(steps, LENGTH, &o, found, &n, NULL), TP_OK);
    assert_true(n == 3 && !tp_changes_wander(steps, LENGTH, found, n, &lag1));
    assert_false(tp_changes_wander(steps, LENGTH, found, 0, &lag1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_slope_is_the_median_of_all),
        cmocka_unit_test(a_search_needs_few_counts),
        cmocka_unit_test(extreme_values_have_a_trend),
        cmocka_unit_test(equal_values_are_not_autocorrelated),
        cmocka_unit_test(the_interval_of_a_slope_is_that_of_its_test),
        cmocka_unit_test(a_series_that_wanders_is_told_from_one_that_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
