/* changepoint.c - E-divisive with permutations, after Matteson and James. */
#include "stats/changepoint.h"

#include <math.h>
#include <string.h>

#include "base/order.h"
#include "base/platform.h"
#include "stats/bootstrap.h"
#include "stats/descriptive.h"
#include "stats/order.h"
#include "stats/special.h"

/* For a growing right end kappa, `within[tau]` is the sum of |differences| inside
 * [tau, kappa).  One more value adds its distances to the values from tau on, so all
 * pairs (tau, kappa) take O(n^2) time and O(n) memory; what crosses tau is the rest.
 * With n and m values left and right of tau,
 *     Q = 2/(n+m) (cross - m left / (n-1) - n right / (m-1)),
 * where the terms of a single value are 0. */
typedef struct {
    double *within;
    double *prefix;  /* prefix[k]: inside [0, k) */
    double *left;    /* prefix[k] / (k - 1) */
    double *inverse; /* 1 / (k - 1) */
} sums;

enum { SUMS = 4 }; /* arrays of n + 1 */

/* Equal up to rounding does not replace an earlier split. */
static bool is_better(double q, double best) { return q > best + 1e-12 * fabs(best); }

static void consider(const sums *s, size_t kappa, size_t least, tp_level_split *best)
{
    double whole = s->prefix[kappa], scale = 2 / (double)kappa;
    for (size_t tau = least; tau + least <= kappa; tau++) {
        double n = (double)tau, m = (double)(kappa - tau), right = s->within[tau];
        double q = scale * (whole - s->prefix[tau] - right - m * s->left[tau] -
                            n * right * s->inverse[kappa - tau]);
        if (best->tau == 0 || is_better(q, best->q))
            *best = (tp_level_split){.tau = tau, .kappa = kappa, .q = q};
    }
}

/* `work` has room for SUMS (n + 1). */
static tp_level_split best_split(const double *y, size_t n, size_t least, bool search_kappa,
                                 double *work)
{
    sums s = {work, work + (n + 1), work + 2 * (n + 1), work + 3 * (n + 1)};
    tp_level_split best = {.q = NAN};
    s.prefix[0] = s.left[0] = s.inverse[0] = 0;
    for (size_t kappa = 1; kappa <= n; kappa++) {
        double last = y[kappa - 1], sum = 0;
        s.within[kappa - 1] = 0;
        for (size_t tau = kappa - 1; tau-- > 0;) {
            sum += fabs(last - y[tau]);
            s.within[tau] += sum;
        }
        s.inverse[kappa] = kappa > 1 ? 1 / (double)(kappa - 1) : 0;
        s.prefix[kappa] = s.within[0];
        s.left[kappa] = s.prefix[kappa] * s.inverse[kappa];
        if (kappa >= 2 * least && (search_kappa || kappa == n))
            consider(&s, kappa, least, &best);
    }
    return best;
}

tp_status tp_edivisive(const double *y, size_t n, size_t min_segment, bool search_kappa,
                       tp_level_split *ret, tp_error *err)
{
    size_t least = min_segment ? min_segment : 1;
    TP_TRY(tp_check_finite("the series", y, n, err));
    if (n / 2 < least) {
        *ret = (tp_level_split){.q = NAN, .why = "too few values for two segments"};
        return TP_OK;
    }
    TP_FREED double *work = tp_scratch(SUMS * (n + 1));
    *ret = best_split(y, n, least, search_kappa, work);
    return TP_OK;
}

typedef struct {
    const double *y;
    size_t n, least;
    double q, *work; /* with room for a permutation and SUMS (n + 1) */
} permutations;

static bool is_as_good(const permutations *p, uint64_t seed, size_t index)
{
    double *v = p->work;
    memcpy(v, p->y, p->n * sizeof *v);
    tp_splitmix stream = {tp_splitmix_at(seed, index)};
    for (size_t i = p->n - 1; i > 0; i--) {
        size_t j = (size_t)tp_splitmix_below(&stream, i + 1);
        double swap = v[i];
        v[i] = v[j];
        v[j] = swap;
    }
    return best_split(v, p->n, p->least, true, v + p->n).q >= p->q * (1 - 1e-12);
}

/* Permutations in batches, given up as soon as the p-value cannot be small any more;
 * it is then a lower bound above alpha. */
enum { BATCH = 32 };

static double p_value(const double *y, size_t n, double q, uint64_t seed,
                      const tp_changepoint_options *o)
{
    size_t hits = 0;
    double total = (double)o->n_permutations + 1;
    TP_FREED double *work = tp_scratch(n + SUMS * (n + 1));
    permutations p = {y, n, o->min_segment, q, work};
    for (size_t done = 0; done < o->n_permutations; done += BATCH) {
        for (size_t i = 0; i < TP_MIN(o->n_permutations - done, (size_t)BATCH); i++)
            hits += is_as_good(&p, seed + done, i);
        if ((double)(hits + 1) / total > o->alpha)
            break;
    }
    return (double)(hits + 1) / total;
}

typedef struct {
    size_t from, to;
} segment;

typedef struct {
    const double *y;
    size_t n;
    const tp_changepoint_options *o;
    double *work;
    segment *open; /* segments still to be searched */
    size_t n_open;
    tp_changepoint *found;
    size_t n_found;
} search;

static void search_segment(search *s, segment at)
{
    size_t n = at.to - at.from, least = s->o->min_segment;
    if (n < 2 * least)
        return;
    tp_level_split split = best_split(s->y + at.from, n, least, true, s->work);
    if (split.tau == 0 || !(split.q > 0))
        return;
    uint64_t seed = tp_splitmix_at(s->o->seed, at.from) + at.to;
    double p = p_value(s->y + at.from, n, split.q, seed, s->o);
    if (p > s->o->alpha)
        return;
    size_t middle = at.from + split.tau;
    s->found[s->n_found++] = (tp_changepoint){.index = middle, .q = split.q, .p = p};
    s->open[s->n_open++] = (segment){at.from, middle};
    s->open[s->n_open++] = (segment){middle, at.to};
}

TP_ORDER(compare_changes, tp_changepoint, TP_COMPARE(x->index, y->index))

/* Every change against its neighbours. */
static tp_status describe_changes(search *s, tp_error *err)
{
    for (size_t i = 0; i < s->n_found; i++) {
        tp_changepoint *c = &s->found[i];
        size_t from = i ? s->found[i - 1].index : 0;
        size_t to = i + 1 < s->n_found ? s->found[i + 1].index : s->n;
        const double *before = s->y + from, *after = s->y + c->index;
        size_t n_before = c->index - from, n_after = to - c->index;
        c->mean_before = tp_mean(before, n_before);
        c->mean_after = tp_mean(after, n_after);
        TP_TRY(tp_median(before, n_before, &c->median_before, err));
        TP_TRY(tp_median(after, n_after, &c->median_after, err));
    }
    return TP_OK;
}

tp_status tp_changepoints(const double *y, size_t n, const tp_changepoint_options *options,
                          tp_changepoint *ret, size_t *ret_n, tp_error *err)
{
    TP_TRY(tp_check_finite("the series", y, n, err));
    if (options->min_segment < 1 || !(options->alpha > 0 && options->alpha < 1))
        return tp_fail(err, TP_ERR_ARG, "segments of %zu values at alpha %g make no sense",
                       options->min_segment, options->alpha);
    if (n > TP_CHANGEPOINT_MAX)
        return tp_fail(err, TP_ERR_ARG,
                       "%zu values are too many to search; pass medians of at most %d blocks", n,
                       TP_CHANGEPOINT_MAX);
    TP_FREED double *work = tp_scratch(SUMS * (n + 1));
    TP_FREED segment *waiting = tp_new(n / options->min_segment + 3, sizeof *waiting);
    search s = {
        .y = y, .n = n, .o = options, .work = work, .open = waiting, .found = ret, .n_open = 1};
    s.open[0] = (segment){0, n};
    while (s.n_open > 0)
        search_segment(&s, s.open[--s.n_open]);
    qsort(ret, s.n_found, sizeof *ret, compare_changes);
    TP_TRY(describe_changes(&s, err));
    *ret_n = s.n_found;
    return TP_OK;
}

bool tp_changes_wander(const double *y, size_t n, const tp_changepoint *changes, size_t n_changes,
                       double *ret_lag1)
{
    TP_FREED double *rest = tp_scratch(n);
    double n_means = (double)n_changes + 1;
    *ret_lag1 = NAN;
    for (size_t k = 0; k <= n_changes; k++) {
        size_t from = k ? changes[k - 1].index : 0, to = k < n_changes ? changes[k].index : n;
        double mean = tp_mean(y + from, to - from);
        for (size_t i = from; i < to; i++)
            rest[i] = y[i] - mean;
    }
    if ((double)n > n_means)
        *ret_lag1 = tp_lag1(rest, n) + n_means / ((double)n - n_means);
    return n_changes && *ret_lag1 > tp_normal_isf(0.05) / sqrt((double)n);
}
