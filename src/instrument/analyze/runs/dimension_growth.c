/* dimension_growth.c - memory: does it grow over the run? */
#include <math.h>

#include "instrument/analyze/runs/dimension.h"
#include "stats/curves.h"
#include "stats/descriptive.h"
#include "stats/special.h"
#include "stats/trend.h"

enum { BLOCKS = 40, LEAST = 10 };

/* slope * length / median: what the line rises over the whole series, relative to its level.
 * Medians of blocks are nearly independent where steps are not. */
static void growth_of(const tp_curve *c, double level, tp_dimension_figures *f)
{
    double blocks[BLOCKS], at[BLOCKS], median;
    const double *x = c->value;
    size_t n = c->n;
    tp_theil_sen_result t;
    double r = tp_lag1_beside_lines(x, n, 1);
    size_t batches = tp_batch_count(n, r);
    size_t n_blocks = n < 2 * LEAST ? n : batches < LEAST ? LEAST : batches;
    if (n < LEAST) {
        snprintf(f->why, sizeof f->why, "needs %d values or more, got %zu", LEAST, n);
        return;
    }
    double steps = 1;
    if (tp_block_medians(c->step, n, n_blocks, at, NULL) == TP_OK)
        steps = tp_curve_scale(at, n_blocks);
    if (tp_block_medians(x, n, n_blocks, blocks, NULL) != TP_OK ||
        tp_theil_sen(at, blocks, n_blocks, level, &t, NULL) != TP_OK ||
        tp_median(x, n, &median, NULL) != TP_OK || median == 0) {
        snprintf(f->why, sizeof f->why, "the level is 0");
        return;
    }
    /* The last value stands for as many steps as the others do on average. */
    double length = (c->step[n - 1] - c->step[0]) * (double)n / (double)(n - 1);
    double span = length / steps / fabs(median);
    f->value = t.slope * span;
    /* What blocks still have in common, and where next to nothing is known of it. */
    double df = (double)n_blocks - 2, tail = 1 - (1 - level) / 2;
    double wider = sqrt(tp_batch_inflation(r, n, n / n_blocks)) *
                   tp_t_quantile(tail, tp_batch_df(r, n, df)) / tp_t_quantile(tail, df);
    f->lo = (t.slope - wider * (t.slope - t.lo)) * span;
    f->hi = (t.slope + wider * (t.hi - t.slope)) * span;
    if (tp_variance(blocks, n_blocks) == 0) /* nothing moves */
        f->lo = f->hi = 0;
    f->n = n;
    tp_dimension_input_number(f, "median", median);
    tp_dimension_input_number(f, "growth_per_step", t.slope / steps);
    snprintf(f->method, sizeof f->method, "Theil-Sen on medians of %zu blocks", n_blocks);
}

void tp_dimension_memory(const tp_dimension_question *q, tp_dimension_figures *f)
{
    TP_OWN(tp_curve) c = tp_curve_of(q->runs[0], TP_ROLE_MEMORY);
    if (!tp_dimension_has_metric(f, &c, "memory", TP_ROLE_MEMORY, TP_ROLE_MEMORY))
        return;
    tp_dimension_input_metric(f, "metric", &c);
    if (!tp_dimension_has_values(f, &c))
        return;
    double peak = c.value[0];
    for (size_t i = 1; i < c.n; i++)
        peak = fmax(peak, c.value[i]);
    growth_of(&c, q->level, f);
    tp_dimension_input_number(f, "peak", peak);
    snprintf(f->advice, sizeof f->advice,
             "'temper trace SNAPSHOT memory' names who holds what grew; look for lists that keep "
             "tensors over steps");
}
