/* hamed_rao.c - what autocorrelation does to the variance of a trend's test and slope. */
#include <math.h>

#include "stats/descriptive.h"
#include "stats/order.h"
#include "stats/special.h"
#include "stats/trend_internal.h"

enum { LAGS_AT_ONCE = 8 }; /* their sums stay in registers */

/* ret[j] = sum of v_i v_{i+k+j}, each added up in the order of i. */
static void products_at_lags(const double *v, size_t n, size_t k, double ret[LAGS_AT_ONCE])
{
    double sum[LAGS_AT_ONCE] = {0};
    size_t whole = n > k + LAGS_AT_ONCE - 1 ? n - (k + LAGS_AT_ONCE - 1) : 0;
    for (size_t i = 0; i < whole; i++)
        for (size_t j = 0; j < LAGS_AT_ONCE; j++)
            sum[j] += v[i] * v[i + k + j];
    for (size_t j = 0; j < LAGS_AT_ONCE; j++) {
        for (size_t i = whole; i + k + j < n; i++)
            sum[j] += v[i] * v[i + k + j];
        ret[j] = sum[j];
    }
}

/* n / n* of Hamed and Rao (1998): 1 + 2 / (n(n-1)(n-2)) sum (n-k)(n-k-1)(n-k-2) r_k over
 * the lags whose rank autocorrelation is significant.  The ranks are centred in place. */
static double rank_correction(double *ranks, size_t n, double alpha)
{
    double m = (double)n, center = 0.5 * (m + 1), var = 0, sum = 0;
    double bound = tp_normal_isf(0.5 * alpha) / sqrt(m);
    size_t most = n - 1 < TP_MANN_KENDALL_LAGS ? n - 1 : TP_MANN_KENDALL_LAGS;
    for (size_t i = 0; i < n; i++) {
        ranks[i] -= center;
        var += ranks[i] * ranks[i];
    }
    for (size_t k = 1; k <= most; k += LAGS_AT_ONCE) {
        double products[LAGS_AT_ONCE];
        products_at_lags(ranks, n, k, products);
        for (size_t j = 0; j < LAGS_AT_ONCE && k + j <= most; j++) {
            double r = products[j] / var, left = m - (double)(k + j);
            if (fabs(r) > bound)
                sum += left * (left - 1) * (left - 2) * r;
        }
    }
    return 1 + 2 / (m * (m - 1) * (m - 2)) * sum;
}

tp_status tp_hamed_rao(const tp_point *points, size_t n, double slope, double alpha, double *ret,
                       tp_error *err)
{
    TP_FREED double *residuals = tp_scratch(2 * n);
    double *ranks = residuals + n;
    for (size_t i = 0; i < n; i++)
        residuals[i] = points[i].y - slope * points[i].x;
    TP_TRY(tp_midranks(residuals, n, ranks, NULL, err));
    *ret = rank_correction(ranks, n, alpha);
    return TP_OK;
}
