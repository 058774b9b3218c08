/* chart.c - writes line and box charts as self-contained SVG. */
#include "instrument/report/chart.h"

#include <math.h>

#include "stats/stats.h"

enum {
    WIDTH = 720,
    HEIGHT = 240,
    LEFT = 76,
    RIGHT = 16,
    TOP = 34,
    BOTTOM = 34,
    ROW = 34,
    MAX_TICKS = 12
};

typedef struct {
    double low, high; /* of the data, widened to ticks */
    double from, to;  /* in pixels */
    double ticks[MAX_TICKS];
    int n_ticks;
} axis;

static void put_escaped(tp_buf *out, const char *text)
{
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        if (*p == '&')
            tp_buf_adds(out, "&amp;");
        else if (*p == '<')
            tp_buf_adds(out, "&lt;");
        else if (*p == '>')
            tp_buf_adds(out, "&gt;");
        else if (*p == '"')
            tp_buf_adds(out, "&quot;");
        else if (*p >= 0x20)
            tp_buf_addc(out, (char)*p);
    }
}

/* Steps of 1, 2 or 5 times a power of ten, about `wanted` of them. */
static void make_axis(double low, double high, double from, double to, int wanted, axis *ret)
{
    if (!(low < high)) { /* one value, or none */
        double middle = isfinite(low) ? low : 0;
        double half = middle != 0 ? fabs(middle) * 0.05 : 1;
        low = middle - half;
        high = middle + half;
    }
    double raw = (high - low) / wanted, power = pow(10, floor(log10(raw)));
    double step = raw / power <= 1   ? power
                  : raw / power <= 2 ? 2 * power
                  : raw / power <= 5 ? 5 * power
                                     : 10 * power;
    *ret = (axis){
        .low = floor(low / step) * step, .high = ceil(high / step) * step, .from = from, .to = to};
    for (double v = ret->low; v <= ret->high + step / 2 && ret->n_ticks < MAX_TICKS; v += step)
        ret->ticks[ret->n_ticks++] = fabs(v) < step / 1e6 ? 0 : v;
}

static double place(const axis *a, double v)
{
    return a->from + (v - a->low) / (a->high - a->low) * (a->to - a->from);
}

static void put_tick(tp_buf *out, double v)
{
    char text[32];
    if (v != 0 && (fabs(v) >= 1e4 || fabs(v) < 1e-3))
        tp_buf_addf(out, "%.3g", v);
    else if (fabs(v) >= 1000)
        tp_buf_adds(out, tp_human_count(v, text));
    else
        tp_buf_addf(out, "%.6g", v);
}

static void begin(tp_buf *out, int width, int height, const char *title, const char *unit)
{
    tp_buf_addf(out,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
                "height=\"%d\" role=\"img\">\n"
                "<style>text{font:12px system-ui,sans-serif;fill:#333}.grid{stroke:#ddd}"
                ".line{stroke:#2166ac;fill:none;stroke-width:1.5}.band{stroke:#2166ac;"
                "stroke-opacity:.45}.dot{fill:#2166ac}.mark{stroke:#b2182b;stroke-dasharray:4 3}"
                ".box{fill:#2166ac;fill-opacity:.25;stroke:#2166ac}"
                "@media(prefers-color-scheme:dark){text{fill:#ddd}.grid{stroke:#444}}</style>\n",
                width, height, width, height);
    tp_buf_adds(out, "<title>");
    put_escaped(out, title);
    tp_buf_addf(out, "</title>\n<text x=\"%d\" y=\"18\" font-weight=\"bold\">", 8);
    put_escaped(out, title);
    if (unit && *unit) {
        tp_buf_adds(out, " (");
        put_escaped(out, unit);
        tp_buf_addc(out, ')');
    }
    tp_buf_adds(out, "</text>\n");
}

/* ---- a series ---- */

static void range_of_points(const tp_chart_line *c, double *low, double *high)
{
    *low = INFINITY;
    *high = -INFINITY;
    for (size_t i = 0; i < c->n; i++) {
        const double all[] = {c->points[i].value, c->points[i].lower, c->points[i].upper};
        for (int k = 0; k < 3; k++) {
            if (!isfinite(all[k]))
                continue;
            *low = fmin(*low, all[k]);
            *high = fmax(*high, all[k]);
        }
    }
}

static void put_point(const tp_chart_point *p, const axis *y, double x, tp_buf *out)
{
    if (p->is_marked)
        tp_buf_addf(out, "<line class=\"mark\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n",
                    x, x, y->from, y->to);
    if (isfinite(p->lower) && isfinite(p->upper))
        tp_buf_addf(out, "<line class=\"band\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n",
                    x, x, place(y, p->lower), place(y, p->upper));
    if (!isfinite(p->value))
        return;
    tp_buf_addf(out, "<circle class=\"dot\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\">", x,
                place(y, p->value));
    if (p->title) {
        tp_buf_adds(out, "<title>");
        put_escaped(out, p->title);
        tp_buf_adds(out, "</title>");
    }
    tp_buf_adds(out, "</circle>\n");
}

void tp_chart_write_line(const tp_chart_line *c, tp_buf *out)
{
    int width = c->width ? c->width : WIDTH, height = c->height ? c->height : HEIGHT;
    double low, high;
    axis y, x = {.low = 0,
                 .high = c->n > 1 ? (double)(c->n - 1) : 1,
                 .from = LEFT + 8,
                 .to = width - RIGHT - 8};
    range_of_points(c, &low, &high);
    make_axis(low, high, height - BOTTOM, TOP, 5, &y);
    begin(out, width, height, c->title, c->unit);
    for (int i = 0; i < y.n_ticks; i++) {
        double at = place(&y, y.ticks[i]);
        tp_buf_addf(out,
                    "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>"
                    "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">",
                    LEFT, width - RIGHT, at, at, LEFT - 6, at + 4);
        put_tick(out, y.ticks[i]);
        tp_buf_adds(out, "</text>\n");
    }
    size_t every = c->n > 10 ? (c->n + 9) / 10 : 1;
    bool pen_down = false;
    tp_buf_adds(out, "<path class=\"line\" d=\"");
    for (size_t i = 0; i < c->n; i++) {
        bool has = isfinite(c->points[i].value);
        if (has)
            tp_buf_addf(out, "%s%.1f %.1f", pen_down ? "L" : "M", place(&x, (double)i),
                        place(&y, c->points[i].value));
        pen_down = has;
    }
    tp_buf_adds(out, "\"/>\n");
    for (size_t i = 0; i < c->n; i++) {
        double at = place(&x, (double)i);
        put_point(&c->points[i], &y, at, out);
        if (!c->points[i].label || i % every != 0)
            continue;
        tp_buf_addf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">", at, height - 12);
        put_escaped(out, c->points[i].label);
        tp_buf_adds(out, "</text>\n");
    }
    tp_buf_adds(out, "</svg>\n");
}

/* ---- boxes ---- */

static void put_box(const tp_chart_group *g, const axis *x, double y, tp_buf *out)
{
    double *sorted = malloc((g->n + 1) * sizeof *sorted);
    size_t n = 0;
    for (size_t i = 0; sorted && i < g->n; i++) {
        if (isfinite(g->values[i]))
            sorted[n++] = g->values[i];
    }
    if (n == 0) {
        free(sorted);
        return;
    }
    tp_sort(sorted, n);
    double q1 = tp_quantile_sorted(sorted, n, 0.25), q3 = tp_quantile_sorted(sorted, n, 0.75);
    double median = tp_quantile_sorted(sorted, n, 0.5), reach = 1.5 * (q3 - q1);
    double low = q1, high = q3;
    for (size_t i = 0; i < n; i++) {
        if (sorted[i] >= q1 - reach && sorted[i] <= q3 + reach) {
            low = fmin(low, sorted[i]);
            high = fmax(high, sorted[i]);
        } else
            tp_buf_addf(out, "<circle class=\"dot\" cx=\"%.1f\" cy=\"%.1f\" r=\"2\"/>\n",
                        place(x, sorted[i]), y);
    }
    tp_buf_addf(out,
                "<line class=\"band\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>"
                "<rect class=\"box\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"16\"/>"
                "<line class=\"line\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n",
                place(x, low), place(x, high), y, y, place(x, q1), y - 8,
                place(x, q3) - place(x, q1), place(x, median), place(x, median), y - 8, y + 8);
    free(sorted);
}

void tp_chart_write_boxes(const tp_chart_boxes *c, tp_buf *out)
{
    int width = c->width ? c->width : WIDTH;
    int height = TOP + BOTTOM + ROW * (int)(c->n < 1000 ? c->n : 1000);
    double low = INFINITY, high = -INFINITY;
    axis x;
    for (size_t g = 0; g < c->n; g++) {
        for (size_t i = 0; i < c->groups[g].n; i++) {
            if (!isfinite(c->groups[g].values[i]))
                continue;
            low = fmin(low, c->groups[g].values[i]);
            high = fmax(high, c->groups[g].values[i]);
        }
    }
    make_axis(low, high, 2 * LEFT, width - RIGHT, 5, &x);
    begin(out, width, height, c->title, c->unit);
    for (int i = 0; i < x.n_ticks; i++) {
        double at = place(&x, x.ticks[i]);
        tp_buf_addf(out,
                    "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>"
                    "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">",
                    at, at, TOP, height - BOTTOM, at, height - 12);
        put_tick(out, x.ticks[i]);
        tp_buf_adds(out, "</text>\n");
    }
    for (size_t g = 0; g < c->n && g < 1000; g++) {
        double y = TOP + ROW * ((double)g + 0.5);
        tp_buf_addf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">", 2 * LEFT - 8, y + 4);
        put_escaped(out, c->groups[g].label);
        tp_buf_adds(out, "</text>\n");
        put_box(&c->groups[g], &x, y, out);
    }
    tp_buf_adds(out, "</svg>\n");
}
