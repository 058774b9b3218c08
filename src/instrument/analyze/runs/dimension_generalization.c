/* dimension_generalization.c - how far validation is above training, and since when it moves away.
 */
#include <math.h>
#include <stdlib.h>

#include "base/vec.h"
#include "instrument/analyze/runs/dimension.h"
#include "stats/curves.h"

enum { LEAST = 3, AT_THE_END = 5, WINDOW = 10 };

/* Mean of the training loss around an evaluation: one step alone is noise, and steps before it
 * alone are behind it as long as the loss falls. */
static double train_between(const tp_curve *train, double after, double until)
{
    long double sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < train->n; i++)
        if (train->step[i] > after && train->step[i] <= until) {
            sum += (long double)train->value[i];
            n++;
        }
    return n ? (double)(sum / n) : tp_curve_before(train, until);
}

static void gap_of(const tp_curve *train, const tp_curve *val, double level,
                   tp_dimension_figures *f)
{
    double *gap = tp_vec_new(val->n, sizeof *gap), *at = tp_vec_new(val->n, sizeof *at);
    size_t n = 0, onset;
    for (size_t i = 0; val->n > 1 && i < val->n; i++) {
        double period = i ? val->step[i] - val->step[i - 1] : val->step[1] - val->step[0];
        double base = train_between(train, val->step[i] - period / 2, val->step[i] + period / 2);
        if (isfinite(base) && base != 0) {
            at[n] = val->step[i];
            gap[n++] = (val->value[i] - base) / fabs(base);
        }
    }
    size_t fifth = n / 5 > AT_THE_END ? n / 5 : AT_THE_END, from = n > fifth ? n - fifth : 0;
    if (val->n < LEAST) {
        snprintf(f->why, sizeof f->why, "needs %d evaluations or more, got %zu", LEAST, val->n);
    } else if (n < LEAST) {
        snprintf(f->why, sizeof f->why,
                 "needs %d evaluations or more with a training loss other than 0, got %zu of %zu",
                 LEAST, n, val->n);
    } else {
        double r = tp_lag1_beside_bend(gap, n);
        tp_batch_mean m = tp_batch_mean_of(gap + from, n - from, r, level);
        f->value = m.mean;
        f->lo = m.ci.lo;
        f->hi = m.ci.hi;
        f->n = n - from;
        snprintf(f->method, sizeof f->method,
                 "mean gap of the last %zu evaluations, %zu batches, t%s", n - from, m.batches,
                 tp_batch_df_text(&m));
        tp_dimension_input_number(f, "last_gap", gap[n - 1]);
        /* Of neighbours that are alike ten say less than ten. */
        size_t window = (size_t)ceil(WINDOW * (1 + r) / (1 - r));
        /* 0.05 for all windows together: one of many rises by chance. */
        double alpha = n >= window ? 0.05 / (double)(n - window + 1) : 0;
        if (n >= window && tp_overfit_onset(gap, n, window, r, alpha, &onset, NULL) == TP_OK &&
            onset < n)
            tp_dimension_input_number(f, "overfitting_from_step", at[onset]);
    }
    free(gap);
    free(at);
}

void tp_dimension_generalization(const tp_dimension_question *q, tp_dimension_figures *f)
{
    TP_OWN(tp_curve) train = tp_curve_of(q->runs[0], TP_ROLE_LOSS);
    TP_OWN(tp_curve) val = tp_curve_of(q->runs[0], TP_ROLE_EVAL_LOSS);
    if (!tp_dimension_has_metric(f, &train, "training loss", TP_ROLE_LOSS, TP_ROLE_LOSS) ||
        !tp_dimension_has_metric(f, &val, "validation loss", TP_ROLE_EVAL_LOSS, TP_ROLE_EVAL_LOSS))
        return;
    tp_dimension_input_metric(f, "training", &train);
    tp_dimension_input_metric(f, "validation", &val);
    tp_dimension_input_other_sets(f, q->runs[0], val.tag);
    if (!tp_dimension_has_end(f, &train) || !tp_dimension_has_end(f, &val))
        return;
    gap_of(&train, &val, q->level, f);
    snprintf(f->advice, sizeof f->advice,
             "keep the checkpoint before overfitting_from_step; fewer epochs, more data, weight "
             "decay or dropout");
}
