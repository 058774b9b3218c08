/* test_self_test.c - the cases that a level of instruction sets computes before it is used leave
 * out no kernel of that level. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/backend/cpu/self_test.h"
#include "engine/device/device_backend.h"

/* Kernels of binary16 are the same source as those of bf16, with other conversions. */
static bool is_proved(const tp_kernel *kernel)
{
    size_t n = strlen(kernel->name);
    bool is_f16 = n > 4 && strcmp(kernel->name + n - 4, "_f16") == 0;
    return !kernel->is_always_usable && kernel->isa > TP_ISA_PORTABLE && !is_f16;
}

static void every_kernel_has_a_case(void **state)
{
    (void)state;
    tp_self_test *test = tp_self_test_open();
    int proved = 0, missing = 0;
    assert_non_null(test);
    for (const tp_kernel *const *k = tp_backend_cpu.kernels; *k; k++) {
        if (!is_proved(*k))
            continue;
        proved++;
        if (tp_self_test_covers(test, *k))
            continue;
        missing++;
        print_message("no case of self_test.def is taken by %s\n", (*k)->name);
    }
    tp_self_test_close(test);
    assert_int_equal(missing, 0);
    assert_true(proved > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_kernel_has_a_case)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
