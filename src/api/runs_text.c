/* runs_text.c - recorded runs, their comparison and their analysis as tables for people. */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/platform.h"
#include "base/sized.h"
#include "instrument/report/grid.h"
#include "instrument/report/run_picture.h"
#include "temper/analysis.h"
#include "temper/runs.h"

static char *print_grid(tp_grid *g, const char *above, int width)
{
    tp_buf out = {0};
    tp_buf_adds(&out, above);
    tp_grid_print(g, 0, width, &out);
    tp_grid_release(g);
    return out.data;
}

/* A value in at most six digits. */
static void add_number(tp_grid *g, double v, bool is_known)
{
    char text[32];
    if (isfinite(v))
        snprintf(text, sizeof text, "%.6g", v);
    else
        tp_human_value(v, 0, text);
    tp_grid_text(g, is_known ? text : NULL);
}

static void add_interval(tp_grid *g, double lo, double hi)
{
    char text[64];
    snprintf(text, sizeof text, "%.4g .. %.4g", lo, hi);
    tp_grid_text(g, isnan(lo) ? NULL : text);
}

static void add_text_columns(tp_grid *g, const char *const (*names)[2], size_t n)
{
    for (size_t i = 0; i < n; i++)
        tp_grid_column(g, names[i][0], names[i][1], TP_CELL_TEXT);
}

/* ---- metrics ---- */

static void add_step(tp_grid *g, int64_t step)
{
    if (step == TP_STEP_NONE)
        tp_grid_unknown(g);
    else
        tp_grid_int(g, step);
}

static void add_metric(tp_grid *g, const char *tag, const tp_metric_point *p, size_t n)
{
    double least = NAN, most = NAN;
    size_t n_odd = 0;
    for (size_t i = 0; i < n; i++) {
        n_odd += isfinite(p[i].value) ? 0 : 1;
        least = fmin(least, p[i].value);
        most = fmax(most, p[i].value);
    }
    tp_grid_text(g, tag);
    tp_grid_int(g, (int64_t)n);
    add_step(g, p[0].step);
    add_step(g, p[n - 1].step);
    add_number(g, p[n - 1].value, true);
    add_number(g, least, true);
    add_number(g, most, true);
    if (n_odd)
        tp_grid_note(g, "%s: %zu of %zu values are NaN or infinite", tag, n_odd, n);
}

tp_status tp_metrics_text(tp_metrics *m, tp_points_view view, const char *const *tags,
                          size_t n_tags, int width, char **ret, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    TP_NEED(m && ret && (tags || !n_tags), err);
    static const char *const values[][2] = {{"last", "last"}, {"min", "min"}, {"max", "max"}};
    tp_grid g = {.name = "metrics"};
    TP_OWN(tp_buf) head = {0};
    TP_TRY(tp_metrics_check_tags(m, tags, n_tags, err));
    tp_grid_column(&g, "tag", "metric", TP_CELL_TEXT);
    tp_grid_column(&g, "n", "points", TP_CELL_COUNT);
    tp_grid_column(&g, "first_step", "first step", TP_CELL_COUNT);
    tp_grid_column(&g, "last_step", "last step", TP_CELL_COUNT);
    add_text_columns(&g, values, 3);
    for (size_t i = 0; i < tp_metrics_count(m); i++) {
        const tp_metric_point *p;
        const char *tag = tp_metrics_tag(m, i);
        size_t n = tp_metrics_wanted(tag, tags, n_tags) ? tp_metrics_points(m, i, view, &p) : 0;
        if (n)
            add_metric(&g, tag, p, n);
    }
    if (tp_grid_rows(&g) == 0)
        tp_grid_note(&g, "nothing was recorded");
    tp_buf_addf(&head, "%s: %s\n", tp_metrics_name(m), tp_metrics_about(m));
    *ret = print_grid(&g, head.data, width);
    return TP_OK;
}

/* ---- comparison ---- */

static void add_compared(tp_grid *g, const tp_compared_metric *x)
{
    char p[16];
    snprintf(p, sizeof p, x->p_adjusted < 0.0001 ? "< 0.0001" : "%.4f", x->p_adjusted);
    tp_grid_text(g, x->name);
    tp_grid_text(g, x->verdict);
    add_number(g, x->mean_a, !isnan(x->mean_a));
    add_number(g, x->mean_b, !isnan(x->mean_b));
    add_number(g, x->effect, !isnan(x->effect));
    add_interval(g, x->ci_lo, x->ci_hi);
    tp_grid_text(g, isnan(x->p_adjusted) ? NULL : p);
    tp_grid_int(g, (int64_t)x->n);
}

/* "12 metrics: 1 better, 11 same", and what the sides call by two names. */
static void note_whole(tp_grid *g, const tp_run_comparison *c)
{
    static const char *const words[] = {"better", "worse", "changed", "same", "not shown"};
    size_t n = tp_run_comparison_count(c), of[TP_COUNTOF(words)] = {0};
    TP_OWN(tp_buf) whole = {0}, names = {0};
    for (size_t i = 0; i < n; i++) {
        const tp_compared_metric *x = tp_run_comparison_metric(c, i);
        for (size_t k = 0; k < TP_COUNTOF(words); k++)
            of[k] += strcmp(x->verdict, words[k]) == 0;
        if (x->name_b)
            tp_buf_addf(&names, "%s%s is %s", names.len ? ", " : "", x->name, x->name_b);
    }
    for (size_t k = 0; k < TP_COUNTOF(words); k++)
        if (of[k])
            tp_buf_addf(&whole, "%s%zu %s", whole.len ? ", " : "", of[k], words[k]);
    tp_grid_note(g, "%zu metric%s: %s", n, tp_plural(n), tp_buf_str(&whole));
    if (names.len)
        tp_grid_note(g, "named otherwise in B: %s", names.data);
}

/* A reason with all metrics that it holds for, each reason once. */
static void note_reasons(tp_grid *g, const tp_run_comparison *c)
{
    size_t n = tp_run_comparison_count(c);
    for (size_t i = 0; i < n; i++) {
        const tp_compared_metric *x = tp_run_comparison_metric(c, i);
        TP_OWN(tp_buf) names = {0};
        bool is_first = x->why[0];
        for (size_t k = 0; k < n && is_first; k++) {
            const tp_compared_metric *y = tp_run_comparison_metric(c, k);
            if (strcmp(x->why, y->why) != 0)
                continue;
            is_first = k >= i;
            tp_buf_addf(&names, "%s%s", names.len ? ", " : "", y->name);
        }
        if (is_first)
            tp_grid_note(g, "%s: %s", x->why, names.data);
    }
}

static void add_settings(const tp_run_comparison *c, int width, tp_buf *out)
{
    static const char *const names[][2] = {{"key", "setting"}, {"a", "A"}, {"b", "B"}};
    TP_OWN(tp_grid) g = {.name = "settings", .title = "Settings that differ"};
    add_text_columns(&g, names, 3);
    for (size_t i = 0; i < tp_run_comparison_settings(c); i++) {
        const char *a, *b;
        tp_grid_text(&g, tp_run_comparison_setting(c, i, &a, &b));
        tp_grid_text(&g, a);
        tp_grid_text(&g, b);
    }
    if (tp_grid_rows(&g)) {
        tp_buf_addc(out, '\n');
        tp_grid_print(&g, 0, width, out);
    }
}

char *tp_run_comparison_text(const tp_run_comparison *c, int width)
{
    static const char *const names[][2] = {
        {"metric", "metric"}, {"verdict", "verdict"}, {"mean_a", "A"},           {"mean_b", "B"},
        {"effect", "B - A"},  {"ci95", "95 %"},       {"p_adjusted", "p (Holm)"}};
    TP_OWN(tp_grid) g = {.name = "metrics"};
    tp_buf out = {0};
    add_text_columns(&g, names, sizeof names / sizeof *names);
    tp_grid_column(&g, "n", "n", TP_CELL_COUNT);
    for (size_t i = 0; i < tp_run_comparison_count(c); i++)
        add_compared(&g, tp_run_comparison_metric(c, i));
    note_whole(&g, c);
    note_reasons(&g, c);
    tp_grid_print(&g, 0, width, &out);
    add_settings(c, width, &out);
    return out.data;
}

tp_status tp_run_comparison_picture(const tp_run_comparison *c, tp_metrics *const *a, size_t n_a,
                                    tp_metrics *const *b, size_t n_b,
                                    const tp_compare_picture_options *options, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    tp_compare_picture_options o;
    TP_NEED(c && a && n_a && b && n_b, err);
    TP_TRY(tp_sized_read(&o, sizeof o, options, "tp_compare_picture_options", err));
    TP_NEED(o.path && (o.tags || !o.n_tags), err);
    return tp_run_picture_write(c, a, n_a, b, n_b, &o, err);
}

/* ---- analysis ---- */

static void add_inputs(tp_buf *out, const tp_analysis *a, size_t index)
{
    const char *text, *key;
    double value;
    for (size_t k = 0; (key = tp_analysis_input(a, index, k, &value, &text)); k++) {
        tp_buf_addf(out, "%s%s ", k ? ", " : "", key);
        if (text || isnan(value))
            tp_buf_adds(out, text ? text : "unknown");
        else
            tp_buf_addf(out, "%.5g", value);
    }
}

static void add_dimension(tp_grid *g, const tp_analysis *a, size_t i)
{
    const tp_analysis_dimension *d = tp_analysis_result(a, i);
    TP_OWN(tp_buf) inputs = {0};
    tp_grid_text(g, d->name);
    add_number(g, d->value, !isnan(d->value));
    add_interval(g, d->ci_lo, d->ci_hi);
    if (d->error)
        tp_grid_unknown(g);
    else
        tp_grid_int(g, (int64_t)d->n);
    add_number(g, d->threshold, !isnan(d->threshold));
    tp_grid_text(g, d->verdict);
    add_inputs(&inputs, a, i);
    if (d->error)
        tp_grid_note(g, "%s: %s", d->name, d->error);
    else
        tp_grid_note(g, "%s: %s; %s; %s", d->name, d->about, tp_buf_str(&inputs), d->method);
}

/* Of those that fail, the one farthest from its threshold. */
static const tp_analysis_dimension *worst_of(const tp_analysis *a)
{
    const tp_analysis_dimension *worst = NULL;
    double most = 0;
    for (size_t i = 0; i < tp_analysis_count(a); i++) {
        const tp_analysis_dimension *d = tp_analysis_result(a, i);
        double far = fabs(d->value - d->threshold) / (fabs(d->threshold) + 1e-9);
        if (strcmp(d->verdict, "fail") == 0 && (!worst || far > most)) {
            worst = d;
            most = far;
        }
    }
    return worst;
}

char *tp_analysis_text(const tp_analysis *a, int width)
{
    TP_OWN(tp_grid) g = {.name = "dimensions"};
    tp_buf out = {0};
    tp_analysis_summary s = tp_analysis_summarize(a);
    const tp_analysis_dimension *worst = worst_of(a);
    static const char *const values[][2] = {
        {"name", "dimension"}, {"value", "value"}, {"ci95", "95 %"}};
    static const char *const verdicts[][2] = {{"threshold", "threshold"}, {"verdict", "verdict"}};
    add_text_columns(&g, values, 3);
    tp_grid_column(&g, "n", "n", TP_CELL_COUNT);
    add_text_columns(&g, verdicts, 2);
    for (size_t i = 0; i < tp_analysis_count(a); i++)
        add_dimension(&g, a, i);
    tp_grid_print(&g, 0, width, &out);
    size_t n = tp_analysis_count(a);
    tp_buf_addf(&out,
                "\n%zu dimension%s: %zu succeeded, %zu failed (%zu for want of data); %zu below "
                "the threshold\n",
                n, tp_plural(n), s.succeeded, s.failed, s.unknown, s.below_threshold);
    if (worst)
        tp_buf_addf(&out, "worst: %s%s%s\n", worst->name, worst->advice ? "; " : "",
                    worst->advice ? worst->advice : "");
    return out.data;
}

/* ---- all runs of a folder ---- */

/* "3 min": how long ago, in the largest unit. */
static void add_age(tp_grid *g, double since)
{
    static const struct {
        double s;
        const char *name;
    } units[] = {{86400, "d"}, {3600, "h"}, {60, "min"}, {1, "s"}};
    double age = fmax(0, tp_wall_s() - since);
    char text[32];
    size_t i = 0;
    while (i + 1 < TP_COUNTOF(units) && age < units[i].s)
        i++;
    snprintf(text, sizeof text, "%.0f %s", age / units[i].s, units[i].name);
    tp_grid_text(g, isnan(since) ? NULL : text);
}

static void add_progress(tp_grid *g, const tp_run_entry *e)
{
    char text[64];
    if (e->max_steps > 0)
        snprintf(text, sizeof text, "%lld/%lld", (long long)e->step, (long long)e->max_steps);
    else
        snprintf(text, sizeof text, "%lld", (long long)e->step);
    tp_grid_text(g, e->step < 0 ? NULL : text);
}

/* What a run trains; of anything else its kind and the format, where that is not its own. */
static void add_kind(tp_grid *g, const tp_run_entry *e)
{
    bool is_run = strcmp(e->kind, "run") == 0, is_own = strcmp(e->format, "temper") == 0;
    if (is_run)
        tp_grid_text(g, e->algorithm ? e->algorithm : e->format);
    else
        tp_grid_textf(g, "%s%s%s", e->kind, is_own ? "" : ", ", is_own ? "" : e->format);
}

static void add_entry(tp_grid *g, const tp_run_entry *e)
{
    tp_grid_text(g, e->path);
    add_kind(g, e);
    tp_grid_text(g, e->problem ? "unreadable" : e->state);
    add_progress(g, e);
    add_number(g, e->loss, e->has_loss);
    add_number(g, e->reward, e->has_reward);
    add_number(g, e->tokens_per_s, e->has_rate);
    add_age(g, e->updated);
    tp_grid_text(g, e->tags);
    if (e->problem)
        tp_grid_note(g, "%s: %s", e->path, e->problem);
}

char *tp_run_index_text(const tp_run_index *x, const char *filter, int width)
{
    static const char *const columns[][2] = {
        {"path", "run"},     {"kind", "kind"},    {"state", "state"},
        {"step", "step"},    {"loss", "loss"},    {"reward", "reward"},
        {"rate", "rate /s"}, {"updated", "last"}, {"tags", "tags"}};
    tp_grid g = {.name = "runs"};
    if (!x)
        return NULL;
    add_text_columns(&g, columns, TP_COUNTOF(columns));
    for (size_t i = 0; i < tp_run_index_count(x); i++)
        if (tp_run_entry_fits(tp_run_index_entry(x, i), filter))
            add_entry(&g, tp_run_index_entry(x, i));
    if (tp_grid_rows(&g) == 0)
        tp_grid_note(&g, tp_run_index_count(x) ? "nothing fits the filter" : "no run is here");
    if (tp_run_index_note(x))
        tp_grid_note(&g, "%s", tp_run_index_note(x));
    return print_grid(&g, "", width);
}
