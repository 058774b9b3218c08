/* nsight.h - the parts of the reader of Nsight Systems' SQLite exports.
 *
 *     nsight.c          opening, what is there, order of reading
 *     nsight_query.c    tables with columns that may be missing
 *     nsight_rows.c     activities into events
 *     nsight_payload.c  structures that ranges carry
 *     nsight_nccl.c     calls of NCCL and the kernels that they launched
 *     nsight_about.c    names, devices, versions
 *
 * The schema changes with every version of Nsight: tables are created only when something
 * was captured, columns come and go.  Columns are looked up by name, one that is missing
 * reads as NULL.  TARGET_INFO_SYSTEM_ENV holds the environment of the process with all its
 * secrets and is never read. */
#ifndef TP_INSTRUMENT_INGEST_NSIGHT_H
#define TP_INSTRUMENT_INGEST_NSIGHT_H

#include <sqlite3.h>

#include "instrument/ingest/event_builder.h"
#include "instrument/ingest/ingest.h"
#include "instrument/ingest/number_map.h"

enum { TP_NSIGHT_COLUMNS = 32 };

typedef struct tp_nsight_calls tp_nsight_calls;     /* of NCCL */
typedef struct tp_nsight_schemas tp_nsight_schemas; /* layouts of payloads */

typedef struct {
    sqlite3 *db;
    const char *name; /* of the file */
    tp_event_builder builder;
    tp_events *events;
    tp_notes *notes;
    const tp_ingest_options *options;

    sqlite3_stmt *string_query; /* value of StringIds by id; NULL without the table */
    tp_number_map strings;      /* those that were looked up, by id */
    tp_number_map devices;      /* numbers of TARGET_INFO_GPU, by process and its CUDA device */

    uint64_t n_damaged; /* tables that could not be read to their end */
    char damage[120];   /* what SQLite said to the first */
} tp_nsight;

/* A table being read. */
typedef struct {
    tp_nsight *nsight;
    sqlite3_stmt *statement;
    int n_columns;
    bool has[TP_NSIGHT_COLUMNS]; /* the column exists */
    tp_buf bytes;                /* what tp_nsight_bytes() had to convert */
} tp_nsight_query;

bool tp_nsight_has_table(tp_nsight *n, const char *table);
int64_t tp_nsight_count(tp_nsight *n, const char *table); /* -1 when it cannot be told */

/* Select `columns` (names; "a|b": the first that exists) of a table.  False when the table
 * is missing or lacks one of the first `n_required` columns. */
bool tp_nsight_begin(tp_nsight_query *q, tp_nsight *n, const char *table,
                     const char *const *columns, int n_columns, int n_required);
bool tp_nsight_next(tp_nsight_query *q);
void tp_nsight_end(tp_nsight_query *q);
int64_t tp_nsight_i64(const tp_nsight_query *q, int column);       /* TP_UNKNOWN for NULL */
uint32_t tp_nsight_text(const tp_nsight_query *q, int column);     /* interned; 0 for NULL */
const char *tp_nsight_chars(const tp_nsight_query *q, int column); /* "" for NULL; until next */
/* The bytes of a blob, or those that a text writes in hexadecimal; NULL for NULL.  Valid
 * until the next row. */
const unsigned char *tp_nsight_bytes(tp_nsight_query *q, int column, size_t *ret_n);
/* The string that the column's number names. */
uint32_t tp_nsight_name(const tp_nsight_query *q, int column);

/* A table could not be read (to its end). */
void tp_nsight_damaged(tp_nsight *n);

void tp_nsight_read_rows(tp_nsight *n);

/* A range of NVTX. */
typedef struct {
    int64_t start, end, thread /* globalTid */, domain;
    uint32_t name;
    const unsigned char *payload;
    size_t n_payload;
} tp_nsight_range;

tp_nsight_calls *tp_nsight_calls_new(tp_nsight *n);
/* Remembers the range when it is one of NCCL's. */
void tp_nsight_calls_add(tp_nsight_calls *calls, const tp_nsight_range *range, const char *name);
/* Gives kernels the metadata of the calls that launched them. */
void tp_nsight_calls_match(tp_nsight *n, tp_nsight_calls *calls);
void tp_nsight_calls_free(tp_nsight_calls *calls);
void tp_nsight_read_about(tp_nsight *n);
/* The machine's number of a process's CUDA device; its own where the file does not say. */
int64_t tp_nsight_device(const tp_nsight *n, int64_t pid, int64_t device);

/* From a file, or from memory (`path` names it). */
TP_CHECKED tp_status tp_nsight_read(const char *path, const void *bytes, size_t size,
                                    const tp_ingest_options *options, tp_events *ret,
                                    tp_notes *notes, tp_error *err);

/* globalTid and globalPid. */
static inline int64_t tp_nsight_pid(int64_t global)
{
    return global == TP_UNKNOWN ? TP_UNKNOWN : (global >> 24) & 0xffffff;
}
static inline int64_t tp_nsight_tid(int64_t global)
{
    return global == TP_UNKNOWN ? TP_UNKNOWN : global & 0xffffff;
}

#endif
