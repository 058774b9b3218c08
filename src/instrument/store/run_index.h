/* run_index.h - what the rooms above ask of temper/runs.h besides its public functions. */
#ifndef TP_INSTRUMENT_STORE_RUN_INDEX_H
#define TP_INSTRUMENT_STORE_RUN_INDEX_H

#include "temper/analysis.h"
#include "temper/runs.h"
#include "text/json/json.h"

/* What the last scan saw, to be read by another thread: it cannot be scanned. */
tp_run_index *tp_run_index_copy(const tp_run_index *x);

/* Words of its file that are tags, with a space between them, the caller's; NULL: none. */
char *tp_run_tags(const char *path);

/* The figures of the entry as the run has them now. */
void tp_run_entry_see(tp_run_entry *entry, tp_metrics *m);

/* As an object. */
void tp_run_entry_put(const tp_run_entry *entry, tp_json_w *w);

#endif
