/* Rounds that something else disturbed: readings, reasons, and what a benchmark does. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "instrument/bench/gate.h"
#include "instrument/bench/runner.h"
#include "support/synthetic.h"

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void counters_are_read(void **state)
{
    char folder[] = "/tmp/temper-XXXXXX", path[128];
    tp_machine_reading r;
    assert_non_null(mkdtemp(folder));
    for (int cpu = 0; cpu < 2; cpu++) {
        snprintf(path, sizeof path, "%s/cpu%d", folder, cpu);
        mkdir(path, 0755);
        snprintf(path, sizeof path, "%s/cpu%d/thermal_throttle", folder, cpu);
        mkdir(path, 0755);
        snprintf(path, sizeof path, "%s/cpu%d/thermal_throttle/core_throttle_count", folder, cpu);
        write_file(path, cpu ? "7\n" : "2\n");
    }
    snprintf(path, sizeof path, "%s/cpu1/thermal_throttle/package_throttle_count", folder);
    write_file(path, "30\n");
    snprintf(path, sizeof path, "%s/stat", folder);
    write_file(path, "cpu  10 20 30 400 5 6 7 80 9 9\ncpu0 1 1 1 1 1 1 1 1 0 0\n");

    tp_machine_read_from(path, folder, &r);
    assert_int_equal(r.steal_ticks, 80);
    assert_int_equal(r.all_ticks, 10 + 20 + 30 + 400 + 5 + 6 + 7 + 80);
    assert_int_equal(r.throttles, 2 + 7 + 30);
    assert_int_equal(r.idle_ticks, 400 + 5);

    /* Kernels before 2.6.11 have no steal; other systems have nothing at all. */
    write_file(path, "cpu  10 20 30 400\n");
    tp_machine_read_from(path, "/nowhere", &r);
    assert_int_equal(r.steal_ticks, TP_READING_UNKNOWN);
    assert_int_equal(r.all_ticks, TP_READING_UNKNOWN);
    assert_int_equal(r.throttles, TP_READING_UNKNOWN);
    tp_machine_read_from("/nowhere", "/nowhere", &r);
    assert_int_equal(r.all_ticks, TP_READING_UNKNOWN);
    snprintf(path, sizeof path, "rm -r %s", folder);
    assert_int_equal(system(path), 0);
}

static tp_disturbance reason(int64_t steal, int64_t all, int64_t throttles, int64_t switches,
                             double seconds)
{
    const tp_machine_reading before = {100, 1000, 5, 0};
    const tp_machine_reading after = {100 + steal, 1000 + all, 5 + throttles, 0};
    const int64_t n[2] = {TP_READING_UNKNOWN, switches};
    const double s[2] = {0, seconds};
    return tp_round_judge(&before, &after, n, s).reason;
}

static void a_round_goes_for_a_recorded_reason_only(void **state)
{
    assert_int_equal(reason(0, 100, 0, 0, 1), TP_UNDISTURBED);
    assert_int_equal(reason(5, 100, 0, 0, 1), TP_UNDISTURBED); /* 5 %, not more */
    assert_int_equal(reason(6, 100, 0, 0, 1), TP_DISTURBED_BY_STEAL);
    assert_int_equal(reason(2, 10, 0, 0, 1), TP_UNDISTURBED); /* 20 %, but of 10 ticks */
    assert_int_equal(reason(0, 100, 0, 1000, 1), TP_UNDISTURBED);
    assert_int_equal(reason(0, 100, 0, 1001, 1), TP_DISTURBED_BY_SWITCHES);
    assert_int_equal(reason(0, 100, 0, 19, 0.001), TP_UNDISTURBED);
    assert_int_equal(reason(0, 100, 0, 20, 0.001), TP_DISTURBED_BY_SWITCHES);
    assert_int_equal(reason(0, 100, 1, 0, 1), TP_DISTURBED_BY_THROTTLE);
    assert_int_equal(reason(-3, 100, 0, 0, 1), TP_UNDISTURBED); /* a counter ran backwards */
}

static void the_unknown_rejects_nothing(void **state)
{
    const tp_machine_reading none = {TP_READING_UNKNOWN, TP_READING_UNKNOWN, TP_READING_UNKNOWN,
                                     TP_READING_UNKNOWN};
    const int64_t switches[2] = {TP_READING_UNKNOWN, TP_READING_UNKNOWN};
    const double seconds[2] = {1, 1};
    tp_round_conditions c = tp_round_judge(&none, &none, switches, seconds);
    assert_true(isnan(c.steal_share) && isnan(c.switches_per_s));
    assert_int_equal(c.throttles, TP_READING_UNKNOWN);
    assert_int_equal(c.reason, TP_UNDISTURBED);
}

static void a_quarter_is_the_most(void **state)
{
    assert_false(tp_too_many_disturbed(3, 6));
    assert_true(tp_too_many_disturbed(4, 12));
    assert_false(tp_too_many_disturbed(4, 16));
    assert_true(tp_too_many_disturbed(5, 16));
}

/* A machine that steals 10 % in the rounds whose bit is set. */
typedef struct {
    uint64_t stolen;
    int n_readings;
    tp_machine_reading now;
} made_up;

static void read_made_up(void *user, tp_machine_reading *ret)
{
    made_up *m = user;
    int round = m->n_readings / 2;
    if (m->n_readings++ % 2 == 1) {
        m->now.all_ticks += 100;
        m->now.steal_ticks += m->stolen >> round & 1 ? 10 : 0;
    }
    *ret = m->now;
}

static void measure(tp_bench_report *r, uint64_t stolen, size_t rounds)
{
    static made_up machine;
    synthetic_machine m = synthetic_machine_make(1);
    synthetic_subject a, b;
    machine = (made_up){.stolen = stolen};
    synthetic_subject_init(&a, &m, 0);
    synthetic_subject_init(&b, &m, 0);
    tp_bench_plan plan = tp_bench_plan_default();
    plan.clock = (tp_bench_clock){synthetic_now, &m};
    plan.budget_s = 0;
    plan.rounds = rounds;
    plan.read_machine = read_made_up;
    plan.machine = &machine;
    assert_int_equal(tp_bench_report_init(r, NULL), TP_OK);
    assert_int_equal(tp_bench_measure(r, "x", &plan, &a.subject, &b.subject, NULL), TP_OK);
    assert_int_equal(tp_gate_settle(r, NULL), TP_OK);
}

static void both_sides_of_a_disturbed_round_go(void **state)
{
    tp_bench_report r, quiet;
    measure(&r, 1 << 2 | 1 << 5, 10);
    const tp_bench_result *x = &r.results[0];
    assert_int_equal(x->n_attempts, 12);
    assert_int_equal(x->n_disturbed, 2);
    assert_int_equal(x->rounds, 10);
    assert_int_equal(x->metrics[0].n_a, 10);
    assert_int_equal(x->metrics[0].n_b, 10);
    assert_int_equal(x->attempts[2].reason, TP_DISTURBED_BY_STEAL);
    assert_true(x->attempts[2].steal_share == 0.1);
    assert_int_equal(x->attempts[3].reason, TP_UNDISTURBED);
    assert_string_equal(x->note, "2 of 12 rounds measured again: steal 2");
    assert_int_not_equal(x->verdict, TP_BENCH_FAILED);

    /* The order stays that of the seed: a rejected round is run again, not left out. */
    measure(&quiet, 0, 10);
    assert_string_equal(x->order, quiet.results[0].order);
    assert_null(quiet.results[0].note);
    tp_bench_report_release(&r);
    tp_bench_report_release(&quiet);
}

static void on_a_busy_machine_every_round_counts(void **state)
{
    tp_bench_report r;
    const tp_gate_options options = {0};
    measure(&r, UINT64_MAX, 10);
    const tp_bench_result *x = &r.results[0];
    assert_int_not_equal(x->verdict, TP_BENCH_FAILED);
    assert_int_equal(x->rounds, 10);
    assert_int_equal(x->n_attempts, 13); /* three measured again, then it is the rule */
    assert_true(x->attempts[2].is_rejected);
    assert_false(x->attempts[3].is_rejected);
    assert_int_equal(x->attempts[3].reason, TP_DISTURBED_BY_STEAL);
    assert_non_null(strstr(x->note, "13 of 13 rounds were disturbed (steal 13)"));
    assert_int_equal(tp_gate_conclude(&r, &options).exit_status, 0);
    tp_bench_report_release(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counters_are_read),
        cmocka_unit_test(a_round_goes_for_a_recorded_reason_only),
        cmocka_unit_test(the_unknown_rejects_nothing),
        cmocka_unit_test(a_quarter_is_the_most),
        cmocka_unit_test(both_sides_of_a_disturbed_round_go),
        cmocka_unit_test(on_a_busy_machine_every_round_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
