/* stats_text.c - answers about one and two samples in words and tables. */
#include "instrument/report/stats_text.h"
#include "base/strings.h"
#include "base/terminal.h"
#include "instrument/report/grid.h"

#include <math.h>

enum { MOST_RESAMPLED = 200000 };

void tp_stats_put_p(tp_buf *out, double p)
{
    if (isnan(p))
        tp_buf_adds(out, "p undefined");
    else if (p < 1e-4)
        tp_buf_adds(out, "p < 0.0001");
    else
        tp_buf_addf(out, "p = %.2g", p);
}

const char *tp_stats_level(const tp_stats_style *s, char buffer[24])
{
    snprintf(buffer, 24, "%.4g %%", 100 * s->level);
    return buffer;
}

void tp_stats_headline(const tp_stats_style *s, tp_buf *out, bool begin)
{
    if (s->bold)
        tp_buf_adds(out, tp_style(begin ? TP_STYLE_BOLD : TP_STYLE_PLAIN));
    if (!begin)
        tp_buf_addc(out, '\n');
}

static void put_interval(tp_buf *out, tp_interval ci, const char *unit)
{
    if (ci.why)
        tp_buf_addf(out, "undefined (%s)", ci.why);
    else
        tp_buf_addf(out, "%.5g to %.5g%s", ci.lo, ci.hi, unit);
}

/* One row of the table. */
static void put_description(const char *name, const tp_description *d, tp_grid *g)
{
    const double cells[] = {d->mean, d->sd, d->median, d->mad_sigma, d->min, d->max};
    TP_OWN(tp_buf) interval = {0};
    tp_grid_text(g, name);
    tp_grid_int(g, (int64_t)d->n);
    for (size_t j = 0; j < sizeof cells / sizeof *cells; j++)
        if (isnan(cells[j]))
            tp_grid_text(g, "undefined");
        else
            tp_grid_textf(g, "%.5g", cells[j]);
    put_interval(&interval, d->t_ci, "");
    tp_grid_text(g, tp_buf_str(&interval));
}

tp_status tp_stats_put_table(const tp_stats_style *s, const tp_stats_column *c, size_t k,
                             tp_buf *out, tp_error *err)
{
    static const char *const heads[] = {"mean", "sd", "median", "mad*1.48", "min", "max"};
    char level[24], interval[48];
    TP_OWN(tp_grid) g = {0};
    snprintf(interval, sizeof interval, "mean, %s interval", tp_stats_level(s, level));
    tp_grid_column(&g, "name", "", TP_CELL_TEXT);
    tp_grid_column(&g, "n", "n", TP_CELL_COUNT);
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        tp_grid_column(&g, heads[i], heads[i], TP_CELL_FIGURE);
    tp_grid_column(&g, "interval", interval, TP_CELL_TEXT);
    for (size_t i = 0; i < k; i++) {
        tp_description d;
        TP_TRY(tp_describe(c[i].x, c[i].n, s->level, &d, err));
        put_description(c[i].name, &d, &g);
    }
    tp_buf_addc(out, '\n');
    tp_grid_print(&g, 0, s->width, out);
    for (size_t i = 0; i < k; i++) {
        if (c[i].n_missing)
            tp_buf_addf(out, "%s: %zu cell%s without a number left out.\n", c[i].name,
                        c[i].n_missing, tp_plural((uint64_t)(c[i].n_missing)));
        if (c[i].n_rows_dropped)
            tp_buf_addf(out, "%zu row%s without both numbers left out.\n", c[i].n_rows_dropped,
                        tp_plural((uint64_t)(c[i].n_rows_dropped)));
    }
    return TP_OK;
}

static void put_row(tp_buf *out, const char *what) { tp_buf_addf(out, "  %-34s ", what); }

/* Successive values that resemble each other make intervals too narrow. */
static void warn_of_order(tp_buf *out, const char *what, const double *x, size_t n)
{
    double r = tp_lag1(x, n);
    if (n >= 8 && r > 2 / sqrt((double)n))
        tp_buf_addf(out,
                    "Note: successive %s resemble each other (lag-1 correlation %.2f): %zu values "
                    "weigh about as much as %.0f, so the intervals are too narrow.\n",
                    what, r, n, tp_effective_n(n, r));
}

tp_status tp_stats_text_one(const tp_stats_style *s, const tp_stats_column *c, tp_buf *out,
                            tp_error *err)
{
    tp_description d;
    char level[24];
    tp_bootstrap_options o = {.n_resamples = s->n_resamples, .seed = s->seed, .level = s->level};
    tp_bootstrap_result boot;
    /* Of many values the closed form that BCa tends to: a resample costs n draws, and the two then
     * differ by less than the resamples do among themselves. */
    bool is_closed = o.n_resamples == 0 && c->n > MOST_RESAMPLED;
    if (o.n_resamples == 0) /* fewer of many values, so that it takes a second at most */
        o.n_resamples = c->n < 20000 ? 9999 : c->n < 100000 ? 1999 : 999;
    TP_TRY(tp_describe(c->x, c->n, s->level, &d, err));
    tp_stats_level(s, level);
    tp_stats_headline(s, out, true);
    tp_buf_addf(out, "%s: mean %.5g, ", c->name, d.mean);
    if (d.t_ci.why)
        tp_buf_addf(out, "no interval (%s), n = %zu.", d.t_ci.why, d.n);
    else
        tp_buf_addf(out, "%s interval %.5g to %.5g, n = %zu.", level, d.t_ci.lo, d.t_ci.hi, d.n);
    tp_stats_headline(s, out, false);
    tp_buf_addf(out, "Half of the values lie between %.5g and %.5g; the median is %.5g", d.q1, d.q3,
                d.median);
    if (d.median_ci.why)
        tp_buf_addf(out, " (no %s interval: %s).\n", level, d.median_ci.why);
    else
        tp_buf_addf(out, ", interval %.5g to %.5g.\n", d.median_ci.lo, d.median_ci.hi);
    if (fabs(d.skew_G1) > 1 && d.n >= 8)
        tp_buf_addf(out,
                    "Note: the values are skewed (G1 = %.2g): the median says more than the mean, "
                    "and the t interval of the mean is off; see the bootstrap below.\n",
                    d.skew_G1);
    warn_of_order(out, "values", c->x, c->n);
    TP_TRY(tp_stats_put_table(s, c, 1, out, err));
    tp_buf_addc(out, '\n');
    const struct {
        const char *what;
        double v;
    } rows[] = {{"standard error of the mean", d.sem},
                {"coefficient of variation", d.cv},
                {"5 %, 95 % and 99 % quantiles", d.p05},
                {"trimmed mean (10 % each end)", d.trimmed_mean_10},
                {"geometric mean", d.geomean},
                {"skewness G1, excess kurtosis G2", d.skew_G1},
                {"lag-1 autocorrelation", d.lag1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (isnan(rows[i].v))
            continue;
        put_row(out, rows[i].what);
        tp_buf_addf(out, "%.5g", rows[i].v);
        if (i == 2)
            tp_buf_addf(out, ", %.5g, %.5g", d.p95, d.p99);
        if (i == 5 && !isnan(d.kurt_G2))
            tp_buf_addf(out, ", %.5g", d.kurt_G2);
        tp_buf_addc(out, '\n');
    }
    if (c->n < 3)
        return TP_OK;
    if (is_closed) {
        put_row(out, "mean, corrected for skewness");
        put_interval(out, tp_skew_interval(&d, s->level), "");
        tp_buf_addf(out, " (what BCa tends to; n > %d: not resampled)\n", MOST_RESAMPLED);
        return TP_OK;
    }
    TP_TRY(tp_bootstrap(c->x, c->n, tp_statistic_mean, NULL, &o, &boot, err));
    put_row(out, "mean, BCa bootstrap");
    put_interval(out, boot.bca, "");
    tp_buf_addf(out, boot.bca_fallback ? " (percentile: %s)\n" : " (%s",
                boot.bca_fallback ? boot.bca_fallback : "");
    if (!boot.bca_fallback)
        tp_buf_addf(out, "%zu resamples, seed %llu)\n", o.n_resamples, (unsigned long long)s->seed);
    return TP_OK;
}

static const char *comparative(const tp_stats_style *s, bool larger)
{
    switch (s->words) {
    case TP_WORDS_LOWER:
        return larger ? "worse (higher)" : "better (lower)";
    case TP_WORDS_HIGHER:
        return larger ? "better (higher)" : "worse (lower)";
    case TP_WORDS_TIME:
        return larger ? "slower" : "faster";
    default:
        return larger ? "higher" : "lower";
    }
}

/* As many as the uncertainty leaves: two figures of it. */
static int decimals_of(double uncertainty)
{
    if (!(uncertainty > 0))
        return 2;
    double digits = 1 - floor(log10(uncertainty));
    return digits < 0 ? 0 : digits > 6 ? 6 : (int)digits;
}

/* A ratio as "4.1 % slower", its interval turned the same way. */
static void put_ratio(const tp_stats_style *s, const char *b, const char *a, double ratio,
                      tp_interval ci, tp_buf *out)
{
    char level[24];
    bool larger = ratio >= 1;
    double sign = larger ? 100 : -100;
    double lo = sign * ((larger ? ci.lo : ci.hi) - 1), hi = sign * ((larger ? ci.hi : ci.lo) - 1);
    if (ratio >= 2 || ratio <= 0.5) {
        tp_buf_addf(out, "%s is %.3g times %s, which is %s: %s interval of the ratio %.3g to %.3g",
                    b, ratio, a, comparative(s, larger), tp_stats_level(s, level), ci.lo, ci.hi);
        return;
    }
    int digits = decimals_of(0.5 * fabs(hi - lo));
    tp_buf_addf(out, "%s is %.*f %% %s than %s, %s interval %.*f to %.*f %%", b, digits,
                fabs(100 * (ratio - 1)), comparative(s, larger), a, tp_stats_level(s, level),
                digits, lo + 0.0, digits, hi + 0.0);
}

static void put_difference(const tp_stats_style *s, const char *b, const char *a, double diff,
                           tp_interval ci, tp_buf *out)
{
    char level[24];
    bool larger = diff >= 0;
    double lo = larger ? ci.lo : -ci.hi, hi = larger ? ci.hi : -ci.lo;
    if (ci.why) {
        tp_buf_addf(out, "%s minus %s is %.5g, without an interval: %s", b, a, diff, ci.why);
        return;
    }
    if (diff == 0) {
        tp_buf_addf(out, "%s and %s have the same mean, %s interval of the difference %.4g to %.4g",
                    b, a, tp_stats_level(s, level), lo, hi);
        return;
    }
    tp_buf_addf(out, "%s is %.4g %s than %s, %s interval %.4g to %.4g", b, fabs(diff),
                comparative(s, larger), a, tp_stats_level(s, level), lo, hi);
}

static bool excludes(tp_interval ci, double value)
{
    return !ci.why && (ci.lo > value || ci.hi < value);
}

static void put_effect(tp_buf *out, const char *symbol, double d, tp_interval ci, const char *why)
{
    put_row(out, "size of the effect");
    if (isnan(d))
        tp_buf_addf(out, "undefined: %s\n", why);
    else
        tp_buf_addf(out, "%s (%s = %.3g, interval %.3g to %.3g)\n", tp_effect_word(d), symbol, d,
                    ci.lo, ci.hi);
}

static void put_equivalence(const tp_stats_style *s, const tp_t_test *t, double baseline,
                            tp_buf *out)
{
    if (!(s->margin > 0))
        return;
    tp_tost_result r = tp_tost(t, s->margin * fabs(baseline));
    put_row(out, "equivalence");
    if (r.why)
        tp_buf_addf(out, "undefined: %s\n", r.why);
    else {
        tp_buf_addf(out, "%s within %.3g %% of the baseline's mean (TOST ",
                    r.p < 1 - s->level ? "shown" : "not shown", 100 * s->margin);
        tp_stats_put_p(out, r.p);
        tp_buf_adds(out, ")\n");
    }
}

static void put_t_test(const char *what, const tp_t_test *t, tp_buf *out)
{
    put_row(out, what);
    if (t->why) {
        tp_buf_addf(out, "undefined: %s\n", t->why);
        return;
    }
    tp_buf_addf(out, "t = %.4g, df = %.4g, ", t->t, t->df);
    tp_stats_put_p(out, t->p.two);
    tp_buf_addc(out, '\n');
}

tp_t_test tp_stats_t_test(const tp_stats_style *s, const tp_stats_column *a,
                          const tp_stats_column *b, bool is_paired)
{
    return is_paired            ? tp_paired_t(b->x, a->x, a->n, s->level)
           : s->equal_variances ? tp_student(b->x, b->n, a->x, a->n, s->level)
                                : tp_welch(b->x, b->n, a->x, a->n, s->level);
}

double tp_stats_detectable(const tp_stats_style *s, const tp_t_test *t)
{
    return t->se > 0 ? tp_mde_errors(t->df, 1 - s->level, s->power, 2) * t->se : NAN;
}

static void put_mde(const tp_stats_style *s, const char *a, double mde, double mean, tp_buf *out)
{
    if (isnan(mde))
        return;
    tp_buf_adds(out, "A difference of ");
    if (mean > mde)
        tp_buf_addf(out, "%.2g %% of %s's mean", 100 * mde / mean, a);
    else
        tp_buf_addf(out, "%.3g", mde);
    tp_buf_addf(out,
                " would have been seen in %.4g %% of such experiments; smaller ones need more "
                "values.\n",
                100 * s->power);
}

/* What the interval of the headline decides, and the test that goes with it. */
typedef struct {
    bool is_clear;
    const char *test, *of;
    double p;
    size_t n_equal, n; /* pairs that the sign test leaves out, of how many */
    double effect;
    const char *spread; /* that the effect is measured by */
    double mde;
} decision;

static void put_decision(const tp_stats_style *s, const decision *d, const tp_t_test *t,
                         const char *a, double mean_a, tp_buf *out)
{
    bool is_equivalent = tp_tost(t, s->margin * fabs(mean_a)).p < 1 - s->level; /* NaN: no */
    if (!d->is_clear && isnan(d->p))
        return;
    if (d->is_clear) {
        tp_buf_addf(out, "The difference is clear (%s ", d->test);
        tp_stats_put_p(out, d->p);
        if (isnan(d->effect))
            tp_buf_adds(out, ").\n");
        else
            tp_buf_addf(out, ") and, measured by %s, %s.\n", d->spread, tp_effect_word(d->effect));
        return;
    }
    if (d->n_equal && d->p < 1 - s->level) {
        tp_buf_addf(out, "The pairs that differ do so mostly one way (%s ", d->test);
        tp_stats_put_p(out, d->p);
        tp_buf_addf(out, "), but %zu of %zu are equal: the median may show no difference.\n",
                    d->n_equal, d->n);
        return;
    }
    tp_buf_addf(out, "No difference %sis shown (%s ", d->of, d->test);
    tp_stats_put_p(out, d->p);
    if (is_equivalent)
        tp_buf_addf(out, "), but that it stays within %.3g %% of %s's mean is", 100 * s->margin, a);
    tp_buf_adds(out, is_equivalent ? ".\n" : ").\n");
    put_mde(s, a, d->mde, mean_a, out);
}

static void put_mann_whitney(const tp_stats_column *a, const tp_stats_column *b,
                             const tp_mann_whitney_result *r, tp_buf *out)
{
    tp_mann_whitney_result m = *r;
    put_row(out, m.has_exact ? "Mann-Whitney, exact" : "Mann-Whitney, normal approximation");
    tp_buf_addf(out, "U = %.6g, ", m.u1);
    tp_stats_put_p(out, m.p.two);
    tp_buf_addc(out, '\n');
    put_row(out, "Hodges-Lehmann shift");
    tp_buf_addf(out, "%.5g, interval ", m.shift);
    tp_interval ci = {.lo = m.shift_ci.lo, .hi = m.shift_ci.hi, .why = m.shift_ci.why};
    put_interval(out, ci.why ? m.shift_ci_approximate : ci, "");
    tp_buf_addc(out, '\n');
    put_row(out, "Cliff's delta");
    tp_buf_addf(out, "%.3g (%s): a value of %s exceeds one of %s with probability %.2f\n",
                m.cliffs_delta, tp_cliff_word(m.cliffs_delta), b->name, a->name, m.a12);
}

tp_status tp_stats_text_two(const tp_stats_style *s, const tp_stats_column *a,
                            const tp_stats_column *b, tp_buf *out, tp_error *err)
{
    tp_t_test t = tp_stats_t_test(s, a, b, false);
    tp_ratio_means_result r = tp_ratio_means(b->x, b->n, a->x, a->n, s->level);
    tp_effect e = tp_effect_two(b->x, b->n, a->x, a->n, s->level);
    tp_mann_whitney_result m;
    TP_TRY(tp_mann_whitney(b->x, b->n, a->x, a->n, s->level, &m, err));
    double mean_a = tp_mean(a->x, a->n);
    bool as_ratio = !r.why && !r.ci.why && mean_a > 0 && r.ratio > 0 && !s->equal_variances;
    tp_stats_headline(s, out, true);
    if (as_ratio)
        put_ratio(s, b->name, a->name, r.ratio, r.ci, out);
    else
        put_difference(s, b->name, a->name, t.diff, t.ci, out);
    tp_buf_addf(out, ", n = %zu and %zu.", b->n, a->n);
    tp_stats_headline(s, out, false);
    const decision said = {.is_clear = excludes(t.ci, 0),
                           .test = s->equal_variances ? "Student" : "Welch",
                           .p = t.p.two,
                           .of = "of the means ",
                           .effect = e.g,
                           .spread = "the spread of the values",
                           .mde = tp_stats_detectable(s, &t)};
    put_decision(s, &said, &t, a->name, mean_a, out);
    warn_of_order(out, b->name, b->x, b->n);
    warn_of_order(out, a->name, a->x, a->n);
    const tp_stats_column both[] = {*a, *b};
    TP_TRY(tp_stats_put_table(s, both, 2, out, err));
    tp_buf_addc(out, '\n');
    put_row(out, "difference of means");
    tp_buf_addf(out, "%.5g, interval ", t.diff);
    put_interval(out, t.ci, "");
    tp_buf_addc(out, '\n');
    put_t_test(s->equal_variances ? "Student's t (equal variances)" : "Welch's t", &t, out);
    put_effect(out, "g", e.g, e.g_ci, e.why ? e.why : e.why_j);
    put_equivalence(s, &t, mean_a, out);
    put_mann_whitney(a, b, &m, out);
    return TP_OK;
}

/* 0.3 - 0.1 and 0.2 - 0 are one difference of decimals, though not of doubles: what is below the
 * fourteenth digit of the larger value is their rounding. */
static void tie_decimals(const tp_stats_column *a, const tp_stats_column *b, double *d)
{
    double largest = 0;
    for (size_t i = 0; i < a->n; i++)
        largest = fmax(largest, fmax(fabs(a->x[i]), fabs(b->x[i])));
    if (largest > 1e-200 && largest < 1e200)
        tp_round_decimals(d, a->n, 14 - (int)ceil(log10(largest)));
}

/* `d` is rounded. */
static tp_status put_pair_tests(const tp_stats_style *s, const tp_stats_column *a,
                                const tp_stats_column *b, double *d, tp_buf *out, tp_error *err)
{
    size_t n = a->n;
    tp_wilcoxon_result w;
    tp_sign_result sign = tp_sign_test(d, n);
    tie_decimals(a, b, d);
    TP_TRY(tp_wilcoxon(d, n, s->level, &w, err));
    put_row(out, w.has_exact ? "Wilcoxon signed rank, exact" : "Wilcoxon signed rank");
    if (w.why)
        tp_buf_addf(out, "undefined: %s\n", w.why);
    else {
        tp_buf_addf(out, "W+ = %.6g, W- = %.6g, ", w.w_plus, w.w_minus);
        tp_stats_put_p(out, w.p.two);
        tp_buf_addc(out, '\n');
    }
    put_row(out, "sign test, exact");
    tp_buf_addf(out, "%zu up, %zu down, %zu equal, ", sign.n_positive, sign.n_negative,
                sign.n_zero);
    tp_stats_put_p(out, sign.p.two);
    tp_buf_addc(out, '\n');
    return TP_OK;
}

static tp_status paired(const tp_stats_style *s, const tp_stats_column *a, const tp_stats_column *b,
                        double *d, tp_buf *out, tp_error *err)
{
    size_t n = a->n;
    tp_t_test t = tp_stats_t_test(s, a, b, true);
    tp_effect_paired_result e = tp_effect_paired(b->x, a->x, n, s->level);
    tp_log_ratio_result r;
    tp_sign_result sign = tp_sign_test(d, n);
    double mean_a = tp_mean(a->x, n);
    TP_TRY(tp_log_ratio(b->x, a->x, n, s->level, &r, err));
    tp_interval ci = r.sign_ci.why ? r.t_ci : r.sign_ci;
    bool as_ratio = !r.why && !ci.why;
    tp_stats_headline(s, out, true);
    if (as_ratio)
        put_ratio(s, b->name, a->name, r.sign_ci.why ? r.geomean_ratio : r.ratio, ci, out);
    else
        put_difference(s, b->name, a->name, t.diff, t.ci, out);
    tp_buf_addf(out, ", n = %zu pair%s.", n, tp_plural((uint64_t)n));
    tp_stats_headline(s, out, false);
    bool by_signs = as_ratio && !r.sign_ci.why;
    const decision said = {.is_clear = as_ratio ? excludes(ci, 1) : excludes(t.ci, 0),
                           .test = by_signs   ? "sign test"
                                   : as_ratio ? "t test of the log ratios"
                                              : "paired t",
                           .p = by_signs   ? sign.p.two
                                : as_ratio ? r.p_two
                                           : t.p.two,
                           .n_equal = by_signs ? sign.n_zero : 0,
                           .n = n,
                           .of = "",
                           .effect = e.dz,
                           .spread = "its spread between pairs",
                           .mde = tp_stats_detectable(s, &t)};
    put_decision(s, &said, &t, a->name, mean_a, out);
    warn_of_order(out, "differences", d, n);
    const tp_stats_column all[] = {*a, *b, {.name = "difference", .x = d, .n = n}};
    TP_TRY(tp_stats_put_table(s, all, 3, out, err));
    tp_buf_addc(out, '\n');
    if (!r.why) {
        put_row(out, "median ratio");
        tp_buf_addf(out, "%.5g, interval ", r.ratio);
        put_interval(out, r.sign_ci, "");
        if (!r.sign_ci.why)
            tp_buf_addf(out, " (order statistics, covers %.2f %%)", 100 * r.sign_coverage);
        tp_buf_adds(out, "\n");
        put_row(out, "geometric mean ratio");
        tp_buf_addf(out, "%.5g, interval ", r.geomean_ratio);
        put_interval(out, r.t_ci, "");
        tp_buf_adds(out, "\n");
    }
    put_t_test("paired t", &t, out);
    put_effect(out, "d_z", e.dz, e.dz_ci, e.why);
    put_equivalence(s, &t, mean_a, out);
    return put_pair_tests(s, a, b, d, out, err);
}

tp_status tp_stats_text_paired(const tp_stats_style *s, const tp_stats_column *a,
                               const tp_stats_column *b, tp_buf *out, tp_error *err)
{
    TP_FREED double *d = tp_new(a->n + 1, sizeof *d);
    for (size_t i = 0; i < a->n; i++)
        d[i] = b->x[i] - a->x[i];
    return paired(s, a, b, d, out, err);
}
