/* find.h - every run below a folder, whoever wrote it. */
#ifndef TP_INSTRUMENT_INGEST_RUNS_FIND_H
#define TP_INSTRUMENT_INGEST_RUNS_FIND_H

#include "instrument/ingest/runs/reader.h"

enum { TP_FIND_DEPTH = 8, TP_FIND_MOST_RUNS = 10000, TP_FIND_MOST_PLACES = 200000 };

/* What a folder held when it was looked at. */
typedef struct {
    size_t n_runs, n_places;
    bool is_cut; /* a limit was met: there may be more */
} tp_runs_found;

/* `place` is where it lies; `run`: of several in one data base, or NULL.  False stops. */
typedef bool (*tp_run_seen)(void *user, const tp_run_place *place, const tp_run_reader *reader,
                            const char *run);

/* In the order of their paths.  Symbolic links and names with a dot in front are passed over;
 * folders that belong to a run of Temper (checkpoints, samples, ...) are not looked into, those
 * that are runs of their own below it are.  A file counts where its name says that it is a log, and
 * one of several tables (CSV) where it has a column of steps. */
TP_CHECKED tp_status tp_runs_find(const char *folder, tp_run_seen see, void *user,
                                  tp_runs_found *ret, tp_error *err);

/* Files that may be other results by their names, in the order of their paths; those of runs as
 * well. False stops. */
typedef bool (*tp_file_seen)(void *user, const char *path);
TP_CHECKED tp_status tp_files_find(const char *folder, bool (*name_fits)(const char *name),
                                   tp_file_seen see, void *user, tp_runs_found *ret, tp_error *err);

/* How much there is and when it was written last: a run with the same sum has not changed.  Of a
 * folder the files in it and one level below. */
typedef struct {
    uint64_t bytes, files;
    int64_t newest_ns; /* since 1970 */
} tp_run_extent;
tp_run_extent tp_run_extent_of(const char *path);

#endif
