/* proportions.h - shares, and models that answer right or wrong.
 *
 * Wilson's interval is the default; Clopper-Pearson guarantees its coverage; Wald is here
 * to be compared with, never to be used at x = 0, x = n or small n.  pass@k is the unbiased
 * estimate of Chen et al. (2021), in product form: 1 - prod_{i=n-c+1}^{n} (1 - k/i). */
#ifndef TP_STATS_PROPORTIONS_H
#define TP_STATS_PROPORTIONS_H

#include "stats/common.h"

typedef struct {
    double p, se_clt; /* sqrt(p (1-p) / n) */
    tp_interval wald, wilson, wilson_cc, clopper_pearson, agresti_coull, jeffreys;
    const char *why;
} tp_proportion_result;
/* x successes of n, 0 <= x <= n (else undefined). */
tp_proportion_result tp_proportion(int64_t x, int64_t n, double level);
/* Wilson with a real number of successes: ties of a win rate count half. */
tp_interval tp_wilson(double x, double n, double level);

/* p1 - p2 of independent samples: Newcombe's (1998) square-and-add of Wilson limits. */
typedef struct {
    double diff;
    tp_interval ci;
    const char *why;
} tp_newcombe_result;
tp_newcombe_result tp_newcombe(int64_t x1, int64_t n1, int64_t x2, int64_t n2, double level);

/* Two models on the same items: b items only the first got right, c only the second.  The exact
 * two-sided p; NaN of negative counts. */
double tp_mcnemar(int64_t b, int64_t c);

/* One problem: c of n samples are right; NaN unless 0 <= c <= n and 1 <= k <= n. */
double tp_pass_at_k(int64_t n, int64_t c, int64_t k);

/* Scores whose errors come in clusters (several samples of one prompt, several questions
 * of one text): standard errors that know it. */
typedef struct {
    size_t n, n_clusters;
    double mean;
    double se_clt;         /* sqrt(sum (s - mean)^2 / (n (n - 1))) */
    double se_miller;      /* sqrt(se_clt^2 + sum over clusters of i != j products / n^2), Miller
                              (2024); NaN when the radicand is negative: use se_cr1 */
    double se_cr0, se_cr1; /* sandwich; cr1 times sqrt(G / (G - 1)) */
    double se;             /* the one to report: se_miller, else se_cr1 */
    tp_interval ci;        /* mean -+ t_{G-1} se */
    const char *why, *why_miller;
} tp_clustered;
TP_CHECKED tp_status tp_clustered_mean(const double *scores, const int64_t *cluster, size_t n,
                                       double level, tp_clustered *ret, tp_error *err);

#endif
