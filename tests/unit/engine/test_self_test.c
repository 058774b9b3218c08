/* test_self_test.c - every level of instruction sets that there is, or that can be emulated, proves
 * each of its kernels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/platform.h"
#include "engine/backend/cpu/self_test.h"

static void every_level_proves_its_kernels(void **state)
{
    (void)state;
    char why[200];
    tp_self_test *test = tp_self_test_open();
    assert_non_null(test);
    for (int isa = 0; isa <= (int)tp_cpu_detect(); isa++)
        if (tp_self_test_run(test, (tp_isa)isa, TP_BREAK_NOTHING, why, sizeof why) !=
            TP_SELF_TEST_PASSED)
            fail_msg("%s: %s", tp_isa_name((tp_isa)isa), why);
    tp_self_test_close(test);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_level_proves_its_kernels)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
