/* rule.c - the decision rule of rule.h: exact median interval, e-values for early stops,
 * bootstrap where asked. */
#include "instrument/bench/rule.h"

#include <math.h>
#include <string.h>

#include "stats/order.h"
#include "stats/stats.h"

static const struct {
    const char *name, *word;
    tp_gravity gravity;
} verdicts[TP_BENCH_COUNT] = {
    [TP_BENCH_NONE] = {"NONE", "-", TP_GRAVITY_NONE},
    [TP_BENCH_PASS] = {"PASS", "same", TP_GRAVITY_NONE},
    [TP_BENCH_IMPROVED] = {"IMPROVED", "better", TP_GRAVITY_GOOD},
    [TP_BENCH_SLOWER] = {"SLOWER_WITHIN_TOL", "same", TP_GRAVITY_NONE},
    [TP_BENCH_INCONCLUSIVE] = {"INCONCLUSIVE", "not shown", TP_GRAVITY_WARNING},
    [TP_BENCH_NEW] = {"NEW", "no baseline", TP_GRAVITY_WARNING},
    [TP_BENCH_MISSING] = {"MISSING", "not measured", TP_GRAVITY_ERROR},
    [TP_BENCH_FAILED] = {"FAILED", "failed", TP_GRAVITY_ERROR},
    [TP_BENCH_REGRESSION] = {"REGRESSION", "worse", TP_GRAVITY_ERROR},
};

tp_gravity tp_bench_verdict_gravity(tp_bench_verdict verdict) { return verdicts[verdict].gravity; }

const char *tp_bench_verdict_name(tp_bench_verdict verdict) { return verdicts[verdict].name; }

const char *tp_bench_verdict_word(tp_bench_verdict verdict) { return verdicts[verdict].word; }

/* ---- parts ---- */

static double sign_of(const tp_metric *metric)
{
    return metric->direction == TP_HIGHER_IS_BETTER ? -1 : 1;
}

static tp_bench_comparison blank(const tp_rule *rule, const tp_metric *metric, tp_compared_how how,
                                 size_t n)
{
    bool exact = metric->kind == TP_METRIC_EXACT;
    tp_bench_comparison c = {.how = how,
                             .verdict = TP_BENCH_INCONCLUSIVE,
                             .n = n,
                             .tolerance = exact ? rule->exact_tolerance : rule->tolerance,
                             .alpha = rule->alpha,
                             .point = TP_BENCH_NONE};
    double *numbers[] = {&c.ratio,
                         &c.ratio_lower,
                         &c.ratio_upper,
                         &c.center,
                         &c.lower,
                         &c.upper,
                         &c.mean,
                         &c.mean_lower,
                         &c.mean_upper,
                         &c.p,
                         &c.p_holm,
                         &c.log_e_worse,
                         &c.mde,
                         &c.half_width,
                         &c.log_e_within,
                         &c.hodges_lehmann,
                         &c.lag1,
                         &c.n_effective,
                         &c.order_effect,
                         &c.order_lower,
                         &c.order_upper,
                         &c.sd_within,
                         &c.sd_between,
                         &c.point_ratio,
                         &c.boot_median_lower,
                         &c.boot_median_upper,
                         &c.boot_mean_lower,
                         &c.boot_mean_upper};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        *numbers[i] = NAN;
    return c;
}

/* The interval of the ratio B / A from that of the logs. */
static void set_ratio(const tp_metric *metric, tp_bench_comparison *c)
{
    double s = sign_of(metric);
    c->ratio = exp(s * c->center);
    c->ratio_lower = exp(s * (s > 0 ? c->lower : c->upper));
    c->ratio_upper = exp(s * (s > 0 ? c->upper : c->lower));
    c->half_width = exp((c->upper - c->lower) / 2) - 1;
}

static void classify(const tp_rule *rule, tp_bench_comparison *c)
{
    double m = log1p(c->tolerance);
    bool is_worse = c->lower > m, is_within = c->upper < m;
    if (rule->is_sequential && c->how == TP_COMPARED_PAIRED) {
        is_worse = c->p <= rule->alpha;
        is_within = c->log_e_within >= log((double)rule->family / rule->alpha);
    }
    if (is_worse)
        c->verdict = TP_BENCH_REGRESSION;
    else if (is_within)
        c->verdict = c->upper < -m  ? TP_BENCH_IMPROVED
                     : c->lower > 0 ? TP_BENCH_SLOWER
                                    : TP_BENCH_PASS;
    else
        c->verdict = TP_BENCH_INCONCLUSIVE;
}

static void explain_inconclusive(const tp_rule *rule, tp_bench_comparison *c)
{
    if (c->verdict != TP_BENCH_INCONCLUSIVE || c->reason[0])
        return;
    double evidence = exp(fmax(c->log_e_worse, c->log_e_within));
    bool outside = c->upper < log1p(c->tolerance) || c->lower > log1p(c->tolerance);
    if (rule->is_sequential && outside) {
        snprintf(c->reason, sizeof c->reason,
                 "too early to tell: evidence %.3g of the %.3g needed for \"%s\"; more rounds or "
                 "time",
                 evidence, (double)rule->family / rule->alpha,
                 c->log_e_worse > c->log_e_within ? "worse" : "not worse");
        return;
    }
    if (c->half_width > c->tolerance && isfinite(c->half_width))
        snprintf(
            c->reason, sizeof c->reason,
            "cannot resolve %.3g %%: the interval is +-%.2g %%, the smallest excess that would "
            "show is %.2g %%",
            100 * c->tolerance, 100 * c->half_width, 100 * c->mde);
    else
        snprintf(c->reason, sizeof c->reason, "the interval contains the tolerance of %.3g %%",
                 100 * c->tolerance);
}

static void apply_floor(const tp_metric *metric, double median_a, double median_b,
                        tp_bench_comparison *c)
{
    c->is_below_floor = metric->floor > 0 && fabs(median_b - median_a) < metric->floor;
    if (!c->is_below_floor || c->verdict == TP_BENCH_PASS)
        return;
    c->verdict = TP_BENCH_PASS;
    snprintf(c->reason, sizeof c->reason, "the difference is below the floor of %g %s",
             metric->floor, metric->unit);
}

static double median_of(const double *x, size_t n)
{
    double median = NAN;
    return n > 0 && tp_median(x, n, &median, NULL) == TP_OK ? median : NAN;
}

static void set_point(const tp_metric *metric, double a, double b, tp_bench_comparison *c)
{
    c->point_ratio = b / a;
    c->point = tp_rule_point(metric->direction, c->tolerance, a, b);
}

tp_bench_verdict tp_rule_point(tp_direction direction, double tolerance, double a, double b)
{
    bool worse = direction == TP_HIGHER_IS_BETTER ? !(b >= a * (1 - tolerance))
                                                  : !(b <= a * (1 + tolerance));
    return worse ? TP_BENCH_REGRESSION : TP_BENCH_PASS;
}

/* ---- paired rounds ---- */

static void diagnose_order(const double *d, const char *order, size_t n, tp_bench_comparison *c)
{
    TP_FREED double *split = tp_scratch(2 * n);
    size_t n_first = 0, n_second = 0;
    if (!order)
        return;
    for (size_t i = 0; i < n; i++) {
        if (order[i] == 'A')
            split[n_first++] = d[i];
        else
            split[n + n_second++] = d[i];
    }
    if (n_first >= 2 && n_second >= 2) {
        tp_t_test t = tp_welch(split, n_first, split + n, n_second, 0.95);
        c->order_effect = t.diff;
        c->order_lower = t.ci.lo;
        c->order_upper = t.ci.hi;
    }
}

static void describe_differences(const tp_rule *rule, const double *d, const char *order, size_t n,
                                 tp_bench_comparison *c)
{
    double mad = NAN, level = 1 - 2 * rule->alpha;
    tp_t_test t = tp_one_sample_t(d, n, 0, level);
    tp_wilcoxon_result w;
    c->mean = tp_mean(d, n);
    c->mean_lower = t.ci.lo;
    c->mean_upper = t.ci.hi;
    c->sd_within = tp_sd(d, n);
    c->lag1 = tp_lag1(d, n);
    c->n_effective = fmin((double)n, tp_effective_n(n, c->lag1));
    if (tp_wilcoxon(d, n, level, &w, NULL) == TP_OK)
        c->hodges_lehmann = w.pseudomedian;
    if (tp_mad(d, n, &mad, NULL) == TP_OK)
        c->mde = exp(tp_sign_mde(1.482602218505602 * mad, (double)n, rule->alpha, 0.8)) - 1;
    diagnose_order(d, order, n, c);
}

/* Wins and losses against the tolerance: the sign test, and the e-values of both sides.
 * A round exactly on the tolerance counts for neither. */
static void count_signs(const tp_rule *rule, const double *d, size_t n, tp_bench_comparison *c)
{
    double m = log1p(c->tolerance);
    int64_t above = 0, below = 0;
    for (size_t i = 0; i < n; i++) {
        above += d[i] > m;
        below += d[i] < m;
    }
    c->log_e_worse = tp_sign_evalue_log((int64_t)n, above);
    c->log_e_within = tp_sign_evalue_log((int64_t)n, below);
    c->p = rule->is_sequential ? fmin(1, exp(-c->log_e_worse))
                               : tp_binomial_sf(above, (int64_t)n, 0.5);
}

void tp_rule_paired(const tp_rule *rule, const tp_metric *metric, const double *a, const double *b,
                    const char *order, size_t n, tp_bench_comparison *ret)
{
    *ret = blank(rule, metric, TP_COMPARED_PAIRED, n);
    TP_FREED double *d = tp_scratch(2 * n);
    double *sorted = d + n, coverage;
    if (n == 0)
        return;
    for (size_t i = 0; i < n; i++) {
        d[i] = sign_of(metric) * (log(b[i]) - log(a[i]));
        ret->n_ties += a[i] == b[i];
    }
    memcpy(sorted, d, n * sizeof *d);
    tp_sort(sorted, n);
    size_t k = tp_median_interval_rank(n, 1 - 2 * rule->alpha, &coverage);
    ret->center = tp_median_sorted(sorted, n);
    ret->lower = k ? sorted[k - 1] : -INFINITY;
    ret->upper = k ? sorted[n - k] : INFINITY;
    set_ratio(metric, ret);
    describe_differences(rule, d, order, n, ret);
    count_signs(rule, d, n, ret);
    classify(rule, ret);
    if (k == 0)
        snprintf(ret->reason, sizeof ret->reason, "%zu rounds can show nothing at alpha %g", n,
                 rule->alpha);
    double median_a = median_of(a, n), median_b = median_of(b, n);
    apply_floor(metric, median_a, median_b, ret);
    set_point(metric, median_a, median_b, ret);
    explain_inconclusive(rule, ret);
}

void tp_rule_bootstrap(const tp_metric *metric, const double *a, const double *b, size_t n,
                       uint64_t seed, tp_bench_comparison *c)
{
    tp_bootstrap_options options = {.n_resamples = 1999, .seed = seed, .level = 1 - 2 * c->alpha};
    tp_bootstrap_result r;
    TP_FREED double *d = tp_scratch(n);
    for (size_t i = 0; i < n; i++)
        d[i] = sign_of(metric) * (log(b[i]) - log(a[i]));
    if (n >= 2 && tp_bootstrap(d, n, tp_statistic_median, NULL, &options, &r, NULL) == TP_OK) {
        c->boot_median_lower = r.bca.lo;
        c->boot_median_upper = r.bca.hi;
    }
    if (n >= 2 && tp_bootstrap(d, n, tp_statistic_mean, NULL, &options, &r, NULL) == TP_OK) {
        c->boot_mean_lower = r.bca.lo;
        c->boot_mean_upper = r.bca.hi;
    }
}

/* ---- stored values ---- */

static void find_lag1(const double *x, size_t n, tp_bench_comparison *c)
{
    double lag1 = tp_lag1(x, n);
    if (isnan(lag1) || lag1 <= c->lag1)
        return;
    c->lag1 = lag1;
    c->n_effective = fmin((double)n, tp_effective_n(n, lag1));
}

static void explain_unpaired(size_t n, tp_bench_comparison *c)
{
    if (c->reason[0])
        return;
    if (n >= 8 && c->lag1 > 2 / sqrt((double)n))
        snprintf(c->reason, sizeof c->reason,
                 "unpaired, and rounds resemble the ones before (lag-1 %.2f): the interval is too "
                 "narrow",
                 c->lag1);
    else
        snprintf(c->reason, sizeof c->reason,
                 "unpaired: drift between the two sessions is part of the difference");
}

void tp_rule_unpaired(const tp_rule *rule, const tp_metric *metric, const double *a, size_t n_a,
                      const double *b, size_t n_b, tp_bench_comparison *ret)
{
    *ret = blank(rule, metric, TP_COMPARED_UNPAIRED, n_b);
    TP_FREED double *x = tp_scratch(n_a + n_b);
    double *y = x + n_b, s = sign_of(metric), m = log1p(ret->tolerance);
    tp_mann_whitney_result mw = {0}, against;
    for (size_t i = 0; i < n_b; i++)
        x[i] = s * log(b[i]);
    for (size_t i = 0; i < n_a; i++)
        y[i] = s * log(a[i]);
    if (tp_mann_whitney(x, n_b, y, n_a, 1 - 2 * rule->alpha, &mw, NULL) == TP_OK) {
        bool exact = mw.shift_ci.k > 0 && !mw.has_ties;
        ret->center = mw.shift;
        ret->lower = exact ? mw.shift_ci.lo : mw.shift_ci_approximate.lo;
        ret->upper = exact ? mw.shift_ci.hi : mw.shift_ci_approximate.hi;
        ret->hodges_lehmann = mw.shift;
    }
    ret->sd_within = tp_sd(x, n_b);
    tp_t_test means = tp_welch(x, n_b, y, n_a, 1 - 2 * rule->alpha);
    find_lag1(x, n_b, ret);
    find_lag1(y, n_a, ret);
    for (size_t i = 0; i < n_b; i++)
        x[i] -= m;
    if (tp_mann_whitney(x, n_b, y, n_a, 1 - 2 * rule->alpha, &against, NULL) == TP_OK)
        ret->p = against.p.greater;
    if (isnan(ret->lower) || isnan(ret->upper)) { /* too few values, or all are equal */
        bool equal = mw.why && ret->center == 0;
        ret->lower = equal ? 0 : -INFINITY;
        ret->upper = equal ? 0 : INFINITY;
        ret->p = equal ? 1 : ret->p;
    }
    if (!means.why) {
        ret->mean = means.diff;
        ret->mean_lower = means.ci.lo;
        ret->mean_upper = means.ci.hi;
        ret->lower = fmin(ret->lower, means.ci.lo);
        ret->upper = fmax(ret->upper, means.ci.hi);
        ret->p = fmax(ret->p, tp_t_sf((means.diff - m) / means.se, means.df));
    }
    set_ratio(metric, ret);
    classify(rule, ret);
    double median_a = median_of(a, n_a), median_b = median_of(b, n_b);
    apply_floor(metric, median_a, median_b, ret);
    set_point(metric, median_a, median_b, ret);
    explain_unpaired(n_a < n_b ? n_a : n_b, ret);
}

/* How far one more session may lie from the level: the level is itself a mean of sessions, and
 * their deviation is known from so many.  The rounds of the new one add their own error. */
static double predict(const tp_stored_level *stored, tp_bench_comparison *c, double *ret_df)
{
    double k = stored->n_sessions ? (double)stored->n_sessions : 1, n = (double)c->n;
    double within = c->n >= 2 ? c->sd_within * c->sd_within / n : 0;
    c->is_sd_assumed = isnan(stored->sd_between);
    c->sd_between = c->is_sd_assumed ? stored->assumed : stored->sd_between;
    double between = c->sd_between * c->sd_between * (1 + 1 / k), both = between + within;
    /* Welch and Satterthwaite; a deviation that was not measured in sessions is taken as known. */
    bool is_measured = stored->n_sessions >= TP_BASELINE_LEAST_SESSIONS && !c->is_sd_assumed;
    double spent = (is_measured ? between * between / (k - 1) : 0) +
                   (c->n >= 2 ? within * within / (n - 1) : 0);
    *ret_df = spent > 0 ? fmin(both * both / spent, 1e6) : 1e6;
    return sqrt(both);
}

void tp_rule_baseline(const tp_rule *rule, const tp_metric *metric, const tp_stored_level *stored,
                      const double *b, size_t n, tp_bench_comparison *ret)
{
    *ret = blank(rule, metric, TP_COMPARED_BASELINE, n);
    TP_FREED double *d = tp_scratch(n);
    double m = log1p(ret->tolerance), df;
    for (size_t i = 0; i < n; i++)
        d[i] = sign_of(metric) * (log(b[i]) - log(stored->level));
    ret->center = median_of(d, n);
    ret->mean = tp_mean(d, n);
    ret->sd_within = n >= 2 ? tp_sd(d, n) : NAN;
    double se = predict(stored, ret, &df), half = tp_t_isf(rule->alpha, df) * se;
    ret->lower = ret->center - half;
    ret->upper = ret->center + half;
    ret->p = se > 0 ? tp_t_sf((ret->center - m) / se, df) : ret->center > m ? 0 : 1;
    ret->mde = exp(2.4865 * se) - 1;
    set_ratio(metric, ret);
    classify(rule, ret);
    double median_b = median_of(b, n);
    apply_floor(metric, stored->level, median_b, ret);
    set_point(metric, stored->level, median_b, ret);
    if (!ret->reason[0])
        snprintf(ret->reason, sizeof ret->reason,
                 "unpaired: a stored level, between-session sd %.2g %% (%s)", 100 * ret->sd_between,
                 ret->is_sd_assumed ? "assumed" : "of stored sessions");
}

void tp_rule_exact(const tp_rule *rule, const tp_metric *metric, double a, double b,
                   tp_bench_comparison *ret)
{
    *ret = blank(rule, metric, TP_COMPARED_EXACT, 1);
    double tolerance = ret->tolerance;
    double worse = sign_of(metric) * (b - a); /* in the unit */
    ret->point = tp_rule_point(metric->direction, tolerance, a, b);
    ret->ratio = ret->ratio_lower = ret->ratio_upper = a == b ? 1 : b / a;
    if (ret->point == TP_BENCH_REGRESSION)
        ret->verdict = TP_BENCH_REGRESSION;
    else if (worse > 0)
        ret->verdict = TP_BENCH_SLOWER;
    else
        ret->verdict = worse < 0 && -worse > tolerance * a ? TP_BENCH_IMPROVED : TP_BENCH_PASS;
    if (worse > 0)
        snprintf(ret->reason, sizeof ret->reason, "%.17g %s became %.17g", a, metric->unit, b);
    ret->point_ratio = ret->ratio;
}

void tp_rule_point_only(const tp_rule *rule, const tp_metric *metric, double a, double b,
                        tp_bench_comparison *ret)
{
    *ret = blank(rule, metric, TP_COMPARED_UNPAIRED, 1);
    ret->ratio = b / a;
    ret->center = sign_of(metric) * log(b / a);
    set_point(metric, a, b, ret);
    snprintf(ret->reason, sizeof ret->reason, "one value on a side: no interval");
}

/* ---- the end ---- */

bool tp_rule_check(const tp_metric *metric, const double *values, size_t n, size_t least, char *why,
                   size_t cap)
{
    bool exact = metric->kind == TP_METRIC_EXACT, may_be_zero = exact || metric->is_count;
    for (size_t i = 0; i < n; i++) {
        double v = values[i];
        const char *what = isnan(v)                  ? "NaN"
                           : isinf(v)                ? "infinite"
                           : v < 0                   ? "negative"
                           : v == 0 && !may_be_zero  ? "0"
                           : exact && v != values[0] ? "different"
                                                     : NULL;
        if (!what)
            continue;
        if (strcmp(what, "different") == 0)
            snprintf(why, cap, "%s is %.17g, then %.17g in round %zu: it should be deterministic",
                     metric->name, values[0], v, i + 1);
        else
            snprintf(why, cap, "%s is %s in round %zu", metric->name, what, i + 1);
        return false;
    }
    if (n >= (exact ? 1 : least))
        return true;
    snprintf(why, cap, "%s has %zu round%s, at least %zu are needed", metric->name, n,
             n == 1 ? "" : "s", exact ? 1 : least);
    return false;
}

void tp_rule_settle(const tp_rule *rule, double p_holm, tp_bench_comparison *c)
{
    c->p_holm = p_holm;
    if (c->verdict != TP_BENCH_REGRESSION || !(p_holm > rule->alpha))
        return;
    c->verdict = TP_BENCH_INCONCLUSIVE;
    snprintf(c->reason, sizeof c->reason,
             "beyond the tolerance by itself (p %.2g), not among %zu comparisons (Holm p %.2g)",
             c->p, rule->family, p_holm);
}

bool tp_rule_decided(const tp_rule *rule, const tp_bench_comparison *c)
{
    double bound = log((double)rule->family / rule->alpha);
    return c->log_e_worse >= bound || c->log_e_within >= bound;
}

size_t tp_rule_least_rounds(const tp_rule *rule)
{
    double least = ceil(log2((double)rule->family / rule->alpha) - 1e-9);
    size_t n = least > 0 ? (size_t)least : 1;
    return n + n % 2;
}
