/* picture.c - a picture as SVG: the grid of panels and the style. */
#include "instrument/report/picture.h"

#include <math.h>

#include "instrument/report/picture_internal.h"

enum { WIDTH = 480, HEIGHT = 320, GAP = 16, TITLE = 22, NOTE = 14 };

static double note_height(const tp_panel *p, double width)
{
    return p->note ? NOTE * tp_svg_paragraph(NULL, 0, 0, 10.5, width, 3, "", p->note) + 4 : 0;
}

static double height_of(const tp_panel *p, double width, double height)
{
    double bars = p->kind == TP_PANEL_BARS ? tp_bars_height(p) + TITLE + note_height(p, width) : 0;
    return fmax(height, bars);
}

/* `height` is that of the picture's panels. */
static void put_panel(const tp_panel *p, tp_area a, double height, tp_buf *out)
{
    static void (*const put[])(const tp_panel *, tp_area, tp_buf *) = {
        [TP_PANEL_PLOT] = tp_panel_plot,
        [TP_PANEL_BARS] = tp_panel_bars,
        [TP_PANEL_RADAR] = tp_panel_radar,
    };
    double note = note_height(p, a.width);
    if (p->kind != TP_PANEL_BARS) /* beside long bars a curve keeps its shape */
        a.height = fmin(a.height, height * 1.3);
    tp_area inner = {a.x, a.y + TITLE, a.width, a.height - TITLE - note};
    if (p->title) /* bold text is up to a tenth wider */
        tp_svg_text(out, a.x, a.y + 13, 13, TP_START, a.width / 1.1, "title", p->title);
    bool is_empty =
        p->kind != TP_PANEL_PLOT && p->n_categories < (p->kind == TP_PANEL_RADAR ? 3 : 1);
    if (is_empty)
        tp_svg_paragraph(out, a.x + 8, a.y + a.height / 2, 12, a.width - 16, 4, "faint",
                         p->why_empty ? p->why_empty : "no data");
    else
        put[p->kind](p, inner, out);
    if (p->note)
        tp_svg_paragraph(out, a.x, a.y + a.height - note + 12, 10.5, a.width, 3, "faint", p->note);
}

static void begin(const tp_picture *p, double width, double height, tp_buf *out)
{
    tp_buf_addf(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" "
        "height=\"%.0f\" role=\"img\">\n<style>"
        "text{font-family:'DejaVu Sans',Verdana,sans-serif;fill:#222}"
        ".title{font-weight:bold}.faint{fill:#666}.paper{fill:#fff}"
        ".grid{stroke:#ddd}.axis{stroke:#666;fill:none}"
        ".line{fill:none;stroke-width:1.6;stroke-linejoin:round}.band{fill-opacity:.18;stroke-width:.7;stroke-opacity:.7}"
        ".bar{fill:#0072b2;fill-opacity:.75}.whisker{stroke:#222;fill:none}"
        ".halo{fill:#666;stroke:#fff;stroke-width:3;paint-order:stroke}"
        ".reference{stroke:#d55e00;stroke-dasharray:5 3;fill:none;stroke-width:1.3}"
        ".polygon{stroke:#0072b2;stroke-width:1.8;fill:#0072b2;fill-opacity:.18}"
        ".open{fill:none}",
        width, height, width, height);
    if (p->follows_scheme)
        tp_buf_adds(out, "@media(prefers-color-scheme:dark){text{fill:#ddd}.faint{fill:#aaa}"
                         ".paper{fill:#1b1b1b}.grid{stroke:#444}.axis{stroke:#aaa}"
                         ".halo{fill:#aaa;stroke:#1b1b1b}.whisker{stroke:#ddd}}");
    tp_buf_addf(out, "</style>\n<rect class=\"paper\" width=\"%.0f\" height=\"%.0f\"/>\n", width,
                height);
    if (p->title) {
        tp_buf_adds(out, "<title>");
        tp_markup_escape(out, p->title);
        tp_buf_adds(out, "</title>\n");
        tp_svg_text(out, GAP, 26, 17, TP_START, (width - 2 * GAP) / 1.1, "title", p->title);
    }
    if (p->subtitle)
        tp_svg_text(out, GAP, 44, 11, TP_START, width - 2 * GAP, "faint", p->subtitle);
}

static double row_height(const tp_picture *p, size_t row, size_t columns, double w, double h)
{
    for (size_t i = row; i < row + columns && i < p->n_panels; i++)
        h = fmax(h, height_of(&p->panels[i], w, h));
    return h;
}

void tp_picture_svg(const tp_picture *p, tp_buf *out)
{
    size_t columns = p->columns > 0 ? (size_t)p->columns : 1;
    double w = p->panel_width > 0 ? p->panel_width : WIDTH;
    double h = p->panel_height > 0 ? p->panel_height : HEIGHT;
    double top = GAP + (p->title ? 20 : 0) + (p->subtitle ? 16 : 0), height = top;
    for (size_t row = 0; row < p->n_panels; row += columns)
        height += row_height(p, row, columns, w, h) + GAP;
    begin(p, (double)columns * (w + GAP) + GAP, height, out);
    double y = top;
    for (size_t row = 0; row < p->n_panels; row += columns) {
        double tallest = row_height(p, row, columns, w, h);
        for (size_t i = row; i < row + columns && i < p->n_panels; i++)
            put_panel(&p->panels[i], (tp_area){GAP + (double)(i - row) * (w + GAP), y, w, tallest},
                      h, out);
        y += tallest + GAP;
    }
    tp_buf_adds(out, "</svg>\n");
}
