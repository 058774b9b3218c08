/* permutation.c - permutation and sign-flip tests: exact by enumeration for small n, else by
 * Monte Carlo. */
#include <math.h>

#include "stats/bootstrap.h"
#include "stats/moments.h"
#include "stats/order.h"
#include "stats/two_sample.h"

/* Both tests reduce to sums: the difference of means grows with the sum of the group
 * called x, and the sum of signed differences speaks for itself.  Sums are twofold.  The two-sided
 * p counts what lies within 1e-12 of the largest sum that there could be as equal, or within what
 * rounding leaves of the values, since these are decimals as a rule and doubles only near them; the
 * one-sided ones are those of the doubles, where exactly the observed value counts. */
static const double tie_share = 1e-12, exact_share = 0x1p-95;
/* Of the magnitudes: far from 0 their rounding is more than a share of what they differ by. */
static const double rounding_share = 0x1p-50;

typedef struct {
    tp_two observed, center; /* sum of x, and what it would be without a difference */
    double slack, tie;       /* sums this near are equal: of doubles, of decimals */
    uint64_t n, two, greater, less;
} tally;

static void count(tally *t, tp_two sum)
{
    tp_two statistic = tp_two_sub(sum, t->center), observed = tp_two_sub(t->observed, t->center);
    double above = tp_two_value(tp_two_sub(statistic, observed));
    double below = tp_two_value(tp_two_add(statistic, observed));
    bool is_positive = tp_two_value(observed) >= 0;
    t->n++;
    t->greater += above >= -t->slack;
    t->less += above <= t->slack;
    /* |statistic| >= |observed| */
    t->two +=
        is_positive ? above >= -t->tie || below <= t->tie : above <= t->tie || below >= -t->tie;
}

static tp_permutation_result result_of(const tally *t, bool is_exact)
{
    double extra = is_exact ? 0 : 1, n = (double)t->n + extra;
    return (tp_permutation_result){.n_perm = t->n,
                                   .count_two = t->two,
                                   .is_exact = is_exact,
                                   .p = {((double)t->two + extra) / n,
                                         ((double)t->greater + extra) / n,
                                         ((double)t->less + extra) / n}};
}

static tp_permutation_result nothing(const char *why)
{
    return (tp_permutation_result){.p = tp_p_undefined(), .why = why};
}

/* C(n, k), or `limit` + 1 when it is larger than limit. */
static uint64_t choose_up_to(size_t n, size_t k, uint64_t limit)
{
    double c = 1;
    for (size_t i = 1; i <= (k < n - k ? k : n - k); i++) {
        c = c * (double)(n - i + 1) / (double)i;
        if (c > 2 * (double)limit)
            return limit + 1;
    }
    return (uint64_t)(c + 0.5);
}

/* All k-subsets in lexicographic order; each is summed afresh, so that no error grows. */
static void all_subsets(const double *v, size_t n, size_t k, size_t *subset, tally *t)
{
    for (size_t i = 0; i < k; i++)
        subset[i] = i;
    for (;;) {
        tp_two sum = {0, 0};
        for (size_t i = 0; i < k; i++)
            sum = tp_two_add_d(sum, v[subset[i]]);
        count(t, sum);
        size_t i = k;
        while (i > 0 && subset[i - 1] == n - k + i - 1)
            i--;
        if (i == 0)
            return;
        subset[i - 1]++;
        for (; i < k; i++)
            subset[i] = subset[i - 1] + 1;
    }
}

static void random_subsets(double *v, size_t n, size_t k, uint64_t n_draws, uint64_t seed, tally *t)
{
    tp_splitmix stream = {seed};
    for (uint64_t draw = 0; draw < n_draws; draw++) {
        tp_two sum = {0, 0};
        for (size_t i = 0; i < k; i++) { /* the first k of a Fisher-Yates shuffle */
            size_t j = i + (size_t)tp_splitmix_below(&stream, n - i);
            double swap = v[i];
            v[i] = v[j];
            v[j] = swap;
            sum = tp_two_add_d(sum, v[i]);
        }
        count(t, sum);
    }
}

/* Copies n values, scaled. */
static void take(const double *x, size_t n, int exponent, double *v)
{
    for (size_t i = 0; i < n; i++)
        v[i] = ldexp(x[i], -exponent);
}

static void set_slack(tally *t, const double *v, size_t n, double center)
{
    double plain = 0, centered = 0;
    for (size_t i = 0; i < n; i++) {
        plain += fabs(v[i]);
        centered += fabs(v[i] - center);
    }
    t->slack = exact_share * plain;
    t->tie = fmax(rounding_share * plain, tie_share * centered);
}

tp_status tp_permutation_test(const double *x, size_t nx, const double *y, size_t ny,
                              uint64_t n_monte_carlo, uint64_t seed, tp_permutation_result *ret,
                              tp_error *err)
{
    size_t n = nx + ny;
    TP_TRY(tp_check_finite("x", x, nx, err));
    TP_TRY(tp_check_finite("y", y, ny, err));
    if (nx == 0 || ny == 0) {
        *ret = nothing("a sample is empty");
        return TP_OK;
    }
    bool is_exact = choose_up_to(n, nx, TP_PERMUTATION_EXACT_MAX) <= TP_PERMUTATION_EXACT_MAX;
    if (!is_exact && n_monte_carlo == 0) {
        *ret = nothing("too many arrangements to enumerate");
        return TP_OK;
    }
    TP_FREED double *v = tp_scratch(n);
    TP_FREED size_t *subset = tp_new(nx, sizeof *subset);
    int e = tp_scale_exponent_two(x, nx, y, ny);
    tally t = {.n = 0};
    take(x, nx, e, v);
    take(y, ny, e, v + nx);
    t.observed = tp_two_sum_of(v, nx);
    t.center = tp_two_div_d(tp_two_mul_d(tp_two_sum_of(v, n), (double)nx), (double)n);
    set_slack(&t, v, n, tp_two_value(t.center) / (double)nx);
    if (is_exact)
        all_subsets(v, n, nx, subset, &t);
    else
        random_subsets(v, n, nx, n_monte_carlo, seed, &t);
    *ret = result_of(&t, is_exact);
    return TP_OK;
}

tp_status tp_signflip_test(const double *d, size_t n, uint64_t n_monte_carlo, uint64_t seed,
                           tp_permutation_result *ret, tp_error *err)
{
    TP_TRY(tp_check_finite("the differences", d, n, err));
    bool is_exact = n < 15; /* 2^14 = TP_SIGNFLIP_EXACT_MAX */
    if (n == 0 || (!is_exact && n_monte_carlo == 0)) {
        *ret = nothing(n ? "too many arrangements to enumerate" : "there are no differences");
        return TP_OK;
    }
    TP_FREED double *v = tp_scratch(n);
    tally t = {.n = 0};
    take(d, n, tp_scale_exponent(d, n), v);
    set_slack(&t, v, n, 0);
    t.observed = tp_two_sum_of(v, n);
    tp_splitmix stream = {seed};
    uint64_t n_draws = is_exact ? UINT64_C(1) << n : n_monte_carlo;
    for (uint64_t draw = 0; draw < n_draws; draw++) {
        tp_two sum = {0, 0};
        uint64_t signs = draw;
        for (size_t i = 0; i < n; i++, signs >>= 1) {
            if (!is_exact && i % 64 == 0)
                signs = tp_splitmix_next(&stream);
            sum = tp_two_add_d(sum, signs & 1 ? -v[i] : v[i]);
        }
        count(&t, sum);
    }
    *ret = result_of(&t, is_exact);
    return TP_OK;
}
