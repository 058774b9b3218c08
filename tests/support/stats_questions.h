/* stats_questions.h - the questions of the oracle of statistics (tests/data/stats/oracle.json),
 * asked in its keys: a data set as a JSON object in, what can be said about it as one out.
 *
 * The kinds, by `kind` or by the members present:
 *   one      data: [..]              describe; with B and seed the bootstrap of both centres
 *   two      x: [..], y: [..]        describe_x, describe_y, two_sample
 *   paired   x, y of equal length    the same and `paired`
 *   groups   groups: [[..], ..]      anova, welch_anova, kruskal, pairs
 *   series   y: [..], maybe x        trend, change point, decay
 * and small questions, such as {"x": 9, "n": 10} (an interval of a share) or
 * {"table": "t_sf", "rows": [[2, 10]]}. */
#ifndef TP_TESTS_SUPPORT_STATS_QUESTIONS_H
#define TP_TESTS_SUPPORT_STATS_QUESTIONS_H

#include "instrument/report/stats_json.h"

typedef struct {
    double level;  /* of all intervals, unless the object has level, conf or alpha */
    uint64_t seed; /* of what is random, unless the object has one */
    size_t n_resamples;
} tp_question_options;
#define TP_QUESTION_DEFAULTS ((tp_question_options){.level = 0.95, .seed = 1, .n_resamples = 9999})

/* `name` is what errors call the object ("standard input"). */
tp_status tp_question(const char *name, const tp_json *object, const tp_question_options *options,
                      tp_json_w *w, tp_error *err);
/* The same from text. */
tp_status tp_question_text(const char *name, const char *text, size_t n,
                           const tp_question_options *options, tp_json_w *w, tp_error *err);

/* ---- between its files ---- */

/* Numbers of an array; *ret is in the arena. */
tp_status tp_stats_writer_array(tp_stats_writer *a, const tp_json *array, const char *what,
                                double **ret, size_t *n, tp_error *err);
/* A number that may be absent: false when it is; an error when it is something else. */
tp_status tp_stats_writer_parameter(tp_stats_writer *a, const tp_json *object, const char *key,
                                    double *ret, bool *present, tp_error *err);
bool tp_stats_writer_is_question(const tp_json *object);
/* A small question; *known is false when the object is none. */
tp_status tp_stats_writer_question(tp_stats_writer *a, const tp_json *object, bool *known,
                                   tp_error *err);

#endif
