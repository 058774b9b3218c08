/* test_tune.c - kernels chosen by measuring: the fastest is taken, kept, and nothing is when the
 * machine is busy.  The clock is a table. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/files.h"
#include "base/platform.h"
#include "engine/exec/tune.h"

static tp_device *device;
static tp_error err;
static char folder[] = "/tmp/temper-tune-XXXXXX";
static const char *fast; /* the end of the name of the kernel that takes half of the time */
static int n_timed;

static double table(tp_device *d, const tp_launch *l, const tp_kernel *k, char why[96])
{
    n_timed++;
    return tp_str_ends(k->name, fast) ? 1 : 2;
}

static double busy(tp_device *d, const tp_launch *l, const tp_kernel *k, char why[96])
{
    n_timed++;
    snprintf(why, 96, "busy");
    return NAN;
}

static tp_launch silu(int64_t rows)
{
    tp_launch l = {.op = TP_OP_silu, .n_in = 1, .n_out = 1, .threads = 1};
    l.in[0] = l.out[0] =
        (tp_operand){.dtype = TP_DTYPE_F32, .rank = 2, .dim = {rows, 64}, .stride = 64};
    return l;
}

static const char *chosen(const tp_launch *l, tp_kernel_tuning tuning)
{
    return tp_tuned_kernel(device, l, tuning, tp_kernel_find(device, l))->name;
}

static int enter(void **state)
{
    const tp_device_options options = {.threads = 1};
    n_timed = 0;
    tp_tune_forget();
    tp_tune_set_clock(table);
    return tp_device_open(&tp_backend_cpu, &options, &device, &err) == TP_OK ? 0 : -1;
}

static int leave(void **state)
{
    tp_device_close(device);
    return 0;
}

static void the_fastest_is_taken_and_kept(void **state)
{
    tp_launch l = silu(10);
    fast = "portable";
    const char *usual = tp_kernel_find(device, &l)->name;
    if (tp_str_ends(usual, fast))
        skip(); /* there is one kernel only */
    assert_string_equal(chosen(&l, TP_TUNE_OFF), usual);
    assert_string_equal(chosen(&l, TP_TUNE_KNOWN), usual); /* nothing is known yet */
    assert_int_equal(n_timed, 0);
    assert_true(tp_str_ends(chosen(&l, TP_TUNE_MEASURE), "portable"));
    int once = n_timed;
    assert_true(once >= 2);
    assert_true(tp_str_ends(chosen(&l, TP_TUNE_MEASURE), "portable"));
    assert_int_equal(n_timed, once);
    assert_int_equal(tp_tune_get_report().shapes, 1);
    assert_int_equal(tp_tune_get_report().changed, 1);
    tp_tune_begin();
    assert_true(tp_str_ends(chosen(&l, TP_TUNE_MEASURE), "portable")); /* known, and this run's */
    assert_int_equal(n_timed, once);
    assert_int_equal(tp_tune_get_report().shapes, 1);
    tp_tune_keep();
    assert_string_equal(tp_tune_get_report().why, "");
    tp_tune_forget();
    assert_true(tp_str_ends(chosen(&l, TP_TUNE_KNOWN), "portable")); /* from the file */
    l = silu(11);
    assert_string_equal(chosen(&l, TP_TUNE_KNOWN), usual); /* another shape */
}

static void what_is_not_measured_stays_and_is_said(void **state)
{
    tp_launch l = silu(20), other = silu(21);
    const char *usual = tp_kernel_find(device, &l)->name;
    const tp_kernel *kernels[8];
    if (tp_kernels_usable(device, &l, kernels, 8) < 2)
        skip();
    tp_tune_set_clock(busy);
    assert_string_equal(chosen(&l, TP_TUNE_MEASURE), usual);
    assert_string_equal(tp_tune_get_report().why, "busy");
    assert_int_equal(n_timed, 1);
    assert_string_equal(chosen(&other, TP_TUNE_MEASURE), usual);
    assert_int_equal(n_timed, 1); /* the rest is left alone */
    tp_tune_begin();
    assert_string_equal(tp_tune_get_report().why, "");
    assert_string_equal(chosen(&other, TP_TUNE_MEASURE), usual);
    assert_int_equal(n_timed, 2); /* another run of the process tries again */
}

/* By the clock: whatever wins computes, and a launch with ids is left alone. */
static void real_launches_are_measured_or_the_machine_is_busy(void **state)
{
    tp_launch l = silu(30), ids = silu(31);
    ids.in[0].dtype = TP_DTYPE_I32;
    tp_tune_set_clock(NULL);
    const char *name = chosen(&l, TP_TUNE_MEASURE);
    assert_non_null(strstr(name, "silu"));
    assert_ptr_equal(tp_tuned_kernel(device, &ids, TP_TUNE_MEASURE, NULL), NULL);
}

static void a_damaged_file_is_none(void **state)
{
    static const char damaged[] = "temper kernels 1\n\t\t\nnonsense\n0123\tsilu";
    char path[4096];
    tp_launch l = silu(40);
    assert_int_equal(tp_cache_path("kernels.txt", true, path, sizeof path, &err), TP_OK);
    assert_int_equal(tp_file_write_atomic(path, damaged, sizeof damaged - 1, &err), TP_OK);
    tp_tune_forget();
    assert_string_equal(chosen(&l, TP_TUNE_KNOWN), tp_kernel_find(device, &l)->name);
}

/* Root writes everywhere: a file where the folder should be refuses everybody. */
static void a_cache_that_cannot_be_written_is_said(void **state)
{
    tp_launch l = silu(50);
    const tp_kernel *kernels[8];
    char path[64];
    if (tp_kernels_usable(device, &l, kernels, 8) < 2)
        skip();
    snprintf(path, sizeof path, "%s/file", folder);
    assert_int_equal(tp_file_write_atomic(path, "", 0, &err), TP_OK);
    setenv("XDG_CACHE_HOME", path, 1);
    fast = "portable";
    (void)chosen(&l, TP_TUNE_MEASURE);
    tp_tune_keep();
    assert_memory_equal(tp_tune_get_report().why, "not kept: ", 10);
    setenv("XDG_CACHE_HOME", folder, 1);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, enter, leave)
    const struct CMUnitTest tests[] = {
        CASE(the_fastest_is_taken_and_kept),
        CASE(what_is_not_measured_stays_and_is_said),
        CASE(real_launches_are_measured_or_the_machine_is_busy),
        CASE(a_damaged_file_is_none),
        CASE(a_cache_that_cannot_be_written_is_said),
    };
    if (!mkdtemp(folder) || setenv("XDG_CACHE_HOME", folder, 1) != 0)
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return tp_dir_remove(folder, &err) == TP_OK ? failed : 1;
}
