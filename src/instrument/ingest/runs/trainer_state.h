/* trainer_state.h - the text of a trainer_state.json; the part that fuzzing drives. */
#ifndef TP_INSTRUMENT_INGEST_RUNS_TRAINER_STATE_H
#define TP_INSTRUMENT_INGEST_RUNS_TRAINER_STATE_H

#include "instrument/ingest/runs/recorded.h"

/* Appends what can be read; damage becomes a note. */
void tp_trainer_state_read(tp_metrics *m, const char *name, const char *text, size_t n);

#endif
