/* Searches on a simulated machine: what they find, what they leave out, what they refuse to claim;
 * and recipes as they are written. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "instrument/experiment/search.h"
#include "support/synthetic.h"

static const char tree_text[] =
    "{\"policy\": {\"train_global_batch_size\": 64, \"train_micro_batch_size\": 4,"
    " \"max_total_sequence_length\": 32, \"recompute\": null,"
    " \"sequence_packing\": {\"enabled\": true}, \"dynamic_batching\": {\"enabled\": false}},"
    " \"engine\": {\"threads\": null}}";

/* ---- the simulated program ---- */

typedef struct {
    synthetic_machine machine;
    bool is_flat;  /* nothing changes the time */
    double plan_s; /* what planning takes */
    bool predicts; /* the plan knows the time of a step */
    double run_s;  /* of one run; 0: ten steps */
} simulated;

static double now_s(void *user) { return (double)((simulated *)user)->machine.now_ns * 1e-9; }

static bool has(const tp_variant *v, const char *setting)
{
    for (size_t i = 0; i < v->n_settings; i++)
        if (strcmp(v->settings[i], setting) == 0)
            return true;
    return false;
}

static int64_t micro_batch(const tp_variant *v)
{
    static const char key[] = "policy.train_micro_batch_size=";
    int64_t b = 4;
    for (size_t i = 0; i < v->n_settings; i++)
        if (strncmp(v->settings[i], key, sizeof key - 1) == 0)
            b = atoll(v->settings[i] + sizeof key - 1);
    return b;
}

static const double RECIPE_S = 0.12001;

/* Best is a micro-batch of 32 with the lever "bad" off: 0.8 * 0.7 of the recipe's time. */
static double true_seconds(const tp_variant *v)
{
    double s = 0.1 * (1 + 0.0667 * fabs(log2((double)micro_batch(v) / 32)));
    s *= has(v, "bad=off") ? 0.7 : 1;
    s *= has(v, "good=off") ? 1.3 : 1;
    s *= has(v, "policy.recompute=full") ? 1.3 : has(v, "policy.recompute=selective") ? 1.1 : 1;
    return has(v, "engine.threads=1") ? 1.8 * s : s;
}

static tp_status run(void *user, tp_arena *arena, const tp_variant *v, size_t number, tp_trial *ret,
                     tp_error *err)
{
    simulated *m = user;
    double seconds = (m->is_flat ? 0.1 : true_seconds(v)) * exp(synthetic_disturbance(&m->machine));
    double wall_s = m->run_s > 0 ? m->run_s : 10 * seconds;
    m->machine.now_ns += (uint64_t)(wall_s * 1e9);
    *ret = (tp_trial){.wall_s = wall_s, .others = NAN};
    ret->values[TP_FIGURE_STEP_TIME] = ret->values[TP_FIGURE_COST] = seconds;
    ret->values[TP_FIGURE_TOKENS] = 1000 / seconds;
    ret->values[TP_FIGURE_PEAK_MEMORY] = 1e6 * (double)(10 + micro_batch(v));
    return TP_OK;
}

static tp_status plan(void *user, const tp_variant *v, tp_search_plan *ret, tp_error *err)
{
    simulated *m = user;
    m->machine.now_ns += (uint64_t)(m->plan_s * 1e9);
    *ret = (tp_search_plan){.is_known = !has(v, "refused=off"),
                            .why = "refused",
                            .fits = true,
                            .peak_bytes = 1e6 * (double)(10 + micro_batch(v)),
                            .step_s = m->predicts ? true_seconds(v) : (double)NAN};
    return TP_OK;
}

static const tp_set_lever levers[] = {{"good", "", TP_PUT_ON},
                                      {"bad", "", TP_PUT_ON},
                                      {"nothing", "", TP_PUT_OFF},
                                      {"refused", "", TP_PUT_ON},
                                      {"precise", "", TP_PUT_ON}};

static tp_status settings_of(void *user, const tp_put *put, tp_arena *arena,
                             const char *const **ret, size_t *ret_n, tp_error *err)
{
    const char **all = tp_arena_array(arena, const char *, 5);
    *ret_n = 0;
    for (int i = 0; i < 5; i++)
        if (put[i] != TP_PUT_AS_IS)
            all[(*ret_n)++] = i == 4 ? "policy.precision=float32"
                                     : tp_arena_printf(arena, "%s=%s", levers[i].name,
                                                       put[i] == TP_PUT_ON ? "on" : "off");
    *ret = all;
    return TP_OK;
}

static const tp_lever_set set = {.levers = levers, .n = 5, .settings = settings_of};

/* ---- one search ---- */

typedef struct {
    tp_experiment x;
    tp_space space;
    tp_search search;
    simulated machine;
    tp_goal goal;
} trial_search;

static void open_space_of(trial_search *t, uint64_t seed, bool is_flat, double budget_s,
                          int64_t tokens)
{
    const tp_json *tree;
    t->goal = TP_GOAL_TOKENS_PER_S;
    t->machine = (simulated){.machine = synthetic_machine_make(seed), .is_flat = is_flat};
    tp_trial_runner runner = {.run = run, .now_s = now_s, .user = &t->machine};
    assert_int_equal(tp_experiment_init(&t->x, &runner, seed, budget_s, NULL), TP_OK);
    assert_int_equal(
        tp_json_parse(&t->x.arena, "tree", tree_text, sizeof tree_text - 1, NULL, &tree, NULL),
        TP_OK);
    assert_int_equal(tp_space_make(&t->space, &set, tree, tokens, 2, false, &t->x.arena, NULL),
                     TP_OK);
}

static void open_space(trial_search *t, uint64_t seed, bool is_flat, double budget_s)
{
    open_space_of(t, seed, is_flat, budget_s, 0);
}

static void search_opened(trial_search *t, double memory_bytes)
{
    tp_search_options o = {.goal = t->goal,
                           .memory_bytes = memory_bytes,
                           .race_share = 0.7,
                           .most_candidates = 48,
                           .most_confirming = 40,
                           .plan = plan,
                           .user = &t->machine};
    size_t recipe;
    assert_int_equal(tp_search_init(&t->search, &t->x, &t->space, &o, NULL), TP_OK);
    recipe = t->search.candidates[0].variant;
    assert_int_equal(tp_experiment_round(&t->x, TP_STAGE_TRIED, 0, &recipe, 1, NULL), TP_OK);
    assert_int_equal(tp_search_run(&t->search, 0.01, NULL), TP_OK);
}

static void search(trial_search *t, uint64_t seed, bool is_flat, double memory_bytes)
{
    open_space(t, seed, is_flat, 300);
    search_opened(t, memory_bytes);
}

static void search_noisily(trial_search *t, uint64_t seed)
{
    open_space(t, seed, false, 300);
    t->machine.machine.noise_sd = 0.33;
    search_opened(t, INFINITY);
}

static void release(trial_search *t)
{
    tp_search_release(&t->search);
    tp_experiment_release(&t->x);
}

static const tp_variant *winner(const trial_search *t)
{
    return &t->x.variants[t->search.candidates[t->search.winner].variant];
}

/* ---- tests ---- */

static void a_space_is_what_the_recipe_leaves_open(void **state)
{
    trial_search t;
    tp_space_point p = {0};
    const char *const *settings;
    size_t n;
    open_space(&t, 1, false, 1);
    /* micro-batch, recompute, threads; of the levers all but the one that sets the precision */
    assert_int_equal(t.space.n, 7);
    assert_string_equal(t.space.dimensions[0].name, "micro-batch");
    assert_int_equal(t.space.dimensions[0].n, 7); /* the recipe's 4, and 1, 2, 8, 16, 32, 64 */
    assert_string_equal(
        t.space.dimensions[0].options[3],
        "policy.train_micro_batch_size=8 policy.sequence_packing.train_mb_tokens=256");
    assert_string_equal(t.space.dimensions[1].name, "recompute");
    assert_string_equal(t.space.dimensions[2].options[1], "engine.threads=1");
    assert_int_equal(t.space.dimensions[2].n, 2);
    assert_string_equal(tp_space_name(&t.space, &p, &t.x.arena), "the recipe");
    p.option[0] = 3;
    p.option[4] = 1; /* bad */
    assert_string_equal(tp_space_name(&t.space, &p, &t.x.arena), "micro-batch 8, bad off");
    assert_int_equal(tp_space_settings(&t.space, &p, &t.x.arena, &settings, &n, NULL), TP_OK);
    assert_int_equal(n, 3);
    assert_string_equal(settings[0], "bad=off");
    assert_string_equal(settings[2], "policy.sequence_packing.train_mb_tokens=256");
    tp_experiment_release(&t.x);
}

static void the_best_is_found_and_confirmed(void **state)
{
    int near = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        trial_search t;
        search(&t, seed, false, INFINITY);
        near += true_seconds(winner(&t)) <= 0.1 * 0.7 * 1.0667 && t.search.is_confirmed;
        assert_true(t.search.n_refused > 0); /* planned, and not run */
        for (size_t i = 0; i < t.x.n_samples; i++)
            assert_false(has(&t.x.variants[t.x.samples[i].variant], "refused=off"));
        release(&t);
    }
    print_message("the best or its neighbour in %d of 20 searches\n", near);
    assert_true(near >= 18);
}

/* Runs differ by a third by themselves, as where others compile; the best is 42 % faster. */
static void noise_costs_quality_and_no_honesty(void **state)
{
    double sum = 0;
    int wrong = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        trial_search t;
        search_noisily(&t, seed);
        double found = t.search.is_confirmed ? true_seconds(winner(&t)) : RECIPE_S;
        sum += found;
        wrong += found > RECIPE_S;
        release(&t);
    }
    print_message("on a noisy machine the step that is found takes %.4f s; 0.0700 s is the best, "
                  "%.4f s the recipe\n",
                  sum / 40, RECIPE_S);
    assert_true(sum / 40 < 0.09);
    assert_int_equal(wrong, 0);
}

/* What the plan chose is the recipe's, not what the configuration says of a value left open. */
static void the_micro_batch_that_the_plan_chose_is_the_recipes(void **state)
{
    trial_search t;
    open_space_of(&t, 1, false, 1, 8 * 32);
    const tp_space_axis *d = &t.space.dimensions[0];
    bool has_four = false, has_eight = false;
    for (size_t i = 1; i < d->n; i++) {
        has_four |= strstr(d->options[i], "train_micro_batch_size=4 ") != NULL;
        has_eight |= strstr(d->options[i], "train_micro_batch_size=8 ") != NULL;
    }
    assert_true(has_four);
    assert_false(has_eight);
    assert_int_equal(d->n, 7);
    tp_experiment_release(&t.x);
}

static void without_time_to_race_it_is_planned_what_fits(void **state)
{
    trial_search t;
    open_space(&t, 3, false, 3);
    double begin_s = now_s(&t.machine);
    t.machine.plan_s = 0.1;
    search_opened(&t, 1e6); /* nothing is below it */
    assert_int_equal(t.search.n_races, 0);
    assert_true(t.search.n > 10);
    assert_true(now_s(&t.machine) < begin_s + 3.2);
    release(&t);
}

static void a_limit_of_memory_is_kept(void **state)
{
    trial_search t;
    search(&t, 3, false, 15e6); /* a micro-batch of 4 at most */
    assert_true(micro_batch(winner(&t)) <= 4);
    assert_true(t.search.n_too_large > 0);
    for (size_t i = 0; i < t.x.n_samples; i++)
        assert_true(t.x.samples[i].trial.values[TP_FIGURE_PEAK_MEMORY] <= 15e6);
    release(&t);
}

/* Bytes are exact; what differs from the best in time alone, by chance, does not add its settings,
 * and the ratio is that of the bytes. */
static void of_equal_bytes_the_fewest_settings_win(void **state)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        trial_search t;
        open_space(&t, seed, true, 300);
        t.goal = TP_GOAL_PEAK_MEMORY;
        search_opened(&t, INFINITY);
        const tp_variant *v = winner(&t);
        assert_int_equal(micro_batch(v), 1);
        if (v->n_settings != 2)
            fail_msg("seed %d: %s", (int)seed, v->name);
        assert_true(fabs(t.search.candidates[t.search.winner].ratio - 11.0 / 14) < 1e-12);
        release(&t);
    }
}

static void planning_keeps_to_the_budget(void **state)
{
    trial_search t;
    open_space(&t, 3, false, 60);
    t.machine.plan_s = 1;
    search_opened(&t, 1e6); /* nothing is below it */
    assert_int_equal(t.search.winner, 0);
    assert_true(now_s(&t.machine) < 62);
    release(&t);
}

/* Runs of 15 s in ten minutes: a race of few, and what the plan expects most of is in it. */
static void the_best_predicted_race_where_runs_are_dear(void **state)
{
    int found[2] = {0};
    for (int predicts = 0; predicts < 2; predicts++)
        for (uint64_t seed = 1; seed <= 20; seed++) {
            trial_search t;
            open_space(&t, seed, false, 600);
            t.machine.run_s = 15;
            t.machine.plan_s = 1;
            t.machine.predicts = predicts;
            double begin_s = now_s(&t.machine);
            search_opened(&t, INFINITY);
            found[predicts] += t.search.is_confirmed && true_seconds(winner(&t)) < 0.75 * RECIPE_S;
            assert_true(now_s(&t.machine) - begin_s < 601);
            release(&t);
        }
    print_message("a quarter less time is found in %d of 20 searches, %d without predictions\n",
                  found[1], found[0]);
    assert_true(found[1] >= 18);
    assert_true(found[1] > found[0]);
}

/* Time that is kept for confirming is not left over when there is nothing to confirm. */
static void races_go_on_until_there_is_a_winner(void **state)
{
    double least_s = INFINITY;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        trial_search t;
        open_space(&t, seed, true, 600);
        t.machine.run_s = 15;
        double begin_s = now_s(&t.machine);
        search_opened(&t, INFINITY);
        least_s = fmin(least_s, now_s(&t.machine) - begin_s);
        assert_true(t.search.winner != 0 || t.search.n_races > 1);
        release(&t);
    }
    print_message("of 600 s at least %.0f are used\n", least_s);
    assert_true(least_s > 350);
}

static void luck_is_not_kept(void **state)
{
    int claimed = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        trial_search t;
        search(&t, seed, true, INFINITY);
        claimed += t.search.is_confirmed;
        release(&t);
    }
    print_message("nothing to find: %d of 60 searches claim a gain\n", claimed);
    assert_true(claimed <= 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_space_is_what_the_recipe_leaves_open),
        cmocka_unit_test(the_best_is_found_and_confirmed),
        cmocka_unit_test(noise_costs_quality_and_no_honesty),
        cmocka_unit_test(the_micro_batch_that_the_plan_chose_is_the_recipes),
        cmocka_unit_test(without_time_to_race_it_is_planned_what_fits),
        cmocka_unit_test(a_limit_of_memory_is_kept),
        cmocka_unit_test(of_equal_bytes_the_fewest_settings_win),
        cmocka_unit_test(planning_keeps_to_the_budget),
        cmocka_unit_test(the_best_predicted_race_where_runs_are_dear),
        cmocka_unit_test(races_go_on_until_there_is_a_winner),
        cmocka_unit_test(luck_is_not_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
