#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "instrument/analyze/periods.h"

static tp_periods set(const int64_t *ends, size_t n)
{
    tp_periods s = {0};
    for (size_t i = 0; i + 1 < n; i += 2)
        tp_periods_add(&s, ends[i], ends[i + 1]);
    tp_periods_normalize(&s);
    return s;
}

#define SET(...) set((const int64_t[]){__VA_ARGS__}, sizeof((const int64_t[]){__VA_ARGS__}) / 8)

static void expect(const tp_periods *s, const int64_t *ends, size_t n)
{
    assert_int_equal(s->n, n / 2);
    for (size_t i = 0; i < n / 2; i++) {
        assert_int_equal(s->v[i].start, ends[2 * i]);
        assert_int_equal(s->v[i].end, ends[2 * i + 1]);
    }
}

#define EXPECT(s, ...) \
    expect(s, (const int64_t[]){__VA_ARGS__}, sizeof((const int64_t[]){__VA_ARGS__}) / 8)

static void overlapping_and_touching_periods_become_one(void **state)
{
    tp_periods s = SET(10, 20, 0, 5, 20, 25, 15, 18, 4, 7, 30, 30, 9, 8);

    EXPECT(&s, 0, 7, 10, 25);
    assert_int_equal(tp_periods_length(&s), 22);
    tp_periods_release(&s);
}

static void a_set_minus_another_keeps_what_is_left(void **state)
{
    tp_periods a = SET(0, 10, 20, 30, 40, 50), b = SET(-5, 2, 4, 6, 25, 45), left = {0};

    tp_periods_subtract(&a, &b, &left);

    EXPECT(&left, 2, 4, 6, 10, 20, 25, 45, 50);
    assert_int_equal(tp_periods_common(&a, &b), 2 + 2 + 5 + 5);
    tp_periods_release(&a);
    tp_periods_release(&b);
    tp_periods_release(&left);
}

static void union_fills_gaps(void **state)
{
    tp_periods a = SET(0, 10, 20, 30), b = SET(5, 20, 29, 40), any = {0};

    tp_periods_unite(&a, &b, &any);

    EXPECT(&any, 0, 40);
    tp_periods_release(&a);
    tp_periods_release(&b);
    tp_periods_release(&any);
}

static void length_inside_a_window(void **state)
{
    tp_periods s = SET(0, 10, 20, 30, 40, 50);

    assert_int_equal(tp_periods_within(&s, 5, 45), 5 + 10 + 5);
    assert_int_equal(tp_periods_within(&s, 10, 20), 0);
    assert_int_equal(tp_periods_within(&s, 22, 24), 2);
    assert_int_equal(tp_periods_within(&s, 60, 90), 0);
    tp_periods_release(&s);
}

static void what_lies_beyond_is_cut_off(void **state)
{
    tp_periods s = {0};
    tp_periods_add(&s, INT64_MIN, -5);
    tp_periods_add(&s, -1, INT64_MAX);
    tp_periods_normalize(&s);
    assert_int_equal(s.n, 2);
    assert_true(tp_periods_length(&s) == INT64_MAX - 4);
    tp_periods_release(&s);
    tp_periods_extend(&s, -1, INT64_MAX);
    tp_periods_extend(&s, 7, INT64_MAX);
    assert_int_equal(s.n, 1);
    assert_true(tp_periods_length(&s) == INT64_MAX - (INT64_C(1) << 60) + 1);
    tp_periods_release(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(overlapping_and_touching_periods_become_one),
        cmocka_unit_test(a_set_minus_another_keeps_what_is_left),
        cmocka_unit_test(union_fills_gaps), cmocka_unit_test(length_inside_a_window),
        cmocka_unit_test(what_lies_beyond_is_cut_off)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
