/* validation_read.c - both forms of a run's validations, read step by step; intervals from the
 * counts beside them. */
#include "instrument/evaluations/validation_read.h"

#include <math.h>
#include <string.h>

#include "base/files.h"
#include "base/platform.h"
#include "stats/proportions.h"

enum { MAX_BYTES = 1 << 30, MAX_SERIES = 64 };

/* ---- tags ---- */

typedef enum {
    FIELD_NONE,
    FIELD_ACCURACY,
    FIELD_PAIRS,
    FIELD_PROMPTS,
    FIELD_LOSS,
    FIELD_CHOSEN,
    FIELD_REJECTED,
    FIELD_PASS_K
} field;

static field field_of(const char *name)
{
    static const struct {
        const char *name;
        field field;
    } known[] = {{"accuracy", FIELD_ACCURACY},
                 {"num_valid_samples", FIELD_PAIRS},
                 {"num_prompts", FIELD_PROMPTS},
                 {"loss", FIELD_LOSS},
                 {"rewards_chosen_mean", FIELD_CHOSEN},
                 {"rewards_rejected_mean", FIELD_REJECTED},
                 {"pass_k", FIELD_PASS_K}};
    for (size_t i = 0; i < TP_COUNTOF(known); i++)
        if (strcmp(known[i].name, name) == 0)
            return known[i].field;
    return FIELD_NONE;
}

/* "validation-<name>/<metric>" and "validation/<metric>". */
static field split_tag(const char *tag, char name[64])
{
    const char *slash = strchr(tag, '/');
    name[0] = 0;
    if (!slash || strncmp(tag, "validation", 10) != 0)
        return FIELD_NONE;
    if (tag[10] == '-') {
        size_t n = (size_t)(slash - tag) - 11;
        if (n == 0 || n >= 64)
            return FIELD_NONE;
        memcpy(name, tag + 11, n);
        name[n] = 0;
    } else if (tag[10] != '/') {
        return FIELD_NONE;
    }
    return field_of(slash + 1);
}

/* ---- collecting ---- */

typedef struct {
    tp_validations v;
    const char *path;
    tp_error *err;
} reading;

static tp_validation_series *find_series(reading *r, const char *name)
{
    for (size_t i = 0; i < r->v.n; i++)
        if (strcmp(r->v.series[i].name, name) == 0)
            return &r->v.series[i];
    if (r->v.n == MAX_SERIES)
        return NULL;
    r->v.series = tp_grow(r->v.series, r->v.n + 1, sizeof *r->v.series);
    tp_validation_series *s = &r->v.series[r->v.n++];
    *s = (tp_validation_series){.change = NAN, .change_lo = NAN, .change_hi = NAN};
    snprintf(s->name, sizeof s->name, "%s", name);
    return s;
}

/* Points stay in order of their steps; most come at the end. */
static tp_validation_point *find_point(tp_validation_series *s, int64_t step)
{
    size_t at = s->n;
    while (at > 0 && s->points[at - 1].step > step)
        at--;
    if (at > 0 && s->points[at - 1].step == step)
        return &s->points[at - 1];
    if ((s->n & (s->n - 1)) == 0) /* full at each power of two */
        s->points = tp_grow(s->points, 2 * s->n, sizeof *s->points);
    memmove(s->points + at + 1, s->points + at, (s->n - at) * sizeof *s->points);
    s->n++;
    s->points[at] = (tp_validation_point){.step = step,
                                          .accuracy = NAN,
                                          .lo = NAN,
                                          .hi = NAN,
                                          .n = NAN,
                                          .loss = NAN,
                                          .chosen = NAN,
                                          .rejected = NAN,
                                          .pass_k = NAN};
    return &s->points[at];
}

static void store(tp_validation_point *p, field f, double value)
{
    double *const places[] = {[FIELD_ACCURACY] = &p->accuracy, [FIELD_PAIRS] = &p->n,
                              [FIELD_PROMPTS] = &p->n,         [FIELD_LOSS] = &p->loss,
                              [FIELD_CHOSEN] = &p->chosen,     [FIELD_REJECTED] = &p->rejected,
                              [FIELD_PASS_K] = &p->pass_k};
    *places[f] = value;
}

static void take(reading *r, const char *tag, int64_t step, const tp_json *value)
{
    char name[64];
    double number;
    field f = split_tag(tag, name);
    if (f == FIELD_NONE || !tp_json_f64(value, &number))
        return;
    tp_validation_series *s = find_series(r, name);
    if (!s)
        return;
    s->is_dpo |= f == FIELD_PAIRS || f == FIELD_CHOSEN || name[0];
    store(find_point(s, step), f, number);
}

/* ---- the two forms ---- */

/* {"tag": {"step": value}} */
static void take_tree(reading *r, const tp_json *root)
{
    for (const tp_json *tag = root->child; tag; tag = tag->next) {
        if (tag->type != TP_JSON_OBJECT)
            continue;
        for (const tp_json *v = tag->child; v; v = v->next) {
            int64_t step;
            if (tp_str_to_i64(v->key.data, &step))
                take(r, tag->key.data, step, v);
        }
    }
}

/* {"step": 3, "m": {"tag": value}}; a resumed attempt repeats steps, and counts. */
static void take_record(reading *r, const tp_json *record)
{
    int64_t step;
    const tp_json *metrics = tp_json_get(record, "m");
    if (!metrics || metrics->type != TP_JSON_OBJECT ||
        !tp_json_i64(tp_json_get(record, "step"), &step))
        return;
    for (const tp_json *m = metrics->child; m; m = m->next)
        take(r, m->key.data, step, m);
}

/* A crash may leave half a line: what is no JSON is passed over. */
static void take_lines(reading *r, tp_arena *arena, const char *text, size_t n)
{
    const tp_json_options options = TP_JSON_TOLERANT;
    for (const char *end = text + n; text < end;) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        size_t length = newline ? (size_t)(newline - text) : (size_t)(end - text);
        const tp_json *record;
        tp_arena_rewind(arena, 0);
        if (tp_json_parse(arena, r->path, text, length, &options, &record, NULL) == TP_OK)
            take_record(r, record);
        text += length + 1;
    }
}

/* ---- intervals ---- */

static bool is_share(const tp_validation_point *p)
{
    return p->accuracy >= 0 && p->accuracy <= 1 && p->n >= 1 && p->n <= 1e15;
}

static void add_intervals(tp_validation_series *s, double level)
{
    for (size_t i = 0; i < s->n; i++) {
        tp_validation_point *p = &s->points[i];
        if (!is_share(p))
            continue;
        tp_interval ci = tp_wilson(p->accuracy * p->n, p->n, level);
        p->lo = ci.lo;
        p->hi = ci.hi;
    }
    const tp_validation_point *first = s->points, *last = s->points + s->n - 1;
    if (s->n < 2)
        return;
    s->change = last->accuracy - first->accuracy;
    if (isnan(first->lo) || isnan(last->lo))
        return;
    /* Newcombe's square-and-add over Wilson limits, with shares that need not be of whole
     * numbers. */
    s->change_lo = s->change - hypot(last->accuracy - last->lo, first->hi - first->accuracy);
    s->change_hi = s->change + hypot(last->hi - last->accuracy, first->accuracy - first->lo);
}

/* Series and steps without an accuracy are of other things (the loss of supervised
 * training). */
static void drop_empty(tp_validations *v)
{
    size_t kept = 0;
    for (size_t i = 0; i < v->n; i++) {
        tp_validation_series *s = &v->series[i];
        size_t n = 0;
        for (size_t k = 0; k < s->n; k++)
            if (!isnan(s->points[k].accuracy))
                s->points[n++] = s->points[k];
        s->n = n;
        if (n)
            v->series[kept++] = *s;
        else
            free(s->points);
    }
    v->n = kept;
}

/* ---- reading ---- */

tp_status tp_validations_parse(const char *name, const char *text, size_t n, double level,
                               tp_validations *ret, tp_error *err)
{
    TP_OWN(tp_arena) arena = {0};
    reading r = {.path = name, .err = err};
    const tp_json_options options = TP_JSON_TOLERANT;
    const tp_json *root;
    TP_TRY(tp_arena_init(&arena, 64 * n + (1 << 20), err));
    bool is_one = tp_json_parse(&arena, name, text, n, &options, &root, NULL) == TP_OK;
    if (is_one && root->type == TP_JSON_OBJECT && !tp_json_get(root, "m"))
        take_tree(&r, root);
    else
        take_lines(&r, &arena, text, n);
    drop_empty(&r.v);
    if (r.v.n == 0) {
        tp_validations_release(&r.v);
        return tp_fail(err, TP_ERR_FORMAT,
                       "'%s' has no validation accuracies; runs of dpo and grpo have, in "
                       "metrics.jsonl or NeMo RL's metrics.json; 'temper metrics' and 'temper "
                       "analyze' read any run",
                       name);
    }
    for (size_t i = 0; i < r.v.n; i++)
        add_intervals(&r.v.series[i], level);
    *ret = r.v;
    return TP_OK;
}

tp_status tp_validations_read(const char *path, double level, tp_validations *ret, tp_error *err)
{
    TP_OWN(tp_buf) text = {0}, file = {0};
    tp_buf_adds(&file, path);
    if (tp_dir_exists(path))
        tp_buf_adds(&file, "/metrics.jsonl");
    if (tp_dir_exists(path) && !tp_file_exists(tp_buf_str(&file)))
        return tp_fail(err, TP_ERR_IO,
                       "'%s' is a folder without metrics.jsonl, which that of a run has; name the "
                       "file of an evaluation",
                       path);
    TP_TRY(tp_file_read(tp_buf_str(&file), MAX_BYTES, &text, err));
    return tp_validations_parse(path, tp_buf_str(&text), text.len, level, ret, err);
}

void tp_validations_release(tp_validations *v)
{
    for (size_t i = 0; i < v->n; i++)
        free(v->series[i].points);
    free(v->series);
    *v = (tp_validations){0};
}
