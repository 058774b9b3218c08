/* answer.h - a data set as a JSON object in, what can be said about it as one out.
 *
 * The kinds, by `kind` or by the members present:
 *   one      data: [..]              describe; with B and seed the bootstrap of both centres
 *   two      x: [..], y: [..]        describe_x, describe_y, two_sample
 *   paired   x, y of equal length    the same and `paired`
 *   groups   groups: [[..], ..]      anova, welch_anova, kruskal, pairs
 *   series   y: [..], maybe x        trend, change point, decay
 * and small questions, such as {"x": 9, "n": 10} (an interval of a share) or
 * {"table": "t_sf", "rows": [[2, 10]]}; docs/guide/statistics.md lists them.
 *
 * What is undefined is null, and `reasons` maps its path ("two_sample.welch") to a phrase.
 * Numbers are the shortest that read back; an overflow is "inf". */
#ifndef TP_STATS_ANSWER_H
#define TP_STATS_ANSWER_H

#include "stats/common.h"
#include "text/json/json.h"

typedef struct {
    double level;  /* of all intervals, unless the object has level, conf or alpha */
    uint64_t seed; /* of what is random, unless the object has one */
    size_t n_resamples;
    size_t n_permutations; /* 0: only what can be enumerated */
    bool paired;           /* x and y without kind are pairs */
} tp_answer_options;
#define TP_ANSWER_DEFAULTS \
    ((tp_answer_options){.level = 0.95, .seed = 1, .n_resamples = 9999, .n_permutations = 0})

/* `name` is what errors call the object ("standard input"). */
TP_CHECKED tp_status tp_answer(const char *name, const tp_json *object,
                               const tp_answer_options *options, tp_json_w *w, tp_error *err);

/* Whether the object has the members of a data set or of a question. */
bool tp_answer_knows(const tp_json *object);

/* The same from text. */
TP_CHECKED tp_status tp_answer_text(const char *name, const char *text, size_t n,
                                    const tp_answer_options *options, tp_json_w *w, tp_error *err);

#endif
