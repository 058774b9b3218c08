/* stats_text_more.c - answers about groups, series, shares and planned samples in words and
 * tables. */
#include <math.h>

#include "base/strings.h"
#include "instrument/report/grid.h"
#include "instrument/report/stats_text.h"

static void put_row(tp_buf *out, const char *what) { tp_buf_addf(out, "  %-34s ", what); }

static void put_f(tp_buf *out, const char *what, const char *symbol, double f, double df1,
                  double df2, double p, const char *why)
{
    put_row(out, what);
    if (why) {
        tp_buf_addf(out, "undefined: %s\n", why);
        return;
    }
    tp_buf_addf(out, "%s = %.4g, df = %.4g", symbol, f, df1);
    if (df2 > 0)
        tp_buf_addf(out, " and %.4g", df2);
    tp_buf_adds(out, ", ");
    tp_stats_put_p(out, p);
    tp_buf_addc(out, '\n');
}

static void put_pairs(const tp_stats_style *s, const tp_stats_column *c, const tp_pairwise *pairs,
                      size_t n, tp_buf *out)
{
    char level[24];
    TP_OWN(tp_grid) g = {0};
    tp_grid_column(&g, "pair", "pair", TP_CELL_TEXT);
    tp_grid_column(&g, "difference", "difference", TP_CELL_FIGURE);
    tp_grid_column(&g, "interval", tp_stats_level(s, level), TP_CELL_TEXT);
    tp_grid_column(&g, "p", "p", TP_CELL_FIGURE);
    tp_grid_column(&g, "p_holm", "p (Holm)", TP_CELL_FIGURE);
    tp_grid_column(&g, "hedges_g", "g", TP_CELL_FIGURE);
    tp_grid_column(&g, "effect", "effect", TP_CELL_TEXT);
    tp_grid_column(&g, "cliffs_delta", "Cliff", TP_CELL_FIGURE);
    tp_grid_column(&g, "verdict", "", TP_CELL_TEXT);
    for (size_t i = 0; i < n; i++) {
        const tp_pairwise *p = &pairs[i];
        tp_grid_textf(&g, "%s - %s", c[p->i].name, c[p->j].name);
        tp_grid_textf(&g, "%.4g", p->diff);
        if (p->why) {
            tp_grid_text(&g, "undefined");
            tp_grid_unknown(&g);
            tp_grid_unknown(&g);
        } else {
            tp_grid_textf(&g, "%.4g to %.4g", p->ci.lo, p->ci.hi);
            tp_grid_textf(&g, "%.2g", p->p);
            tp_grid_textf(&g, "%.2g", p->p_holm);
        }
        if (isnan(p->hedges_g))
            tp_grid_unknown(&g);
        else
            tp_grid_textf(&g, "%.3g", p->hedges_g);
        tp_grid_text(&g, isnan(p->hedges_g) ? "" : tp_effect_word(p->hedges_g));
        tp_grid_textf(&g, "%.3g", p->cliffs_delta);
        tp_grid_text(&g, p->why ? p->why : p->p_holm < 1 - s->level ? "differ" : "");
    }
    tp_buf_addc(out, '\n');
    tp_grid_print(&g, 0, s->width, out);
}

static tp_status groups_with(const tp_stats_style *s, const tp_stats_column *c, size_t k,
                             tp_group *groups, tp_pairwise *pairs, tp_buf *out, tp_error *err)
{
    size_t n_pairs = k * (k - 1) / 2, n_differ = 0;
    tp_kruskal_result ranks;
    for (size_t i = 0; i < k; i++)
        groups[i] = (tp_group){c[i].x, c[i].n};
    tp_f_test welch = tp_welch_anova(groups, k);
    tp_anova_result anova = tp_anova(groups, k);
    TP_TRY(tp_kruskal(groups, k, &ranks, err));
    tp_f_test spread = tp_brown_forsythe(groups, k);
    TP_TRY(tp_pairwise_welch(groups, k, s->level, pairs, err));
    for (size_t i = 0; i < n_pairs; i++)
        n_differ += !pairs[i].why && pairs[i].p_holm < 1 - s->level;
    double p = welch.why ? ranks.p : welch.p;
    tp_stats_headline(s, out, true);
    if (isnan(p))
        tp_buf_addf(out, "Whether the %zu groups differ is undefined: %s.", k, ranks.why);
    else {
        tp_buf_addf(out, "%s (%s ",
                    p < 1 - s->level ? "The groups differ"
                                     : "No difference between groups is shown",
                    welch.why ? "Kruskal-Wallis" : "Welch's ANOVA");
        tp_stats_put_p(out, p);
        tp_buf_addf(out, "); %zu of %zu pairs differ after Holm's correction.", n_differ, n_pairs);
    }
    tp_stats_headline(s, out, false);
    TP_TRY(tp_stats_put_table(s, c, k, out, err));
    put_pairs(s, c, pairs, n_pairs, out);
    tp_buf_addc(out, '\n');
    put_f(out, "Welch's ANOVA (means)", "F", welch.f, welch.df1, welch.df2, welch.p, welch.why);
    put_f(out, "ANOVA (means, equal variances)", "F", anova.f, anova.df_between, anova.df_within,
          anova.p, anova.why);
    put_f(out, "Kruskal-Wallis (ranks)", "H", ranks.h, ranks.df, 0, ranks.p, ranks.why);
    put_f(out, "Brown-Forsythe (spreads)", "W", spread.f, spread.df1, spread.df2, spread.p,
          spread.why);
    if (!anova.why_size) {
        put_row(out, "share of variance between groups");
        tp_buf_addf(out, "eta2 = %.3g, omega2 = %.3g\n", anova.eta2, anova.omega2);
    }
    return TP_OK;
}

tp_status tp_stats_text_groups(const tp_stats_style *s, const tp_stats_column *c, size_t k,
                               tp_buf *out, tp_error *err)
{
    TP_FREED tp_group *groups = tp_new(k, sizeof *groups);
    TP_FREED tp_pairwise *pairs = tp_new(k * (k - 1) / 2, sizeof *pairs);
    return groups_with(s, c, k, groups, pairs, out, err);
}

/* A share says something of values that keep their sign and their size. */
static bool has_share(double before, double after)
{
    double ratio = after / before;
    return ratio > 0.1 && ratio < 10;
}

static void put_change(const tp_stats_column *x, const tp_changepoint *c, bool is_judged,
                       tp_buf *out)
{
    tp_buf_addf(out, "  at %-10.6g median %.5g -> %.5g", x ? x->x[c->index] : (double)c->index,
                c->median_before, c->median_after);
    if (has_share(c->median_before, c->median_after))
        tp_buf_addf(out, " (%+.3g %%)", 100 * (c->median_after / c->median_before - 1));
    if (is_judged) {
        tp_buf_adds(out, ", permutation ");
        tp_stats_put_p(out, c->p);
    }
    tp_buf_addc(out, '\n');
}

tp_status tp_stats_find_changes(const tp_stats_style *s, const double *y, size_t n,
                                tp_stats_changes *ret, tp_error *err)
{
    tp_changepoint_options o = TP_CHANGEPOINT_DEFAULTS;
    double medians[TP_STATS_SEARCHED];
    bool in_blocks = n > TP_STATS_SEARCHED;
    o.seed = s->seed;
    *ret = (tp_stats_changes){.n_searched = in_blocks ? TP_STATS_SEARCHED : n, .alpha = o.alpha};
    if (in_blocks)
        TP_TRY(tp_block_medians(y, n, ret->n_searched, medians, err));
    const double *searched = in_blocks ? medians : y;
    TP_TRY(tp_changepoints(searched, ret->n_searched, &o, ret->found, &ret->n_found, err));
    ret->wander =
        tp_changes_wander(searched, ret->n_searched, ret->found, ret->n_found, &ret->lag1);
    for (size_t i = 0; in_blocks && i < ret->n_found; i++)
        ret->found[i].index = ret->found[i].index * n / ret->n_searched;
    return TP_OK;
}

static tp_status put_changes(const tp_stats_style *s, const tp_stats_column *x,
                             const tp_stats_column *y, tp_buf *out, tp_error *err)
{
    tp_stats_changes c;
    TP_TRY(tp_stats_find_changes(s, y->x, y->n, &c, err));
    if (c.n_found == 0)
        tp_buf_addf(out, "Change points: none at p < %.2g", c.alpha);
    else
        tp_buf_adds(out, "Change points (first value after the change)");
    if (c.n_searched < y->n)
        tp_buf_addf(out, ", searched in the medians of %zu blocks", c.n_searched);
    tp_buf_adds(out, c.n_found ? ":\n" : ".\n");
    for (size_t i = 0; i < c.n_found; i++)
        put_change(x, &c.found[i], !c.wander, out);
    if (c.wander)
        tp_buf_addf(out,
                    "Note: these points are not judged: between them successive values still "
                    "resemble each other (lag-1 correlation %.2f), and such a series wanders "
                    "without a change.\n",
                    c.lag1);
    return TP_OK;
}

static void put_decay(const tp_loss_curve *c, tp_buf *out)
{
    const tp_decay *f = &c->fit;
    put_row(out, "exponential decay");
    if (f->why) {
        tp_buf_addf(out, "undefined: %s\n", f->why);
        return;
    }
    tp_buf_addf(out, "to %.5g, half of the rest every %.4g steps, R2 = %.3f%s%s\n", f->c,
                f->half_life, f->r2, f->weak ? "; " : "", f->weak ? f->weak : "");
    put_row(out, "within 5 % of the plateau");
    if (c->has_converged)
        tp_buf_addf(out, "from step %zu on (moving average)\n", c->convergence_step);
    else
        tp_buf_adds(out, "not yet\n");
    put_row(out, "noise around the curve");
    tp_buf_addf(out, "sd %.3g in the last half, %zu spike%s, largest rise %.4g\n",
                c->residual_sd_last_half, c->n_spikes, tp_plural((uint64_t)c->n_spikes),
                c->max_drawup);
}

tp_status tp_stats_text_series(const tp_stats_style *s, const tp_stats_column *x,
                               const tp_stats_column *y, tp_buf *out, tp_error *err)
{
    tp_mann_kendall_result m;
    tp_theil_sen_result t;
    tp_loss_curve curve;
    char level[24];
    const double *at = x ? x->x : NULL;
    TP_TRY(tp_trend_of(at, y->x, y->n, s->level, &m, &t, err));
    TP_TRY(tp_analyze_loss(NULL, y->x, y->n, 0.1, 10, &curve, err));
    double p = tp_mann_kendall_p(&m);
    bool moves = !m.why && p < 1 - s->level;
    tp_stats_headline(s, out, true);
    if (m.why)
        tp_buf_addf(out, "%s: a trend is undefined: %s.", y->name, m.why);
    else {
        tp_buf_addf(out, "%s %s", y->name,
                    !moves         ? "shows no trend"
                    : t.slope >= 0 ? "rises"
                                   : "falls");
        tp_buf_addf(out, " (Mann-Kendall ");
        tp_stats_put_p(out, p);
        tp_buf_addf(out, "): %.4g per %s, %s interval %.4g to %.4g, n = %zu.", t.slope,
                    x ? x->name : "step", tp_stats_level(s, level), t.corrected_lo, t.corrected_hi,
                    y->n);
    }
    tp_stats_headline(s, out, false);
    TP_TRY(put_changes(s, x, y, out, err));
    TP_TRY(tp_stats_put_table(s, y, 1, out, err));
    tp_buf_addc(out, '\n');
    if (!m.why) {
        put_row(out, "Mann-Kendall, values independent");
        tp_buf_addf(out, "S = %.6g, tau = %.3g, ", m.s, m.tau_b);
        tp_stats_put_p(out, m.p_two);
        tp_buf_addc(out, '\n');
        put_row(out, "with autocorrelation (Hamed-Rao)");
        if (m.why_corrected)
            tp_buf_addf(out, "undefined: %s\n", m.why_corrected);
        else {
            tp_buf_addf(out, "variance times %.3g, ", m.correction);
            tp_stats_put_p(out, m.corrected_p_two);
            tp_buf_addc(out, '\n');
        }
    }
    tp_line l = tp_fit_line(at, y->x, y->n, s->level);
    put_row(out, "least squares");
    if (l.why)
        tp_buf_addf(out, "undefined: %s\n", l.why);
    else if (l.why_test)
        tp_buf_addf(out, "%.4g per %s (%s)\n", l.slope, x ? x->name : "step", l.why_test);
    else {
        tp_buf_addf(out, "%.4g, interval %.4g to %.4g, R2 = %.3f, ", l.slope, l.ci.lo, l.ci.hi,
                    l.r2);
        tp_stats_put_p(out, l.p_two);
        tp_buf_addc(out, '\n');
    }
    put_decay(&curve, out);
    return TP_OK;
}

static void put_share_row(const char *what, tp_interval ci, tp_buf *out)
{
    put_row(out, what);
    tp_buf_addf(out, "%.2f to %.2f %%\n", 100 * ci.lo, 100 * ci.hi);
}

static void put_share(const tp_stats_style *s, int64_t x, int64_t n, tp_buf *out)
{
    tp_proportion_result r = tp_proportion(x, n, s->level);
    tp_buf_addf(out, "\n%lld of %lld\n", (long long)x, (long long)n);
    put_share_row("Wilson", r.wilson, out);
    put_share_row("Clopper-Pearson (guaranteed)", r.clopper_pearson, out);
    put_share_row("Jeffreys", r.jeffreys, out);
}

tp_status tp_stats_check_shares(const int64_t *x, const int64_t *n, size_t k, tp_error *err)
{
    for (size_t i = 0; i < k; i++)
        if (n[i] <= 0 || x[i] < 0 || x[i] > n[i])
            return tp_fail(err, TP_ERR_ARG, "%lld of %lld is no share; write successes/trials",
                           (long long)x[i], (long long)n[i]);
    return TP_OK;
}

tp_status tp_stats_text_shares(const tp_stats_style *s, const int64_t *x, const int64_t *n,
                               size_t k, tp_buf *out, tp_error *err)
{
    char level[24];
    TP_TRY(tp_stats_check_shares(x, n, k, err));
    tp_stats_level(s, level);
    tp_stats_headline(s, out, true);
    if (k == 1) {
        tp_interval ci = tp_wilson((double)x[0], (double)n[0], s->level);
        tp_buf_addf(out, "%.4g %%, %s interval %.2f to %.2f %%, n = %lld.",
                    100 * (double)x[0] / (double)n[0], level, 100 * ci.lo, 100 * ci.hi,
                    (long long)n[0]);
    } else {
        tp_newcombe_result r = tp_newcombe(x[1], n[1], x[0], n[0], s->level);
        tp_buf_addf(out,
                    "The second share is %.3g points %s, %s interval %.3g to %.3g, n = %lld and "
                    "%lld: %s.",
                    fabs(100 * r.diff), r.diff >= 0 ? "higher" : "lower", level,
                    100 * (r.diff >= 0 ? r.ci.lo : -r.ci.hi),
                    100 * (r.diff >= 0 ? r.ci.hi : -r.ci.lo), (long long)n[1], (long long)n[0],
                    r.ci.lo > 0 || r.ci.hi < 0 ? "a clear difference" : "no difference is shown");
    }
    tp_stats_headline(s, out, false);
    for (size_t i = 0; i < k; i++)
        put_share(s, x[i], n[i], out);
    return TP_OK;
}

tp_status tp_stats_solve_plan(const tp_stats_style *s, tp_stats_plan *p, tp_error *err)
{
    double alpha = 1 - s->level;
    const char *units = p->paired ? "pairs" : "values per group";
    if (isnan(p->effect) + isnan(p->n) + isnan(p->power) != 1)
        return tp_fail(err, TP_ERR_ARG,
                       "give two of --effect, --n and --power; the third is computed");
    if (isnan(p->n)) {
        p->n = p->paired ? tp_sample_size_paired(p->effect, alpha, p->power, p->sides)
                         : tp_sample_size_two_sample(p->effect, alpha, p->power, p->sides);
        return isnan(p->n) ? tp_fail(err, TP_ERR_ARG, "no number of values shows an effect of %g",
                                     p->effect)
                           : TP_OK;
    }
    double *unknown = isnan(p->effect) ? &p->effect : &p->power;
    if (isnan(p->effect))
        p->effect = p->paired ? tp_mde_paired(p->n, alpha, p->power, p->sides)
                              : tp_mde_two_sample(p->n, p->n, alpha, p->power, p->sides);
    else
        p->power = p->paired ? tp_power_paired(p->effect, p->n, alpha, p->sides)
                             : tp_power_two_sample(p->effect, p->n, p->n, alpha, p->sides);
    return isnan(*unknown) ? tp_fail(err, TP_ERR_ARG, "%g %s are too few for any test", p->n, units)
                           : TP_OK;
}

tp_status tp_stats_text_plan(const tp_stats_style *s, const tp_stats_plan *p, tp_buf *out,
                             tp_error *err)
{
    double alpha = 1 - s->level;
    const char *units = p->paired ? "pairs" : "values per group";
    tp_stats_plan all = *p;
    TP_TRY(tp_stats_solve_plan(s, &all, err));
    tp_stats_headline(s, out, true);
    if (isnan(p->n))
        tp_buf_addf(out, "%.0f %s are needed", ceil(all.n - 1e-9), units);
    else if (isnan(p->effect))
        tp_buf_addf(out, "The smallest effect that %g %s show is %s = %.4g (%s)", p->n, units,
                    p->paired ? "d_z" : "d", all.effect, tp_effect_word(all.effect));
    else
        tp_buf_addf(out, "%g %s show an effect of %g in %.2f %% of experiments", p->n, units,
                    p->effect, 100 * all.power);
    tp_buf_addc(out, '.');
    tp_stats_headline(s, out, false);
    tp_buf_addf(out, "%s t test, alpha %.3g, %s.", p->paired ? "Paired" : "Two-sample", alpha,
                p->sides == 1 ? "one-sided" : "two-sided");
    if (!isnan(p->power))
        tp_buf_addf(out, "  Power %.3g.", p->power);
    if (!isnan(p->effect))
        tp_buf_addf(out, "  Effect %s = %.3g (%s).", p->paired ? "d_z" : "d", p->effect,
                    tp_effect_word(p->effect));
    tp_buf_adds(out, "\nAn effect is the difference divided by the standard deviation");
    tp_buf_adds(out, p->paired ? " of the differences between pairs.\n" : " within a group.\n");
    return TP_OK;
}
