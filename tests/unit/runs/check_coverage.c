/* check_coverage.c - intervals of the dimensions hold the truth as often as they say: 1,000 made
 * series each, 93 to 97 %. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "instrument/analyze/runs/dimension.h"
#include "stats/bootstrap.h"
#include "support/draws.h"

enum { REPETITIONS = 1000, MOST = 2000 };

static double normal(tp_splitmix *s)
{
    double u = 1 - draw_uniform(s), v = draw_uniform(s);
    return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

/* Noise of standard deviation sd in which neighbours are correlated by phi. */
static void add_noise(double *x, size_t n, double phi, double sd, tp_splitmix *s)
{
    double e = normal(s);
    for (size_t i = 0; i < n; i++) {
        x[i] += sd * e;
        e = phi * e + sqrt(1 - phi * phi) * normal(s);
    }
}

static void expect_coverage(const char *what, int covered, int n)
{
    double share = (double)covered / n;
    print_message("%s: %.1f %% of %d\n", what, 100 * share, n);
    if (n < REPETITIONS * 9 / 10 || share < 0.93 || share > 0.97)
        fail_msg("%s: %d of %d intervals hold the truth", what, covered, n);
}

static void means(void **state)
{
    static const double phis[] = {0, 0.5, 0.8};
    for (size_t k = 0; k < 3; k++) {
        int covered = 0;
        tp_splitmix s = {11 + k};
        for (int r = 0; r < REPETITIONS; r++) {
            double x[500] = {0};
            add_noise(x, 500, phis[k], 1, &s);
            tp_batch_mean m = tp_batch_mean_of(x, 500, 0.95);
            covered += m.ci.lo <= 0 && 0 <= m.ci.hi;
        }
        char what[40];
        snprintf(what, sizeof what, "mean, correlation %.1f", phis[k]);
        expect_coverage(what, covered, REPETITIONS);
    }
}

static void improvement(void **state)
{
    int covered = 0;
    tp_splitmix s = {21};
    for (int r = 0; r < REPETITIONS; r++) {
        double x[600], first = 0, last = 0;
        for (int i = 0; i < 600; i++)
            x[i] = 3 - 0.001 * i;
        for (int i = 0; i < 120; i++) {
            first += x[i] / 120;
            last += x[480 + i] / 120;
        }
        add_noise(x, 600, 0.5, 0.3, &s);
        tp_dimension_figures f = {0};
        tp_improvement_of(x, 600, false, 0.95, &f);
        double truth = (first - last) / first;
        covered += f.lo <= truth && truth <= f.hi;
    }
    expect_coverage("improvement", covered, REPETITIONS);
}

/* Validation a fifth above a training loss that falls, every tenth step. */
static void generalization(void **state)
{
    int covered = 0;
    tp_splitmix s = {71};
    for (int r = 0; r < REPETITIONS; r++) {
        double steps[1000], loss[1000], at[100], val[100];
        for (int i = 0; i < 1000; i++) {
            steps[i] = i + 1;
            loss[i] = 2 + exp(-i / 100.0);
        }
        for (int i = 0; i < 100; i++) {
            at[i] = 10 * i + 10;
            val[i] = 1.2 * (2 + exp(-(at[i] - 1) / 100));
        }
        add_noise(loss, 1000, 0.3, 0.05, &s);
        add_noise(val, 100, 0.3, 0.03, &s);
        const tp_curve train = {.step = steps, .value = loss, .n = 1000};
        const tp_curve validation = {.step = at, .value = val, .n = 100};
        tp_dimension_figures f = {0};
        tp_gap_of(&train, &validation, 0.95, &f);
        covered += f.lo <= 0.2 && 0.2 <= f.hi;
    }
    expect_coverage("generalization", covered, REPETITIONS);
}

static void growth(void **state)
{
    int covered = 0;
    tp_splitmix s = {31};
    for (int r = 0; r < REPETITIONS; r++) {
        double x[400];
        for (int i = 0; i < 400; i++)
            x[i] = 100 + 0.02 * i;
        add_noise(x, 400, 0.5, 2, &s);
        tp_dimension_figures f = {0};
        tp_growth_of(x, 400, 0.95, &f);
        double truth = 8.0 / 104;
        covered += f.lo <= truth && truth <= f.hi;
    }
    expect_coverage("growth", covered, REPETITIONS);
}

static void convergence(void **state)
{
    int covered = 0, n = 0;
    tp_splitmix s = {41};
    for (int r = 0; r < REPETITIONS; r++) {
        double y[200];
        for (int i = 0; i < 200; i++)
            y[i] = 2 + 1.5 * exp(-0.012 * i);
        add_noise(y, 200, 0.3, 0.05, &s);
        tp_dimension_figures f = {0};
        tp_convergence_of(y, 200, 0.95, &f);
        if (f.error[0])
            continue;
        double truth = 1 - exp(-0.012 * 199);
        covered += f.lo <= truth && truth <= f.hi;
        n++;
    }
    expect_coverage("convergence", covered, n);
}

static void variation(void **state)
{
    int covered = 0;
    tp_splitmix s = {51};
    for (int r = 0; r < REPETITIONS; r++) {
        double x[5];
        for (int i = 0; i < 5; i++)
            x[i] = 2 + 0.1 * normal(&s);
        tp_dimension_figures f = {0};
        tp_variation_of(x, 5, 0.95, &f);
        covered += f.lo <= 0.05 && 0.05 <= f.hi;
    }
    expect_coverage("variation", covered, REPETITIONS);
}

static void scaling(void **state)
{
    static const double sizes[] = {1, 1, 2, 2, 4, 4, 8, 8};
    int covered = 0;
    tp_splitmix s = {61};
    for (int r = 0; r < REPETITIONS; r++) {
        double times[8];
        for (int i = 0; i < 8; i++)
            times[i] = 10 * (0.1 + 0.9 / sizes[i]) + 0.1 * normal(&s);
        tp_dimension_figures f = {0};
        tp_scaling_of(sizes, times, 8, 0.95, &f);
        covered += f.lo <= 0.1 && 0.1 <= f.hi;
    }
    expect_coverage("scaling", covered, REPETITIONS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(generalization), cmocka_unit_test(means),
        cmocka_unit_test(improvement),    cmocka_unit_test(growth),
        cmocka_unit_test(convergence),    cmocka_unit_test(variation),
        cmocka_unit_test(scaling),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
