/* readers.c - the formats of runs that can be read, one row each; the first that is there reads. */
#include "instrument/ingest/runs/reader.h"

const tp_run_reader *const tp_run_readers[] = {
    &tp_run_reader_temper,      &tp_run_reader_trackio,
    &tp_run_reader_nemo_rl,     &tp_run_reader_trainer_state,
    &tp_run_reader_tensorboard, &tp_run_reader_csv,
    &tp_run_reader_jsonl,       NULL,
};

static bool reads(const tp_run_reader *r, const tp_run_place *place)
{
    TP_FREED char *file = r->file_of ? r->file_of(place) : NULL;
    return file || (r->is_here && r->is_here(place));
}

const tp_run_reader *tp_run_reader_here(const tp_run_place *place)
{
    for (size_t i = 0; tp_run_readers[i]; i++)
        if (reads(tp_run_readers[i], place))
            return tp_run_readers[i];
    return NULL;
}
