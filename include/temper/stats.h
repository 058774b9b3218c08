/* stats.h - what numbers say, and how surely: intervals, comparisons, groups, shares, trends,
 * change points, sample sizes.
 *
 * The answers are texts as `temper stats` prints them: a sentence, then tables; or JSON
 * (docs/formats/stats.md), in which what the data do not define is null with a reason.
 *
 * Threads: any, at once. */
#ifndef TEMPER_STATS_H
#define TEMPER_STATS_H

#include "temper/error.h"
#include "temper/text.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Which of larger and smaller is good, and what it is called. */
typedef enum { TP_WORDS_PLAIN, TP_WORDS_LOWER, TP_WORDS_HIGHER, TP_WORDS_TIME } tp_stats_words;

typedef struct {
    size_t size;  /* sizeof(tp_stats_options) */
    double alpha; /* error allowed: intervals have level 1 - alpha; 0: 0.05 */
    bool has_seed;
    int64_t seed;      /* of all that is random; else 1 */
    int64_t resamples; /* of bootstraps; 0: 9999, fewer of many values */
    bool paired;       /* rows are pairs: same seed, same prompt, same round */
    bool trend;        /* the column is a series: trend, change points, decay */
    const char *by;    /* groups are the words of this column; may be NULL */
    const char *at;    /* with `trend`: the places of the values; NULL: 0, 1, 2 ... */
    bool equal_variances;
    double margin; /* also test equivalence, within this share of the first mean; 0: no */
    tp_stats_words words;
    tp_form form; /* TP_FORM_TEXT or TP_FORM_JSON */
    bool bold;    /* the sentence on top, on a terminal */
    int width;    /* columns of text; 0: 110 */
    /* Called when a computation begins that may take long, and when it ends; may be NULL. */
    void (*computing)(void *user, const char *what);
    void *user;
    double power; /* that a difference counts as detectable with; 0: 0.8 */
} tp_stats_options;

/* Of the file, "-" for standard input, or the folder of a run, whoever recorded it: the n columns
 * named, or all that hold numbers.  One is described, of two the second is judged against the
 * first, more are groups.  *ret: tp_free(). TP_ERR_CONFIG: no such column, or not as many as it
 * takes; TP_ERR_FORMAT, TP_ERR_IO. */
TP_API TP_CHECKED tp_status tp_stats_columns(const char *path, const char *const *columns, size_t n,
                                             const tp_stats_options *options, char **ret,
                                             tp_error *err);

/* Successes of trials: one share, or two, of which the second is judged against the first. */
TP_API TP_CHECKED tp_status tp_stats_shares(const int64_t *successes, const int64_t *trials,
                                            size_t n, const tp_stats_options *options, char **ret,
                                            tp_error *err);

/* Plan an experiment: the one of effect (difference over standard deviation), n (values per group,
 * or pairs) and power that is NaN; power is 0.8 where another is NaN too.  `sides` is 1 or 2. */
TP_API TP_CHECKED tp_status tp_stats_plan_samples(double effect, double n, double power, int sides,
                                                  const tp_stats_options *options, char **ret,
                                                  tp_error *err);

#ifdef __cplusplus
}
#endif

#endif
