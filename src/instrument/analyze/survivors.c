/* survivors.c - memory that survives steps, group by group: Mann-Kendall and Theil-Sen, p
 * adjusted by Benjamini and Hochberg. */
#include "instrument/analyze/survivors.h"

#include <math.h>
#include <stdlib.h>

#include "base/vec.h"
#include "instrument/analyze/kernels.h"
#include "instrument/analyze/leak.h"
#include "stats/adjust.h"

enum { AGE = 2, MOST_CELLS = 1 << 24 };
static const double ALPHA = 0.01;

/* Surviving bytes of every group at the end of every step, from differences. */
static int64_t *count_survivors(const tp_allocation *v, size_t n, size_t n_groups, size_t n_steps)
{
    int64_t *cells = tp_vec_new(n_groups * (n_steps + 1), sizeof *cells);
    for (size_t i = 0; i < n; i++) {
        int64_t *row = cells + v[i].group * (n_steps + 1);
        size_t from = (size_t)v[i].from + AGE;
        size_t to = v[i].to < n_steps ? v[i].to : n_steps;
        if (from >= n_steps || to <= from)
            continue;
        row[from] = tp_add_saturating(row[from], v[i].bytes);
        row[to] = tp_subtract_saturating(row[to], v[i].bytes);
    }
    for (size_t g = 0; g < n_groups; g++)
        for (size_t s = 1; s < n_steps; s++) {
            int64_t *row = cells + g * (n_steps + 1);
            row[s] = tp_add_saturating(row[s], row[s - 1]);
        }
    return cells;
}

static bool has_survivors(const int64_t *row, size_t n_steps)
{
    for (size_t s = 0; s < n_steps; s++)
        if (row[s] > 0)
            return true;
    return false;
}

static int by_evidence(const void *a, const void *b)
{
    const tp_survivor_row *x = a, *y = b;
    if (isnan(x->p) != isnan(y->p))
        return isnan(x->p) ? 1 : -1;
    if (!isnan(x->p) && x->p != y->p)
        return x->p < y->p ? -1 : 1;
    return x->slope < y->slope ? 1 : x->slope > y->slope ? -1 : 0;
}

static tp_status test_groups(const int64_t *cells, size_t n_groups, size_t n_steps, double *y,
                             tp_survivors *r, tp_error *err)
{
    size_t cap = 0;
    for (size_t g = 0; g < n_groups; g++) {
        const int64_t *row = cells + g * (n_steps + 1);
        size_t used = n_steps > TP_LEAK_MIN_WARM_UP ? n_steps - TP_LEAK_MIN_WARM_UP : 0;
        if (n_steps == 0 || !has_survivors(row, n_steps))
            continue;
        for (size_t s = 0; s < used; s++)
            y[s] = (double)row[s + TP_LEAK_MIN_WARM_UP];
        r->rows = tp_vec_room(r->rows, &cap, r->n + 1, sizeof *r->rows);
        tp_survivor_row *out = &r->rows[r->n++];
        *out = (tp_survivor_row){.group = (uint32_t)g, .last_bytes = row[n_steps - 1]};
        TP_TRY(tp_leak_group(y, used, &out->p, &out->slope, err));
    }
    double *p = y; /* as many groups as there may be: sized by the caller */
    for (size_t i = 0; i < r->n; i++)
        p[i] = r->rows[i].p;
    if (r->n)
        TP_TRY(tp_adjust(TP_ADJUST_BH, p, r->n, p, err));
    for (size_t i = 0; i < r->n; i++) {
        r->rows[i].p = p[i];
        r->rows[i].is_growing = p[i] < ALPHA && r->rows[i].slope > 0;
    }
    if (r->n)
        qsort(r->rows, r->n, sizeof *r->rows, by_evidence);
    return TP_OK;
}

tp_status tp_survivors_make(const tp_allocation *v, size_t n, size_t n_groups, size_t n_steps,
                            tp_survivors *ret, tp_error *err)
{
    tp_survivors r = {.n_steps = n_steps};
    if (n_groups && n_steps >= MOST_CELLS / n_groups)
        return tp_fail(err, TP_ERR_UNSUPPORTED,
                       "%zu groups in %zu steps are too many to test for leaks", n_groups, n_steps);
    TP_FREED int64_t *cells = count_survivors(v, n, n_groups, n_steps);
    TP_FREED double *y = tp_vec_new(n_steps + n_groups, sizeof *y);
    TP_HAND_OVER(test_groups(cells, n_groups, n_steps, y, &r, err), ret, r,
                 tp_survivors_release(&r));
}

void tp_survivors_release(tp_survivors *s)
{
    free(s->rows);
    *s = (tp_survivors){0};
}
