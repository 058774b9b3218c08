/* change.c - the evidence of two series of measurements, and the word for it. */
#include "instrument/analyze/change.h"

#include <math.h>

#include "base/platform.h"
#include "base/vec.h"
#include "stats/stats.h"

static const double LEVEL = 0.95, ALPHA = 0.05;
enum { SEED = 1 };

size_t tp_change_resamples(size_t n_before, size_t n_after)
{
    const size_t most = 9999, least = 999, values = 20000000, n = n_before + n_after;
    return TP_MIN(most, TP_MAX(least, values / TP_MAX(n, 1)));
}

static tp_status weigh_pairs(const double *before, const double *after, size_t n, tp_t_test *t,
                             tp_permutation_result *perm, tp_error *err)
{
    TP_FREED double *d = tp_vec_new(n, sizeof *d);
    for (size_t i = 0; i < n; i++)
        d[i] = after[i] - before[i];
    *t = tp_paired_t(after, before, n, LEVEL);
    return tp_signflip_test(d, n, tp_change_resamples(n, n), SEED, perm, err);
}

tp_status tp_change_weigh(const double *before, size_t n_before, const double *after,
                          size_t n_after, bool is_paired, tp_change_evidence *ret, tp_error *err)
{
    tp_permutation_result perm;
    tp_t_test t;
    *ret = TP_CHANGE_NO_EVIDENCE;
    if (n_before < TP_CHANGE_LEAST || n_after < TP_CHANGE_LEAST)
        return TP_OK;
    if (is_paired) {
        TP_TRY(weigh_pairs(before, after, n_before, &t, &perm, err));
    } else {
        t = tp_welch(after, n_after, before, n_before, LEVEL);
        TP_TRY(tp_permutation_test(after, n_after, before, n_before,
                                   tp_change_resamples(n_before, n_after), SEED, &perm, err));
    }
    *ret = (tp_change_evidence){t.ci.lo, t.ci.hi, t.p.two, perm.p.two};
    return TP_OK;
}

tp_change tp_change_judge(const tp_change_evidence *e, double margin)
{
    bool is_shown = e->p < ALPHA && e->p_permutation < ALPHA;
    if (is_shown && e->hi < 0)
        return TP_CHANGE_BETTER;
    if (is_shown && e->lo > 0)
        return TP_CHANGE_WORSE;
    return e->lo >= -margin && e->hi <= margin ? TP_CHANGE_SAME : TP_CHANGE_NOT_SHOWN;
}
