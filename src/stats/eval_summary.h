/* eval_summary.h - many samples per prompt, in a few numbers that say how sure they are.
 *
 * The question is the unit of replication: samples of one prompt are a cluster, and so
 * are prompts that ask the same.  pass@k is the mean over prompts of the unbiased estimate 1 -
 * C(n-c, k) / C(n, k) in product form. Its standard error is that over prompts; since it lies in
 * [0, 1] the interval is Wilson's score interval at the effective number of prompts, p (1-p) / se^2
 * with the degrees of freedom of the prompts (Korn and Graubard 1998), which stays inside [0, 1]
 * and does not shrink to a point when every prompt is right, or nearly: of m prompts that number is
 * at most m, or m times m p (1-p) where that is more.  Mean rewards get Student's.
 *
 * Two evaluations of the same prompts are compared prompt by prompt: what both find hard
 * cancels. */
#ifndef TP_STATS_EVAL_SUMMARY_H
#define TP_STATS_EVAL_SUMMARY_H

#include "stats/verdict.h"
#include "text/json/json.h"

/* What is counted of one prompt. */
typedef struct {
    const char *id;         /* not owned */
    const char *question;   /* not owned; prompts with equal ones are a cluster.  NULL: like no
                               other */
    int64_t n, correct;     /* samples with a verdict, and those of them that were right */
    int64_t excluded;       /* samples without one */
    int64_t n_rewarded;     /* of the n, with a reward above 0; negative: not known */
    long double reward_sum; /* of the n */
    double majority;        /* 1 if the most frequent answer is right, else 0; NaN: no answers.
                               Ties count their share: two answers, one right, is 0.5 */
} tp_eval_prompt;

/* An estimate with its uncertainty; NaN where `why` says that there is none. */
typedef struct {
    double value, se, lo, hi;
    size_t n_prompts, n_questions; /* that it is made of; different ones */
    const char *why;               /* of value; NULL: it is known */
    const char *why_ci;
} tp_eval_estimate;

enum { TP_EVAL_MAX_K = 16 };

typedef struct {
    size_t n_prompts;   /* with at least one verdict */
    size_t n_questions; /* different ones among them */
    size_t n_unjudged;  /* prompts without any */
    int64_t n_samples;  /* with a verdict */
    int64_t n_excluded; /* without */
    double level;       /* of the intervals */
    size_t n_k;
    int64_t k[TP_EVAL_MAX_K];
    tp_eval_estimate pass[TP_EVAL_MAX_K]; /* of prompts with at least k verdicts */
    tp_eval_estimate reward, majority;
    /* NeMo RL's other conventions, for comparing: its validation reports the share of
     * prompts with any reward above 0 as pass_k whatever k; its eval_pass_k() returns the
     * sum over prompts, k[0] here, and takes the sum of a prompt's rewards for its right
     * samples. */
    double any_rewarded, pass_sum;
} tp_eval_summary;

/* `k` ascending, at most TP_EVAL_MAX_K. */
TP_CHECKED tp_status tp_eval_summarize(const tp_eval_prompt *prompts, size_t n, const int64_t *k,
                                       size_t n_k, double level, tp_eval_summary *ret,
                                       tp_error *err);

/* "pass_at_1", "pass_at_8", ..., "mean_reward", "majority", "se", "ci95", "n_prompts",
 * "n_samples", "n_excluded": members of an object that is open in `w`.  "se" and "ci95"
 * are objects with the same names ("ci90" at a level of 0.9). */
void tp_eval_summary_json(const tp_eval_summary *s, tp_json_w *w);

/* B minus A on the same prompts. */
typedef struct {
    size_t n_prompts;   /* judged in both */
    size_t n_questions; /* different ones among them */
    size_t n_left_out;  /* judged in one only */
    double a, b;        /* pass@1 of these prompts */
    double difference;  /* of pass@1: b - a */
    double se, lo, hi;  /* Student's t over questions */
    double p;           /* two-sided: McNemar's exact test when every question has one sample
                           on both sides, else the paired t test */
    const char *test;   /* "mcnemar", "paired t"; where t is not defined, "sign" or "all equal" */
    double p_t;         /* of the paired t test */
    double p_mcnemar;   /* of its exact form; NaN unless each question has one sample */
    size_t only_a, only_b, ties; /* prompts on which A, or B, did better */
    double reward_difference, reward_lo, reward_hi, reward_p;
    double level;
    tp_change verdict, reward_verdict; /* better, worse: p below 1 - level; never the same */
    const char *why;                   /* of what is NaN */
} tp_eval_paired;

/* Both lists are in the same order: a different id at some place is TP_ERR_CONFIG. */
TP_CHECKED tp_status tp_eval_compare_prompts(const tp_eval_prompt *a, const tp_eval_prompt *b,
                                             size_t n, double level, tp_eval_paired *ret,
                                             tp_error *err);

/* "difference", "ci95", "p", "test", "n_prompts" ...: members of an open object. */
void tp_eval_paired_json(const tp_eval_paired *p, tp_json_w *w);

/* "0.912", "0.9" with as many digits as make sense; "-" for NaN. */
const char *tp_eval_share(double v, char out[32]);
/* "0.012", "2e-16", "< 1e-300". */
const char *tp_eval_p(double p, char out[32]);

#endif
