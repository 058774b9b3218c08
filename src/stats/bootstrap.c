/* bootstrap.c - the splitmix64 stream, resampling, and percentile, basic and BCa intervals from
 * replicates. */
#include "stats/bootstrap.h"

#include <math.h>

#include "stats/bootstrap_internal.h"
#include "stats/descriptive.h"
#include "stats/order.h"
#include "stats/special.h"

static const uint64_t golden_gamma = UINT64_C(0x9e3779b97f4a7c15);

static inline uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static inline uint64_t high_product(uint64_t a, uint64_t b)
{
    return (uint64_t)(((unsigned __int128)a * b) >> 64);
}

uint64_t tp_splitmix_next(tp_splitmix *s) { return mix(s->state += golden_gamma); }

uint64_t tp_splitmix_at(uint64_t seed, uint64_t k) { return mix(seed + (k + 1) * golden_gamma); }

uint64_t tp_splitmix_below(tp_splitmix *s, uint64_t n)
{
    return high_product(tp_splitmix_next(s), n);
}

uint64_t tp_splitmix_skip(uint64_t seed, uint64_t k) { return seed + k * golden_gamma; }

void tp_resample(const double *x, size_t n, tp_splitmix *stream, double *ret)
{
    uint64_t state = stream->state;
    for (size_t i = 0; i < n; i++) {
        state += golden_gamma;
        ret[i] = x[high_product(mix(state), n)];
    }
    stream->state = state;
}

/* Four partial sums, so that additions do not wait for each other; what the oracle of a
 * stream compares is the draws, and the sums agree to rounding. */
double tp_resampled_sum(const double *x, size_t n, tp_splitmix *stream)
{
    uint64_t state = stream->state;
    double a = 0, b = 0, c = 0, d = 0;
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        a += x[high_product(mix(state + golden_gamma), n)];
        b += x[high_product(mix(state + 2 * golden_gamma), n)];
        c += x[high_product(mix(state + 3 * golden_gamma), n)];
        state += 4 * golden_gamma;
        d += x[high_product(mix(state), n)];
    }
    for (; i < n; i++) {
        state += golden_gamma;
        a += x[high_product(mix(state), n)];
    }
    stream->state = state;
    return (a + b) + (c + d);
}

void tp_resampled_counts(const uint32_t *rank, size_t n, tp_splitmix *stream, uint32_t *counts)
{
    uint64_t state = stream->state;
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        uint32_t a = rank[high_product(mix(state + golden_gamma), n)];
        uint32_t b = rank[high_product(mix(state + 2 * golden_gamma), n)];
        uint32_t c = rank[high_product(mix(state + 3 * golden_gamma), n)];
        state += 4 * golden_gamma;
        uint32_t d = rank[high_product(mix(state), n)];
        counts[a]++;
        counts[b]++;
        counts[c]++;
        counts[d]++;
    }
    for (; i < n; i++) {
        state += golden_gamma;
        counts[rank[high_product(mix(state), n)]]++;
    }
    stream->state = state;
}

double tp_statistic_mean(double *x, size_t n, void *context)
{
    (void)context;
    return tp_mean(x, n);
}

double tp_statistic_median(double *x, size_t n, void *context)
{
    (void)context;
    if (n == 0)
        return NAN;
    double upper = tp_select(x, n, n / 2);
    if (n % 2)
        return upper;
    double lower = x[0];
    for (size_t i = 1; i < n / 2; i++)
        lower = fmax(lower, x[i]);
    return 0.5 * lower + 0.5 * upper;
}

static bool same(double a, double b) { return fabs(a - b) <= 1e-12 * fmax(fabs(a), fabs(b)); }

/* Where theta lies among the replicates, and how they scatter. */
static void tally_replicates(const double *theta, size_t b, tp_bootstrap_result *r)
{
    double gap = INFINITY;
    for (size_t i = 0; i < b; i++) {
        if (same(theta[i], r->theta)) {
            r->n_equal++;
            continue;
        }
        r->n_less += theta[i] < r->theta;
        gap = fmin(gap, fabs(theta[i] - r->theta));
    }
    r->min_gap = isfinite(gap) ? gap : NAN;
    r->mean = tp_mean(theta, b);
    r->se = tp_sd(theta, b);
}

static double bca_tail(double z0, double a, double z)
{
    double w = z0 + z;
    return tp_normal_cdf(z0 + w / (1 - a * w));
}

void tp_bootstrap_summarize(double *theta, double acceleration, double level,
                            tp_bootstrap_result *r)
{
    size_t b = r->n_resamples;
    double tail = 0.5 * (1 - level), z = tp_normal_isf(tail);
    tally_replicates(theta, b, r);
    tp_sort(theta, b);
    r->percentile = (tp_interval){.lo = tp_quantile_sorted(theta, b, tail),
                                  .hi = tp_quantile_sorted(theta, b, 1 - tail)};
    r->basic =
        (tp_interval){.lo = 2 * r->theta - r->percentile.hi, .hi = 2 * r->theta - r->percentile.lo};
    double below = ((double)r->n_less + 0.5 * (double)r->n_equal) / (double)b;
    r->a = acceleration;
    r->z0 = below > 0 && below < 1 ? tp_normal_quantile(below) : NAN;
    r->alpha1 = bca_tail(r->z0, r->a, -z);
    r->alpha2 = bca_tail(r->z0, r->a, z);
    r->bca = r->percentile;
    if (isnan(r->z0))
        r->bca_fallback = "all resamples are on one side of the estimate";
    else if (isnan(acceleration))
        r->bca_fallback = "leaving one value out never changes the estimate";
    else if (!(1 - r->a * (r->z0 + z) > 0) || !(1 - r->a * (r->z0 - z) > 0))
        r->bca_fallback = "the acceleration is too large";
    else
        r->bca = (tp_interval){.lo = tp_quantile_sorted(theta, b, r->alpha1),
                               .hi = tp_quantile_sorted(theta, b, r->alpha2)};
}

tp_status tp_bootstrap_check(const tp_bootstrap_options *options, size_t n, tp_error *err)
{
    if (options->n_resamples < 2 || options->n_resamples > 100000000)
        return tp_fail(err, TP_ERR_ARG, "%zu resamples; choose from 2 to 100000000",
                       options->n_resamples);
    if (!(options->level > 0 && options->level < 1))
        return tp_fail(err, TP_ERR_ARG, "a level of %g is not between 0 and 1", options->level);
    if (n == 0)
        return tp_fail(err, TP_ERR_ARG, "there is nothing to resample");
    return TP_OK;
}

void tp_bootstrap_draw(const tp_resampler *how, const tp_bootstrap_options *options, double *theta)
{
    TP_FREED double *scratch = tp_scratch(how->scratch);
    for (size_t i = 0; i < options->n_resamples; i++) {
        tp_splitmix stream = {tp_splitmix_skip(options->seed, (uint64_t)i * how->draws)};
        theta[i] = how->replicate(how->context, &stream, scratch);
    }
}
