/* test_bench_baselines.c - baselines: reading, writing, comparing. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "instrument/bench/baselines.h"

/* A report of one benchmark "x" on host "here": ten rounds of about `speed` tokens/s. */
static void measure(tp_bench_report *r, double speed, double bytes)
{
    double values[10], memory[10];
    for (int i = 0; i < 10; i++) {
        values[i] = speed * (1 + 0.001 * (i % 3 - 1));
        memory[i] = bytes;
    }
    assert_int_equal(tp_bench_report_init(r, NULL), TP_OK);
    snprintf(r->host.fingerprint, sizeof r->host.fingerprint, "here");
    r->is_host_known = true;
    r->started = "2026-01-02T03:04:05Z";
    tp_bench_result *result = tp_bench_report_add(r, "x", 2);
    result->rounds = 10;
    result->metrics[0].metric =
        (tp_metric){.name = "throughput", .unit = "tokens/s", .direction = TP_HIGHER_IS_BETTER};
    result->metrics[0].b = tp_bench_report_values(r, values, 10);
    result->metrics[1].metric =
        (tp_metric){.name = "peak_memory", .unit = "bytes", .kind = TP_METRIC_EXACT};
    result->metrics[1].b = tp_bench_report_values(r, memory, 10);
    for (int k = 0; k < 2; k++) {
        result->metrics[k].n_b = 10;
        result->metrics[k].side_b = tp_summarise(result->metrics[k].b, 10);
    }
}

static void parse(const char *text, tp_baselines *b)
{
    tp_error err = {0};
    if (tp_baselines_read("baselines.json", text, strlen(text), b, &err) != TP_OK)
        fail_msg("%s", err.message);
}

static int compare(const char *text, double speed, double bytes, tp_bench_report *r, bool by_point)
{
    tp_baselines b;
    tp_gate_options options = {0};
    parse(text, &b);
    measure(r, speed, bytes);
    r->rule.by_point = by_point;
    assert_int_equal(tp_baselines_compare(&b, r, NULL, NULL, NULL), TP_OK);
    tp_baselines_release(&b);
    return tp_gate_conclude(r, &options).exit_status;
}

#define SIX(speed, memory, more)                                                                 \
    "{\"x\": {\"name\": \"x\", \"throughput_tokens_per_sec\": " speed                            \
    ", \"peak_memory_mb\": " memory                                                              \
    ", \"tolerance\": 0.05, \"version\": \"0.1.0\", \"timestamp\": \"2026-01-01T00:00:00\"" more \
    "}}"
#define HERE ", \"host\": \"here\", \"sd_between\": 0.005"

static void a_known_spread_decides(void **state)
{
    tp_bench_report r;
    assert_int_equal(compare(SIX("1000", "8", HERE), 1000, 8 << 20, &r, false), 0);
    assert_int_equal(r.results[0].verdict, TP_BENCH_PASS);
    tp_bench_report_release(&r);
    assert_int_equal(compare(SIX("1000", "8", HERE), 900, 8 << 20, &r, false), 1);
    assert_int_equal(r.results[0].verdict, TP_BENCH_REGRESSION);
    tp_bench_report_release(&r);
    assert_int_equal(compare(SIX("1000", "8", HERE), 1200, 8 << 20, &r, false), 0);
    assert_int_equal(r.results[0].verdict, TP_BENCH_IMPROVED);
    tp_bench_report_release(&r);
}

static void memory_follows_the_tolerance_of_the_entry(void **state)
{
    tp_bench_report r;
    /* 8 MB and 5 %: 8.4 MB is allowed, more is not */
    assert_int_equal(compare(SIX("1000", "8", HERE), 1000, 8.4 * 1048576, &r, false), 0);
    tp_bench_report_release(&r);
    assert_int_equal(compare(SIX("1000", "8", HERE), 1000, 8.41 * 1048576, &r, false), 1);
    tp_bench_report_release(&r);
}

static void an_unknown_spread_is_assumed_and_said(void **state)
{
    tp_bench_report r;
    assert_int_equal(compare(SIX("1000", "8", ", \"host\": \"here\""), 900, 8 << 20, &r, false), 0);
    assert_int_equal(r.results[0].verdict, TP_BENCH_INCONCLUSIVE);
    assert_true(r.results[0].metrics[0].comparison.is_sd_assumed);
    tp_bench_report_release(&r);
    assert_int_equal(compare(SIX("1000", "8", ", \"host\": \"here\""), 500, 8 << 20, &r, false), 1);
    tp_bench_report_release(&r);
    assert_int_equal(compare(SIX("1000", "8", ""), 500, 8 << 20, &r, false), 1);
    assert_non_null(strstr(r.results[0].note, "names no host"));
    tp_bench_report_release(&r);
}

static void the_plain_rule_can_decide(void **state)
{
    tp_bench_report r;
    assert_int_equal(compare(SIX("1000", "8", ""), 949, 8 << 20, &r, true), 1);
    assert_int_equal(r.results[0].verdict, TP_BENCH_REGRESSION);
    tp_bench_report_release(&r);
    assert_int_equal(compare(SIX("1000", "8", ""), 951, 8 << 20, &r, true), 0);
    assert_int_equal(r.results[0].verdict, TP_BENCH_PASS);
    tp_bench_report_release(&r);
}

static void another_host_is_no_baseline(void **state)
{
    tp_bench_report r;
    assert_int_equal(
        compare(SIX("1000", "8", ", \"host\": \"elsewhere\""), 1000, 8 << 20, &r, false), 1);
    assert_int_equal(r.results[0].verdict, TP_BENCH_NEW);
    assert_non_null(strstr(r.results[0].note, "another host"));
    tp_bench_report_release(&r);
}

static void another_unit_is_no_baseline(void **state)
{
    static const char text[] =
        "{\"x\": {\"host\": \"here\", \"metrics\": {\"throughput\": {\"unit\": \"ktokens/s\", "
        "\"direction\": \"higher\", \"median\": 1, \"sessions\": [1, 1, 1]}}}}";
    tp_bench_report r;
    tp_baselines b;
    assert_int_equal(compare(text, 500, 8 << 20, &r, false), 1);
    assert_int_equal(r.results[0].verdict, TP_BENCH_MISSING);
    assert_non_null(strstr(r.results[0].note, "was in ktokens/s and is in tokens/s"));
    /* ... and its sessions are none of the new one */
    parse(text, &b);
    assert_int_equal(tp_baselines_update(&b, &r, NULL), TP_OK);
    assert_int_equal(b.items[0].metrics[0].n_sessions, 1);
    assert_true(fabs(b.items[0].metrics[0].level - 500) < 1e-9);
    tp_baselines_release(&b);
    tp_bench_report_release(&r);
}

static void another_direction_is_no_baseline(void **state)
{
    static const char text[] =
        "{\"x\": {\"host\": \"here\", \"metrics\": {\"throughput\": {\"unit\": \"tokens/s\", "
        "\"direction\": \"lower\", \"median\": 1000, \"sessions\": [1000, 1000, 1000]}}}}";
    tp_bench_report r;
    tp_baselines b;
    assert_int_equal(compare(text, 500, 8 << 20, &r, false), 1);
    assert_int_equal(r.results[0].verdict, TP_BENCH_MISSING);
    assert_non_null(strstr(r.results[0].note, "was better when lower and is better when higher"));
    parse(text, &b);
    assert_int_equal(tp_baselines_update(&b, &r, NULL), TP_OK);
    assert_int_equal(b.items[0].metrics[0].n_sessions, 1);
    tp_baselines_release(&b);
    tp_bench_report_release(&r);
}

/* Two sessions do not measure a deviation; one that the file gives is known. */
static void a_given_spread_is_known(void **state)
{
    static const char text[] =
        "{\"x\": {\"host\": \"here\", \"throughput_tokens_per_sec\": 1000, \"sd_between\": 0.005, "
        "\"metrics\": {\"throughput\": {\"unit\": \"tokens/s\", \"direction\": \"higher\", "
        "\"median\": 1000, \"sessions\": [1000, 1000]}}}}";
    tp_bench_report r;
    assert_int_equal(compare(text, 930, 8 << 20, &r, false), 1);
    assert_int_equal(r.results[0].verdict, TP_BENCH_REGRESSION);
    tp_bench_report_release(&r);
}

static void missing_on_either_side_is_no_pass(void **state)
{
    tp_bench_report r;
    assert_int_equal(compare("{\"y\": {\"throughput_tokens_per_sec\": 1}}", 1, 1, &r, false), 1);
    assert_int_equal(r.results[0].verdict, TP_BENCH_NEW);
    assert_int_equal(r.results[1].verdict, TP_BENCH_MISSING);
    tp_bench_report_release(&r);
    assert_int_equal(compare("{}", 1, 1, &r, false), 1);
    tp_bench_report_release(&r);
}

static void expect_refusal(const char *text, const char *message)
{
    tp_baselines b;
    tp_error err = {0};
    assert_int_not_equal(tp_baselines_read("baselines.json", text, strlen(text), &b, &err), TP_OK);
    if (!strstr(err.message, message))
        fail_msg("'%s' lacks '%s'", err.message, message);
}

static void degenerate_levels_are_refused_with_their_place(void **state)
{
    expect_refusal(SIX("NaN", "8", ""),
                   "baselines.json:1: throughput_tokens_per_sec of 'x' is NaN");
    expect_refusal(SIX("0", "8", ""), "is 0, which nothing can be compared with");
    expect_refusal(SIX("-5", "8", ""), "is -5");
    expect_refusal(SIX("\"fast\"", "8", ""), "is fast");
    expect_refusal(SIX("1", "0", ""), "peak_memory_mb");
    expect_refusal("{\"x\": {\"tolerance\": 5}}", "tolerance of 'x' is a fraction");
    expect_refusal("{\"x\": {\"tolerance\": -0.1}}", "tolerance of 'x' is a fraction");
    expect_refusal("{\"x\": {}}", "no throughput_tokens_per_sec and no peak_memory_mb");
    expect_refusal("[]", "one object");
    expect_refusal("{\"x\": 3}", "has to be an object");
}

static void what_a_baseline_cannot_mean_is_refused(void **state)
{
    static const char *const spreads[] = {"-1", "1e999", "\"wide\""};
    for (size_t i = 0; i < 3; i++) {
        char text[300];
        snprintf(text, sizeof text,
                 "{\"x\": {\"throughput_tokens_per_sec\": 1, \"sd_between\": %s}}", spreads[i]);
        expect_refusal(text, "baselines.json:1: sd_between of 'x'");
    }
    expect_refusal("{\"x\": {\"name\": \"y\", \"throughput_tokens_per_sec\": 1}}",
                   "the baseline 'x' has the name 'y'");
    expect_refusal("{\"x\": {\"metrics\": {\"m\": {\"unit\": \"s\", \"direction\": \"lower\", "
                   "\"class\": \"foo\", \"median\": 1}}}}",
                   "class of metric 'm' of 'x' is noisy or exact, not 'foo'");
}

/* ---- updating ---- */

static void sessions_add_up_to_a_spread(void **state)
{
    static const double speeds[] = {1000, 1020, 980, 1010};
    tp_baselines b, again;
    tp_buf text = {0};
    assert_int_equal(tp_baselines_init(&b, NULL), TP_OK);
    for (int i = 0; i < 4; i++) {
        tp_bench_report r;
        measure(&r, speeds[i], 8 << 20);
        assert_int_equal(tp_baselines_update(&b, &r, NULL), TP_OK);
        tp_bench_report_release(&r);
        assert_true(isnan(b.items[0].metrics[0].sd_between) == (i < 2));
    }
    tp_baselines_write(&b, &text);
    parse(text.data, &again);
    const tp_bench_baseline *x = tp_baselines_find(&again, "x");
    assert_non_null(x);
    assert_string_equal(x->host, "here");
    assert_string_equal(x->timestamp, "2026-01-02T03:04:05Z");
    assert_int_equal(x->n_samples, 10);
    assert_true(x->tolerance == 0.05);
    assert_int_equal(x->metrics[0].n_sessions, 4);
    /* the geometric mean */
    assert_true(fabs(x->metrics[0].level - 1002.3904) < 1e-3);
    /* sd of ln 1000, 1020, 980, 1010 */
    assert_true(fabs(x->metrics[0].sd_between - 0.01710) < 2e-5);
    assert_non_null(strstr(text.data, "\"peak_memory_mb\": 8,"));
    assert_non_null(strstr(text.data, "\"throughput_tokens_per_sec\": 1002.39"));
    tp_buf_release(&text);
    tp_baselines_release(&b);
    tp_baselines_release(&again);
}

/* What was compared and has changed has a level of its own, not one between before and after. */
static void a_change_that_is_accepted_is_the_new_level(void **state)
{
    tp_baselines b;
    assert_int_equal(tp_baselines_init(&b, NULL), TP_OK);
    for (int i = 0; i < 6; i++) {
        tp_bench_report r;
        measure(&r, i < 4 ? 1000 : 500, 8 << 20);
        r.rule.tolerance = i < 4 ? 0.05 : 0.1;
        r.rule.is_tolerance_given = i >= 4;
        assert_int_equal(tp_baselines_compare(&b, &r, NULL, NULL, NULL), TP_OK);
        assert_true((r.results[0].verdict == TP_BENCH_REGRESSION) == (i == 4));
        assert_int_equal(tp_baselines_update(&b, &r, NULL), TP_OK);
        tp_bench_report_release(&r);
        const tp_baseline_metric *speed = &b.items[0].metrics[0];
        assert_int_equal(speed->n_sessions, i < 4 ? i + 1 : i - 3);
        assert_true(fabs(speed->level / (i < 4 ? 1000 : 500) - 1) < 1e-12);
        assert_true(b.items[0].tolerance == (i < 4 ? 0.05 : 0.1)); /* the one that was given */
    }
    tp_baselines_release(&b);
}

/* What an update writes can be read again. */
static void a_tolerance_of_0_is_one(void **state)
{
    tp_baselines b, again;
    tp_bench_report r;
    tp_buf text = {0};
    assert_int_equal(tp_baselines_init(&b, NULL), TP_OK);
    measure(&r, 1000, 8 << 20);
    r.rule.tolerance = 0;
    r.rule.is_tolerance_given = true;
    assert_int_equal(tp_baselines_update(&b, &r, NULL), TP_OK);
    tp_baselines_write(&b, &text);
    parse(text.data, &again);
    assert_true(again.items[0].tolerance == 0);
    tp_bench_report_release(&r);
    tp_baselines_release(&b);
    tp_baselines_release(&again);
    tp_buf_release(&text);
}

#define SESSIONS(known, median)                                                               \
    "{\"x\": {\"throughput_tokens_per_sec\": " known ", \"host\": \"here\", \"metrics\": {"   \
    "\"throughput\": {\"unit\": \"tokens/s\", \"direction\": \"higher\", \"median\": " median \
    ", \"sessions\": [1000, 1000, 1331]}}}}"

/* Sessions say nothing of a level that somebody set. */
static void a_level_that_is_set_begins_anew(void **state)
{
    static const struct {
        const char *text;
        double level;
        size_t sessions;
    } cases[] = {
        {SESSIONS("1100", "1100"), 1100, 3}, /* their mean */
        {SESSIONS("1331", "1331"), 1331, 3}, /* the last, as files once had it */
        {SESSIONS("1100", "9"), 1100, 3},    /* the known figure wins */
        {SESSIONS("500", "1100"), 500, 0},   {SESSIONS("null", "500"), 500, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tp_baselines b;
        parse(cases[i].text, &b);
        assert_true(fabs(b.items[0].metrics[0].level - cases[i].level) < 1e-9);
        assert_int_equal(b.items[0].metrics[0].n_sessions, cases[i].sessions);
        assert_true(isnan(b.items[0].metrics[0].sd_between) == (cases[i].sessions == 0));
        tp_baselines_release(&b);
    }
    tp_baselines b;
    tp_bench_report r;
    parse(SESSIONS("500", "1100"), &b);
    measure(&r, 500, 8 << 20);
    assert_int_equal(tp_baselines_update(&b, &r, NULL), TP_OK);
    assert_true(fabs(b.items[0].metrics[0].level - 500) < 1e-9);
    tp_baselines_release(&b);
    tp_bench_report_release(&r);
}

static void what_is_measured_no_more_leaves_the_baseline(void **state)
{
    static const char text[] =
        "{\"x\": {\"throughput_tokens_per_sec\": 1000, \"metrics\": {\"gone\": {\"unit\": \"s\", "
        "\"direction\": \"lower\", \"median\": 1}}}}";
    tp_baselines b;
    tp_bench_report r;
    parse(text, &b);
    assert_int_equal(b.items[0].n_metrics, 2);
    measure(&r, 1000, 8 << 20);
    assert_int_equal(tp_baselines_update(&b, &r, NULL), TP_OK);
    assert_int_equal(b.items[0].n_metrics, 2);
    assert_string_equal(b.items[0].metrics[0].metric.name, "throughput");
    assert_string_equal(b.items[0].metrics[1].metric.name, "peak_memory");
    tp_baselines_release(&b);
    tp_bench_report_release(&r);
}

static void expect_no_update(tp_bench_report *r, const char *text, const char *message)
{
    tp_baselines b;
    tp_error err = {0};
    parse(text, &b);
    assert_int_equal(tp_baselines_update(&b, r, &err), TP_ERR_CONFIG);
    if (!strstr(err.message, message))
        fail_msg("'%s' lacks '%s'", err.message, message);
    tp_baselines_release(&b);
    tp_bench_report_release(r);
}

static void degenerate_measurements_become_no_baseline(void **state)
{
    tp_bench_report r;
    const double nan_values[] = {1, 1, 1, 1, NAN, 1, 1, 1, 1, 1};
    measure(&r, 1000, 1);
    r.results[0].metrics[0].b = nan_values;
    expect_no_update(&r, "{}", "throughput is NaN in round 5");
    measure(&r, 1000, 1);
    r.results[0].metrics[0].n_b = 3;
    expect_no_update(&r, "{}", "at least 5 are needed");
    measure(&r, 1000, 1);
    r.results[0].metrics[0].is_median = true;
    r.results[0].metrics[0].n_b = 1;
    expect_no_update(&r, "{}", "only a median of throughput is in the file");
    measure(&r, 1000, 1);
    tp_result_fail(&r, &r.results[0], "crashed");
    expect_no_update(&r, "{}", "crashed");
    measure(&r, 1000, 1);
    expect_no_update(&r, SIX("1", "1", ", \"host\": \"elsewhere\""), "another host");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_known_spread_decides),
        cmocka_unit_test(memory_follows_the_tolerance_of_the_entry),
        cmocka_unit_test(an_unknown_spread_is_assumed_and_said),
        cmocka_unit_test(the_plain_rule_can_decide),
        cmocka_unit_test(another_host_is_no_baseline),
        cmocka_unit_test(another_unit_is_no_baseline),
        cmocka_unit_test(another_direction_is_no_baseline),
        cmocka_unit_test(a_given_spread_is_known),
        cmocka_unit_test(missing_on_either_side_is_no_pass),
        cmocka_unit_test(degenerate_levels_are_refused_with_their_place),
        cmocka_unit_test(what_a_baseline_cannot_mean_is_refused),
        cmocka_unit_test(sessions_add_up_to_a_spread),
        cmocka_unit_test(a_change_that_is_accepted_is_the_new_level),
        cmocka_unit_test(a_tolerance_of_0_is_one),
        cmocka_unit_test(a_level_that_is_set_begins_anew),
        cmocka_unit_test(what_is_measured_no_more_leaves_the_baseline),
        cmocka_unit_test(degenerate_measurements_become_no_baseline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
