/* picture_radar.c - a panel of scores from 0 to 1 on spokes: the polygon of the values, the dashed
 * polygon of the references.  An unknown score is a gap, and its spoke says so.  Values are marked,
 * and so are references without a side, whose neighbours have none. */
#include <math.h>
#include <stdio.h>

#include "instrument/report/picture_internal.h"

enum { LABEL = 11 };

typedef struct {
    double x, y, radius;
    size_t n;
} wheel;

static double angle_of(const wheel *w, size_t i)
{
    return 6.283185307179586 * (double)i / (double)w->n - 1.5707963267948966;
}

static double px(const wheel *w, size_t i, double score)
{
    return w->x + cos(angle_of(w, i)) * w->radius * score;
}

static double py(const wheel *w, size_t i, double score)
{
    return w->y + sin(angle_of(w, i)) * w->radius * score;
}

static double reference_of(const tp_panel *p, size_t i)
{
    return p->categories[i % p->n_categories].reference;
}

static double clamp(double v) { return v < 0 ? 0 : v > 1 ? 1 : v; }

/* Sides between neighbours that are both known. */
static void put_polygon(const tp_panel *p, const wheel *w, bool is_reference, tp_buf *out)
{
    bool whole = true;
    for (size_t i = 0; i < w->n; i++)
        whole &= isfinite(is_reference ? p->categories[i].reference : p->categories[i].value);
    tp_buf_addf(out, "<path class=\"%s\" d=\"",
                is_reference ? "reference"
                : whole      ? "polygon"
                             : "polygon open");
    for (size_t i = 0; i < w->n; i++) {
        const tp_category *a = &p->categories[i], *b = &p->categories[(i + 1) % w->n];
        double from = is_reference ? a->reference : a->value;
        double to = is_reference ? b->reference : b->value;
        if (!isfinite(from) || !isfinite(to))
            continue;
        if (i == 0 || !whole)
            tp_buf_addf(out, "M%.1f %.1f", px(w, i, clamp(from)), py(w, i, clamp(from)));
        tp_buf_addf(out, "L%.1f %.1f", px(w, (i + 1) % w->n, clamp(to)),
                    py(w, (i + 1) % w->n, clamp(to)));
    }
    tp_buf_addf(out, "%s\"/>\n", whole ? "Z" : "");
}

static void put_spoke(const tp_panel *p, const wheel *w, size_t i, tp_area a, tp_buf *out)
{
    const tp_category *c = &p->categories[i];
    double x = px(w, i, 1.09), y = py(w, i, 1.09) + LABEL * 0.35;
    double side = cos(angle_of(w, i));
    if (fabs(side) <= 0.2) /* above or below the wheel, clear of it */
        y += sin(angle_of(w, i)) * LABEL * 0.7;
    tp_text_anchor anchor = side > 0.2 ? TP_START : side < -0.2 ? TP_END : TP_MIDDLE;
    double room = anchor == TP_START ? a.x + a.width - x
                  : anchor == TP_END ? x - a.x
                                     : a.width * 0.6;
    char value[32];
    tp_buf_addf(out, "<path class=\"grid\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", w->x, w->y, px(w, i, 1),
                py(w, i, 1));
    tp_svg_text(out, x, y - LABEL * 0.6, LABEL, anchor, room, "", c->label);
    if (isfinite(c->value))
        snprintf(value, sizeof value, "%.2f", c->value);
    else
        snprintf(value, sizeof value, "unknown");
    tp_svg_text(out, x, y + LABEL * 0.6, LABEL, anchor, room, "faint", value);
    if (isfinite(c->value))
        tp_svg_marker(out, 0, px(w, i, clamp(c->value)), py(w, i, clamp(c->value)), 3);
    if (isfinite(c->reference) && !isfinite(reference_of(p, i + 1)) &&
        !isfinite(reference_of(p, i + w->n - 1)))
        tp_buf_addf(out, "<circle class=\"reference\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"/>\n",
                    px(w, i, clamp(c->reference)), py(w, i, clamp(c->reference)));
}

void tp_panel_radar(const tp_panel *p, tp_area a, tp_buf *out)
{
    wheel w = {.x = a.x + a.width / 2,
               .y = a.y + a.height / 2,
               .radius = fmax(20, fmin(a.width * 0.30, a.height / 2 - 34)),
               .n = p->n_categories};
    for (int ring = 1; ring <= 4; ring++) {
        tp_buf_adds(out, "<path class=\"grid\" fill=\"none\" d=\"");
        for (size_t i = 0; i < w.n; i++)
            tp_buf_addf(out, "%s%.1f %.1f", i ? "L" : "M", px(&w, i, ring / 4.0),
                        py(&w, i, ring / 4.0));
        tp_buf_adds(out, "Z\"/>\n");
    }
    for (size_t i = 0; i < w.n; i++)
        put_spoke(p, &w, i, a, out);
    bool has_reference = false;
    for (size_t i = 0; i < w.n; i++)
        has_reference |= isfinite(p->categories[i].reference);
    if (has_reference)
        put_polygon(p, &w, true, out);
    put_polygon(p, &w, false, out);
}
