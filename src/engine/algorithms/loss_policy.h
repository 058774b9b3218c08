/* loss_policy.h - the clipped policy gradient as a function of log-probabilities.
 *
 * One call looks at whole sequences of trained tokens and adds their share of
 *
 *     L = reduce_t[ w_t max(-A_t r_t, -A_t clip(r_t)) ] + beta reduce_t[ KL_t ]
 *
 * and dL/dlog p_t of each token, exactly, in double.  With lp the present
 * log-probability, prev the one when the rollout was made, gen the generator's, ref the
 * reference model's:
 *
 *     r      exp(lp - prev), or of the sequence's mean (GSPO), or lp itself (REINFORCE)
 *     clip   to [1 - clip_min, 1 + clip_max]; dual clip: not above -A c where A < 0
 *     CISPO  -A sg(clip(r)) lp in place of the maximum
 *     w      exp(prev - gen), cut as `truncation` says; 1 without the correction
 *     KL     k1, k2 or k3 of ref - lp, times exp(lp - sg(lp)) or exp(lp - gen), both of
 *            which let the gradient of the sampling probability through unless told not to,
 *            or where ref - lp is clamped
 *
 * Reductions divide by counts of the whole optimizer step, so that sequences may be
 * distributed over micro-batches in any way. */
#ifndef TP_ENGINE_ALGORITHMS_LOSS_POLICY_H
#define TP_ENGINE_ALGORITHMS_LOSS_POLICY_H

#include <stdbool.h>
#include <stddef.h>

typedef enum { TP_RATIO_TOKEN, TP_RATIO_SEQUENCE, TP_RATIO_NONE, TP_RATIO_ON_POLICY } tp_ratio;
typedef enum { TP_KL_K1, TP_KL_K2, TP_KL_K3 } tp_kl_type;
typedef enum {
    TP_TRUNCATE_NONE,     /* no choice, null */
    TP_TRUNCATE_CLAMP,    /* tis: into [min, max] */
    TP_TRUNCATE_ZERO,     /* icepop: outside becomes 0 */
    TP_TRUNCATE_SEQUENCES /* seq-mask-tis: sequences whose geometric mean is outside become 0 */
} tp_truncation;

/* A choice of loss_fn.reference_policy_kl_type: k of x, and dk/dx. */
typedef struct {
    const char *name;
    double (*k)(double x, double *ret_slope);
} tp_kl_row;
extern const tp_kl_row tp_kl_types[]; /* by tp_kl_type; closed by a NULL name */
/* loss_fn.truncated_importance_sampling_type, from TP_TRUNCATE_NONE + 1 on; closed by NULL */
extern const char *const tp_truncations[];

typedef struct {
    tp_ratio ratio;
    double clip_min, clip_max;
    double dual_clip; /* NaN: none; else > 1 */
    bool cispo;
    bool token_level;      /* else the mean over sequences of their token means */
    double length_divisor; /* NaN: none; else sequences are summed and divided by this many
                              tokens each, whatever their length (DR-GRPO) */
    bool correction;       /* multiply by w */
    tp_truncation truncation;
    double truncate_min, truncate_max;      /* min NaN: 0 */
    double kl_penalty;                      /* beta */
    int kl_type;                            /* tp_kl_type */
    double kl_input_clamp, kl_output_clamp; /* NaN: none */
    bool kl_from_generator;                 /* weight exp(lp - gen) */
    bool kl_without_sampling;               /* the weight has no gradient of its own */
    double positive_nll;                    /* weight of -lp on sequences of positive reward */
} tp_policy_loss;

/* n tokens of one sequence, all trained. */
typedef struct {
    const float *logp;
    const float *prev;      /* NULL: as logp, on policy */
    const float *gen, *ref; /* ref NULL without a reference (then no KL) */
    const double *advantage;
    size_t n;
    bool is_positive; /* reward above 0 */
} tp_policy_sequence;

/* Of the whole optimizer step. */
typedef struct {
    double tokens, sequences;
    double positive_tokens; /* of sequences of positive reward */
} tp_policy_norm;

/* Sums over the calls of a step.  Parts of the loss are divided as it is, kl and nll before they
 * are weighed; they are complete after an update's last call.  What is a mean in reports is else a
 * sum over tokens here; `importance` in sequence mode is one over sequences, `outside` counts
 * tokens or sequences out of truncation's bounds. */
#define TP_POLICY_SUMS(S)                                                                      \
    S(loss)                                                                                    \
    S(actor_loss) S(kl) S(nll) S(tokens) S(sequences) S(ratio) S(ratio_clipped) S(clipped_low) \
        S(clipped_high) S(dual_clipped) S(mult_error) S(gen_kl) S(policy_kl) S(js) S(entropy)  \
            S(importance) S(outside)
#define TP_POLICY_LEAST(S) S(ratio_min) S(ratio_clipped_min)
#define TP_POLICY_MOST(S) \
    S(ratio_max) S(ratio_clipped_max) S(max_logp_difference) /* |gen - prev| */
typedef struct {
#define TP_MEMBER(name) double name;
    TP_POLICY_SUMS(TP_MEMBER)
    TP_POLICY_LEAST(TP_MEMBER)
    TP_POLICY_MOST(TP_MEMBER)
#undef TP_MEMBER
} tp_policy_sums;
void tp_policy_sums_init(tp_policy_sums *sums);
/* Those of another part of the same step. */
void tp_policy_sums_merge(tp_policy_sums *total, const tp_policy_sums *part);

/* Add one sequence; ret_gradient[n] = dL/dlog p_t. */
void tp_policy_loss_add(const tp_policy_loss *loss, const tp_policy_norm *norm,
                        const tp_policy_sequence *s, tp_policy_sums *sums, double *ret_gradient);

/* KL of one token by its log-probabilities: k1 = -x, k2 = x^2/2, k3 = e^x - 1 - x of
 * x = ref - lp.  *ret_slope (may be NULL) = d/dlp. */
double tp_policy_kl(const tp_policy_loss *loss, double lp, double ref, double *ret_slope);

#endif
