/* bootstrap_kinds.c - bootstraps of one and two samples, with fast paths for mean and
 * median. */
#include <math.h>
#include <string.h>

#include "stats/bootstrap_internal.h"
#include "stats/descriptive.h"
#include "stats/moments.h"
#include "stats/order.h"
#include "stats/twofold.h"

/* One sample, or two with ny > 0.  Data are drawn relative to their first value: sums
 * then keep the digits of the differences, and the mean is shifted back at the end. */
typedef struct {
    const double *x, *y;
    size_t nx, ny;
    tp_statistic statistic;
    void *context;
    tp_combine combine;
    const double *shifted_x, *shifted_y; /* of the fast mean, else NULL */
    const double *sorted_x, *sorted_y;   /* of the fast median, else NULL */
    const uint32_t *rank_x, *rank_y;     /* places among the sorted ones */
} samples;

static double combined(const samples *s, double x, double y)
{
    if (s->ny == 0)
        return x;
    return s->combine == TP_COMBINE_RATIO ? x / y : x - y;
}

static double replicate_mean(const void *context, tp_splitmix *stream, double *scratch)
{
    const samples *s = context;
    (void)scratch;
    double x = s->x[0] + tp_resampled_sum(s->shifted_x, s->nx, stream) / (double)s->nx;
    if (s->ny == 0)
        return x;
    double y = s->y[0] + tp_resampled_sum(s->shifted_y, s->ny, stream) / (double)s->ny;
    return combined(s, x, y);
}

/* The places from 0 on, in whole blocks, that hold less than half of n draws; *ret_passed of
 * them.  Sums of a block do not wait for a comparison, which a walk place by place does. */
static size_t skip_lower_half(const uint32_t *counts, size_t n, size_t *ret_passed)
{
    enum { BLOCK = 16 };
    size_t at = 0, passed = 0;
    for (; at + BLOCK <= n; at += BLOCK) {
        uint32_t sum = 0;
        for (size_t k = 0; k < BLOCK; k++)
            sum += counts[at + k];
        if (2 * (passed + sum) >= n)
            break;
        passed += sum;
    }
    *ret_passed = passed;
    return at;
}

/* The median of a resample from how often each place was drawn: nothing is sorted. */
static double counted_median(const double *sorted, const uint32_t *rank, size_t n,
                             tp_splitmix *stream, uint32_t *counts)
{
    memset(counts, 0, n * sizeof *counts);
    tp_resampled_counts(rank, n, stream, counts);
    size_t passed, at = skip_lower_half(counts, n, &passed);
    passed += counts[at];
    while (2 * passed < n)
        passed += counts[++at];
    double lower = sorted[at];
    if (2 * passed > n)
        return lower;
    do
        at++;
    while (counts[at] == 0);
    return 0.5 * lower + 0.5 * sorted[at];
}

static double replicate_median(const void *context, tp_splitmix *stream, double *scratch)
{
    const samples *s = context;
    uint32_t *counts = (uint32_t *)(void *)scratch;
    double x = counted_median(s->sorted_x, s->rank_x, s->nx, stream, counts);
    if (s->ny == 0)
        return x;
    return combined(s, x, counted_median(s->sorted_y, s->rank_y, s->ny, stream, counts));
}

static uint32_t place_of(const double *sorted, size_t n, double value)
{
    size_t lo = 0, hi = n; /* the first that is not smaller */
    while (lo < hi) {
        size_t middle = lo + (hi - lo) / 2;
        if (sorted[middle] < value)
            lo = middle + 1;
        else
            hi = middle;
    }
    return (uint32_t)lo;
}

/* `sorted` and `rank` hold nx + ny. */
static void prepare_median(samples *s, double *sorted, uint32_t *rank)
{
    s->sorted_x = sorted;
    s->sorted_y = sorted + s->nx;
    s->rank_x = rank;
    s->rank_y = rank + s->nx;
    for (int i = 0; i < 2; i++) {
        const double *v = i ? s->y : s->x;
        size_t n = i ? s->ny : s->nx, from = i ? s->nx : 0;
        if (n == 0)
            continue;
        memcpy(sorted + from, v, n * sizeof *v);
        tp_sort(sorted + from, n);
        for (size_t j = 0; j < n; j++)
            rank[from + j] = place_of(sorted + from, n, v[j]);
    }
}

static double replicate_any(const void *context, tp_splitmix *stream, double *scratch)
{
    const samples *s = context;
    tp_resample(s->x, s->nx, stream, scratch);
    double x = s->statistic(scratch, s->nx, s->context);
    if (s->ny == 0)
        return x;
    tp_resample(s->y, s->ny, stream, scratch);
    return combined(s, x, s->statistic(scratch, s->ny, s->context));
}

/* theta without value `skip` of x (or of y, counted on from nx). */
static double left_out(const samples *s, size_t skip, double whole_x, double whole_y,
                       double *scratch)
{
    bool in_x = skip < s->nx;
    const double *v = in_x ? s->x : s->y;
    size_t n = in_x ? s->nx : s->ny, at = in_x ? skip : skip - s->nx;
    memcpy(scratch, v, at * sizeof *v);
    memcpy(scratch + at, v + at + 1, (n - at - 1) * sizeof *v);
    double part = s->statistic(scratch, n - 1, s->context);
    return in_x ? combined(s, part, whole_y) : combined(s, whole_x, part);
}

/* The means with one value left out, without a pass for each. */
static void jackknife_means(const double *x, size_t n, double *ret)
{
    tp_two sum = tp_two_sum_of(x, n);
    for (size_t i = 0; i < n; i++)
        ret[i] = tp_two_value(tp_two_div_d(tp_two_add_d(sum, -x[i]), (double)n - 1));
}

/* The medians with one value left out: those behind it move up by one place. */
static void jackknife_medians(const double *sorted, const uint32_t *rank, size_t n, double *ret)
{
    size_t upper = (n - 1) / 2, lower = (n - 1) % 2 ? upper : upper - 1;
    for (size_t i = 0; i < n; i++) {
        double b = sorted[upper + (rank[i] <= upper)];
        ret[i] = lower == upper ? b : 0.5 * sorted[lower + (rank[i] <= lower)] + 0.5 * b;
    }
}

static void add_influence(const double *jackknife, size_t n, long double *cubes,
                          long double *squares)
{
    long double mean = tp_mean(jackknife, n), m = (long double)n;
    for (size_t i = 0; i < n; i++) {
        long double u = (m - 1) * (mean - jackknife[i]);
        *cubes += u * u * u / (m * m * m);
        *squares += u * u / (m * m);
    }
}

static double acceleration_of(long double cubes, long double squares)
{
    return squares > 0 ? (double)(cubes / (6 * squares * sqrtl(squares))) : NAN;
}

static double acceleration(const samples *s, double whole_x, double whole_y, double *scratch)
{
    long double cubes = 0, squares = 0;
    double *jackknife = scratch + s->nx + s->ny;
    bool is_mean = s->shifted_x, is_median = s->sorted_x;
    if (s->nx < 2 || (s->ny > 0 && s->ny < 2))
        return NAN;
    if (is_mean) {
        jackknife_means(s->x, s->nx, jackknife);
        jackknife_means(s->y, s->ny, jackknife + s->nx);
    } else if (is_median) {
        jackknife_medians(s->sorted_x, s->rank_x, s->nx, jackknife);
        if (s->ny)
            jackknife_medians(s->sorted_y, s->rank_y, s->ny, jackknife + s->nx);
    }
    for (size_t i = 0; i < s->nx + s->ny; i++) {
        double part = jackknife[i];
        if (is_mean || is_median)
            jackknife[i] = i < s->nx ? combined(s, part, whole_y) : combined(s, whole_x, part);
        else
            jackknife[i] = left_out(s, i, whole_x, whole_y, scratch);
    }
    add_influence(jackknife, s->nx, &cubes, &squares);
    if (s->ny)
        add_influence(jackknife + s->nx, s->ny, &cubes, &squares);
    return acceleration_of(cubes, squares);
}

/* The distance of replicate `index` of a mean from theta, without the rounding that a
 * nearly equal one would drown in. */
static double exact_gap(const samples *s, uint64_t seed, size_t index, double *scratch)
{
    tp_splitmix stream = {tp_splitmix_skip(seed, (uint64_t)index * (s->nx + s->ny))};
    tp_two part[2], whole[2];
    for (int i = 0; i < 2; i++) {
        const double *v = i ? s->y : s->x;
        size_t n = i ? s->ny : s->nx;
        tp_resample(v, n, &stream, scratch);
        part[i] = n ? tp_two_div_d(tp_two_sum_of(scratch, n), (double)n) : tp_two_of(0);
        whole[i] = n ? tp_two_div_d(tp_two_sum_of(v, n), (double)n) : tp_two_of(0);
    }
    bool is_ratio = s->ny && s->combine == TP_COMBINE_RATIO;
    tp_two a = is_ratio ? tp_two_div(part[0], part[1]) : tp_two_sub(part[0], part[1]);
    tp_two b = is_ratio ? tp_two_div(whole[0], whole[1]) : tp_two_sub(whole[0], whole[1]);
    return fabs(tp_two_value(tp_two_sub(a, b)));
}

static size_t closest(const double *theta, size_t b, double to)
{
    size_t best = 0;
    double gap = INFINITY;
    for (size_t i = 0; i < b; i++) {
        double d = fabs(theta[i] - to);
        if (d < gap && d > 1e-12 * fmax(fabs(theta[i]), fabs(to))) {
            gap = d;
            best = i;
        }
    }
    return best;
}

static tp_status run(samples *s, const tp_bootstrap_options *options, tp_bootstrap_result *ret,
                     tp_error *err)
{
    size_t b = options->n_resamples, n = s->nx + s->ny;
    tp_bootstrap_result r = {.n_resamples = b};
    TP_FREED uint32_t *rank = NULL;
    TP_TRY(tp_bootstrap_check(options, s->nx, err));
    TP_FREED double *scratch = tp_scratch(b + 3 * n);
    double *theta = scratch, *shifted = scratch + b, *work = shifted + n;
    tp_resampler how = {.draws = n, .scratch = n, .replicate = replicate_any, .context = s};
    if (s->statistic == tp_statistic_mean) {
        for (size_t i = 0; i < n; i++)
            shifted[i] = i < s->nx ? s->x[i] - s->x[0] : s->y[i - s->nx] - s->y[0];
        s->shifted_x = shifted;
        s->shifted_y = shifted + s->nx;
        how.replicate = replicate_mean;
    } else if (s->statistic == tp_statistic_median && n <= UINT32_MAX / 2) {
        rank = tp_new(n, sizeof *rank);
        prepare_median(s, shifted, rank);
        how.replicate = replicate_median;
    }
    memcpy(work, s->x, s->nx * sizeof *work);
    double whole_x = s->statistic(work, s->nx, s->context), whole_y = NAN;
    if (s->ny) {
        memcpy(work, s->y, s->ny * sizeof *work);
        whole_y = s->statistic(work, s->ny, s->context);
    }
    r.theta = combined(s, whole_x, whole_y);
    tp_bootstrap_draw(&how, options, theta);
    size_t near = closest(theta, b, r.theta);
    tp_bootstrap_summarize(theta, acceleration(s, whole_x, whole_y, work), options->level, &r);
    if (how.replicate == replicate_mean && !isnan(r.min_gap))
        r.min_gap = exact_gap(s, options->seed, near, work);
    *ret = r;
    return TP_OK;
}

static void scale_interval(tp_interval *i, int exponent)
{
    i->lo = ldexp(i->lo, exponent);
    i->hi = ldexp(i->hi, exponent);
}

/* Means and medians of values whose sums or squares leave the range of double: drawn from the
 * values times a power of two, which is exact, and scaled back. */
static tp_status run_scaled(const samples *s, int exponent, const tp_bootstrap_options *options,
                            tp_bootstrap_result *ret, tp_error *err)
{
    size_t n = s->nx + s->ny;
    samples scaled = *s;
    TP_FREED double *copy = tp_scratch(n);
    for (size_t i = 0; i < n; i++)
        copy[i] = ldexp(i < s->nx ? s->x[i] : s->y[i - s->nx], -exponent);
    scaled.x = copy;
    scaled.y = copy + s->nx;
    tp_status status = run(&scaled, options, ret, err);
    if (status != TP_OK || (s->ny && s->combine == TP_COMBINE_RATIO))
        return status;
    ret->theta = ldexp(ret->theta, exponent);
    ret->min_gap = ldexp(ret->min_gap, exponent);
    ret->mean = ldexp(ret->mean, exponent);
    ret->se = ldexp(ret->se, exponent);
    scale_interval(&ret->percentile, exponent);
    scale_interval(&ret->basic, exponent);
    scale_interval(&ret->bca, exponent);
    return TP_OK;
}

static tp_status run_in_range(samples *s, const tp_bootstrap_options *options,
                              tp_bootstrap_result *ret, tp_error *err)
{
    bool can_scale = s->statistic == tp_statistic_mean || s->statistic == tp_statistic_median;
    int exponent = 0;
    TP_TRY(tp_check_finite("x", s->x, s->nx, err));
    TP_TRY(tp_check_finite("y", s->y, s->ny, err));
    if (can_scale)
        exponent = tp_scale_exponent_two(s->x, s->nx, s->y, s->ny);
    return exponent ? run_scaled(s, exponent, options, ret, err) : run(s, options, ret, err);
}

tp_status tp_bootstrap(const double *x, size_t n, tp_statistic statistic, void *context,
                       const tp_bootstrap_options *options, tp_bootstrap_result *ret, tp_error *err)
{
    samples s = {.x = x, .nx = n, .statistic = statistic, .context = context};
    return run_in_range(&s, options, ret, err);
}

tp_status tp_bootstrap_two(const double *x, size_t nx, const double *y, size_t ny,
                           tp_statistic statistic, void *context, tp_combine combine,
                           const tp_bootstrap_options *options, tp_bootstrap_result *ret,
                           tp_error *err)
{
    samples s = {.x = x,
                 .nx = nx,
                 .y = y,
                 .ny = ny,
                 .statistic = statistic,
                 .context = context,
                 .combine = combine};
    if (ny == 0)
        return tp_fail(err, TP_ERR_ARG, "there is nothing to resample");
    return run_in_range(&s, options, ret, err);
}
