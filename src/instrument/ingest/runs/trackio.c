/* trackio.c - trackio's SQLite data bases, also while they are written.
 *
 * How one is opened, so that nothing is ever written beside it and no writer waits for longer than
 * a query:
 *
 *     a rollback journal             read only; immutable where that is not possible
 *     no -wal, or an empty one       immutable: no locks; nobody has it open
 *     -wal and -shm (it is live)     read only, for the length of one query
 *     -wal without -shm (a copy)     a copy of both in a folder of our own
 *     through a pipe                 the same without a log
 *
 * A poll opens, asks for rows behind the last id, and closes. */
#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/log.h"
#include "base/output.h"
#include "base/strings.h"
#include "base/vec.h"
#include "instrument/ingest/foreign_db.h"
#include "instrument/ingest/runs/reader.h"
#include "instrument/ingest/runs/rows.h"

enum { BUSY_MS = 1000, MAX_RUNS = 10000, HEADER_WAL = 18 };

typedef struct {
    char *path;
    char *key; /* run_id, or run_name where there are no ids */
    bool has_id;
    int64_t last_id, last_system_id;
    uint64_t inode;
    bool has_settings;
    tp_flat_row row;
    uint64_t n_bad;
} state;

/* ---- opening ---- */

static void harden(sqlite3 *db)
{
    tp_foreign_db_harden(db, false);
    sqlite3_busy_timeout(db, BUSY_MS);
}

static tp_status open_as(const char *path, const char *options, sqlite3 **ret, tp_error *err)
{
    TP_OWN(tp_buf) uri = {0};
    tp_foreign_db_uri(path, options, &uri);
    tp_output_note_input(path);
    int result = sqlite3_open_v2(
        uri.data, ret, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, NULL);
    if (result == SQLITE_OK) {
        harden(*ret);
        result = sqlite3_exec(*ret, "SELECT count(*) FROM sqlite_master", NULL, NULL, NULL);
    }
    if (result == SQLITE_OK)
        return TP_OK;
    tp_status status =
        result == SQLITE_BUSY
            ? tp_fail(err, TP_ERR_IO, "'%s' is locked by who writes it; try again", path)
            : tp_fail(err, TP_ERR_FORMAT, "cannot open '%s' as a database: %s", path,
                      *ret ? sqlite3_errmsg(*ret) : sqlite3_errstr(result));
    sqlite3_close(*ret);
    *ret = NULL;
    return status;
}

static char *beside(const char *path, const char *suffix)
{
    tp_buf name = {0};
    tp_buf_addf(&name, "%s%s", path, suffix);
    return name.data;
}

static tp_status copy_with_log(const char *path, const char *wal, const char *folder, tp_error *err)
{
    char *to = tp_place_join(folder, "run.db"), *to_wal = tp_place_join(folder, "run.db-wal");
    tp_status status = tp_file_copy(path, to, err);
    if (status == TP_OK && wal)
        status = tp_file_copy(wal, to_wal, err);
    free(to);
    free(to_wal);
    return status;
}

/* The folder goes at once: what is open stays readable, and SQLite keeps its index of the log in
 * memory when it alone has the data base. */
static tp_status open_copy(const char *path, const char *wal, sqlite3 **ret, tp_error *err)
{
    const char *where = getenv("TMPDIR");
    TP_OWN(tp_buf) folder = {0};
    tp_buf_addf(&folder, "%s/temper-run-XXXXXX", where && *where ? where : "/tmp");
    if (!mkdtemp(folder.data))
        return tp_fail(err, TP_ERR_IO, "cannot make a folder for a copy of '%s': %s", path,
                       strerror(errno));
    TP_FREED char *copy = tp_place_join(folder.data, "run.db");
    tp_status status = copy_with_log(path, wal, folder.data, err);
    if (status == TP_OK)
        status = open_as(copy, wal ? "?mode=ro" : "?mode=ro&immutable=1", ret, err);
    if (!*ret && status == TP_ERR_FORMAT)
        status = tp_fail(err, status, "'%s' is no whole data base; is it cut off?", path);
    /* Its figures are read at once into a data base in memory, so that no copy is left. */
    sqlite3 *memory = NULL;
    if (status == TP_OK && sqlite3_open(":memory:", &memory) == SQLITE_OK) {
        sqlite3_backup *b = sqlite3_backup_init(memory, "main", *ret, "main");
        if (b)
            (void)sqlite3_backup_step(b, -1);
        if (!b || sqlite3_backup_finish(b) != SQLITE_OK)
            status = tp_fail(err, TP_ERR_FORMAT, "cannot read '%s' and its log: %s", path,
                             sqlite3_errmsg(memory));
        sqlite3_close(*ret);
        *ret = memory;
        harden(memory);
    }
    if (tp_dir_remove(folder.data, NULL) != TP_OK)
        tp_log(TP_LOG_WARNING, "runs", "cannot remove '%s'", folder.data);
    return status;
}

/* What the header says: 1 a rollback journal, 2 a write-ahead log; 0: nothing. */
static int journal_of(const char *path)
{
    TP_CLEANUP(tp_place_release) tp_run_place place = {0};
    bool is_read = tp_place_look(&place, path, NULL) == TP_OK && place.n_head > HEADER_WAL;
    return is_read ? place.head[HEADER_WAL] : 0;
}

/* Who writes without a log changes the file itself, behind locks. */
static tp_status open_alone(const char *path, sqlite3 **ret, tp_error *err)
{
    tp_status status = journal_of(path) == 1 ? open_as(path, "?mode=ro", ret, err) : TP_ERR_FORMAT;
    return status == TP_ERR_FORMAT ? open_as(path, "?mode=ro&immutable=1", ret, err) : status;
}

static tp_status open_database(const char *path, sqlite3 **ret, tp_error *err)
{
    char *wal = beside(path, "-wal"), *shm = beside(path, "-shm");
    bool has_wal = tp_file_size(wal) > 0, is_live = tp_file_exists(shm);
    *ret = NULL;
    /* What came through a pipe has a name in /proc alone, which SQLite follows to nowhere. */
    bool is_piped = tp_str_starts(path, "/proc/self/fd/");
    tp_status status = is_piped   ? open_copy(path, NULL, ret, err)
                       : !has_wal ? open_alone(path, ret, err)
                       : is_live  ? open_as(path, "?mode=ro", ret, NULL)
                                  : TP_ERR_IO;
    if (has_wal && status != TP_OK)
        status = open_copy(path, wal, ret, err);
    free(wal);
    free(shm);
    return status;
}

static bool has_column(sqlite3 *db, const char *table, const char *column)
{
    return sqlite3_table_column_metadata(db, "main", table, column, NULL, NULL, NULL, NULL, NULL) ==
           SQLITE_OK;
}

static tp_status damaged(const state *s, sqlite3 *db, tp_error *err)
{
    return tp_fail(err, TP_ERR_FORMAT, "'%s' cannot be read: %s", s->path, sqlite3_errmsg(db));
}

/* ---- which run ---- */

typedef struct {
    char *key, *name;
} found_run;

typedef struct {
    found_run *runs;
    size_t n, cap;
} found_runs;

static void release_runs(found_runs *f)
{
    for (size_t i = 0; i < f->n; i++) {
        free(f->runs[i].key);
        free(f->runs[i].name);
    }
    free(f->runs);
}

static char *column_text(sqlite3_stmt *q, int i)
{
    const char *text = (const char *)sqlite3_column_text(q, i);
    return tp_strdup(text ? text : "");
}

static tp_status list_runs(const state *s, sqlite3 *db, found_runs *ret, tp_error *err)
{
    sqlite3_stmt *q;
    const char *sql = s->has_id ? "SELECT COALESCE(run_id, run_name), run_name, min(id) FROM "
                                  "main.metrics GROUP BY 1 ORDER BY 3"
                                : "SELECT run_name, run_name, min(id) FROM main.metrics GROUP BY 1 "
                                  "ORDER BY 3";
    if (sqlite3_prepare_v2(db, sql, -1, &q, NULL) != SQLITE_OK)
        return damaged(s, db, err);
    int result;
    while ((result = sqlite3_step(q)) == SQLITE_ROW && ret->n < MAX_RUNS) {
        found_run *r = TP_VEC_PUSH(ret->runs, ret->n, ret->cap);
        r->key = column_text(q, 0);
        r->name = column_text(q, 1);
    }
    sqlite3_finalize(q);
    return result == SQLITE_ROW || result == SQLITE_DONE ? TP_OK : damaged(s, db, err);
}

/* The names of all, or the ids of those that share `name`. */
static void name_runs(const found_runs *f, const char *name, tp_buf *out)
{
    for (size_t i = 0, n = 0; i < f->n && n < 20; i++)
        if (!name || strcmp(f->runs[i].name, name) == 0)
            tp_buf_addf(out, "%s%s", n++ ? ", " : "", name ? f->runs[i].key : f->runs[i].name);
}

static tp_status choose_run(tp_metrics *m, state *s, const found_runs *f, tp_error *err)
{
    size_t n = 0, at = 0;
    TP_OWN(tp_buf) names = {0};
    tp_status status = TP_OK;
    for (size_t i = 0; i < f->n; i++) {
        bool is_it =
            !m->run || strcmp(f->runs[i].key, m->run) == 0 || strcmp(f->runs[i].name, m->run) == 0;
        at = is_it ? i : at;
        n += is_it;
    }
    if (n == 1) {
        s->key = tp_strdup(f->runs[at].key);
        free(m->run);
        m->run = tp_strdup(f->runs[at].name);
    } else {
        name_runs(f, n > 1 ? m->run : NULL, &names);
        const char *list = tp_buf_str(&names);
        if (f->n == 0)
            status = tp_fail(err, TP_ERR_FORMAT,
                             "'%s' has no run yet; a data base that is being written needs its "
                             "'-wal' file beside it",
                             s->path);
        else if (!m->run)
            status = tp_fail(err, TP_ERR_CONFIG, "'%s' holds %zu runs; name one as '%s#%s': %s",
                             s->path, f->n, s->path, f->runs[0].name, list);
        else if (n == 0)
            status = tp_fail(err, TP_ERR_CONFIG, "'%s' has no run '%s'; it has: %s", s->path,
                             m->run, list);
        else
            status =
                tp_fail(err, TP_ERR_CONFIG, "'%s' has %zu runs called '%s'; name one by its id: %s",
                        s->path, n, m->run, list);
    }
    return status;
}

/* ---- reading ---- */

static void take_figures(tp_metrics *m, const tp_flat_row *row, int64_t step, double wall,
                         const char *prefix, tp_buf *tag)
{
    if (!tp_recorded_next(m))
        return;
    for (size_t i = 0; i < row->n; i++) {
        const tp_flat_row_member *x = &row->members[i];
        tp_slice name = tp_flat_row_tag(row, x);
        if (!x->is_number)
            continue;
        tp_buf_clear(tag);
        tp_buf_adds(tag, prefix);
        tp_buf_add(tag, name.data, name.len);
        tp_recorded_put(m, (tp_slice){tag->data, tag->len}, step, wall, x->value, 0);
    }
}

/* Rows (id, step, timestamp, json) behind *last. */
static tp_status read_rows(tp_metrics *m, state *s, sqlite3 *db, const char *sql, int64_t *last,
                           const char *prefix, tp_error *err)
{
    sqlite3_stmt *q;
    TP_OWN(tp_buf) tag = {0};
    int result;
    if (sqlite3_prepare_v2(db, sql, -1, &q, NULL) != SQLITE_OK)
        return damaged(s, db, err);
    sqlite3_bind_text(q, 1, s->key, -1, SQLITE_STATIC);
    sqlite3_bind_int64(q, 2, *last);
    while ((result = sqlite3_step(q)) == SQLITE_ROW) {
        const char *when = (const char *)sqlite3_column_text(q, 2);
        double wall = when ? tp_iso_seconds(when, (size_t)sqlite3_column_bytes(q, 2)) : NAN;
        int64_t step =
            sqlite3_column_type(q, 1) == SQLITE_NULL ? TP_STEP_NONE : sqlite3_column_int64(q, 1);
        const char *json = sqlite3_column_blob(q, 3);
        int n = sqlite3_column_bytes(q, 3);
        *last = sqlite3_column_int64(q, 0);
        if (json && tp_flat_row_parse(&s->row, "metrics", json, (size_t)n, NULL) == TP_OK)
            take_figures(m, &s->row, step, wall, prefix, &tag);
        else
            s->n_bad++;
    }
    sqlite3_finalize(q);
    if (result != SQLITE_DONE && result != SQLITE_BUSY)
        tp_notes_add(&m->notes, TP_NOTE_WARNING, "'%s': read up to the damage behind row %lld: %s",
                     s->path, (long long)*last, sqlite3_errmsg(db));
    return TP_OK;
}

static void read_settings(tp_metrics *m, state *s, sqlite3 *db)
{
    sqlite3_stmt *q;
    const char *sql =
        has_column(db, "configs", "run_id")
            ? "SELECT CAST(config AS TEXT) FROM main.configs WHERE COALESCE(run_id, run_name) = ?1"
            : "SELECT CAST(config AS TEXT) FROM main.configs WHERE run_name = ?1";
    TP_OWN(tp_flat_row) row = {0};
    if (!has_column(db, "configs", "config") ||
        sqlite3_prepare_v2(db, sql, -1, &q, NULL) != SQLITE_OK)
        return;
    sqlite3_bind_text(q, 1, s->key, -1, SQLITE_STATIC);
    if (sqlite3_step(q) == SQLITE_ROW && sqlite3_column_text(q, 0) &&
        tp_flat_row_parse(&row, "config", (const char *)sqlite3_column_text(q, 0),
                          (size_t)sqlite3_column_bytes(q, 0), NULL) == TP_OK)
        tp_flat_row_settings(m, &row);
    s->has_settings = row.n > 0;
    sqlite3_finalize(q);
}

static tp_status read_tables(tp_metrics *m, state *s, sqlite3 *db, tp_error *err)
{
    static const char *const rows[] = {
        "SELECT id, step, timestamp, CAST(metrics AS TEXT) FROM main.metrics WHERE run_name = ?1 "
        "AND id > ?2 ORDER BY id",
        "SELECT id, step, timestamp, CAST(metrics AS TEXT) FROM main.metrics WHERE "
        "COALESCE(run_id, run_name) = ?1 AND id > ?2 ORDER BY id"};
    static const char *const system_rows[] = {
        "SELECT id, NULL, timestamp, CAST(metrics AS TEXT) FROM main.system_metrics WHERE "
        "run_name = ?1 AND id > ?2 ORDER BY id",
        "SELECT id, NULL, timestamp, CAST(metrics AS TEXT) FROM main.system_metrics WHERE "
        "COALESCE(run_id, run_name) = ?1 AND id > ?2 ORDER BY id"};
    bool has_system = has_column(db, "system_metrics", "metrics");
    bool system_id = has_column(db, "system_metrics", "run_id");
    if (!s->has_settings)
        read_settings(m, s, db);
    TP_TRY(read_rows(m, s, db, rows[s->has_id], &s->last_id, "", err));
    if (has_system)
        TP_TRY(read_rows(m, s, db, system_rows[system_id], &s->last_system_id, "system:", err));
    return TP_OK;
}

/* ---- the row ---- */

static bool is_database(const tp_run_place *place)
{
    static const char magic[] = "SQLite format 3";
    return !place->is_dir && place->n_head > 100 && memcmp(place->head, magic, sizeof magic) == 0;
}

/* The only data base of a folder. */
static char *file_of(const tp_run_place *place)
{
    if (!place->is_dir)
        return is_database(place) ? tp_strdup(place->path) : NULL;
    TP_CLEANUP(tp_place_release) tp_run_place file = {0};
    char *path = tp_place_only(place, ".db");
    if (path && tp_place_look(&file, path, NULL) == TP_OK && is_database(&file))
        return path;
    free(path);
    return NULL;
}

static tp_status find_runs(state *s, sqlite3 *db, found_runs *ret, tp_error *err)
{
    if (!has_column(db, "metrics", "run_name") || !has_column(db, "metrics", "metrics"))
        return tp_fail(err, TP_ERR_FORMAT,
                       "'%s' is a database, but not trackio's: it has no table 'metrics' with "
                       "run_name and metrics",
                       s->path);
    s->has_id = has_column(db, "metrics", "run_id");
    return list_runs(s, db, ret, err);
}

static tp_status find_run(tp_metrics *m, state *s, sqlite3 *db, tp_error *err)
{
    found_runs found = {0};
    tp_status status = find_runs(s, db, &found, err);
    if (status == TP_OK)
        status = choose_run(m, s, &found, err);
    release_runs(&found);
    return status;
}

static tp_status open_run(tp_metrics *m, const tp_run_place *place, tp_error *err)
{
    state *s = tp_vec_new(1, sizeof *s);
    sqlite3 *db;
    m->state = s;
    s->path = file_of(place);
    s->row.is_flat = true;
    m->step_tag = "train/global_step";
    TP_TRY(open_database(s->path, &db, err));
    tp_status status = find_run(m, s, db, err);
    sqlite3_close(db);
    return status;
}

static tp_status each_run(const tp_run_place *place, bool (*see)(void *user, const char *run),
                          void *user, tp_error *err)
{
    state s = {.path = file_of(place)};
    found_runs found = {0};
    sqlite3 *db;
    tp_status status = open_database(s.path, &db, err);
    if (status == TP_OK) {
        status = find_runs(&s, db, &found, err);
        sqlite3_close(db);
    }
    for (size_t i = 0; i < found.n && status == TP_OK; i++) {
        size_t same = 0;
        for (size_t k = 0; k < found.n; k++)
            same += strcmp(found.runs[i].name, found.runs[k].name) == 0;
        if (!see(user, same == 1 ? found.runs[i].name : found.runs[i].key))
            break;
    }
    release_runs(&found);
    free(s.path);
    return status;
}

static void close_run(tp_metrics *m)
{
    state *s = m->state;
    tp_flat_row_release(&s->row);
    free(s->path);
    free(s->key);
    free(s);
}

static tp_status read_run(tp_metrics *m, bool *ret_again, tp_error *err)
{
    state *s = m->state;
    sqlite3 *db;
    tp_file_state now = {0};
    bool unused;
    (void)tp_file_changed(s->path, &now, &unused);
    m->step_tag = "train/global_step";
    if (s->inode && now.inode != s->inode) {
        s->last_id = s->last_system_id = 0;
        s->inode = now.inode;
        *ret_again = true;
        return TP_OK;
    }
    s->inode = now.inode;
    TP_TRY(open_database(s->path, &db, err));
    tp_status status = read_tables(m, s, db, err);
    sqlite3_close(db);
    return status;
}

static void say(tp_metrics *m)
{
    const state *s = m->state;
    TP_FREED char *wal = beside(s->path, "-wal");
    if (s->n_bad)
        tp_notes_add(&m->notes, TP_NOTE_WARNING, "'%s': %llu row%s passed over for no JSON object",
                     s->path, (unsigned long long)s->n_bad, tp_plural((uint64_t)s->n_bad));
    if (!m->n_records && journal_of(s->path) == 2 && !tp_file_exists(wal))
        tp_notes_add(&m->notes, TP_NOTE_WARNING,
                     "'%s' has no rows of the run; if it was copied while it was written, its "
                     "'-wal' file is missing",
                     s->path);
}

const tp_run_reader tp_run_reader_trackio = {
    .name = "trackio",
    .about = "trackio's SQLite data bases",
    .has_names = true,
    .file_of = file_of,
    .open = open_run,
    .read = read_run,
    .say = say,
    .close = close_run,
    .each = each_run,
};
