/* trace_paths.h - folders on the command line become the traces in them. */
#ifndef TP_INSTRUMENT_INGEST_TRACE_PATHS_H
#define TP_INSTRUMENT_INGEST_TRACE_PATHS_H

#include "base/error.h"

typedef struct {
    const char **v; /* a list that ends with NULL */
    size_t n;
} tp_trace_paths;

/* Files stay; a folder gives what is in it and looks like a trace by its name, in order of the
 * names: ranks of one job.  A small JSON object without events beside them is left out, and said.
 * A run folder of Temper gives what is in its trace/.  "-" stays.
 */
TP_CHECKED tp_status tp_trace_paths_make(const char *const *words, size_t n, tp_trace_paths *ret,
                                         tp_error *err);
/* The same where one trace is wanted: a folder has to hold exactly one. */
TP_CHECKED tp_status tp_trace_paths_one(const char *word, tp_trace_paths *ret, tp_error *err);
void tp_trace_paths_release(tp_trace_paths *paths);

#endif
