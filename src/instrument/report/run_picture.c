/* run_picture.c - both sides of a comparison over the same axis, one panel a metric.
 *
 * Lines differ in dash and marker, bands (run_band.h) in the dash of their edge, so that grey tells
 * them apart. */
#include "instrument/report/run_picture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "instrument/analyze/runs/align.h"
#include "instrument/report/picture.h"
#include "instrument/report/run_band.h"

enum { MOST_PANELS = 12, COLUMNS = 2, SIDES = 2, WIDTH = 560 };

/* A panel with the memory that it points to. */
typedef struct {
    tp_run_band sides[SIDES];
    tp_series series[SIDES];
    tp_buf title, note;
} panel_data;

typedef struct {
    panel_data data[MOST_PANELS];
    tp_panel panels[MOST_PANELS];
    size_t n, n_wanted; /* drawn; that were asked for */
    char names[SIDES][80];
    char interval[120];
} drawing;

static const tp_compared_metric *find(const tp_run_comparison *c, const char *name)
{
    for (size_t i = 0; i < tp_run_comparison_count(c); i++)
        if (strcmp(tp_run_comparison_metric(c, i)->name, name) == 0)
            return tp_run_comparison_metric(c, i);
    return NULL;
}

static void say(const tp_compared_metric *x, double level, tp_buf *out)
{
    if (isnan(x->effect)) {
        tp_buf_addf(out, "not compared: %s", x->why);
        return;
    }
    tp_buf_addf(out, "B - A: %.4g", x->effect);
    if (!isnan(x->ci_lo) && !isnan(x->ci_hi))
        tp_buf_addf(out, ", %.4g %% interval %.4g to %.4g (%s)", 100 * level, x->ci_lo, x->ci_hi,
                    x->method);
    if (!isnan(x->p_adjusted))
        tp_buf_addf(out, "; p %.2g after Holm", x->p_adjusted);
}

static void add_panel(drawing *d, const tp_run_comparison *c, const tp_compared_metric *x,
                      tp_aligned *values)
{
    static const char *const axes[] = {"step", "tokens", "time / s"};
    double level = tp_run_comparison_level(c);
    panel_data *p = &d->data[d->n];
    size_t each = tp_run_band_thin(values);
    tp_run_band_make(&p->sides[0], values, 0, values->n_a, level);
    tp_run_band_make(&p->sides[1], values, values->n_a, values->n_b, level);
    for (int side = 0; side < SIDES; side++)
        p->series[side] = tp_run_band_series(&p->sides[side], d->names[side]);
    tp_buf_addf(&p->title, "%s: %s", x->name, x->verdict);
    say(x, level, &p->note);
    if (each > 1)
        tp_buf_addf(&p->note, "; points are means of %zu", each);
    d->panels[d->n++] = (tp_panel){.kind = TP_PANEL_PLOT,
                                   .title = tp_buf_str(&p->title),
                                   .x_label = axes[tp_run_comparison_align(c)],
                                   .y_label = x->name,
                                   .interval = d->interval[0] ? d->interval : NULL,
                                   .note = tp_buf_str(&p->note),
                                   .why_empty = x->why[0] ? x->why : NULL,
                                   .series = p->series,
                                   .n_series = SIDES};
}

static void name_side(char *out, size_t size, char side, size_t n)
{
    if (n > 1)
        snprintf(out, size, "%c, mean of %zu runs", side, n);
    else
        snprintf(out, size, "%c", side);
}

static void name_sides(drawing *d, size_t n_a, size_t n_b, double level)
{
    name_side(d->names[0], sizeof d->names[0], 'A', n_a);
    name_side(d->names[1], sizeof d->names[1], 'B', n_b);
    if (n_a > 1 || n_b > 1)
        snprintf(d->interval, sizeof d->interval, TP_RUN_BAND_INTERVAL "%s", 100 * level,
                 n_a < 2   ? " (B alone)"
                 : n_b < 2 ? " (A alone)"
                           : "");
}

/* What is learned from first, in the order of the first run. */
static void choose(drawing *d, const tp_run_comparison *c, tp_metrics *const *a, size_t n_a,
                   tp_metrics *const *b, size_t n_b, const tp_compare_picture_options *o)
{
    size_t n = tp_metrics_count(a[0]), *order = tp_vec_new(n + 1, sizeof *order);
    tp_curve_order(a[0], order);
    for (size_t i = 0; i < n; i++) {
        const char *tag = tp_metrics_tag(a[0], order[i]);
        const tp_compared_metric *x = find(c, tag);
        TP_OWN(tp_aligned) values = {0};
        if (!x || !tp_metrics_wanted(tag, o->tags, o->n_tags))
            continue;
        if (d->n_wanted++ < MOST_PANELS &&
            tp_align_metric(a, n_a, b, n_b, tag, tp_run_comparison_align(c), &values))
            add_panel(d, c, x, &values);
    }
    free(order);
}

static void put_runs(tp_buf *out, char side, tp_metrics *const *runs, size_t n)
{
    tp_buf_addf(out, "%s%c: %s", out->len ? "; " : "", side, tp_metrics_name(runs[0]));
    if (n > 1)
        tp_buf_addf(out, " and %zu more", n - 1);
}

static void release(drawing *d)
{
    for (size_t i = 0; i < d->n; i++) {
        panel_data *p = &d->data[i];
        for (int side = 0; side < SIDES; side++)
            tp_run_band_release(&p->sides[side]);
        tp_buf_release(&p->title);
        tp_buf_release(&p->note);
    }
    free(d);
}

tp_status tp_run_picture_write(const tp_run_comparison *c, tp_metrics *const *a, size_t n_a,
                               tp_metrics *const *b, size_t n_b,
                               const tp_compare_picture_options *o, tp_error *err)
{
    TP_TRY(tp_metrics_check_tags(a[0], o->tags, o->n_tags, err));
    drawing *d = tp_vec_new(1, sizeof *d);
    TP_OWN(tp_buf) subtitle = {0};
    tp_status status = TP_OK;
    name_sides(d, n_a, n_b, tp_run_comparison_level(c));
    choose(d, c, a, n_a, b, n_b, o);
    put_runs(&subtitle, 'A', a, n_a);
    put_runs(&subtitle, 'B', b, n_b);
    if (d->n_wanted > d->n)
        tp_buf_addf(&subtitle, "; the first %zu of %zu metrics", d->n, d->n_wanted);
    const tp_picture picture = {.title = "B against A",
                                .subtitle = tp_buf_str(&subtitle),
                                .panels = d->panels,
                                .n_panels = d->n,
                                .columns = d->n > 1 ? COLUMNS : 1,
                                .panel_width = WIDTH};
    if (d->n == 0)
        status = tp_fail(err, TP_ERR_CONFIG, "no metric of both sides is to be drawn");
    else
        status = tp_picture_write(&picture, o->path, 0, err);
    release(d);
    return status;
}
