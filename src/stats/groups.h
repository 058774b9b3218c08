/* groups.h - more than two groups: is any different, and which?
 *
 * Welch's ANOVA is the default question ("means, unequal variances"), the classical one
 * is there for its effect sizes, Kruskal-Wallis for ranks, Brown-Forsythe for spreads.
 * Pairs are compared by Welch tests adjusted over all pairs (Holm, and BH). */
#ifndef TP_STATS_GROUPS_H
#define TP_STATS_GROUPS_H

#include "stats/common.h"

typedef struct {
    const double *x;
    size_t n;
} tp_group;

typedef struct {
    double ss_between, ss_within, ms_between, ms_within, residual_sd;
    double df_between, df_within;
    double f, p;
    double eta2, omega2, epsilon2; /* not clamped at 0 */
    const char *why;               /* of f and p */
    const char *why_size;          /* of eta2, omega2, epsilon2 */
} tp_anova_result;
tp_anova_result tp_anova(const tp_group *groups, size_t k);

typedef struct {
    double f, df1, df2, p;
    const char *why;
} tp_f_test;
/* Every group needs two values and a variance. */
tp_f_test tp_welch_anova(const tp_group *groups, size_t k);
/* Levene's test with medians: an ANOVA of |x - median of its group|. */
tp_f_test tp_brown_forsythe(const tp_group *groups, size_t k);

typedef struct {
    double h, h_uncorrected, tie_correction, df, p;
    double eta2, epsilon2; /* (H - k + 1) / (N - k) and H / (N - 1) */
    const char *why;
} tp_kruskal_result;
TP_CHECKED tp_status tp_kruskal(const tp_group *groups, size_t k, tp_kruskal_result *ret,
                                tp_error *err);

typedef struct {
    size_t i, j;
    double diff, t, df, p, cohens_d, hedges_g;
    double cliffs_delta; /* share of pairs of values with i above, less that with j above */
    double p_holm, p_bh; /* over the pairs that have a p */
    tp_interval ci;      /* of the difference, not adjusted */
    const char *why;
} tp_pairwise;
/* All k (k - 1) / 2 pairs, (0,1), (0,2), ...: `ret` has room for them. */
TP_CHECKED tp_status tp_pairwise_welch(const tp_group *groups, size_t k, double level,
                                       tp_pairwise *ret, tp_error *err);

#endif
