/* What `temper profile` concludes from figures that are made up. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "instrument/profile/baseline.h"

enum { STEPS = 20 };

static tp_profile_data data;

/* Twenty steps of 100 ms, 90 of them in one operator that runs at its limit. */
static int begin(void **state)
{
    tp_profile_data_init(&data, 3, STEPS, 1);
    tp_profile_add_kind(&data, "weights", "weights");
    tp_profile_add_kind(&data, "data", "the data");
    tp_profile_add_phase(&data, "forward", NULL);
    tp_profile_add_phase(&data, "logging", "a faster disk");
    data.machine = "here";
    data.n_done = STEPS;
    data.threads = 2;
    data.cpu_s = 4;
    data.wall_s = 2;
    data.parameters = 1000;
    data.peak_bytes = 5000;
    data.n_ops = 1;
    data.ops[0] =
        (tp_profile_op){.name = "linear", .launches = 3, .limit_s = 0.09, .arithmetic_s = 0.09};
    data.ops[0].s = calloc(STEPS + 1, sizeof(double));
    for (int i = 0; i < STEPS; i++) {
        data.step_s[i] = data.phases[0].s[i] = 0.1;
        data.ops[0].s[i] = 0.09;
        data.used_tokens[i] = 95;
        data.padded_tokens[i] = 5;
        data.trained_tokens[i] = 50;
        data.rss_bytes[i] = data.memory_bytes[i] = 1e9;
        data.kinds[1].bytes[i] = 1e6;
    }
    return 0;
}

static int end(void **state)
{
    tp_profile_data_release(&data);
    return 0;
}

static tp_findings found;

static const tp_finding *only_bottleneck(void)
{
    tp_profile_bottlenecks(&data, &found);
    if (found.n != 1)
        fail_msg("%zu bottlenecks, the first is '%s'", found.n, found.n ? found.list[0].title : "");
    assert_true(found.list[0].evidence[0] && found.list[0].advice[0]);
    return &found.list[0];
}

static void nothing_wrong_is_no_bottleneck(void **state)
{
    tp_profile_bottlenecks(&data, &found);
    assert_int_equal(found.n, 0);
    data.n_done = 0;
    tp_profile_bottlenecks(&data, &found);
    assert_int_equal(found.n, 0);
}

static void an_operator_below_its_limit_costs_the_rest(void **state)
{
    data.ops[0].limit_s = 0.03;
    const tp_finding *b = only_bottleneck();
    assert_string_equal(b->title, "operator linear below its limit");
    assert_int_equal(b->severity, TP_SEVERITY_HIGH);
    assert_int_equal(b->cost_ns, 60000000);
    assert_non_null(strstr(b->evidence, "90.000 ms a step in 3 launches (90.0 % of it)"));
    assert_non_null(strstr(b->evidence, "needs 30.000 ms"));
}

static void without_ceilings_operators_are_not_judged(void **state)
{
    data.ops[0].limit_s = data.ops[0].arithmetic_s = NAN;
    tp_profile_bottlenecks(&data, &found);
    assert_int_equal(found.n, 0);
}

static void waiting_for_data_is_named(void **state)
{
    for (int i = 0; i < STEPS; i++)
        data.wait_s[i] = 0.006;
    const tp_finding *b = only_bottleneck();
    assert_string_equal(b->title, "waiting for data");
    assert_int_equal(b->severity, TP_SEVERITY_MEDIUM);
    assert_int_equal(b->cost_ns, 6000000);
}

static void an_idle_processor_is_named(void **state)
{
    data.cpu_s = 3; /* of 4 */
    assert_int_equal(only_bottleneck()->severity, TP_SEVERITY_MEDIUM);
    data.cpu_s = 1.9;
    const tp_finding *b = only_bottleneck();
    assert_string_equal(b->title, "processor not used");
    assert_int_equal(b->severity, TP_SEVERITY_HIGH);
}

static void padding_is_named(void **state)
{
    for (int i = 0; i < STEPS; i++)
        data.padded_tokens[i] = 95;
    const tp_finding *b = only_bottleneck();
    assert_string_equal(b->title, "padding");
    assert_int_equal(b->cost_ns, 50000000);
}

/* What is on already is no remedy. */
static void remedies_for_padding_are_off(void **state)
{
    for (int i = 0; i < STEPS; i++)
        data.padded_tokens[i] = 95;
    for (int k = 0; k < 4; k++) {
        data.keeps_padding = k & 1;
        data.is_packed = k & 2;
        const tp_finding *b = only_bottleneck();
        assert_int_equal(strstr(b->advice, "engine.padding_free") != NULL, data.keeps_padding);
        assert_int_equal(strstr(b->advice, "policy.sequence_packing") != NULL, !data.is_packed);
    }
    assert_non_null(strstr(only_bottleneck()->advice, "engine.padding_free"));
    data.keeps_padding = false;
    assert_non_null(strstr(only_bottleneck()->advice, "policy.train_micro_batch_size"));
}

/* The share is that of the table of phases. */
static void time_outside_steps_is_of_all_time(void **state)
{
    for (int i = 0; i < STEPS; i++)
        data.phases[1].s[i] = 0.025;
    const tp_finding *b = only_bottleneck();
    assert_string_equal(b->title, "time in logging");
    assert_int_equal(b->cost_ns, 25000000);
    assert_non_null(strstr(b->evidence, "25.000 ms a step (20.0 % of the wall time)"));
}

static void remedies_for_products_are_off(void **state)
{
    data.ops[0].limit_s = 0.03;
    data.ops[0].flops = 1e9;
    for (int k = 0; k < 4; k++) {
        data.has_best_isa = k & 1;
        data.has_all_threads = k & 2;
        const tp_finding *b = only_bottleneck();
        assert_int_equal(strstr(b->advice, "engine.isa") == NULL, data.has_best_isa);
        assert_int_equal(strstr(b->advice, "engine.threads") == NULL, data.has_all_threads);
    }
}

static void recomputation_is_known_by_what_it_is(void **state)
{
    data.ops[0].is_again = true;
    assert_string_equal(only_bottleneck()->title, "recomputation");
    assert_non_null(strstr(only_bottleneck()->advice, "selective or none"));
    data.recomputes_selectively = true;
    assert_null(strstr(only_bottleneck()->advice, "selective"));
    data.ops[0].is_again = false;
    snprintf(data.ops[0].name, sizeof data.ops[0].name, "mine (again)");
    tp_profile_bottlenecks(&data, &found);
    assert_int_equal(found.n, 0);
}

static void the_most_costly_comes_first(void **state)
{
    data.ops[0].limit_s = 0.03;
    for (int i = 0; i < STEPS; i++) {
        data.wait_s[i] = 0.003;
        data.phases[1].s[i] = 0.02;
    }
    tp_profile_bottlenecks(&data, &found);
    assert_int_equal(found.n, 3);
    assert_string_equal(found.list[0].title, "operator linear below its limit");
    assert_string_equal(found.list[1].title, "time in logging");
    assert_string_equal(found.list[2].title, "waiting for data");
}

/* ---- growth ---- */

static void flat_memory_does_not_grow(void **state)
{
    tp_profile_growth g = tp_profile_leak(&data);
    assert_int_equal(g.leak.verdict, TP_LEAK_NONE);
}

static void few_steps_say_nothing(void **state)
{
    data.n_done = 9;
    tp_profile_growth g = tp_profile_leak(&data);
    assert_int_equal(g.leak.verdict, TP_LEAK_CANNOT_TELL);
    assert_string_equal(g.why, "fewer than ten timed steps");
}

static void steady_growth_is_found_with_its_owner(void **state)
{
    tp_rng rng = tp_rng_make(1, 1);
    for (int i = 0; i < STEPS; i++) {
        data.rss_bytes[i] = 1e9 + 2e6 * i + 1e5 * tp_rng_uniform(&rng);
        data.kinds[1].bytes[i] = 1e6 + 2e6 * i;
    }
    tp_profile_growth g = tp_profile_leak(&data);
    assert_int_equal(g.leak.verdict, TP_LEAK_GROWING);
    assert_true(g.leak.lo < 2e6 && 2e6 < g.leak.hi && g.leak.hi - g.leak.lo < 1e5);
    assert_string_equal(g.owner->name, "data");
    assert_string_equal(g.owner->title, "the data");
    const tp_finding *b = only_bottleneck();
    assert_string_equal(b->title, "memory grows");
    assert_int_equal(b->severity, TP_SEVERITY_LOW);
    assert_int_equal(b->cost_ns, TP_UNKNOWN);
}

static void growth_outside_the_accounts_says_so(void **state)
{
    for (int i = 0; i < STEPS; i++)
        data.rss_bytes[i] = 1e9 + 2e8 * i;
    assert_string_equal(tp_profile_leak(&data).owner->name,
                        "outside the accounts (resident memory)");
    assert_int_equal(only_bottleneck()->severity, TP_SEVERITY_HIGH);
}

static void growth_that_stopped_is_no_bottleneck(void **state)
{
    for (int i = 0; i < STEPS; i++)
        data.rss_bytes[i] = 1e9 + 2e6 * (i < 13 ? i : 13);
    assert_int_equal(tp_profile_leak(&data).leak.verdict, TP_LEAK_PLATEAU);
    tp_profile_bottlenecks(&data, &found);
    assert_int_equal(found.n, 0);
}

static void noise_is_no_growth(void **state)
{
    tp_rng rng = tp_rng_make(7, 1);
    for (int i = 0; i < STEPS; i++)
        data.rss_bytes[i] = 1e9 + 5e7 * tp_rng_uniform(&rng);
    assert_int_equal(tp_profile_leak(&data).leak.verdict, TP_LEAK_NONE);
}

/* ---- comparison ---- */

static tp_arena arena;
static tp_buf text;

/* A baseline whose steps and one operator take these many seconds, noise of 1 %. */
static const tp_json *baseline(double step_s, double op_s, int n, const char *op)
{
    tp_rng rng = tp_rng_make(3, 1);
    const tp_json *root;
    tp_error err;
    assert_int_equal(tp_arena_init(&arena, 16 << 20, NULL), TP_OK);
    tp_buf_clear(&text);
    tp_buf_addf(&text,
                "{\"schema\":1,\"made\":\"then\",\"machine\":\"here\",\"threads\":2,"
                "\"parameters\":1000,\"used_tokens_per_step\":95,\"peak_bytes\":4000,"
                "\"operators\":[{\"name\":\"%s\",\"s\":[",
                op);
    for (int i = 0; i < n; i++)
        tp_buf_addf(&text, "%s%.17g", i ? "," : "",
                    op_s * (1 + 0.01 * (tp_rng_uniform(&rng) - 0.5)));
    tp_buf_adds(&text, "]}],\"step_s\":[");
    for (int i = 0; i < n; i++)
        tp_buf_addf(&text, "%s%.17g", i ? "," : "",
                    step_s * (1 + 0.01 * (tp_rng_uniform(&rng) - 0.5)));
    tp_buf_adds(&text, "]}");
    if (tp_json_parse(&arena, "baseline", text.data, text.len, NULL, &root, &err) != TP_OK)
        fail_msg("%s", err.message);
    return root;
}

static void add_noise(double *v, double amount)
{
    tp_rng rng = tp_rng_make(5, 1);
    for (int i = 0; i < STEPS; i++)
        v[i] *= 1 + amount * (tp_rng_uniform(&rng) - 0.5);
}

static tp_profile_comparison compare(double step_s, double op_s, int n, const char *op)
{
    tp_profile_comparison c;
    tp_error err;
    add_noise(data.step_s, 0.01);
    add_noise(data.ops[0].s, 0.01);
    if (tp_profile_compare(baseline(step_s, op_s, n, op), "b", &data, &c, &err) != TP_OK)
        fail_msg("%s", err.message);
    tp_arena_release(&arena);
    tp_buf_release(&text);
    return c;
}

static void faster_is_better(void **state)
{
    tp_profile_comparison c = compare(0.2, 0.18, 20, "linear");
    assert_string_equal(tp_change_name(c.step.verdict), "better");
    assert_true(c.step.lo < 0.5 && 0.5 < c.step.hi && c.step.hi - c.step.lo < 0.01);
    assert_int_equal(c.n_ops, 1);
    assert_string_equal(c.ops[0].name, "linear");
    assert_string_equal(tp_change_name(c.ops[0].verdict), "better");
    assert_string_equal(c.notes, "");
    assert_true(c.before_peak == 4000 && c.after_peak == 5000);
}

static void slower_is_worse(void **state)
{
    assert_string_equal(tp_change_name(compare(0.09, 0.09, 20, "linear").step.verdict), "worse");
}

static void equal_is_the_same(void **state)
{
    assert_string_equal(tp_change_name(compare(0.1, 0.09, 20, "linear").step.verdict), "same");
}

static void too_noisy_is_not_shown(void **state)
{
    add_noise(data.step_s, 1.0);
    assert_string_equal(tp_change_name(compare(0.1, 0.09, 20, "linear").step.verdict), "not shown");
}

static void few_steps_are_not_shown(void **state)
{
    assert_string_equal(tp_change_name(compare(0.5, 0.09, 5, "linear").step.verdict), "not shown");
}

static void operators_come_and_go(void **state)
{
    tp_profile_comparison c = compare(0.1, 0.5, 20, "gone_op");
    assert_int_equal(c.n_ops, 2);
    assert_string_equal(c.ops[0].name, "gone_op"); /* the larger change */
    assert_true(isnan(c.ops[0].after_s));
    assert_string_equal(c.ops[1].name, "linear");
    assert_true(isnan(c.ops[1].before_s));
}

static void what_differs_is_said(void **state)
{
    data.threads = 1;
    data.parameters = 7;
    tp_profile_comparison c = compare(0.1, 0.09, 20, "linear");
    assert_string_equal(c.notes, "another number of threads; another model");
}

static void bad_baselines_are_errors(void **state)
{
    static const char *const bad[] = {
        "{}", "{\"step_s\":[1]}", "{\"step_s\":[1,\"x\"]}", "{\"step_s\":[1,-1]}", "{\"step_s\":5}",
        "[]"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const tp_json *root;
        tp_profile_comparison c;
        tp_error err;
        assert_int_equal(tp_arena_init(&arena, 1 << 20, NULL), TP_OK);
        assert_int_equal(tp_json_parse(&arena, "b", bad[i], strlen(bad[i]), NULL, &root, NULL),
                         TP_OK);
        assert_int_equal(tp_profile_compare(root, "b", &data, &c, &err), TP_ERR_FORMAT);
        tp_arena_release(&arena);
    }
}

static void names_are_single_folders(void **state)
{
    char dir[128];
    static const char *const bad[] = {"", ".", "..", "a/b", ".hidden", "a b", "\xc3\xa4"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(tp_profile_dir(bad[i], dir, sizeof dir, NULL), TP_ERR_ARG);
    assert_int_equal(tp_profile_dir("before-2.1_x", dir, sizeof dir, NULL), TP_OK);
    assert_string_equal(dir, "runs/profiles/before-2.1_x");
}

#define PROFILE_TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PROFILE_TEST(nothing_wrong_is_no_bottleneck),
        PROFILE_TEST(an_operator_below_its_limit_costs_the_rest),
        PROFILE_TEST(without_ceilings_operators_are_not_judged),
        PROFILE_TEST(waiting_for_data_is_named),
        PROFILE_TEST(an_idle_processor_is_named),
        PROFILE_TEST(padding_is_named),
        PROFILE_TEST(remedies_for_padding_are_off),
        PROFILE_TEST(time_outside_steps_is_of_all_time),
        PROFILE_TEST(remedies_for_products_are_off),
        PROFILE_TEST(recomputation_is_known_by_what_it_is),
        PROFILE_TEST(the_most_costly_comes_first),
        PROFILE_TEST(flat_memory_does_not_grow),
        PROFILE_TEST(few_steps_say_nothing),
        PROFILE_TEST(steady_growth_is_found_with_its_owner),
        PROFILE_TEST(growth_outside_the_accounts_says_so),
        PROFILE_TEST(growth_that_stopped_is_no_bottleneck),
        PROFILE_TEST(noise_is_no_growth),
        PROFILE_TEST(faster_is_better),
        PROFILE_TEST(slower_is_worse),
        PROFILE_TEST(equal_is_the_same),
        PROFILE_TEST(too_noisy_is_not_shown),
        PROFILE_TEST(few_steps_are_not_shown),
        PROFILE_TEST(operators_come_and_go),
        PROFILE_TEST(what_differs_is_said),
        PROFILE_TEST(bad_baselines_are_errors),
        PROFILE_TEST(names_are_single_folders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
