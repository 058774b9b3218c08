/* stats_text.h - what `temper stats` says to people: a sentence first, then tables. */
#ifndef TP_INSTRUMENT_REPORT_STATS_TEXT_H
#define TP_INSTRUMENT_REPORT_STATS_TEXT_H

#include "base/strings.h"
#include "stats/stats.h"
#include "temper/stats.h"

typedef struct {
    double level;
    uint64_t seed;
    size_t n_resamples; /* 0: as many as are quick */
    bool equal_variances;
    tp_stats_words words; /* which of larger and smaller is good */
    double margin;        /* of equivalence, a share of the baseline; 0: not asked */
    double power;         /* of what is called detectable */
    bool bold;            /* the headline, on a terminal */
    int width;            /* columns of tables */
    const char *notes;    /* a line each, for JSON; may be NULL */
} tp_stats_style;

typedef struct {
    const char *name;
    const double *x;
    size_t n;
    size_t n_missing;      /* cells without a number */
    size_t n_rows_dropped; /* of pairs or places: rows in which either is missing */
} tp_stats_column;

TP_CHECKED tp_status tp_stats_text_one(const tp_stats_style *s, const tp_stats_column *c,
                                       tp_buf *out, tp_error *err);
/* b is judged against a. */
TP_CHECKED tp_status tp_stats_text_two(const tp_stats_style *s, const tp_stats_column *a,
                                       const tp_stats_column *b, tp_buf *out, tp_error *err);
TP_CHECKED tp_status tp_stats_text_paired(const tp_stats_style *s, const tp_stats_column *a,
                                          const tp_stats_column *b, tp_buf *out, tp_error *err);
TP_CHECKED tp_status tp_stats_text_groups(const tp_stats_style *s, const tp_stats_column *c,
                                          size_t k, tp_buf *out, tp_error *err);
/* `x` may be NULL. */
TP_CHECKED tp_status tp_stats_text_series(const tp_stats_style *s, const tp_stats_column *x,
                                          const tp_stats_column *y, tp_buf *out, tp_error *err);
/* Pairs of successes and trials; one or two of them. */
TP_CHECKED tp_status tp_stats_text_shares(const tp_stats_style *s, const int64_t *x,
                                          const int64_t *n, size_t k, tp_buf *out, tp_error *err);

typedef struct {
    double effect, n, power; /* NaN: the unknown; exactly one */
    int sides;
    bool paired;
} tp_stats_plan;
TP_CHECKED tp_status tp_stats_text_plan(const tp_stats_style *s, const tp_stats_plan *plan,
                                        tp_buf *out, tp_error *err);

/* What cannot be a share is refused. */
TP_CHECKED tp_status tp_stats_check_shares(const int64_t *x, const int64_t *n, size_t k,
                                           tp_error *err);
/* Change points of a series; of a long one those of the medians of blocks. */
enum { TP_STATS_SEARCHED = 500 }; /* values: the search is quadratic for every permutation */
typedef struct {
    tp_changepoint found[TP_STATS_SEARCHED]; /* `index`: of the series */
    size_t n_found, n_searched;              /* values, or blocks */
    double alpha;
    bool wander; /* successive values resemble each other between the points: not judged */
    double lag1; /* how much */
} tp_stats_changes;
TP_CHECKED tp_status tp_stats_find_changes(const tp_stats_style *s, const double *y, size_t n,
                                           tp_stats_changes *ret, tp_error *err);
/* The test that was asked for, of b minus a: of pairs, else Welch's, or Student's. */
tp_t_test tp_stats_t_test(const tp_stats_style *s, const tp_stats_column *a,
                          const tp_stats_column *b, bool is_paired);
/* The difference that this test of as many values, spread as these are, shows with style->power;
 * NaN where it is not defined. */
double tp_stats_detectable(const tp_stats_style *s, const tp_t_test *t);
/* The unknown of the three is computed. */
TP_CHECKED tp_status tp_stats_solve_plan(const tp_stats_style *s, tp_stats_plan *plan,
                                         tp_error *err);

/* "p = 0.0023", "p < 0.0001"; "p undefined". */
void tp_stats_put_p(tp_buf *out, double p);
/* "95 %" */
const char *tp_stats_level(const tp_stats_style *s, char buffer[24]);
/* Begin and end the sentence on top. */
void tp_stats_headline(const tp_stats_style *s, tp_buf *out, bool begin);
/* The table of descriptions. */
TP_CHECKED tp_status tp_stats_put_table(const tp_stats_style *s, const tp_stats_column *c, size_t k,
                                        tp_buf *out, tp_error *err);

#endif
