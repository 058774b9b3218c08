/* test_alarms.c - rules as they are read; six runs that fail, each named at the right step; runs
 * that are healthy, of which nothing is said. */
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
#include "instrument/monitor/alarm_feed.h"
#include "instrument/monitor/alarm_plan.h"
#include "stats/bootstrap.h"
#include "support/draws.h"

/* ---- the grammar ---- */

static void rules_are_read(void **state)
{
    (void)state;
    tp_alarm_rule r;
    tp_error err;
    assert_int_equal(tp_alarm_rule_parse("train/loss rises by 3 sigma over 50 steps", &r, &err),
                     TP_OK);
    assert_int_equal(r.n, 1);
    assert_string_equal(r.conditions[0].subject, "train/loss");
    assert_int_equal(r.conditions[0].role, -1);
    assert_int_equal(r.conditions[0].predicate, TP_ALARM_RISES);
    assert_int_equal(r.conditions[0].unit, TP_ALARM_SIGMA);
    assert_true(r.conditions[0].amount == 3);
    assert_true(r.conditions[0].over.length == 50 && !r.conditions[0].over.is_time);

    assert_int_equal(tp_alarm_rule_parse("memory above 80%", &r, &err), TP_OK);
    assert_int_equal(r.conditions[0].role, TP_ROLE_MEMORY_SHARE);
    assert_int_equal(tp_alarm_rule_parse("memory above 12 GiB for 2 min", &r, &err), TP_OK);
    assert_int_equal(r.conditions[0].role, TP_ROLE_MEMORY);
    assert_true(r.conditions[0].amount == 12884901888.0);
    assert_true(r.conditions[0].hold.length == 120 && r.conditions[0].hold.is_time);

    assert_int_equal(
        tp_alarm_rule_parse("Clip Fraction above 0.4 for 5 steps and 'lm loss' flat", &r, &err),
        TP_OK);
    assert_int_equal(r.n, 2);
    assert_int_equal(r.conditions[0].role, TP_ROLE_CLIP_FRACTION);
    assert_string_equal(r.conditions[1].subject, "lm loss");
    assert_int_equal(r.conditions[1].predicate, TP_ALARM_FLAT);
    assert_true(isnan(r.conditions[1].amount));
}

static void faults_name_the_column(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"train/loss rises by 3 sgima", "column 23: 'sgima' is not expected here"},
        {"loss above", "column 11: a number is expected here; the rule ends"},
        {"loss above high", "column 12: a number is expected here, not 'high'"},
        {"frobnicate rate above 3",
         "column 1: 'frobnicate rate' is no quantity; there are accuracy"},
        {"loss > 5",
         "column 1: comparisons are words: 'train/loss above 5', 'train/reward below 0.1'"},
        {"loss", "column 5: 'loss' is followed by above, below, rises"},
        {"", "column 1: a rule begins with what it listens to"},
        {"loss flat over 5 parsecs", "column 18: a window is so many steps, s, min or h"},
        {"loss above 1 over 5 steps", "'over' goes with a change; write 'for'"},
        {"loss flat for 5 steps", "'for' goes with above and below; write 'over'"},
        {"loss rises by -3", "a change is above 0"},
        {"loss above 3 sigma", "sigma goes with rises and falls"},
        {"loss is infinite", "column 9: 'is' goes on with 'not finite', not 'infinite'"},
        {"'lm loss above 3", "column 1: the quote does not end"},
        {"loss flat over 0 steps", "a window is longer than 0"},
        {"loss flat over 2 steps over 3 steps", "'over' was said before"},
        {"entropy collapses to 120 %", "below 100"},
        {"loss flat and", "a rule begins with"},
        {"loss above 1 and loss above 2 and loss above 3 and loss above 4 and loss above 5",
         "at most 4 conditions"},
    };
    for (size_t i = 0; i < TP_COUNTOF(cases); i++) {
        tp_alarm_rule r;
        tp_error err = {0};
        assert_int_equal(tp_alarm_rule_parse(cases[i][0], &r, &err), TP_ERR_CONFIG);
        if (!strstr(err.message, cases[i][1]))
            fail_msg("'%s': %s", cases[i][0], err.message);
    }
}

/* ---- made runs ---- */

static double normal(tp_splitmix *s)
{
    double u = 1 - draw_uniform(s), v = draw_uniform(s);
    return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

enum { STEPS = 600, FAULT = 400 };

typedef struct {
    double loss, reward, entropy, length, memory, throughput, undisturbed, tokens;
} figures;

typedef enum { HEALTHY, DISTURBED, DIVERGES, COLLAPSES, HACKS, LEAKS, SLOWS, REPEATS } ailment;

/* A run as GRPO's are: what is learned in the first half, noise in which neighbours are alike. */
static void make_run(figures *run, ailment what, uint64_t seed)
{
    tp_splitmix s = {seed};
    double drift = 0;
    for (int i = 0; i < STEPS; i++) {
        double ill = i >= FAULT ? i - FAULT + 1 : 0, learned = 1 - exp(-i / 150.0);
        drift = 0.8 * drift + 0.6 * normal(&s);
        figures *f = &run[i];
        f->loss = 0.4 + 1.6 * exp(-i / 120.0) + 0.05 * drift;
        f->reward = 0.2 + 0.5 * learned + 0.03 * normal(&s);
        f->entropy = 1.2 - 0.4 * learned + 0.05 * normal(&s);
        f->length = 40 + 1.5 * normal(&s);
        f->memory = 2e9 + 2e6 * normal(&s);
        f->throughput = 5000 * (1 + 0.08 * normal(&s)) * (draw_uniform(&s) < 0.05 ? 0.6 : 1);
        f->tokens = floor(2000 + 400 * draw_uniform(&s));
        if (what == DIVERGES)
            f->loss *= exp(ill / 15);
        if (what == COLLAPSES && ill > 0) {
            f->entropy *= exp(-ill / 10);
            f->reward = 0.3 + 0.03 * normal(&s);
        }
        if (what == HACKS && ill > 0) {
            f->length *= 1 + ill / 60;
            f->reward += 0.004 * ill;
        }
        if (what == LEAKS)
            f->memory += 5e6 * ill;
        if (what == SLOWS)
            f->throughput *= 1 - fmin(0.6, 0.01 * ill);
        f->undisturbed = f->throughput;
        if (what == DISTURBED && ill > 0) /* somebody else has half of the machine */
            f->throughput *= 0.5;
        if (what == REPEATS && ill > 0)
            f->tokens = run[i - 37].tokens;
    }
}

static void hear(tp_alarm_set *set, const figures *run)
{
    for (int i = 0; i < STEPS; i++) {
        const figures *f = &run[i];
        double wall = 1e9 + i;
        tp_alarm_set_see(set, "train/loss", i + 1, wall, f->loss);
        tp_alarm_set_see(set, "train/reward", i + 1, wall, f->reward);
        tp_alarm_set_see(set, "train/approx_entropy", i + 1, wall, f->entropy);
        tp_alarm_set_see(set, "train/mean_gen_tokens_per_sample", i + 1, wall, f->length);
        tp_alarm_set_see(set, "memory/resident_bytes", i + 1, wall, f->memory);
        tp_alarm_set_see(set, "performance/tokens_per_sec", i + 1, wall, f->throughput);
        tp_alarm_set_see(set, "performance/undisturbed_tokens_per_sec", i + 1, wall,
                         f->undisturbed);
        tp_alarm_set_see(set, "train/global_valid_toks", i + 1, wall, f->tokens);
    }
}

/* The ailment is what is named, alone, and within `late` steps of its beginning. */
static void expect(ailment what, const char *name, int late)
{
    static figures run[STEPS];
    for (uint64_t seed = 1; seed <= 20; seed++) {
        tp_alarm_set set = {0};
        tp_alarm_set_add_usual(&set);
        make_run(run, what, 100 * what + seed);
        hear(&set, run);
        if (!set.n_events)
            fail_msg("seed %d: %s is not named", (int)seed, name);
        const tp_alarm_event *e = &set.events[0];
        if (strcmp(set.alarms[e->alarm].name, name) != 0 || e->step <= FAULT ||
            e->step > FAULT + late)
            fail_msg("seed %d: %s at step %.0f: %s", (int)seed, set.alarms[e->alarm].name, e->step,
                     e->text);
        tp_alarm_set_release(&set);
    }
}

static void ailments_are_named(void **state)
{
    (void)state;
    expect(DIVERGES, "diverging", 20);
    expect(COLLAPSES, "entropy collapsed", 45);
    expect(HACKS, "reward pays for length", 60);
    expect(LEAKS, "leak", 130);
    expect(SLOWS, "slowing down", 40);
    expect(REPEATS, "data repeats", 12);
}

static void expect_silence(ailment what)
{
    static figures run[STEPS];
    for (uint64_t seed = 1; seed <= 100; seed++) {
        tp_alarm_set set = {0};
        tp_alarm_set_add_usual(&set);
        make_run(run, what, 10000 + seed);
        hear(&set, run);
        if (set.n_events)
            fail_msg("seed %d: %s at step %.0f: %s", (int)seed,
                     set.alarms[set.events[0].alarm].name, set.events[0].step, set.events[0].text);
        tp_alarm_set_release(&set);
    }
}

static void nothing_is_said_of_healthy_runs(void **state)
{
    (void)state;
    expect_silence(HEALTHY);
}

static void a_neighbour_is_no_ailment(void **state)
{
    (void)state;
    expect_silence(DISTURBED);
}

/* ---- single predicates ---- */

static tp_alarm_set set_of(const char *rule)
{
    tp_alarm_set set = {0};
    tp_error err = {0};
    if (tp_alarm_set_add(&set, rule, NULL, &err) != TP_OK)
        fail_msg("%s", err.message);
    return set;
}

/* The level is the same throughout; the spread grows from 2 % of it to 30 %. */
static void noise_that_grows_is_no_fall(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 15; seed++) {
        tp_splitmix s = {seed};
        tp_alarm_set set = set_of("rate falls by 20 %");
        for (int i = 0; i < 4000; i++)
            tp_alarm_set_see(&set, "rate", i + 1, 1e9 + i,
                             1000 + (20 + 280 * i / 4000.0) * normal(&s));
        if (set.n_events)
            fail_msg("seed %d: step %.0f: %s", (int)seed, set.events[0].step, set.events[0].text);
        tp_alarm_set_release(&set);
    }
}

static void levels_wait_as_long_as_they_say(void **state)
{
    (void)state;
    tp_alarm_set set = set_of("x above 1 for 3 steps");
    static const double values[] = {0, 2, 2, 0, 2, 2, 2, 2, 0};
    for (int i = 0; i < 9; i++)
        tp_alarm_set_see(&set, "x", i + 1, NAN, values[i]);
    assert_int_equal(set.n_events, 1);
    assert_true(set.events[0].step == 7);
    assert_string_equal(set.events[0].text, "x 2.0000, above 1.0000 for 3 steps");
    tp_alarm_set_release(&set);
}

/* Two hours between two attempts: what was above before and after is not known to be in between. */
static void percent_is_of_one_hundred_where_the_tag_is(void **state)
{
    (void)state;
    const struct {
        const char *tag;
        double value;
        bool any;
    } cases[] = {{"train/truncation_rate", 0.91, true},
                 {"train/masked_correct_pct", 0.91, true},
                 {"train/baseline_reward/pct_1", 50, false},
                 {"train/baseline_reward/pct_1", 91, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char rule[80];
        snprintf(rule, sizeof rule, "%s above 90 %%", cases[i].tag);
        tp_alarm_set set = set_of(rule);
        tp_alarm_set_see(&set, cases[i].tag, 1, NAN, cases[i].value);
        if ((set.n_events > 0) != cases[i].any)
            fail_msg("%s of %g: %zu events", rule, cases[i].value, set.n_events);
        tp_alarm_set_release(&set);
    }
}

static void a_pause_is_no_time_above(void **state)
{
    (void)state;
    tp_alarm_set set = set_of("x above 1 for 1 h");
    for (int i = 0; i < 30; i++)
        tp_alarm_set_see(&set, "x", i + 1, 1e9 + 60 * i, 2);
    for (int i = 0; i < 70; i++)
        tp_alarm_set_see(&set, "x", i + 31, 1e9 + 9000 + 60 * i, 2);
    assert_int_equal(set.n_events, 1);
    assert_true(set.events[0].step == 91);
    tp_alarm_set_release(&set);
}

/* A loss of 1 + step / 10000, a gradient norm of 5. */
static void windows_of_many_values_are_whole(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        double step; /* 0: it says nothing */
        bool is_judged;
    } cases[] = {
        {"x rises by 35 % over 10000 steps", 10000, true},
        {"x rises by 40 % over 10000 steps", 0, true},
        {"norm above 1 for 9000 steps", 9000, true},
        {"norm above 1 for 6000 steps", 6000, true},
        {"norm above 1 for 1000000 steps", 0, false},
        {"x rises by 1 % over 70000 steps", 0, false},
    };
    for (size_t i = 0; i < TP_COUNTOF(cases); i++) {
        char why[200];
        tp_alarm_set set = set_of(cases[i].rule);
        int steps = cases[i].is_judged ? 12000 : 140000;
        for (int k = 1; k <= steps; k++) {
            tp_alarm_set_see(&set, "x", k, NAN, 1 + 1e-4 * k);
            tp_alarm_set_see(&set, "norm", k, NAN, 5);
        }
        if (set.n_events != (cases[i].step > 0) ||
            (set.n_events && set.events[0].step != cases[i].step))
            fail_msg("%s: %zu, at %.0f", cases[i].rule, set.n_events,
                     set.n_events ? set.events[0].step : 0);
        const char *reason = tp_alarm_unjudged(&set, 0, why, sizeof why);
        if (cases[i].is_judged ? reason != NULL : !reason || !strstr(reason, "too many for its"))
            fail_msg("%s: %s", cases[i].rule, reason ? reason : "judged");
        tp_alarm_set_release(&set);
    }
}

static void a_pattern_hears_all_its_names(void **state)
{
    (void)state;
    static const struct {
        const char *rule, *text;
    } cases[] = {
        {"'loss/*' is not finite", "loss/b is NaN"},
        {"accuracy below 0.2", "val-core/b 0.1000, below 0.2000"},
    };
    for (size_t i = 0; i < TP_COUNTOF(cases); i++) {
        tp_alarm_set set = set_of(cases[i].rule);
        for (int k = 1; k <= 60; k++) {
            tp_alarm_set_see(&set, "loss/a", k, NAN, 1);
            tp_alarm_set_see(&set, "loss/b", k, NAN, k < 50 ? 1 : NAN);
            tp_alarm_set_see(&set, "val-core/a", k, NAN, 0.5);
            tp_alarm_set_see(&set, "val-core/b", k, NAN, k < 50 ? 0.5 : 0.1);
        }
        assert_int_equal(set.n_events, 1);
        assert_true(set.events[0].step == 50);
        assert_string_equal(set.events[0].text, cases[i].text);
        tp_alarm_set_release(&set);
    }
    /* A better name is the quantity, whatever the others say. */
    tp_alarm_set set = set_of("accuracy below 0.2");
    for (int k = 1; k <= 60; k++) {
        tp_alarm_set_see(&set, "val-core/a", k, NAN, k < 50 ? 0.5 : 0.1);
        tp_alarm_set_see(&set, "validation/accuracy", k, NAN, 0.5);
    }
    assert_int_equal(set.n_events, 0);
    tp_alarm_set_release(&set);
}

static void events_that_are_not_kept_are_counted(void **state)
{
    (void)state;
    tp_alarm_set set = set_of("x above 1");
    for (int i = 0; i < 20 * (TP_ALARM_EVENTS + 3); i++)
        tp_alarm_set_see(&set, "x", i + 1, NAN, i % 20 ? 0 : 2);
    assert_int_equal(set.n_events, TP_ALARM_EVENTS);
    assert_int_equal(set.n_more, 3);
    tp_alarm_set_release(&set);
}

static void what_is_not_finite_is_named_once(void **state)
{
    (void)state;
    tp_alarm_set set = set_of("train/loss is not finite");
    for (int i = 0; i < 30; i++)
        tp_alarm_set_see(&set, "train/loss", i + 1, NAN, i < 5 ? 1 : NAN);
    assert_int_equal(set.n_events, 1);
    assert_true(set.events[0].step == 6);
    assert_string_equal(set.events[0].text, "train/loss is NaN");
    tp_alarm_set_release(&set);
}

static void a_fingerprint_that_comes_again_is_the_same_data(void **state)
{
    (void)state;
    tp_alarm_set set = set_of("data repeats");
    for (int i = 0; i < 40; i++)
        tp_alarm_set_see(&set, "train/data_fingerprint", i + 1, NAN, 1000 + i % 20);
    assert_int_equal(set.n_events, 1);
    assert_true(set.events[0].step == 23);
    assert_non_null(strstr(set.events[0].text, "those of 20 steps before"));
    tp_alarm_set_release(&set);
}

static void too_few_values_are_said_to_be(void **state)
{
    (void)state;
    char why[200];
    tp_alarm_set set = set_of("train/loss rises by 3 sigma over 50 steps");
    assert_string_equal(tp_alarm_unjudged(&set, 0, why, sizeof why),
                        "the run has no metric 'train/loss'");
    tp_alarm_set_see(&set, "train/loss", 1, NAN, 1);
    assert_string_equal(tp_alarm_unjudged(&set, 0, why, sizeof why),
                        "1 value of train/loss: too few for its window");
    tp_alarm_set_release(&set);
    set = set_of("train/loss rises by 3 sigma over 50 steps");
    for (int i = 0; i < 100; i++)
        tp_alarm_set_see(&set, "train/loss", i, NAN, i % 2 ? (double)NAN : INFINITY);
    assert_string_equal(tp_alarm_unjudged(&set, 0, why, sizeof why),
                        "none of the 100 values of train/loss is finite");
    tp_alarm_set_release(&set);
}

/* ---- plans ---- */

static char path[] = "/tmp/temper-alarms-XXXXXX";

static void load(const char *text, tp_alarm_plan *plan, tp_status wanted, const char *message)
{
    tp_error err = {0};
    assert_int_equal(tp_file_write_atomic(path, text, strlen(text), &err), TP_OK);
    assert_int_equal(tp_alarm_plan_load(plan, path, &err), wanted);
    if (message && (!strstr(err.message, message) || !strstr(err.message, path)))
        fail_msg("%s", err.message);
}

static void plans_are_read(void **state)
{
    (void)state;
    tp_alarm_plan plan = {0};
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    load("monitor:\n  alarms:\n  - loss flat\n  - when: memory above 80 %\n    name: full\n"
         "    do: [stop, {run: [notify, -x, 3]}, {lower_rate: 0.5}]\n",
         &plan, TP_OK, NULL);
    assert_int_equal(plan.set.n, 2);
    assert_int_equal(plan.deeds[0].does, TP_ALARM_SAY | TP_ALARM_MARK);
    assert_int_equal(plan.deeds[1].does, TP_ALARM_STOP);
    assert_string_equal(plan.set.alarms[1].name, "full");
    assert_string_equal(plan.deeds[1].argv[0], "notify");
    assert_string_equal(plan.deeds[1].argv[2], "3");
    assert_null(plan.deeds[1].argv[3]);
    assert_true(plan.deeds[1].lower_rate == 0.5);
    tp_alarm_plan_release(&plan);
    load("- usual\n", &plan, TP_OK, NULL);
    assert_int_equal(plan.set.n, 9);
    tp_alarm_plan_release(&plan);

    load("- loss flat\n- when: train/loss flta\n", &plan, TP_ERR_CONFIG,
         ":2: 'train/loss flta', column 1");
    tp_alarm_plan_release(&plan);
    load("- {when: loss flat, do: panic}\n", &plan, TP_ERR_CONFIG, "'panic' is nothing");
    tp_alarm_plan_release(&plan);
    load("- {when: loss flat, do: {run: rm -rf x}}\n", &plan, TP_ERR_CONFIG, "no shell");
    tp_alarm_plan_release(&plan);
    load("- {when: loss flat, do: {lower_rate: 2}}\n", &plan, TP_ERR_CONFIG, "between 0 and 1");
    tp_alarm_plan_release(&plan);
    load("- {whne: loss flat}\n", &plan, TP_ERR_CONFIG, "'whne' is no member");
    tp_alarm_plan_release(&plan);
    load("sft: {}\n", &plan, TP_ERR_CONFIG, "no alarms here");
    tp_alarm_plan_release(&plan);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_are_read),
        cmocka_unit_test(faults_name_the_column),
        cmocka_unit_test(ailments_are_named),
        cmocka_unit_test(nothing_is_said_of_healthy_runs),
        cmocka_unit_test(a_neighbour_is_no_ailment),
        cmocka_unit_test(noise_that_grows_is_no_fall),
        cmocka_unit_test(levels_wait_as_long_as_they_say),
        cmocka_unit_test(percent_is_of_one_hundred_where_the_tag_is),
        cmocka_unit_test(a_pause_is_no_time_above),
        cmocka_unit_test(windows_of_many_values_are_whole),
        cmocka_unit_test(a_pattern_hears_all_its_names),
        cmocka_unit_test(events_that_are_not_kept_are_counted),
        cmocka_unit_test(what_is_not_finite_is_named_once),
        cmocka_unit_test(a_fingerprint_that_comes_again_is_the_same_data),
        cmocka_unit_test(too_few_values_are_said_to_be),
        cmocka_unit_test(plans_are_read),
    };
    return cmocka_run_group_tests_name("alarms", tests, NULL, NULL);
}
