/* trends.c - the history of measurements: series over commits, with their change points. */
#include <math.h>
#include <string.h>

#include "base/files.h"
#include "instrument/bench/history.h"
#include "instrument/bench/session.h"
#include "instrument/report/picture.h"
#include "stats/stats.h"

enum { LEAST_POINTS = 10, MAX_POINTS = 100000 };

typedef tp_bench_history_options flags;

typedef struct {
    double value, lower, upper;
    const char *started, *commit, *host;
    bool is_dirty;
} point;

typedef struct {
    const char *name, *metric, *unit, *direction, *kind;
    point *points;
    size_t n, cap;
    bool has_other_units; /* of the same metric there is another series */
    tp_changepoint *changes;
    size_t n_changes;
    bool wanders; /* the changes are those of a series that moves without one */
    double lag1;
} series;

typedef struct {
    tp_arena arena;
    const flags *f;
    const char *const *patterns;
    size_t n_patterns;
    series *all;
    size_t n, cap;
} collection;

/* ---- reading ---- */

static series *series_of(collection *c, const tp_history_point *p)
{
    series *last = c->n ? &c->all[c->n - 1] : NULL; /* they come in order */
    bool is_metric =
        last && strcmp(last->name, p->name) == 0 && strcmp(last->metric, p->metric) == 0;
    if (is_metric && strcmp(last->unit, p->unit) == 0)
        return last;
    if (is_metric)
        last->has_other_units = true;
    series *s = TP_ARENA_PUSH(&c->arena, c->all, c->n, c->cap);
    *s = (series){.name = tp_arena_strdup(&c->arena, p->name),
                  .metric = tp_arena_strdup(&c->arena, p->metric),
                  .unit = tp_arena_strdup(&c->arena, p->unit),
                  .direction = tp_arena_strdup(&c->arena, p->direction),
                  .kind = tp_arena_strdup(&c->arena, p->kind),
                  .has_other_units = is_metric,
                  .lag1 = NAN};
    return s;
}

static tp_status collect(void *user, const tp_history_point *p, tp_error *err)
{
    collection *c = user;
    const flags *f = c->f;
    bool wanted =
        f->metric ? strcmp(f->metric, p->metric) == 0 : f->all_metrics || !p->is_informative;
    if (!wanted || !tp_bench_matches(p->name, c->patterns, c->n_patterns) || !isfinite(p->median))
        return TP_OK;
    series *s = series_of(c, p);
    if (s->n == MAX_POINTS)
        return tp_fail(err, TP_ERR_CONFIG, "'%s' has more than %d points", s->name, MAX_POINTS);
    *TP_ARENA_PUSH(&c->arena, s->points, s->n, s->cap) =
        (point){.value = p->median,
                .lower = p->lower,
                .upper = p->upper,
                .started = tp_arena_strdup(&c->arena, p->started),
                .commit = tp_arena_strdup(&c->arena, p->commit),
                .host = tp_arena_strdup(&c->arena, p->host),
                .is_dirty = p->is_dirty};
    return TP_OK;
}

static tp_status find_changes(collection *c, series *s, tp_error *err)
{
    tp_changepoint_options options = TP_CHANGEPOINT_DEFAULTS;
    options.alpha = c->f->alpha;
    if (s->n < LEAST_POINTS)
        return TP_OK;
    double *values = tp_arena_array(&c->arena, double, s->n);
    for (size_t i = 0; i < s->n; i++)
        values[i] = s->points[i].value;
    s->changes = tp_arena_array(&c->arena, tp_changepoint, s->n / options.min_segment + 1);
    TP_TRY(tp_changepoints(values, s->n, &options, s->changes, &s->n_changes, err));
    s->wanders = tp_changes_wander(values, s->n, s->changes, s->n_changes, &s->lag1);
    return TP_OK;
}

/* ---- showing ---- */

static double percent_of(const tp_changepoint *change)
{
    return 100 * (change->median_after / change->median_before - 1);
}

/* "worse" or "better", by the direction of the metric. */
static const char *word_of(const series *s, const tp_changepoint *change)
{
    bool up = change->median_after > change->median_before;
    bool higher = strcmp(s->direction, "higher") == 0;
    return up == higher ? "better" : "worse";
}

static void show(const series *s, tp_buf *out)
{
    char first[48], last[48], after[48];
    const point *end = &s->points[s->n - 1];
    tp_buf_addf(out, "%-28s %-14s n = %-4zu %s -> %s (%.10s, %.10s)\n", s->name, s->metric, s->n,
                tp_bench_value(s->points[0].value, s->unit, first),
                tp_bench_value(end->value, s->unit, last), end->started,
                *end->commit ? end->commit : "no commit");
    for (size_t i = 0; i < s->n_changes; i++) {
        const tp_changepoint *change = &s->changes[i];
        const point *p = &s->points[change->index];
        if (*p->commit)
            tp_buf_addf(out, "    changed at %.12s%s", p->commit, p->is_dirty ? "+dirty" : "");
        else
            tp_buf_adds(out, "    changed at an unknown commit");
        tp_buf_addf(out, " (%.10s): %s -> %s, %+.2f %%", p->started,
                    tp_bench_value(change->median_before, s->unit, first),
                    tp_bench_value(change->median_after, s->unit, after), percent_of(change));
        if (!s->wanders)
            tp_buf_addf(out, ", %s (p %.3g)", word_of(s, change), change->p);
        tp_buf_addc(out, '\n');
    }
    if (s->n < LEAST_POINTS)
        tp_buf_addf(out, "    too few points to look for changes (at least %d)\n", LEAST_POINTS);
    else if (s->n_changes == 0)
        tp_buf_addf(out, "    no change shown\n");
    else if (s->wanders)
        tp_buf_addf(out,
                    "    not judged: between these points sessions still resemble the ones before "
                    "(lag-1 %.2f), as where a machine drifts\n",
                    s->lag1);
}

static void put_commit(tp_json_w *w, const point *p)
{
    tp_json_w_put_str(w, "commit", *p->commit ? p->commit : NULL);
}

static void put_series(tp_json_w *w, const series *s)
{
    tp_json_w_begin(w, '{');
    tp_json_w_put_str(w, "name", s->name);
    tp_json_w_put_str(w, "metric", s->metric);
    tp_json_w_put_str(w, "unit", s->unit);
    tp_json_w_put_str(w, "direction", s->direction);
    tp_json_w_put_begin(w, "points", '[');
    for (size_t i = 0; i < s->n; i++) {
        const point *p = &s->points[i];
        tp_json_w_begin(w, '{');
        tp_json_w_put_str(w, "started", p->started);
        put_commit(w, p);
        tp_json_w_put_bool(w, "dirty", p->is_dirty);
        tp_json_w_put_str(w, "host", p->host);
        tp_json_w_put_finite(w, "median", p->value);
        tp_json_w_put_finite(w, "lower", p->lower);
        tp_json_w_put_finite(w, "upper", p->upper);
        tp_json_w_end(w, '}');
    }
    tp_json_w_end(w, ']');
    tp_json_w_key(w, "changes");
    if (s->n < LEAST_POINTS)
        tp_json_w_null(w); /* not looked for */
    else {
        tp_json_w_begin(w, '[');
        for (size_t i = 0; i < s->n_changes; i++) {
            const tp_changepoint *change = &s->changes[i];
            tp_json_w_begin(w, '{');
            tp_json_w_put_i64(w, "index", (int64_t)change->index);
            put_commit(w, &s->points[change->index]);
            tp_json_w_put_finite(w, "before", change->median_before);
            tp_json_w_put_finite(w, "after", change->median_after);
            tp_json_w_put_finite(w, "percent", percent_of(change));
            tp_json_w_put_str(w, "word", s->wanders ? NULL : word_of(s, change));
            tp_json_w_put_finite(w, "p", s->wanders ? NAN : change->p);
            tp_json_w_end(w, '}');
        }
        tp_json_w_end(w, ']');
    }
    tp_json_w_put_bool(w, "judged", s->n >= LEAST_POINTS && !s->wanders);
    tp_json_w_put_finite(w, "lag1", s->lag1);
    tp_json_w_end(w, '}');
}

/* The points of a series as arrays of the collection's arena; returns their texts. */
static tp_series make_series(collection *c, const series *s, const char ***ret_commits)
{
    double *columns[3]; /* value, lower, upper */
    const char **details = tp_arena_array(&c->arena, const char *, s->n);
    *ret_commits = tp_arena_array(&c->arena, const char *, s->n);
    for (int k = 0; k < 3; k++)
        columns[k] = tp_arena_array(&c->arena, double, s->n);
    for (size_t i = 0; i < s->n; i++) {
        const point *p = &s->points[i];
        char value[48];
        columns[0][i] = p->value;
        columns[1][i] = p->lower;
        columns[2][i] = p->upper;
        tp_bench_value(p->value, s->unit, value);
        details[i] = tp_arena_printf(&c->arena, "%s %s %s", value, p->started, p->commit);
        (*ret_commits)[i] = tp_arena_strndup(&c->arena, p->commit, 7);
    }
    return (tp_series){.name = s->metric,
                       .y = columns[0],
                       .lower = columns[1],
                       .upper = columns[2],
                       .n = s->n,
                       .details = details};
}

static tp_status draw(collection *c, const series *s, tp_error *err)
{
    char title[300], file[4096];
    const char **commits;
    const tp_series line = make_series(c, s, &commits);
    tp_rule_line *changes = tp_arena_array(&c->arena, tp_rule_line, s->n_changes + 1);
    for (size_t i = 0; i < s->n_changes; i++)
        changes[i] = (tp_rule_line){
            .at = (double)s->changes[i].index, .is_vertical = true, .label = "change"};
    snprintf(title, sizeof title, "%s: %s", s->name, s->metric);
    const tp_panel panel = {.kind = TP_PANEL_PLOT,
                            .title = title,
                            .x_label = "session",
                            .y_label = s->unit,
                            .interval = "95 % interval of each session",
                            .series = &line,
                            .n_series = 1,
                            .lines = changes,
                            .n_lines = s->n_changes,
                            .x_names = commits,
                            .n_x_names = s->n};
    const tp_picture picture = {
        .panels = &panel, .n_panels = 1, .panel_width = 720, .follows_scheme = true};
    int n = snprintf(file, sizeof file, "%s/", c->f->svg);
    snprintf(file + n, sizeof file - (size_t)n, "%s-%s%s%s.svg", s->name, s->metric,
             s->has_other_units ? "-" : "", s->has_other_units ? s->unit : "");
    for (char *p = file + n; *p; p++)
        *p = strchr("/ :*?\"<>|", *p) ? '-' : *p;
    return tp_picture_write(&picture, file, 0, err);
}

/* An exact figure that never changed says nothing; a metric asked for is shown anyway. */
static bool is_dull(const collection *c, const series *s)
{
    bool varies = strcmp(s->kind, "exact") != 0;
    for (size_t i = 1; i < s->n; i++)
        varies |= s->points[i].value != s->points[0].value;
    return !varies && !c->f->metric && !c->f->all_metrics;
}

static tp_status show_all(collection *c, tp_buf *out, tp_error *err)
{
    tp_json_w w;
    tp_json_w_init(&w, out, 1);
    if (c->f->json)
        tp_json_w_begin(&w, '[');
    if (c->f->svg)
        TP_TRY(tp_dir_make(c->f->svg, err));
    for (size_t i = 0; i < c->n; i++) {
        TP_TRY(find_changes(c, &c->all[i], err));
        if (c->f->svg)
            TP_TRY(draw(c, &c->all[i], err));
        if (c->f->json)
            put_series(&w, &c->all[i]);
        else if (!is_dull(c, &c->all[i]))
            show(&c->all[i], out);
    }
    if (c->f->json) {
        tp_json_w_end(&w, ']');
        tp_buf_addc(out, '\n');
    }
    return TP_OK;
}

tp_status tp_trends_write(const tp_bench_history_options *options, const char *const *patterns,
                          size_t n, tp_buf *out, tp_error *err)
{
    char path[4096];
    tp_history *h = NULL;
    tp_host host;
    collection c = {.f = options, .patterns = patterns, .n_patterns = n};
    if (!tp_bench_history_path(options->history, path))
        return tp_fail(err, TP_ERR_CONFIG, "HOME is not set; --history FILE names the history");
    tp_host_detect(&host);
    TP_TRY(tp_arena_init(&c.arena, (size_t)1 << 30, err));
    tp_status status = tp_history_open(path, &h, err);
    if (status == TP_OK)
        status = tp_history_read(h, options->all_hosts ? NULL : host.fingerprint, collect, &c, err);
    if (status == TP_OK && c.n)
        status = show_all(&c, out, err);
    tp_history_close(h);
    tp_arena_release(&c.arena);
    return status;
}
