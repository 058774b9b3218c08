/* picture_plot.c - a panel of series over x with bands, whiskers, thresholds and a legend.
 *
 * A series with more points than pixels is drawn as its minimum and maximum in every column of
 * pixels: the line looks the same and the file stays small. */
#include <math.h>
#include <stdlib.h>

#include "base/vec.h"
#include "instrument/report/picture_internal.h"

enum { LABEL = 11, KEY = 18, DENSE = 2000, MOST_NAMES = 12, MOST_MARKERS = 40 };

typedef struct {
    const tp_panel *panel;
    tp_axis x, y;
    tp_area inner;
} plot;

static double x_of(const tp_series *s, size_t i) { return s->x ? s->x[i] : (double)i; }

static bool is_shown(const plot *p, double v) { return isfinite(v) && (!p->panel->log_y || v > 0); }

static bool is_drawn(const plot *p, const tp_series *s, size_t i)
{
    return is_shown(p, s->y[i]) && isfinite(x_of(s, i));
}

static void include(const tp_panel *panel, double v, double *low, double *high)
{
    if (!isfinite(v) || (panel->log_y && v <= 0))
        return;
    *low = fmin(*low, v);
    *high = fmax(*high, v);
}

/* Room is made for bands as long as they leave the line at least a quarter of the height. */
static void find_ranges(plot *p, double x[2], double y[2])
{
    const tp_panel *panel = p->panel;
    double band[2] = {INFINITY, -INFINITY};
    x[0] = y[0] = INFINITY;
    x[1] = y[1] = -INFINITY;
    for (size_t s = 0; s < panel->n_series; s++) {
        const tp_series *v = &panel->series[s];
        for (size_t i = 0; i < v->n; i++) {
            if (!is_drawn(p, v, i))
                continue;
            x[0] = fmin(x[0], x_of(v, i));
            x[1] = fmax(x[1], x_of(v, i));
            include(panel, v->y[i], &y[0], &y[1]);
            include(panel, v->lower ? v->lower[i] : NAN, &band[0], &band[1]);
            include(panel, v->upper ? v->upper[i] : NAN, &band[0], &band[1]);
        }
    }
    double reach = panel->log_y ? 0 : 1.5 * (y[1] - y[0]);
    for (int side = 0; side < 2; side++) {
        if (isfinite(band[side]) &&
            (panel->log_y || !(reach > 0) || fabs(band[side] - y[side]) <= reach))
            include(panel, band[side], &y[0], &y[1]);
    }
    for (size_t i = 0; i < panel->n_lines; i++) {
        if (!panel->lines[i].is_vertical)
            include(panel, panel->lines[i].at, &y[0], &y[1]);
    }
    if (panel->from_zero && !panel->log_y)
        include(panel, 0, &y[0], &y[1]);
}

/* ---- series ---- */

/* The indices to draw: all, or the lowest and the highest of each column of pixels, and one that
 * is a gap where the column has one. */
static size_t choose(const plot *p, const tp_series *s, size_t **ret)
{
    size_t *at = NULL, n = 0, cap = 0;
    for (size_t i = 0, end; i < s->n; i = end) {
        size_t low = i, high = i, gap = SIZE_MAX;
        end = i + 1;
        if (s->n > DENSE) {
            double column = floor(tp_axis_place(&p->x, x_of(s, i)));
            for (end = i; end < s->n && floor(tp_axis_place(&p->x, x_of(s, end))) == column;
                 end++) {
                if (!is_shown(p, s->y[end]))
                    gap = end;
                else {
                    low = is_shown(p, s->y[low]) && s->y[low] <= s->y[end] ? low : end;
                    high = is_shown(p, s->y[high]) && s->y[high] >= s->y[end] ? high : end;
                }
            }
            end = end > i ? end : i + 1; /* an x that is not a number */
        }
        *TP_VEC_PUSH(at, n, cap) = low < high ? low : high;
        if (low != high)
            *TP_VEC_PUSH(at, n, cap) = low < high ? high : low;
        if (gap != SIZE_MAX)
            *TP_VEC_PUSH(at, n, cap) = gap;
    }
    *ret = at;
    return n;
}

static bool has_band(const plot *p, const tp_series *s, size_t i)
{
    return is_shown(p, s->lower[i]) && is_shown(p, s->upper[i]) && isfinite(x_of(s, i));
}

static void put_point(const plot *p, double x, double y, char command, tp_buf *out)
{
    tp_buf_addf(out, "%c%.1f %.1f", command, tp_axis_place(&p->x, x), tp_axis_place(&p->y, y));
}

static void put_band(const plot *p, const tp_series *s, size_t id, const size_t *at, size_t n,
                     tp_buf *out)
{
    tp_buf_addf(out, "<path class=\"band\" fill=\"%s\" stroke=\"%s\"", tp_series_colour(id),
                tp_series_colour(id));
    if (*tp_series_dash(id)) /* grey tells bands apart by their edges */
        tp_buf_addf(out, " stroke-dasharray=\"%s\"", tp_series_dash(id));
    tp_buf_adds(out, " d=\"");
    for (size_t i = 0; i < n;) {
        size_t end = i;
        while (end < n && has_band(p, s, at[end]))
            end++;
        for (size_t k = i; k < end; k++)
            put_point(p, x_of(s, at[k]), s->upper[at[k]], k == i ? 'M' : 'L', out);
        for (size_t k = end; k > i; k--)
            put_point(p, x_of(s, at[k - 1]), s->lower[at[k - 1]], 'L', out);
        if (end > i)
            tp_buf_addc(out, 'Z');
        i = end > i ? end : i + 1;
    }
    tp_buf_adds(out, "\"/>\n");
}

static void put_line(const plot *p, const tp_series *s, size_t id, const size_t *at, size_t n,
                     tp_buf *out)
{
    bool pen_down = false;
    tp_buf_addf(out, "<path class=\"line\" stroke=\"%s\"", tp_series_colour(id));
    if (*tp_series_dash(id))
        tp_buf_addf(out, " stroke-dasharray=\"%s\"", tp_series_dash(id));
    tp_buf_adds(out, " d=\"");
    for (size_t i = 0; i < n; i++) {
        bool shown = is_drawn(p, s, at[i]);
        if (shown)
            put_point(p, x_of(s, at[i]), s->y[at[i]], pen_down ? 'L' : 'M', out);
        pen_down = shown;
    }
    tp_buf_adds(out, "\"/>\n");
}

/* Of all points, or of those between two gaps: a line does not show them. */
static void put_markers(const plot *p, const tp_series *s, size_t id, const size_t *at, size_t n,
                        bool of_all, tp_buf *out)
{
    bool has_left = false;
    for (size_t i = 0; i < n; i++) {
        size_t k = at[i];
        bool is_right_of_one = has_left;
        has_left = is_drawn(p, s, k);
        bool has_neighbour = is_right_of_one || (i + 1 < n && is_drawn(p, s, at[i + 1]));
        if (!has_left || (has_neighbour && !of_all))
            continue;
        double x = tp_axis_place(&p->x, x_of(s, k));
        if (s->is_points && s->lower && s->upper && has_band(p, s, k))
            tp_buf_addf(out, "<path class=\"whisker\" stroke=\"%s\" d=\"M%.1f %.1fV%.1f\"/>\n",
                        tp_series_colour(id), x, tp_axis_place(&p->y, s->lower[k]),
                        tp_axis_place(&p->y, s->upper[k]));
        tp_buf_adds(out, "<g>");
        tp_svg_marker(out, id, x, tp_axis_place(&p->y, s->y[k]), 3);
        if (s->details && s->details[k]) {
            tp_buf_adds(out, "<title>");
            tp_markup_escape(out, s->details[k]);
            tp_buf_adds(out, "</title>");
        }
        tp_buf_adds(out, "</g>\n");
    }
}

static void put_series(const plot *p, size_t id, tp_buf *out)
{
    const tp_series *s = &p->panel->series[id];
    size_t *at = NULL, n = choose(p, s, &at), n_drawn = 0;
    for (size_t i = 0; i < n; i++)
        n_drawn += is_drawn(p, s, at[i]);
    if (!s->is_points && s->lower && s->upper)
        put_band(p, s, id, at, n, out);
    if (!s->is_points)
        put_line(p, s, id, at, n, out);
    put_markers(p, s, id, at, n, s->is_points || n_drawn <= MOST_MARKERS, out);
    free(at);
}

/* ---- around them ---- */

static double key_width(const char *name) { return 30 + tp_text_width(name, LABEL) + 12; }

/* The legend in as many lines as it needs; returns its height.  `out` NULL: only that. */
static double put_legend(const tp_panel *panel, tp_area a, tp_buf *out)
{
    double x = 0;
    int line = 0;
    if (panel->n_series < 2 && !panel->interval)
        return 0;
    for (size_t i = 0; i < panel->n_series; i++) {
        double width = fmin(key_width(panel->series[i].name), a.width);
        if (x > 0 && x + width > a.width) {
            x = 0;
            line++;
        }
        if (out) {
            double at = a.x + x, y = a.y + KEY * (line + 0.5);
            tp_buf_addf(out, "<path class=\"line\" stroke=\"%s\"", tp_series_colour(i));
            if (*tp_series_dash(i))
                tp_buf_addf(out, " stroke-dasharray=\"%s\"", tp_series_dash(i));
            tp_buf_addf(out, " d=\"M%.1f %.1fh24\"/>", at, y);
            tp_svg_marker(out, i, at + 12, y, 3);
            tp_svg_text(out, at + 30, y + 4, LABEL, TP_START, width - 42, "",
                        panel->series[i].name);
        }
        x += width;
    }
    if (panel->interval) {
        double width = 8 + tp_text_width("shaded: ", LABEL) + tp_text_width(panel->interval, LABEL);
        if (x > 0 && x + width > a.width) {
            x = 0;
            line++;
        }
        if (out) {
            TP_OWN(tp_buf) text = {0};
            tp_buf_addf(&text, "%s: %s", panel->series[0].is_points ? "bars" : "shaded",
                        panel->interval);
            tp_svg_text(out, a.x + x, a.y + KEY * (line + 0.5) + 4, LABEL, TP_START, a.width - x,
                        "faint", tp_buf_str(&text));
        }
    }
    return KEY * (line + 1.0);
}

static void put_x_names(const plot *p, tp_buf *out)
{
    size_t n = p->panel->n_x_names, every = (n + MOST_NAMES - 1) / MOST_NAMES;
    for (size_t i = 0; i < n; i += every ? every : 1)
        tp_svg_text(out, tp_axis_place(&p->x, (double)i), p->inner.y + p->inner.height + 15, LABEL,
                    TP_MIDDLE, p->inner.width / (double)(n / every + 1), "", p->panel->x_names[i]);
}

static void put_axes(const plot *p, tp_buf *out)
{
    const tp_panel *panel = p->panel;
    double right = p->inner.x + p->inner.width, bottom = p->inner.y + p->inner.height;
    char text[32];
    for (int i = 0; i < p->y.n_ticks; i++) {
        double at = tp_axis_place(&p->y, p->y.ticks[i]);
        tp_buf_addf(out, "<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/>", p->inner.x, at, right);
        tp_svg_text(out, p->inner.x - 6, at + 4, LABEL, TP_END, 100, "",
                    tp_axis_text(&p->y, i, text));
    }
    if (panel->x_names)
        put_x_names(p, out);
    for (int i = 0; !panel->x_names && i < p->x.n_ticks; i++) {
        double at = tp_axis_place(&p->x, p->x.ticks[i]);
        tp_buf_addf(out, "<path class=\"axis\" d=\"M%.1f %.1fv4\"/>", at, bottom);
        tp_svg_text(out, at, bottom + 15, LABEL, TP_MIDDLE, 70, "", tp_axis_text(&p->x, i, text));
    }
    tp_buf_addf(out, "<path class=\"axis\" d=\"M%.1f %.1fH%.1f\"/>\n", p->inner.x, bottom, right);
    if (panel->x_label)
        tp_svg_text(out, p->inner.x + p->inner.width / 2, bottom + 31, LABEL, TP_MIDDLE,
                    p->inner.width, "", panel->x_label);
}

static void put_lines(const plot *p, tp_buf *out)
{
    double right = p->inner.x + p->inner.width, bottom = p->inner.y + p->inner.height;
    for (size_t i = 0; i < p->panel->n_lines; i++) {
        const tp_rule_line *l = &p->panel->lines[i];
        const tp_axis *axis = l->is_vertical ? &p->x : &p->y;
        if (!isfinite(l->at) || l->at < axis->low || l->at > axis->high)
            continue;
        double at = tp_axis_place(axis, l->at);
        if (l->is_vertical)
            tp_buf_addf(out, "<path class=\"reference\" d=\"M%.1f %.1fV%.1f\"/>", at, p->inner.y,
                        bottom);
        else
            tp_buf_addf(out, "<path class=\"reference\" d=\"M%.1f %.1fH%.1f\"/>", p->inner.x, at,
                        right);
        if (l->label && l->is_vertical) {
            bool is_left = right - at < tp_text_width(l->label, LABEL) + 6;
            tp_svg_text(out, at + (is_left ? -4 : 4), p->inner.y + 10 + 13 * (double)(i % 3), LABEL,
                        is_left ? TP_END : TP_START, is_left ? at - p->inner.x : right - at, "halo",
                        l->label);
        } else if (l->label)
            tp_svg_text(out, right - 4, at - 4, LABEL, TP_END, p->inner.width, "halo", l->label);
    }
}

/* The y label stands upright beside the axis. */
static void put_y_label(const plot *p, double x, tp_buf *out)
{
    double middle = p->inner.y + p->inner.height / 2;
    tp_buf_addf(out, "<g transform=\"rotate(-90 %.1f %.1f)\">", x, middle);
    tp_svg_text(out, x, middle, LABEL, TP_MIDDLE, p->inner.height, "", p->panel->y_label);
    tp_buf_adds(out, "</g>\n");
}

void tp_panel_plot(const tp_panel *panel, tp_area a, tp_buf *out)
{
    plot p = {.panel = panel};
    double x[2], y[2], legend = put_legend(panel, a, out);
    find_ranges(&p, x, y);
    if (!(x[0] <= x[1])) {
        tp_svg_paragraph(out, a.x + 8, a.y + a.height / 2, 12, a.width - 16, 4, "faint",
                         panel->why_empty ? panel->why_empty : "no data");
        return;
    }
    tp_axis_make(&p.y, y[0], y[1], panel->log_y, (int)fmax(2, (a.height - legend - 40) / 40));
    double left = tp_axis_text_width(&p.y, LABEL) + 10 + (panel->y_label ? 16 : 0);
    p.inner = (tp_area){a.x + left, a.y + legend + 4, a.width - left - 12,
                        a.height - legend - 4 - (panel->x_label ? 38 : 22)};
    tp_axis_make(&p.x, x[0], x[1], false, (int)fmax(2, p.inner.width / 70));
    if (x[0] < x[1]) { /* the data fill the width; ticks lie inside */
        p.x.low = x[0];
        p.x.high = x[1];
        int n = 0;
        for (int i = 0; i < p.x.n_ticks; i++) {
            if (p.x.ticks[i] >= x[0] && p.x.ticks[i] <= x[1])
                p.x.ticks[n++] = p.x.ticks[i];
        }
        p.x.n_ticks = n;
    }
    p.x.from = p.inner.x + 4;
    p.x.to = p.inner.x + p.inner.width - 4;
    p.y.from = p.inner.y + p.inner.height;
    p.y.to = p.inner.y;
    put_axes(&p, out);
    if (panel->y_label)
        put_y_label(&p, a.x + 10, out);
    tp_buf_addf(
        out,
        "<svg x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" viewBox=\"%.1f %.1f %.1f "
        "%.1f\">\n",
        p.inner.x, p.inner.y - 4, p.inner.width, p.inner.height + 8, p.inner.x, p.inner.y - 4,
        p.inner.width, p.inner.height + 8);
    for (size_t i = 0; i < panel->n_series; i++)
        put_series(&p, i, out);
    tp_buf_adds(out, "</svg>\n"); /* the inner picture cuts off what leaves the axes */
    put_lines(&p, out);
}
