/* run_record.h - what run.json says about a run, for those who come after: the next attempt, and
 * whoever asks for the run's model. */
#ifndef TP_ENGINE_CHECKPOINT_RUN_RECORD_H
#define TP_ENGINE_CHECKPOINT_RUN_RECORD_H

#include "base/strings.h"

enum { TP_RUN_ID = 33, TP_RUN_NAME = 256 }; /* bytes, with the NUL */

typedef struct {
    char id[TP_RUN_ID];        /* "": written before runs had one */
    char checkpoint_dir[4096]; /* where the newest attempt wrote; "": not known */
    char model[4096];          /* the folder that its weights came from; "": not known */
    char isa[32];              /* "": not known */
    bool is_finished;
    int64_t attempt, step;
    tp_buf attempts; /* the earlier attempts as JSON objects, with commas between */
} tp_run_record;

/* `dir` is the run's folder. */
TP_CHECKED tp_status tp_run_record_read(const char *dir, tp_run_record *ret, tp_error *err);
void tp_run_record_release(tp_run_record *record); /* zeroed is a no-op */

/* How run.json names a folder: below the run's by the rest of the path, so that a run can be
 * moved; others from the root.  `out` holds 4096 bytes and is returned. */
char *tp_run_record_path(const char *dir, const char *path, char *out);

#endif
