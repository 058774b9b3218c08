/* test_coverage.c - the simulation in little; `simulate_coverage` runs it in full. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "simulation.h"

static void intervals_hold_what_they_promise(void **state)
{
    assert_int_equal(run_simulation(300, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(intervals_hold_what_they_promise)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
