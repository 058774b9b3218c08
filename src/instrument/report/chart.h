/* chart.h - small pictures as SVG: a series with intervals and marks, groups as boxes.
 *
 * One picture is one self-contained <svg> without scripts or fonts of its own; colours
 * follow the reader's light or dark scheme.  Values that are not finite are gaps.  Every
 * point carries a <title>, which browsers show under the pointer. */
#ifndef TP_INSTRUMENT_REPORT_CHART_H
#define TP_INSTRUMENT_REPORT_CHART_H

#include "base/strings.h"

typedef struct {
    double value, lower, upper; /* the interval may be NaN */
    const char *label;          /* under the axis, when there is room; may be NULL */
    const char *title;          /* shown under the pointer; may be NULL */
    bool is_marked;             /* something changed here */
} tp_chart_point;

typedef struct {
    const char *title, *unit;
    const tp_chart_point *points;
    size_t n;
    int width, height; /* 0: 720 by 240 */
} tp_chart_line;
void tp_chart_write_line(const tp_chart_line *chart, tp_buf *out);

typedef struct {
    const char *label;
    const double *values;
    size_t n;
} tp_chart_group;

typedef struct {
    const char *title, *unit;
    const tp_chart_group *groups;
    size_t n;
    int width; /* 0: 720; the height follows from the groups */
} tp_chart_boxes;
/* Median, quartiles, whiskers to the last value within 1.5 IQR, points beyond. */
void tp_chart_write_boxes(const tp_chart_boxes *chart, tp_buf *out);

#endif
