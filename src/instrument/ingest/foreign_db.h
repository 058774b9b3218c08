/* foreign_db.h - SQLite files of others: how they are named, and what they may not do. */
#ifndef TP_INSTRUMENT_INGEST_FOREIGN_DB_H
#define TP_INSTRUMENT_INGEST_FOREIGN_DB_H

#include <sqlite3.h>
#include <stdbool.h>

#include "base/strings.h"

/* "file:" and the path as a URI, then `options`, such as "?mode=ro". */
void tp_foreign_db_uri(const char *path, const char *options, tp_buf *ret);

/* Data alone: no triggers, no functions of its schema, no oversized rows.  `is_damaged`: read on
 * although pages are missing. */
void tp_foreign_db_harden(sqlite3 *db, bool is_damaged);

#endif
