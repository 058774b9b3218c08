/* test_cpu.c - the level of instruction sets that words of cpuid, XCR0 and Linux make. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cpu.h"

enum {
    FMA = 1 << 12, /* leaf 1 ecx */
    F16C = 1 << 29,
    BMI1 = 1 << 3, /* leaf 7 ebx */
    AVX2 = 1 << 5,
    BMI2 = 1 << 8,
    AVX512_F_DQ = 3 << 16,
    AVX512_BW = 1 << 30,
    AMX_BF16 = 1 << 22, /* leaf 7 edx */
    AMX_TILE = 1 << 24,
    AVX512_BF16 = 1 << 5 /* leaf 7.1 eax */
};
static const unsigned avx512_vl = 1u << 31;

/* A server of 2023: everything, and a system that saves it. */
static tp_cpu_words with_amx(void)
{
    return (tp_cpu_words){.leaf1_ecx = FMA | F16C,
                          .leaf7_ebx =
                              (unsigned)(BMI1 | AVX2 | BMI2 | AVX512_F_DQ | AVX512_BW) | avx512_vl,
                          .leaf7_edx = AMX_BF16 | AMX_TILE,
                          .leaf7_1_eax = AVX512_BF16,
                          .xcr0 = 0x602e7};
}

static int n_asked;

static int lend(void)
{
    n_asked++;
    return 0;
}

static int refuse(void) { return EINVAL; }

static int refuse_small_signal_stack(void) { return ENOSPC; }

static void expect(const tp_cpu_words *w, int (*ask)(void), tp_isa isa, const char *why)
{
    char withheld[128] = "?";
    assert_int_equal(tp_cpu_level(w, ask, withheld, sizeof withheld), isa);
    assert_string_equal(withheld, why);
}

static void amx_is_there_when_linux_lends_tiles(void **state)
{
    tp_cpu_words w = with_amx();
    n_asked = 0;
    expect(&w, lend, TP_ISA_AMX, "");
    assert_int_equal(n_asked, 1);
}

static void a_kernel_that_lends_no_tiles_is_named(void **state)
{
    tp_cpu_words w = with_amx();
    expect(&w, refuse, TP_ISA_AVX512_BF16,
           "the processor has AMX, but the system lends no tiles (Invalid argument)");
}

/* Tiles make a signal's frame larger than 8 KiB; Linux then says ENOSPC. */
static void a_small_signal_stack_is_no_full_disk(void **state)
{
    tp_cpu_words w = with_amx();
    expect(&w, refuse_small_signal_stack, TP_ISA_AVX512_BF16,
           "the processor has AMX, but the system lends no tiles (a thread's signal stack, "
           "sigaltstack(), is too small)");
}

static void state_that_is_not_saved_is_not_used(void **state)
{
    tp_cpu_words w = with_amx();
    n_asked = 0;
    w.xcr0 = 0x2e7; /* a hypervisor or a kernel without tiles */
    expect(&w, lend, TP_ISA_AVX512_BF16,
           "the processor has AMX, but the system does not save its registers");
    w.xcr0 = 0x202e7; /* configuration without data */
    expect(&w, lend, TP_ISA_AVX512_BF16,
           "the processor has AMX, but the system does not save its registers");
    w.xcr0 = 0x7;
    expect(&w, lend, TP_ISA_AVX2,
           "the processor has AVX-512, but the system does not save its registers");
    w.xcr0 = 0x3;
    expect(&w, lend, TP_ISA_PORTABLE,
           "the processor has AVX2, but the system does not save its registers");
    w.xcr0 = 0; /* no OSXSAVE */
    expect(&w, lend, TP_ISA_PORTABLE,
           "the processor has AVX2, but the system does not save its registers");
    assert_int_equal(n_asked, 0);
}

static void what_the_processor_lacks_is_not_withheld(void **state)
{
    tp_cpu_words w = with_amx();
    w.leaf7_edx = AMX_TILE; /* tiles without bf16 */
    expect(&w, lend, TP_ISA_AVX512_BF16, "");
    w.leaf7_1_eax = 0;
    expect(&w, lend, TP_ISA_AVX512, "");
    w.leaf7_ebx &= ~avx512_vl;
    expect(&w, lend, TP_ISA_AVX2, "");
    w.leaf7_ebx &= ~(unsigned)BMI2;
    expect(&w, lend, TP_ISA_PORTABLE, "");
    w = (tp_cpu_words){0};
    expect(&w, lend, TP_ISA_PORTABLE, "");
}

static void assert_forced(tp_isa isa)
{
    tp_error err;
    assert_int_equal(tp_cpu_force_isa(isa, &err), TP_OK);
}

static void a_level_that_is_passed_over_is_used_by_its_name(void **state)
{
    (void)state;
    tp_isa best = tp_cpu_detect();
    if (best == TP_ISA_PORTABLE)
        skip();
    tp_cpu_pass_over(1u << TP_ISA_PORTABLE);
    assert_true(tp_cpu_is_passed_over(TP_ISA_PORTABLE));
    assert_false(tp_cpu_may_use(TP_ISA_PORTABLE));
    assert_forced(best);
    assert_int_equal(tp_cpu_isa(), best); /* the levels above it stay */
    assert_false(tp_cpu_may_use(TP_ISA_PORTABLE));
    assert_forced(TP_ISA_PORTABLE);
    assert_int_equal(tp_cpu_isa(), TP_ISA_PORTABLE);
    assert_true(tp_cpu_may_use(TP_ISA_PORTABLE));
    tp_cpu_exclude(1u << TP_ISA_PORTABLE); /* one that computes wrong is used by nobody */
    assert_false(tp_cpu_may_use(TP_ISA_PORTABLE));
    tp_cpu_exclude(0);
    tp_cpu_pass_over(0);
    assert_forced(best);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(amx_is_there_when_linux_lends_tiles),
        cmocka_unit_test(a_kernel_that_lends_no_tiles_is_named),
        cmocka_unit_test(a_small_signal_stack_is_no_full_disk),
        cmocka_unit_test(state_that_is_not_saved_is_not_used),
        cmocka_unit_test(what_the_processor_lacks_is_not_withheld),
        cmocka_unit_test(a_level_that_is_passed_over_is_used_by_its_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
