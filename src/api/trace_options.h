/* trace_options.h - the options that all reports of traces share. */
#ifndef TP_API_TRACE_OPTIONS_H
#define TP_API_TRACE_OPTIONS_H

#include "instrument/analyze/selection.h"
#include "temper/trace_report.h"

/* A copy of what the caller asks for, complete, and the selection that it means. */
TP_CHECKED tp_status tp_trace_options_read(const tp_trace_report_options *theirs,
                                           tp_trace_report_options *ret, tp_select_options *select,
                                           tp_error *err);
/* Rows of a table; 0: all. */
size_t tp_trace_options_top(const tp_trace_report_options *options, size_t by_default);

TP_CHECKED tp_status tp_trace_scope_read(const char *word, tp_scope *ret, tp_error *err);

#endif
