/* test_shortest.c - the fewest digits of doubles, by exact integers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "text/json/shortest.h"

static void known_numbers(void **state)
{
    static const struct {
        double v;
        uint64_t digits;
        int exponent;
    } known[] = {{0.1, 1, -1},
                 {0.30000000000000004, 30000000000000004, -17},
                 {0.10000000149011612, 10000000149011612, -17},
                 {1.0 / 3, 3333333333333333, -16},
                 {1e-10, 1, -10},
                 {1763600000.25, 176360000025, -2},
                 {9007199254740992, 9007199254740992, 0},
                 {2251799813685248.5, 22517998136852485, -1},
                 {9999999999999998, 9999999999999998, 0},
                 {0x1p-30, 9313225746154785, -25},
                 {2097152.25, 209715225, -2},
                 {8.41, 841, -2},
                 {123456789, 123456789, 0},
                 {1700000000.37, 170000000037, -2},
                 {0x1p52, 4503599627370496, 0},
                 {1e15, 1, 15}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        uint64_t digits;
        int exponent;
        assert_true(tp_shortest_digits(known[i].v, &digits, &exponent));
        assert_int_equal(digits, known[i].digits);
        assert_int_equal(exponent, known[i].exponent);
    }
}

static void others_are_left_to_the_long_way(void **state)
{
    uint64_t digits;
    int exponent;
    assert_false(tp_shortest_digits(0, &digits, &exponent));
    assert_false(tp_shortest_digits(1e16, &digits, &exponent));
    assert_false(tp_shortest_digits(9.9e-11, &digits, &exponent));
    assert_false(tp_shortest_digits(-1, &digits, &exponent));
}

/* They read back, and one digit less does not. */
static void random_numbers(void **state)
{
    uint64_t s = 88172645463325252ULL;
    for (int i = 0; i < 100000; i++) {
        s ^= s << 13;
        s ^= s >> 7;
        s ^= s << 17;
        uint64_t digits, bits = (s & 0xfffffffffffff) | (uint64_t)(990 + s % 86) << 52;
        int exponent;
        double v;
        char text[40], whole[40];
        memcpy(&v, &bits, sizeof v);
        if (!tp_shortest_digits(v, &digits, &exponent))
            continue;
        snprintf(text, sizeof text, "%llue%d", (unsigned long long)digits, exponent);
        assert_true(strtod(text, NULL) == v);
        int n = snprintf(whole, sizeof whole, "%llu", (unsigned long long)digits);
        snprintf(text, sizeof text, "%.*e", n - 2, v);
        assert_true(n < 2 || strtod(text, NULL) != v);
    }
}

/* Of equally short ones the nearest, which printf() finds where it reads back. */
static void nearest_numbers(void **state)
{
    uint64_t s = 88172645463325252ULL;
    for (int i = 0; i < 100000; i++) {
        s ^= s << 13;
        s ^= s >> 7;
        s ^= s << 17;
        /* of a float, a time in microseconds, a whole number, quarters of one */
        const double kinds[] = {(double)((float)(s % 1000003) / 977.0f),
                                1.7e9 + (double)(s % 1000000007) * 1e-6, (double)(s >> 11),
                                (double)(s >> 14) / 4};
        double v = kinds[i % 4];
        uint64_t digits;
        int exponent;
        char ours[40], whole[40], theirs[40];
        if (!tp_shortest_digits(v, &digits, &exponent))
            continue;
        int n = snprintf(whole, sizeof whole, "%llu", (unsigned long long)digits);
        snprintf(theirs, sizeof theirs, "%.*e", n - 1, v);
        snprintf(ours, sizeof ours, "%c%s%se%+03d", whole[0], n > 1 ? "." : "", whole + 1,
                 exponent + n - 1);
        assert_true(digits % 10 != 0);
        if (strtod(theirs, NULL) == v)
            assert_string_equal(ours, theirs);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_numbers),
        cmocka_unit_test(others_are_left_to_the_long_way),
        cmocka_unit_test(random_numbers),
        cmocka_unit_test(nearest_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
