#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/platform.h"
#include "engine/data/bins.h"

enum { MOST = 32 };

/* Bins of units in their order, as sizes say. */
static uint32_t assign(const tp_bins *bins, const int32_t *sizes, uint32_t n, uint32_t *ret_bin)
{
    uint64_t units[MOST];
    uint32_t count[MOST];
    int32_t end[MOST];
    for (uint32_t i = 0; i < n; i++)
        units[i] = tp_bin_unit(sizes[i], i);
    return tp_bins_assign(bins, units, n, ret_bin, end, count);
}

static void check(const tp_bins *bins, const int32_t *sizes, uint32_t n, const uint32_t *expected,
                  uint32_t n_bins)
{
    uint32_t bin[MOST];
    assert_int_equal(assign(bins, sizes, n, bin), n_bins);
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(bin[i], expected[i]);
}

static const int32_t uneven[] = {5, 9, 3, 6, 4};

static void test_first_fit_decreasing(void **state)
{
    const tp_bins bins = {.capacity = 10};
    check(&bins, uneven, 5, (const uint32_t[]){2, 0, 2, 1, 1}, 3);
}

static void test_as_many_for_every_rank(void **state)
{
    const tp_bins two = {.capacity = 10, .ranks = 2}, three = {.capacity = 10, .ranks = 3};
    check(&two, uneven, 5, (const uint32_t[]){2, 0, 3, 1, 3}, 4);
    check(&three, uneven, 5, (const uint32_t[]){2, 0, 1, 1, 2}, 3); /* as few, the emptiest first */
}

static void test_no_more_than_there_are_units(void **state)
{
    const tp_bins four = {.capacity = 10, .ranks = 4};
    check(&four, uneven, 3, (const uint32_t[]){1, 0, 2}, 3);
    check(&four, uneven, 0, NULL, 0);
}

/* Into the emptiest of eight the last ones do not fit; first-fit decreasing leaves seven, of which
 * one gives a unit away. */
static void test_that_do_not_fit_when_spread(void **state)
{
    static const int32_t sizes[] = {15, 15, 14, 14, 14, 14, 13, 12, 11, 11, 10, 10, 9, 9, 8, 8, 8};
    static const uint32_t alone[] = {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 5, 6, 4, 6, 6};
    static const uint32_t shared[] = {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 5, 6, 4, 6, 7};
    const tp_bins one = {.capacity = 30}, two = {.capacity = 30, .ranks = 2};
    check(&one, sizes, TP_COUNTOF(sizes), alone, 7);
    check(&two, sizes, TP_COUNTOF(sizes), shared, 8);
}

static void test_units_of_a_bin(void **state)
{
    static const int32_t sizes[] = {1, 1, 1, 1, 1};
    const tp_bins one = {.capacity = 100, .most = 2},
                  two = {.capacity = 100, .most = 2, .ranks = 2};
    check(&one, sizes, 5, (const uint32_t[]){0, 0, 1, 1, 2}, 3);
    check(&two, sizes, 5, (const uint32_t[]){0, 1, 2, 3, 0}, 4);
}

/* 5 begins at 8, and 12 is not where it ends. */
static void test_alignment(void **state)
{
    static const int32_t sizes[] = {5, 5};
    const tp_bins fits = {.capacity = 13, .align = 8}, not = {.capacity = 12, .align = 8};
    check(&fits, sizes, 2, (const uint32_t[]){0, 0}, 1);
    check(&not, sizes, 2, (const uint32_t[]){0, 1}, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_fit_decreasing),
        cmocka_unit_test(test_as_many_for_every_rank),
        cmocka_unit_test(test_no_more_than_there_are_units),
        cmocka_unit_test(test_that_do_not_fit_when_spread),
        cmocka_unit_test(test_units_of_a_bin),
        cmocka_unit_test(test_alignment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
