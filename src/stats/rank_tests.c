/* rank_tests.c - sign, Wilcoxon and Mann-Whitney tests: exact distributions for small samples,
 * else normal with corrections. */
#include <math.h>
#include <string.h>

#include "base/order.h"
#include "stats/descriptive.h"
#include "stats/order.h"
#include "stats/special.h"
#include "stats/two_sample.h"

/* Beyond these sizes the normal approximation is good and the exact tables are large. */
enum { MAX_EXACT_PAIRS = 2500, MAX_EXACT_SIGNED = 1000 };

static tp_z_test no_z(void) { return (tp_z_test){NAN, tp_p_undefined()}; }

static tp_rank_interval no_interval(const char *why)
{
    return (tp_rank_interval){.lo = NAN, .hi = NAN, .coverage = NAN, .why = why};
}

/* The test of one statistic with this distance from its mean, both ways. */
static void normal_tests(double distance, double sd, tp_z_test *plain, tp_z_test *corrected)
{
    double z = distance / sd;
    double inward = fmax(fabs(distance) - 0.5, 0) / sd;
    plain->z = corrected->z = z;
    plain->p = (tp_p_values){fmin(1, 2 * tp_normal_sf(fabs(z))), tp_normal_sf(z), tp_normal_cdf(z)};
    corrected->p =
        (tp_p_values){fmin(1, 2 * tp_normal_sf(inward)), tp_normal_sf((distance - 0.5) / sd),
                      tp_normal_cdf((distance + 0.5) / sd)};
}

/* A discrete distribution on 0 .. n_values - 1, symmetric about its middle. */
typedef struct {
    double *mass;
    size_t n_values;
} table;

static double cumulated(const table *t, size_t upto) /* P(value < upto) */
{
    double sum = 0;
    for (size_t i = 0; i < upto && i < t->n_values; i++)
        sum += t->mass[i];
    return sum;
}

static tp_p_values exact_p(const table *t, double value)
{
    size_t v = (size_t)value;
    tp_p_values p = {.less = fmin(1, cumulated(t, v + 1)),
                     .greater = fmin(1, cumulated(t, t->n_values - v))};
    p.two = fmin(1, 2 * fmin(p.less, p.greater));
    return p;
}

/* The smallest k with P(value <= k) >= tail, at least 1: the k-th order statistic from
 * either end bounds the interval, which then covers 1 - 2 P(value <= k - 1). */
static size_t interval_rank(const table *t, double level, double *coverage)
{
    double tail = 0.5 * (1 - level), sum = 0;
    size_t k = 0;
    for (; k + 1 < t->n_values; k++) {
        sum += t->mass[k];
        if (sum >= tail * (1 - 1e-12))
            break;
    }
    if (k == 0)
        k = 1;
    *coverage = 1 - 2 * cumulated(t, k);
    return k;
}

/* P(U = u) for samples of m and n:  p(m,n,u) = m/(m+n) p(m-1,n,u-n) + n/(m+n) p(m,n-1,u). */
static table mann_whitney_table(size_t nx, size_t ny)
{
    size_t small = nx < ny ? nx : ny, large = nx < ny ? ny : nx, width = small * large + 1;
    double *rows = tp_new((small + 1) * width, sizeof *rows);
    for (size_t m = 0; m <= small; m++)
        rows[m * width] = 1; /* n = 0 */
    for (size_t n = 1; n <= large; n++)
        for (size_t m = 1; m <= small; m++) {
            double share = (double)m / (double)(m + n);
            double *to = rows + m * width, *from = rows + (m - 1) * width;
            for (size_t u = m * n + 1; u-- > 0;)
                to[u] = (1 - share) * to[u] + (u >= n ? share * from[u - n] : 0);
        }
    memmove(rows, rows + small * width, width * sizeof *rows);
    return (table){rows, width};
}

static void mann_whitney_exact(const double *x, size_t nx, const double *y, size_t ny, double level,
                               tp_mann_whitney_result *r)
{
    table t = mann_whitney_table(nx, ny);
    r->has_exact = true;
    r->exact = exact_p(&t, r->u1);
    tp_rank_interval ci = {.why = NULL};
    ci.k = interval_rank(&t, level, &ci.coverage);
    ci.lo = tp_kth_difference(x, nx, y, ny, ci.k);
    ci.hi = tp_kth_difference(x, nx, y, ny, (uint64_t)nx * ny + 1 - ci.k);
    r->shift_ci = ci;
    free(t.mass);
}

/* Order statistics at the normal quantile of the statistic's distribution. */
static size_t normal_rank(double mean, double sd, double level, double total)
{
    double k = ceil(mean - tp_normal_isf(0.5 * (1 - level)) * sd - 1e-9);
    return (size_t)fmin(fmax(k, 1), fmax(total, 1));
}

static uint64_t count_greater(const double *x, size_t nx, const double *y, size_t ny, bool or_equal)
{
    uint64_t count = 0;
    size_t below = 0;
    for (size_t i = 0; i < nx; i++) {
        while (below < ny && (y[below] < x[i] || (or_equal && y[below] <= x[i])))
            below++;
        count += below;
    }
    return count;
}

static double tie_sum(const double *sorted, size_t n, bool *has_ties)
{
    double sum = 0;
    *has_ties = false;
    for (size_t i = 0, j; i < n; i = j) {
        for (j = i; j < n && sorted[j] <= sorted[i]; j++)
            ;
        double t = (double)(j - i);
        sum += t * (t * t - 1);
        *has_ties |= j - i > 1;
    }
    return sum;
}

static void mann_whitney_sorted(const double *x, size_t nx, const double *y, size_t ny, double ties,
                                double level, tp_mann_whitney_result *r)
{
    double n1 = (double)nx, n2 = (double)ny, n = n1 + n2, pairs = n1 * n2;
    double greater = (double)count_greater(x, nx, y, ny, false);
    double equal = (double)count_greater(x, nx, y, ny, true) - greater;
    r->u1 = greater + 0.5 * equal;
    r->u2 = pairs - r->u1;
    r->a12 = r->u1 / pairs;
    r->cliffs_delta = (r->u1 - r->u2) / pairs;
    r->shift = tp_median_difference(x, nx, y, ny);
    double variance = pairs / 12 * (n + 1 - (n > 1 ? ties / (n * (n - 1)) : 0));
    if (variance > 0) {
        normal_tests(r->u1 - 0.5 * pairs, sqrt(variance), &r->plain, &r->corrected);
        size_t k = normal_rank(0.5 * pairs, sqrt(variance), level, pairs);
        r->shift_ci_approximate =
            (tp_interval){.lo = tp_kth_difference(x, nx, y, ny, k),
                          .hi = tp_kth_difference(x, nx, y, ny, (uint64_t)nx * ny + 1 - k)};
    } else {
        r->why = "all values are equal";
        r->shift_ci_approximate = tp_interval_undefined(r->why);
    }
    r->p = r->corrected.p;
    if (r->has_ties)
        r->why_exact = "there are ties";
    else if (pairs > MAX_EXACT_PAIRS)
        r->why_exact = "the samples are too large for the exact distribution";
    else
        mann_whitney_exact(x, nx, y, ny, level, r);
    if (r->has_exact)
        r->p = r->exact;
    else
        r->shift_ci = no_interval(r->why_exact);
}

static tp_mann_whitney_result blank_mann_whitney(const char *why)
{
    return (tp_mann_whitney_result){.u1 = NAN,
                                    .u2 = NAN,
                                    .plain = no_z(),
                                    .corrected = no_z(),
                                    .exact = tp_p_undefined(),
                                    .p = tp_p_undefined(),
                                    .cliffs_delta = NAN,
                                    .a12 = NAN,
                                    .shift = NAN,
                                    .shift_ci = no_interval(why),
                                    .shift_ci_approximate = tp_interval_undefined(why),
                                    .why = why,
                                    .why_exact = why};
}

tp_status tp_mann_whitney(const double *x, size_t nx, const double *y, size_t ny, double level,
                          tp_mann_whitney_result *ret, tp_error *err)
{
    tp_mann_whitney_result r = blank_mann_whitney(NULL);
    TP_TRY(tp_check_finite("x", x, nx, err));
    TP_TRY(tp_check_finite("y", y, ny, err));
    if (nx == 0 || ny == 0) {
        *ret = blank_mann_whitney("a sample is empty");
        return TP_OK;
    }
    if (nx > SIZE_MAX / 8 - ny || nx > UINT32_MAX || ny > UINT32_MAX)
        return tp_fail(err, TP_ERR_ARG, "samples of %zu and %zu values are too large", nx, ny);
    TP_FREED double *all = tp_scratch(2 * (nx + ny));
    double *sx = all + nx + ny, *sy = sx + nx;
    memcpy(sx, x, nx * sizeof *x);
    memcpy(sy, y, ny * sizeof *y);
    tp_sort(sx, nx);
    tp_sort(sy, ny);
    memcpy(all, sx, (nx + ny) * sizeof *all);
    tp_sort(all, nx + ny);
    double ties = tie_sum(all, nx + ny, &r.has_ties);
    mann_whitney_sorted(sx, nx, sy, ny, ties, level, &r);
    *ret = r;
    return TP_OK;
}

/* P(W+ = w): each rank is in or out with probability one half. */
static table wilcoxon_table(size_t n)
{
    size_t width = n * (n + 1) / 2 + 1;
    double *mass = tp_new(width, sizeof *mass);
    mass[0] = 1;
    for (size_t i = 1, top = 0; i <= n; i++) {
        top += i;
        for (size_t w = top + 1; w-- > 0;)
            mass[w] = 0.5 * (mass[w] + (w >= i ? mass[w - i] : 0));
    }
    return (table){mass, width};
}

TP_ORDER(compare_magnitudes, double, TP_COMPARE(fabs(*x), fabs(*y)))

/* `d` holds the nonzero differences in ascending order of their magnitude. */
static double signed_ranks(const double *d, size_t n, tp_wilcoxon_result *r)
{
    double ties = 0;
    for (size_t i = 0, j; i < n; i = j) {
        for (j = i; j < n && fabs(d[j]) <= fabs(d[i]); j++)
            ;
        double rank = 0.5 * (double)(i + 1 + j), t = (double)(j - i);
        for (size_t k = i; k < j; k++)
            *(d[k] > 0 ? &r->w_plus : &r->w_minus) += rank;
        ties += t * (t * t - 1);
        r->has_ties |= j - i > 1;
    }
    return ties;
}

static void wilcoxon_exact(tp_wilcoxon_result *r)
{
    table t = wilcoxon_table(r->n_nonzero);
    r->has_exact = true;
    r->exact = exact_p(&t, r->w_plus);
    free(t.mass);
}

/* An interval asks which shifts the test accepts; a shift leaves no zeros, so all n
 * differences are in it. */
static void wilcoxon_interval(const double *sorted, double level, tp_wilcoxon_result *r)
{
    size_t m = r->n;
    table t = wilcoxon_table(m);
    tp_rank_interval ci = {.why = NULL};
    ci.k = interval_rank(&t, level, &ci.coverage);
    ci.lo = tp_kth_walsh(sorted, m, ci.k);
    ci.hi = tp_kth_walsh(sorted, m, (uint64_t)m * (m + 1) / 2 + 1 - ci.k);
    r->pseudomedian_ci = ci;
    free(t.mass);
}

static void wilcoxon_nonzero(double *d, tp_wilcoxon_result *r)
{
    double n = (double)r->n_nonzero, total = 0.5 * n * (n + 1);
    qsort(d, r->n_nonzero, sizeof *d, compare_magnitudes);
    double ties = signed_ranks(d, r->n_nonzero, r);
    double sd = sqrt(n * (n + 1) * (2 * n + 1) / 24 - ties / 48);
    r->rank_biserial = (r->w_plus - r->w_minus) / total;
    normal_tests(r->w_plus - 0.5 * total, sd, &r->plain, &r->corrected);
    r->p = r->corrected.p;
    if (r->has_ties)
        r->why_exact = "there are ties";
    else if (r->n > MAX_EXACT_SIGNED)
        r->why_exact = "the sample is too large for the exact distribution";
    else
        wilcoxon_exact(r);
    if (r->has_exact)
        r->p = r->exact;
}

static void wilcoxon_location(double *d, double level, tp_wilcoxon_result *r)
{
    size_t m = r->n;
    double n = (double)m, total = 0.5 * n * (n + 1), sd = sqrt(total * (2 * n + 1) / 12);
    tp_sort(d, m);
    r->pseudomedian = tp_median_walsh(d, m);
    size_t k = normal_rank(0.5 * total, sd, level, total);
    r->pseudomedian_ci_approximate = (tp_interval){
        .lo = tp_kth_walsh(d, m, k), .hi = tp_kth_walsh(d, m, (uint64_t)m * (m + 1) / 2 + 1 - k)};
    r->pseudomedian_ci = no_interval(r->why_exact);
    if (r->has_exact)
        wilcoxon_interval(d, level, r);
}

static void wilcoxon(const double *d, size_t n, double level, tp_wilcoxon_result *r)
{
    TP_FREED double *work = tp_scratch(n);
    for (size_t i = 0; i < n; i++)
        if (d[i] < 0 || d[i] > 0)
            work[r->n_nonzero++] = d[i];
    if (r->n_nonzero)
        wilcoxon_nonzero(work, r);
    else
        r->why = r->why_exact = "every difference is 0";
    memcpy(work, d, n * sizeof *d);
    wilcoxon_location(work, level, r);
}

tp_status tp_wilcoxon(const double *d, size_t n, double level, tp_wilcoxon_result *ret,
                      tp_error *err)
{
    static const char *const none = "there are no differences";
    tp_wilcoxon_result r = {.n = n,
                            .rank_biserial = NAN,
                            .plain = no_z(),
                            .corrected = no_z(),
                            .exact = tp_p_undefined(),
                            .p = tp_p_undefined(),
                            .pseudomedian = NAN,
                            .pseudomedian_ci = no_interval(none),
                            .pseudomedian_ci_approximate = tp_interval_undefined(none),
                            .why = none,
                            .why_exact = none};
    TP_TRY(tp_check_finite("the differences", d, n, err));
    if (n > UINT32_MAX)
        return tp_fail(err, TP_ERR_ARG, "%zu differences are too many", n);
    if (n) {
        r.why = r.why_exact = NULL;
        wilcoxon(d, n, level, &r);
    }
    *ret = r;
    return TP_OK;
}

void tp_round_decimals(double *d, size_t n, int digits)
{
    double unit = pow(10, digits);
    for (size_t i = 0; i < n; i++)
        if (fabs(d[i]) < 0x1p52 / unit)
            d[i] = nearbyint(d[i] * unit) / unit;
}

static tp_sign_result sign_test_counts(size_t n_positive, size_t n_negative, size_t n_zero)
{
    int64_t n = (int64_t)(n_positive + n_negative), k = (int64_t)n_positive;
    tp_sign_result r = {.n_positive = n_positive, .n_negative = n_negative, .n_zero = n_zero};
    if (n == 0) {
        r.p = tp_p_undefined();
        r.why = "every difference is 0";
        return r;
    }
    r.p.greater = tp_binomial_sf(k, n, 0.5);
    r.p.less = tp_binomial_cdf(k, n, 0.5);
    r.p.two = fmin(1, 2 * fmin(r.p.greater, r.p.less));
    return r;
}

tp_sign_result tp_sign_test(const double *d, size_t n)
{
    size_t positive = 0, negative = 0;
    for (size_t i = 0; i < n; i++) {
        positive += d[i] > 0;
        negative += d[i] < 0;
    }
    return sign_test_counts(positive, negative, n - positive - negative);
}
