/* stats_json_series.c - trends, change points, losses and resampling, as JSON. */
#include <math.h>

#include "instrument/report/stats_json.h"
#include "stats/moments.h"

static void put_theil_sen(tp_stats_writer *a, const tp_theil_sen_result *t)
{
    char key[64];
    tp_stats_writer_object(a, "theil_sen");
    tp_stats_writer_number(a, "slope", t->slope, t->why);
    tp_stats_writer_number(a, "intercept_separate", t->intercept_separate, t->why);
    tp_stats_writer_number(a, "intercept_joint", t->intercept_joint, t->why);
    tp_stats_writer_count(a, "N", t->n_pairs);
    if (t->why_ci) {
        tp_stats_writer_null(a, "rank_lo0", t->why_ci);
        tp_stats_writer_null(a, "rank_hi0", t->why_ci);
    } else {
        tp_stats_writer_count(a, "rank_lo0", t->rank_lo);
        tp_stats_writer_count(a, "rank_hi0", t->rank_hi);
    }
    tp_stats_writer_number(a, tp_stats_writer_level_key(a, "lo", key), t->lo, t->why_ci);
    tp_stats_writer_number(a, tp_stats_writer_level_key(a, "hi", key), t->hi, t->why_ci);
    tp_stats_writer_object_end(a);
}

static void put_line(tp_stats_writer *a, const tp_line *l)
{
    tp_stats_writer_object(a, "ols");
    tp_stats_writer_number(a, "slope", l->slope, l->why);
    tp_stats_writer_number(a, "intercept", l->intercept, l->why);
    tp_stats_writer_number(a, "se_slope", l->se_slope, l->why_test);
    tp_stats_writer_number(a, "t", l->t, l->why_test);
    tp_stats_writer_number(a, "df", l->df, l->why_test);
    tp_stats_writer_number(a, "p_two", l->p_two, l->why_test);
    tp_stats_writer_interval(a, "ci", l->ci);
    tp_stats_writer_number(a, "r2", l->r2, l->why_test ? l->why_test : "all values are equal");
    tp_stats_writer_number(a, "resid_sd", l->residual_sd, l->why_test);
    tp_stats_writer_object_end(a);
}

static void put_trend(tp_stats_writer *a, const tp_mann_kendall_result *m,
                      const tp_theil_sen_result *t, const tp_line *l)
{
    tp_stats_writer_count(a, "n", m->n);
    tp_stats_writer_number(a, "S", m->s, NULL);
    tp_stats_writer_number(a, "varS", m->var_s, m->why);
    tp_stats_writer_number(a, "z_cc", m->z, m->why);
    tp_stats_writer_number(a, "p_two", m->p_two, m->why);
    tp_stats_writer_number(a, "p_increasing", m->p_increasing, m->why);
    tp_stats_writer_number(a, "tau_a", m->tau_a, m->why);
    tp_stats_writer_number(a, "tau_b", m->tau_b, m->why_tau_b);
    tp_stats_writer_number(a, "p_verdict", tp_mann_kendall_p(m), m->why);
    put_theil_sen(a, t);
    put_line(a, l);
    tp_stats_writer_object(a, "hamed_rao");
    tp_stats_writer_number(a, "correction", m->correction, m->why_corrected);
    tp_stats_writer_number(a, "z", m->corrected_z, m->why_corrected);
    tp_stats_writer_number(a, "p_two", m->corrected_p_two, m->why_corrected);
    tp_stats_writer_number(a, "p_increasing", m->corrected_p_increasing, m->why_corrected);
    tp_stats_writer_interval(a, "slope_ci",
                             (tp_interval){.lo = t->corrected_lo,
                                           .hi = t->corrected_hi,
                                           .why = t->why_ci ? t->why_ci : m->why_corrected});
    tp_stats_writer_object_end(a);
}

static void put_split(tp_stats_writer *a, const char *key, const tp_level_split *s, const double *y,
                      size_t n, bool with_kappa)
{
    if (!tp_stats_writer_object_or(a, key, s->why))
        return;
    tp_stats_writer_count(a, "tau", s->tau);
    if (with_kappa)
        tp_stats_writer_count(a, "kappa", s->kappa);
    tp_stats_writer_number(a, "qhat", s->q, NULL);
    if (!with_kappa) {
        tp_t_test student = tp_student(y, s->tau, y + s->tau, n - s->tau, 0.95);
        tp_t_test welch = tp_welch(y, s->tau, y + s->tau, n - s->tau, 0.95);
        tp_stats_writer_number(a, "student_p_at_tau", student.p.two, student.why);
        tp_stats_writer_number(a, "welch_p_at_tau", welch.p.two, welch.why);
    }
    tp_stats_writer_object_end(a);
}

static void put_loss(tp_stats_writer *a, const tp_loss_curve *c)
{
    const tp_decay *f = &c->fit;
    if (f->why) {
        tp_stats_writer_null(a, "fit", f->why);
    } else {
        tp_stats_writer_object(a, "fit");
        tp_stats_writer_number(a, "k", f->k, NULL);
        tp_stats_writer_number(a, "c", f->c, NULL);
        tp_stats_writer_number(a, "A", f->a, NULL);
        tp_stats_writer_number(a, "sse", f->sse, NULL);
        tp_stats_writer_number(a, "rmse", f->rmse, NULL);
        tp_stats_writer_number(a, "half_life", f->half_life, NULL);
        tp_stats_writer_number(a, "r2", f->r2, NULL);
        tp_stats_writer_object_end(a);
    }
    tp_stats_writer_number(a, "ewma_alpha01_last", c->ewma, "there are no values");
    tp_stats_writer_number(a, "ewma_bias_corrected_last", c->ewma_bias_corrected,
                           "there are no values");
    tp_stats_writer_number(a, "threshold_5pct_remaining", c->threshold, c->why);
    if (c->has_converged)
        tp_stats_writer_count(a, "convergence_step_ewma", c->convergence_step);
    else
        tp_stats_writer_null(a, "convergence_step_ewma",
                             c->why ? c->why : "the average does not stay below the threshold");
    tp_stats_writer_number(a, "resid_sd_last_half", c->residual_sd_last_half, c->why);
    tp_stats_writer_number(a, "resid_mad_sigma", c->residual_mad_sigma, c->why);
    tp_stats_writer_number(a, "stability_score", c->stability_score, c->why);
    tp_stats_writer_number(a, "max_drawup", c->max_drawup, "there are no values");
    tp_stats_writer_bool(a, "is_plateau", c->is_plateau);
}

static tp_status put_trend_of(tp_stats_writer *a, const char *key, const double *x, const double *y,
                              size_t n, tp_error *err)
{
    tp_mann_kendall_result m;
    tp_theil_sen_result t;
    TP_TRY(tp_trend_of(x, y, n, a->o.level, &m, &t, err));
    tp_line l = tp_fit_line(x, y, n, a->o.level);
    if (!key)
        put_trend(a, &m, &t, &l);
    tp_stats_writer_object(a, key ? key : "trend");
    put_trend(a, &m, &t, &l);
    tp_stats_writer_object_end(a);
    return TP_OK;
}

tp_status tp_stats_writer_series(tp_stats_writer *a, const double *x, const double *y, size_t n,
                                 tp_error *err)
{
    tp_level_split fixed, free_end;
    tp_loss_curve curve;
    TP_TRY(put_trend_of(a, NULL, x, y, n, err)); /* in the answer itself and as "trend" */
    if (n <= TP_CHANGEPOINT_MAX) {
        TP_TRY(tp_edivisive(y, n, 1, false, &fixed, err));
        TP_TRY(tp_edivisive(y, n, 1, true, &free_end, err));
    } else {
        fixed = free_end = (tp_level_split){.q = NAN, .why = "the series is too long to search"};
    }
    put_split(a, "edivisive_kappa_T", &fixed, y, n, false);
    put_split(a, "edivisive_tau_kappa", &free_end, y, n, true);
    TP_TRY(tp_analyze_loss(NULL, y, n, 0.1, 10, &curve, err));
    put_loss(a, &curve);
    return put_trend_of(a, "last10", x ? x + n - curve.window : NULL, y + n - curve.window,
                        curve.window, err);
}

static void answer_bootstrap(tp_stats_writer *a, const char *key, const tp_bootstrap_result *r)
{
    static const char *const all_same = "every resample gives the same";
    const char *why = r->bca_fallback ? r->bca_fallback : all_same;
    tp_stats_writer_object(a, key);
    tp_stats_writer_count(a, "B", r->n_resamples);
    tp_stats_writer_number(a, "theta_hat", r->theta, NULL);
    tp_stats_writer_count(a, "count_less", r->n_less);
    tp_stats_writer_count(a, "count_equal", r->n_equal);
    tp_stats_writer_number(a, "min_gap", r->min_gap, all_same);
    tp_stats_writer_number(a, "z0", r->z0, why);
    tp_stats_writer_number(a, "a", r->a, why);
    tp_stats_writer_number(a, "boot_mean", r->mean, NULL);
    tp_stats_writer_number(a, "boot_se", r->se, NULL);
    tp_stats_writer_interval(a, "percentile", r->percentile);
    tp_stats_writer_interval(a, "basic", r->basic);
    tp_stats_writer_number(a, "alpha1", r->alpha1, why);
    tp_stats_writer_number(a, "alpha2", r->alpha2, why);
    if (r->bca_fallback)
        tp_stats_writer_interval(a, "bca", tp_interval_undefined(r->bca_fallback));
    else
        tp_stats_writer_interval(a, "bca", r->bca);
    tp_stats_writer_object_end(a);
}

static tp_status resample_pairs(tp_stats_writer *a, const double *x, const double *y, size_t n,
                                const tp_bootstrap_options *o, tp_error *err)
{
    tp_bootstrap_result mean, median;
    double *d = tp_arena_try_alloc(a->arena, n, sizeof *d, _Alignof(double));
    if (!d)
        return tp_fail(err, TP_ERR_NOMEM, "%s: no room for %zu pairs", a->name, n);
    for (size_t i = 0; i < n; i++) {
        if (!(x[i] > 0 && y[i] > 0)) {
            tp_stats_writer_null(a, "mean_log_ratio", "not every value is positive");
            tp_stats_writer_null(a, "median_log_ratio", "not every value is positive");
            return TP_OK;
        }
        d[i] = (double)tp_log_quotient(x[i], y[i]);
    }
    TP_TRY(tp_bootstrap(d, n, tp_statistic_mean, NULL, o, &mean, err));
    TP_TRY(tp_bootstrap(d, n, tp_statistic_median, NULL, o, &median, err));
    answer_bootstrap(a, "mean_log_ratio", &mean);
    answer_bootstrap(a, "median_log_ratio", &median);
    return TP_OK;
}

tp_status tp_stats_writer_resampled(tp_stats_writer *a, const double *x, size_t nx, const double *y,
                                    size_t ny, bool paired, tp_error *err)
{
    static const tp_statistic statistics[] = {tp_statistic_mean, tp_statistic_median};
    static const char *const one[] = {"mean", "median"};
    static const char *const two[] = {"ratio_of_means", "ratio_of_medians"};
    tp_bootstrap_options o = {
        .n_resamples = a->o.n_resamples, .seed = a->o.seed, .level = a->o.level};
    tp_bootstrap_result r;
    if (paired)
        TP_TRY(resample_pairs(a, x, y, nx, &o, err));
    for (int i = 0; i < 2; i++) {
        if (ny)
            TP_TRY(
                tp_bootstrap_two(x, nx, y, ny, statistics[i], NULL, TP_COMBINE_RATIO, &o, &r, err));
        else
            TP_TRY(tp_bootstrap(x, nx, statistics[i], NULL, &o, &r, err));
        answer_bootstrap(a, ny ? two[i] : one[i], &r);
    }
    return TP_OK;
}
