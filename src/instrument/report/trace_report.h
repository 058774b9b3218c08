/* trace_report.h - the pieces of `temper trace` that its files share.
 *
 * A report is one file with the analyses made so far: each is made when a view first asks
 * for it.  A view is a row of trace_views.def: a name and a function that fills one grid; a
 * view of several grids has several rows.  The screen, --json, --csv and --markdown are
 * made of the same grids. */
#ifndef TP_INSTRUMENT_REPORT_TRACE_REPORT_H
#define TP_INSTRUMENT_REPORT_TRACE_REPORT_H

#include "instrument/analyze/communication.h"
#include "instrument/analyze/copies.h"
#include "instrument/analyze/critical_path.h"
#include "instrument/analyze/findings.h"
#include "instrument/analyze/idle.h"
#include "instrument/analyze/launch.h"
#include "instrument/analyze/memory_usage.h"
#include "instrument/analyze/operators.h"
#include "instrument/analyze/selection.h"
#include "instrument/analyze/snapshot_usage.h"
#include "instrument/analyze/suspicious.h"
#include "instrument/ingest/ingest.h"
#include "instrument/report/grid.h"

typedef struct {
    const tp_trace_file *file;
    tp_selection selection;
    bool has_work;           /* device activities in scope */
    tp_breakdown *by_device; /* one per device of the selection */
    tp_breakdown sum;        /* these added up */
    tp_breakdown merged;     /* as if all devices were one */
    tp_kernel_table kernels;
    tp_finding_limits limits; /* the usual ones; to be set before the first analysis */

    /* Made when first asked for. */
#define ANALYSIS(name, type, make) \
    bool has_##name;               \
    type name;
#include "instrument/report/trace_analyses.def"
#undef ANALYSIS
} tp_trace_report;

void tp_trace_report_make(const tp_trace_file *file, const tp_select_options *options,
                          tp_trace_report *ret);
void tp_trace_report_release(tp_trace_report *report);

/* Make at once, on two threads, the analyses that the overview shows. */
void tp_trace_report_prepare(tp_trace_report *report);

#define ANALYSIS(name, type, make) const type *tp_trace_report_##name(tp_trace_report *report);
#include "instrument/report/trace_analyses.def"
#undef ANALYSIS

/* Members of the one JSON object of a file, in the names of docs/formats/trace-report.md. */
void tp_trace_report_json(tp_trace_report *report, tp_json_w *w);

/* The one screen for people. */
void tp_trace_report_screen(tp_trace_report *report, size_t top, int width, tp_buf *out);
void tp_trace_report_screen_markdown(tp_trace_report *report, size_t top, tp_buf *out);

/* ---- views ---- */

typedef struct {
    const char *view; /* word of the command line */
    const char *grid; /* key of the grid in JSON */
    unsigned keep;    /* tp_event_keep that it needs besides the usual */
    bool in_json;     /* part of the full --json */
    void (*fill)(tp_trace_report *report, tp_grid *grid);
} tp_trace_report_view;

extern const tp_trace_report_view tp_trace_report_views[]; /* ends with a row whose view is NULL */
bool tp_trace_report_view_exists(const char *view);

#define VIEW(view, grid, keep, in_json, fill) void tp_view_##fill(tp_trace_report *r, tp_grid *g);
#include "instrument/report/trace_views.def"
#undef VIEW

/* How many (size_t). */
#define TP_NOTE_GLOO \
    "%zu collectives of the host by Gloo are not analysed: their marks do not say the group"

/* How many (size_t), and their time. */
#define TP_NOTE_STEPLESS                                                                        \
    "device work of no step: %zu (%s), launched outside of the steps or by calls that are not " \
    "in the file"

/* Name of an interned string of the trace, or NULL. */
void tp_grid_name(tp_grid *g, const tp_events *events, uint32_t name);

/* `advice` on how to record, where it was PyTorch's profiler that recorded, else "". */
const char *tp_trace_report_advice(const tp_trace_report *report, const char *advice);

/* That there are no Python functions, and how to get them from this version of PyTorch. */
const char *tp_trace_report_no_python(const tp_trace_report *report);

/* The first process that its name calls a device but whose rows are spans like those of the host;
 * or NULL. */
const char *tp_trace_report_unread_device(const tp_trace_report *report);

/* Nanoseconds from the first event in scope, for "when". */
int64_t tp_trace_report_origin(const tp_trace_report *report);

#endif
