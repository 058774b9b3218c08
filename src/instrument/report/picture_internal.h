/* picture_internal.h - what the files of a picture share: axes, text, and the panels.
 *
 * Lengths are pixels of 1/96 inch; y grows downwards. */
#ifndef TP_INSTRUMENT_REPORT_PICTURE_INTERNAL_H
#define TP_INSTRUMENT_REPORT_PICTURE_INTERNAL_H

#include "instrument/report/picture.h"

enum { TP_MAX_TICKS = 16 };

typedef struct {
    double low, high; /* the range of data, widened to ticks */
    double from, to;  /* the pixels of low and high */
    bool is_log;
    double ticks[TP_MAX_TICKS];
    int n_ticks;
} tp_axis;

/* The area that a panel may fill. */
typedef struct {
    double x, y, width, height;
} tp_area;

/* An axis with about `wanted` ticks at 1, 2 and 5 times powers of ten.  A range that is empty or
 * one value is widened around the value. */
void tp_axis_make(tp_axis *axis, double low, double high, bool is_log, int wanted);
double tp_axis_place(const tp_axis *axis, double value);
/* The tick as text, with the decimals that tell ticks apart; `out` holds 32 bytes. */
char *tp_axis_text(const tp_axis *axis, int tick, char *out);
/* The width of the widest tick's text. */
double tp_axis_text_width(const tp_axis *axis, double size);

/* The width of a text in DejaVu Sans of `size` pixels; other code points count one em. */
double tp_text_width(const char *text, double size);

typedef enum { TP_START, TP_MIDDLE, TP_END } tp_text_anchor;
/* A text of at most `room` pixels: what does not fit is cut from its middle, with "…" in its
 * place and the whole text under the pointer.  `style` is a class of the picture, or "". */
void tp_svg_text(tp_buf *out, double x, double y, double size, tp_text_anchor anchor, double room,
                 const char *style, const char *text);
/* The text in lines of at most `room` pixels, broken at blanks, from y downwards, at most
 * `most` lines; returns how many.  `out` NULL: only count. */
int tp_svg_paragraph(tp_buf *out, double x, double y, double size, double room, int most,
                     const char *style, const char *text);

/* The dash and marker of series or category `i`. */
const char *tp_series_dash(size_t i);
void tp_svg_marker(tp_buf *out, size_t i, double x, double y, double radius);

/* How high a panel wants to be in a grid of panels of `height`. */
double tp_bars_height(const tp_panel *panel);
void tp_panel_plot(const tp_panel *panel, tp_area area, tp_buf *out);
void tp_panel_bars(const tp_panel *panel, tp_area area, tp_buf *out);
void tp_panel_radar(const tp_panel *panel, tp_area area, tp_buf *out);

#endif
