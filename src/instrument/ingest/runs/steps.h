/* steps.h - the step of a row of unknown origin, where the number written in it is not the run's.
 *
 * A count that begins again with each epoch goes on from the last step of the epoch before, and a
 * row of MMCV's that evaluates has the step that was reached: its own number counts batches. */
#ifndef TP_INSTRUMENT_INGEST_RUNS_STEPS_H
#define TP_INSTRUMENT_INGEST_RUNS_STEPS_H

#include "instrument/ingest/runs/recorded.h"

/* The step of the next row, which has this number as its own; `epoch` is NaN where it has none. */
int64_t tp_row_step(tp_metrics *m, int64_t written, double epoch, bool is_evaluation);
/* Notes on steps that were counted on, on those that fall alone, and on points that are left out
 * because of a later row. */
void tp_row_steps_say(tp_metrics *m);

#endif
