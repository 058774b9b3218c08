/* picture_bars.c - a panel of horizontal bars: one row for each category, whiskers for its
 * interval, a tick for its reference. */
#include <math.h>

#include "instrument/report/picture_internal.h"

enum { LABEL = 11, AXIS = 34, ROW = 18, MOST_ROWS = 400 };

static size_t n_rows(const tp_panel *p)
{
    return p->n_categories < MOST_ROWS ? p->n_categories : MOST_ROWS;
}

double tp_bars_height(const tp_panel *p) { return (double)n_rows(p) * ROW + AXIS; }

static void range(const tp_panel *p, double *low, double *high)
{
    *low = p->from_zero ? 0 : INFINITY;
    *high = p->from_zero ? 0 : -INFINITY;
    for (size_t i = 0; i < n_rows(p); i++) {
        const tp_category *c = &p->categories[i];
        const double all[] = {c->value, c->lower, c->upper, c->reference};
        for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
            if (!isfinite(all[k]) || (p->log_y && all[k] <= 0))
                continue;
            *low = fmin(*low, all[k]);
            *high = fmax(*high, all[k]);
        }
    }
}

static void put_row(const tp_panel *p, const tp_category *c, const tp_axis *x, double y, double row,
                    tp_buf *out)
{
    double start = p->log_y ? x->from : tp_axis_place(x, fmin(fmax(0, x->low), x->high));
    double height = fmin(row * 0.62, 14);
    if (isfinite(c->value) && (!p->log_y || c->value > 0)) {
        double end = tp_axis_place(x, c->value);
        tp_buf_addf(out,
                    "<rect class=\"bar\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\">"
                    "<title>",
                    fmin(start, end), y - height / 2, fmax(fabs(end - start), 1), height);
        tp_markup_escape(out, c->label);
        tp_buf_addf(out, ": %.6g</title></rect>\n", c->value);
    } else
        tp_svg_text(out, start + 4, y + 4, LABEL, TP_START, 80, "faint", "unknown");
    if (isfinite(c->lower) && isfinite(c->upper) && (!p->log_y || c->lower > 0)) {
        double a = tp_axis_place(x, c->lower), b = tp_axis_place(x, c->upper);
        tp_buf_addf(
            out, "<path class=\"whisker\" d=\"M%.1f %.1fH%.1fM%.1f %.1fV%.1fM%.1f %.1fV%.1f\"/>\n",
            a, y, b, a, y - 3, y + 3, b, y - 3, y + 3);
    }
    if (isfinite(c->reference) && (!p->log_y || c->reference > 0)) {
        double at = tp_axis_place(x, c->reference);
        tp_buf_addf(out, "<path class=\"reference\" d=\"M%.1f %.1fV%.1f\"/>\n", at, y - row / 2 + 1,
                    y + row / 2 - 1);
    }
}

void tp_panel_bars(const tp_panel *p, tp_area a, tp_buf *out)
{
    double low, high, labels = 0;
    size_t n = n_rows(p);
    for (size_t i = 0; i < n; i++)
        labels = fmax(labels, tp_text_width(p->categories[i].label, LABEL));
    labels = fmin(labels, a.width * 0.45) + 8;
    tp_axis x;
    range(p, &low, &high);
    tp_axis_make(&x, low, high, p->log_y, (int)fmax(2, (a.width - labels) / 70));
    x.from = a.x + labels;
    x.to = a.x + a.width - 14;
    double bottom = a.y + a.height - AXIS, row = n ? (bottom - a.y) / (double)n : ROW;
    double size = fmin(LABEL, row * 0.8);
    char text[32];
    for (int i = 0; i < x.n_ticks; i++) {
        double at = tp_axis_place(&x, x.ticks[i]);
        tp_buf_addf(out, "<path class=\"grid\" d=\"M%.1f %.1fV%.1f\"/>", at, a.y, bottom);
        tp_svg_text(out, at, bottom + 14, LABEL, TP_MIDDLE, 70, "", tp_axis_text(&x, i, text));
    }
    if (p->x_label)
        tp_svg_text(out, (x.from + x.to) / 2, bottom + 29, LABEL, TP_MIDDLE, x.to - x.from, "",
                    p->x_label);
    for (size_t i = 0; i < n; i++) {
        double y = a.y + row * ((double)i + 0.5);
        tp_svg_text(out, x.from - 6, y + size * 0.35, size, TP_END, labels - 8, "",
                    p->categories[i].label);
        put_row(p, &p->categories[i], &x, y, row, out);
    }
}
