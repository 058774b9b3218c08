/* readers.c - the formats of runs that can be read, one row each; the first that is there reads. */
#include "instrument/ingest/runs/reader.h"

const tp_run_reader *const tp_run_readers[] = {
    &tp_run_reader_temper,      &tp_run_reader_trackio,
    &tp_run_reader_nemo_rl,     &tp_run_reader_trainer_state,
    &tp_run_reader_tensorboard, &tp_run_reader_csv,
    &tp_run_reader_jsonl,       NULL,
};
