/* picture.h - one description of a picture, for SVG, PNG, PDF and HTML.
 *
 * A picture is a grid of panels under a title.  A panel is a plot of series over x, a row of
 * horizontal bars for each category, or a radar of scores.  Everything is laid out from the widths
 * of DejaVu Sans (text that does not fit is shortened in its middle and kept whole in a <title>),
 * so that equal descriptions give equal bytes on every machine.
 *
 * Series are told apart by colour, dash and marker: by people who see no colours, and in grey.
 * Colours: Okabe and Ito (2008), "Color Universal Design".  Values that are not finite are gaps.
 * A band or a whisker is an interval, and `interval` says which; a panel that has intervals without
 * saying which does not exist. */
#ifndef TP_INSTRUMENT_REPORT_PICTURE_H
#define TP_INSTRUMENT_REPORT_PICTURE_H

#include "base/strings.h"

typedef enum { TP_PANEL_PLOT, TP_PANEL_BARS, TP_PANEL_RADAR } tp_panel_kind;

/* A line over x in rising order.  `x` NULL: 0, 1, 2 ...  `lower` and `upper` may be NULL. */
typedef struct {
    const char *name;
    const double *x, *y, *lower, *upper;
    size_t n;
    bool is_points;             /* markers without a line */
    const char *const *details; /* n texts shown under the pointer, or NULL */
} tp_series;

/* A line across the plot: at x (a change, an event) or at y (a threshold). */
typedef struct {
    double at;
    bool is_vertical;
    const char *label;
} tp_rule_line;

/* One bar, or one spoke of a radar.  `reference` is a threshold, NaN without one. */
typedef struct {
    const char *label;
    double value, lower, upper, reference;
} tp_category;

typedef struct {
    tp_panel_kind kind;
    const char *title;
    const char *x_label, *y_label; /* with the unit: "time / s"; may be NULL */
    const char *interval;          /* "95 % interval of the mean, block bootstrap" */
    const char *note;              /* under the panel; may be NULL */
    const char *why_empty;         /* shown in place of data; NULL: "no data" */
    const tp_series *series;       /* TP_PANEL_PLOT */
    size_t n_series;
    const tp_rule_line *lines;
    size_t n_lines;
    const tp_category *categories; /* TP_PANEL_BARS, TP_PANEL_RADAR (scores from 0 to 1) */
    size_t n_categories;
    bool log_y;                 /* values that are not positive are gaps */
    bool from_zero;             /* the axis of values begins at 0 */
    const char *const *x_names; /* texts under the axis instead of numbers, one per whole x */
    size_t n_x_names;
} tp_panel;

typedef struct {
    const char *title, *subtitle; /* may be NULL */
    const tp_panel *panels;
    size_t n_panels;
    int columns; /* 0: one */
    int panel_width,
        panel_height;    /* pixels of 1/96 inch; 0: 480 by 320.  Bars take what they need. */
    bool follows_scheme; /* dark where the reader's scheme is dark (SVG in a browser) */
} tp_picture;

/* The picture as one self-contained <svg> without scripts or fonts of its own. */
void tp_picture_svg(const tp_picture *picture, tp_buf *out);

/* Write `picture` to `path` by the ending of its name: .svg, .png (dpi dots per inch; 0: 300) or
 * .pdf.  PNG and PDF are made by librsvg, which is loaded when it is asked for: where it is missing
 * the error says so (TP_ERR_UNSUPPORTED). */
TP_CHECKED tp_status tp_picture_write(const tp_picture *picture, const char *path, int dpi,
                                      tp_error *err);

/* Whether tp_picture_write() would refuse: for the time before long work.  Creates nothing. */
TP_CHECKED tp_status tp_picture_check(const char *path, tp_error *err);

/* Whether PNG and PDF can be written here; the reason when not. */
bool tp_picture_can_raster(const char **ret_why);

/* The colour of series or category `i`, "#rrggbb". */
const char *tp_series_colour(size_t i);
/* Foreign text inside an element or an attribute of SVG or HTML: without what tp_is_unsafe(), and
 * U+FFFD for what is no UTF-8. */
void tp_markup_escape(tp_buf *out, const char *text);

#endif
