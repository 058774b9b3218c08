/* tensorboard.h - event files of one run; the part that fuzzing drives. */
#ifndef TP_INSTRUMENT_INGEST_RUNS_TENSORBOARD_H
#define TP_INSTRUMENT_INGEST_RUNS_TENSORBOARD_H

#include "instrument/ingest/runs/recorded.h"
#include "instrument/ingest/runs/tail.h"

/* One file as far as it was read. */
typedef struct {
    tp_tail tail;
    uint64_t n_records, n_bad; /* complete ones; with a wrong checksum of the data */
    uint64_t first_bad;        /* where */
    uint64_t gap; /* bytes behind the current one that are no record: being looked through */
    bool in_gap, after_bad, after_gap;
    double first_wall, last_wall;
} tp_event_file;

/* What holds over the files of a run. */
typedef struct {
    bool has_version;        /* a file_version of 2 or later was seen */
    bool has_start;          /* a SessionLog START was seen */
    int64_t latest, highest; /* step of the last summary; of all events so far */
} tp_event_run;

#endif
