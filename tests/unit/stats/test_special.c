/* test_special.c - distributions where they are hard: far tails, large and tiny
 * parameters, inverses, the edges of the domain.  Values from 50-digit arithmetic. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "stats/special.h"

#define CLOSE(actual, wanted, tolerance)                                \
    do {                                                                \
        double a_ = (actual), w_ = (wanted);                            \
        if (!(fabs(a_ - w_) <= (tolerance) * (w_ == 0 ? 1 : fabs(w_)))) \
            fail_msg("%s is %.17g, not %.17g", #actual, a_, w_);        \
    } while (0)

static void normal_tails_keep_their_digits(void **state)
{
    CLOSE(tp_normal_sf(5), 2.866515718791939e-07, 1e-15);
    CLOSE(tp_normal_sf(37), 5.725571222524577e-300, 1e-13);
    CLOSE(tp_normal_cdf(-12), 1.776482112077679e-33, 1e-14);
    CLOSE(tp_normal_quantile(0.975), 1.9599639845400538, 1e-15);
    CLOSE(tp_normal_isf(1e-300), 37.047096299361199, 1e-14);
    assert_true(tp_normal_quantile(0.5) == 0);
    assert_true(isinf(tp_normal_quantile(1)) && tp_normal_quantile(0) < 0);
    assert_true(isnan(tp_normal_quantile(1.5)));
}

static void t_tails_of_any_degrees_of_freedom(void **state)
{
    CLOSE(tp_t_sf(20, 1), 0.015902251256176374, 1e-15);
    CLOSE(tp_t_isf(0.0005, 1), 636.6192487687196, 1e-14);
    CLOSE(tp_t_isf(0.025, 1e6), 1.9599663568141, 1e-13);
    CLOSE(tp_t_sf(2, 1e13), tp_normal_sf(2), 1e-12);
    CLOSE(tp_t_two_sided(-3, 7.5), 2 * tp_t_sf(3, 7.5), 1e-15);
    assert_true(isnan(tp_t_sf(1, 0)) && isnan(tp_t_sf(NAN, 3)));
    assert_true(tp_t_sf(INFINITY, 3) == 0 && tp_t_sf(0, 3) == 0.5);
}

static void quantiles_invert_tails(void **state)
{
    const double df[] = {0.7, 1, 2.5, 30, 1e4, 3e7};
    const double p[] = {1e-250, 1e-12, 0.01, 0.3, 0.5, 0.9, 0.999999};
    for (size_t i = 0; i < 6; i++)
        for (size_t j = 0; j < 7; j++) {
            if (p[j] > 1e-200)
                CLOSE(tp_t_sf(tp_t_isf(p[j], df[i]), df[i]), p[j], 2e-11);
            if (p[j] > 0.001)
                CLOSE(1 - tp_chi2_sf(tp_chi2_quantile(p[j], df[i]), df[i]), p[j], 1e-9);
            double x = tp_beta_quantile(p[j], 3, df[i]); /* of which F is a function */
            if (p[j] > 1e-200 && df[i] < 1e6)
                CLOSE(tp_f_cdf(x / (1 - x) * df[i] / 3, 6, 2 * df[i]), p[j], 1e-9);
        }
}

static void binomial_tails_are_exact(void **state)
{
    CLOSE(tp_binomial_cdf(1, 10, 0.5), 11 / 1024.0, 1e-15);
    CLOSE(tp_binomial_sf(9, 10, 0.5), 11 / 1024.0, 1e-15);
    assert_true(tp_binomial_cdf(-1, 5, 0.5) == 0 && tp_binomial_cdf(5, 5, 0.5) == 1);
    assert_true(isnan(tp_binomial_cdf(1, -1, 0.5)) && isnan(tp_binomial_cdf(1, 2, 1.5)));
}

static void noncentral_t_in_both_tails(void **state)
{
    CLOSE(tp_nct_cdf(2.0, 10, 1.0), 0.8076115625303752, 1e-14);
    CLOSE(tp_nct_cdf(3.0, 3, 4.0), 0.20747307178781085, 1e-14);
    CLOSE(tp_nct_cdf(2.403850802991773, 3, 7.284588992862858), 0.00027861928905953806, 1e-13);
    CLOSE(tp_nct_cdf(45, 8, 45), 0.43385328555755004, 1e-14); /* a large ncp: the other order */
    CLOSE(tp_nct_cdf(60, 3, 45), 0.63965834041643941, 1e-14);
    CLOSE(tp_nct_sf(-40, 30, -48), 0.059308578238883065, 1e-14);
    CLOSE(tp_nct_cdf(-16.98, 4488, 0), tp_t_cdf(-16.98, 4488), 1e-12);
    CLOSE(tp_nct_sf(2, 10, 1) + tp_nct_cdf(2, 10, 1), 1, 1e-14);
    assert_true(isnan(tp_nct_cdf(1, -1, 0)) && isnan(tp_nct_cdf(1, 3, NAN)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(normal_tails_keep_their_digits),
        cmocka_unit_test(t_tails_of_any_degrees_of_freedom),
        cmocka_unit_test(quantiles_invert_tails),
        cmocka_unit_test(binomial_tails_are_exact),
        cmocka_unit_test(noncentral_t_in_both_tails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
