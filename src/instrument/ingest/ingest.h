/* ingest.h - open any trace file; what it is decides its content, not its name.
 *
 *     tp_trace_file *file;
 *     TP_TRY(tp_trace_open(path, &(tp_ingest_options){.keep = TP_KEEP_FAST}, &file, err));
 *     for (size_t i = 0; i < file->events->n; i++)
 *         ...
 *     tp_trace_close(file);
 *
 * Damage is no failure: a file that is cut short or broken in places gives what can be
 * read, with counts and notes.  A failure is a file that cannot be opened, is of no known
 * kind, or has nothing readable.  Memory: 48 bytes per kept event, the side tables that
 * were asked for, names once, and windows of at most about 10 MB (a single event larger
 * than a window makes them grow). */
#ifndef TP_INSTRUMENT_INGEST_INGEST_H
#define TP_INSTRUMENT_INGEST_INGEST_H

#include "instrument/ingest/events.h"
#include "instrument/ingest/memory_snapshot.h"
#include "instrument/ingest/memory_timeline.h"

typedef enum {
    TP_FILE_KINETO,         /* PyTorch profiler                                     */
    TP_FILE_CHROME,         /* another Chrome trace, object or array                */
    TP_FILE_TEMPER,         /* a Chrome trace written by Temper                     */
    TP_FILE_NSIGHT,         /* Nsight Systems, exported to SQLite                   */
    TP_FILE_SNAPSHOT,       /* PyTorch memory snapshot                              */
    TP_FILE_MEMORY_TIMELINE /* export_memory_timeline(), raw or not                 */
} tp_file_kind;

const char *tp_file_kind_name(tp_file_kind kind);  /* "kineto", "nsight", ... for machines */
const char *tp_file_kind_about(tp_file_kind kind); /* "PyTorch profiler trace (Kineto)"    */

typedef struct {
    unsigned keep; /* tp_event_keep; 0 means TP_KEEP_ALL */
    /* (optional) called now and then on the calling thread with bytes of the file read and
     * its size; false stops reading with an error */
    bool (*progress)(void *context, uint64_t done, uint64_t total);
    void *context;
    bool one_thread;    /* do not inflate on a second thread */
    uint32_t window;    /* bytes of text that are looked at together; 0: a megabyte */
    uint64_t max_bytes; /* of text after inflating; 0: no limit */
} tp_ingest_options;

typedef struct {
    tp_file_kind kind;
    char *path;
    uint64_t bytes;      /* of the file */
    uint64_t json_bytes; /* of text after inflating; equal for plain files; 0: not text */
    bool is_gzip;
    double seconds; /* that reading took */
    /* exactly one is not NULL */
    tp_events *events;
    tp_snapshot *snapshot;
    tp_memory_timeline *timeline;

    int64_t rank;       /* distributedInfo, else the name of the file, else TP_UNKNOWN */
    bool rank_is_guess; /* from the name */
    tp_notes notes;
} tp_trace_file;

/* "-" is standard input: text, or .gz; a database cannot come through a pipe. */
TP_CHECKED tp_status tp_trace_open(const char *path, const tp_ingest_options *options,
                                   tp_trace_file **ret, tp_error *err);
/* The same from memory; `path` names it in messages and gives the rank. */
TP_CHECKED tp_status tp_trace_open_memory(const char *path, const void *bytes, size_t n,
                                          const tp_ingest_options *options, tp_trace_file **ret,
                                          tp_error *err);
void tp_trace_close(tp_trace_file *file); /* NULL is a no-op */

/* Files of one job, in order of their ranks. */
typedef struct {
    tp_trace_file **files;
    size_t n;
    int64_t world_size; /* the largest that a file names, or TP_UNKNOWN */
    int64_t *missing;   /* ranks below world_size without a file */
    size_t n_missing;
    tp_notes notes; /* same rank twice, world sizes that differ, ranks guessed, ... */
} tp_trace_job;

TP_CHECKED tp_status tp_trace_job_open(const char *const *paths, size_t n,
                                       const tp_ingest_options *options, tp_trace_job *ret,
                                       tp_error *err);
void tp_trace_job_release(tp_trace_job *job); /* zeroed is a no-op */

/* Is every file of another rank?  A rank that is there twice was recorded at two times, and what is
 * matched over ranks would be of different times.  Files of Temper without a rank are of one
 * process; whose others are is not known. */
TP_CHECKED tp_status tp_trace_job_check_ranks(const tp_trace_job *job, tp_error *err);

/* "rank-3", "rank_3", "rank3", ".3.pt.trace"; TP_UNKNOWN when the name has none. */
int64_t tp_rank_from_name(const char *path);

#endif
