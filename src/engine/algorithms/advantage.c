/* advantage.c - advantages of groups of samples: the baselines and scales of the table in
 * advantage.h, reward shaping, whitening, clipping. */
#include "engine/algorithms/advantage.h"

#include <math.h>

const tp_advantage_kind tp_advantage_kinds[] = {
    {.name = "grpo",
     .baseline = TP_BASELINE_OTHERS,
     .spread = TP_SPREAD_GROUP,
     .has_leave_one_out = true,
     .has_normalize = true},
    {.name = "rloo", .baseline = TP_BASELINE_OTHERS},
    {.name = "dr_grpo", .baseline = TP_BASELINE_GROUP},
    {.name = "reinforce_plus_plus",
     .baseline = TP_BASELINE_GROUP,
     .spread = TP_SPREAD_BATCH,
     .has_minus_baseline = true},
    {.name = "raw_reward", .spread = TP_SPREAD_BATCH, .has_normalize = true},
    {.name = NULL},
};

tp_advantage_options tp_advantage_of_kind(int kind, bool leave_one_out, bool normalize,
                                          bool minus_baseline)
{
    const tp_advantage_kind *k = &tp_advantage_kinds[kind];
    tp_advantage_options o = {.baseline = k->baseline,
                              .spread = k->spread,
                              .epsilon = 1e-6,
                              .floor = 1e-9,
                              .clip_low = NAN,
                              .clip_high = NAN};
    if (k->has_leave_one_out && !leave_one_out)
        o.baseline = TP_BASELINE_GROUP;
    if (k->has_minus_baseline && !minus_baseline)
        o.baseline = TP_BASELINE_NONE;
    if (k->has_normalize && !normalize)
        o.spread = TP_SPREAD_NONE;
    return o;
}

/* Of the valid rewards but number `without` (n: of all).  Rewards are what a judge says, up to
 * 1e308: sums and squares need the exponents of long double. */
static tp_group_stats summary(const double *rewards, const bool *valid, size_t n, size_t without,
                              double floor)
{
    tp_group_stats s = {.is_flat = true};
    double largest = 1;
    long double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++)
        if (valid[i] && i != without) {
            s.n_valid++;
            sum += (long double)rewards[i];
            largest = fmax(largest, fabs(rewards[i]));
        }
    if (s.n_valid == 0)
        return s;
    s.mean = (double)(sum / s.n_valid);
    for (size_t i = 0; i < n; i++) {
        long double off = (long double)rewards[i] - (long double)s.mean;
        if (valid[i] && i != without)
            squares += off * off;
    }
    if (s.n_valid > 1)
        s.spread = (double)sqrtl(squares / (s.n_valid - 1));
    if (s.spread <= floor * largest)
        s.spread = 0;
    s.is_flat = s.spread == 0;
    return s;
}

tp_group_stats tp_group_summary(const double *rewards, const bool *valid, size_t n, double floor)
{
    return summary(rewards, valid, n, n, floor);
}

static double group_advantage(const tp_advantage_options *o, const tp_group_stats *all,
                              const double *rewards, const bool *valid, size_t n, size_t i)
{
    bool others = o->baseline == TP_BASELINE_OTHERS;
    if (o->baseline == TP_BASELINE_NONE)
        return rewards[i];
    /* Nobody to compare with, or everybody alike: the baseline is the reward itself. */
    if (all->is_flat)
        return 0;
    tp_group_stats s = others ? summary(rewards, valid, n, i, o->floor) : *all;
    long double advantage = (long double)rewards[i] - (long double)s.mean;
    if (o->spread == TP_SPREAD_GROUP && s.spread > 0)
        advantage /= (long double)(s.spread + o->epsilon);
    return (double)advantage;
}

void tp_advantage_group(const tp_advantage_options *o, const double *rewards, const bool *valid,
                        size_t n, double *ret)
{
    tp_group_stats all = tp_group_summary(rewards, valid, n, o->floor);
    for (size_t i = 0; i < n; i++)
        ret[i] = valid[i] ? group_advantage(o, &all, rewards, valid, n, i) : 0;
}

void tp_advantage_whiten(double *values, const double *weights, size_t n)
{
    long double sum = 0, mean = 0, variance = 0;
    for (size_t i = 0; i < n; i++) {
        sum += (long double)weights[i];
        mean += weights[i] != 0 ? (long double)weights[i] * (long double)values[i] : 0;
    }
    if (sum <= 0)
        return;
    mean /= sum;
    for (size_t i = 0; i < n; i++) {
        long double off = (long double)values[i] - mean;
        variance += weights[i] != 0 ? (long double)weights[i] * off * off : 0;
    }
    long double scale = 1 / sqrtl(fmaxl(variance / sum, 1e-8L));
    for (size_t i = 0; i < n; i++)
        values[i] = weights[i] != 0 ? (double)(((long double)values[i] - mean) * scale) : 0;
}

void tp_advantage_clip(const tp_advantage_options *o, double *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (values[i] < o->clip_low)
            values[i] = o->clip_low;
        if (values[i] > o->clip_high)
            values[i] = o->clip_high;
    }
}

double tp_reward_scale(const tp_reward_scaling *s, double reward)
{
    if (!s->enabled || isnan(reward))
        return reward;
    double clamped = fmin(fmax(reward, s->source_min), s->source_max);
    double share = (clamped - s->source_min) / (s->source_max - s->source_min);
    return s->target_min + share * (s->target_max - s->target_min);
}

double tp_reward_shape(const tp_reward_shaping *s, double reward, double length, bool truncated)
{
    if (!s->enabled || isnan(reward))
        return reward;
    if (!isnan(s->stop_properly_penalty_coef))
        return truncated ? reward * s->stop_properly_penalty_coef : reward;
    double free_length = s->max_response_length - s->overlong_buffer_length;
    double excess = (length - free_length) / s->overlong_buffer_length;
    return reward + fmin(-excess * s->overlong_buffer_penalty, 0);
}
