#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/rng.h"
#include "support/draws.h"

/* The known answers published with Random123 for philox4x32-10. */
static void philox_gives_the_published_answers(void **state)
{
    static const struct {
        uint64_t key, high, low;
        uint32_t answer[4];
    } cases[] = {
        {0, 0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {UINT64_MAX, UINT64_MAX, UINT64_MAX, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {UINT64_C(0x299f31d0a4093822),
         UINT64_C(0x0370734413198a2e),
         UINT64_C(0x85a308d3243f6a88),
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (int i = 0; i < 3; i++) {
        uint32_t out[4];
        tp_philox(cases[i].key, cases[i].high, cases[i].low, out);
        assert_memory_equal(out, cases[i].answer, sizeof out);
    }
}

static void streams_are_functions_of_seed_stream_and_place(void **state)
{
    tp_rng a = tp_rng_make(7, 3), b = tp_rng_make(7, 3), other = tp_rng_make(7, 4);
    bool differs = false;
    for (int i = 0; i < 100; i++) {
        uint32_t x = tp_rng_u32(&a);
        assert_int_equal(x, tp_rng_u32(&b));
        differs |= x != tp_rng_u32(&other);
    }
    assert_true(differs);

    uint32_t block[4];
    tp_philox(7, 3, 25, block);
    for (int i = 0; i < 4; i++)
        assert_int_equal(tp_rng_u32(&a), block[i]);
}

static void uniform_numbers_are_uniform(void **state)
{
    enum { N = 200000, BINS = 20 };
    tp_rng rng = tp_rng_make(1, 1);
    int bins[BINS] = {0};
    double sum = 0;
    for (int i = 0; i < N; i++) {
        double u = tp_rng_uniform(&rng);
        assert_true(u >= 0 && u < 1);
        bins[(int)(u * BINS)]++;
        sum += u;
    }
    /* chi squared with 19 degrees of freedom exceeds 43.8 once in a thousand times */
    double chi = 0, expected = (double)N / BINS;
    for (int i = 0; i < BINS; i++)
        chi += (bins[i] - expected) * (bins[i] - expected) / expected;
    assert_true(chi < 43.8);
    assert_true(fabs(sum / N - 0.5) < 0.003);
}

static void normal_numbers_have_the_moments(void **state)
{
    enum { N = 200000 };
    tp_rng rng = tp_rng_make(2, 1);
    double sum = 0, squares = 0, fourth = 0;
    for (int i = 0; i < N; i++) {
        double x = draw_normal(&rng);
        sum += x;
        squares += x * x;
        fourth += x * x * x * x;
    }
    assert_true(fabs(sum / N) < 0.01);
    assert_true(fabs(squares / N - 1) < 0.015);
    assert_true(fabs(fourth / N - 3) < 0.1);
}

static void numbers_below_stay_below(void **state)
{
    static const uint64_t limits[] = {1, 2, 3, 10, UINT64_C(1) << 63, UINT64_MAX};
    tp_rng rng = tp_rng_make(3, 1);
    for (int i = 0; i < 6; i++)
        for (int k = 0; k < 1000; k++)
            assert_true(tp_rng_below(&rng, limits[i]) < limits[i]);

    int counts[3] = {0};
    for (int k = 0; k < 30000; k++)
        counts[tp_rng_below(&rng, 3)]++;
    for (int i = 0; i < 3; i++)
        assert_in_range(counts[i], 9700, 10300);
}

static void permutations_hit_everything_once(void **state)
{
    static const uint64_t sizes[] = {1, 2, 3, 4, 5, 16, 17, 63, 64, 65, 1000, 4097};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (uint64_t seed = 0; seed < 5; seed++) {
            bool *hit = calloc(sizes[s], 1);
            assert_non_null(hit);
            for (uint64_t i = 0; i < sizes[s]; i++) {
                uint64_t at = tp_permute(seed, 9, sizes[s], i);
                assert_true(at < sizes[s]);
                assert_false(hit[at]);
                hit[at] = true;
            }
            free(hit);
        }
}

static void permutations_differ_and_mix(void **state)
{
    enum { N = 1000 };
    int same_as_other = 0, fixed = 0;
    double displacement = 0;
    for (uint64_t i = 0; i < N; i++) {
        uint64_t at = tp_permute(1, 1, N, i);
        same_as_other += at == tp_permute(2, 1, N, i);
        same_as_other += at == tp_permute(1, 2, N, i);
        fixed += at == i;
        displacement += fabs((double)at - (double)i);
    }
    /* of two independent shuffles about one element is equal; elements move by N/3 */
    assert_true(same_as_other < 12);
    assert_true(fixed < 8);
    assert_true(fabs(displacement / N - N / 3.0) < 30);
}

static void all_orders_of_three_occur_equally_often(void **state)
{
    int counts[27] = {0};
    for (uint64_t seed = 0; seed < 6000; seed++)
        counts[tp_permute(seed, 0, 3, 0) * 9 + tp_permute(seed, 0, 3, 1) * 3 +
               tp_permute(seed, 0, 3, 2)]++;
    static const int orders[] = {0 * 9 + 1 * 3 + 2, 0 * 9 + 2 * 3 + 1, 1 * 9 + 0 * 3 + 2,
                                 1 * 9 + 2 * 3 + 0, 2 * 9 + 0 * 3 + 1, 2 * 9 + 1 * 3 + 0};
    for (int i = 0; i < 6; i++)
        assert_in_range(counts[orders[i]], 850, 1150);
}

static void huge_permutations_stay_in_range(void **state)
{
    static const uint64_t sizes[] = {UINT64_C(1) << 32, (UINT64_C(1) << 40) + 1,
                                     (UINT64_C(1) << 62) + 12345, UINT64_MAX};
    for (int s = 0; s < 4; s++)
        for (uint64_t i = 0; i < 100; i++)
            assert_true(tp_permute(5, 5, sizes[s], sizes[s] - 1 - i) < sizes[s]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(philox_gives_the_published_answers),
        cmocka_unit_test(streams_are_functions_of_seed_stream_and_place),
        cmocka_unit_test(uniform_numbers_are_uniform),
        cmocka_unit_test(normal_numbers_have_the_moments),
        cmocka_unit_test(numbers_below_stay_below),
        cmocka_unit_test(permutations_hit_everything_once),
        cmocka_unit_test(permutations_differ_and_mix),
        cmocka_unit_test(all_orders_of_three_occur_equally_often),
        cmocka_unit_test(huge_permutations_stay_in_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
