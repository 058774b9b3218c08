/* evals.c - pass@k in product form, and means over clusters. */
#include <math.h>
#include <stdlib.h>

#include "base/order.h"
#include "stats/descriptive.h"
#include "stats/proportions.h"

static bool is_problem(int64_t n, int64_t c, int64_t k)
{
    return n >= 1 && c >= 0 && c <= n && k >= 1 && k <= n;
}

/* prod (1 - k/i) over the c values from n-c+1, or over the k values from n-k+1 of
 * (1 - c/i), whichever is shorter: both are C(n-c, k) / C(n, k). */
static long double miss_all(int64_t n, int64_t c, int64_t k)
{
    int64_t factors = c < k ? c : k, other = c < k ? k : c;
    const long double nothing = 1e-25L; /* beside 1 */
    long double product = 1;
    if (n - c < k)
        return 0;
    for (int64_t i = n - factors + 1; i <= n && product > nothing; i++)
        product *= 1 - (long double)other / (long double)i;
    return product;
}

double tp_pass_at_k(int64_t n, int64_t c, int64_t k)
{
    return is_problem(n, c, k) ? (double)(1 - miss_all(n, c, k)) : NAN;
}

typedef struct {
    int64_t cluster;
    long double e; /* score minus mean */
} scored;

TP_ORDER(compare_scored, scored, TP_COMPARE(x->cluster, y->cluster))

/* Sums over clusters: of squared totals, and of products of different members. */
static void cluster_sums(const scored *v, size_t n, size_t *n_clusters, long double *totals,
                         long double *products)
{
    for (size_t i = 0, j; i < n; i = j, ++*n_clusters) {
        long double total = 0, squares = 0;
        for (j = i; j < n && v[j].cluster == v[i].cluster; j++) {
            total += v[j].e;
            squares += v[j].e * v[j].e;
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
    TP_FREED scored *v = tp_new(n, sizeof *v);
    for (size_t i = 0; i < n; i++)
        v[i] = (scored){cluster ? cluster[i] : (int64_t)i,
                        (long double)scores[i] - (long double)r.mean};
    qsort(v, n, sizeof *v, compare_scored);
    long double totals = 0, products = 0, m = (long double)n;
    cluster_sums(v, n, &r.n_clusters, &totals, &products);
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
