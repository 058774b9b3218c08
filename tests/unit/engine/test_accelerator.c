/* What NVML says becomes metrics of a run; what it does not say is unknown.  The executable finds
 * fake_nvml.c as libnvidia-ml.so.1 through its run path; test_no_accelerator is the same without.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/train/custom_metrics.h"

static bool json_of(const tp_custom_metrics *c, const char *text)
{
    tp_buf out = {0};
    tp_json_w w;
    tp_json_w_init(&w, &out, 0);
    tp_custom_write(c, &w);
    bool found = strstr(tp_buf_str(&out), text) != NULL;
    if (!found)
        print_message("%s\n", tp_buf_str(&out));
    tp_buf_release(&out);
    return found;
}

#ifdef TP_WITH_NVML
static void averages_and_maxima_of_what_devices_say(void **state)
{
    tp_custom_metrics c = {0};

    tp_custom_note_process(&c, 1);
    tp_custom_note_process(&c, 1);

    assert_true(fabs(c.stats[TP_CUSTOM_ACCELERATOR].sum - 1.1) < 1e-12);
    assert_true(fabs(c.stats[TP_CUSTOM_ACCELERATOR].most - 0.6) < 1e-12);
    assert_null(tp_custom_why(&c, TP_CUSTOM_ACCELERATOR));
    assert_true(json_of(&c, "\"system/accelerator_used_bytes\":{\"mean\":4294967296"));
}

static void a_device_that_does_not_answer_is_not_counted(void **state)
{
    tp_accelerator_state s = tp_accelerator_read();

    assert_int_equal(s.n, 2);
    assert_true(s.total_bytes == 171798691840.0);
}
#else
static void without_nvml_nothing_is_claimed(void **state)
{
    tp_custom_metrics c = {0};
    tp_accelerator_state s = tp_accelerator_read();
    if (!s.why)
        skip(); /* this machine has one */

    tp_custom_note_process(&c, 1);

    assert_true(isnan(s.utilization) && isnan(s.used_bytes));
    assert_int_equal(c.stats[TP_CUSTOM_ACCELERATOR].n, 0);
    assert_string_equal(tp_custom_why(&c, TP_CUSTOM_ACCELERATOR), s.why);
    assert_null(tp_custom_why(&c, TP_CUSTOM_LR));
    assert_true(json_of(&c, "\"system/accelerator_utilization\":{\"mean\":null,\"max\":null,"
                            "\"last\":null,\"n\":0,\"why\":\""));
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
#ifdef TP_WITH_NVML
        cmocka_unit_test(averages_and_maxima_of_what_devices_say),
        cmocka_unit_test(a_device_that_does_not_answer_is_not_counted),
#else
        cmocka_unit_test(without_nvml_nothing_is_claimed),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
