/* history.c - sessions and results of benchmarks in SQLite, each session one transaction. */
#include "instrument/bench/history.h"

#include <math.h>
#include <sqlite3.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"

enum { SCHEMA_VERSION = 1, BUSY_MS = 10000, MAX_SAMPLES = TP_BENCH_MAX_SAMPLES };

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

static tp_status open_file(const char *path, bool create, tp_history **ret, tp_error *err)
{
    const char *slash = strrchr(path, '/');
    char folder[1024];
    if (strlen(path) >= sizeof folder)
        return tp_fail(err, TP_ERR_ARG, "the path of the history is too long");
    tp_history *h = tp_new(1, sizeof *h);
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

tp_status tp_history_open(const char *path, tp_history **ret, tp_error *err)
{
    return open_file(path, false, ret, err);
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

/* A row being made: values are bound in order of the columns, and the first failure stays. */
typedef struct {
    sqlite3_stmt *s;
    int at, code;
} row;

static void bound(row *x, int code) { x->code = x->code == SQLITE_OK ? code : x->code; }

static void bind_text(row *x, const char *text)
{
    bound(x, sqlite3_bind_text(x->s, ++x->at, text, -1, SQLITE_TRANSIENT)); /* NULL is null */
}

static void bind_int(row *x, int64_t v) { bound(x, sqlite3_bind_int64(x->s, ++x->at, v)); }

static void bind_number(row *x, double v)
{
    bound(x, sqlite3_bind_double(x->s, ++x->at, v)); /* NaN is null */
}

static void bind_samples(row *x, const double *values, size_t n)
{
    bound(x, n > 0
                 ? sqlite3_bind_blob64(x->s, ++x->at, values, n * sizeof *values, SQLITE_TRANSIENT)
                 : sqlite3_bind_null(x->s, ++x->at));
}

static tp_status compile(tp_history *h, const char *sql, sqlite3_stmt **ret, tp_error *err)
{
    return sqlite3_prepare_v2(h->db, sql, -1, ret, NULL) == SQLITE_OK
               ? TP_OK
               : fail(h, err, "understanding its tables");
}

static tp_status insert(tp_history *h, row *x, int64_t *ret_id, tp_error *err)
{
    bool is_added = x->code == SQLITE_OK && sqlite3_step(x->s) == SQLITE_DONE;
    tp_status status = is_added ? TP_OK : fail(h, err, "writing");
    sqlite3_finalize(x->s);
    *ret_id = is_added ? sqlite3_last_insert_rowid(h->db) : 0;
    return status;
}

static tp_status add_session(tp_history *h, const tp_bench_report *r, int64_t *ret_id,
                             tp_error *err)
{
    row x = {0};
    TP_TRY(compile(h,
                   "INSERT INTO session(started, version, commit_id, branch, dirty, host, "
                   "host_name, cpu, compared_with, seed) VALUES(?,?,?,?,?,?,?,?,?,?)",
                   &x.s, err));
    bind_text(&x, r->started);
    bind_text(&x, r->version);
    bind_text(&x, r->has_commit ? r->commit.id : NULL);
    bind_text(&x, r->has_commit ? r->commit.branch : NULL);
    bind_int(&x, r->has_commit && r->commit.is_dirty);
    bind_text(&x, r->host.fingerprint);
    bind_text(&x, r->host.name);
    bind_text(&x, r->host.cpu);
    bind_text(&x, r->side_a);
    bind_int(&x, (int64_t)r->seed);
    return insert(h, &x, ret_id, err);
}

static tp_status add_metric(tp_history *h, int64_t result, const tp_bench_metric *m, tp_error *err)
{
    row x = {0};
    int64_t id;
    TP_TRY(compile(h,
                   "INSERT INTO metric(result, name, unit, direction, class, informative, median, "
                   "lower, upper, samples, other_samples) VALUES(?,?,?,?,?,?,?,?,?,?,?)",
                   &x.s, err));
    bind_int(&x, result);
    bind_text(&x, m->metric.name);
    bind_text(&x, m->metric.unit);
    bind_text(&x, tp_direction_name(m->metric.direction));
    bind_text(&x, tp_metric_class_name(m->metric.kind));
    bind_int(&x, m->metric.is_informative);
    bind_number(&x, m->side_b.median);
    bind_number(&x, m->side_b.lower);
    bind_number(&x, m->side_b.upper);
    bind_samples(&x, m->b, m->n_b);
    bind_samples(&x, m->a, m->n_a);
    return insert(h, &x, &id, err);
}

static tp_status add_result(tp_history *h, int64_t session, const tp_bench_result *result,
                            tp_error *err)
{
    row x = {0};
    int64_t id;
    TP_TRY(compile(h,
                   "INSERT INTO result(session, name, work, work_unit, rounds, round_order, "
                   "verdict, message) VALUES(?,?,?,?,?,?,?,?)",
                   &x.s, err));
    bind_int(&x, session);
    bind_text(&x, result->name);
    bind_int(&x, (int64_t)result->work);
    bind_text(&x, result->work_unit);
    bind_int(&x, (int64_t)result->rounds);
    bind_text(&x, result->order);
    bind_text(&x, tp_bench_verdict_name(result->verdict));
    bind_text(&x, result->message);
    TP_TRY(insert(h, &x, &id, err));
    for (size_t k = 0; k < result->n_metrics; k++)
        TP_TRY(add_metric(h, id, &result->metrics[k], err));
    return TP_OK;
}

static tp_status add_all(tp_history *h, const tp_bench_report *r, tp_error *err)
{
    int64_t session;
    TP_TRY(run(h, "BEGIN IMMEDIATE", "locking", err));
    h->in_session = true;
    TP_TRY(add_session(h, r, &session, err));
    for (size_t i = 0; i < r->n_results; i++) {
        if (r->results[i].n_metrics > 0 && !r->results[i].message)
            TP_TRY(add_result(h, session, &r->results[i], err));
    }
    TP_TRY(run(h, "COMMIT", "writing", err));
    h->in_session = false;
    return TP_OK;
}

tp_status tp_history_record(const char *path, const tp_bench_report *r, tp_error *err)
{
    tp_history *h;
    TP_TRY(open_file(path, true, &h, err));
    tp_status status = add_all(h, r, err);
    tp_history_close(h); /* what was not ended is not kept */
    return status;
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
    row x = {0};
    TP_TRY(
        compile(h,
                "SELECT r.name, m.name, m.unit, m.direction, s.started, s.commit_id, s.host, "
                "s.dirty, m.informative, m.median, m.lower, m.upper, m.samples, m.class "
                "FROM metric m JOIN result r ON r.id = m.result JOIN session s ON s.id = r.session "
                "WHERE ?1 IS NULL OR s.host = ?1 ORDER BY r.name, m.name, m.unit, s.started, "
                "s.id",
                &x.s, err));
    bind_text(&x, host);
    TP_FREED double *samples = tp_new(MAX_SAMPLES, sizeof *samples);
    tp_status status = x.code == SQLITE_OK ? TP_OK : fail(h, err, "reading");
    int code;
    while (status == TP_OK && (code = sqlite3_step(x.s)) != SQLITE_DONE)
        status = code == SQLITE_ROW ? visit_row(h, x.s, samples, visit, user, err)
                                    : fail(h, err, "reading");
    sqlite3_finalize(x.s);
    return status;
}
