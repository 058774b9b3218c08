/* run_band.c - means over runs, and how far to trust them. */
#include "instrument/report/run_band.h"

#include <math.h>
#include <stdlib.h>

#include "base/vec.h"
#include "stats/descriptive.h"

enum { MOST_PLACES = 120 };

size_t tp_run_band_thin(tp_aligned *v)
{
    size_t each = (v->n + MOST_PLACES - 1) / MOST_PLACES, n = each > 1 ? v->n / each : v->n;
    for (size_t r = 0; each > 1 && r <= v->n_a + v->n_b; r++) {
        bool is_place = r == v->n_a + v->n_b;
        const double *x = is_place ? v->place : v->value + r * v->n;
        double *ret = is_place ? v->place : v->value + r * n;
        for (size_t i = 0; i < n; i++)
            ret[i] = tp_mean(x + i * each, i + 1 == n ? v->n - i * each : each);
    }
    v->n = n;
    return each;
}

void tp_run_band_make(tp_run_band *b, const tp_aligned *v, size_t from, size_t runs, double level)
{
    TP_FREED double *at = tp_vec_new(runs, sizeof *at);
    *b = (tp_run_band){.place = tp_vec_new(v->n, sizeof *b->place),
                       .mean = tp_vec_new(v->n, sizeof *b->mean),
                       .lower = runs > 1 ? tp_vec_new(v->n, sizeof *b->lower) : NULL,
                       .upper = runs > 1 ? tp_vec_new(v->n, sizeof *b->upper) : NULL,
                       .n = v->n};
    for (size_t i = 0; i < v->n; i++) {
        for (size_t r = 0; r < runs; r++)
            at[r] = v->value[(from + r) * v->n + i];
        b->place[i] = v->place[i];
        b->mean[i] = tp_mean(at, runs);
        if (runs < 2)
            continue;
        tp_interval ci = tp_t_interval(b->mean[i], tp_sd(at, runs) / sqrt((double)runs),
                                       (double)runs - 1, level);
        b->lower[i] = ci.lo;
        b->upper[i] = ci.hi;
    }
}

tp_series tp_run_band_series(const tp_run_band *b, const char *name)
{
    return (tp_series){.name = name,
                       .x = b->place,
                       .y = b->mean,
                       .lower = b->lower,
                       .upper = b->upper,
                       .n = b->n,
                       .is_points = b->n == 1};
}

void tp_run_band_release(tp_run_band *b)
{
    free(b->place);
    free(b->mean);
    free(b->lower);
    free(b->upper);
    *b = (tp_run_band){0};
}
