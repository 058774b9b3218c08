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

/* All complete records from where it stopped; what it meets is appended to `m`, damage noted. */
TP_CHECKED tp_status tp_event_file_read(tp_metrics *m, tp_event_run *run, tp_event_file *file,
                                        uint32_t number, tp_error *err);

/* Base name contains "tfevents" and does not end in ".profile-empty". */
bool tp_is_event_file(const char *name);

#endif
