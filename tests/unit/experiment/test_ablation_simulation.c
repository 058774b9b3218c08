/* Ablations on a simulated machine: how often is a lever that does nothing called better or worse,
 * and how often does the interval hold what the lever truly gives?
 *
 * The machine is that of support/synthetic.h (autocorrelated drift, heavy tail) with slow periods
 * besides, as a machine has that others use: they begin with 2 % of the runs, last 8 on average,
 * and everything takes 40 % longer.  `--full` runs ten times as many ablations. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "instrument/experiment/ablation.h"
#include "support/synthetic.h"

enum { LEVERS = 8, STEPS = 6 };

static int ablations = 200;

/* ---- the machine ---- */

typedef struct {
    synthetic_machine machine;
    bool is_slow;
    const double *gains; /* ln of what a lever takes of the time */
} simulated;

static double now_s(void *user)
{
    simulated *m = user;
    return (double)m->machine.now_ns * 1e-9;
}

static double slow_period(simulated *m)
{
    m->is_slow = tp_rng_uniform(&m->machine.rng) < (m->is_slow ? 7.0 / 8 : 0.02);
    return m->is_slow ? log(1.4) : 0;
}

static bool has(const tp_variant *v, const char *setting)
{
    for (size_t i = 0; i < v->n_settings; i++)
        if (strcmp(v->settings[i], setting) == 0)
            return true;
    return false;
}

/* Settings are "lever-3=on". */
static tp_status run(void *user, tp_arena *arena, const tp_variant *v, size_t number, tp_trial *ret,
                     tp_error *err)
{
    simulated *m = user;
    double log_s = slow_period(m) + synthetic_disturbance(&m->machine);
    for (size_t i = 0; i < v->n_settings; i++)
        if (strstr(v->settings[i], "=on"))
            log_s -= m->gains[i];
    double seconds = 0.1 * exp(log_s);
    double *losses = tp_arena_array(arena, double, STEPS);
    for (int i = 0; i < STEPS; i++)
        losses[i] = 4;
    losses[3] = has(v, "lever-1=off") ? 4.0078125 : losses[3]; /* 2^-9 of it */
    losses[4] = has(v, "lever-2=off") ? 4.0625 : losses[4];
    losses[5] = has(v, "lever-3=off") ? NAN : losses[5];
    m->machine.now_ns += (uint64_t)(seconds * 10e9);
    *ret = (tp_trial){.n_steps = STEPS, .losses = losses, .wall_s = 10 * seconds, .others = NAN};
    ret->values[TP_FIGURE_STEP_TIME] = seconds;
    ret->values[TP_FIGURE_TOKENS] = 1000 / seconds;
    ret->values[TP_FIGURE_PEAK_MEMORY] = 1e6;
    ret->values[TP_FIGURE_RESIDENT] = 1e6;
    ret->values[TP_FIGURE_COST] = seconds;
    return TP_OK;
}

static tp_status settings_of(void *user, const tp_put *put, tp_arena *arena,
                             const char *const **ret, size_t *ret_n, tp_error *err)
{
    const char **all = tp_arena_array(arena, const char *, LEVERS);
    for (int i = 0; i < LEVERS; i++)
        all[i] = tp_arena_printf(arena, "lever-%d=%s", i, put[i] == TP_PUT_ON ? "on" : "off");
    *ret = all;
    *ret_n = LEVERS;
    return TP_OK;
}

/* A run takes about a second; the first one is not counted. */
static void ablate_within(const double *gains, uint64_t seed, size_t rounds, double budget_s,
                          tp_experiment *x, tp_ablation *a)
{
    static const tp_set_lever levers[LEVERS] = {
        {"lever-0", "", TP_PUT_AS_IS}, {"lever-1", "", TP_PUT_AS_IS}, {"lever-2", "", TP_PUT_AS_IS},
        {"lever-3", "", TP_PUT_AS_IS}, {"lever-4", "", TP_PUT_AS_IS}, {"lever-5", "", TP_PUT_AS_IS},
        {"lever-6", "", TP_PUT_AS_IS}, {"lever-7", "", TP_PUT_AS_IS}};
    static const tp_lever_set set = {.levers = levers, .n = LEVERS, .settings = settings_of};
    simulated m = {.machine = synthetic_machine_make(seed), .gains = gains};
    tp_trial_runner runner = {.run = run, .now_s = now_s, .user = &m};
    tp_ablation_plan plan = {
        .most_rounds = rounds, .share = 1, .margin = 0.01, .loss_tolerance = 0x1p-8};
    assert_int_equal(tp_experiment_init(x, &runner, seed, budget_s, NULL), TP_OK);
    assert_int_equal(tp_ablation_init(a, x, &set, &plan, NULL), TP_OK);
    if (budget_s < 1e9)
        assert_int_equal(tp_experiment_round(x, TP_STAGE_PILOT, 0, &a->all, 1, NULL), TP_OK);
    assert_int_equal(tp_ablation_run(a, NULL), TP_OK);
    assert_int_equal(tp_ablation_conclude(a, NULL), TP_OK);
}

static void ablate(const double *gains, uint64_t seed, size_t rounds, tp_experiment *x,
                   tp_ablation *a)
{
    ablate_within(gains, seed, rounds, 1e9, x, a);
}

/* ---- what is counted ---- */

typedef struct {
    double quiet;       /* ablations in which no lever and not all together is called anything */
    double lever_quiet; /* the same of single levers */
    double covered;     /* intervals that hold the truth */
    double shown;       /* levers called better */
} outcome;

static outcome count(const double *gains, size_t rounds)
{
    outcome o = {0};
    for (int k = 0; k < ablations; k++) {
        tp_experiment x;
        tp_ablation a;
        ablate(gains, (uint64_t)k + 1, rounds, &x, &a);
        tp_change all = a.all_off.figures[TP_FIGURE_STEP_TIME].verdict;
        bool is_quiet = all == TP_CHANGE_SAME || all == TP_CHANGE_NOT_SHOWN;
        for (int i = 0; i < LEVERS; i++) {
            const tp_factor *f = &a.levers[i].figures[TP_FIGURE_STEP_TIME];
            bool is_called = f->verdict == TP_CHANGE_BETTER || f->verdict == TP_CHANGE_WORSE;
            is_quiet &= !is_called;
            o.lever_quiet += !is_called;
            o.shown += f->verdict == TP_CHANGE_BETTER;
            o.covered += f->lo <= exp(-gains[i]) && exp(-gains[i]) <= f->hi;
        }
        o.quiet += is_quiet;
        tp_experiment_release(&x);
    }
    double each = 100.0 / ablations;
    return (outcome){o.quiet * each, o.lever_quiet * each / LEVERS, o.covered * each / LEVERS,
                     o.shown * each / LEVERS};
}

static void levers_that_do_nothing_are_called_nothing(void **state)
{
    static const double nothing[LEVERS] = {0};
    static const size_t rounds[] = {6, 10, 20};
    for (size_t i = 0; i < 3; i++) {
        outcome o = count(nothing, rounds[i]);
        print_message(
            "A/A, %2zu rounds: %5.1f %% of ablations quiet, %5.1f %% of levers; intervals "
            "hold 1 in %.1f %%\n",
            rounds[i], o.quiet, o.lever_quiet, o.covered);
        assert_true(o.quiet >= 95);
        assert_true(o.lever_quiet >= 99);
        assert_true(o.covered >= 93 && o.covered <= 97);
    }
}

static void intervals_hold_what_levers_give(void **state)
{
    static const double gains[LEVERS] = {0.02, 0.05, 0.1, 0.2, 0.3, -0.05, -0.1, 0.5};
    static const size_t rounds[] = {6, 8, 10, 15, 20};
    for (size_t i = 0; i < 5; i++) {
        outcome o = count(gains, rounds[i]);
        print_message("effects, %2zu rounds: intervals hold the truth in %.1f %%, better shown in "
                      "%.1f %%\n",
                      rounds[i], o.covered, o.shown);
        assert_true(o.covered >= 93 && o.covered <= 97);
    }
}

static void losses_are_told_apart(void **state)
{
    static const double nothing[LEVERS] = {0};
    static const tp_loss_verdict wanted[] = {TP_LOSS_IDENTICAL, TP_LOSS_ROUNDING, TP_LOSS_CHANGED,
                                             TP_LOSS_CHANGED};
    tp_experiment x;
    tp_ablation a;
    ablate(nothing, 1, 2, &x, &a);
    for (int i = 0; i < 4; i++)
        assert_int_equal(a.levers[i].loss.verdict, wanted[i]);
    assert_true(fabs(a.levers[1].loss.largest - 0.0078125 / 4.0078125) < 1e-15);
    assert_true(isinf(a.levers[3].loss.largest));
    assert_int_equal(a.levers[0].loss.n_steps, STEPS);
    assert_int_equal(a.all_off.loss.verdict, TP_LOSS_CHANGED);
    tp_experiment_release(&x);
}

/* Three variants a round; the second round has two. */
static void a_round_that_was_cut_is_no_whole_one(void **state)
{
    tp_trial_sample samples[] = {{.stage = TP_STAGE_MAIN, .round = 0, .variant = 0},
                                 {.stage = TP_STAGE_MAIN, .variant = 1},
                                 {.stage = TP_STAGE_MAIN, .round = 0, .variant = 2},
                                 {.stage = TP_STAGE_MAIN, .round = 1},
                                 {.stage = TP_STAGE_MAIN, .round = 1, .variant = 2}};
    tp_experiment x = {.samples = samples, .n_samples = 5};
    (void)state;
    assert_int_equal(tp_experiment_rounds(&x, TP_STAGE_MAIN), 2);
    assert_int_equal(tp_experiment_whole_rounds(&x, TP_STAGE_MAIN), 2); /* a variant failed */
    x.is_out_of_time = true;
    assert_int_equal(tp_experiment_whole_rounds(&x, TP_STAGE_MAIN), 1);
    x.n_samples = 2; /* one round, and that cut: all there is */
    assert_int_equal(tp_experiment_whole_rounds(&x, TP_STAGE_MAIN), 1);
}

/* All on takes 0.45 s, all off 1 s, either without one lever 0.5 s: 20 s have room for six rounds of
 * these and three levers. */
static void a_budget_that_is_short_leaves_levers_out(void **state)
{
    static const double gains[LEVERS] = {0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1};
    tp_experiment x;
    tp_ablation a;
    (void)state;
    ablate_within(gains, 3, SIZE_MAX, 20, &x, &a);
    for (int i = 0; i < LEVERS; i++) {
        const tp_factor *f = &a.levers[i].figures[TP_FIGURE_STEP_TIME];
        assert_int_equal(a.levers[i].is_left_out, i >= 3);
        assert_true(i < 3 ? f->n >= 6 && isfinite(f->lo) : f->n == 0 && isnan(f->ratio));
    }
    assert_true(a.whole_s > 25 && a.whole_s < 45);
    assert_true(a.all_off.figures[TP_FIGURE_STEP_TIME].n >= 6);
    tp_experiment_release(&x);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levers_that_do_nothing_are_called_nothing),
        cmocka_unit_test(intervals_hold_what_levers_give),
        cmocka_unit_test(losses_are_told_apart),
        cmocka_unit_test(a_round_that_was_cut_is_no_whole_one),
        cmocka_unit_test(a_budget_that_is_short_leaves_levers_out),
    };
    if (argc > 1 && strcmp(argv[1], "--full") == 0)
        ablations = 2000;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
