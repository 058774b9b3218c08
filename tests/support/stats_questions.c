/* stats_questions.c - the questions of the oracle of statistics, answered with the functions under
 * test: a JSON object in, a JSON object out. */
#include "support/stats_questions.h"

#include <math.h>
#include <string.h>

static tp_status refuse(tp_stats_writer *a, const tp_json *at, tp_error *err, const char *what)
{
    return tp_fail(err, TP_ERR_FORMAT, "%s:%u: %s", a->name, at ? at->line : 1, what);
}

tp_status tp_stats_writer_array(tp_stats_writer *a, const tp_json *array, const char *what,
                                double **ret, size_t *n, tp_error *err)
{
    if (!array || array->type != TP_JSON_ARRAY)
        return tp_fail(err, TP_ERR_FORMAT, "%s:%u: '%s' must be an array of numbers", a->name,
                       array ? array->line : 1, what);
    double *x = tp_arena_try_alloc(a->arena, array->n + 1, sizeof *x, _Alignof(double));
    if (!x)
        return tp_fail(err, TP_ERR_NOMEM, "%s: no room for %zu numbers", a->name, array->n);
    size_t i = 0;
    for (const tp_json *v = array->child; v; v = v->next, i++)
        if (!tp_json_f64(v, &x[i]) || !isfinite(x[i]))
            return tp_fail(err, TP_ERR_FORMAT,
                           "%s:%u: value %zu of '%s' is not a finite number; remove it or fix it",
                           a->name, v->line, i + 1, what);
    *ret = x;
    *n = i;
    return TP_OK;
}

tp_status tp_stats_writer_parameter(tp_stats_writer *a, const tp_json *object, const char *key,
                                    double *ret, bool *present, tp_error *err)
{
    const tp_json *v = tp_json_get(object, key);
    *present = v && v->type != TP_JSON_NULL;
    if (*present && !tp_json_f64(v, ret))
        return tp_fail(err, TP_ERR_FORMAT, "%s:%u: '%s' must be a number", a->name, v->line, key);
    return TP_OK;
}

/* level or conf, or alpha = 1 - level; seed; B. */
static tp_status read_options(tp_stats_writer *a, const tp_json *object, tp_error *err)
{
    static const char *const levels[] = {"level", "conf", "alpha"};
    double v;
    bool present;
    for (int i = 0; i < 3; i++) {
        TP_TRY(tp_stats_writer_parameter(a, object, levels[i], &v, &present, err));
        if (!present)
            continue;
        if (!(v > 0 && v < 1))
            return tp_fail(err, TP_ERR_FORMAT, "%s: '%s' is %g; it lies between 0 and 1", a->name,
                           levels[i], v);
        a->o.level = i < 2 ? v : 1 - v;
    }
    TP_TRY(tp_stats_writer_parameter(a, object, "seed", &v, &present, err));
    if (present) {
        int64_t seed;
        if (!tp_json_i64(tp_json_get(object, "seed"), &seed) || seed < 0)
            return refuse(a, tp_json_get(object, "seed"), err, "'seed' must be a whole number");
        a->o.seed = (uint64_t)seed;
    }
    TP_TRY(tp_stats_writer_parameter(a, object, "B", &v, &present, err));
    if (present && !(v >= 2 && v <= 1e7))
        return refuse(a, tp_json_get(object, "B"), err, "'B' must be from 2 to 10000000");
    if (present)
        a->o.n_resamples = (size_t)v;
    snprintf(a->level_text, sizeof a->level_text, "%.6g", 100 * a->o.level);
    return TP_OK;
}

/* "3141..." as the digits 3, 1, 4, 1, ... */
static tp_status digits_of(tp_stats_writer *a, const tp_json *text, double **ret, size_t *n,
                           tp_error *err)
{
    if (text->type != TP_JSON_STRING)
        return refuse(a, text, err, "'data_digits' must be a string of digits");
    double *x = tp_arena_try_alloc(a->arena, text->text.len + 1, sizeof *x, _Alignof(double));
    if (!x)
        return tp_fail(err, TP_ERR_NOMEM, "%s: no room for %zu digits", a->name, text->text.len);
    for (size_t i = 0; i < text->text.len; i++) {
        char c = text->text.data[i];
        if (c < '0' || c > '9')
            return refuse(a, text, err, "'data_digits' holds something that is no digit");
        x[i] = c - '0';
    }
    *ret = x;
    *n = text->text.len;
    return TP_OK;
}

static tp_status answer_one(tp_stats_writer *a, const tp_json *object, tp_error *err)
{
    const tp_json *digits = tp_json_get(object, "data_digits");
    double *x;
    size_t n;
    if (digits)
        TP_TRY(digits_of(a, digits, &x, &n, err));
    else
        TP_TRY(tp_stats_writer_array(a, tp_json_get(object, "data"), "data", &x, &n, err));
    TP_TRY(tp_stats_writer_describe(a, "describe", x, n, err));
    if (tp_json_get(object, "B") && n > 0)
        return tp_stats_writer_resampled(a, x, n, NULL, 0, false, err);
    return TP_OK;
}

static tp_status answer_samples(tp_stats_writer *a, const tp_json *object, bool paired,
                                bool must_pair, tp_error *err)
{
    double *x, *y;
    size_t nx, ny;
    TP_TRY(tp_stats_writer_array(a, tp_json_get(object, "x"), "x", &x, &nx, err));
    TP_TRY(tp_stats_writer_array(a, tp_json_get(object, "y"), "y", &y, &ny, err));
    if (must_pair && nx != ny)
        return tp_fail(err, TP_ERR_FORMAT,
                       "%s: %zu values of 'x' and %zu of 'y' are no pairs; for independent samples "
                       "say \"kind\": \"two\"",
                       a->name, nx, ny);
    TP_TRY(tp_stats_writer_describe(a, "describe_x", x, nx, err));
    TP_TRY(tp_stats_writer_describe(a, "describe_y", y, ny, err));
    TP_TRY(tp_stats_writer_two(a, x, nx, y, ny, err));
    paired = paired && nx == ny;
    if (paired)
        TP_TRY(tp_stats_writer_paired(a, x, y, nx, err));
    if (tp_json_get(object, "B") && nx > 0 && ny > 0)
        return tp_stats_writer_resampled(a, x, nx, y, ny, paired, err);
    return TP_OK;
}

static tp_status answer_points(tp_stats_writer *a, const tp_json *object, tp_error *err)
{
    const tp_json *at = tp_json_get(object, "x");
    double *x = NULL, *y;
    size_t nx = 0, n;
    TP_TRY(tp_stats_writer_array(a, tp_json_get(object, "y"), "y", &y, &n, err));
    if (at) {
        TP_TRY(tp_stats_writer_array(a, at, "x", &x, &nx, err));
        if (nx != n)
            return tp_fail(err, TP_ERR_FORMAT, "%s: %zu values of 'x' and %zu of 'y'", a->name, nx,
                           n);
    }
    return tp_stats_writer_series(a, x, y, n, err);
}

/* NIST's SmLs sets by their rule: a first value c, then c - 0.1 and c + 0.1 in turn. */
static tp_status constructed(tp_stats_writer *a, const tp_json *object, tp_group **ret, size_t *k,
                             tp_error *err)
{
    double replicates = 0, *first;
    bool present;
    size_t n;
    TP_TRY(tp_stats_writer_array(a, tp_json_get(object, "first_values"), "first_values", &first, k,
                                 err));
    TP_TRY(tp_stats_writer_parameter(a, object, "replicates", &replicates, &present, err));
    if (!present || !(replicates >= 1 && replicates <= 1e6) || *k > 1000)
        return tp_fail(err, TP_ERR_FORMAT, "%s: 'replicates' must be from 1 to 1000000", a->name);
    n = (size_t)replicates;
    *ret = tp_arena_try_alloc(a->arena, *k, sizeof **ret, _Alignof(tp_group));
    double *x = tp_arena_try_alloc(a->arena, *k * n, sizeof *x, _Alignof(double));
    if (!*ret || !x)
        return tp_fail(err, TP_ERR_NOMEM, "%s: no room for the groups", a->name);
    for (size_t j = 0; j < *k; j++) {
        (*ret)[j] = (tp_group){x + j * n, n};
        for (size_t i = 0; i < n; i++) /* whole tenths divided once: the nearest double */
            x[j * n + i] = i ? (nearbyint(first[j] * 10) + (i % 2 ? -1 : 1)) / 10 : first[j];
    }
    return TP_OK;
}

static tp_status listed(tp_stats_writer *a, const tp_json *groups, tp_group **ret, size_t *k,
                        tp_error *err)
{
    *k = 0;
    if (!groups || groups->type != TP_JSON_ARRAY)
        return tp_fail(err, TP_ERR_FORMAT, "%s:%u: 'groups' must be an array of arrays", a->name,
                       groups ? groups->line : 1);
    *ret = tp_arena_try_alloc(a->arena, groups->n + 1, sizeof **ret, _Alignof(tp_group));
    if (!*ret)
        return tp_fail(err, TP_ERR_NOMEM, "%s: no room for %zu groups", a->name, groups->n);
    for (const tp_json *g = groups->child; g; g = g->next) {
        double *x;
        size_t n;
        char what[40];
        snprintf(what, sizeof what, "groups[%zu]", *k);
        TP_TRY(tp_stats_writer_array(a, g, what, &x, &n, err));
        (*ret)[(*k)++] = (tp_group){x, n};
    }
    return TP_OK;
}

static tp_status ask_groups(tp_stats_writer *a, const tp_json *object, tp_error *err)
{
    tp_group *groups = NULL;
    size_t k = 0;
    if (tp_json_get(object, "first_values"))
        TP_TRY(constructed(a, object, &groups, &k, err));
    else
        TP_TRY(listed(a, tp_json_get(object, "groups"), &groups, &k, err));
    return tp_stats_writer_groups(a, groups, k, err);
}

static const char *guess_kind(const tp_json *object)
{
    bool has_x = tp_json_get(object, "x"), has_y = tp_json_get(object, "y");
    if (tp_json_get(object, "groups") || tp_json_get(object, "first_values"))
        return "groups";
    if (tp_json_get(object, "data") || tp_json_get(object, "data_digits"))
        return "one";
    if (has_x && has_y)
        return "";
    return has_y ? "series" : NULL;
}

static tp_status dispatch(tp_stats_writer *a, const tp_json *object, tp_error *err)
{
    const char *kind = tp_json_str(tp_json_get(object, "kind"));
    bool known = false;
    TP_TRY(tp_stats_writer_question(a, object, &known, err));
    if (known)
        return TP_OK;
    if (!kind)
        kind = guess_kind(object);
    if (!kind)
        return refuse(a, object, err,
                      "no data set: give 'data', 'x' and 'y', 'groups' or a series 'y'");
    if (strcmp(kind, "one") == 0)
        return answer_one(a, object, err);
    if (strcmp(kind, "two") == 0)
        return answer_samples(a, object, false, false, err);
    if (strcmp(kind, "paired") == 0)
        return answer_samples(a, object, true, true, err);
    if (strcmp(kind, "") == 0)
        return answer_samples(a, object, true, false, err);
    if (strcmp(kind, "groups") == 0)
        return ask_groups(a, object, err);
    if (strcmp(kind, "series") == 0)
        return answer_points(a, object, err);
    return tp_fail(err, TP_ERR_FORMAT,
                   "%s: kind '%.40s' is unknown; use one, two, paired, groups or series", a->name,
                   kind);
}

tp_status tp_question(const char *name, const tp_json *object, const tp_question_options *options,
                      tp_json_w *w, tp_error *err)
{
    tp_arena arena;
    tp_stats_writer a = {
        .w = w,
        .name = name,
        .arena = &arena,
        .o = {.level = options->level, .seed = options->seed, .n_resamples = options->n_resamples}};
    if (!object || object->type != TP_JSON_OBJECT)
        return refuse(&a, object, err,
                      "the data set must be a JSON object, such as "
                      "{\"kind\": \"one\", \"data\": [1, 2, 3]}");
    TP_TRY(tp_arena_init(&arena, (size_t)1 << 36, err));
    tp_status status = read_options(&a, object, err);
    if (status == TP_OK) {
        tp_stats_writer_open(&a);
        if (tp_json_get(object, "names")) {
            tp_json_w_key(w, "names");
            tp_json_w_value(w, tp_json_get(object, "names"));
        }
        status = dispatch(&a, object, err);
    }
    if (status == TP_OK)
        tp_stats_writer_close(&a);
    tp_buf_release(&a.reasons);
    tp_arena_release(&arena);
    return status;
}

tp_status tp_question_text(const char *name, const char *text, size_t n,
                           const tp_question_options *options, tp_json_w *w, tp_error *err)
{
    tp_arena arena;
    const tp_json *root;
    size_t room;
    if (__builtin_mul_overflow(n, (size_t)96, &room) || __builtin_add_overflow(room, 65536, &room))
        return tp_fail(err, TP_ERR_FORMAT, "%s: %zu bytes are too many", name, n);
    TP_TRY(tp_arena_init(&arena, room, err));
    tp_status status = tp_json_parse(&arena, name, text, n, NULL, &root, err);
    if (status == TP_OK)
        status = tp_question(name, root, options, w, err);
    tp_arena_release(&arena);
    return status;
}
