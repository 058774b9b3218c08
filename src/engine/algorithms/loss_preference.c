/* loss_preference.c - losses of pairs and their derivative by the log-probabilities, in closed
 * form. */
#include "engine/algorithms/loss_preference.h"

#include <math.h>

/* log(1 / (1 + e^-x)) without overflow. */
static double log_sigmoid(double x) { return x < 0 ? x - log1p(exp(x)) : -log1p(exp(-x)); }

static double sigmoid(double x) { return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x)); }

static double sigmoid_loss(const tp_preference_loss *o, double d, double *ret_slope)
{
    double e = o->label_smoothing, x = o->beta * d;
    *ret_slope = o->beta * (-(1 - e) * sigmoid(-x) + e * sigmoid(x));
    return -(1 - e) * log_sigmoid(x) - e * log_sigmoid(-x);
}

static double ipo_loss(const tp_preference_loss *o, double d, double *ret_slope)
{
    double off = d - 1 / (2 * o->beta);
    *ret_slope = 2 * off;
    return off * off;
}

const tp_preference_row tp_preference_kinds[] = {
    [TP_PREFERENCE_SIGMOID] = {"sigmoid", sigmoid_loss},
    [TP_PREFERENCE_IPO] = {"ipo", ipo_loss},
    {NULL, NULL}};

static double length(const tp_preference_side *side, bool average)
{
    return average && side->n > 0 ? (double)side->n : 1;
}

void tp_preference_loss_add(const tp_preference_loss *o, double n_pairs,
                            const tp_preference_side *chosen, const tp_preference_side *rejected,
                            tp_preference_sums *sums, double *ret_chosen, double *ret_rejected)
{
    double n_chosen = length(chosen, o->average), n_rejected = length(rejected, o->average);
    double r_chosen = (chosen->logp - chosen->ref) / n_chosen;
    double r_rejected = (rejected->logp - rejected->ref) / n_rejected;
    double slope, share = 1 / n_pairs;
    double loss = tp_preference_kinds[o->kind].loss(o, r_chosen - r_rejected, &slope);
    double sft_length = length(chosen, o->sft_average);
    sums->preference_loss += share * loss;
    sums->sft_loss += share * -chosen->logp / sft_length;
    sums->loss = o->preference_weight * sums->preference_loss;
    if (o->sft_weight != 0) /* -inf of a term that does not count must not spread */
        sums->loss += o->sft_weight * sums->sft_loss;
    sums->accuracy += r_chosen > r_rejected;
    sums->reward_chosen += r_chosen;
    sums->reward_rejected += r_rejected;
    sums->logp_chosen += chosen->logp;
    sums->logp_rejected += rejected->logp;
    sums->pairs += 1;
    *ret_chosen = share * (o->preference_weight * slope / n_chosen - o->sft_weight / sft_length);
    *ret_rejected = -share * o->preference_weight * slope / n_rejected;
}
