/* trace_ranks.h - the view over all files of a job. */
#ifndef TP_INSTRUMENT_REPORT_TRACE_RANKS_H
#define TP_INSTRUMENT_REPORT_TRACE_RANKS_H

#include "instrument/report/grid.h"
#include "instrument/analyze/ranks.h"
#include "instrument/ingest/ingest.h"

typedef struct {
    tp_grid ranks, collectives;
} tp_rank_grids;

void tp_trace_report_ranks(const tp_trace_job *job, const tp_select_options *options,
                           tp_rank_grids *ret);
void tp_rank_grids_release(tp_rank_grids *grids);

#endif
