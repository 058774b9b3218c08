/* theil_sen.c - the median of all slopes without making them all. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "stats/descriptive.h"
#include "stats/order.h"
#include "stats/special.h"
#include "stats/trend.h"
#include "stats/trend_internal.h"

/* Few points: all slopes, and selection among them.  Many: the k-th smallest slope by a search
 * for two values that have few slopes and the wanted one between them, and selection among
 * those (Matousek 1991; Dillencourt, Mount and Netanyahu 1992).  The slopes up to v are counted
 * as the pairs that y - v x puts into reverse order, n log n each time; slopes of pairs drawn
 * by chance say where to count, so that a few counts do.  What a search has counted narrows the
 * next. */
enum { ALL_SLOPES = 2000, KNOWN = 256, MOST_DRAWN = 1 << 17 };

/* So many slopes are at most the value of this key. */
typedef struct {
    uint64_t key, count;
} known_count;

/* A point of the order that a line gives them. */
typedef struct {
    double value;
    uint32_t index;
} placed;

typedef struct {
    const tp_point *points;
    size_t n;
    uint64_t n_slopes;
    double largest_x, largest_y, width; /* of |x|, of |y|, and of all x */
    double *work;                       /* 2 n numbers, or as many as 2 n placed take */
    uint64_t ties;
    known_count *known; /* by key */
    size_t n_known;
    double *slopes; /* `n_listed` of them, the first one the `listed_from`-th smallest of all */
    uint64_t listed_from;
    size_t n_listed;
    double *drawn; /* slopes of pairs drawn by chance, in order */
    size_t n_drawn, n_counted;
} slopes;

/* Falls from point to point exactly where a slope exceeds v. */
static double below_line(const slopes *s, size_t i, double v)
{
    return -(s->points[i].y - v * s->points[i].x);
}

static uint64_t count_up_to(slopes *s, double v)
{
    for (size_t i = 0; i < s->n; i++)
        s->work[i] = below_line(s, i, v);
    s->n_counted++;
    return s->n_slopes - tp_count_inversions(s->work, s->n) + s->ties;
}

/* Points of equal x are in ascending y, so that they fall as well unless equal. */
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

static double slope_between(const tp_point *a, const tp_point *b)
{
    return (b->y - a->y) / (b->x - a->x);
}

static void remember(slopes *s, known_count c)
{
    size_t at = s->n_known;
    while (at > 0 && s->known[at - 1].key > c.key)
        at--;
    if (s->n_known < KNOWN) {
        memmove(s->known + at + 1, s->known + at, (s->n_known - at) * sizeof *s->known);
        s->known[at] = c;
        s->n_known++;
    }
}

static known_count count_at(slopes *s, uint64_t key)
{
    known_count c = {key, count_up_to(s, tp_order_value(key))};
    remember(s, c);
    return c;
}

/* The steepest slopes are between neighbours in x, of which the highest and the lowest count. */
static void know_extremes(slopes *s)
{
    const uint64_t rounding = 8;
    const tp_point *p = s->points;
    double lo = INFINITY, hi = -INFINITY;
    for (size_t before = 0, from = 0, to; from < s->n; before = from, from = to) {
        for (to = from; to < s->n && p[to].x <= p[from].x; to++)
            ;
        if (from > 0) {
            lo = fmin(lo, slope_between(&p[from - 1], &p[from]));
            hi = fmax(hi, slope_between(&p[before], &p[to - 1]));
        }
    }
    remember(s, (known_count){tp_order_key(lo) - rounding, 0});
    remember(s, (known_count){tp_order_key(hi) + rounding, s->n_slopes});
}

static void draw(slopes *s, size_t n_pairs)
{
    tp_rng rng = tp_rng_make(1, s->n);
    for (size_t i = 0; i < n_pairs; i++) {
        const tp_point *a = &s->points[tp_rng_below(&rng, s->n)];
        const tp_point *b = &s->points[tp_rng_below(&rng, s->n)];
        if (a->x < b->x || a->x > b->x)
            s->drawn[s->n_drawn++] = slope_between(a, b);
    }
    tp_sort(s->drawn, s->n_drawn);
}

/* The narrowest known pair around the k-th slope. */
static void surround(const slopes *s, uint64_t k, known_count *lo, known_count *hi)
{
    *lo = s->known[0];
    *hi = s->known[s->n_known - 1];
    for (size_t i = 0; i < s->n_known; i++) {
        if (s->known[i].count <= k)
            *lo = s->known[i];
        else if (s->known[i].key < hi->key)
            *hi = s->known[i];
    }
}

/* Where very many pairs have one slope, the counts rise a little beside it as well: no line through
 * these points can be told from one that differs by less. */
static double rounding_at(const slopes *s, double slope)
{
    return 4 * DBL_EPSILON * (s->largest_y + fabs(slope) * s->largest_x) / s->width;
}

/* Counts a little below and above where the drawn slopes have the k-th of all. */
static void count_around(slopes *s, uint64_t k)
{
    const double aside = 4 * 0.5 * sqrt((double)s->n_drawn); /* four standard deviations */
    double at = (double)k / (double)s->n_slopes * (double)s->n_drawn;
    if (at - aside < 0 || at + aside >= (double)s->n_drawn)
        return;
    double below = s->drawn[(size_t)(at - aside)], above = s->drawn[(size_t)(at + aside)];
    count_at(s, tp_order_key(below - 0.4 * rounding_at(s, below)) - 1);
    count_at(s, tp_order_key(above + 0.4 * rounding_at(s, above)));
}

/* Where to count next between two keys.  Counts rise almost evenly in a narrow range, so the
 * place is aimed at, a little beside it by turns so that both ends close in; where that does
 * not help, halving makes sure of progress. */
static uint64_t next_key(const known_count *lo, const known_count *hi, uint64_t k, int turn)
{
    uint64_t middle = lo->key + (hi->key - lo->key) / 2, width = hi->count - lo->count;
    double from = tp_order_value(lo->key), to = tp_order_value(hi->key);
    if (turn % 3 == 2 || width < 3 || !isfinite(to - from))
        return middle;
    double share = ((double)(k - lo->count) + 0.5) / (double)width;
    double beside = 4 / sqrt((double)width);
    share += turn % 3 ? beside : -beside;
    uint64_t key = tp_order_key(from + share * (to - from));
    return share > 0 && share < 1 && key > lo->key && key < hi->key ? key : middle;
}

static bool is_before(const placed *a, const placed *b)
{
    return a->value < b->value || (a->value <= b->value && a->index < b->index);
}

/* Sorts; with `s`, the slopes of the pairs that change their order go to s->slopes, while there
 * is room for them. */
static void sort_placed(placed *v, size_t n, slopes *s, size_t room)
{
    placed *from = v, *to = v + n;
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t lo = 0; lo < n; lo += 2 * width) {
            size_t middle = lo + width < n ? lo + width : n;
            size_t hi = lo + 2 * width < n ? lo + 2 * width : n;
            size_t i = lo, j = middle, k = lo;
            while (i < middle && j < hi) {
                if (!is_before(&from[j], &from[i])) {
                    to[k++] = from[i++];
                    continue;
                }
                for (size_t other = i; s && other < middle && s->n_listed < room; other++)
                    s->slopes[s->n_listed++] =
                        slope_between(&s->points[from[j].index], &s->points[from[other].index]);
                to[k++] = from[j++];
            }
            memcpy(to + k, from + i, (middle - i) * sizeof *to);
            memcpy(to + k + (middle - i), from + j, (hi - j) * sizeof *to);
        }
        placed *swap = from;
        from = to;
        to = swap;
    }
    if (from != v)
        memcpy(v, from, n * sizeof *v);
}

/* The slopes between two values: the pairs whose order by the one line is not that by the
 * other.  False: rounding has them otherwise than they were counted. */
static bool list_between(slopes *s, const known_count *lo, const known_count *hi)
{
    double from = tp_order_value(lo->key), to = tp_order_value(hi->key);
    size_t n = (size_t)(hi->count - lo->count);
    placed *v = (placed *)(void *)s->work;
    if (!isfinite(from) || !isfinite(to))
        return false;
    s->n_listed = 0;
    s->listed_from = lo->count;
    for (size_t i = 0; i < s->n; i++)
        v[i] = (placed){below_line(s, i, from), (uint32_t)i};
    sort_placed(v, s->n, NULL, 0);
    for (size_t i = 0; i < s->n; i++)
        v[i].value = below_line(s, v[i].index, to);
    sort_placed(v, s->n, s, n + 1);
    if (s->n_listed == n)
        return true;
    s->n_listed = 0;
    return false;
}

/* Counts until no more than `few` slopes are between the two, or rounding is. */
static void close_in(slopes *s, uint64_t k, uint64_t few, known_count *lo, known_count *hi)
{
    for (int turn = 0; hi->key - lo->key > 1 && hi->count - lo->count > few; turn++) {
        double from = tp_order_value(lo->key), to = tp_order_value(hi->key);
        if (to - from <= rounding_at(s, to))
            break;
        known_count c = count_at(s, next_key(lo, hi, k, turn));
        *(c.count > k ? hi : lo) = c;
    }
}

/* The middle one of the drawn slopes that rounding cannot tell from this one, if there are any. */
static double drawn_like(const slopes *s, double value)
{
    const double away = rounding_at(s, value);
    size_t from = 0, to;
    while (from < s->n_drawn && s->drawn[from] < value - away)
        from++;
    for (to = from; to < s->n_drawn && s->drawn[to] <= value + away; to++)
        ;
    return from < to ? s->drawn[from + (to - from) / 2] : value;
}

static double kth_slope(slopes *s, uint64_t k) /* from 0 */
{
    known_count lo, hi;
    if (k >= s->listed_from && k - s->listed_from < s->n_listed)
        return tp_select(s->slopes, s->n_listed, (size_t)(k - s->listed_from));
    surround(s, k, &lo, &hi);
    if (hi.count - lo.count > s->n_slopes / 16) {
        count_around(s, k);
        surround(s, k, &lo, &hi);
    }
    close_in(s, k, 2 * s->n, &lo, &hi);
    if (hi.count - lo.count <= 2 * s->n && hi.key - lo.key > 1 && list_between(s, &lo, &hi))
        return tp_select(s->slopes, s->n_listed, (size_t)(k - lo.count));
    close_in(s, k, 0, &lo, &hi);
    return drawn_like(s, tp_order_value(hi.key));
}

static void all_slopes(slopes *s)
{
    for (size_t i = 0; i < s->n; i++)
        for (size_t j = i + 1; j < s->n; j++)
            if (s->points[j].x > s->points[i].x)
                s->slopes[s->n_listed++] = slope_between(&s->points[i], &s->points[j]);
}

/* Ranks of the interval's ends, as Sen (1968) and scipy.stats.theilslopes have them. */
static void interval_ranks(const slopes *s, double var_s, double level, size_t *lo, size_t *hi)
{
    double half = tp_normal_isf(0.5 * (1 - level)) * sqrt(var_s), total = (double)s->n_slopes;
    *lo = (size_t)fmax(nearbyint(0.5 * (total - half)) - 1, 0);
    *hi = (size_t)fmin(nearbyint(0.5 * (total + half)), total - 1);
}

static void intervals(slopes *s, double var_s, double level, tp_theil_sen_result *r)
{
    size_t lo, hi;
    interval_ranks(s, var_s, level, &r->rank_lo, &r->rank_hi);
    r->lo = r->corrected_lo = kth_slope(s, r->rank_lo);
    r->hi = r->corrected_hi = kth_slope(s, r->rank_hi);
    if (!(r->correction > 1))
        return;
    interval_ranks(s, var_s * r->correction, level, &lo, &hi);
    r->corrected_lo = kth_slope(s, lo);
    r->corrected_hi = kth_slope(s, hi);
}

static void intercepts(const slopes *s, tp_theil_sen_result *r)
{
    TP_FREED double *v = tp_scratch(s->n);
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
}

static void begin_search(slopes *s)
{
    size_t n_pairs = s->n < MOST_DRAWN / 4 ? 4 * s->n : MOST_DRAWN;
    s->slopes = tp_scratch(2 * s->n + 1);
    s->drawn = tp_scratch(n_pairs);
    s->work = tp_scratch(2 * s->n * sizeof(placed) / sizeof(double));
    s->known = tp_new(KNOWN, sizeof *s->known);
    s->ties = falling_ties(s->points, s->n);
    s->width = s->points[s->n - 1].x - s->points[0].x;
    s->largest_x = fmax(fabs(s->points[0].x), fabs(s->points[s->n - 1].x));
    for (size_t i = 0; i < s->n; i++)
        s->largest_y = fmax(s->largest_y, fabs(s->points[i].y));
    know_extremes(s);
    draw(s, n_pairs);
}

static tp_status solve(slopes *s, double level, bool is_corrected, tp_theil_sen_result *r,
                       tp_error *err)
{
    TP_FREED double *ordered = tp_scratch(s->n);
    double var_s = tp_kendall_variance(s->points, s->n, ordered);
    if (s->n <= ALL_SLOPES) {
        s->slopes = tp_scratch((size_t)s->n_slopes);
        all_slopes(s);
    } else {
        begin_search(s);
    }
    uint64_t half = s->n_slopes / 2;
    r->slope = kth_slope(s, half);
    if (s->n_slopes % 2 == 0)
        r->slope = 0.5 * r->slope + 0.5 * kth_slope(s, half - 1);
    if (is_corrected && var_s > 0 && s->n >= 4)
        TP_TRY(tp_hamed_rao(s->points, s->n, r->slope, 1 - level, &r->correction, err));
    if (var_s > 0)
        intervals(s, var_s, level, r);
    else
        r->why_ci = "all values are equal";
    r->n_counted = s->n_counted;
    intercepts(s, r);
    return TP_OK;
}

static tp_status theil_sen(const double *x, const double *y, size_t n, double level,
                           bool is_corrected, tp_theil_sen_result *ret, tp_error *err)
{
    tp_theil_sen_result r = {.slope = NAN,
                             .intercept_separate = NAN,
                             .intercept_joint = NAN,
                             .lo = NAN,
                             .hi = NAN,
                             .correction = NAN,
                             .corrected_lo = NAN,
                             .corrected_hi = NAN};
    tp_status status = TP_OK;
    if (n > UINT32_MAX)
        return tp_fail(err, TP_ERR_ARG, "a series of %zu values is too long", n);
    if (x)
        TP_TRY(tp_check_finite("x", x, n, err));
    TP_TRY(tp_check_finite("y", y, n, err));
    TP_FREED tp_point *points = tp_points_sorted(x, y, n);
    slopes s = {.points = points, .n = n};
    s.n_slopes = (n ? (uint64_t)n * (n - 1) / 2 : 0) - same_x_pairs(points, n);
    r.n_pairs = (size_t)s.n_slopes;
    if (s.n_slopes == 0)
        r.why = r.why_ci = n < 2 ? "needs at least two points" : "every x is the same";
    else
        status = solve(&s, level, is_corrected, &r, err);
    free(s.slopes);
    free(s.drawn);
    free(s.work);
    free(s.known);
    *ret = r;
    return status;
}

tp_status tp_theil_sen(const double *x, const double *y, size_t n, double level,
                       tp_theil_sen_result *ret, tp_error *err)
{
    return theil_sen(x, y, n, level, false, ret, err);
}

tp_status tp_theil_sen_corrected(const double *x, const double *y, size_t n, double level,
                                 tp_theil_sen_result *ret, tp_error *err)
{
    return theil_sen(x, y, n, level, true, ret, err);
}
