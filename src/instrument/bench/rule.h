/* rule.h - is B worse than A by more than the tolerance?
 *
 * Rounds are paired: d_i = ln(b_i / a_i), turned so that d > 0 means "B is worse".  With
 * m = ln(1 + tolerance) and [L, U] the exact order-statistic interval of the median of d
 * (no moments, no normality; two-sided 1 - 2 alpha):
 *
 *     L > m          REGRESSION          confidently beyond the tolerance
 *     U < -m         IMPROVED            confidently better by more than the tolerance
 *     L > 0, U < m   SLOWER_WITHIN_TOL   worse, and no more than allowed
 *     U < m          PASS                not worse by the tolerance
 *     otherwise      INCONCLUSIVE        the data do not tell
 *
 * A regression also has to survive Holm's correction over the suite (gate.h), and a
 * difference below the metric's floor is none (PASS).  A rule that looks at the data while
 * they come in must not use this interval to stop; it uses the two e-values, which stay
 * valid under any stopping (rule.is_sequential).
 *
 * The plain rule of a fixed tolerance (current beyond baseline times 1 +- tolerance) is
 * computed beside, always, so that both can be printed. */
#ifndef TP_INSTRUMENT_BENCH_RULE_H
#define TP_INSTRUMENT_BENCH_RULE_H

#include "instrument/bench/subject.h"

/* Ascending by how much they matter: of several, the largest counts. */
typedef enum {
    TP_BENCH_NONE,         /* nothing to compare with was asked for */
    TP_BENCH_PASS,         /* not worse by the tolerance */
    TP_BENCH_IMPROVED,     /* better by more than the tolerance */
    TP_BENCH_SLOWER,       /* SLOWER_WITHIN_TOL: worse, less than the tolerance */
    TP_BENCH_INCONCLUSIVE, /* not shown */
    TP_BENCH_NEW,          /* measured, but there is no baseline: never a pass */
    TP_BENCH_MISSING,      /* there is a baseline, but it was not measured */
    TP_BENCH_FAILED,       /* could not be measured: crash, NaN, zero, too few rounds */
    TP_BENCH_REGRESSION,
    TP_BENCH_COUNT
} tp_bench_verdict;

/* What a verdict is to who reads it. */
typedef enum { TP_GRAVITY_NONE, TP_GRAVITY_GOOD, TP_GRAVITY_WARNING, TP_GRAVITY_ERROR } tp_gravity;

tp_gravity tp_bench_verdict_gravity(tp_bench_verdict verdict);
const char *tp_bench_verdict_name(tp_bench_verdict verdict); /* "REGRESSION" */
const char *
tp_bench_verdict_word(tp_bench_verdict verdict); /* "worse", "better", "same", "not shown" ... */

typedef struct {
    double alpha;            /* 0.05 */
    double tolerance;        /* 0.05: of noisy metrics */
    double exact_tolerance;  /* 0: of exact ones */
    size_t family;           /* comparisons judged together, at least 1 */
    bool is_sequential;      /* rounds were added until the e-value decided */
    bool is_tolerance_given; /* by the user: it goes before that of a baseline */
    bool by_point;           /* the plain rule gives the verdicts */
} tp_rule;

typedef enum {
    TP_COMPARED_PAIRED,   /* interleaved rounds of one session */
    TP_COMPARED_UNPAIRED, /* two stored samples */
    TP_COMPARED_BASELINE, /* a sample against a stored level with a between-session sd */
    TP_COMPARED_EXACT     /* two numbers */
} tp_compared_how;

/* Everything that is undefined is NaN.  Logarithmic members are natural logs of
 * worse-over-better, so > 0 means B is worse; `ratio` is plainly B / A. */
typedef struct {
    tp_compared_how how;
    tp_bench_verdict verdict;
    char reason[200]; /* why not more, in words; may be empty */
    size_t n, n_ties; /* rounds; rounds with exactly equal values */
    double tolerance, alpha;

    double ratio, ratio_lower, ratio_upper;      /* B / A: median, 1 - 2 alpha interval */
    double center, lower, upper;                 /* the same as logs, worse > 0 */
    double mean, mean_lower, mean_upper;         /* paired t on d; unpaired: Welch */
    double hodges_lehmann;                       /* pseudo-median of d */
    double boot_median_lower, boot_median_upper; /* BCa bootstrap, by tp_rule_bootstrap() */
    double boot_mean_lower, boot_mean_upper;
    double p, p_holm;                 /* one-sided, of "worse by more than tolerance" */
    double log_e_worse, log_e_within; /* e-values against and for the tolerance */
    double mde;                       /* smallest excess shown in 80 %, as a fraction */
    double half_width;                /* of the interval, as a fraction */
    double lag1, n_effective;         /* of d; unpaired: of the side with more of it */
    double order_effect, order_lower, order_upper; /* mean d of AB rounds minus BA rounds */
    double sd_within, sd_between;                  /* logs; between: of stored sessions */
    bool is_sd_assumed;                            /* sd_between was not measured */
    bool is_below_floor;

    tp_bench_verdict point; /* of the plain rule: PASS or REGRESSION */
    double point_ratio;
} tp_bench_comparison;

/* Values of n rounds in time order; order[i] is 'A' when A ran first in round i, else 'B'
 * (NULL: unknown).  Values must have passed tp_rule_check(). */
void tp_rule_paired(const tp_rule *rule, const tp_metric *metric, const double *a, const double *b,
                    const char *order, size_t n, tp_bench_comparison *ret);
/* Add the BCa intervals of the median and the mean of d: for reports, not for deciding. */
void tp_rule_bootstrap(const tp_metric *metric, const double *a, const double *b, size_t n,
                       uint64_t seed, tp_bench_comparison *c);
/* Two samples that were not interleaved: drift between them is part of the difference,
 * which the reason says.  The interval is that of the Hodges-Lehmann shift, which holds its level
 * only where both sides scatter alike; so both ends, and p, are the more careful ones of it and of
 * Welch's test of the logarithms: worse, and not worse, is what both say. */
void tp_rule_unpaired(const tp_rule *rule, const tp_metric *metric, const double *a, size_t n_a,
                      const double *b, size_t n_b, tp_bench_comparison *ret);
/* Fewest sessions whose deviation is taken for a measured one. */
enum { TP_BASELINE_LEAST_SESSIONS = 3 };
/* A level of earlier sessions: what their medians scatter around. */
typedef struct {
    double level;      /* the geometric mean of those medians */
    size_t n_sessions; /* of which it is; 0: not known, taken as one */
    double sd_between; /* of the logarithms of the medians; NaN: unknown, then `assumed` is used */
    double assumed;
} tp_stored_level;
/* The median of the rounds against a stored level: within the prediction interval of one more
 * session? */
void tp_rule_baseline(const tp_rule *rule, const tp_metric *metric, const tp_stored_level *stored,
                      const double *b, size_t n, tp_bench_comparison *ret);
/* One number each; either may be 0. */
void tp_rule_exact(const tp_rule *rule, const tp_metric *metric, double a, double b,
                   tp_bench_comparison *ret);
/* Nothing but the plain rule can be said: one noisy number each. */
void tp_rule_point_only(const tp_rule *rule, const tp_metric *metric, double a, double b,
                        tp_bench_comparison *ret);

/* The plain rule: REGRESSION when b is beyond a by more than the tolerance. */
tp_bench_verdict tp_rule_point(tp_direction direction, double tolerance, double a, double b);

/* True when the values can be judged; else `why` says what is wrong with them: "round 3
 * is NaN", "round 1 is 0", "2 rounds, at least 8 are needed".  Exact metrics and counts may be 0.
 */
bool tp_rule_check(const tp_metric *metric, const double *values, size_t n, size_t least, char *why,
                   size_t cap);

/* Give the final word after Holm: p_holm is set; a regression that does not survive is
 * INCONCLUSIVE. */
void tp_rule_settle(const tp_rule *rule, double p_holm, tp_bench_comparison *c);

/* Whether the rounds so far decide (either way), for rule.is_sequential. */
bool tp_rule_decided(const tp_rule *rule, const tp_bench_comparison *c);

/* Fewest rounds with which a fixed-n regression can be shown at all. */
size_t tp_rule_least_rounds(const tp_rule *rule);

#endif
