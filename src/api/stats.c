/* stats.c - columns chosen from a file, and what is asked of them. */
#include "temper/stats.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/platform.h"
#include "base/sized.h"
#include "instrument/report/grid.h"
#include "instrument/report/stats_json.h"
#include "instrument/report/stats_text.h"
#include "stats/dataset.h"
#include "temper/analysis.h"

enum { MAX_BYTES = 1 << 30 };

static tp_status read_options(const tp_stats_options *theirs, tp_stats_options *o, tp_error *err)
{
    TP_TRY(tp_sized_read(o, sizeof *o, theirs, "tp_stats_options", err));
    o->alpha = o->alpha > 0 ? o->alpha : 0.05;
    o->seed = o->has_seed ? o->seed : 1;
    o->width = o->width > 0 ? o->width : 110;
    if (!(o->alpha < 1) || !(o->power >= 0 && o->power < 1) || o->seed < 0 || o->resamples < 0)
        return tp_fail(err, TP_ERR_ARG,
                       "alpha and power lie between 0 and 1, seed and resamples from 0 on");
    return TP_OK;
}

static tp_stats_style style_of(const tp_stats_options *o)
{
    return (tp_stats_style){.level = 1 - o->alpha,
                            .seed = (uint64_t)o->seed,
                            .n_resamples = (size_t)o->resamples,
                            .equal_variances = o->equal_variances,
                            .words = o->words,
                            .margin = o->margin,
                            .power = o->power > 0 ? o->power : 0.8,
                            .bold = o->bold,
                            .width = o->width};
}

static void say_computing(const tp_stats_options *o, const char *what)
{
    if (o->computing)
        o->computing(o->user, what);
}

/* What was written goes to the caller, or away. */
static tp_status give(tp_status status, tp_buf *out, char **ret)
{
    TP_HAND_OVER(status, ret, out->data, tp_buf_release(out));
}

/* ---- columns ---- */

typedef struct {
    tp_stats_column c[TP_DATASET_MAX_COLUMNS];
    double *owned[TP_DATASET_MAX_COLUMNS];
    size_t n;
    tp_stats_column at; /* of a series, .x NULL without */
    double *owned_at;
    tp_buf notes; /* a line each: what was read otherwise than it may be meant */
} selection;

static void release(selection *s)
{
    for (size_t i = 0; i < s->n; i++)
        free(s->owned[i]);
    free(s->owned_at);
    tp_buf_release(&s->notes);
    free(s);
}

static tp_status find(const tp_stats_dataset *data, const char *word, const tp_column **ret,
                      tp_error *err)
{
    tp_nearest near = {.word = word};
    TP_OWN(tp_buf) names = {0};
    const tp_column *other;
    *ret = tp_dataset_find(data, word, &other);
    if (*ret && other)
        return tp_fail(err, TP_ERR_CONFIG,
                       "%s has both '%.60s' and '%.60s': write which one '%.40s' is", data->name,
                       other->name, (*ret)->name, word);
    if (*ret)
        return TP_OK;
    for (size_t i = 0; i < data->n_columns; i++) {
        tp_nearest_offer(&near, data->columns[i].name);
        if (i < 8)
            tp_buf_addf(&names, "%s%.30s", i ? ", " : "", data->columns[i].name);
    }
    tp_status status =
        tp_fail(err, TP_ERR_CONFIG, "%s has no column '%.40s'%s%.40s%s; there are: %.160s%s",
                data->name, word, near.best ? "; did you mean '" : "", near.best ? near.best : "",
                near.best ? "'" : "", tp_buf_str(&names), data->n_columns > 8 ? ", ..." : "");
    return status;
}

static tp_status add(selection *s, const tp_stats_dataset *data, const tp_column *column,
                     tp_error *err)
{
    tp_stats_column *c = &s->c[s->n];
    TP_TRY(tp_dataset_numbers(data, column, &s->owned[s->n], &c->n, &c->n_missing, err));
    c->name = column->name;
    c->x = s->owned[s->n++];
    return TP_OK;
}

/* One group for every word of column `by`. */
static tp_status split(selection *s, const tp_stats_dataset *data, const tp_column *by,
                       const tp_column *value, tp_error *err)
{
    if (!by->is_label)
        return tp_fail(err, TP_ERR_CONFIG, "column '%.60s' holds numbers; --by wants words",
                       by->name);
    TP_FREED double *unused = NULL;
    size_t n, n_missing;
    TP_TRY(tp_dataset_numbers(data, value, &unused, &n, &n_missing, err));
    size_t rows = value->n < by->n ? value->n : by->n;
    for (size_t g = 0; g < by->n_labels; g++) {
        double *x = tp_new(rows + 1, sizeof *x);
        n = 0;
        for (size_t i = 0; i < rows; i++)
            if (by->values[i] == (double)g && !isnan(value->values[i]))
                x[n++] = value->values[i];
        s->owned[s->n] = x;
        s->c[s->n++] = (tp_stats_column){.name = by->labels[g], .x = x, .n = n};
    }
    return TP_OK;
}

static tp_status select_pair(selection *s, const tp_stats_dataset *data, const tp_column *a,
                             const tp_column *b, tp_error *err)
{
    size_t n, dropped;
    TP_TRY(tp_dataset_pairs(data, a, b, &s->owned[0], &s->owned[1], &n, &dropped, err));
    s->n = 2;
    for (size_t i = 0; i < n; i++)
        if (!isfinite(s->owned[1][i] - s->owned[0][i]))
            return tp_fail(err, TP_ERR_FORMAT,
                           "%s: the difference of '%.60s' and '%.60s' in pair %zu, %.3g and %.3g, "
                           "is too large for a number; scale both",
                           data->name, b->name, a->name, i + 1, s->owned[1][i], s->owned[0][i]);
    s->c[0] = (tp_stats_column){a->name, s->owned[0], n, 0, dropped};
    s->c[1] = (tp_stats_column){b->name, s->owned[1], n, 0, 0};
    return TP_OK;
}

/* Without --at the place of a value is the number of its row, which is its own number unless cells
 * before it are missing. */
static void number_rows(selection *s, const tp_column *y)
{
    size_t n = 0;
    s->owned_at = tp_new(y->n + 1, sizeof *s->owned_at);
    for (size_t i = 0; i < y->n; i++)
        if (!isnan(y->values[i]))
            s->owned_at[n++] = (double)i;
    if (n < y->n)
        s->at = (tp_stats_column){"row", s->owned_at, n, 0, 0};
}

/* Equal but for 1 % of the distance, as of 0.333, 0.667, 1, and the rounding of what is large. */
static void note_distances(selection *s)
{
    const double *x = s->at.x;
    double distance = s->at.n > 1 ? x[1] - x[0] : 0;
    for (size_t i = 2; i < s->at.n; i++)
        if (fabs(x[i] - x[i - 1] - distance) >
            0.01 * fabs(distance) + 4 * DBL_EPSILON * fabs(x[i])) {
            tp_buf_addf(&s->notes,
                        "the places (%.60s) are not equally far apart: slopes and change points "
                        "are at them, while the correction for autocorrelation and the decay take "
                        "from each value to the next one step\n",
                        s->at.name);
            return;
        }
}

static tp_status select_series(selection *s, const tp_stats_dataset *data,
                               const tp_stats_options *f, const tp_column *y, tp_error *err)
{
    const tp_column *at;
    size_t n, dropped;
    if (!f->at) {
        TP_TRY(add(s, data, y, err));
        number_rows(s, y);
        note_distances(s);
        return TP_OK;
    }
    TP_TRY(find(data, f->at, &at, err));
    TP_TRY(tp_dataset_pairs(data, at, y, &s->owned_at, &s->owned[0], &n, &dropped, err));
    s->n = 1;
    s->at = (tp_stats_column){at->name, s->owned_at, n, 0, 0};
    s->c[0] = (tp_stats_column){y->name, s->owned[0], n, 0, dropped};
    note_distances(s);
    return TP_OK;
}

static bool is_empty(const tp_column *c) { return c->n == 0 && !c->bad_line; }

/* The columns named, or all that hold numbers, some of which may be no numbers; `by` and the names
 * of rows are none of them. */
static tp_status choose(const tp_stats_dataset *data, const char *const *words, size_t n_words,
                        const tp_column *by, const tp_column **ret, size_t *n, tp_buf *notes,
                        tp_error *err)
{
    size_t n_empty = 0;
    *n = 0;
    if (n_words > TP_DATASET_MAX_COLUMNS)
        return tp_fail(err, TP_ERR_CONFIG, "%zu columns; at most %d", n_words,
                       TP_DATASET_MAX_COLUMNS);
    for (size_t i = 0; i < n_words; i++)
        TP_TRY(find(data, words[i], &ret[(*n)++], err));
    for (size_t i = 0; n_words == 0 && i < data->n_columns; i++) {
        const tp_column *c = &data->columns[i];
        bool is_row_name = data->has_row_names && i == 0;
        if (c == by || is_row_name || (c->is_label && !c->is_mixed))
            continue;
        if (!is_empty(c))
            ret[(*n)++] = c;
        else if (n_empty++ < 8)
            tp_buf_addf(notes, "%s'%.60s'", n_empty > 1 ? ", " : "no values, left out: ", c->name);
    }
    if (n_empty)
        tp_buf_addf(notes, "%s\n", n_empty > 8 ? ", ..." : "");
    if (*n == 0)
        return tp_fail(err, TP_ERR_FORMAT, "%s has no column of numbers", data->name);
    return TP_OK;
}

static void note_reading(const tp_stats_dataset *data, tp_buf *notes)
{
    if (data->is_first_mixed)
        tp_buf_addf(notes, "the first line has words and numbers: it was read as %s\n",
                    data->has_names ? "names, not as values" : "values, not as names");
    if (data->cut_line)
        tp_buf_addf(notes, "line %zu, the last, is cut off within quotes: it was left out\n",
                    data->cut_line);
    if (data->has_row_names)
        tp_buf_adds(notes,
                    "the line of names has one less than the rows: their first column has the "
                    "names of rows, and is left out unless it is named\n");
}

static tp_status select_columns(const tp_stats_options *f, const tp_stats_dataset *data,
                                const char *const *words, size_t n_words, selection *s,
                                tp_error *err)
{
    const tp_column *chosen[TP_DATASET_MAX_COLUMNS], *by = NULL;
    size_t n;
    if (f->by)
        TP_TRY(find(data, f->by, &by, err));
    TP_TRY(choose(data, words, n_words, by, chosen, &n, &s->notes, err));
    note_reading(data, &s->notes);
    if ((by || f->trend) && n != 1)
        return tp_fail(err, TP_ERR_CONFIG,
                       "%s has %zu columns of numbers; --%s takes one: name it after the file",
                       data->name, n, by ? "by" : "trend");
    if (f->paired && n != 2)
        return tp_fail(err, TP_ERR_CONFIG,
                       "%s has %zu columns of numbers; --paired takes two: name them after the "
                       "file",
                       data->name, n);
    if (by)
        return split(s, data, by, chosen[0], err);
    if (f->trend)
        return select_series(s, data, f, chosen[0], err);
    if (f->paired)
        return select_pair(s, data, chosen[0], chosen[1], err);
    for (size_t i = 0; i < n; i++)
        TP_TRY(add(s, data, chosen[i], err));
    return TP_OK;
}

/* ---- answers about columns ---- */

static tp_stats_kind kind_of(const tp_stats_options *o, const selection *s)
{
    return o->trend    ? TP_STATS_SERIES
           : s->n > 2  ? TP_STATS_GROUPS
           : s->n < 2  ? TP_STATS_ONE
           : o->paired ? TP_STATS_PAIRED
                       : TP_STATS_TWO;
}

/* What is asked for and says nothing of columns of this kind is refused. */
static tp_status check_options(const tp_stats_options *o, const char *file, bool is_list,
                               tp_stats_kind kind, tp_error *err)
{
    enum { ONE = 1 << TP_STATS_ONE, TWO = 1 << TP_STATS_TWO, PAIRED = 1 << TP_STATS_PAIRED };
    static const char *const kinds[] = {[TP_STATS_ONE] = "one column",
                                        [TP_STATS_TWO] = "two columns",
                                        [TP_STATS_PAIRED] = "pairs",
                                        [TP_STATS_GROUPS] = "groups",
                                        [TP_STATS_SERIES] = "a series"};
    const struct {
        const char *name;
        bool is_given;
        unsigned kinds; /* that it is for */
    } all[] = {{"--equal-var", o->equal_variances, TWO},
               {"--margin", o->margin > 0, TWO | PAIRED},
               {"--power", o->power > 0, TWO | PAIRED},
               {"--time", o->words == TP_WORDS_TIME, TWO | PAIRED},
               {"--lower-is-better", o->words == TP_WORDS_LOWER, TWO | PAIRED},
               {"--higher-is-better", o->words == TP_WORDS_HIGHER, TWO | PAIRED},
               {o->form == TP_FORM_JSON ? "--resamples" : "--resamples without --json",
                o->resamples > 0, o->form == TP_FORM_JSON ? ONE | TWO | PAIRED : ONE}};
    for (size_t i = 0; i < TP_COUNTOF(all); i++)
        if (all[i].is_given && (is_list || !(all[i].kinds & 1u << kind)))
            return tp_fail(err, TP_ERR_CONFIG, "%s: %s says nothing of %s; leave it out", file,
                           all[i].name, is_list ? "a list of columns" : kinds[kind]);
    return TP_OK;
}

static tp_status put_text(tp_stats_kind kind, const tp_stats_style *style, const selection *s,
                          tp_buf *out, tp_error *err)
{
    switch (kind) {
    case TP_STATS_ONE:
        return tp_stats_text_one(style, &s->c[0], out, err);
    case TP_STATS_TWO:
        return tp_stats_text_two(style, &s->c[0], &s->c[1], out, err);
    case TP_STATS_PAIRED:
        return tp_stats_text_paired(style, &s->c[0], &s->c[1], out, err);
    case TP_STATS_GROUPS:
        return tp_stats_text_groups(style, s->c, s->n, out, err);
    case TP_STATS_SERIES:
        return tp_stats_text_series(style, s->at.x ? &s->at : NULL, &s->c[0], out, err);
    }
    return TP_OK;
}

static void put_notes(const char *notes, tp_buf *out)
{
    for (size_t n; (n = strcspn(notes, "\n")) > 0; notes += n + (notes[n] != 0))
        tp_buf_addf(out, "Note: %.*s.\n", (int)n, notes);
}

static tp_status answer(const tp_stats_options *o, const selection *s, char **ret, tp_error *err)
{
    tp_buf out = {0};
    tp_stats_style style = style_of(o);
    style.notes = tp_buf_str(&s->notes);
    tp_stats_kind kind = kind_of(o, s);
    const tp_stats_column *at = s->at.x ? &s->at : NULL;
    say_computing(o, o->trend ? "looking for the trend" : "resampling");
    tp_status status = o->form == TP_FORM_JSON
                           ? tp_stats_json(kind, &style, s->c, s->n, at, &out, err)
                           : put_text(kind, &style, s, &out, err);
    if (o->form != TP_FORM_JSON)
        put_notes(style.notes, &out);
    say_computing(o, NULL);
    return give(status, &out, ret);
}

/* Columns of records are different things, as step, time and loss: none is compared unless named.
 */
static tp_status list_columns(const tp_stats_options *f, const tp_stats_dataset *data, char **ret,
                              tp_error *err)
{
    TP_OWN(tp_grid) g = {.name = "columns"};
    tp_buf out = {0};
    tp_status status = TP_OK;
    tp_grid_column(&g, "name", "column", TP_CELL_TEXT);
    tp_grid_column(&g, "n", "n", TP_CELL_COUNT);
    tp_grid_column(&g, "mean", "mean", TP_CELL_REAL);
    tp_grid_column(&g, "min", "least", TP_CELL_REAL);
    tp_grid_column(&g, "max", "most", TP_CELL_REAL);
    for (size_t i = 0; i < data->n_columns && status == TP_OK; i++) {
        const tp_column *column = &data->columns[i];
        tp_description d = {.mean = NAN, .min = NAN, .max = NAN};
        double *x = NULL;
        size_t n = 0, n_missing;
        if (column->is_label)
            continue;
        if (tp_dataset_numbers(data, column, &x, &n, &n_missing, NULL) == TP_OK && n > 0)
            status = tp_describe(x, n, 1 - f->alpha, &d, err);
        free(x);
        tp_grid_text(&g, column->name);
        tp_grid_int(&g, (int64_t)n);
        tp_grid_real(&g, d.mean);
        tp_grid_real(&g, d.min);
        tp_grid_real(&g, d.max);
    }
    if (status == TP_OK && f->form == TP_FORM_JSON) {
        tp_json_w w = tp_json_w_open(&out, 2, '{');
        tp_json_w_put_str(&w, "file", data->name);
        tp_json_w_key(&w, g.name);
        tp_grid_json(&g, &w);
        tp_json_w_close(&w, '}');
    } else if (status == TP_OK) {
        tp_buf_addf(&out,
                    "%s: %zu columns of numbers.  Name one to describe it, two to compare them, "
                    "more for groups:\n  temper stats %s COLUMN [--trend]\n\n",
                    data->name, tp_grid_rows(&g), data->name);
        tp_grid_print(&g, 0, f->width, &out);
    }
    TP_HAND_OVER(status, ret, out.data, tp_buf_release(&out));
}

static bool wants_a_list(const tp_stats_options *f, const tp_stats_dataset *data, size_t n_words)
{
    size_t n = 0;
    for (size_t i = 0; i < data->n_columns; i++)
        n += !data->columns[i].is_label;
    return data->is_records && n_words == 0 && n > 1 && !f->by && !f->trend && !f->paired;
}

static tp_status check_numbers(const char *name, const selection *s, tp_error *err)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->c[i].n == 0)
            return tp_fail(err, TP_ERR_FORMAT, "%s: column '%.60s' holds no numbers", name,
                           s->c[i].name);
    return TP_OK;
}

static tp_status about(const tp_stats_options *o, const tp_stats_dataset *data,
                       const char *const *columns, size_t n, char **ret, tp_error *err)
{
    if (wants_a_list(o, data, n)) {
        TP_TRY(check_options(o, data->name, true, TP_STATS_ONE, err));
        return list_columns(o, data, ret, err);
    }
    selection *s = tp_new(1, sizeof *s);
    tp_status status = select_columns(o, data, columns, n, s, err);
    if (status == TP_OK)
        status = check_options(o, data->name, false, kind_of(o, s), err);
    if (status == TP_OK)
        status = check_numbers(data->name, s, err);
    if (status == TP_OK)
        status = answer(o, s, ret, err);
    release(s);
    return status;
}

/* ---- what is read ---- */

typedef struct {
    const char *tag;
    tp_metric_point *points;
    size_t n, at;
} curve;

static void add_record(curve *curves, size_t n, int64_t step, tp_buf *out)
{
    tp_json_w w = tp_json_w_open(out, 0, '{');
    if (step != TP_STEP_NONE)
        tp_json_w_put_i64(&w, "step", step);
    for (curve *c = curves; c < curves + n; c++)
        if (c->at < c->n && c->points[c->at].step == step)
            tp_json_w_put_f64(&w, c->tag, c->points[c->at++].value);
    tp_json_w_close(&w, '}');
}

/* The figures of a run, whoever recorded it: one record a step. */
static tp_status read_run(const char *path, tp_buf *out, tp_error *err)
{
    tp_metrics *m;
    TP_TRY(tp_metrics_open(path, NULL, &m, err));
    size_t n = tp_metrics_count(m);
    TP_FREED curve *curves = tp_new(n + 1, sizeof *curves);
    for (size_t i = 0; i < n; i++) {
        const tp_metric_point *points;
        size_t n_points = tp_metrics_curve(m, i, &points);
        curves[i] = (curve){.tag = tp_metrics_tag(m, i), .n = n_points};
        curves[i].points = tp_new(n_points + 1, sizeof *points);
        memcpy(curves[i].points, points, n_points * sizeof *points);
    }
    for (int64_t step = INT64_MIN; step < INT64_MAX;) {
        int64_t next = INT64_MAX;
        for (curve *c = curves; c < curves + n; c++)
            if (c->at < c->n)
                next = TP_MIN(next, c->points[c->at].step);
        if (next < INT64_MAX)
            add_record(curves, n, next, out);
        step = next;
    }
    for (size_t i = 0; i < n; i++)
        free(curves[i].points);
    tp_metrics_close(m);
    return TP_OK;
}

/* A file, standard input, or a folder: that of a run. */
static tp_status read_place(const char *path, tp_buf *text, char const **ret_name, tp_error *err)
{
    *ret_name = path;
    if (tp_dir_exists(path))
        return read_run(path, text, err);
    *ret_name = tp_input_name(path, TP_INPUT_STREAM);
    return tp_input_read(path, TP_INPUT_STREAM, MAX_BYTES, text, err);
}

tp_status tp_stats_columns(const char *path, const char *const *columns, size_t n,
                           const tp_stats_options *options, char **ret, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    tp_stats_options o;
    TP_OWN(tp_buf) text = {0};
    TP_CLEANUP(tp_dataset_release) tp_stats_dataset data = {0};
    TP_TRY(read_options(options, &o, err));
    if (!path)
        return tp_fail(err, TP_ERR_ARG, "tp_stats_columns: path is NULL");
    const char *name;
    TP_TRY(read_place(path, &text, &name, err));
    TP_TRY(tp_dataset_read(name, tp_buf_str(&text), text.len, &data, err));
    return about(&o, &data, columns, n, ret, err);
}

/* ---- without a file ---- */

tp_status tp_stats_shares(const int64_t *successes, const int64_t *trials, size_t n,
                          const tp_stats_options *options, char **ret, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    tp_stats_options o;
    tp_buf out = {0};
    TP_TRY(read_options(options, &o, err));
    if (n < 1 || n > 2)
        return tp_fail(err, TP_ERR_ARG, "%zu shares; one or two are compared", n);
    tp_stats_style style = style_of(&o);
    tp_status status = o.form == TP_FORM_JSON
                           ? tp_stats_json_shares(&style, successes, trials, n, &out, err)
                           : tp_stats_text_shares(&style, successes, trials, n, &out, err);
    return give(status, &out, ret);
}

tp_status tp_stats_plan_samples(double effect, double n, double power, int sides,
                                const tp_stats_options *options, char **ret, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    tp_stats_options o;
    tp_buf out = {0};
    TP_TRY(read_options(options, &o, err));
    tp_stats_style style = style_of(&o);
    tp_stats_plan plan = {
        .effect = effect, .n = n, .power = power, .sides = sides, .paired = o.paired};
    if (isnan(power) && isnan(effect) + isnan(n) == 1)
        plan.power = 0.8;
    tp_status status = o.form == TP_FORM_JSON ? tp_stats_json_plan(&style, &plan, &out, err)
                                              : tp_stats_text_plan(&style, &plan, &out, err);
    return give(status, &out, ret);
}
