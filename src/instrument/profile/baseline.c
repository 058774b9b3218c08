/* baseline.c - a profile that was kept, and what changed since: by operator, with intervals. */
#include "instrument/profile/baseline.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/order.h"
#include "base/vec.h"
#include "stats/adjust.h"
#include "stats/descriptive.h"

tp_status tp_profile_dir(const char *name, char *ret, size_t cap, tp_error *err)
{
    size_t n = strlen(name);
    if (n == 0 || n > 63 || name[0] == '.' ||
        strspn(name, "abcdefghijklmnopqrstuvwxyz"
                     "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                     "0123456789-_.") != n)
        return tp_fail(err, TP_ERR_ARG,
                       "\"%.80s\" is no name for a profile; use up to 63 letters, digits, - _ .",
                       name);
    snprintf(ret, cap, "runs/profiles/%s", name);
    return TP_OK;
}

tp_status tp_profile_read(const char *path, tp_arena *arena, const tp_json **ret, tp_error *err)
{
    int64_t schema;
    TP_TRY(tp_json_read(arena, path, 64 << 20, NULL, ret, err));
    if (!tp_json_i64(tp_json_get(*ret, "schema"), &schema) || schema != 1)
        return tp_fail(err, TP_ERR_FORMAT, "%s is no profile that this version reads (schema 1)",
                       path);
    return TP_OK;
}

tp_status tp_profile_load(const char *name, tp_arena *arena, const tp_json **ret, tp_error *err)
{
    char dir[128], path[160];
    TP_TRY(tp_profile_dir(name, dir, sizeof dir, err));
    snprintf(path, sizeof path, "%s/profile.json", dir);
    if (!tp_file_exists(path))
        return tp_fail(err, TP_ERR_ARG,
                       "there is no profile named \"%s\" (%s is missing); make it with 'temper "
                       "profile CONFIG --name %s'",
                       name, path, name);
    return tp_profile_read(path, arena, ret, err);
}

/* A series of numbers that are not negative, at least two of them; an operator may rest in a step.
 * False when there is none. *ret is malloced. */
static bool read_series(const tp_json *array, double **ret, size_t *ret_n)
{
    if (!array || array->type != TP_JSON_ARRAY || array->n < 2)
        return false;
    double *v = tp_new(array->n, sizeof *v);
    size_t n = 0;
    for (const tp_json *x = array->child; x; x = x->next)
        if (!tp_json_f64(x, &v[n++]) || !isfinite(v[n - 1]) || v[n - 1] < 0) {
            free(v);
            return false;
        }
    *ret = v;
    *ret_n = n;
    return true;
}

/* The same of an operator: NULL where it never ran. */
static double *read_op(const tp_json *op, size_t *ret_n)
{
    double *v;
    if (!read_series(tp_json_get(op, "s"), &v, ret_n))
        return NULL;
    if (tp_mean(v, *ret_n) > 0)
        return v;
    free(v);
    return NULL;
}

static double *logarithms(const double *v, size_t n)
{
    double *log_v = tp_new(n + 1, sizeof *log_v);
    for (size_t i = 0; i < n; i++)
        log_v[i] = log(v[i]);
    return log_v;
}

static bool is_positive(const double *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!(v[i] > 0))
            return false;
    return n > 0;
}

/* p is left raw: the caller adjusts it and then asks for the verdict. */
static tp_status compare_series(const double *before, size_t n, const double *after, size_t m,
                                tp_profile_change *c, tp_error *err)
{
    c->before_s = tp_mean(before, n);
    c->after_s = tp_mean(after, m);
    c->ratio = c->after_s / c->before_s;
    c->lo = c->hi = NAN;
    c->e = TP_CHANGE_NO_EVIDENCE;
    if (!is_positive(before, n) || !is_positive(after, m))
        return TP_OK;
    double *x = logarithms(before, n), *y = logarithms(after, m);
    tp_status status = tp_change_weigh(x, n, y, m, false, &c->e, err);
    if (status == TP_OK && !isnan(c->e.lo)) {
        c->ratio = exp(tp_mean(y, m) - tp_mean(x, n));
        c->lo = exp(c->e.lo);
        c->hi = exp(c->e.hi);
    }
    free(x);
    free(y);
    return status;
}

/* The same operator of the same part; profiles without parts have the name alone. */
static bool is_same(const tp_json *row, const tp_profile_op *op)
{
    const char *name = tp_json_str(tp_json_get(row, "name"));
    const char *part = tp_json_str(tp_json_get(row, "part"));
    return name && strcmp(name, op->name) == 0 &&
           (!part || !op->part || strcmp(part, op->part) == 0);
}

static const tp_json *find_op(const tp_json *ops, const tp_profile_op *wanted)
{
    for (const tp_json *op = ops ? ops->child : NULL; op; op = op->next)
        if (is_same(op, wanted))
            return op;
    return NULL;
}

static double size_of_change(const tp_profile_change *c)
{
    double before = isnan(c->before_s) ? 0 : c->before_s,
           after = isnan(c->after_s) ? 0 : c->after_s;
    return fabs(after - before);
}

TP_ORDER(by_change, tp_profile_change, TP_COMPARE(size_of_change(y), size_of_change(x)))

/* Nearly everything is training: only other parts are named. */
static void set_name(tp_profile_change *c, const char *name, const char *part)
{
    bool is_plain = !part || strcmp(part, "train") == 0 || strcmp(part, "update") == 0;
    snprintf(c->name, sizeof c->name, "%s%s%s", is_plain ? "" : part, is_plain ? "" : " ", name);
}

static tp_status compare_ops(const tp_json *ops, const tp_profile_data *d, tp_profile_change *rows,
                             int *ret_n, tp_error *err)
{
    tp_status status = TP_OK;
    int n = 0;
    for (int i = 0; i < d->n_ops && status == TP_OK; i++) {
        size_t n_before, n_after = (size_t)d->n_done;
        double after_s = tp_mean(d->ops[i].s, n_after);
        const tp_json *op = find_op(ops, &d->ops[i]);
        if (after_s <= 0)
            continue;
        tp_profile_change *c = &rows[n++];
        *c = (tp_profile_change){.before_s = NAN,
                                 .after_s = after_s,
                                 .ratio = NAN,
                                 .lo = NAN,
                                 .hi = NAN,
                                 .e = TP_CHANGE_NO_EVIDENCE};
        set_name(c, d->ops[i].name, d->ops[i].part);
        TP_FREED double *before = op ? read_op(op, &n_before) : NULL;
        if (before)
            status = compare_series(before, n_before, d->ops[i].s, n_after, c, err);
    }
    *ret_n = n;
    return status;
}

/* Operators that only the baseline has. */
static int add_gone(const tp_json *ops, const tp_profile_data *d, tp_profile_change *rows, int n)
{
    for (const tp_json *op = ops ? ops->child : NULL; op && n < 2 * TP_PROFILE_OPS; op = op->next) {
        const char *name = tp_json_str(tp_json_get(op, "name"));
        bool is_here = false;
        size_t n_before;
        for (int i = 0; name && i < d->n_ops && !is_here; i++)
            is_here = is_same(op, &d->ops[i]) && tp_mean(d->ops[i].s, (size_t)d->n_done) > 0;
        double *before = name && !is_here ? read_op(op, &n_before) : NULL;
        if (!before)
            continue;
        rows[n] = (tp_profile_change){.before_s = tp_mean(before, n_before),
                                      .after_s = NAN,
                                      .ratio = NAN,
                                      .lo = NAN,
                                      .hi = NAN,
                                      .e = TP_CHANGE_NO_EVIDENCE};
        set_name(&rows[n++], name, tp_json_str(tp_json_get(op, "part")));
        free(before);
    }
    return n;
}

static void judge(tp_profile_change *rows, int n)
{
    double p[2 * TP_PROFILE_OPS];
    for (int i = 0; i < n; i++)
        p[i] = rows[i].e.p;
    bool adjusted = n > 0 && tp_adjust(TP_ADJUST_HOLM, p, (size_t)n, p, NULL) == TP_OK;
    for (int i = 0; i < n && adjusted; i++)
        rows[i].e.p = p[i];
    for (int i = 0; i < n; i++)
        rows[i].verdict = tp_change_judge(&rows[i].e, log1p(TP_CHANGE_MARGIN));
}

/* The operators that changed most. */
static tp_status rank_ops(const tp_json *ops, const tp_profile_data *d, tp_profile_comparison *ret,
                          tp_error *err)
{
    TP_FREED tp_profile_change *rows = tp_vec_new(2 * TP_PROFILE_OPS, sizeof *rows);
    int n;
    TP_TRY(compare_ops(ops, d, rows, &n, err));
    n = add_gone(ops, d, rows, n);
    judge(rows, n);
    qsort(rows, (size_t)n, sizeof *rows, by_change);
    ret->n_ops = n < TP_PROFILE_COMPARED ? n : TP_PROFILE_COMPARED;
    memcpy(ret->ops, rows, (size_t)ret->n_ops * sizeof *rows);
    return TP_OK;
}

static void note_text(tp_profile_comparison *c, const char *note)
{
    size_t used = strlen(c->notes);
    snprintf(c->notes + used, sizeof c->notes - used, "%s%s", used ? "; " : "", note);
}

static void note_differences(const tp_json *baseline, const tp_profile_data *d,
                             tp_profile_comparison *c)
{
    const char *machine = tp_json_str(tp_json_get(baseline, "machine"));
    int64_t threads, parameters;
    if (!machine || !d->machine || strcmp(machine, d->machine) != 0)
        note_text(c, "not known to be the same machine");
    if (tp_json_i64(tp_json_get(baseline, "threads"), &threads) && threads != d->threads)
        note_text(c, "another number of threads");
    if (tp_json_i64(tp_json_get(baseline, "parameters"), &parameters) &&
        parameters != d->parameters)
        note_text(c, "another model");
    double before, after = tp_mean(d->used_tokens, (size_t)d->n_done);
    if (tp_json_f64(tp_json_get(baseline, "used_tokens_per_step"), &before) &&
        fabs(before - after) > 0.02 * after)
        note_text(c, "steps of another size");
}

/* ---- both from files ---- */

static tp_status add_op(const tp_json *op, const char *path, tp_profile_data *d, tp_error *err)
{
    const char *name = tp_json_str(tp_json_get(op, "name"));
    size_t n;
    double *s = name ? read_op(op, &n) : NULL;
    if (s && n == (size_t)d->n_done && d->n_ops < TP_PROFILE_OPS) {
        tp_profile_op *row = &d->ops[d->n_ops++];
        *row = (tp_profile_op){.part = tp_json_str(tp_json_get(op, "part")), .s = s};
        snprintf(row->name, sizeof row->name, "%s", name);
        return TP_OK;
    }
    free(s);
    if (!s) /* never ran */
        return TP_OK;
    return d->n_ops == TP_PROFILE_OPS
               ? tp_fail(err, TP_ERR_FORMAT, "%s has more than %d operators", path, TP_PROFILE_OPS)
               : tp_fail(err, TP_ERR_FORMAT, "%s: operator \"%.60s\" has %zu times, not %lld", path,
                         name, n, (long long)d->n_done);
}

tp_status tp_profile_data_of(const tp_json *profile, const char *path, tp_profile_data *ret,
                             tp_error *err)
{
    const tp_json *ops = tp_json_get(profile, "operators");
    double *step, peak, tokens;
    int64_t threads;
    size_t n;
    tp_status status = TP_OK;
    if (!read_series(tp_json_get(profile, "step_s"), &step, &n))
        return tp_fail(err, TP_ERR_FORMAT, "%s has no times of at least two steps", path);
    tp_profile_data_init(ret, 0, (int64_t)n, 0);
    ret->n_done = (int64_t)n;
    ret->machine = tp_json_str(tp_json_get(profile, "machine"));
    memcpy(ret->step_s, step, n * sizeof *step);
    free(step);
    if (tp_json_f64(tp_json_get(profile, "used_tokens_per_step"), &tokens))
        for (size_t i = 0; i < n; i++)
            ret->used_tokens[i] = tokens;
    if (tp_json_f64(tp_json_get(profile, "peak_bytes"), &peak) && peak >= 0 && peak < 0x1p63)
        ret->peak_bytes = (size_t)peak;
    if (tp_json_i64(tp_json_get(profile, "threads"), &threads) && threads > 0 && threads < INT_MAX)
        ret->threads = (int)threads;
    (void)tp_json_i64(tp_json_get(profile, "parameters"), &ret->parameters);
    for (const tp_json *op = ops ? ops->child : NULL; op && status == TP_OK; op = op->next)
        status = add_op(op, path, ret, err);
    if (status != TP_OK)
        tp_profile_data_release(ret);
    return status;
}

/* ---- the whole ---- */

tp_status tp_profile_compare(const tp_json *baseline, const char *name, const tp_profile_data *d,
                             tp_profile_comparison *ret, tp_error *err)
{
    TP_FREED double *before = NULL;
    size_t n;
    const char *made = tp_json_str(tp_json_get(baseline, "made"));
    if (!read_series(tp_json_get(baseline, "step_s"), &before, &n))
        return tp_fail(err, TP_ERR_FORMAT, "profile \"%s\" has no times of at least two steps",
                       name);
    *ret = (tp_profile_comparison){.after_peak = (double)d->peak_bytes};
    snprintf(ret->name, sizeof ret->name, "%s", name);
    snprintf(ret->made, sizeof ret->made, "%s", made ? made : "unknown");
    if (!tp_json_f64(tp_json_get(baseline, "peak_bytes"), &ret->before_peak))
        ret->before_peak = NAN;
    tp_status status = compare_series(before, n, d->step_s, (size_t)d->n_done, &ret->step, err);
    TP_TRY(status);
    ret->step.verdict = tp_change_judge(&ret->step.e, log1p(TP_CHANGE_MARGIN));
    note_differences(baseline, d, ret);
    return rank_ops(tp_json_get(baseline, "operators"), d, ret, err);
}
