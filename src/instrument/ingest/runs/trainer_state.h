/* trainer_state.h - the text of a trainer_state.json; the part that fuzzing drives. */
#ifndef TP_INSTRUMENT_INGEST_RUNS_TRAINER_STATE_H
#define TP_INSTRUMENT_INGEST_RUNS_TRAINER_STATE_H

#include "instrument/ingest/runs/recorded.h"

#endif
