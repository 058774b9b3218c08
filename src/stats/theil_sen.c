/* theil_sen.c - the median of all slopes without making them all. */
#include <math.h>
#include <string.h>

#include "stats/descriptive.h"
#include "stats/order.h"
#include "stats/special.h"
#include "stats/trend.h"
#include "stats/trend_internal.h"

/* Few points: all slopes, and selection among them.  Many: the k-th smallest slope by a search
 * for it, where the slopes up to v are counted as the pairs that y - v x puts into reverse
 * order, n log n each time; exact to rounding.  What a search has counted narrows the next. */
enum { ALL_SLOPES = 2000, KNOWN = 256 };

/* So many slopes are at most the value of this key. */
typedef struct {
    uint64_t key, count;
} known_count;

typedef struct {
    const tp_point *points;
    size_t n;
    uint64_t n_slopes;
    double *slopes; /* all of them, or NULL */
    tp_point *work; /* 2 n */
    uint64_t ties;
    known_count *known; /* by key */
    size_t n_known;
} slopes;

static uint64_t count_up_to(const slopes *s, double v)
{
    for (size_t i = 0; i < s->n; i++) /* equal x stay apart in x order: never counted */
        s->work[i] = (tp_point){s->points[i].x, -(s->points[i].y - v * s->points[i].x)};
    uint64_t reversed = tp_count_inversions(s->work, s->n);
    return s->n_slopes - reversed;
}

/* -(y - v x) falls from i to j exactly when the slope exceeds v, and points of equal x
 * are in ascending y, so that they fall as well unless equal. */
static uint64_t falling_ties(const tp_point *points, size_t n)
{
    uint64_t count = 0;
    for (size_t i = 0, j; i < n; i = j) {
        uint64_t equal_y = 0;
        for (j = i; j < n && points[j].x <= points[i].x; j++)
            ;
        for (size_t a = i, b; a < j; a = b) {
            for (b = a; b < j && points[b].y <= points[a].y; b++)
                ;
            equal_y += (uint64_t)(b - a) * (b - a - 1) / 2;
        }
        count += (uint64_t)(j - i) * (j - i - 1) / 2 - equal_y;
    }
    return count;
}

static uint64_t same_x_pairs(const tp_point *points, size_t n)
{
    uint64_t count = 0;
    for (size_t i = 0, j; i < n; i = j) {
        for (j = i; j < n && points[j].x <= points[i].x; j++)
            ;
        count += (uint64_t)(j - i) * (j - i - 1) / 2;
    }
    return count;
}

/* Counted, and remembered in order while there is room. */
static uint64_t count_at(slopes *s, uint64_t key)
{
    size_t at = s->n_known;
    uint64_t count = count_up_to(s, tp_order_value(key)) + s->ties;
    while (at > 0 && s->known[at - 1].key > key)
        at--;
    if (s->n_known < KNOWN) {
        memmove(s->known + at + 1, s->known + at, (s->n_known - at) * sizeof *s->known);
        s->known[at] = (known_count){key, count};
        s->n_known++;
    }
    return count;
}

/* Two values with all slopes between them. */
static void count_extremes(slopes *s)
{
    double lo = INFINITY, hi = -INFINITY;
    for (size_t i = 1; i < s->n; i++) { /* extreme slopes are between neighbours in x */
        double dx = s->points[i].x - s->points[i - 1].x;
        double slope = (s->points[i].y - s->points[i - 1].y) / dx;
        if (dx > 0) {
            lo = fmin(lo, slope);
            hi = fmax(hi, slope);
        }
    }
    lo -= fabs(lo) + 1e-300; /* neighbours with equal x may hide a steeper one */
    hi += fabs(hi) + 1e-300;
    s->ties = falling_ties(s->points, s->n);
    while (count_at(s, tp_order_key(lo)) > 0 && isfinite(lo))
        lo -= fabs(lo) + (hi - lo);
    while (count_at(s, tp_order_key(hi)) < s->n_slopes && isfinite(hi))
        hi += fabs(hi) + (hi - lo);
}

/* Where to count next between two keys.  Counts rise almost evenly in a narrow range, so the
 * place is aimed at, a little beside it by turns so that both ends close in; every third time,
 * and when few slopes are left, halving makes sure of progress. */
static uint64_t next_key(const known_count *lo, const known_count *hi, uint64_t k, int turn)
{
    const double beside = 0.01;
    uint64_t middle = lo->key + (hi->key - lo->key) / 2, width = hi->count - lo->count;
    double from = tp_order_value(lo->key), to = tp_order_value(hi->key);
    if (turn % 3 == 2 || width < 3 || !isfinite(to - from))
        return middle;
    double share = ((double)(k - lo->count) + 0.5) / (double)width;
    share += turn % 3 ? beside : -beside;
    uint64_t key = tp_order_key(from + share * (to - from));
    return share > 0 && share < 1 && key > lo->key && key < hi->key ? key : middle;
}

static double kth_slope(slopes *s, uint64_t k) /* from 0 */
{
    if (s->slopes)
        return tp_select(s->slopes, (size_t)s->n_slopes, (size_t)k);
    if (s->n_known == 0)
        count_extremes(s);
    known_count lo = s->known[0], hi = s->known[s->n_known - 1];
    for (size_t i = 0; i < s->n_known; i++) {
        if (s->known[i].count <= k)
            lo = s->known[i];
        else if (s->known[i].key < hi.key)
            hi = s->known[i];
    }
    for (int turn = 0; hi.key - lo.key > 1; turn++) {
        uint64_t key = next_key(&lo, &hi, k, turn);
        known_count c = {key, count_at(s, key)};
        if (c.count > k)
            hi = c;
        else
            lo = c;
    }
    return tp_order_value(hi.key);
}

static void all_slopes(slopes *s)
{
    size_t at = 0;
    for (size_t i = 0; i < s->n; i++)
        for (size_t j = i + 1; j < s->n; j++)
            if (s->points[j].x > s->points[i].x)
                s->slopes[at++] =
                    (s->points[j].y - s->points[i].y) / (s->points[j].x - s->points[i].x);
}

/* Ranks of the interval's ends, as Sen (1968) and scipy.stats.theilslopes have them. */
static void interval(slopes *s, double var_s, double level, tp_theil_sen_result *r)
{
    double half = tp_normal_isf(0.5 * (1 - level)) * sqrt(var_s), total = (double)s->n_slopes;
    double lo = nearbyint(0.5 * (total - half)) - 1, hi = nearbyint(0.5 * (total + half));
    r->rank_lo = (size_t)fmax(lo, 0);
    r->rank_hi = (size_t)fmin(hi, total - 1);
    r->lo = kth_slope(s, r->rank_lo);
    r->hi = kth_slope(s, r->rank_hi);
}

static tp_status intercepts(const slopes *s, tp_theil_sen_result *r, tp_error *err)
{
    double *v;
    TP_TRY(tp_scratch(s->n, &v, err));
    for (size_t i = 0; i < s->n; i++)
        v[i] = s->points[i].x;
    double median_x = tp_median_sorted(v, s->n);
    for (size_t i = 0; i < s->n; i++)
        v[i] = s->points[i].y;
    tp_sort(v, s->n);
    long double median_y = tp_median_sorted(v, s->n), slope = r->slope;
    r->intercept_separate = (double)(median_y - slope * median_x);
    for (size_t i = 0; i < s->n; i++)
        v[i] = (double)(s->points[i].y - slope * s->points[i].x);
    tp_sort(v, s->n);
    r->intercept_joint = tp_median_sorted(v, s->n);
    free(v);
    return TP_OK;
}

static tp_status solve(slopes *s, double var_s, double level, tp_theil_sen_result *r, tp_error *err)
{
    if (s->n <= ALL_SLOPES) {
        TP_TRY(tp_scratch((size_t)s->n_slopes, &s->slopes, err));
        all_slopes(s);
    }
    uint64_t half = s->n_slopes / 2;
    r->slope = kth_slope(s, half);
    if (s->n_slopes % 2 == 0)
        r->slope = 0.5 * r->slope + 0.5 * kth_slope(s, half - 1);
    if (var_s > 0)
        interval(s, var_s, level, r);
    else
        r->why_ci = "all values are equal";
    return intercepts(s, r, err);
}

tp_status tp_theil_sen(const double *x, const double *y, size_t n, double level,
                       tp_theil_sen_result *ret, tp_error *err)
{
    tp_theil_sen_result r = {
        .slope = NAN, .intercept_separate = NAN, .intercept_joint = NAN, .lo = NAN, .hi = NAN};
    tp_point *points;
    if (n > UINT32_MAX)
        return tp_fail(err, TP_ERR_ARG, "a series of %zu values is too long", n);
    if (x)
        TP_TRY(tp_check_finite("x", x, n, err));
    TP_TRY(tp_check_finite("y", y, n, err));
    TP_TRY(tp_points_sorted(x, y, n, &points, err));
    slopes s = {.points = points, .n = n};
    s.n_slopes = (n ? (uint64_t)n * (n - 1) / 2 : 0) - same_x_pairs(points, n);
    r.n_pairs = (size_t)s.n_slopes;
    tp_status status = TP_OK;
    if (s.n_slopes == 0) {
        r.why = r.why_ci = n < 2 ? "needs at least two points" : "every x is the same";
    } else if (!(s.work = calloc(2 * n, sizeof *s.work)) ||
               !(s.known = calloc(KNOWN, sizeof *s.known))) {
        status = tp_fail(err, TP_ERR_NOMEM, "no memory for a series of %zu values", n);
    } else {
        double var_s = tp_kendall_variance(points, n, s.work);
        status = solve(&s, var_s, level, &r, err);
    }
    free(s.slopes);
    free(s.work);
    free(s.known);
    free(points);
    if (status == TP_OK)
        *ret = r;
    return status;
}
