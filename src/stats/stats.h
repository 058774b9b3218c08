/* stats.h - the mathematics of evidence: everything in this folder.
 *
 *   special.h      distributions: normal, t, F, chi2, beta, binomial, noncentral t
 *   descriptive.h  one sample: mean, spread, quantiles, shape, intervals
 *   two_sample.h   two samples: t tests, rank tests, permutation, equivalence
 *   effect.h       sizes of effects: d, g, delta, with exact intervals and words
 *   ratio.h        ratios: Fieller, geometric means, paired log ratios
 *   groups.h       many groups: ANOVA, Welch, Kruskal-Wallis, pairs
 *   adjust.h       many tests: Holm, Benjamini-Hochberg, ...
 *   bootstrap.h    resampling: percentile, BCa
 *   power.h        planning: power, sample size, smallest detectable effect
 *   trend.h        series: Mann-Kendall, Theil-Sen, least squares
 *   changepoint.h  series: where they change
 *   curves.h       loss curves: rate, plateau, stability
 *   proportions.h  shares: Wilson, McNemar, pass@k, clustered errors
 *   evalue.h       looking after every round
 *   verdict.h      a comparison in one word
 * and apart, for programs that read: dataset.h (columns out of text and JSON).
 *
 * Which question needs what:
 *   one noisy number per run ............ tp_describe, its t_ci or median_ci
 *   A and B, same seeds or rounds ....... tp_log_ratio, tp_paired_t, tp_wilcoxon
 *   A and B, independent ................ tp_welch, tp_mann_whitney, tp_effect_two
 *   is B no worse than a margin ......... tp_tost
 *   A, B, C, ... ........................ tp_welch_anova, tp_pairwise_welch
 *   several benchmarks in one gate ...... tp_adjust (Holm)
 *   stop measuring when sure ............ tp_sign_evalue_log
 *   accuracy of a model ................. tp_proportion, tp_clustered_mean, tp_eval_summarize
 *   two models, same questions .......... tp_eval_compare_prompts
 *   does memory leak .................... tp_mann_kendall and tp_theil_sen
 *   when did it get slower .............. tp_changepoints
 *   has training converged .............. tp_analyze_loss
 *
 * The steps of one run are one observation with an autocorrelated inside, not n
 * observations: replicate over runs, or use batch means. */
#ifndef TP_STATS_STATS_H
#define TP_STATS_STATS_H

#include "stats/adjust.h"
#include "stats/bootstrap.h"
#include "stats/changepoint.h"
#include "stats/common.h"
#include "stats/curves.h"
#include "stats/descriptive.h"
#include "stats/effect.h"
#include "stats/evalue.h"
#include "stats/groups.h"
#include "stats/power.h"
#include "stats/proportions.h"
#include "stats/ratio.h"
#include "stats/special.h"
#include "stats/trend.h"
#include "stats/two_sample.h"
#include "stats/verdict.h"

#endif
