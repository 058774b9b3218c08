/* run_dashboard.c - the six panels of a run, by picture.h, and the page around them. */
#include "instrument/report/run_dashboard.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/output.h"
#include "base/platform.h"
#include "instrument/analyze/runs/curve.h"
#include "instrument/report/picture.h"
#include "stats/descriptive.h"

enum { PANELS = 6, CURVES = 2, MOST_DIMENSIONS = 16, WINDOWS = 40, MEDIANS = 800 };

/* A panel with the memory that it points to. */
typedef struct {
    tp_curve curves[CURVES];
    double *smooth_at, *smooth;
    tp_series series[CURVES + 1];
    size_t n_series;
    char label[96], y_label[160], why[160];
    tp_buf note;
} panel_data;

typedef struct {
    const tp_analysis *analysis;
    tp_metrics *run;
    panel_data data[PANELS];
    tp_panel panels[PANELS];
    tp_category scores[MOST_DIMENSIONS];
} dashboard;

static const tp_analysis_dimension *find(const tp_analysis *a, const char *name)
{
    for (size_t i = 0; i < tp_analysis_count(a); i++) {
        if (strcmp(tp_analysis_result(a, i)->name, name) == 0)
            return tp_analysis_result(a, i);
    }
    return NULL;
}

static double dimension_score(const tp_analysis_dimension *d, double *ret_reference)
{
    bool known = isfinite(d->value) && isfinite(d->threshold);
    *ret_reference = NAN;
    if (!known || (d->direction < 0 && !(d->threshold > 0)))
        return NAN;
    if (d->direction > 0) {
        *ret_reference = fmin(fmax(d->threshold, 0), 1);
        return fmin(fmax(d->value, 0), 1);
    }
    *ret_reference = 0.5;
    return d->threshold / (d->threshold + fmax(d->value, 0));
}

/* ---- a panel of curves ---- */

/* Of those that are not NaN; NaN where all are. */
static double median_of(const double *x, size_t n, double *scratch)
{
    size_t m = 0;
    for (size_t i = 0; i < n; i++)
        if (!isnan(x[i]))
            scratch[m++] = x[i];
    tp_sort(scratch, m);
    return m ? tp_median_sorted(scratch, m) : NAN;
}

/* Median of the `width` values up to each of the points, the windows being whole; of a long curve
 * as many points as a picture can show, the last among them.  Returns how many. */
static size_t running_median(const tp_curve *c, size_t width, double *at, double *median)
{
    TP_FREED double *window = tp_new(width, sizeof *window);
    size_t stride = (c->n - width) / MEDIANS + 1, n = 0;
    for (size_t end = width + (c->n - width) % stride; end <= c->n; end += stride) {
        at[n] = c->step[end - 1];
        median[n++] = median_of(c->value + end - width, width, window);
    }
    return n;
}

static void add_curve(dashboard *d, int at, tp_run_role role)
{
    panel_data *p = &d->data[at];
    tp_curve *c = &p->curves[p->n_series];
    *c = tp_curve_drawn(d->run, role);
    if (c->n > c->n_odd)
        p->series[p->n_series++] = (tp_series){.name = c->tag,
                                               .x = c->step,
                                               .y = c->value,
                                               .n = c->n,
                                               .is_points = c->n - c->n_odd == 1};
    else {
        if (c->tag && !p->why[0])
            snprintf(p->why, sizeof p->why, "%s has no finite value", c->tag);
        tp_curve_release(c);
    }
}

/* The running median of the first curve as another one, where there is enough of it. */
static void add_median(dashboard *d, int at)
{
    panel_data *p = &d->data[at];
    const tp_curve *c = &p->curves[0];
    size_t width = c->n / WINDOWS;
    if (p->n_series != 1 || (c->n - c->n_odd) / WINDOWS < 2)
        return;
    p->smooth_at = tp_new(MEDIANS + 1, sizeof *p->smooth_at);
    p->smooth = tp_new(MEDIANS + 1, sizeof *p->smooth);
    size_t n = running_median(c, width, p->smooth_at, p->smooth);
    snprintf(p->label, sizeof p->label, "median of %s%zu values", c->n_odd ? "up to " : "", width);
    p->series[p->n_series++] =
        (tp_series){.name = p->label, .x = p->smooth_at, .y = p->smooth, .n = n};
}

/* A bound may be infinite. */
static bool has_interval(const tp_analysis_dimension *f)
{
    return !isnan(f->ci_lo) && !isnan(f->ci_hi);
}

/* "0.62 [0.58, 0.66], pass: improvement ..."  */
static void say_dimension(dashboard *d, int at, const char *name)
{
    const tp_analysis_dimension *f = find(d->analysis, name);
    tp_buf *note = &d->data[at].note;
    if (!f) {
        d->panels[at].why_empty = "not asked for";
        return;
    }
    if (f->error) {
        tp_buf_adds(note, f->error);
        return;
    }
    tp_buf_addf(note, "%s: %.4g", f->about, f->value);
    if (has_interval(f))
        tp_buf_addf(note, " [%.4g, %.4g]", f->ci_lo, f->ci_hi);
    if (isfinite(f->threshold))
        tp_buf_addf(note, "; %s (threshold %.4g)", f->verdict, f->threshold);
}

/* Values that fall by factors lie flat on a linear axis; those that hardly move do on the other. */
static bool is_for_logarithms(const tp_curve *c)
{
    enum { LEAST_FACTOR = 4 };
    double least = INFINITY, most = -INFINITY;
    for (size_t i = 0; i < c->n; i++) {
        least = fmin(least, c->value[i]); /* fmin leaves NaN out */
        most = fmax(most, c->value[i]);
    }
    return least > 0 && most > LEAST_FACTOR * least;
}

static void make_curves(dashboard *d)
{
    static const struct {
        const char *name, *title;
        tp_run_role roles[CURVES];
        int n_roles;
        bool with_median, from_zero;
    } rows[] = {
        {"training", "Training", {TP_ROLE_REWARD}, 1, true, false},
        {"inference", "Inference", {TP_ROLE_INFERENCE_RATE}, 1, true, true},
        {"memory", "Memory", {TP_ROLE_MEMORY}, 1, false, true},
        {"convergence", "Convergence", {TP_ROLE_REWARD}, 1, true, false},
        {"generalization", "Generalization", {TP_ROLE_LOSS, TP_ROLE_EVAL_LOSS}, 2, false, false},
    };
    for (int i = 0; i < (int)(sizeof rows / sizeof *rows); i++) {
        panel_data *p = &d->data[i];
        for (int k = 0; k < rows[i].n_roles; k++)
            add_curve(d, i, rows[i].roles[k]);
        bool is_empty = p->n_series == 0 && !p->why[0];
        bool is_loss = rows[i].roles[0] == TP_ROLE_REWARD && is_empty;
        if (is_loss) /* a reward is what RL trains; else the loss */
            add_curve(d, i, TP_ROLE_LOSS);
        bool is_time = i == 1 && p->n_series == 0; /* also where a rate was never finite */
        if (is_time)
            add_curve(d, i, TP_ROLE_INFERENCE_TIME);
        if (p->n_series)
            snprintf(p->y_label, sizeof p->y_label, "%s%s", p->series[0].name,
                     is_time ? " / s" : "");
        if (rows[i].with_median)
            add_median(d, i);
        d->panels[i] = (tp_panel){.kind = TP_PANEL_PLOT,
                                  .title = rows[i].title,
                                  .x_label = "step",
                                  .y_label = p->n_series ? p->y_label : NULL,
                                  .series = p->series,
                                  .n_series = p->n_series,
                                  .from_zero = rows[i].from_zero,
                                  /* an exponential approach is a line there */
                                  .log_y = i == 3 && is_loss && is_for_logarithms(&p->curves[0]),
                                  .why_empty = p->why[0] ? p->why : "the run recorded none"};
        say_dimension(d, i, rows[i].name);
        d->panels[i].note = p->note.len ? p->note.data : NULL;
    }
}

static void make_radar(dashboard *d)
{
    size_t n = TP_MIN(tp_analysis_count(d->analysis), (size_t)MOST_DIMENSIONS);
    for (size_t i = 0; i < n; i++) {
        const tp_analysis_dimension *f = tp_analysis_result(d->analysis, i);
        tp_category *c = &d->scores[i];
        *c = (tp_category){.label = f->name, .lower = NAN, .upper = NAN};
        c->value = dimension_score(f, &c->reference);
    }
    d->panels[PANELS - 1] = (tp_panel){
        .kind = TP_PANEL_RADAR,
        .title = "Summary",
        .categories = d->scores,
        .n_categories = n,
        .why_empty = "fewer than three dimensions were asked for",
        .note =
            "Scores: the value where more is better, threshold / (threshold + value) where less "
            "is. Dashed: the threshold."};
}

static void release(dashboard *d)
{
    for (int i = 0; i < PANELS; i++) {
        for (int k = 0; k < CURVES; k++)
            tp_curve_release(&d->data[i].curves[k]);
        free(d->data[i].smooth_at);
        free(d->data[i].smooth);
        tp_buf_release(&d->data[i].note);
    }
}

/* ---- files ---- */

static void put_cell(tp_buf *out, double v)
{
    if (isfinite(v))
        tp_buf_addf(out, "<td class=n>%.4g", v);
    else
        tp_buf_adds(out, "<td class=n>unknown");
}

static void put_row(tp_buf *out, const tp_analysis_dimension *f)
{
    tp_buf_addf(out, "<tr><th scope=row>%s", f->name);
    put_cell(out, f->value);
    if (has_interval(f))
        tp_buf_addf(out, "<td class=n>%.4g to %.4g", f->ci_lo, f->ci_hi);
    else
        tp_buf_adds(out, "<td class=n>unknown");
    put_cell(out, f->threshold);
    tp_buf_addf(out, "<td class=\"%s\">%s<td>", strcmp(f->verdict, "fail") == 0 ? "bad" : "",
                f->verdict);
    tp_markup_escape(out, f->error ? f->error : f->about);
    if (f->advice && strcmp(f->verdict, "fail") == 0) {
        tp_buf_adds(out, "<br><b>To do:</b> ");
        tp_markup_escape(out, f->advice);
    }
    tp_buf_addc(out, '\n');
}

static void put_body(const dashboard *d, const tp_picture *picture, tp_buf *out)
{
    tp_buf_adds(out, "<div class=wide>\n");
    tp_picture_svg(picture, out);
    tp_buf_adds(out, "<table>\n<tr><th>dimension<th class=n>value<th class=n>95 % interval"
                     "<th class=n>threshold<th>verdict<th>what\n");
    for (size_t i = 0; i < tp_analysis_count(d->analysis); i++)
        put_row(out, tp_analysis_result(d->analysis, i));
    tp_buf_adds(out, "</table></div>\n");
}

static void make_page(const dashboard *d, const tp_picture *picture, tp_buf *out)
{
    tp_buf_adds(out, "<!doctype html>\n<html lang=en><meta charset=utf-8>\n<title>");
    tp_markup_escape(out, picture->title);
    tp_buf_adds(out,
                "</title>\n<meta name=viewport content=\"width=device-width\">\n<style>"
                ":root{color-scheme:light dark}body{font:15px/1.4 'DejaVu Sans',Verdana,sans-serif;"
                "margin:1em;max-width:100em}svg{max-width:100%;height:auto}"
                "table{border-collapse:collapse}th,td{padding:.3em .8em;text-align:left;"
                "vertical-align:top;border-bottom:1px solid #8884}.n{text-align:right;"
                "white-space:nowrap}.wide{overflow-x:auto}"
                ".wide svg{min-width:45em}.bad{font-weight:bold;color:#d55e00}</style>\n");
    put_body(d, picture, out);
    tp_buf_adds(out, "</html>\n");
}

static tp_status write_page(const dashboard *d, const tp_picture *picture, const char *path,
                            tp_error *err)
{
    tp_picture inner = *picture;
    TP_OWN(tp_buf) page = {0};
    inner.follows_scheme = true;
    make_page(d, &inner, &page);
    return tp_output_put(path, page.data, page.len, err);
}

static const char *const endings[] = {"svg", "html", "png", "pdf"};

unsigned tp_dashboard_format(const char *name)
{
    for (unsigned i = 0; i < 4; i++)
        if (strcmp(name, endings[i]) == 0)
            return 1U << i;
    return 0;
}

static tp_status write_files(const dashboard *d, const tp_picture *picture, const char *folder,
                             unsigned formats, tp_buf *ret_why, tp_error *err)
{
    const char *why;
    bool can_raster = tp_picture_can_raster(&why);
    if (!can_raster && formats & (TP_DASHBOARD_PNG | TP_DASHBOARD_PDF))
        tp_buf_addf(ret_why, "dashboard.png and dashboard.pdf are not drawn: %s", why);
    for (int i = 0; i < 4; i++) {
        TP_OWN(tp_buf) path = {0};
        if (!(formats & 1U << i))
            continue;
        tp_buf_addf(&path, "%s/dashboard.%s", folder, endings[i]);
        if (i == 1)
            TP_TRY(write_page(d, picture, path.data, err));
        else if (i == 0 || can_raster)
            TP_TRY(tp_picture_write(picture, path.data, 300, err));
    }
    return TP_OK;
}

static tp_picture make_picture(dashboard *d)
{
    make_curves(d);
    make_radar(d);
    return (tp_picture){.title = tp_metrics_name(d->run),
                        .subtitle = tp_metrics_about(d->run),
                        .panels = d->panels,
                        .n_panels = PANELS,
                        .columns = 3};
}

void tp_run_dashboard_html(const tp_analysis *a, tp_metrics *run, tp_buf *out)
{
    dashboard d = {.analysis = a, .run = run};
    tp_picture picture = make_picture(&d);
    picture.title = picture.subtitle = NULL;
    picture.follows_scheme = true;
    put_body(&d, &picture, out);
    release(&d);
}

tp_status tp_run_dashboard_write(const tp_analysis *a, tp_metrics *run, const char *folder,
                                 unsigned formats, tp_buf *ret_why, tp_error *err)
{
    dashboard d = {.analysis = a, .run = run};
    const tp_picture picture = make_picture(&d);
    tp_status status = write_files(&d, &picture, folder, formats, ret_why, err);
    release(&d);
    return status;
}
