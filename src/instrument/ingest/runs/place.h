/* place.h - what lies where a user points: a file with its first bytes, or a folder's names. */
#ifndef TP_INSTRUMENT_INGEST_RUNS_PLACE_H
#define TP_INSTRUMENT_INGEST_RUNS_PLACE_H

#include "base/error.h"
#include "base/strings.h"

enum { TP_PLACE_HEAD = 4096, TP_PLACE_MAX_NAMES = 100000 };

typedef struct {
    char *name;
    bool is_dir;
} tp_place_entry;

typedef struct {
    char *path;
    const char *base; /* the last part of it */
    bool is_dir;
    tp_place_entry *entries; /* of a folder, sorted as bytes */
    size_t n_entries;
    char head[TP_PLACE_HEAD]; /* of a file, behind a byte order mark */
    size_t n_head;
} tp_run_place;

TP_CHECKED tp_status tp_place_look(tp_run_place *p, const char *path, tp_error *err);
void tp_place_release(tp_run_place *p); /* zeroed is a no-op */

/* A file that begins as the JSON of a profiler does: there are no metrics in it. */
bool tp_place_is_trace(const tp_run_place *p);
bool tp_place_has_file(const tp_run_place *p, const char *name);
bool tp_place_has_dir(const tp_run_place *p, const char *name);
/* The one file of a folder whose name ends so; NULL: none, or several.  free() it. */
char *tp_place_only(const tp_run_place *p, const char *ending);
/* "path/name" of an entry, or the path itself for a file; free() it. */
char *tp_place_join(const char *folder, const char *name);

#endif
