/* Configurations of other trainers as recipes: learning rates against transformers' own
 * (tools/reference/make_trl_schedules.py). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/platform.h"
#include "config/import/import.h"
#include "engine/train/schedule.h"

static const struct {
    const char *arguments;
    int n;
    double rates[40];
} cases[] = {
#include "data/reference/trl_schedules.inc"
};

static char path[64];

static int enter(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "/tmp/temper-import-XXXXXX");
    int fd = mkstemp(path);
    return fd < 0 || close(fd) != 0;
}

static int leave(void **state)
{
    (void)state;
    return unlink(path);
}

static tp_import *import(const char *text, const char *from)
{
    const tp_import_request request = {.from = from, .algorithm = "sft"};
    tp_import *im = NULL;
    tp_error err = {0};
    assert_int_equal(tp_file_write_atomic(path, text, strlen(text), NULL), TP_OK);
    if (tp_import_open(path, &request, &im, &err) != TP_OK)
        fail_msg("%s", err.message);
    return im;
}

static void test_learning_rates_are_those_of_transformers(void **state)
{
    (void)state;
    for (size_t i = 0; i < TP_COUNTOF(cases); i++) {
        tp_schedule schedule;
        tp_error err = {0};
        char text[512];
        snprintf(text, sizeof text, "learning_rate: 0.01\n%s", cases[i].arguments);
        tp_import *im = import(text, "trl");
        if (tp_schedule_parse(tp_config_find(im->recipe, "policy.scheduler"), &schedule, &err) !=
            TP_OK)
            fail_msg("%s: %s", cases[i].arguments, err.message);
        for (int step = 0; step < cases[i].n; step++) {
            double rate = tp_schedule_lr(&schedule, 0.01, step);
            if (!(fabs(rate - cases[i].rates[step]) < 1e-10))
                fail_msg("%s: step %d: %.17g, not %.17g", cases[i].arguments, step, rate,
                         cases[i].rates[step]);
        }
        tp_import_close(im);
    }
}

/* 100 rows, 3 epochs, batches of 2 x 4 x 2: 7 updates an epoch, as transformers counts them. */
static void test_steps_follow_from_rows(void **state)
{
    (void)state;
    const tp_import_request request = {
        .from = "trl", .algorithm = "sft", .rows = 100, .processes = 2};
    static const char text[] = "per_device_train_batch_size: 2\ngradient_accumulation_steps: 4\n"
                               "warmup_ratio: 0.1\nsave_strategy: epoch\n";
    tp_import *im = NULL;
    assert_int_equal(tp_file_write_atomic(path, text, strlen(text), NULL), TP_OK);
    assert_int_equal(tp_import_open(path, &request, &im, NULL), TP_OK);
    int64_t steps = 0, batch = 0, period = 0, warm = 0;
    assert_true(tp_json_i64(tp_config_find(im->recipe, "sft.max_num_steps"), &steps));
    assert_true(tp_json_i64(tp_config_find(im->recipe, "policy.train_global_batch_size"), &batch));
    assert_true(tp_json_i64(tp_config_find(im->recipe, "checkpointing.save_period"), &period));
    assert_true(tp_json_i64(tp_config_find(im->recipe, "policy.scheduler.2.milestones.0"), &warm));
    assert_int_equal(batch, 16);
    assert_int_equal(steps, 21);
    assert_int_equal(period, 7);
    assert_int_equal(warm, 3); /* 2.1, upwards */
    tp_import_close(im);
}

static void test_text_is_no_interpolation(void **state)
{
    (void)state;
    tp_import *im = import("output_dir: 'a ${oc.env:HOME} b'\nmax_steps: 5\n", "trl");
    assert_string_equal(tp_json_str(tp_config_find(im->recipe, "run.dir")), "a \\${oc.env:HOME} b");
    tp_import_close(im);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_learning_rates_are_those_of_transformers, enter,
                                        leave),
        cmocka_unit_test_setup_teardown(test_steps_follow_from_rows, enter, leave),
        cmocka_unit_test_setup_teardown(test_text_is_no_interpolation, enter, leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
