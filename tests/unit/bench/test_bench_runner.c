/* The runner and the gate together, on a made-up machine with injected slowdowns. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/clock.h"
#include "instrument/bench/gate.h"
#include "support/synthetic.h"

static tp_bench_plan plan_for(synthetic_machine *machine)
{
    tp_bench_plan plan = tp_bench_plan_default();
    plan.clock = (tp_bench_clock){synthetic_now, machine};
    plan.budget_s = 0;
    return plan;
}

/* Measure A against B and settle; returns the exit status. */
static int gate(tp_bench_report *r, const tp_bench_plan *plan, synthetic_subject *a,
                synthetic_subject *b)
{
    tp_gate_options options = {0};
    assert_int_equal(tp_bench_report_init(r, NULL), TP_OK);
    r->rule = plan->rule;
    assert_int_equal(tp_bench_measure(r, "x", plan, a ? &a->subject : NULL, &b->subject, NULL),
                     TP_OK);
    assert_int_equal(tp_gate_settle(r, NULL), TP_OK);
    return tp_gate_conclude(r, &options).exit_status;
}

typedef struct {
    int flagged, passed, unclear, failed_exit;
    double rounds;
} frequencies;

/* 200 runs of the whole gate with a slowdown injected into B. */
static frequencies inject(double slowdown, size_t rounds)
{
    frequencies f = {0};
    for (uint64_t seed = 1; seed <= 200; seed++) {
        synthetic_machine m = synthetic_machine_make(seed);
        synthetic_subject a, b;
        tp_bench_report r;
        synthetic_subject_init(&a, &m, 0);
        synthetic_subject_init(&b, &m, slowdown);
        tp_bench_plan plan = plan_for(&m);
        plan.seed = seed;
        plan.rounds = rounds;
        int status = gate(&r, &plan, &a, &b);
        tp_bench_verdict v = r.results[0].verdict;
        f.flagged += v == TP_BENCH_REGRESSION;
        f.unclear += v == TP_BENCH_INCONCLUSIVE;
        f.passed += v == TP_BENCH_PASS || v == TP_BENCH_SLOWER;
        f.failed_exit += status == 1;
        f.rounds += (double)r.results[0].rounds / 200;
        tp_bench_report_release(&r);
    }
    print_message("injected %4.1f %%: %3d flagged, %3d passed, %3d unclear of 200, %.1f rounds\n",
                  100 * slowdown, f.flagged, f.passed, f.unclear, f.rounds);
    assert_int_equal(f.flagged, f.failed_exit); /* exit status 1 exactly when flagged */
    return f;
}

static void injected_slowdowns_get_their_verdicts_with_twenty_rounds(void **state)
{
    frequencies none = inject(0, 20), two = inject(0.02, 20), five = inject(0.05, 20),
                eight = inject(0.08, 20), ten = inject(0.10, 20);

    assert_int_equal(none.flagged, 0);
    assert_true(none.passed >= 199);
    assert_int_equal(two.flagged, 0);
    assert_true(two.passed >= 190);
    assert_in_range(five.flagged, 0, 14); /* at most alpha: 5 % of 200, and three sd */
    assert_true(eight.flagged >= 195);
    assert_int_equal(ten.flagged, 200);
}

static void injected_slowdowns_get_their_verdicts_when_rounds_are_added_as_needed(void **state)
{
    frequencies none = inject(0, 0), two = inject(0.02, 0), five = inject(0.05, 0),
                eight = inject(0.08, 0), ten = inject(0.10, 0);

    assert_int_equal(none.flagged, 0);
    assert_int_equal(none.passed, 200);
    assert_true(none.rounds < 10);
    assert_int_equal(two.flagged, 0);
    assert_true(two.passed >= 198);
    assert_in_range(five.flagged, 0, 14);
    assert_true(five.unclear >= 170);
    assert_true(eight.flagged >= 198);
    assert_true(eight.rounds < 12);
    assert_int_equal(ten.flagged, 200);
}

/* ---- memory ---- */

static void one_more_allocation_is_caught_by_one_round(void **state)
{
    synthetic_machine m = synthetic_machine_make(1);
    synthetic_subject a, b;
    tp_bench_report r;
    synthetic_subject_init(&a, &m, 0);
    synthetic_subject_init(&b, &m, 0);
    b.blocks = a.blocks + 1;
    tp_bench_plan plan = plan_for(&m);
    int status = gate(&r, &plan, &a, &b);

    const tp_bench_metric *blocks = tp_result_metric(&r.results[0], "blocks");
    assert_int_equal(status, 1);
    assert_int_equal(blocks->comparison.verdict, TP_BENCH_REGRESSION);
    assert_int_equal(blocks->comparison.n, 1);
    assert_int_equal(tp_result_metric(&r.results[0], "memory")->comparison.verdict, TP_BENCH_PASS);
    tp_bench_report_release(&r);
}

/* ---- failures ---- */

static void expect_failure(synthetic_subject *a, synthetic_subject *b, const tp_bench_plan *plan,
                           const char *message)
{
    tp_bench_report r;
    int status = gate(&r, plan, a, b);
    assert_int_equal(status, 3);
    assert_int_equal(r.results[0].verdict, TP_BENCH_FAILED);
    assert_string_equal(r.results[0].message, message);
    tp_bench_report_release(&r);
}

static void what_cannot_be_measured_fails(void **state)
{
    synthetic_machine m = synthetic_machine_make(1);
    synthetic_subject a, b;
    tp_bench_plan plan = plan_for(&m);
    plan.rounds = 10;

    synthetic_subject_init(&a, &m, 0);
    synthetic_subject_init(&b, &m, 0);
    b.nan_in_run = 25; /* behind at most 20 runs of warm-up */
    plan.warm_up_most = plan.warm_up = 20;
    expect_failure(&a, &b, &plan, "memory is NaN in round 5");

    synthetic_subject_init(&a, &m, 0);
    synthetic_subject_init(&b, &m, 0);
    b.fail_in_run = 24;
    expect_failure(&a, &b, &plan, "made to fail in run 24");

    synthetic_subject_init(&a, &m, 0);
    synthetic_subject_init(&b, &m, 0);
    b.fixed_time = 1e-12; /* the clock does not move */
    expect_failure(&a, &b, &plan, "time is 0 in round 1");
}

static tp_status run_shown(tp_subject *subject, uint64_t work, tp_bench_sample *ret, tp_error *err)
{
    ret->elapsed_ns = 1000;
    ret->values[1] = 0;
    return TP_OK;
}

static void a_figure_that_is_only_shown_may_be_zero(void **state)
{
    static const tp_subject_class class = {.run = run_shown};
    static const tp_metric metrics[] = {{.name = "time", .unit = "s", .source = TP_METRIC_DURATION},
                                        {.name = "user_time", .unit = "s", .is_informative = true}};
    tp_subject a = {.class = &class, .metrics = metrics, .n_metrics = 2, .work = 1}, b = a;
    tp_bench_report r;
    tp_bench_plan plan = tp_bench_plan_default();
    plan.rounds = 8;
    assert_int_equal(tp_bench_report_init(&r, NULL), TP_OK);
    assert_int_equal(tp_bench_measure(&r, "x", &plan, &a, &b, NULL), TP_OK);
    assert_int_equal(tp_gate_settle(&r, NULL), TP_OK);
    assert_int_equal(r.results[0].verdict, TP_BENCH_PASS);
    assert_false(r.results[0].metrics[1].is_compared);
    tp_bench_report_release(&r);
}

static void too_few_rounds_are_a_failure(void **state)
{
    synthetic_machine m = synthetic_machine_make(1);
    synthetic_subject b;
    tp_bench_plan plan = plan_for(&m);
    synthetic_subject_init(&b, &m, 0);
    plan.max_rounds = 4;
    expect_failure(NULL, &b, &plan, "time has 4 rounds, at least 5 are needed");
}

/* ---- how it measures ---- */

static void a_spent_budget_still_gives_six_rounds(void **state)
{
    synthetic_machine m = synthetic_machine_make(1);
    synthetic_subject a, b;
    tp_bench_report r;
    tp_bench_plan plan = plan_for(&m);
    synthetic_subject_init(&a, &m, 0);
    synthetic_subject_init(&b, &m, 0.05);
    plan.budget_s = 0.01;
    gate(&r, &plan, &a, &b);
    assert_int_equal(r.results[0].rounds, 6);
    tp_bench_report_release(&r);
}

static void work_is_calibrated_once_and_shared(void **state)
{
    synthetic_machine m = synthetic_machine_make(1);
    synthetic_subject a, b;
    tp_bench_report r;
    tp_bench_plan plan = plan_for(&m);
    synthetic_subject_init(&a, &m, 0);
    synthetic_subject_init(&b, &m, 3); /* four times slower: same work all the same */
    a.seconds = b.seconds = 1e-6;
    a.subject.work = b.subject.work = 0;
    plan.min_round_s = 0.05;
    assert_int_equal(gate(&r, &plan, &a, &b), 1);
    assert_in_range(r.results[0].work, 40000, 70000);
    assert_true(fabs(r.results[0].metrics[0].comparison.ratio - 4) < 0.2);
    tp_bench_report_release(&r);
}

static void alone_it_stops_when_the_interval_is_narrow(void **state)
{
    synthetic_machine m = synthetic_machine_make(1);
    synthetic_subject b;
    tp_bench_report r;
    tp_bench_plan plan = plan_for(&m);
    synthetic_subject_init(&b, &m, 0);
    plan.precision = 0.5;
    gate(&r, &plan, NULL, &b);
    assert_int_equal(r.results[0].rounds, 8);
    tp_bench_report_release(&r);

    m.drift_sd = 0;
    plan.precision = 0.004;
    plan.max_rounds = 1000;
    gate(&r, &plan, NULL, &b);
    const tp_summary *s = &r.results[0].metrics[0].side_b;
    assert_in_range(r.results[0].rounds, 20, 200);
    assert_true((s->upper - s->lower) / 2 <= 0.004 * s->median);
    tp_bench_report_release(&r);
}

static void sides_are_set_up_anew_as_often_as_asked(void **state)
{
    synthetic_machine m = synthetic_machine_make(1);
    synthetic_subject a, b;
    tp_bench_report r;
    tp_bench_plan plan = plan_for(&m);
    synthetic_subject_init(&a, &m, 0);
    synthetic_subject_init(&b, &m, 0);
    plan.rounds = 10;
    plan.fresh = 2;
    gate(&r, &plan, &a, &b);
    assert_int_equal(a.n_set_ups, 5); /* at the start and before rounds 3, 5, 7, 9 */
    assert_int_equal(b.n_set_ups, 5);
    tp_bench_report_release(&r);
}

static void the_same_seed_gives_the_same_report(void **state)
{
    tp_bench_report r[2];
    for (int i = 0; i < 2; i++) {
        synthetic_machine m = synthetic_machine_make(5);
        synthetic_subject a, b;
        tp_bench_plan plan = plan_for(&m);
        synthetic_subject_init(&a, &m, 0);
        synthetic_subject_init(&b, &m, 0.03);
        gate(&r[i], &plan, &a, &b);
    }
    assert_string_equal(r[0].results[0].order, r[1].results[0].order);
    assert_memory_equal(r[0].results[0].metrics[0].b, r[1].results[0].metrics[0].b,
                        r[0].results[0].rounds * sizeof(double));
    tp_bench_report_release(&r[0]);
    tp_bench_report_release(&r[1]);
}

/* ---- what the harness itself costs ---- */

typedef struct {
    tp_subject subject;
    uint64_t own_ns; /* measured inside, next to the work */
} busy_subject;

static tp_status run_busy(tp_subject *subject, uint64_t work, tp_bench_sample *ret, tp_error *err)
{
    busy_subject *s = (busy_subject *)subject;
    (void)work;
    (void)err;
    (void)ret;
    uint64_t start = tp_clock_ns();
    while (tp_clock_ns() - start < 1000000)
        ;
    s->own_ns += tp_clock_ns() - start;
    return TP_OK;
}

/* The clock of the runner against a clock inside the subject, in rounds of 1 ms: printed
 * for the record, not judged (a busy machine decides it). */
static void the_harness_adds_next_to_nothing(void **state)
{
    static const tp_subject_class class = {.run = run_busy};
    static const tp_metric metric = {.name = "time", .unit = "s", .source = TP_METRIC_DURATION};
    busy_subject s = {.subject = {.class = &class, .metrics = &metric, .n_metrics = 1, .work = 1}};
    tp_bench_report r;
    tp_bench_plan plan = tp_bench_plan_default();
    double sum = 0;
    plan.rounds = 50;
    plan.warm_up = 0;
    plan.warm_up_most = 0;
    assert_int_equal(tp_bench_report_init(&r, NULL), TP_OK);
    assert_int_equal(tp_bench_measure(&r, "busy", &plan, NULL, &s.subject, NULL), TP_OK);
    for (size_t i = 0; i < 50; i++)
        sum += r.results[0].metrics[0].b[i];
    double added = (sum * 1e9 - (double)s.own_ns) / 50;
    print_message("the harness adds %.0f ns to a run: %.5f %% of 100 ms\n", added, added / 1e6);
    assert_true(sum > 0);
    tp_bench_report_release(&r);
}

/* ---- what is heard of it ---- */

typedef struct {
    size_t n, setting_up, warming_up, rounds;
    double left_s[32];
} course;

static void follow(void *user, const tp_bench_progress *p)
{
    course *c = user;
    c->n++;
    c->setting_up += p->is_warming_up && p->round == 0;
    c->warming_up += p->is_warming_up && p->round > 0;
    if (!p->is_warming_up)
        c->left_s[c->rounds++] = p->left_s;
}

static void every_round_says_what_is_left(void **state)
{
    synthetic_machine m = synthetic_machine_make(1);
    synthetic_subject b;
    tp_bench_report r;
    course c = {0};
    synthetic_subject_init(&b, &m, 0);
    tp_bench_plan plan = plan_for(&m);
    plan.rounds = 10;
    plan.observe = follow;
    plan.user = &c;
    gate(&r, &plan, NULL, &b);

    assert_int_equal(c.setting_up, 1);
    assert_true(c.warming_up > 0);
    assert_int_equal(c.rounds, 10);
    assert_true(c.left_s[0] > 0 && c.left_s[4] > 0 && c.left_s[4] < c.left_s[0]);
    assert_true(c.left_s[9] == 0);
    tp_bench_report_release(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_round_says_what_is_left),
        cmocka_unit_test(injected_slowdowns_get_their_verdicts_with_twenty_rounds),
        cmocka_unit_test(injected_slowdowns_get_their_verdicts_when_rounds_are_added_as_needed),
        cmocka_unit_test(one_more_allocation_is_caught_by_one_round),
        cmocka_unit_test(what_cannot_be_measured_fails),
        cmocka_unit_test(a_figure_that_is_only_shown_may_be_zero),
        cmocka_unit_test(too_few_rounds_are_a_failure),
        cmocka_unit_test(a_spent_budget_still_gives_six_rounds),
        cmocka_unit_test(work_is_calibrated_once_and_shared),
        cmocka_unit_test(alone_it_stops_when_the_interval_is_narrow),
        cmocka_unit_test(sides_are_set_up_anew_as_often_as_asked),
        cmocka_unit_test(the_same_seed_gives_the_same_report),
        cmocka_unit_test(the_harness_adds_next_to_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
