/* evals.c - pass@k in product form, means over clusters, and the comparison of two models on
 * the same prompts. */
#include <math.h>
#include <stdlib.h>

#include "stats/descriptive.h"
#include "stats/order.h"
#include "stats/proportions.h"
#include "stats/special.h"
#include "stats/special_internal.h"
#include "stats/two_sample.h"

static bool is_problem(int64_t n, int64_t c, int64_t k)
{
    return n >= 1 && c >= 0 && c <= n && k >= 1 && k <= n;
}

/* prod (1 - k/i) over the c values from n-c+1, or over the k values from n-k+1 of
 * (1 - c/i), whichever is shorter: both are C(n-c, k) / C(n, k). */
static long double miss_all(int64_t n, int64_t c, int64_t k)
{
    int64_t factors = c < k ? c : k, other = c < k ? k : c;
    long double product = 1;
    if (n - c < k)
        return 0;
    for (int64_t i = n - factors + 1; i <= n; i++)
        product *= 1 - (long double)other / (long double)i;
    return product;
}

double tp_pass_at_k(int64_t n, int64_t c, int64_t k)
{
    return is_problem(n, c, k) ? (double)(1 - miss_all(n, c, k)) : NAN;
}

/* Var of pass@k when C ~ Bin(n, c/n). */
static long double sampling_variance(int64_t n, int64_t c, int64_t k)
{
    double p = (double)c / (double)n;
    long double mean = 0, square = 0;
    if (c == 0 || c == n)
        return 0;
    for (int64_t i = 0; i <= n; i++) {
        long double h = 1 - miss_all(n, i, k), mass = tp_binomial_pmf(i, n, p);
        mean += mass * h;
        square += mass * h * h;
    }
    return fmaxl(0, square - mean * mean);
}

static tp_pass_suite no_suite(size_t m, const char *why)
{
    return (tp_pass_suite){.n_problems = m,
                           .mean = NAN,
                           .se = NAN,
                           .se_sampling = NAN,
                           .ci_t = tp_interval_undefined(why),
                           .ci_z = tp_interval_undefined(why),
                           .why = why,
                           .why_se = why};
}

tp_status tp_pass_at_k_suite(const int64_t *n, const int64_t *c, size_t m, int64_t k, double level,
                             tp_pass_suite *ret, tp_error *err)
{
    double *passes;
    if (m == 0) {
        *ret = no_suite(m, "there are no problems");
        return TP_OK;
    }
    for (size_t i = 0; i < m; i++)
        if (!is_problem(n[i], c[i], k)) {
            *ret = no_suite(m, k > n[i] ? "k is larger than the samples of a problem"
                                        : "a problem needs 0 <= c <= n");
            return TP_OK;
        }
    TP_TRY(tp_scratch(m, &passes, err));
    tp_pass_suite r = {.n_problems = m};
    long double sampling = 0;
    for (size_t i = 0; i < m; i++) {
        passes[i] = tp_pass_at_k(n[i], c[i], k);
        sampling += sampling_variance(n[i], c[i], k);
    }
    r.mean = tp_mean(passes, m);
    r.se_sampling = (double)(sqrtl(sampling) / (long double)m);
    r.se = tp_sd(passes, m) / sqrt((double)m);
    free(passes);
    if (m < 2) {
        r.why_se = "needs at least two problems";
        r.ci_t = r.ci_z = tp_interval_undefined(r.why_se);
    } else {
        long double half = tp_normal_isf_long(0.5L * (1 - (long double)level)) * r.se;
        r.ci_t = tp_t_interval(r.mean, r.se, (double)m - 1, level);
        r.ci_z = (tp_interval){.lo = (double)(r.mean - half), .hi = (double)(r.mean + half)};
    }
    *ret = r;
    return TP_OK;
}

typedef struct {
    int64_t cluster;
    double e; /* score minus mean */
} scored;

static int compare_scored(const void *a, const void *b)
{
    const scored *x = a, *y = b;
    return (x->cluster > y->cluster) - (x->cluster < y->cluster);
}

/* Sums over clusters: of squared totals, and of products of different members. */
static void cluster_sums(const scored *v, size_t n, size_t *n_clusters, long double *totals,
                         long double *products)
{
    for (size_t i = 0, j; i < n; i = j, ++*n_clusters) {
        long double total = 0, squares = 0;
        for (j = i; j < n && v[j].cluster == v[i].cluster; j++) {
            total += v[j].e;
            squares += (long double)v[j].e * v[j].e;
        }
        *totals += total * total;
        *products += total * total - squares;
    }
}

tp_status tp_clustered_mean(const double *scores, const int64_t *cluster, size_t n, double level,
                            tp_clustered *ret, tp_error *err)
{
    tp_clustered r = {.n = n,
                      .mean = tp_mean(scores, n),
                      .se_clt = NAN,
                      .se_miller = NAN,
                      .se_cr0 = NAN,
                      .se_cr1 = NAN,
                      .se = NAN};
    TP_TRY(tp_check_finite("the scores", scores, n, err));
    scored *v = n ? calloc(n, sizeof *v) : NULL;
    if (n && !v)
        return tp_fail(err, TP_ERR_NOMEM, "no memory for %zu scores", n);
    for (size_t i = 0; i < n; i++)
        v[i] = (scored){cluster ? cluster[i] : (int64_t)i, scores[i] - r.mean};
    if (n)
        qsort(v, n, sizeof *v, compare_scored);
    long double totals = 0, products = 0, m = (long double)n;
    cluster_sums(v, n, &r.n_clusters, &totals, &products);
    free(v);
    if (r.n_clusters < 2) {
        r.why = r.why_miller = n < 2 ? "needs at least two scores" : "needs at least two clusters";
        r.ci = tp_interval_undefined(r.why);
        *ret = r;
        return TP_OK;
    }
    long double groups = (long double)r.n_clusters;
    long double clt = tp_sd(scores, n) / sqrtl(m), radicand = clt * clt + products / (m * m);
    r.se_clt = (double)clt;
    r.se_cr0 = (double)(sqrtl(totals) / m);
    r.se_cr1 = (double)(sqrtl(totals * groups / (groups - 1)) / m);
    if (radicand >= 0)
        r.se_miller = (double)sqrtl(radicand);
    else
        r.why_miller = "members of a cluster disagree more than chance: the radicand is negative";
    r.se = r.why_miller ? r.se_cr1 : r.se_miller;
    r.ci = tp_t_interval(r.mean, r.se, (double)(r.n_clusters - 1), level);
    *ret = r;
    return TP_OK;
}

tp_status tp_eval_compare(const double *a, const double *b, const int64_t *cluster, size_t n,
                          double level, tp_eval_pair *ret, tp_error *err)
{
    tp_eval_pair r = {.corr = tp_pearson(a, b, n)};
    double *diff;
    TP_TRY(tp_clustered_mean(a, cluster, n, level, &r.a, err));
    TP_TRY(tp_clustered_mean(b, cluster, n, level, &r.b, err));
    TP_TRY(tp_scratch(n, &diff, err));
    for (size_t i = 0; i < n; i++) {
        diff[i] = a[i] - b[i];
        r.only_a += a[i] > 0.5 && b[i] <= 0.5;
        r.only_b += b[i] > 0.5 && a[i] <= 0.5;
    }
    tp_status status = tp_clustered_mean(diff, cluster, n, level, &r.diff, err);
    free(diff);
    if (status != TP_OK)
        return status;
    r.se_unpaired = hypot(r.a.se_clt, r.b.se_clt);
    *ret = r;
    return TP_OK;
}
