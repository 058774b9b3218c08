/* picture_marks.c - what tells series apart: colour (Okabe and Ito 2008), dash, marker. */
#include "instrument/report/picture_internal.h"

static const char *const colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                      "#e69f00", "#56b4e9", "#444444"};
static const char *const dashes[] = {"", "7 3", "2 2", "9 3 2 3", "4 2", "12 3", "1 3"};

const char *tp_series_colour(size_t i) { return colours[i % (sizeof colours / sizeof *colours)]; }
const char *tp_series_dash(size_t i) { return dashes[i % (sizeof dashes / sizeof *dashes)]; }

void tp_svg_marker(tp_buf *out, size_t i, double x, double y, double r)
{
    const char *colour = tp_series_colour(i);
    switch (i % 4) {
    case 0:
        tp_buf_addf(out, "<circle fill=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.4g\"/>", colour, x, y,
                    r);
        break;
    case 1:
        tp_buf_addf(out, "<path fill=\"%s\" d=\"M%.1f %.1fh%.4gv%.4gh-%.4gz\"/>", colour, x - r,
                    y - r, 2 * r, 2 * r, 2 * r);
        break;
    case 2:
        tp_buf_addf(out, "<path fill=\"%s\" d=\"M%.1f %.1fl%.4g %.4gh-%.4gz\"/>", colour, x, y - r,
                    r, 2 * r, 2 * r);
        break;
    default:
        tp_buf_addf(out, "<path fill=\"%s\" d=\"M%.1f %.1fl%.4g %.4gl-%.4g %.4gl-%.4g -%.4gz\"/>",
                    colour, x, y - r, r, r, r, r, r, r);
    }
}
