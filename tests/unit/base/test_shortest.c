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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_numbers),
        cmocka_unit_test(others_are_left_to_the_long_way),
        cmocka_unit_test(random_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
