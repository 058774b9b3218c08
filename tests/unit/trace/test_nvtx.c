/* Zones as an NVTX tool sees them, recording or not. */
#include "written.h"

static char *log_path;

static void expect_log(const char *wanted)
{
    tp_buf got = {0};
    assert_int_equal(tp_file_read(log_path, 0, &got, NULL), TP_OK);
    assert_string_equal(tp_buf_str(&got), wanted);
    tp_buf_release(&got);
}

static void zones_are_ranges_of_the_tool(void **state)
{
    if (!tp_trace_attach_nvtx())
        skip(); /* compiled out */
    assert_true(tp_trace_attach_nvtx());
    {
        TP_ZONE("not recorded");
    }
    expect_log("push not recorded\npop\n");
    start_keeping(64, TP_TRACE_KEEP_NEWEST);
    {
        TP_ZONE("outer");
        TP_ZONE("inner");
        TP_MARK("here", NULL);
    }
    TP_PUSH("pushed");
    TP_POP();
    tp_trace_stop();
    assert_int_equal(count_events(written(), "X", "inner"), 1);
    assert_int_equal(count_events(written(), "X", "not recorded"), 0);
    {
        TP_ZONE("after");
    }
    expect_log("push not recorded\npop\npush outer\npush inner\nmark here\npop\npop\n"
               "push pushed\npop\npush after\npop\n");
}

static void a_zone_that_began_while_recording_ends_once(void **state)
{
    static const tp_trace_site site = {.name = "across"};
    start_keeping(64, TP_TRACE_KEEP_NEWEST);
    tp_zone zone = tp_zone_begin(&site);
    tp_trace_stop();
    tp_zone_end(&zone);
    tp_buf got = {0};
    assert_int_equal(tp_file_read(log_path, 0, &got, NULL), TP_OK);
    assert_true(tp_str_ends(tp_buf_str(&got), "push across\npop\n"));
    tp_buf_release(&got);
}

int main(void)
{
    log_path = new_path(".log");
    setenv("NVTX_INJECTION64_PATH", TP_FAKE_NVTX, 1);
    setenv("FAKE_NVTX_LOG", log_path, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(zones_are_ranges_of_the_tool, written_begin, written_end),
        cmocka_unit_test_setup_teardown(a_zone_that_began_while_recording_ends_once, written_begin,
                                        written_end),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(log_path);
    return failed;
}
