/* test_peaks.c - every loop over a unit and over a cache runs on every level that this machine has,
 * and counts its work. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "base/platform.h"
#include "engine/backend/cpu/peaks.h"

#ifdef TP_ASAN
/* More memory than there is: an error of the caller's, as without the sanitizer. */
__attribute__((visibility("default"))) const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}
#endif

/* Anything a processor can do that others may hold up for long; the figures themselves are nobody's
 * to decide on. */
static void assert_is_a_rate(double v) { assert_true(v > 0 && v < 1e17); }

static void every_level_has_a_unit(void **state)
{
    (void)state;
    static const struct {
        tp_isa isa;
        const char *f32, *bf16;
    } cases[] = {
#if defined(__x86_64__)
        {TP_ISA_PORTABLE, "mulps, addps", "mulps, addps"},
        {TP_ISA_AVX2, "vfmadd231ps ymm", "vfmadd231ps ymm"},
        {TP_ISA_AVX512, "vfmadd231ps zmm", "vfmadd231ps zmm"},
        {TP_ISA_AVX512_BF16, "vfmadd231ps zmm", "vdpbf16ps"},
        {TP_ISA_AMX, "vfmadd231ps zmm", "tdpbf16ps"},
#else
        {TP_ISA_PORTABLE, "vectors of four", "vectors of four"},
#endif
    };
    tp_isa before = tp_cpu_isa();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tp_error err;
        if (tp_cpu_force_isa(cases[i].isa, &err) != TP_OK) {
            print_message("%s: %s\n", tp_isa_name(cases[i].isa), err.message);
            continue;
        }
        for (int threads = 1; threads <= 3; threads++) {
            double f32 = 0, bf16 = 0, read = 0;
            assert_string_equal(tp_cpu_unit_name(TP_DTYPE_F32), cases[i].f32);
            assert_string_equal(tp_cpu_unit_name(TP_DTYPE_BF16), cases[i].bf16);
            assert_int_equal(tp_cpu_unit_peak(TP_DTYPE_F32, threads, 0.002, &f32, &err), TP_OK);
            assert_int_equal(tp_cpu_unit_peak(TP_DTYPE_BF16, threads, 0.002, &bf16, &err), TP_OK);
            /* of 256 KiB of ones the sum is more than a signed number holds */
            assert_int_equal(tp_cpu_read_peak(262144, threads, 0.002, &read, &err), TP_OK);
            assert_int_equal(tp_cpu_read_peak(16384, threads, 0.002, &read, &err), TP_OK);
            assert_is_a_rate(f32);
            assert_is_a_rate(bf16);
            assert_is_a_rate(read);
        }
    }
    tp_error err;
    assert_int_equal(tp_cpu_force_isa(before, &err), TP_OK);
}

static void memory_that_is_not_there_is_an_error(void **state)
{
    (void)state;
    double read = -1;
    tp_error err;
    assert_int_equal(tp_cpu_read_peak(SIZE_MAX / 4, 2, 0.002, &read, &err), TP_ERR_NOMEM);
    assert_string_equal(err.message, "no memory or no thread to measure 2 threads with");
    assert_true(read == -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_level_has_a_unit),
        cmocka_unit_test(memory_that_is_not_there_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
