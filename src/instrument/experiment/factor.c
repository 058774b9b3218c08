/* factor.c - signed ranks of logarithms of ratios, and the word for them. */
#include "instrument/experiment/factor.h"
#include "base/strings.h"

#include <math.h>

#include "base/vec.h"
#include "stats/stats.h"

static const double LEVEL = 0.95, ALPHA = 0.05;

static tp_factor nothing(void)
{
    return (tp_factor){.ratio = NAN, .lo = NAN, .hi = NAN, .p = NAN, .p_adjusted = NAN};
}

void tp_factor_unknown(tp_factor *ret, const char *fmt, ...)
{
    *ret = nothing();
    TP_FORMAT(ret->why, fmt);
}

static bool is_constant(const double *d, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (d[i] < d[0] || d[i] > d[0])
            return false;
    return n > 0;
}

static tp_status weigh(const double *d, size_t n, tp_factor *e, tp_error *err)
{
    tp_wilcoxon_result w;
    TP_TRY(tp_wilcoxon(d, n, LEVEL, &w, err));
    e->ratio = exp(w.pseudomedian);
    if (n < TP_FACTOR_LEAST) {
        snprintf(e->why, sizeof e->why, "%zu round%s; an interval needs %d", n, n == 1 ? "" : "s",
                 TP_FACTOR_LEAST);
        return TP_OK;
    }
    bool is_free_of_ties = w.has_exact && !w.pseudomedian_ci.why;
    e->lo = exp(is_free_of_ties ? w.pseudomedian_ci.lo : w.pseudomedian_ci_approximate.lo);
    e->hi = exp(is_free_of_ties ? w.pseudomedian_ci.hi : w.pseudomedian_ci_approximate.hi);
    double by_ranks = w.n_nonzero ? w.p.two : 1, by_t = tp_one_sample_t(d, n, 0, LEVEL).p.two;
    e->p = fmin(1, 2 * fmin(by_ranks, by_t)); /* fmin leaves a NaN out */
    return TP_OK;
}

tp_status tp_factor_weigh(const double *with, const double *without, size_t n, bool is_exact,
                          tp_factor *ret, tp_error *err)
{
    tp_factor e = nothing();
    TP_FREED double *d = tp_vec_new(n + 1, sizeof *d);
    for (size_t i = 0; i < n; i++) {
        double ratio = with[i] / without[i];
        if (with[i] > 0 && without[i] > 0 && isfinite(ratio) && ratio > 0)
            d[e.n++] = log(ratio);
    }
    if (e.n == 0)
        tp_factor_unknown(&e, "no round has both");
    else if (is_exact && is_constant(d, e.n)) {
        e.is_exact = true;
        e.ratio = e.lo = e.hi = exp(d[0]);
    } else
        TP_TRY(weigh(d, e.n, &e, err));
    *ret = e;
    return TP_OK;
}

/* ---- the words ---- */

static void judge(tp_factor *e, bool lower_is_better, double margin)
{
    bool is_apart = e->lo > 1 || e->hi < 1;
    e->verdict = TP_CHANGE_NOT_SHOWN;
    if (isnan(e->lo) || isnan(e->hi))
        return;
    if (e->lo >= 1 / (1 + margin) && e->hi <= 1 + margin)
        e->verdict = TP_CHANGE_SAME;
    else if (is_apart && (e->is_exact || e->p_adjusted < ALPHA))
        e->verdict = (e->hi < 1) == lower_is_better ? TP_CHANGE_BETTER : TP_CHANGE_WORSE;
    else if (is_apart)
        snprintf(e->why, sizeof e->why,
                 "p %.2g after correction for all levers; %zu round%s, more would tell",
                 e->p_adjusted, e->n, tp_plural((uint64_t)e->n));
}

tp_status tp_factors_judge(tp_factor *const *effects, size_t n, bool lower_is_better, double margin,
                           tp_error *err)
{
    TP_FREED double *p = tp_vec_new(n + 1, sizeof *p);
    for (size_t i = 0; i < n; i++)
        p[i] = effects[i]->p;
    TP_TRY(n ? tp_adjust(TP_ADJUST_HOLM, p, n, p, err) : TP_OK);
    for (size_t i = 0; i < n; i++) {
        effects[i]->p_adjusted = p[i];
        judge(effects[i], lower_is_better, margin);
    }
    return TP_OK;
}
