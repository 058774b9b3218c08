/* Traces, statistics and benchmarks through libtemper.so: what the commands print, as texts. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <temper/temper.h>

#define TRACE TP_SOURCE_DIR "/tests/data/trace_reports/kineto-rank-0.json"

static void assert_in(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("no '%s' in: %.400s", part, text);
}

static void test_a_view_of_a_trace_is_a_text(void **state)
{
    const char *path = TRACE;
    char *text = NULL;
    tp_error err;
    const tp_trace_report_options o = {
        .size = sizeof o, .view = "kernels", .form = TP_FORM_CSV, .top = -1};

    assert_string_equal(tp_trace_view_name(0), "kernels");
    assert_int_equal(tp_trace_report_write(&path, 1, &o, &text, &err), TP_OK);

    assert_int_equal(strncmp(text, "total_ns,share_pct,count,", 25), 0);
    tp_free(text);
}

static void test_what_a_trace_cannot_be_asked_is_an_error(void **state)
{
    const char *path = TRACE, *none = "/nonexistent.json";
    char *text = NULL;
    tp_error err;
    tp_trace_report_options o = {.size = sizeof o, .view = "nothing"};

    assert_int_equal(tp_trace_report_write(&path, 1, &o, &text, &err), TP_ERR_ARG);
    assert_in(err.message, "there is no view 'nothing'");
    o.view = NULL;
    o.scope = "some";
    assert_int_equal(tp_trace_report_write(&path, 1, &o, &text, &err), TP_ERR_ARG);
    assert_in(err.message, "--scope is all, linked or steps");
    o.scope = NULL;
    assert_int_equal(tp_trace_report_write(&none, 1, &o, &text, &err), TP_ERR_IO);
    assert_int_equal(tp_trace_report_write(&none, 0, &o, &text, &err), TP_ERR_ARG);
    assert_int_equal(tp_stats_columns(NULL, NULL, 0, NULL, &text, &err), TP_ERR_ARG);
    assert_null(text);
}

static void test_shares_are_compared(void **state)
{
    const int64_t x[] = {56, 48}, n[] = {70, 80}, bad[] = {7}, of[] = {5};
    const tp_stats_options o = {.size = sizeof o, .form = TP_FORM_JSON};
    char *text = NULL;
    tp_error err;

    assert_int_equal(tp_stats_shares(x, n, 2, &o, &text, &err), TP_OK);
    assert_in(text, "\"diff\": -0.2");
    tp_free(text);
    assert_int_equal(tp_stats_shares(bad, of, 1, NULL, &text, &err), TP_ERR_ARG);
    assert_string_equal(err.message, "7 of 5 is no share; write successes/trials");
}

static void test_a_plan_computes_what_is_not_given(void **state)
{
    char *text = NULL;
    tp_error err;

    assert_int_equal(tp_stats_plan_samples(0.5, NAN, NAN, 2, NULL, &text, &err), TP_OK);
    assert_in(text, "64 values per group are needed.");
    tp_free(text);
    assert_int_equal(tp_stats_plan_samples(0.5, 10, 0.8, 2, NULL, &text, &err), TP_ERR_ARG);
}

static void test_benchmarks_are_named_and_chosen(void **state)
{
    const char *pattern = "train/llama", *wrong = "no/such";
    char *text = NULL;
    int result;
    tp_error err;
    const tp_bench_options both = {.size = sizeof both, .aa = true, .against = "HEAD"};

    assert_int_equal(tp_bench_list(&pattern, 1, NULL, &text, &err), TP_OK);
    assert_int_equal(strncmp(text, "train/llama", 11), 0);
    tp_free(text);
    assert_int_equal(tp_bench_list(&wrong, 1, NULL, &text, &err), TP_ERR_CONFIG);
    assert_in(err.message, "no benchmark matches 'no/such'");
    assert_int_equal(tp_bench_run(&pattern, 1, &both, &result, &err), TP_ERR_ARG);
    assert_in(err.message, "compare with one thing at a time");
}

static void test_a_profile_needs_a_name_that_is_one_folder(void **state)
{
    const tp_profile_options o = {.size = sizeof o, .name = "../elsewhere"};
    char *text = NULL;
    tp_error err;

    assert_int_equal(tp_profile_run(NULL, NULL, 0, &o, &text, &err), TP_ERR_ARG);
    assert_in(err.message, "is no name for a profile");
}

static void test_text_of_strangers_is_made_safe(void **state)
{
    char *text = tp_text_shown("a\x1b[1m\nb", 7, true);

    assert_string_equal(text, "a\\x1b[1m\\nb");
    tp_free(text);
    assert_int_equal(tp_status_exit(TP_ERR_OUTPUT), TP_EXIT_OUTPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_view_of_a_trace_is_a_text),
        cmocka_unit_test(test_what_a_trace_cannot_be_asked_is_an_error),
        cmocka_unit_test(test_shares_are_compared),
        cmocka_unit_test(test_a_plan_computes_what_is_not_given),
        cmocka_unit_test(test_benchmarks_are_named_and_chosen),
        cmocka_unit_test(test_a_profile_needs_a_name_that_is_one_folder),
        cmocka_unit_test(test_text_of_strangers_is_made_safe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
