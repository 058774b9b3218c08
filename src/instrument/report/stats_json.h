/* stats_json.h - answers of `temper stats` as JSON: docs/formats/stats.md.
 *
 * What is undefined is null, and `reasons` maps its path ("two_sample.welch") to a phrase.  Numbers
 * are the shortest that read back; an overflow is "inf". */
#ifndef TP_INSTRUMENT_REPORT_STATS_JSON_H
#define TP_INSTRUMENT_REPORT_STATS_JSON_H

#include "instrument/report/stats_text.h"
#include "text/json/json.h"

typedef enum {
    TP_STATS_ONE,
    TP_STATS_TWO,    /* c[1] is judged against c[0], as x against y */
    TP_STATS_PAIRED, /* the same, of equal length */
    TP_STATS_GROUPS,
    TP_STATS_SERIES /* c[0], maybe at the places `at` */
} tp_stats_kind;

/* An object about n columns; resampled when style->n_resamples is set. */
TP_CHECKED tp_status tp_stats_json(tp_stats_kind kind, const tp_stats_style *style,
                                   const tp_stats_column *c, size_t n, const tp_stats_column *at,
                                   tp_buf *out, tp_error *err);
/* Pairs of successes and trials; one or two of them, the second judged against the first. */
TP_CHECKED tp_status tp_stats_json_shares(const tp_stats_style *style, const int64_t *x,
                                          const int64_t *n, size_t k, tp_buf *out, tp_error *err);
TP_CHECKED tp_status tp_stats_json_plan(const tp_stats_style *style, const tp_stats_plan *plan,
                                        tp_buf *out, tp_error *err);

/* ---- writing: values, nulls with their reasons, and the parts that several kinds share ---- */

enum { TP_STATS_WRITER_DEPTH = 8 };

typedef struct {
    double level;
    uint64_t seed;
    size_t n_resamples;
    size_t n_permutations; /* 0: only what can be enumerated */
} tp_stats_writer_options;

typedef struct {
    tp_json_w *w;
    const char *name; /* of the input, for errors */
    tp_arena *arena;
    tp_stats_writer_options o;
    char level_text[16];                     /* "95" */
    const char *path[TP_STATS_WRITER_DEPTH]; /* NULL: a place in the array around it */
    size_t place[TP_STATS_WRITER_DEPTH];     /* elements begun in each */
    int depth;
    tp_buf reasons; /* path and phrase in turn, each with its NUL */
} tp_stats_writer;

/* The object begins and ends; the end has the reasons. */
void tp_stats_writer_open(tp_stats_writer *a);
void tp_stats_writer_close(tp_stats_writer *a);

/* `key` NULL inside an array. */
void tp_stats_writer_object(tp_stats_writer *a, const char *key);
/* The same where there is no `why`; else null for that reason, and false. */
bool tp_stats_writer_object_or(tp_stats_writer *a, const char *key, const char *why);
void tp_stats_writer_object_end(tp_stats_writer *a);
void tp_stats_writer_begin_array(tp_stats_writer *a, const char *key);
void tp_stats_writer_end_array(tp_stats_writer *a);
void tp_stats_writer_number(tp_stats_writer *a, const char *key, double v, const char *why);
void tp_stats_writer_count(tp_stats_writer *a, const char *key, uint64_t n);
void tp_stats_writer_bool(tp_stats_writer *a, const char *key, bool v);
void tp_stats_writer_null(tp_stats_writer *a, const char *key, const char *why);
/* The level is put behind the key: "t_ci" becomes "t_ci95". */
void tp_stats_writer_interval(tp_stats_writer *a, const char *key, tp_interval ci);
/* The bare key. */
void tp_stats_writer_pair(tp_stats_writer *a, const char *key, tp_interval ci);
const char *tp_stats_writer_level_key(tp_stats_writer *a, const char *key, char buffer[64]);

tp_status tp_stats_writer_describe(tp_stats_writer *a, const char *key, const double *x, size_t n,
                                   tp_error *err);
tp_status tp_stats_writer_two(tp_stats_writer *a, const double *x, size_t nx, const double *y,
                              size_t ny, tp_error *err);
tp_status tp_stats_writer_paired(tp_stats_writer *a, const double *x, const double *y, size_t n,
                                 tp_error *err);
tp_status tp_stats_writer_groups(tp_stats_writer *a, const tp_group *groups, size_t k,
                                 tp_error *err);
tp_status tp_stats_writer_series(tp_stats_writer *a, const double *x, const double *y, size_t n,
                                 tp_error *err);
tp_status tp_stats_writer_resampled(tp_stats_writer *a, const double *x, size_t nx, const double *y,
                                    size_t ny, bool paired, tp_error *err);

#endif
