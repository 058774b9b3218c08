/* check_coverage.c - what `temper analyze` and `temper compare` say of made runs whose truth is
 * known.
 *
 *     check_coverage [REPETITIONS] [WORD]     1,000; rows whose name holds WORD alone
 *
 * Every row writes its runs as files, asks the library as a user does, and counts: intervals at 95
 * % that hold the truth (93 to 97 %; of few values that are alike no fewer than the row says), and
 * verdicts against a threshold at the truth itself, where each of them is wrong (5 % at most of
 * each).  Exit status 1 when a row is off. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "run_files.h"
#include "stats/bootstrap.h"
#include "support/draws.h"

enum { MOST = 1200, MOST_RUNS = 12 };

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

/* ---- the runs of a repetition ---- */

typedef struct {
    tp_metrics *m[MOST_RUNS];
    double sizes[MOST_RUNS];
    size_t n;
    bool is_uneven; /* every step is recorded at first, later every tenth */
} made;

/* Of record i of n, from 0. */
static size_t step_of(bool is_uneven, size_t i, size_t n)
{
    return is_uneven && i > n / 2 ? n / 2 + 10 * (i - n / 2) : i;
}

/* A run of one metric, or of two, the second at every `every`-th step. */
static void add_run(made *d, const char *tag, const double *x, size_t n, const char *second,
                    const double *y, size_t every)
{
    char name[24];
    tp_buf text = {0};
    for (size_t i = 0; i < n; i++) {
        tp_buf_addf(&text, "{\"step\":%zu,\"%s\":%.17g", step_of(d->is_uneven, i, n) + 1, tag,
                    x[i]);
        if (second && (i + 1) % every == 0)
            tp_buf_addf(&text, ",\"%s\":%.17g", second, y[(i + 1) / every - 1]);
        tp_buf_adds(&text, "}\n");
    }
    snprintf(name, sizeof name, "%zu.jsonl", d->n);
    write_text(name, tp_buf_str(&text));
    tp_buf_release(&text);
    d->sizes[d->n] = 1;
    d->m[d->n++] = open_run(run_path(name));
}

static void add_level(made *d, const char *tag, double level, double size)
{
    const double x[] = {level, level, level};
    add_run(d, tag, x, 3, NULL, NULL, 0);
    d->sizes[d->n - 1] = size;
}

static void close_runs(made *d)
{
    for (size_t i = 0; i < d->n; i++)
        tp_metrics_close(d->m[i]);
}

/* ---- one row a question: numbers are the row's own, the truth is computed from them ---- */

typedef struct row {
    const char *dimension, *what;
    const char *input; /* NULL: the value; else inputs KEY, KEY_low, KEY_high */
    double (*make)(const struct row *r, made *d, tp_splitmix *s); /* returns the truth */
    size_t n;
    double a, b, c, phi, sd;
    double least; /* of intervals that hold the truth; 0: 0.95, no more and no less */
} row;

/* From a to b in a straight line. */
static double line(const row *r, made *d, tp_splitmix *s)
{
    double x[MOST], first = 0, last = 0;
    size_t fifth = r->n / 5;
    bool is_reward = strcmp(r->dimension, "training") == 0 && r->b > r->a;
    double length = (double)step_of(d->is_uneven, r->n - 1, r->n);
    for (size_t i = 0; i < r->n; i++)
        x[i] = r->a + (r->b - r->a) * (double)step_of(d->is_uneven, i, r->n) / length;
    for (size_t i = 0; i < fifth; i++) {
        first += x[i] / (double)fifth;
        last += x[r->n - fifth + i] / (double)fifth;
    }
    double median = (x[(r->n - 1) / 2] + x[r->n / 2]) / 2;
    add_noise(x, r->n, r->phi, r->sd, s);
    if (strcmp(r->dimension, "memory") == 0) {
        add_run(d, "memory/resident_bytes", x, r->n, NULL, NULL, 0);
        return (r->b - r->a) * (double)r->n / (double)(r->n - 1) / median;
    }
    add_run(d, is_reward ? "train/reward" : "train/loss", x, r->n, NULL, NULL, 0);
    return fabs(last - first) / first;
}

/* Around a. */
static double level(const row *r, made *d, tp_splitmix *s)
{
    double x[MOST];
    for (size_t i = 0; i < r->n; i++)
        x[i] = r->a;
    add_noise(x, r->n, r->phi, r->sd, s);
    bool is_time = strcmp(r->what, "time") == 0;
    add_run(d,
            strcmp(r->dimension, "efficiency") == 0 ? "train/train_fp_utilization"
            : is_time                               ? "timing/train/generation"
                                                    : "performance/generated_tokens_per_sec",
            x, r->n, NULL, NULL, 0);
    return is_time ? 1 / r->a : r->a;
}

/* c + a e^(-bt); a reward is the same upside down. */
static double decay(const row *r, made *d, tp_splitmix *s)
{
    double x[MOST];
    bool is_reward = strstr(r->what, "reward");
    for (size_t i = 0; i < r->n; i++)
        x[i] = r->c + r->a * exp(-r->b * (double)step_of(d->is_uneven, i, r->n));
    add_noise(x, r->n, r->phi, r->sd, s);
    for (size_t i = 0; is_reward && i < r->n; i++)
        x[i] = -x[i];
    add_run(d, is_reward ? "train/reward" : "train/loss", x, r->n, NULL, NULL, 0);
    return r->input && strcmp(r->input, "plateau") == 0           ? r->c
           : r->input && strcmp(r->input, "steps_to_target") == 0 ? log(4) / r->b
           : r->input                                             ? log(20) / r->b
                      : 1 - exp(-r->b * (double)step_of(d->is_uneven, r->n - 1, r->n));
}

/* Validation a share a above a training loss that falls, every b-th step. */
static double gap(const row *r, made *d, tp_splitmix *s)
{
    double loss[MOST], val[MOST];
    size_t every = (size_t)r->b, n_val = r->n / every;
    for (size_t i = 0; i < r->n; i++)
        loss[i] = 2 + exp(-(double)i / 100);
    for (size_t i = 0; i < n_val; i++)
        val[i] = (1 + r->a) * (2 + exp(-(double)((i + 1) * every - 1) / 100));
    add_noise(loss, r->n, r->phi, r->sd, s);
    add_noise(val, n_val, r->phi, r->sd, s);
    add_run(d, "train/loss", loss, r->n, "validation/val_loss", val, every);
    return r->a;
}

/* n runs whose results have a spread of a of their mean. */
static double spread(const row *r, made *d, tp_splitmix *s)
{
    for (size_t i = 0; i < r->n; i++)
        add_level(d, "eval_loss", 2 * (1 + r->a * normal(s)), 1);
    return r->a;
}

/* n runs a size.  USL: T(N) = 10 (1 + a (N - 1) + b N (N - 1)) / N, which is Amdahl's law with b 0;
 * times are off by sd of themselves. */
static double scaling(const row *r, made *d, tp_splitmix *s)
{
    static const double sizes[] = {1, 2, 4, 8};
    for (size_t k = 0; k < 4; k++)
        for (size_t i = 0; i < r->n; i++) {
            double N = sizes[k], t = 10 * (1 + r->a * (N - 1) + r->b * N * (N - 1)) / N;
            add_level(d, "train/step_time", t * (1 + r->sd * normal(s)), N);
        }
    return r->input && strcmp(r->input, "usl_crosstalk") == 0 ? r->b : r->a;
}

static const row rows[] = {
    {"training", "loss", NULL, line, 600, 3, 2.4, 0, 0.5, 0.3, 0},
    {"training", "loss, neighbours more alike", NULL, line, 1000, 3, 2.4, 0, 0.8, 0.3, 0},
    {"training", "reward", NULL, line, 300, 0.2, 0.6, 0, 0.3, 0.1, 0},
    {"training", "few steps", NULL, line, 50, 3, 2, 0, 0, 0.2, 0},
    {"training", "100 steps, alike", NULL, line, 100, 3, 3, 0, 0.8, 0.3, 0.9},
    {"training", "100 steps, more alike", NULL, line, 100, 3, 3, 0, 0.95, 0.3, 0.75},
    {"inference", "rate", NULL, level, 500, 5000, 0, 0, 0.5, 400, 0},
    {"inference", "few", NULL, level, 12, 5000, 0, 0, 0, 400, 0},
    {"inference", "time", NULL, level, 300, 2, 0, 0, 0.5, 0.3, 0},
    {"memory", "grows", NULL, line, 400, 100, 108, 0, 0.5, 2, 0},
    {"memory", "does not", NULL, line, 400, 100, 100, 0, 0.5, 2, 0},
    {"memory", "few values", NULL, line, 20, 100, 104, 0, 0, 1, 0},
    {"memory", "40 values, more alike", NULL, line, 40, 100, 100, 0, 0.95, 1, 0.9},
    {"convergence", "loss, nearly there", NULL, decay, 200, 1.5, 0.012, 2, 0.3, 0.05, 0},
    {"convergence", "loss, half way", NULL, decay, 200, 1.5, 0.006, 2, 0.3, 0.02, 0},
    {"convergence", "many steps", NULL, decay, 1000, 1.5, 0.0022, 2, 0.5, 0.1, 0},
    {"convergence", "reward", NULL, decay, 400, 1, 0.006, -1, 0.3, 0.1, 0},
    {"convergence", "its plateau", "plateau", decay, 200, 1.5, 0.012, 2, 0.3, 0.05, 0},
    {"convergence", "its steps to 95 %", "steps_to_95_percent", decay, 200, 1.5, 0.012, 2, 0.3,
     0.05, 0},
    {"convergence", "its steps to a target", "steps_to_target", decay, 200, 1.5, 0.012, 2, 0.3,
     0.05, 0},
    {"convergence", "reward, to a target", "steps_to_target", decay, 400, 1, 0.006, -1, 0.3, 0.1,
     0},
    {"generalization", "a hundred evaluations", NULL, gap, 1000, 0.2, 10, 0, 0.3, 0.05, 0},
    {"generalization", "ten", NULL, gap, 500, 0.1, 50, 0, 0, 0.05, 0},
    {"generalization", "forty, alike", NULL, gap, 400, 0.1, 10, 0, 0.8, 0.05, 0.85},
    {"robustness", "three runs", NULL, spread, 3, 0.05, 0, 0, 0, 0, 0},
    {"robustness", "five", NULL, spread, 5, 0.05, 0, 0, 0, 0, 0},
    {"robustness", "ten, wide", NULL, spread, 10, 0.2, 0, 0, 0, 0, 0},
    {"scalability", "Amdahl", NULL, scaling, 2, 0.1, 0, 0, 0, 0.02, 0},
    {"scalability", "Amdahl, little serial", NULL, scaling, 1, 0.02, 0, 0, 0, 0.01, 0},
    {"scalability", "USL contention", "usl_contention", scaling, 2, 0.08, 0.01, 0, 0, 0.02, 0},
    {"scalability", "USL crosstalk", "usl_crosstalk", scaling, 2, 0.08, 0.01, 0, 0, 0.02, 0},
    {"efficiency", "MFU", NULL, level, 400, 0.42, 0, 0, 0.6, 0.03, 0},
    {"memory", "grows, uneven steps", NULL, line, 400, 100, 108, 0, 0.5, 2, 0},
    {"convergence", "loss, uneven steps", NULL, decay, 200, 1.5, 0.003, 2, 0.3, 0.05, 0},
    {"convergence", "its steps, uneven steps", "steps_to_95_percent", decay, 200, 1.5, 0.003, 2,
     0.3, 0.05, 0},
};

/* ---- counting ---- */

typedef struct {
    int n, covered, passes, fails, errors;
} counts;

static double input(const tp_analysis *a, const char *key, const char *ending)
{
    const char *text, *k;
    char wanted[60];
    double value;
    snprintf(wanted, sizeof wanted, "%s%s", key, ending);
    for (size_t i = 0; (k = tp_analysis_input(a, 0, i, &value, &text)); i++)
        if (strcmp(k, wanted) == 0)
            return value;
    return NAN;
}

/* Where the curve of decay() has three quarters of its way behind it. */
static double target_of(const row *r)
{
    double target = r->c + r->a / 4;
    return strstr(r->what, "reward") ? -target : target;
}

static void repeat(const row *r, tp_splitmix *s, counts *c)
{
    made d = {.is_uneven = strstr(r->what, "uneven")};
    double truth = r->make(r, &d, s);
    tp_analysis *a;
    tp_error err = {0};
    const tp_analysis_options options = {.size = sizeof options,
                                         .dimensions = &r->dimension,
                                         .n_dimensions = 1,
                                         .threshold_names = &r->dimension,
                                         .thresholds = &truth,
                                         .n_thresholds = 1,
                                         .sizes = d.sizes,
                                         .has_target = true,
                                         .target = target_of(r)};
    if (tp_runs_analyze(d.m, d.n, &options, &a, &err) != TP_OK)
        fail_msg("%s", err.message);
    const tp_analysis_dimension *x = tp_analysis_result(a, 0);
    double lo = r->input ? input(a, r->input, "_low") : x->ci_lo;
    double hi = r->input ? input(a, r->input, "_high") : x->ci_hi;
    c->n++;
    c->errors += x->error != NULL || isnan(lo) || isnan(hi);
    c->covered += lo <= truth && truth <= hi;
    c->passes += strcmp(x->verdict, "pass") == 0;
    c->fails += strcmp(x->verdict, "fail") == 0;
    tp_analysis_free(a);
    close_runs(&d);
}

/* A thousand may be off by 2 points either way, fewer by as many deviations. */
static bool is_right(const row *r, const counts *c)
{
    double asked = c->n - c->errors, share = c->covered / asked,
           reach = fmax(0.02, 3 * sqrt(0.05 * 0.95 / asked));
    double wrong = r->least > 0 ? (1 - r->least) / 2 : 0.03;
    bool verdicts =
        r->input || (c->passes <= (wrong + reach) * c->n && c->fails <= (wrong + reach) * c->n);
    bool covers = r->least > 0 ? share >= r->least - reach : fabs(share - 0.95) <= reach;
    return c->errors <= c->n / 20 && covers && verdicts;
}

static bool ask(const row *r, int repetitions)
{
    counts c = {0};
    tp_splitmix s = {11 + (uint64_t)(r - rows)};
    for (int i = 0; i < repetitions; i++)
        repeat(r, &s, &c);
    bool right = is_right(r, &c);
    double n = c.n / 100.0;
    printf("%-14s %-28s covered %5.1f %%", r->dimension, r->what,
           100.0 * c.covered / (c.n - c.errors));
    if (!r->input)
        printf("  wrong pass %4.1f %%, fail %4.1f %%", c.passes / n, c.fails / n);
    if (c.errors)
        printf("  not asked %.1f %%", c.errors / n);
    puts(right ? "" : "  OFF");
    fflush(stdout);
    return right;
}

/* ---- comparisons: of runs that are alike, and of runs that differ by as much as "same" allows
 * ---- */

typedef struct {
    const char *what;
    size_t runs; /* a side; 1: paired steps */
    double shift, phi;
    const char *wrong[2]; /* verdicts that are */
    size_t steps;         /* 0: 300 */
    double least;         /* as of row */
} pair;

static const pair pairs[] = {
    {"two runs that are alike", 1, 0, 0.5, {"better", "worse"}, 0, 0},
    {"groups of seeds that are alike", 5, 0, 0.3, {"better", "worse"}, 0, 0},
    {"two runs apart by the margin", 1, 0.02, 0.5, {"same", "better"}, 0, 0},
    {"groups apart by the margin", 5, 0.02, 0.3, {"same", "better"}, 0, 0},
    {"two runs, 12 steps, alike", 1, 0, 0.8, {"better", "worse"}, 12, 0.75},
    {"two runs, 20 steps, alike", 1, 0, 0.8, {"better", "worse"}, 20, 0.85},
};

static void add_seeds(const pair *p, made *d, double shift, tp_splitmix *s)
{
    size_t steps = p->steps ? p->steps : 300;
    for (size_t k = 0; k < p->runs; k++) {
        double x[MOST], seed = p->runs > 1 ? 0.01 * normal(s) : 0;
        for (size_t i = 0; i < steps; i++)
            x[i] = 2 + shift + seed;
        add_noise(x, steps, p->phi, 0.05, s);
        add_run(d, "train/loss", x, steps, NULL, NULL, 0);
    }
}

static bool ask_pair(const pair *p, int repetitions)
{
    int covered = 0, wrong = 0;
    tp_splitmix s = {101 + (uint64_t)(p - pairs)};
    for (int i = 0; i < repetitions; i++) {
        made d = {0};
        tp_run_comparison *c;
        add_seeds(p, &d, 0, &s);
        add_seeds(p, &d, p->shift, &s);
        if (tp_runs_compare(d.m, p->runs, d.m + p->runs, p->runs, NULL, &c, NULL) != TP_OK)
            fail_msg("cannot compare");
        const tp_compared_metric *x = tp_run_comparison_metric(c, 0);
        covered += x->ci_lo <= p->shift && p->shift <= x->ci_hi;
        wrong += strcmp(x->verdict, p->wrong[0]) == 0 || strcmp(x->verdict, p->wrong[1]) == 0;
        tp_run_comparison_free(c);
        close_runs(&d);
    }
    double share = (double)covered / repetitions,
           reach = fmax(0.02, 3 * sqrt(0.05 * 0.95 / repetitions));
    bool right = (p->least > 0 ? share >= p->least - reach : fabs(share - 0.95) <= reach) &&
                 wrong <= ((p->least > 0 ? 1 - p->least : 0.05) + reach) * repetitions;
    printf("%-14s %-28s covered %5.1f %%  wrong %4.1f %%%s\n", "compare", p->what, 100 * share,
           100.0 * wrong / repetitions, right ? "" : "  OFF");
    return right;
}

int main(int argc, char **argv)
{
    int repetitions = argc > 1 ? atoi(argv[1]) : 1000, off = 0;
    const char *word = argc > 2 ? argv[2] : "";
    if (repetitions < 1 || make_folder(NULL) != 0)
        return 2;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strstr(rows[i].dimension, word) || strstr(rows[i].what, word))
            off += !ask(&rows[i], repetitions);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (strstr("compare", word))
            off += !ask_pair(&pairs[i], repetitions);
    printf("%d repetitions, %d rows off\n", repetitions, off);
    return remove_folder(NULL) != 0 || off != 0;
}
