/* curve.h - a run's figures by what they mean, and honest intervals of a series.
 *
 * The same quantity has other names in other programs; a role has them all.  Neighbouring steps are
 * alike, so an interval from n steps as if they were n observations is far too narrow: means of
 * consecutive batches, longer than the memory of the series, take their place. */
#ifndef TP_INSTRUMENT_ANALYZE_RUNS_CURVE_H
#define TP_INSTRUMENT_ANALYZE_RUNS_CURVE_H

#include "stats/common.h"
#include "temper/analysis.h"

typedef enum {
    TP_ROLE_LOSS,
    TP_ROLE_REWARD,
    TP_ROLE_EVAL_LOSS,
    TP_ROLE_MEMORY,
    TP_ROLE_STEP_TIME,
    TP_ROLE_TRAIN_RATE, /* tokens or samples per second */
    TP_ROLE_OWN_RATE,   /* the same without what others on the machine took, where it is known */
    TP_ROLE_INFERENCE_RATE,
    TP_ROLE_INFERENCE_TIME,
    TP_ROLE_UTILIZATION,  /* model FLOP/s over the peak's; 0 to 1, or percent where the name says so
                           */
    TP_ROLE_OF_PRODUCT,   /* the same over the best product that was measured */
    TP_ROLE_OF_ROOFLINE,  /* least time of the work over what it took */
    TP_ROLE_POWER,        /* W */
    TP_ROLE_MEMORY_SHARE, /* of the memory that the run may have */
    TP_ROLE_KL,
    TP_ROLE_ENTROPY,
    TP_ROLE_CLIP_FRACTION,
    TP_ROLE_LENGTH, /* of answers, in tokens */
    TP_ROLE_GRAD_NORM,
    TP_ROLE_LEARNING_RATE,
    TP_ROLE_ACCURACY, /* of validation */
    TP_ROLE_DATA,     /* tells one batch from another */
    TP_ROLE_COUNT
} tp_run_role;

/* Finite values in the order of their steps; `tag` belongs to the run. */
typedef struct {
    const char *tag; /* NULL: the run has none; one without a finite value has n 0 */
    double *step, *value;
    size_t n;
    size_t n_odd; /* NaN or infinite, left out */
    bool is_lost; /* the last value is one of them */
} tp_curve;

tp_curve tp_curve_of(tp_metrics *m, tp_run_role role);
tp_curve tp_curve_at(tp_metrics *m, size_t index);
/* What is learned from: the reward where there is one, for the loss of reinforcement learning is a
 * surrogate near 0. */
tp_curve tp_curve_learned(tp_metrics *m, bool *ret_is_reward);
/* tp_curve_of() with NaN where values are not finite, counted in n: gaps of a picture. */
tp_curve tp_curve_drawn(tp_metrics *m, tp_run_role role);
/* Which further metrics of the role there are beside `tag`, as "a, b and 2 more"; "" where it has
 * none. */
void tp_curve_others(tp_metrics *m, tp_run_role role, const char *tag, char *out, size_t size);
/* The last value of the role, which may be NaN, and the step of that; false when there is none. */
bool tp_curve_last(tp_metrics *m, tp_run_role role, double *ret_step, double *ret_value);
void tp_curve_release(tp_curve *c);
/* "train/loss, loss, ...": what is looked for. */
const char *tp_role_names(tp_run_role role, char *out, size_t size);
/* Which of the role's names the tag has, 0 being the first choice; -1: none. */
int tp_role_rank(tp_run_role role, const char *tag);
/* The metric with the most finite values of those that may be it, or the first; SIZE_MAX: none. */
size_t tp_role_find(tp_metrics *m, tp_run_role role);

/* The metric that another program, or another log of the same one, calls `tag`: itself, else by
 * transformers' two spellings, else by the names of a role whose unit they share.  SIZE_MAX: none.
 */
size_t tp_curve_same(const tp_metrics *m, const char *tag);

/* Every metric, loss, reward and the like first; `ret` has tp_metrics_count() numbers.  Returns how
 * many those first ones are. */
size_t tp_curve_order(tp_metrics *m, size_t *ret);

/* Rising places moved and scaled, so that they begin at 0 and lie 1 apart on average.  Returns what
 * 1 was. */
double tp_curve_scale(double *at, size_t n);

/* The value whose step is nearest at or below; NaN before the first. */
double tp_curve_before(const tp_curve *c, double step);

/* Mean of a series whose neighbours are correlated by r, from batches of at least four times its
 * memory (1 + r) / (1 - r); 5 to 40 of them.  What batches of that length still have in common is
 * added to their variance. */
typedef struct {
    double mean;
    tp_interval ci;
    double p; /* that the mean is 0; two-sided */
    size_t n, batches;
    double df;
} tp_batch_mean;
tp_batch_mean tp_batch_mean_of(const double *x, size_t n, double r, double level);
size_t tp_batch_count(size_t n, double r);
/* The variance of the mean over what means of `length` neighbours say of it, 1 or more. */
double tp_batch_inflation(double r, size_t n, size_t length);
/* `df`, or 1 where neighbours are so alike that n of them hardly say how far the mean may be off:
 * r above 0.5, and fewer than 8 effective values. */
double tp_batch_df(double r, size_t n, double df);
const char *tp_batch_df_text(const tp_batch_mean *m); /* what is said of that after "t" */
/* r where the course of the series may be any, from up to five pieces of 20 or more. */
double tp_batch_lag1(const double *x, size_t n);

/* Is more of it better (1), less (-1), or does nobody know (0)?  By the words of the name. */
int tp_metric_direction(const char *tag);

#endif
