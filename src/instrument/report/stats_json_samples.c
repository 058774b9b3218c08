/* stats_json_samples.c - one sample, two, pairs and groups, as JSON. */
#include <math.h>

#include "instrument/report/stats_json.h"
#include "stats/order.h"

static void put_median_interval(tp_stats_writer *a, const char *name, const tp_median_interval *m)
{
    char key[64];
    tp_stats_writer_level_key(a, name, key);
    if (!tp_stats_writer_object_or(a, key, m->why))
        return;
    tp_stats_writer_count(a, "k_lo", m->k_lo);
    tp_stats_writer_count(a, "k_hi", m->k_hi);
    tp_stats_writer_number(a, "lo", m->lo, NULL);
    tp_stats_writer_number(a, "hi", m->hi, NULL);
    tp_stats_writer_number(a, "coverage", m->coverage, NULL);
    tp_stats_writer_object_end(a);
}

typedef struct {
    const char *key;
    double value;
    const char *why;
} row;

static void put_rows(tp_stats_writer *a, const row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        tp_stats_writer_number(a, rows[i].key, rows[i].value, rows[i].why);
}

#define PUT_ROWS(a, rows) put_rows((a), (rows), sizeof(rows) / sizeof *(rows))

tp_status tp_stats_writer_describe(tp_stats_writer *a, const char *key, const double *x, size_t n,
                                   tp_error *err)
{
    static const char *const none = "there are no values";
    tp_description d;
    TP_TRY(tp_describe(x, n, a->o.level, &d, err));
    const row rows[] = {{"sum", d.sum, none},
                        {"mean", d.mean, none},
                        {"min", d.min, none},
                        {"max", d.max, none},
                        {"range", d.range, none},
                        {"median", d.median, none},
                        {"q1", d.q1, none},
                        {"q3", d.q3, none},
                        {"iqr", d.iqr, none},
                        {"p05", d.p05, none},
                        {"p95", d.p95, none},
                        {"p99", d.p99, none},
                        {"var", d.var, d.why_spread},
                        {"sd", d.sd, d.why_spread},
                        {"sd_pop", d.sd_pop, none},
                        {"sem", d.sem, d.why_spread},
                        {"cv", d.cv, d.why_cv},
                        {"mad", d.mad, none},
                        {"skew_g1", d.skew_g1, d.why_shape},
                        {"kurt_g2", d.kurt_g2, d.why_shape},
                        {"skew_G1", d.skew_G1, d.why_G1},
                        {"kurt_G2", d.kurt_G2, d.why_G2},
                        {"trimmed_mean_10", d.trimmed_mean_10, none},
                        {"lag1", d.lag1, d.why_shape},
                        {"n_eff", d.n_eff, d.why_shape},
                        {"mad_sigma", d.mad_sigma, none},
                        {"geomean", d.geomean, d.why_positive},
                        {"harmean", d.harmean, d.why_positive},
                        {"geo_sd", d.geo_sd, d.why_geo_sd}};
    tp_stats_writer_object(a, key);
    tp_stats_writer_count(a, "n", d.n);
    PUT_ROWS(a, rows);
    tp_stats_writer_interval(a, "t_ci", d.t_ci);
    put_median_interval(a, "median_ci", &d.median_ci);
    tp_stats_writer_object_end(a);
    return TP_OK;
}

static void answer_p_values(tp_stats_writer *a, tp_p_values p)
{
    tp_stats_writer_number(a, "p_two", p.two, NULL);
    tp_stats_writer_number(a, "p_greater", p.greater, NULL);
    tp_stats_writer_number(a, "p_less", p.less, NULL);
}

static void put_t_test(tp_stats_writer *a, const char *key, const tp_t_test *t)
{
    if (!tp_stats_writer_object_or(a, key, t->why))
        return;
    tp_stats_writer_number(a, "t", t->t, NULL);
    tp_stats_writer_number(a, "df", t->df, NULL);
    tp_stats_writer_number(a, "diff", t->diff, NULL);
    tp_stats_writer_number(a, "se", t->se, NULL);
    answer_p_values(a, t->p);
    tp_stats_writer_interval(a, "ci", t->ci);
    tp_stats_writer_object_end(a);
}

static void put_z_test(tp_stats_writer *a, const char *key, const tp_z_test *z, const char *why)
{
    if (!tp_stats_writer_object_or(a, key, why))
        return;
    tp_stats_writer_number(a, "z", z->z, NULL);
    answer_p_values(a, z->p);
    tp_stats_writer_object_end(a);
}

static void put_exact(tp_stats_writer *a, tp_p_values p, const char *why)
{
    if (!tp_stats_writer_object_or(a, "exact", why))
        return;
    tp_stats_writer_number(a, "p_less", p.less, NULL);
    tp_stats_writer_number(a, "p_greater", p.greater, NULL);
    tp_stats_writer_number(a, "p_two", p.two, NULL);
    tp_stats_writer_object_end(a);
}

static void put_rank_interval(tp_stats_writer *a, const tp_rank_interval *ci)
{
    char level[64], key[80];
    snprintf(key, sizeof key, "%s_exact", tp_stats_writer_level_key(a, "hl_ci", level));
    if (!tp_stats_writer_object_or(a, key, ci->why))
        return;
    tp_stats_writer_count(a, "k", ci->k);
    tp_stats_writer_number(a, "lo", ci->lo, NULL);
    tp_stats_writer_number(a, "hi", ci->hi, NULL);
    tp_stats_writer_number(a, "coverage", ci->coverage, NULL);
    tp_stats_writer_object_end(a);
}

static tp_status put_mann_whitney(tp_stats_writer *a, const double *x, size_t nx, const double *y,
                                  size_t ny, tp_error *err)
{
    tp_mann_whitney_result m;
    TP_TRY(tp_mann_whitney(x, nx, y, ny, a->o.level, &m, err));
    tp_stats_writer_object(a, "mann_whitney");
    tp_stats_writer_number(a, "U1", m.u1, m.why);
    tp_stats_writer_number(a, "U2", m.u2, m.why);
    tp_stats_writer_bool(a, "ties", m.has_ties);
    put_z_test(a, "asym_nocc", &m.plain, m.why);
    put_z_test(a, "asym_cc", &m.corrected, m.why);
    put_exact(a, m.exact, m.why_exact);
    tp_stats_writer_number(a, "cliffs_delta", m.cliffs_delta, m.why);
    tp_stats_writer_number(a, "a12", m.a12, m.why);
    tp_stats_writer_number(a, "hodges_lehmann_shift", m.shift, m.why);
    put_rank_interval(a, &m.shift_ci);
    tp_stats_writer_interval(a, "hl_ci_approximate", m.shift_ci_approximate);
    tp_stats_writer_object_end(a);
    return TP_OK;
}

static void put_f_test(tp_stats_writer *a, const char *key, const char *statistic,
                       const tp_f_test *f)
{
    if (!tp_stats_writer_object_or(a, key, f->why))
        return;
    tp_stats_writer_number(a, statistic, f->f, NULL);
    tp_stats_writer_number(a, "df1", f->df1, NULL);
    tp_stats_writer_number(a, "df2", f->df2, NULL);
    tp_stats_writer_number(a, "p", f->p, NULL);
    tp_stats_writer_object_end(a);
}

static void put_permutation(tp_stats_writer *a, const char *key, const tp_permutation_result *p)
{
    if (!tp_stats_writer_object_or(a, key, p->why))
        return;
    tp_stats_writer_count(a, "n_perm", p->n_perm);
    tp_stats_writer_count(a, "count_two", p->count_two);
    answer_p_values(a, p->p);
    tp_stats_writer_bool(a, "is_exact", p->is_exact);
    tp_stats_writer_object_end(a);
}

static void put_ratio_means(tp_stats_writer *a, const double *x, size_t nx, const double *y,
                            size_t ny)
{
    tp_ratio_means_result r = tp_ratio_means(x, nx, y, ny, a->o.level);
    tp_stats_writer_object(a, "ratio_means");
    tp_stats_writer_number(a, "ratio", r.ratio, r.why);
    tp_stats_writer_number(a, "g", r.g, r.why ? r.why : r.ci.why);
    tp_stats_writer_number(a, "df", r.df, r.why ? r.why : r.ci.why);
    tp_stats_writer_interval(a, "fieller", r.ci);
    tp_stats_writer_object_end(a);
}

static tp_status put_ratio_geomeans(tp_stats_writer *a, const double *x, size_t nx, const double *y,
                                    size_t ny, tp_error *err)
{
    tp_ratio_geomeans_result r;
    TP_TRY(tp_ratio_geomeans(x, nx, y, ny, a->o.level, &r, err));
    if (!tp_stats_writer_object_or(a, "ratio_geomeans", r.why))
        return TP_OK;
    tp_stats_writer_number(a, "ratio", r.ratio, NULL);
    tp_stats_writer_number(a, "t", r.t, r.why_test);
    tp_stats_writer_number(a, "df", r.df, r.why_test);
    tp_stats_writer_number(a, "p_two", r.p_two, r.why_test);
    tp_stats_writer_interval(a, "ci", r.ci);
    tp_stats_writer_object_end(a);
    return TP_OK;
}

static tp_status put_medians(tp_stats_writer *a, const double *x, size_t nx, const double *y,
                             size_t ny, tp_error *err)
{
    double mx, my;
    TP_TRY(tp_median(x, nx, &mx, err));
    TP_TRY(tp_median(y, ny, &my, err));
    tp_stats_writer_number(a, "ratio_medians", my == 0 ? NAN : mx / my,
                           "the median of y is 0 or unknown");
    return TP_OK;
}

tp_status tp_stats_writer_two(tp_stats_writer *a, const double *x, size_t nx, const double *y,
                              size_t ny, tp_error *err)
{
    tp_t_test student = tp_student(x, nx, y, ny, a->o.level);
    tp_t_test welch = tp_welch(x, nx, y, ny, a->o.level);
    tp_effect e = tp_effect_two(x, nx, y, ny, a->o.level);
    tp_variance_ratio_result f = tp_variance_ratio(x, nx, y, ny);
    tp_group groups[] = {{x, nx}, {y, ny}};
    tp_permutation_result permuted;
    tp_f_test spread = tp_brown_forsythe(groups, 2);
    TP_TRY(tp_permutation_test(x, nx, y, ny, a->o.n_permutations, a->o.seed, &permuted, err));
    const row rows[] = {{"cohens_d", e.d, e.why},
                        {"hedges_J", e.j, e.why_j},
                        {"hedges_g", e.g, e.why ? e.why : e.why_j},
                        {"hedges_J_approx", e.j_approximate, e.why_j},
                        {"glass_delta_y", e.glass_delta, e.why_glass},
                        {"d_var_hedges", e.d_variance, e.why}};
    tp_stats_writer_object(a, "two_sample");
    put_t_test(a, "student", &student);
    PUT_ROWS(a, rows);
    tp_stats_writer_interval(a, "cohens_d_ci", e.d_ci);
    tp_stats_writer_interval(a, "hedges_g_ci", e.g_ci);
    put_t_test(a, "welch", &welch);
    TP_TRY(put_mann_whitney(a, x, nx, y, ny, err));
    if (f.why) {
        tp_stats_writer_null(a, "var_F", f.why);
    } else {
        tp_stats_writer_object(a, "var_F");
        tp_stats_writer_number(a, "F", f.f, NULL);
        tp_stats_writer_number(a, "p_two", f.p_two, NULL);
        tp_stats_writer_object_end(a);
    }
    put_f_test(a, "brown_forsythe", "W", &spread);
    put_ratio_means(a, x, nx, y, ny);
    TP_TRY(put_ratio_geomeans(a, x, nx, y, ny, err));
    TP_TRY(put_medians(a, x, nx, y, ny, err));
    put_permutation(a, permuted.is_exact || permuted.why ? "perm_exact_meandiff" : "perm_meandiff",
                    &permuted);
    tp_stats_writer_object_end(a);
    return TP_OK;
}

static tp_status put_wilcoxon(tp_stats_writer *a, const char *key, const double *d, size_t n,
                              tp_error *err)
{
    tp_wilcoxon_result w;
    TP_TRY(tp_wilcoxon(d, n, a->o.level, &w, err));
    tp_stats_writer_object(a, key);
    tp_stats_writer_count(a, "n", w.n);
    tp_stats_writer_count(a, "n_nonzero", w.n_nonzero);
    tp_stats_writer_number(a, "Wplus", w.w_plus, NULL);
    tp_stats_writer_number(a, "Wminus", w.w_minus, NULL);
    tp_stats_writer_bool(a, "ties", w.has_ties);
    tp_stats_writer_number(a, "rank_biserial", w.rank_biserial, w.why);
    put_z_test(a, "asym_nocc", &w.plain, w.why);
    put_z_test(a, "asym_cc", &w.corrected, w.why);
    put_exact(a, w.exact, w.why_exact);
    tp_stats_writer_number(a, "hl_pseudomedian", w.pseudomedian, w.why);
    put_rank_interval(a, &w.pseudomedian_ci);
    tp_stats_writer_interval(a, "hl_ci_approximate", w.pseudomedian_ci_approximate);
    tp_stats_writer_object_end(a);
    return TP_OK;
}

static void put_sign(tp_stats_writer *a, const double *d, size_t n)
{
    tp_sign_result s = tp_sign_test(d, n);
    tp_stats_writer_object(a, "sign");
    tp_stats_writer_count(a, "pos", s.n_positive);
    tp_stats_writer_count(a, "neg", s.n_negative);
    tp_stats_writer_count(a, "zero", s.n_zero);
    tp_stats_writer_number(a, "p_greater", s.p.greater, s.why);
    tp_stats_writer_number(a, "p_less", s.p.less, s.why);
    tp_stats_writer_number(a, "p_two", s.p.two, s.why);
    tp_stats_writer_object_end(a);
}

static tp_status put_log_ratio(tp_stats_writer *a, const double *x, const double *y, size_t n,
                               tp_error *err)
{
    tp_log_ratio_result r;
    char level[64], key[80];
    TP_TRY(tp_log_ratio(x, y, n, a->o.level, &r, err));
    if (!tp_stats_writer_object_or(a, "log_ratio", r.why))
        return TP_OK;
    tp_stats_writer_number(a, "median_log_ratio", r.median_log_ratio, NULL);
    tp_stats_writer_number(a, "ratio", r.ratio, NULL);
    tp_stats_writer_number(a, "geomean_ratio", r.geomean_ratio, NULL);
    snprintf(key, sizeof key, "%s_ratio", tp_stats_writer_level_key(a, "sign_ci", level));
    tp_stats_writer_pair(a, key, r.sign_ci);
    snprintf(key, sizeof key, "%s_ratio", tp_stats_writer_level_key(a, "t_ci", level));
    tp_stats_writer_pair(a, key, r.t_ci);
    tp_stats_writer_object_end(a);
    return TP_OK;
}

/* `d` holds n differences and is reordered. */
static tp_status put_differences(tp_stats_writer *a, double *d, size_t n, tp_error *err)
{
    tp_permutation_result flips;
    TP_TRY(put_wilcoxon(a, "wilcoxon", d, n, err));
    put_sign(a, d, n);
    TP_TRY(tp_signflip_test(d, n, a->o.n_permutations, a->o.seed, &flips, err));
    put_permutation(a, flips.is_exact || flips.why ? "signflip_exact" : "signflip", &flips);
    tp_sort(d, n);
    tp_median_interval ci = tp_median_interval_sorted(d, n, a->o.level);
    tp_stats_writer_number(a, "median_diff", tp_median_sorted(d, n), "there are no pairs");
    put_median_interval(a, "median_diff_ci", &ci);
    tp_round_decimals(d, n, 12);
    return put_wilcoxon(a, "wilcoxon_diffs_rounded_1e12", d, n, err);
}

tp_status tp_stats_writer_paired(tp_stats_writer *a, const double *x, const double *y, size_t n,
                                 tp_error *err)
{
    tp_t_test t = tp_paired_t(x, y, n, a->o.level);
    tp_effect_paired_result e = tp_effect_paired(x, y, n, a->o.level);
    TP_FREED double *d = tp_scratch(n);
    for (size_t i = 0; i < n; i++)
        d[i] = x[i] - y[i];
    double sd = tp_sd(d, n);
    tp_stats_writer_object(a, "paired");
    tp_stats_writer_count(a, "n", n);
    tp_stats_writer_number(a, "mean_diff", t.diff, t.why);
    tp_stats_writer_number(a, "sd_diff", t.why ? sd : t.se * sqrt((double)n),
                           "needs at least two pairs");
    put_t_test(a, "paired_t", &t);
    tp_stats_writer_number(a, "cohens_dz", e.dz, e.why);
    tp_stats_writer_interval(a, "cohens_dz_ci", e.dz_ci);
    tp_stats_writer_number(a, "cohens_dav", e.dav, e.why_dav);
    tp_stats_writer_number(a, "pearson_r", tp_pearson(x, y, n), "a sample is constant");
    tp_status status = put_differences(a, d, n, err);
    TP_TRY(status);
    TP_TRY(put_log_ratio(a, x, y, n, err));
    tp_stats_writer_object_end(a);
    return TP_OK;
}

static void put_anova(tp_stats_writer *a, const tp_anova_result *r)
{
    const row rows[] = {{"ss_between", r->ss_between, r->why},
                        {"ss_within", r->ss_within, r->why},
                        {"df_between", r->df_between, r->why},
                        {"df_within", r->df_within, r->why},
                        {"ms_between", r->ms_between, r->why},
                        {"ms_within", r->ms_within, r->why},
                        {"F", r->f, r->why},
                        {"p", r->p, r->why},
                        {"eta2", r->eta2, r->why_size},
                        {"omega2", r->omega2, r->why_size},
                        {"epsilon2", r->epsilon2, r->why_size},
                        {"residual_sd", r->residual_sd, r->why}};
    tp_stats_writer_object(a, "anova");
    PUT_ROWS(a, rows);
    tp_stats_writer_object_end(a);
}

static void put_kruskal(tp_stats_writer *a, const tp_kruskal_result *r)
{
    const row rows[] = {{"H", r->h, r->why},
                        {"H_uncorrected", r->h_uncorrected, r->why},
                        {"tie_correction", r->tie_correction, r->why},
                        {"df", r->df, r->why},
                        {"p", r->p, r->why},
                        {"eta2_H", r->eta2, r->why},
                        {"epsilon2", r->epsilon2, r->why}};
    tp_stats_writer_object(a, "kruskal");
    PUT_ROWS(a, rows);
    tp_stats_writer_object_end(a);
}

static void put_pairs(tp_stats_writer *a, const tp_pairwise *pairs, size_t n)
{
    tp_stats_writer_begin_array(a, "pairwise_welch");
    for (size_t i = 0; i < n; i++) {
        const tp_pairwise *p = &pairs[i];
        const row rows[] = {{"diff", p->diff, p->why},
                            {"welch_t", p->t, p->why},
                            {"df", p->df, p->why},
                            {"p", p->p, p->why},
                            {"cohens_d", p->cohens_d, "no pooled variance"},
                            {"hedges_g", p->hedges_g, "no pooled variance, or too few values"},
                            {"cliffs_delta", p->cliffs_delta, "a group is empty"},
                            {"p_holm", p->p_holm, p->why},
                            {"p_bh", p->p_bh, p->why}};
        tp_stats_writer_object(a, NULL);
        tp_stats_writer_count(a, "i", p->i);
        tp_stats_writer_count(a, "j", p->j);
        PUT_ROWS(a, rows);
        tp_stats_writer_interval(a, "ci", p->ci);
        tp_stats_writer_object_end(a);
    }
    tp_stats_writer_end_array(a);
}

tp_status tp_stats_writer_groups(tp_stats_writer *a, const tp_group *groups, size_t k,
                                 tp_error *err)
{
    enum { MAX_GROUPS = 1000 };
    tp_kruskal_result ranks;
    if (k > MAX_GROUPS)
        return tp_fail(err, TP_ERR_FORMAT, "%s: %zu groups; at most %d are compared in pairs",
                       a->name, k, MAX_GROUPS);
    tp_anova_result anova = tp_anova(groups, k);
    tp_f_test welch = tp_welch_anova(groups, k);
    TP_TRY(tp_kruskal(groups, k, &ranks, err));
    tp_f_test spread = tp_brown_forsythe(groups, k);
    put_anova(a, &anova);
    put_f_test(a, "welch_anova", "F", &welch);
    put_kruskal(a, &ranks);
    put_f_test(a, "brown_forsythe", "W", &spread);
    size_t n_pairs = k < 2 ? 0 : k * (k - 1) / 2;
    tp_pairwise *pairs =
        tp_arena_try_alloc(a->arena, n_pairs + 1, sizeof *pairs, _Alignof(tp_pairwise));
    if (!pairs)
        return tp_fail(err, TP_ERR_NOMEM, "%s: no room for %zu pairs", a->name, n_pairs);
    TP_TRY(tp_pairwise_welch(groups, k, a->o.level, pairs, err));
    put_pairs(a, pairs, n_pairs);
    return TP_OK;
}
