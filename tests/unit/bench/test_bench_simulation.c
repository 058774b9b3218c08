/* The decision rule on a simulated machine: how often each rule flags a true slowdown.
 *
 * The model of the machine is in support/synthetic.h.  Expected shares come from an
 * independent simulation with 4000 trials per cell; a cell passes when it lies within four
 * standard errors of the difference of two such shares (or two points, for a quick run of
 * few trials).  `--full` runs 4000 trials, otherwise 300. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "instrument/bench/order.h"
#include "stats/stats.h"
#include "support/draws.h"
#include "support/synthetic.h"

enum { MAX_ROUNDS = 60, CELLS = 6 };

static int trials = 300;
static const double slowdowns[CELLS] = {0, 0.02, 0.05, 0.08, 0.10, 0.15};

/* Rounds of two sides in blocks ABBA or BAAB. */
static void draw_interleaved(uint64_t seed, double slowdown, size_t n, double *a, double *b,
                             char *order)
{
    synthetic_machine m = synthetic_machine_make(seed);
    for (size_t i = 0; i < n; i++) {
        double first = exp(synthetic_disturbance(&m)), second = exp(synthetic_disturbance(&m));
        order[i] = tp_order_first(seed, i);
        a[i] = order[i] == 'A' ? first : second;
        b[i] = (order[i] == 'A' ? second : first) * (1 + slowdown);
    }
}

/* All of A, then all of B; with another session's offset on A when asked for. */
static void draw_sequential(uint64_t seed, double slowdown, bool stored, size_t n, double *a,
                            double *b)
{
    synthetic_machine m = synthetic_machine_make(seed);
    double offset = stored ? 0.06 * draw_normal(&m.rng) : 0;
    for (size_t i = 0; i < n; i++)
        a[i] = exp(offset + synthetic_disturbance(&m));
    if (stored)
        m.drift = m.drift_sd * draw_normal(&m.rng); /* another day */
    for (size_t i = 0; i < n; i++)
        b[i] = exp(synthetic_disturbance(&m)) * (1 + slowdown);
}

typedef bool (*flagging)(uint64_t seed, double slowdown, size_t n);

static const tp_metric time_metric = {.name = "time", .unit = "s"};
static const tp_rule rule = {.alpha = 0.05, .tolerance = 0.05, .family = 1};

static bool our_rule(uint64_t seed, double slowdown, size_t n)
{
    double a[MAX_ROUNDS], b[MAX_ROUNDS];
    char order[MAX_ROUNDS + 1];
    tp_bench_comparison c;
    draw_interleaved(seed, slowdown, n, a, b, order);
    tp_rule_paired(&rule, &time_metric, a, b, order, n, &c);
    return c.verdict == TP_BENCH_REGRESSION;
}

static bool any_slowdown_at_all(uint64_t seed, double slowdown, size_t n)
{
    double a[MAX_ROUNDS], b[MAX_ROUNDS];
    char order[MAX_ROUNDS + 1];
    tp_bench_comparison c;
    draw_interleaved(seed, slowdown, n, a, b, order);
    tp_rule_paired(&rule, &time_metric, a, b, order, n, &c);
    return c.lower > 0;
}

static bool paired_t(uint64_t seed, double slowdown, size_t n)
{
    double a[MAX_ROUNDS], b[MAX_ROUNDS];
    char order[MAX_ROUNDS + 1];
    tp_bench_comparison c;
    draw_interleaved(seed, slowdown, n, a, b, order);
    tp_rule_paired(&rule, &time_metric, a, b, order, n, &c);
    return c.mean_lower > log(1.05);
}

static bool sequential_mean(uint64_t seed, double slowdown, size_t n)
{
    double a[MAX_ROUNDS], b[MAX_ROUNDS];
    draw_sequential(seed, slowdown, false, n, a, b);
    return tp_rule_point(TP_LOWER_IS_BETTER, 0.05, tp_mean(a, n), tp_mean(b, n)) ==
           TP_BENCH_REGRESSION;
}

static bool stored_mean(uint64_t seed, double slowdown, size_t n)
{
    double a[MAX_ROUNDS], b[MAX_ROUNDS];
    draw_sequential(seed, slowdown, true, n, a, b);
    return tp_rule_point(TP_LOWER_IS_BETTER, 0.05, tp_mean(a, n), tp_mean(b, n)) ==
           TP_BENCH_REGRESSION;
}

static bool sequential_min(uint64_t seed, double slowdown, size_t n)
{
    double a[MAX_ROUNDS], b[MAX_ROUNDS];
    draw_sequential(seed, slowdown, false, n, a, b);
    tp_sort(a, n);
    tp_sort(b, n);
    return b[0] > 1.05 * a[0];
}

static bool sequential_welch(uint64_t seed, double slowdown, size_t n)
{
    double a[MAX_ROUNDS], b[MAX_ROUNDS];
    draw_sequential(seed, slowdown, false, n, a, b);
    return tp_welch(b, n, a, n, 0.95).p.greater < 0.05;
}

static bool is_mann_whitney_greater(const double *b, const double *a, size_t n)
{
    tp_mann_whitney_result r;
    return tp_mann_whitney(b, n, a, n, 0.95, &r, NULL) == TP_OK && r.p.greater < 0.05;
}

static bool sequential_mann_whitney(uint64_t seed, double slowdown, size_t n)
{
    double a[MAX_ROUNDS], b[MAX_ROUNDS];
    draw_sequential(seed, slowdown, false, n, a, b);
    return is_mann_whitney_greater(b, a, n);
}

static bool interleaved_mann_whitney(uint64_t seed, double slowdown, size_t n)
{
    double a[MAX_ROUNDS], b[MAX_ROUNDS];
    char order[MAX_ROUNDS + 1];
    draw_interleaved(seed, slowdown, n, a, b, order);
    return is_mann_whitney_greater(b, a, n);
}

static bool median_beyond(uint64_t seed, double slowdown, size_t n)
{
    double a[MAX_ROUNDS], b[MAX_ROUNDS];
    char order[MAX_ROUNDS + 1];
    tp_bench_comparison c;
    draw_interleaved(seed, slowdown, n, a, b, order);
    tp_rule_paired(&rule, &time_metric, a, b, order, n, &c);
    return c.ratio > 1.05 && c.lower > 0;
}

static bool wilcoxon_beyond(uint64_t seed, double slowdown, size_t n)
{
    double a[MAX_ROUNDS], b[MAX_ROUNDS];
    char order[MAX_ROUNDS + 1];
    tp_wilcoxon_result w;
    draw_interleaved(seed, slowdown, n, a, b, order);
    for (size_t i = 0; i < n; i++)
        a[i] = log(b[i] / a[i]) - log(1.05);
    return tp_wilcoxon(a, n, 0.9, &w, NULL) == TP_OK && w.p.greater < 0.05;
}

static double share(flagging f, double slowdown, size_t n)
{
    int hits = 0;
    for (int i = 0; i < trials; i++)
        hits += f((uint64_t)i + 1, slowdown, n);
    return 100.0 * hits / trials;
}

static void check_row(const char *what, flagging f, size_t n, const double expected[CELLS])
{
    for (int i = 0; i < CELLS; i++) {
        double found = share(f, slowdowns[i], n), p = expected[i] / 100;
        double se = 100 * sqrt(p * (1 - p) * (1.0 / trials + 1.0 / 4000));
        print_message("%-28s n = %-3zu true %2.0f %%: flagged %5.1f %%, expected %5.1f %%\n", what,
                      n, 100 * slowdowns[i], found, expected[i]);
        assert_true(fabs(found - expected[i]) <= 4 * se + 1);
    }
}

static void the_rule_flags_what_it_should(void **state)
{
    check_row("interval beyond tolerance", our_rule, 20,
              (const double[]){0.0, 0.0, 2.3, 99.6, 100, 100});
}

static void ten_rounds_are_weaker_but_not_wrong(void **state)
{
    static const double expected[] = {0, 0, 1.0, 84, 93, 96};
    check_row("interval beyond tolerance", our_rule, 10, expected);
}

static void significant_at_all_fails_harmless_changes(void **state)
{
    check_row("interval beyond 0", any_slowdown_at_all, 20,
              (const double[]){2.2, 95.9, 100, 100, 100, 100});
}

static void stalls_blunt_the_t_interval(void **state)
{
    check_row("paired t beyond tolerance", paired_t, 20,
              (const double[]){0.0, 0.0, 3.4, 72.1, 85.6, 98.5});
}

static void one_block_after_the_other_is_a_coin(void **state)
{
    check_row("AA..BB, plain rule", sequential_mean, 20,
              (const double[]){2.9, 10.5, 50.8, 88.7, 96.7, 99.8});
}

static void a_stored_number_flags_nothing_in_particular(void **state)
{
    check_row("stored, plain rule", stored_mean, 20,
              (const double[]){24.3, 32.8, 50.8, 67.2, 75.0, 90.8});
}

static void the_rules_of_other_tools_do_as_they_are_known_to(void **state)
{
    check_row("AA..BB, minimum", sequential_min, 20,
              (const double[]){0.3, 4.3, 49.8, 95.1, 99.4, 100});
    check_row("AA..BB, Welch", sequential_welch, 20,
              (const double[]){16.4, 49.5, 81.8, 92.6, 95.7, 98.7});
    check_row("AA..BB, Mann-Whitney", sequential_mann_whitney, 20,
              (const double[]){30.7, 78.2, 99.6, 100, 100, 100});
    check_row("ABBA, Mann-Whitney", interleaved_mann_whitney, 20,
              (const double[]){2.5, 97.3, 100, 100, 100, 100});
    check_row("ABBA, median beyond", median_beyond, 20,
              (const double[]){0.0, 0.0, 48.4, 100, 100, 100});
    check_row("ABBA, Wilcoxon beyond", wilcoxon_beyond, 20,
              (const double[]){0.0, 0.0, 4.5, 98.7, 99.6, 100});
}

/* ---- stopping when the e-values decide ---- */

typedef struct {
    double flagged, passed, undecided, pairs; /* per cent; mean pairs */
} outcome;

static outcome run_sequential(double slowdown)
{
    double a[MAX_ROUNDS], b[MAX_ROUNDS];
    char order[MAX_ROUNDS + 1];
    tp_rule sequential = rule;
    sequential.is_sequential = true;
    outcome o = {0};
    for (int i = 0; i < trials; i++) {
        tp_bench_comparison c = {0};
        size_t n = 0;
        draw_interleaved((uint64_t)i + 1, slowdown, MAX_ROUNDS, a, b, order);
        do
            tp_rule_paired(&sequential, &time_metric, a, b, order, ++n, &c);
        while (n < MAX_ROUNDS && !tp_rule_decided(&sequential, &c));
        tp_rule_settle(&sequential, c.p, &c);
        o.flagged += c.verdict == TP_BENCH_REGRESSION;
        o.undecided += c.verdict == TP_BENCH_INCONCLUSIVE;
        o.passed += c.verdict != TP_BENCH_REGRESSION && c.verdict != TP_BENCH_INCONCLUSIVE;
        o.pairs += (double)n;
    }
    double scale = 100.0 / trials;
    print_message("sequential, true %.0f %%: flagged %.1f, passed %.1f, undecided %.1f %%, %.1f "
                  "pairs\n",
                  100 * slowdown, o.flagged * scale, o.passed * scale, o.undecided * scale,
                  o.pairs / trials);
    return (outcome){o.flagged * scale, o.passed * scale, o.undecided * scale, o.pairs / trials};
}

static void assert_near(double found, double expected, double slack)
{
    if (fabs(found - expected) > slack)
        fail_msg("%.2f is not within %.2f of %.2f", found, slack, expected);
}

static void stopping_early_keeps_the_promise(void **state)
{
    outcome same = run_sequential(0), little = run_sequential(0.02), edge = run_sequential(0.05),
            six = run_sequential(0.06), eight = run_sequential(0.08);

    assert_near(same.passed, 100, 0.5);
    assert_near(same.pairs, 8.3, 0.7);
    assert_near(little.passed, 100, 0.5);
    assert_near(little.pairs, 9.5, 0.8);
    assert_true(edge.flagged <= 5);
    assert_near(edge.flagged, 2.5, 2.5);
    assert_near(six.flagged, 75.7, 10);
    assert_near(eight.flagged, 100, 0.5);
    assert_near(eight.pairs, 9.7, 0.9);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rule_flags_what_it_should),
        cmocka_unit_test(ten_rounds_are_weaker_but_not_wrong),
        cmocka_unit_test(significant_at_all_fails_harmless_changes),
        cmocka_unit_test(stalls_blunt_the_t_interval),
        cmocka_unit_test(one_block_after_the_other_is_a_coin),
        cmocka_unit_test(a_stored_number_flags_nothing_in_particular),
        cmocka_unit_test(the_rules_of_other_tools_do_as_they_are_known_to),
        cmocka_unit_test(stopping_early_keeps_the_promise),
    };
    if (argc > 1 && strcmp(argv[1], "--full") == 0)
        trials = 4000;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
