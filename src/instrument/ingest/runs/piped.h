/* piped.h - a run that comes through a pipe, kept so that readers find a file as they expect one. */
#ifndef TP_INSTRUMENT_INGEST_RUNS_PIPED_H
#define TP_INSTRUMENT_INGEST_RUNS_PIPED_H

#include "base/error.h"

typedef struct {
    const char *name; /* for people: "standard input", or the pipe's path */
    char path[64];    /* what readers open; empty: nothing is kept */
    int fd;
} tp_piped;

/* "-", or the path of a FIFO? */
bool tp_piped_is(const char *path);
/* Read it to its end, which may take as long as its writer does.  `path` has to outlive `ret`. */
TP_CHECKED tp_status tp_piped_keep(const char *path, tp_piped *ret, tp_error *err);
void tp_piped_release(tp_piped *p); /* zeroed is a no-op */

#endif
