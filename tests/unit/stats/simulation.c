#include "simulation.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "stats/stats.h"
#include "support/draws.h"

enum { MAX_N = 64 };

typedef tp_splitmix source;

static double normal(source *s) { return tp_normal_quantile(draw_uniform(s) + 0x1p-55); }
static double exponential(source *s) { return -log1p(-draw_uniform(s)); }
static double lognormal(source *s) { return exp(normal(s)); }
static double tied(source *s) { return (double)tp_splitmix_below(s, 5); } /* 0 .. 4, mean 2 */

typedef struct {
    const char *name;
    double (*draw)(source *s);
    double mean, median, sd;
} law;

static const law laws[] = {{"normal", normal, 0, 0, 1},
                           {"exponential", exponential, 1, 0.6931471805599453, 1},
                           {"lognormal", lognormal, 1.6487212707001282, 1, 2.1611974158950877},
                           {"tied", tied, 2, 2, 1.4142135623730951}};
enum { NORMAL, EXPONENTIAL, LOGNORMAL, TIED };

static void fill(source *s, const law *l, double *x, int n)
{
    for (int i = 0; i < n; i++)
        x[i] = l->draw(s);
}

static int holds(tp_interval ci, double truth) { return ci.lo <= truth && truth <= ci.hi; }

/* One repetition: 1 when the interval holds the truth. */
typedef int (*trial)(source *s, const law *l, int n, uint64_t repetition);

static int t_mean(source *s, const law *l, int n, uint64_t repetition)
{
    double x[MAX_N];
    (void)repetition;
    fill(s, l, x, n);
    return holds(tp_one_sample_t(x, (size_t)n, 0, 0.95).ci, l->mean);
}

static int bca_mean(source *s, const law *l, int n, uint64_t repetition)
{
    double x[MAX_N];
    tp_bootstrap_options o = {.n_resamples = 999, .seed = repetition, .level = 0.95};
    tp_bootstrap_result r;
    fill(s, l, x, n);
    return tp_bootstrap(x, (size_t)n, tp_statistic_mean, NULL, &o, &r, NULL) == TP_OK &&
           holds(r.bca, l->mean);
}

static int median_order(source *s, const law *l, int n, uint64_t repetition)
{
    double x[MAX_N];
    (void)repetition;
    fill(s, l, x, n);
    tp_sort(x, (size_t)n);
    tp_median_interval m = tp_median_interval_sorted(x, (size_t)n, 0.95);
    return m.lo <= l->median && l->median <= m.hi;
}

static int welch_difference(source *s, const law *l, int n, uint64_t repetition)
{
    double x[MAX_N], y[MAX_N];
    (void)repetition;
    fill(s, l, x, n);
    fill(s, l, y, n / 2);
    for (int i = 0; i < n / 2; i++)
        y[i] = 3 * y[i]; /* another spread, another size */
    return holds(tp_welch(x, (size_t)n, y, (size_t)n / 2, 0.95).ci, l->mean - 3 * l->mean);
}

static int student_difference(source *s, const law *l, int n, uint64_t repetition)
{
    double x[MAX_N], y[MAX_N];
    (void)repetition;
    fill(s, l, x, n);
    fill(s, l, y, n);
    return holds(tp_student(x, (size_t)n, y, (size_t)n, 0.95).ci, 0);
}

static int paired_difference(source *s, const law *l, int n, uint64_t repetition)
{
    double x[MAX_N], y[MAX_N];
    (void)repetition;
    for (int i = 0; i < n; i++) {
        double common = 10 * normal(s);
        x[i] = common + l->draw(s);
        y[i] = common;
    }
    return holds(tp_paired_t(x, y, (size_t)n, 0.95).ci, l->mean);
}

static int hodges_lehmann(source *s, const law *l, int n, uint64_t repetition)
{
    double x[MAX_N], y[MAX_N];
    tp_mann_whitney_result r;
    (void)repetition;
    fill(s, l, x, n);
    fill(s, l, y, n);
    if (tp_mann_whitney(x, (size_t)n, y, (size_t)n, 0.95, &r, NULL) != TP_OK)
        return 0;
    return r.has_exact ? r.shift_ci.lo <= 0 && 0 <= r.shift_ci.hi
                       : holds(r.shift_ci_approximate, 0);
}

static int walsh(source *s, const law *l, int n, uint64_t repetition)
{
    double d[MAX_N];
    tp_wilcoxon_result r;
    (void)repetition;
    for (int i = 0; i < n; i++) /* differences of two like values are symmetric */
        d[i] = l->draw(s) - l->draw(s);
    if (tp_wilcoxon(d, (size_t)n, 0.95, &r, NULL) != TP_OK)
        return 0;
    return r.has_exact ? r.pseudomedian_ci.lo <= 0 && 0 <= r.pseudomedian_ci.hi
                       : holds(r.pseudomedian_ci_approximate, 0);
}

static int exact_d(source *s, const law *l, int n, uint64_t repetition)
{
    double x[MAX_N], y[MAX_N];
    (void)repetition;
    fill(s, l, x, n);
    fill(s, l, y, n);
    for (int i = 0; i < n; i++)
        x[i] += 0.8 * l->sd;
    return holds(tp_effect_two(x, (size_t)n, y, (size_t)n, 0.95).d_ci, 0.8);
}

static int fieller(source *s, const law *l, int n, uint64_t repetition)
{
    double x[MAX_N], y[MAX_N];
    (void)repetition;
    for (int i = 0; i < n; i++) {
        x[i] = 12 + l->draw(s) - l->mean;
        y[i] = 10 + l->draw(s) - l->mean;
    }
    return holds(tp_ratio_means(x, (size_t)n, y, (size_t)n, 0.95).ci, 1.2);
}

static int geometric_ratio(source *s, const law *l, int n, uint64_t repetition)
{
    double x[MAX_N], y[MAX_N];
    tp_ratio_geomeans_result r;
    (void)repetition;
    for (int i = 0; i < n; i++) {
        x[i] = exp(l->draw(s));
        y[i] = exp(l->draw(s));
    }
    return tp_ratio_geomeans(x, (size_t)n, y, (size_t)n, 0.95, &r, NULL) == TP_OK && holds(r.ci, 1);
}

static int sign_ratio(source *s, const law *l, int n, uint64_t repetition)
{
    double x[MAX_N], y[MAX_N];
    tp_log_ratio_result r;
    (void)repetition;
    for (int i = 0; i < n; i++) {
        y[i] = exp(normal(s));
        x[i] = y[i] * exp(0.1 * (l->draw(s) - l->median));
    }
    return tp_log_ratio(x, y, (size_t)n, 0.95, &r, NULL) == TP_OK && r.sign_ci.lo <= 1 + 1e-12 &&
           r.sign_ci.hi >= 1 - 1e-12;
}

static int theil_sen(source *s, const law *l, int n, uint64_t repetition)
{
    double y[MAX_N];
    tp_theil_sen_result r;
    (void)repetition;
    for (int i = 0; i < n; i++)
        y[i] = 0.5 * i + l->draw(s);
    return tp_theil_sen(NULL, y, (size_t)n, 0.95, &r, NULL) == TP_OK && r.lo <= 0.5 && r.hi >= 0.5;
}

static int least_squares(source *s, const law *l, int n, uint64_t repetition)
{
    double y[MAX_N];
    (void)repetition;
    for (int i = 0; i < n; i++)
        y[i] = 0.5 * i + l->draw(s);
    return holds(tp_fit_line(NULL, y, (size_t)n, 0.95).ci, 0.5);
}

static int64_t successes(source *s, int n, double p)
{
    int64_t x = 0;
    for (int i = 0; i < n; i++)
        x += draw_uniform(s) < p;
    return x;
}

/* Shares have no law: the rates change with the repetition, so that the mean coverage is
 * what is seen (at a single rate it jumps about the level). */
static double rate_of(uint64_t repetition) { return 0.02 + 0.96 * (double)(repetition % 97) / 96; }

static int wilson(source *s, const law *l, int n, uint64_t repetition)
{
    double p = rate_of(repetition);
    (void)l;
    return holds(tp_wilson((double)successes(s, n, p), n, 0.95), p);
}

static int clopper_pearson(source *s, const law *l, int n, uint64_t repetition)
{
    double p = rate_of(repetition);
    (void)l;
    return holds(tp_proportion(successes(s, n, p), n, 0.95).clopper_pearson, p);
}

static int newcombe(source *s, const law *l, int n, uint64_t repetition)
{
    double p = rate_of(repetition), q = rate_of(repetition * 31 + 7);
    (void)l;
    return holds(tp_newcombe(successes(s, n, p), n, successes(s, n, q), n, 0.95).ci, p - q);
}

/* Items of a benchmark in clusters of four that share half of their difficulty. */
static int clustered(source *s, const law *l, int n, uint64_t repetition)
{
    double x[MAX_N], common = 0;
    int64_t cluster[MAX_N];
    tp_clustered r;
    (void)repetition;
    for (int i = 0; i < n; i++) {
        if (i % 4 == 0)
            common = l->draw(s);
        cluster[i] = i / 4;
        x[i] = common + l->draw(s);
    }
    return tp_clustered_mean(x, cluster, (size_t)n, 0.95, &r, NULL) == TP_OK &&
           holds(r.ci, 2 * l->mean);
}

/* Looked at after each of n rounds: must never reach 1 / 0.05. */
static int anytime_stop(source *s, const law *l, int n, uint64_t repetition)
{
    int64_t k = 0;
    (void)l;
    (void)repetition;
    for (int i = 1; i <= n; i++) {
        k += draw_uniform(s) < 0.5;
        if (tp_sign_evalue_log(i, k) >= log(1 / 0.05))
            return 0;
    }
    return 1;
}

typedef enum { NOMINAL, AT_LEAST, MEASURED } promise;

typedef struct {
    const char *what;
    trial run;
    int law, n;
    promise kind;
    double level; /* promised, or measured with 10,000 repetitions */
} row;

static const row rows[] = {
    {"t interval of a mean", t_mean, NORMAL, 10, NOMINAL, 0.95},
    {"t interval of a mean", t_mean, TIED, 20, NOMINAL, 0.95},
    {"t interval of a mean", t_mean, EXPONENTIAL, 20, MEASURED, 0.918},
    {"t interval of a mean", t_mean, LOGNORMAL, 20, MEASURED, 0.871},
    {"BCa of a mean", bca_mean, NORMAL, 20, MEASURED, 0.928},
    {"BCa of a mean", bca_mean, EXPONENTIAL, 20, MEASURED, 0.912},
    {"BCa of a mean", bca_mean, LOGNORMAL, 20, MEASURED, 0.875},
    {"order statistics of a median", median_order, NORMAL, 17, NOMINAL, 0.951},
    {"order statistics of a median", median_order, LOGNORMAL, 17, NOMINAL, 0.951},
    {"order statistics of a median", median_order, TIED, 17, AT_LEAST, 0.95},
    {"Welch, spreads 1:3, n 20 and 10", welch_difference, NORMAL, 20, NOMINAL, 0.95},
    {"Welch, spreads 1:3, n 20 and 10", welch_difference, TIED, 20, NOMINAL, 0.95},
    {"Welch, spreads 1:3, n 20 and 10", welch_difference, EXPONENTIAL, 20, MEASURED, 0.905},
    {"Student", student_difference, NORMAL, 12, NOMINAL, 0.95},
    {"Student", student_difference, TIED, 12, NOMINAL, 0.95},
    {"Student", student_difference, LOGNORMAL, 12, AT_LEAST, 0.95},
    {"paired t", paired_difference, NORMAL, 10, NOMINAL, 0.95},
    {"paired t", paired_difference, EXPONENTIAL, 20, MEASURED, 0.920},
    {"Hodges-Lehmann, exact", hodges_lehmann, NORMAL, 12, NOMINAL, 0.9551},
    {"Hodges-Lehmann, exact", hodges_lehmann, LOGNORMAL, 12, NOMINAL, 0.9551},
    {"Hodges-Lehmann, normal", hodges_lehmann, TIED, 20, AT_LEAST, 0.95},
    {"pseudomedian, exact", walsh, NORMAL, 12, NOMINAL, 0.9575},
    {"pseudomedian, exact", walsh, LOGNORMAL, 12, NOMINAL, 0.9575},
    {"pseudomedian, normal", walsh, TIED, 20, AT_LEAST, 0.95},
    {"exact interval of d = 0.8", exact_d, NORMAL, 12, NOMINAL, 0.95},
    {"exact interval of d = 0.8", exact_d, TIED, 20, MEASURED, 0.951},
    {"exact interval of d = 0.8", exact_d, EXPONENTIAL, 20, MEASURED, 0.926},
    {"Fieller, ratio of means", fieller, NORMAL, 12, NOMINAL, 0.95},
    {"Fieller, ratio of means", fieller, TIED, 12, NOMINAL, 0.95},
    {"Fieller, ratio of means", fieller, EXPONENTIAL, 20, MEASURED, 0.956},
    {"ratio of geometric means", geometric_ratio, NORMAL, 12, NOMINAL, 0.95},
    {"ratio of geometric means", geometric_ratio, EXPONENTIAL, 12, MEASURED, 0.960},
    {"sign interval of a ratio", sign_ratio, NORMAL, 20, NOMINAL, 0.9586},
    {"sign interval of a ratio", sign_ratio, LOGNORMAL, 20, NOMINAL, 0.9586},
    {"sign interval of a ratio", sign_ratio, TIED, 20, AT_LEAST, 0.9586},
    {"Theil-Sen slope", theil_sen, NORMAL, 20, MEASURED, 0.956},
    {"Theil-Sen slope", theil_sen, LOGNORMAL, 20, MEASURED, 0.952},
    {"Theil-Sen slope", theil_sen, TIED, 20, AT_LEAST, 0.95},
    {"least squares slope", least_squares, NORMAL, 20, NOMINAL, 0.95},
    {"least squares slope", least_squares, TIED, 20, NOMINAL, 0.95},
    {"least squares slope", least_squares, LOGNORMAL, 20, AT_LEAST, 0.95},
    {"Wilson, mean over rates", wilson, TIED, 40, MEASURED, 0.946},
    {"Clopper-Pearson", clopper_pearson, TIED, 40, AT_LEAST, 0.95},
    {"Newcombe, mean over rates", newcombe, TIED, 40, MEASURED, 0.952},
    {"clustered mean, 16 clusters of 4", clustered, NORMAL, 64, MEASURED, 0.947},
    {"clustered mean, 16 clusters of 4", clustered, TIED, 64, MEASURED, 0.943},
    {"e-value stop, 60 looks", anytime_stop, TIED, 60, AT_LEAST, 0.95},
};

/* Largest excess of a count over its mean that chance allows with error 1e-4. */
static double bound(double level, int repetitions)
{
    return 3.89 * sqrt(level * (1 - level) / repetitions) + 0.5 / repetitions;
}

static int is_right(const row *r, double seen, int repetitions)
{
    double slack = bound(r->level, repetitions);
    if (r->kind == AT_LEAST)
        return seen >= r->level - slack;
    /* A measured figure has an error of its own. */
    return fabs(seen - r->level) <= slack + (r->kind == MEASURED ? bound(r->level, 10000) : 0);
}

int run_simulation(int repetitions, int verbose)
{
    static const char *const promises[] = {"nominal", "at least", "measured"};
    int failed = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const row *r = &rows[i];
        int hits = 0;
        for (int k = 0; k < repetitions; k++) {
            source s = {tp_splitmix_at(1000 + i, (uint64_t)k)};
            hits += r->run(&s, &laws[r->law], r->n, (uint64_t)k);
        }
        double seen = (double)hits / repetitions;
        int right = is_right(r, seen, repetitions);
        failed += !right;
        if (verbose || !right)
            printf("%-34s %-12s n = %-3d %8s %.2f %%  seen %.2f %%%s\n", r->what, laws[r->law].name,
                   r->n, promises[r->kind], 100 * r->level, 100 * seen, right ? "" : "  WRONG");
    }
    return failed;
}
