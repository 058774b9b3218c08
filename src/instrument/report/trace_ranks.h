/* trace_ranks.h - the view over all files of a job. */
#ifndef TP_INSTRUMENT_REPORT_TRACE_RANKS_H
#define TP_INSTRUMENT_REPORT_TRACE_RANKS_H

#include "instrument/analyze/ranks.h"
#include "instrument/ingest/ingest.h"
#include "instrument/report/grid.h"

typedef struct {
    tp_grid ranks, collectives;
} tp_rank_grids;

/* Fails when none of the files has the step that is asked for. */
TP_CHECKED tp_status tp_trace_report_ranks(const tp_trace_job *job,
                                           const tp_select_options *options, tp_rank_grids *ret,
                                           tp_error *err);
void tp_rank_grids_release(tp_rank_grids *grids);

#endif
