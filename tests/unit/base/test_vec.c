/* How arrays grow, up to sizes that no machine has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/vec.h"

static void grows_to(size_t size, size_t limit)
{
    size_t cap = 0, steps = 0;
    while (cap < limit) {
        size_t next = tp_vec_next(cap, cap + 1, size);
        assert_true(next > cap);
        assert_true(next <= (cap < 16 ? 16 : 4 * cap));
        cap = next;
        steps++;
    }
    assert_true(steps < 80); /* geometric */
}

static void capacities_grow_beyond_every_machine(void **state)
{
    (void)state;
    grows_to(1, (size_t)1 << 40);
    grows_to(8, (size_t)1 << 40);
    grows_to(48, (size_t)1 << 40);
    assert_int_equal(tp_vec_next(100, 100, 8), 100);
    assert_int_equal(tp_vec_next(0, 1000, 8), 1000);
    assert_int_equal(tp_vec_next(32768, 32769, 8), 4 * 32768);
    assert_int_equal(tp_vec_next((size_t)1 << 32, ((size_t)1 << 32) + 1, 8),
                     ((size_t)1 << 32) + ((size_t)1 << 31));
    /* bytes beyond size_t do not wrap round to a small array */
    assert_true(tp_vec_next((size_t)1 << 61, ((size_t)1 << 61) + 1, 16) > (size_t)1 << 61);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(capacities_grow_beyond_every_machine)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
