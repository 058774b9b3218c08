/* advantage.h - from the rewards of a step to what each token is pushed by.
 *
 * Samples come in groups of one prompt.  A sample takes part (in baselines, spreads
 * and the loss) while `valid`; what it may lose on the way is its place in the loss
 * only, `trained`: a truncated sample under overlong filtering still counts in the
 * baseline.  All sums are two-pass and in double; a spread below a floor counts as none,
 * so that rounding never becomes a direction.
 *
 *     rewards -> scale -> shape -> [dynamic sampling, by the spread before shaping]
 *             -> estimator -> clip -> per token
 *
 * Estimators are rows of a table: what is subtracted, what it is divided by.
 *
 *     grpo                 mean of the group, or of the others (leave one out); spread
 *                          of the same samples when rewards are normalised
 *     rloo                 mean of the others; nothing
 *     dr_grpo              mean of the group; nothing
 *     reinforce_plus_plus  mean of the group (or nothing); spread over the batch's tokens
 *     raw_reward           nothing; spread over the batch's tokens (or nothing) */
#ifndef TP_ENGINE_ALGORITHMS_ADVANTAGE_H
#define TP_ENGINE_ALGORITHMS_ADVANTAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum { TP_BASELINE_NONE, TP_BASELINE_GROUP, TP_BASELINE_OTHERS } tp_advantage_baseline;
typedef enum { TP_SPREAD_NONE, TP_SPREAD_GROUP, TP_SPREAD_BATCH } tp_spread;

typedef struct {
    const char *name; /* a choice of grpo.adv_estimator.name */
    tp_advantage_baseline baseline;
    tp_spread spread;
    /* Which keys of grpo.adv_estimator it obeys. */
    bool has_leave_one_out;  /* else the group takes the place of the others */
    bool has_normalize;      /* else nothing is divided by */
    bool has_minus_baseline; /* else nothing is subtracted */
} tp_advantage_kind;

extern const tp_advantage_kind tp_advantage_kinds[]; /* closed by a NULL name */

typedef struct {
    tp_advantage_baseline baseline;
    tp_spread spread;
    double epsilon; /* added to a group's spread; 1e-6 */
    double floor;   /* spreads up to this share of the largest |reward| (or of 1) are none */
    double clip_low, clip_high; /* NaN: no clipping */
} tp_advantage_options;

/* The options of a table row; leave_one_out, normalize and minus_baseline change the rows
 * that have such a choice. */
tp_advantage_options tp_advantage_of_kind(int kind, bool leave_one_out, bool normalize,
                                          bool minus_baseline);

/* What a group of n rewards looks like.  `spread` is the sample deviation of the valid
 * ones, 0 when it is below the floor; both are 0 without valid rewards. */
typedef struct {
    size_t n_valid;
    double mean, spread;
    bool is_flat; /* fewer than two valid rewards, or no spread: nothing to learn */
} tp_group_stats;
tp_group_stats tp_group_summary(const double *rewards, const bool *valid, size_t n, double floor);

/* One advantage per sample of one group; 0 for those that are not valid.  TP_SPREAD_BATCH is
 * left to tp_advantage_whiten(). */
void tp_advantage_group(const tp_advantage_options *options, const double *rewards,
                        const bool *valid, size_t n, double *ret);

/* Mean 0 and variance 1 over the entries of `values` whose weight is not 0 (a variance
 * below 1e-8 counts as 1e-8). */
void tp_advantage_whiten(double *values, const double *weights, size_t n);
void tp_advantage_clip(const tp_advantage_options *options, double *values, size_t n);

/* ---- rewards ---- */

typedef struct {
    bool enabled;
    double source_min, source_max, target_min, target_max; /* linear after clamping */
} tp_reward_scaling;
double tp_reward_scale(const tp_reward_scaling *scaling, double reward);

/* Length shaping (DAPO), or a factor for answers that were cut off. */
typedef struct {
    bool enabled;
    double overlong_buffer_length, overlong_buffer_penalty, max_response_length;
    double stop_properly_penalty_coef; /* NaN: not used */
} tp_reward_shaping;
double tp_reward_shape(const tp_reward_shaping *shaping, double reward, double length,
                       bool truncated);

#endif
