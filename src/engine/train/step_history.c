/* step_history.c - rings of numbers, and order statistics of them. */
#include "engine/train/guards.h"

#include <math.h>

#include "base/platform.h"
#include "stats/descriptive.h"
#include "stats/order.h"

void tp_step_history_add(tp_step_history *h, double x) { h->v[h->n++ % TP_STEP_HISTORY] = x; }

int64_t tp_step_history_length(const tp_step_history *h, int64_t window)
{
    return TP_MIN(TP_MIN(h->n, window), TP_STEP_HISTORY);
}

double tp_step_history_at(const tp_step_history *h, int64_t length, int64_t i)
{
    return h->v[(h->n - length + i) % TP_STEP_HISTORY];
}

static int64_t sort(const tp_step_history *h, int64_t window, double out[TP_STEP_HISTORY])
{
    int64_t n = tp_step_history_length(h, window);
    for (int64_t i = 0; i < n; i++)
        out[i] = tp_step_history_at(h, n, i);
    tp_sort(out, (size_t)n);
    return n;
}

double tp_step_history_percentile(const tp_step_history *h, int64_t window, double percent)
{
    double sorted[TP_STEP_HISTORY];
    int64_t n = sort(h, window, sorted), at = (int64_t)(percent / 100 * (double)n);
    return n ? sorted[TP_MIN(at, n - 1)] : NAN;
}

double tp_step_history_spike(const tp_step_history *h, int64_t window, double x)
{
    double sorted[TP_STEP_HISTORY];
    int64_t n = sort(h, window, sorted);
    if (n < TP_SPIKE_LEAST)
        return NAN;
    double median = tp_median_sorted(sorted, (size_t)n);
    double spread = 1.4826 * tp_mad_in_place(sorted, (size_t)n);
    return (x - median) / fmax(spread, 0.01 * fabs(median));
}
