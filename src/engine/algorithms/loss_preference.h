/* loss_preference.h - losses over pairs of a preferred and a rejected answer (DPO).
 *
 * With r = sum_t log p_t - log ref_t over the answer's tokens (their mean when averaging)
 * and d = r_chosen - r_rejected:
 *
 *     sigmoid   -(1 - e) log s(beta d) - e log s(-beta d)      e: label smoothing
 *     ipo       (d - 1 / (2 beta))^2
 *
 * L = w_pref mean over pairs of that + w_sft mean over pairs of -sum_t log p_t of the
 * chosen answer.  IPO is usually averaged (its margin is then per token). */
#ifndef TP_ENGINE_ALGORITHMS_LOSS_PREFERENCE_H
#define TP_ENGINE_ALGORITHMS_LOSS_PREFERENCE_H

#include <stdbool.h>
#include <stddef.h>

typedef enum { TP_PREFERENCE_SIGMOID, TP_PREFERENCE_IPO } tp_preference_kind;

typedef struct tp_preference_loss tp_preference_loss;
/* A choice of dpo.preference_loss: the loss of a pair of difference d, and its slope by d. */
typedef struct {
    const char *name;
    double (*loss)(const tp_preference_loss *o, double d, double *ret_slope);
} tp_preference_row;
extern const tp_preference_row tp_preference_kinds[]; /* by kind; closed by a NULL name */

struct tp_preference_loss {
    int kind; /* tp_preference_kind */
    double beta, label_smoothing;
    double preference_weight, sft_weight;
    bool average, sft_average; /* log-probabilities over an answer's tokens: mean, not sum */
};

/* Sums over the answers' tokens. */
typedef struct {
    double logp, ref;
    size_t n; /* tokens */
} tp_preference_side;

/* Sums over pairs. */
typedef struct {
    double loss, preference_loss, sft_loss; /* complete after the last pair */
    double accuracy;                        /* pairs with r_chosen > r_rejected */
    double reward_chosen, reward_rejected;  /* r: without beta */
    double logp_chosen, logp_rejected;
    double pairs;
} tp_preference_sums;

/* Add a pair, one of n_pairs of the whole step.  The gradient of every token's
 * log-probability is the same within a side: *ret_chosen, *ret_rejected. */
void tp_preference_loss_add(const tp_preference_loss *loss, double n_pairs,
                            const tp_preference_side *chosen, const tp_preference_side *rejected,
                            tp_preference_sums *sums, double *ret_chosen, double *ret_rejected);

#endif
