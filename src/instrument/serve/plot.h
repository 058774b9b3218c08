/* plot.h - metrics of runs as one picture of one panel. */
#ifndef TP_INSTRUMENT_SERVE_PLOT_H
#define TP_INSTRUMENT_SERVE_PLOT_H

#include "instrument/report/picture.h"
#include "temper/analysis.h"

enum { TP_PLOT_SERIES = 8, TP_PLOT_POINTS = 800 };

typedef enum { TP_PLOT_STEP, TP_PLOT_TIME, TP_PLOT_TOKENS } tp_plot_axis;

typedef struct {
    tp_series series[TP_PLOT_SERIES];
    size_t n;
    tp_plot_axis axis;
    const char *y_label, *note; /* may be NULL */
    const char *why_empty;      /* shown where there are no series; NULL: nothing was recorded */
    const char *interval;       /* what bands are; NULL without any */
    bool from_zero;
    bool has_gaps; /* some values are NaN or infinite */
} tp_plot;

/* The metric over steps, or seconds since its first point, in at most TP_PLOT_POINTS points: of
 * each stretch of it the least and the greatest, so that no peak is lost.  False: the run has none.
 */
bool tp_plot_add(tp_plot *plot, tp_metrics *m, const char *tag, const char *name);
void tp_plot_svg(const tp_plot *plot, const char *title, tp_buf *out);
void tp_plot_release(tp_plot *plot);

#endif
