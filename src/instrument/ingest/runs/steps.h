/* steps.h - the step of a row of unknown origin, where the number written in it is not the run's.
 *
 * A count that begins again with each epoch goes on from the highest step of the epoch before, and
 * a row of MMCV's that evaluates has the step that was reached: its own number counts batches. Rows
 * of one kind, with the same tags, are compared.  Where a number rises into a higher epoch steps
 * are the run's, and none is altered: what was counted on before that was seen is taken back. */
#ifndef TP_INSTRUMENT_INGEST_RUNS_STEPS_H
#define TP_INSTRUMENT_INGEST_RUNS_STEPS_H

#include "instrument/ingest/runs/recorded.h"

/* The number of a row. */
typedef struct {
    int64_t written;
    double epoch; /* NaN: it has none */
    bool is_evaluation;
    tp_slice kind; /* the tags of its figures */
} tp_row_number;

/* The step of the current record. */
int64_t tp_row_step(tp_metrics *m, const tp_row_number *row);
/* Notes on steps that were counted on, on those that fall alone, and on points that are left out
 * because of a later row. */
void tp_row_steps_say(tp_metrics *m);
void tp_row_steps_release(tp_row_steps *c);

#endif
