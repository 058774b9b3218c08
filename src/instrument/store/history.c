/* history.c - sessions and results of benchmarks in SQLite, each session one transaction. */
#include "instrument/store/history.h"

#include <math.h>
#include <sqlite3.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"

enum { SCHEMA_VERSION = 1, BUSY_MS = 10000, MAX_SAMPLES = 1 << 20 };

struct tp_history {
    sqlite3 *db;
    char path[1024];
    bool creates; /* it is an output */
    bool in_session;
};

static const char schema[] =
    "CREATE TABLE session(id INTEGER PRIMARY KEY, started TEXT NOT NULL, version TEXT,"
    " commit_id TEXT, branch TEXT, dirty INTEGER, host TEXT NOT NULL, host_name TEXT, cpu TEXT,"
    " compared_with TEXT, seed INTEGER);"
    "CREATE TABLE result(id INTEGER PRIMARY KEY, session INTEGER NOT NULL REFERENCES session(id),"
    " name TEXT NOT NULL, work INTEGER, work_unit TEXT, rounds INTEGER, round_order TEXT,"
    " verdict TEXT, message TEXT);"
    "CREATE TABLE metric(result INTEGER NOT NULL REFERENCES result(id), name TEXT NOT NULL,"
    " unit TEXT, direction TEXT, class TEXT, informative INTEGER, median REAL, lower REAL,"
    " upper REAL, samples BLOB, other_samples BLOB);"
    "CREATE INDEX result_by_name ON result(name, session);"
    "CREATE INDEX metric_by_result ON metric(result);";

static tp_status fail(const tp_history *h, tp_error *err, const char *doing)
{
    int code = h->db ? sqlite3_errcode(h->db) & 0xff : SQLITE_NOMEM;
    bool is_foreign = code == SQLITE_NOTADB || code == SQLITE_CORRUPT;
    return tp_fail(err, h->creates && !is_foreign ? TP_ERR_OUTPUT : TP_ERR_IO,
                   "history '%s': %s failed: %s", h->path, doing,
                   h->db ? sqlite3_errmsg(h->db) : "no memory");
}

/* SQLite would read a FIFO or a device as an empty file, and write its journal beside it. */
static tp_status check_kind(const char *path, tp_error *err)
{
    int fd;
    int64_t size;
    if (tp_dir_exists(path) || strcmp(path, "-") == 0)
        return tp_fail(err, TP_ERR_ARG, "history '%s': it is a %s; name a file", path,
                       strcmp(path, "-") == 0 ? "stream" : "folder");
    if (!tp_file_exists(path))
        return TP_OK;
    TP_TRY(tp_input_open(path, TP_INPUT_FILE, &fd, &size, err));
    close(fd);
    return TP_OK;
}

static tp_status run(tp_history *h, const char *sql, const char *doing, tp_error *err)
{
    return sqlite3_exec(h->db, sql, NULL, NULL, NULL) == SQLITE_OK ? TP_OK : fail(h, err, doing);
}

static int read_version(tp_history *h)
{
    sqlite3_stmt *s;
    int version = -1;
    if (sqlite3_prepare_v2(h->db, "PRAGMA user_version", -1, &s, NULL) != SQLITE_OK)
        return -1;
    if (sqlite3_step(s) == SQLITE_ROW)
        version = sqlite3_column_int(s, 0);
    sqlite3_finalize(s);
    return version;
}

/* Tables that a history did not make are somebody else's. */
static tp_status check_empty(tp_history *h, tp_error *err)
{
    sqlite3_stmt *s;
    bool has_tables = false;
    if (sqlite3_prepare_v2(h->db, "SELECT 1 FROM sqlite_master", -1, &s, NULL) != SQLITE_OK)
        return fail(h, err, "reading");
    has_tables = sqlite3_step(s) == SQLITE_ROW;
    sqlite3_finalize(s);
    return has_tables ? tp_fail(err, TP_ERR_FORMAT,
                                "'%s' is a data base of something else, not a history of "
                                "benchmarks; choose another file",
                                h->path)
                      : TP_OK;
}

/* A new file gets its tables; two processes that both find it new do it one after the
 * other. */
static tp_status prepare(tp_history *h, tp_error *err)
{
    char mark[48];
    int version = read_version(h);
    if (version == SCHEMA_VERSION)
        return TP_OK;
    snprintf(mark, sizeof mark, "PRAGMA user_version=%d", SCHEMA_VERSION);
    if (version < 0)
        return fail(h, err, "reading");
    if (version > SCHEMA_VERSION)
        return tp_fail(err, TP_ERR_FORMAT,
                       "history '%s' was written by a newer version (schema %d, known is %d)",
                       h->path, version, SCHEMA_VERSION);
    TP_TRY(run(h, "BEGIN IMMEDIATE", "locking", err));
    tp_status status = TP_OK;
    if (read_version(h) == 0) {
        status = check_empty(h, err);
        if (status == TP_OK)
            status = run(h, schema, "creating its tables", err);
        if (status == TP_OK)
            status = run(h, mark, "marking it", err);
    }
    if (status != TP_OK) {
        sqlite3_exec(h->db, "ROLLBACK", NULL, NULL, NULL);
        return status;
    }
    return run(h, "COMMIT", "creating it", err);
}

tp_status tp_history_open(const char *path, bool create, tp_history **ret, tp_error *err)
{
    tp_history *h = calloc(1, sizeof *h);
    const char *slash = strrchr(path, '/');
    char folder[1024];
    if (!h || strlen(path) >= sizeof h->path) {
        free(h);
        return tp_fail(err, TP_ERR_ARG, "the path of the history is too long");
    }
    snprintf(h->path, sizeof h->path, "%s", path);
    snprintf(folder, sizeof folder, "%.*s", (int)(slash ? slash - path : 0), path);
    tp_status status = TP_OK;
    if (create && folder[0])
        status = tp_dir_make(folder, err);
    if (status == TP_OK)
        status = check_kind(path, err);
    if (status == TP_OK && !create && !tp_file_exists(path))
        status = tp_fail(err, TP_ERR_IO,
                         "there is no history '%s' yet; 'temper bench' begins it, --history FILE "
                         "names another",
                         path);
    h->creates = create;
    int flags = SQLITE_OPEN_READWRITE | (create ? SQLITE_OPEN_CREATE : 0);
    if (status == TP_OK && sqlite3_open_v2(path, &h->db, flags, NULL) != SQLITE_OK)
        status = fail(h, err, "opening");
    if (status == TP_OK) {
        sqlite3_busy_timeout(h->db, BUSY_MS);
        status = prepare(h, err);
    }
    TP_HAND_OVER(status, ret, h, tp_history_close(h));
}

void tp_history_close(tp_history *h)
{
    if (!h)
        return;
    if (h->in_session)
        sqlite3_exec(h->db, "ROLLBACK", NULL, NULL, NULL);
    sqlite3_close(h->db);
    free(h);
}

/* ---- writing ---- */

static void bind_text(sqlite3_stmt *s, int at, const char *text)
{
    if (text)
        sqlite3_bind_text(s, at, text, -1, SQLITE_TRANSIENT);
    else
        sqlite3_bind_null(s, at);
}

static void bind_number(sqlite3_stmt *s, int at, double v)
{
    if (isnan(v))
        sqlite3_bind_null(s, at);
    else
        sqlite3_bind_double(s, at, v);
}

static void bind_samples(sqlite3_stmt *s, int at, const double *values, size_t n)
{
    if (n > 0)
        sqlite3_bind_blob64(s, at, values, n * sizeof *values, SQLITE_TRANSIENT);
    else
        sqlite3_bind_null(s, at);
}

static tp_status insert(tp_history *h, sqlite3_stmt *s, int64_t *ret_id, tp_error *err)
{
    int code = sqlite3_step(s);
    sqlite3_finalize(s);
    if (code != SQLITE_DONE)
        return fail(h, err, "writing");
    if (ret_id)
        *ret_id = sqlite3_last_insert_rowid(h->db);
    return TP_OK;
}

static tp_status compile(tp_history *h, const char *sql, sqlite3_stmt **ret, tp_error *err)
{
    return sqlite3_prepare_v2(h->db, sql, -1, ret, NULL) == SQLITE_OK
               ? TP_OK
               : fail(h, err, "understanding its tables");
}

tp_status tp_history_begin(tp_history *h, const tp_history_session *x, int64_t *ret_id,
                           tp_error *err)
{
    sqlite3_stmt *s;
    TP_TRY(run(h, "BEGIN IMMEDIATE", "locking", err));
    h->in_session = true;
    TP_TRY(compile(h,
                   "INSERT INTO session(started, version, commit_id, branch, dirty, host, "
                   "host_name, cpu, compared_with, seed) VALUES(?,?,?,?,?,?,?,?,?,?)",
                   &s, err));
    bind_text(s, 1, x->started);
    bind_text(s, 2, x->version);
    bind_text(s, 3, x->commit);
    bind_text(s, 4, x->branch);
    sqlite3_bind_int(s, 5, x->is_dirty);
    bind_text(s, 6, x->host);
    bind_text(s, 7, x->host_name);
    bind_text(s, 8, x->cpu);
    bind_text(s, 9, x->compared_with);
    sqlite3_bind_int64(s, 10, x->seed);
    return insert(h, s, ret_id, err);
}

tp_status tp_history_add_result(tp_history *h, int64_t session, const tp_history_result *x,
                                int64_t *ret_id, tp_error *err)
{
    sqlite3_stmt *s;
    TP_TRY(compile(h,
                   "INSERT INTO result(session, name, work, work_unit, rounds, round_order, "
                   "verdict, message) VALUES(?,?,?,?,?,?,?,?)",
                   &s, err));
    sqlite3_bind_int64(s, 1, session);
    bind_text(s, 2, x->name);
    sqlite3_bind_int64(s, 3, x->work);
    bind_text(s, 4, x->work_unit);
    sqlite3_bind_int64(s, 5, x->rounds);
    bind_text(s, 6, x->order);
    bind_text(s, 7, x->verdict);
    bind_text(s, 8, x->message);
    return insert(h, s, ret_id, err);
}

tp_status tp_history_add_metric(tp_history *h, int64_t result, const tp_history_metric *x,
                                tp_error *err)
{
    sqlite3_stmt *s;
    TP_TRY(compile(h,
                   "INSERT INTO metric(result, name, unit, direction, class, informative, median, "
                   "lower, upper, samples, other_samples) VALUES(?,?,?,?,?,?,?,?,?,?,?)",
                   &s, err));
    sqlite3_bind_int64(s, 1, result);
    bind_text(s, 2, x->name);
    bind_text(s, 3, x->unit);
    bind_text(s, 4, x->direction);
    bind_text(s, 5, x->kind);
    sqlite3_bind_int(s, 6, x->is_informative);
    bind_number(s, 7, x->median);
    bind_number(s, 8, x->lower);
    bind_number(s, 9, x->upper);
    bind_samples(s, 10, x->samples, x->n);
    bind_samples(s, 11, x->other_samples, x->n_other);
    return insert(h, s, NULL, err);
}

tp_status tp_history_end(tp_history *h, tp_error *err)
{
    TP_TRY(run(h, "COMMIT", "writing", err));
    h->in_session = false;
    return TP_OK;
}

/* ---- reading ---- */

static const char *text_at(sqlite3_stmt *s, int at)
{
    const char *text = (const char *)sqlite3_column_text(s, at);
    return text ? text : "";
}

static double number_at(sqlite3_stmt *s, int at)
{
    return sqlite3_column_type(s, at) == SQLITE_NULL ? NAN : sqlite3_column_double(s, at);
}

static tp_status visit_row(const tp_history *h, sqlite3_stmt *s, double *samples,
                           tp_history_visit visit, void *user, tp_error *err)
{
    size_t bytes = (size_t)sqlite3_column_bytes(s, 12);
    if (bytes % sizeof *samples != 0 || bytes / sizeof *samples > MAX_SAMPLES)
        return tp_fail(err, TP_ERR_FORMAT, "history '%s': the samples of '%s' are damaged", h->path,
                       text_at(s, 0));
    if (bytes)
        memcpy(samples, sqlite3_column_blob(s, 12), bytes);
    tp_history_point p = {.name = text_at(s, 0),
                          .metric = text_at(s, 1),
                          .unit = text_at(s, 2),
                          .direction = text_at(s, 3),
                          .kind = text_at(s, 13),
                          .started = text_at(s, 4),
                          .commit = text_at(s, 5),
                          .host = text_at(s, 6),
                          .is_dirty = sqlite3_column_int(s, 7) != 0,
                          .is_informative = sqlite3_column_int(s, 8) != 0,
                          .median = number_at(s, 9),
                          .lower = number_at(s, 10),
                          .upper = number_at(s, 11),
                          .samples = samples,
                          .n = bytes / sizeof *samples};
    return visit(user, &p, err);
}

tp_status tp_history_read(tp_history *h, const char *host, tp_history_visit visit, void *user,
                          tp_error *err)
{
    sqlite3_stmt *s;
    double *samples = malloc((size_t)MAX_SAMPLES * sizeof *samples);
    if (!samples)
        return tp_fail(err, TP_ERR_NOMEM, "no memory to read the history");
    tp_status status =
        compile(h,
                "SELECT r.name, m.name, m.unit, m.direction, s.started, s.commit_id, s.host, "
                "s.dirty, m.informative, m.median, m.lower, m.upper, m.samples, m.class "
                "FROM metric m JOIN result r ON r.id = m.result JOIN session s ON s.id = r.session "
                "WHERE ?1 IS NULL OR s.host = ?1 ORDER BY r.name, m.name, m.unit, s.started, "
                "s.id",
                &s, err);
    if (status != TP_OK) {
        free(samples);
        return status;
    }
    bind_text(s, 1, host);
    int code;
    while (status == TP_OK && (code = sqlite3_step(s)) != SQLITE_DONE)
        status = code == SQLITE_ROW ? visit_row(h, s, samples, visit, user, err)
                                    : fail(h, err, "reading");
    sqlite3_finalize(s);
    free(samples);
    return status;
}
