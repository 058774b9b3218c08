/* plot.c - curves thinned to what a screen shows. */
#include "instrument/serve/plot.h"

#include <math.h>
#include <stdlib.h>

#include "base/platform.h"
#include "base/vec.h"

/* The points of [from, to) with the least and the greatest value, in their order. */
static size_t thin_stretch(const tp_metric_point *p, size_t from, size_t to, size_t out[2])
{
    size_t least = SIZE_MAX, most = SIZE_MAX;
    for (size_t i = from; i < to; i++) {
        if (!isfinite(p[i].value))
            continue;
        if (least == SIZE_MAX || p[i].value < p[least].value)
            least = i;
        if (most == SIZE_MAX || p[i].value > p[most].value)
            most = i;
    }
    if (least == SIZE_MAX)
        return 0;
    out[0] = TP_MIN(least, most);
    out[1] = TP_MAX(least, most);
    return least == most ? 1 : 2;
}

static double place_of(const tp_plot *plot, const tp_metric_point *p, size_t i, double begin)
{
    if (plot->axis == TP_PLOT_TIME)
        return p[i].wall_time - begin;
    return p[i].step == TP_STEP_NONE ? (double)i : (double)p[i].step;
}

bool tp_plot_add(tp_plot *plot, tp_metrics *m, const char *tag, const char *name)
{
    const tp_metric_point *p;
    size_t index = tp_metrics_find(m, tag);
    size_t n = index == SIZE_MAX || plot->n == TP_PLOT_SERIES ? 0 : tp_metrics_curve(m, index, &p);
    if (!n)
        return false;
    size_t stretches = TP_MIN(n, (size_t)TP_PLOT_POINTS / 2), kept = 0;
    double *x = tp_vec_new(2 * stretches, sizeof *x), *y = tp_vec_new(2 * stretches, sizeof *y);
    double begin = NAN;
    for (size_t i = 0; i < n; i++) {
        begin = fmin(begin, p[i].wall_time);
        plot->has_gaps |= !isfinite(p[i].value);
    }
    for (size_t k = 0; k < stretches; k++) {
        size_t at[2], found = thin_stretch(p, n * k / stretches, n * (k + 1) / stretches, at);
        for (size_t i = 0; i < found; i++) {
            x[kept] = place_of(plot, p, at[i], begin);
            y[kept] = p[at[i]].value;
            kept += isfinite(x[kept]) ? 1 : 0;
        }
    }
    plot->series[plot->n++] =
        (tp_series){.name = name, .x = x, .y = y, .n = kept, .is_points = kept == 1};
    return true;
}

void tp_plot_svg(const tp_plot *plot, const char *title, tp_buf *out)
{
    static const char *const axes[] = {"step", "time / s", "tokens"};
    TP_OWN(tp_buf) note = {0};
    if (plot->has_gaps)
        tp_buf_adds(&note, "NaN and infinite values are left out");
    if (plot->note)
        tp_buf_addf(&note, "%s%s", note.len ? "; " : "", plot->note);
    const tp_panel panel = {.kind = TP_PANEL_PLOT,
                            .title = title,
                            .x_label = axes[plot->axis],
                            .y_label = plot->y_label,
                            .interval = plot->interval,
                            .from_zero = plot->from_zero,
                            .series = plot->series,
                            .n_series = plot->n,
                            .note = note.len ? note.data : NULL,
                            .why_empty =
                                plot->why_empty ? plot->why_empty : "nothing was recorded"};
    const tp_picture picture = {.panels = &panel, .n_panels = 1, .follows_scheme = true};
    tp_picture_svg(&picture, out);
}

void tp_plot_release(tp_plot *plot)
{
    for (size_t i = 0; i < plot->n; i++) {
        free((void *)(uintptr_t)plot->series[i].x);
        free((void *)(uintptr_t)plot->series[i].y);
    }
    *plot = (tp_plot){0};
}
