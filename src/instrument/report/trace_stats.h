/* trace_stats.h - what `temper trace stats` shows of several recordings. */
#ifndef TP_INSTRUMENT_REPORT_TRACE_STATS_H
#define TP_INSTRUMENT_REPORT_TRACE_STATS_H

#include "instrument/report/grid.h"
#include "instrument/analyze/repeats.h"

typedef enum {
    TP_TRACE_STATS_FILES,
    TP_TRACE_STATS_TOTALS,
    TP_TRACE_STATS_PHASES,
    TP_TRACE_STATS_OPERATORS,
    TP_TRACE_STATS_KERNELS,
    TP_TRACE_STATS_VALUES, /* every value of every file: for machines */
    TP_TRACE_STATS_GRIDS
} tp_trace_stats_table;

/* For people in units that fit each cell, for machines in those of the file. */
void tp_trace_stats_grid(const tp_repeats *repeats, tp_trace_stats_table table, bool for_people,
                         tp_grid *grid);

/* One sentence about the figure that matters most. */
void tp_trace_stats_headline(const tp_repeats *repeats, tp_buf *out);
/* Its verdict, of two groups. */
bool tp_trace_stats_is_worse(const tp_repeats *repeats);
/* Lines about what weakens the evidence: few files, copies, ranks, windows of other lengths. */
void tp_trace_stats_notes(const tp_repeats *repeats, tp_buf *out);

#endif
