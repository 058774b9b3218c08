/* run_dashboard.h - a run and its analysis as one picture of six panels, and as one page.
 *
 * Training, inference, memory, convergence and generalization over the steps, each with what the
 * analysis says of it, and a radar of scores.  A score is a position against a stated reference:
 *
 *     more is better    the value itself, from 0 to 1: the dimensions are shares
 *     less is better    threshold / (threshold + value): 1 at none, 0.5 at the threshold
 *
 * and the dashed line is the threshold.  A dimension without a value or a threshold is a gap. */
#ifndef TP_INSTRUMENT_REPORT_RUN_DASHBOARD_H
#define TP_INSTRUMENT_REPORT_RUN_DASHBOARD_H

#include "base/strings.h"
#include "temper/analysis.h"

enum { TP_DASHBOARD_SVG = 1, TP_DASHBOARD_HTML = 2, TP_DASHBOARD_PNG = 4, TP_DASHBOARD_PDF = 8 };
/* 0 when there is no format of this name ("svg", "html", "png", "pdf"). */
unsigned tp_dashboard_format(const char *name);

/* Write FOLDER/dashboard.svg, .html and, where librsvg is there, .png (300 dpi) and .pdf, as far as
 * `formats` has them.  `ret_why` (of the caller; may be empty afterwards) says why some could not
 * be drawn. */
TP_CHECKED tp_status tp_run_dashboard_write(const tp_analysis *a, tp_metrics *run,
                                            const char *folder, unsigned formats, tp_buf *ret_why,
                                            tp_error *err);

/* The picture, without a title, and the table of dimensions, to stand in a page that has one. */
void tp_run_dashboard_html(const tp_analysis *a, tp_metrics *run, tp_buf *out);

#endif
