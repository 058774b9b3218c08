/* answer_internal.h - writing an answer: values, nulls with their reasons, and the parts
 * that several kinds share. */
#ifndef TP_STATS_ANSWER_INTERNAL_H
#define TP_STATS_ANSWER_INTERNAL_H

#include "stats/answer.h"
#include "stats/stats.h"

enum { ANSWER_DEPTH = 8 };

typedef struct {
    tp_json_w *w;
    const char *name; /* of the input */
    tp_arena *arena;
    tp_answer_options o;
    char level_text[16];            /* "95" */
    const char *path[ANSWER_DEPTH]; /* NULL: a place in the array around it */
    size_t place[ANSWER_DEPTH];     /* elements begun in each */
    int depth;
    tp_buf reasons; /* path and phrase in turn, each with its NUL */
} answer;

/* `key` NULL inside an array. */
void answer_begin(answer *a, const char *key);
void answer_end(answer *a);
void answer_begin_array(answer *a, const char *key);
void answer_end_array(answer *a);
void answer_number(answer *a, const char *key, double v, const char *why);
void answer_count(answer *a, const char *key, uint64_t n);
void answer_bool(answer *a, const char *key, bool v);
void answer_null(answer *a, const char *key, const char *why);
/* The level is put behind the key: "t_ci" becomes "t_ci95". */
void answer_interval(answer *a, const char *key, tp_interval ci);
/* The bare key. */
void answer_pair(answer *a, const char *key, tp_interval ci);
const char *answer_level_key(const answer *a, const char *key, char buffer[64]);

/* Numbers of an array; *ret is in the arena. */
tp_status answer_array(answer *a, const tp_json *array, const char *what, double **ret, size_t *n,
                       tp_error *err);
/* A number that may be absent: false when it is; an error when it is something else. */
tp_status answer_parameter(answer *a, const tp_json *object, const char *key, double *ret,
                           bool *present, tp_error *err);

void answer_p_values(answer *a, tp_p_values p, const char *why);
tp_status answer_describe(answer *a, const char *key, const double *x, size_t n, tp_error *err);
tp_status answer_two(answer *a, const double *x, size_t nx, const double *y, size_t ny,
                     tp_error *err);
tp_status answer_paired(answer *a, const double *x, const double *y, size_t n, tp_error *err);
tp_status answer_groups(answer *a, const tp_json *object, tp_error *err);
tp_status answer_series(answer *a, const double *x, const double *y, size_t n, tp_error *err);
void answer_bootstrap(answer *a, const char *key, const tp_bootstrap_result *r);
tp_status answer_resampled(answer *a, const double *x, size_t nx, const double *y, size_t ny,
                           bool paired, tp_error *err);

bool answer_is_question(const tp_json *object);
/* A small question; *known is false when the object is none. */
tp_status answer_question(answer *a, const tp_json *object, bool *known, tp_error *err);

#endif
