#include <math.h>

#include "stats/descriptive.h"
#include "stats/order.h"
#include "stats/special.h"
#include "stats/trend.h"
#include "stats/trend_internal.h"

/* Few points: all slopes, and selection among them.  Many: the k-th smallest slope by
 * bisection, where the slopes up to v are counted as the pairs that y - v x puts into
 * reverse order, n log n each time; exact to rounding. */
enum { ALL_SLOPES = 2000 };

typedef struct {
    const tp_point *points;
    size_t n;
    uint64_t n_slopes;
    double *slopes; /* all of them, or NULL */
    tp_point *work; /* 2 n */
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

static double kth_slope(const slopes *s, uint64_t k) /* from 0 */
{
    if (s->slopes)
        return tp_select(s->slopes, (size_t)s->n_slopes, (size_t)k);
    uint64_t ties = falling_ties(s->points, s->n);
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
    while (ties && count_up_to(s, lo) + ties > k && isfinite(lo))
        lo -= fabs(lo) + (hi - lo);
    while (ties && count_up_to(s, hi) + ties <= k && isfinite(hi))
        hi += fabs(hi) + (hi - lo);
    uint64_t below = tp_order_key(lo), at = tp_order_key(hi);
    while (below < at) {
        uint64_t middle = below + (at - below) / 2;
        if (count_up_to(s, tp_order_value(middle)) + ties > k)
            at = middle;
        else
            below = middle + 1;
    }
    return tp_order_value(at);
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
static void interval(const slopes *s, double var_s, double level, tp_theil_sen_result *r)
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
    } else if (!(s.work = calloc(2 * n, sizeof *s.work))) {
        status = tp_fail(err, TP_ERR_NOMEM, "no memory for a series of %zu values", n);
    } else {
        double var_s = tp_kendall_variance(points, n, s.work);
        status = solve(&s, var_s, level, &r, err);
    }
    free(s.slopes);
    free(s.work);
    free(points);
    if (status == TP_OK)
        *ret = r;
    return status;
}
