/* run_cache.h - rows of an index of runs, and the SQLite file that keeps them between scans. */
#ifndef TP_INSTRUMENT_STORE_RUN_CACHE_H
#define TP_INSTRUMENT_STORE_RUN_CACHE_H

#include <sqlite3.h>

#include "base/strings.h"
#include "temper/analysis.h"
#include "temper/runs.h"

enum { TP_RUN_ID_BYTES = 13 };

typedef struct {
    tp_run_entry e; /* its kind is a constant */
    char id[TP_RUN_ID_BYTES];
    char *path, *extent, *format, *state, *algorithm, *model, *tags, *problem;
    tp_metrics *m; /* of a run that grows: it is read on, not again */
    bool is_seen;
    bool is_dead; /* says "running" and nobody holds it: not kept, for it changes without a byte */
} tp_run_row;

/* Of a path, which it takes; nothing else is known. */
tp_run_row tp_run_row_of(char *path);
/* With texts of its own, and nothing open. */
tp_run_row tp_run_row_copy(const tp_run_row *row);
void tp_run_row_clear(tp_run_row *row);
/* The view of a row that users see. */
void tp_run_row_show(tp_run_row *row);

typedef struct {
    tp_run_row *v;
    size_t n, cap;
} tp_run_rows;

/* That of the options, else of the folder in the user's cache folder; where it cannot be used, in
 * memory, and `note` says why. */
sqlite3 *tp_run_cache_open(const char *folder, const tp_run_index_options *options, tp_buf *note);
void tp_run_cache_load(sqlite3 *db, tp_run_rows *rows);
/* Every row anew: a scan of thousands of runs is one short transaction. */
bool tp_run_cache_save(sqlite3 *db, const tp_run_rows *rows);

#endif
