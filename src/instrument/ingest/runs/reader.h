/* reader.h - a format of runs: one row of readers.c. */
#ifndef TP_INSTRUMENT_INGEST_RUNS_READER_H
#define TP_INSTRUMENT_INGEST_RUNS_READER_H

#include "instrument/ingest/runs/place.h"
#include "instrument/ingest/runs/recorded.h"

struct tp_run_reader {
    const char *name;  /* "tensorboard" */
    const char *about; /* "TensorBoard event files" */
    /* Is a run of this format right here?  Looks at names and first bytes only.  One of the two:
     * file_of() returns the file that is read, which is freed, or NULL. */
    bool (*is_here)(const tp_run_place *place);
    char *(*file_of)(const tp_run_place *place);
    /* Begin: m->path, m->run and m->state; reads nothing yet. */
    tp_status (*open)(tp_metrics *m, const tp_run_place *place, tp_error *err);
    /* Append everything that is new since the last call.  A file that was replaced: *ret_again,
     * and it is called once more with everything forgotten. */
    tp_status (*read)(tp_metrics *m, bool *ret_again, tp_error *err);
    /* (optional) Add notes that hold as of now; they are made anew after every reading. */
    void (*say)(tp_metrics *m);
    void (*close)(tp_metrics *m);
    /* (optional) The names, or ids, of the runs that a place holds together; false stops. */
    tp_status (*each)(const tp_run_place *place, bool (*see)(void *user, const char *run),
                      void *user, tp_error *err);
    bool native_is_latest; /* its own program shows the latest attempt only */
    bool has_runs_below;   /* folders in its own may be runs of their own: they are named */
    bool has_names;        /* several runs in one file: PATH#NAME is one of them */
    bool has_restarts;     /* the views of TensorBoard's readers apply */
    bool has_reruns;       /* a program may append a run to the one before */
};

extern const tp_run_reader
    *const tp_run_readers[]; /* ends with NULL; the first that is here reads */

/* The reader of what lies there, or NULL. */
const tp_run_reader *tp_run_reader_here(const tp_run_place *place);

/* Whether a file is a table with a column of steps: a log, and no data set. */
bool tp_csv_has_steps(const tp_run_place *place);

/* Of transformers: checkpoint-N/trainer_state.json. */
#define TP_TRAINER_CHECKPOINT "checkpoint-"
#define TP_TRAINER_STATE "trainer_state.json"

#define TP_RUN_READER(name) extern const tp_run_reader tp_run_reader_##name;
TP_RUN_READER(temper)
TP_RUN_READER(trackio)
TP_RUN_READER(nemo_rl)
TP_RUN_READER(trainer_state)
TP_RUN_READER(tensorboard)
TP_RUN_READER(csv)
TP_RUN_READER(jsonl)
#undef TP_RUN_READER

#endif
