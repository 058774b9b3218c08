/* trace.h - the pieces of `temper trace` that its files share.
 *
 * A report is one file with the analyses made so far: each is made when a view first asks
 * for it.  A view is a row of trace_views.c: a name and a function that fills one grid; a
 * view of several grids has several rows.  The screen, --json, --csv and --markdown are
 * made of the same grids. */
#ifndef TP_CLI_TRACE_H
#define TP_CLI_TRACE_H

#include "cli/grid.h"
#include "instrument/analyze/operators.h"
#include "instrument/analyze/selection.h"
#include "instrument/analyze/snapshot_usage.h"
#include "instrument/ingest/ingest.h"

typedef struct {
    const tp_trace_file *file;
    tp_selection selection;
    bool has_work; /* device activities in scope */
    tp_breakdown all;
    tp_breakdown *by_device; /* one per device of the selection */
    tp_kernel_table kernels;

    bool has_operators, has_usage;
    tp_operators operators;
    tp_snapshot_usage usage;
} tp_trace_report;

void tp_trace_report_make(const tp_trace_file *file, const tp_select_options *options,
                          tp_trace_report *ret);
void tp_trace_report_release(tp_trace_report *report);

const tp_operators *tp_trace_operators(tp_trace_report *report);
const tp_snapshot_usage *tp_trace_usage(tp_trace_report *report); /* snapshots only */

/* Members of the one JSON object of a file, in the names of docs/formats/trace-report.md. */
void tp_trace_json(tp_trace_report *report, tp_json_w *w);

/* The one screen for people. */
void tp_trace_screen(tp_trace_report *report, size_t top, int width, tp_buf *out);

typedef struct {
    const char *view; /* word of the command line */
    const char *grid; /* key of the grid in JSON */
    unsigned keep;    /* tp_event_keep that it needs */
    void (*fill)(tp_trace_report *report, tp_grid *grid);
} tp_trace_view;

extern const tp_trace_view tp_trace_views[]; /* ends with a row whose view is NULL */
bool tp_trace_view_exists(const char *view);

#endif
