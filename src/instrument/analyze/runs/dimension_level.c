/* dimension_level.c - training, inference and efficiency: levels of a series, and how they moved.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/strings.h"
#include "base/vec.h"
#include "instrument/analyze/runs/dimension.h"
#include "stats/curves.h"
#include "stats/descriptive.h"
#include "stats/special.h"

/* Variance of a part's mean, from batches of what is left of it beside its trend. */
static double variance_of_mean(const double *x, size_t n, double r, double *ret_df)
{
    double means[64];
    TP_FREED double *y = tp_vec_new(n, sizeof *y);
    (void)tp_beside_line(x, n, y);
    size_t batches = tp_batch_count(n, r);
    tp_batch_means(y, n, batches, means);
    double df = (double)batches - 2; /* the slope took one */
    double v = tp_variance(means, batches) * ((double)batches - 1) / df / (double)batches *
               tp_batch_inflation(r, n, n / batches);
    *ret_df = tp_batch_df(r, n, df);
    return v;
}

/* (last - first) / |first|, its variance by the delta method, Satterthwaite's degrees of freedom.
 */
static void improvement_of(const double *x, size_t n, bool more_is_better, double level,
                           tp_dimension_figures *f)
{
    size_t fifth = n / 5;
    if (fifth < 5) {
        snprintf(f->why, sizeof f->why, "needs 25 steps or more, got %zu", n);
        return;
    }
    double df_first, df_last, first = tp_mean(x, fifth), last = tp_mean(x + n - fifth, fifth);
    if (first == 0) {
        snprintf(f->why, sizeof f->why,
                 "the mean of the first fifth is 0 and no share of it can be told; that of the "
                 "last is %.6g",
                 last);
        return;
    }
    double alike = tp_batch_lag1(x, n);
    double v_first = variance_of_mean(x, fifth, alike, &df_first);
    double v_last = variance_of_mean(x + n - fifth, fifth, alike, &df_last);
    double sign = more_is_better ? 1 : -1, r = last / first;
    double a = v_last / (first * first), b = r * r * v_first / (first * first);
    double share = a / (a + b), rest = b / (a + b);
    double df = 1 / (share * share / df_last + rest * rest / df_first);
    if (!isfinite(r) || !isfinite(a + b)) {
        snprintf(f->why, sizeof f->why, "its values, or their squares, are %s than a number holds",
                 fabs(first) < 1 && fabs(last) < 1 ? "less" : "more");
        f->has_failed = true;
        return;
    }
    f->value = sign * (last - first) / fabs(first);
    f->n = n;
    tp_dimension_input_number(f, "first_fifth", first);
    tp_dimension_input_number(f, "last_fifth", last);
    if (a + b == 0) {
        f->lo = f->hi = f->value;
        snprintf(f->method, sizeof f->method,
                 "means of batches in the first and last fifth, which do not differ");
        return;
    }
    double half = tp_t_quantile(1 - (1 - level) / 2, df) * sqrt(a + b);
    f->lo = f->value - half;
    f->hi = f->value + half;
    snprintf(
        f->method, sizeof f->method,
        "means of batches around the trend of the first and last fifth, delta method, t with %.1f "
        "df",
        df);
}

void tp_dimension_training(const tp_dimension_question *q, tp_dimension_figures *f)
{
    bool more;
    TP_OWN(tp_curve) c = tp_curve_learned(q->runs[0], &more);
    if (!tp_dimension_has_metric(f, &c, "training", TP_ROLE_LOSS, TP_ROLE_REWARD))
        return;
    tp_dimension_input_metric(f, "metric", &c);
    if (!tp_dimension_has_end(f, &c))
        return;
    improvement_of(c.value, c.n, more, q->level, f);
    snprintf(f->advice, sizeof f->advice,
             c.n_odd ? "values are not finite: find the first with 'temper metrics', lower the "
                       "learning rate, clip gradients"
                     : "raise the learning rate or train longer; look at grad_norm and at whether "
                       "the data repeats");
}

/* A share of the peak above 1 is none: percent under a name that does not say so, or a wrong peak.
 */
static void check_share(const char *tag, tp_dimension_figures *f)
{
    if (!(f->value > 1))
        return;
    snprintf(f->why, sizeof f->why,
             "the mean of %s is %.4g%s, and nothing is faster than the peak: log a share of 1, or "
             "percent under a name with %% such as mfu(%%)",
             tag, f->value, strchr(tag, '%') ? " times the peak" : "");
    f->has_failed = true;
    f->value = f->lo = f->hi = NAN;
}

static void level_of(const tp_curve *c, double scale, double level, tp_dimension_figures *f)
{
    tp_batch_mean m =
        tp_batch_mean_of(c->value, c->n, tp_lag1_beside_lines(c->value, c->n, 1), level);
    f->value = m.mean * scale;
    f->lo = m.ci.lo * scale;
    f->hi = m.ci.hi * scale;
    f->n = c->n;
    if (m.batches)
        snprintf(f->method, sizeof f->method, "mean over %zu batches of steps, t%s", m.batches,
                 tp_batch_df_text(&m));
    else
        snprintf(f->method, sizeof f->method, "mean of %zu value%s; an interval needs three", c->n,
                 tp_plural(c->n));
}

void tp_dimension_inference(const tp_dimension_question *q, tp_dimension_figures *f)
{
    TP_OWN(tp_curve) rate = tp_curve_of(q->runs[0], TP_ROLE_INFERENCE_RATE);
    TP_OWN(tp_curve) time = tp_curve_of(q->runs[0], TP_ROLE_INFERENCE_TIME);
    /* A rate that was never finite hides no time that was. */
    bool is_rate = rate.n || (rate.tag && !time.n);
    const tp_curve *c = is_rate ? &rate : &time;
    if (!tp_dimension_has_metric(f, c, "the speed of generation or evaluation",
                                 TP_ROLE_INFERENCE_RATE, TP_ROLE_INFERENCE_TIME))
        return;
    tp_dimension_input_metric(f, "metric", c);
    if (!tp_dimension_has_values(f, c))
        return;
    level_of(c, 1, q->level, f);
    tp_dimension_input_text(f, "unit", is_rate ? "per second: more is better" : "s");
    if (!is_rate) { /* as a rate, so that one direction holds for both */
        double lo = f->lo;
        f->value = 1 / f->value;
        f->lo = 1 / f->hi;
        f->hi = lo > 0 ? 1 / lo : INFINITY; /* a time that may be 0 */
        tp_dimension_input_text(f, "value", "1 / mean time");
    }
    snprintf(
        f->advice, sizeof f->advice,
        "'temper profile' and 'temper trace' show where the time goes; larger batches, shorter "
        "limits of length");
}

/* What lies beside the value, where the run has it: the mean. */
static double put_mean(tp_dimension_figures *f, tp_metrics *m, tp_run_role role, const char *key)
{
    TP_OWN(tp_curve) c = tp_curve_of(m, role);
    if (!c.n)
        return NAN;
    double mean = tp_mean(c.value, c.n);
    if (key)
        tp_dimension_input_number(f, key, mean);
    return mean;
}

void tp_dimension_efficiency(const tp_dimension_question *q, tp_dimension_figures *f)
{
    TP_OWN(tp_curve) c = tp_curve_of(q->runs[0], TP_ROLE_UTILIZATION);
    if (!tp_dimension_has_metric(f, &c, "FLOP/s against the peak", TP_ROLE_UTILIZATION,
                                 TP_ROLE_UTILIZATION))
        return;
    tp_dimension_input_metric(f, "metric", &c);
    if (!tp_dimension_has_values(f, &c))
        return;
    level_of(&c, strchr(c.tag, '%') ? 0.01 : 1, q->level, f);
    check_share(c.tag, f);
    (void)put_mean(f, q->runs[0], TP_ROLE_OF_PRODUCT, "of_best_product");
    (void)put_mean(f, q->runs[0], TP_ROLE_OF_ROOFLINE, "of_roofline");
    double watts = put_mean(f, q->runs[0], TP_ROLE_POWER, "watts");
    double rate = put_mean(f, q->runs[0], TP_ROLE_TRAIN_RATE, NULL);
    if (watts > 0 && rate > 0)
        tp_dimension_input_number(f, "joules_per_token", watts / rate);
    snprintf(
        f->advice, sizeof f->advice,
        "'temper profile' names the operators below the roofline; larger micro-batches, packed "
        "sequences, bf16");
}
