/* run_cache.c - rows as they are kept: one a run, with the extent of its files when it was read. */
#include "instrument/store/run_cache.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/files.h"
#include "base/vec.h"
#include "instrument/ingest/result_kind.h"

enum { SCHEMA_VERSION = 4, BUSY_MS = 2000 };

/* Columns of the table, in this order: what SELECT gives and INSERT takes. */
#define COLUMNS                                                                                  \
    "path, extent, format, state, algorithm, model, problem, step, max_steps, started, updated," \
    " loss, reward, tokens_per_s, n_metrics, n_points, kind, bytes, known"

/* ---- rows ---- */

enum { STORED_TEXTS = 7, TEXTS, NUMBERS = 5 };

/* Those that the data base has come first, in its order. */
static char **text_of(tp_run_row *r, int i)
{
    char **texts[TEXTS] = {&r->path,      &r->extent, &r->format,  &r->state,
                           &r->algorithm, &r->model,  &r->problem, &r->tags};
    return texts[i];
}

static double *number_of(tp_run_row *r, int i)
{
    double *numbers[NUMBERS] = {&r->e.started, &r->e.updated, &r->e.loss, &r->e.reward,
                                &r->e.tokens_per_s};
    return numbers[i];
}

void tp_run_row_clear(tp_run_row *r)
{
    tp_metrics_close(r->m);
    r->m = NULL;
    for (int i = 0; i < TEXTS; i++) {
        free(*text_of(r, i));
        *text_of(r, i) = NULL;
    }
}

static void make_id(tp_run_row *r)
{
    snprintf(r->id, sizeof r->id, "%012llx",
             (unsigned long long)XXH3_64bits(r->path, strlen(r->path)) & 0xffffffffffff);
}

void tp_run_row_show(tp_run_row *r)
{
    r->e.id = r->id;
    r->e.path = r->path;
    r->e.format = r->format;
    r->e.state = r->is_dead ? "killed" : r->state;
    r->e.algorithm = r->algorithm;
    r->e.model = r->model;
    r->e.tags = r->tags;
    r->e.problem = r->problem;
}

tp_run_row tp_run_row_of(char *path)
{
    tp_run_row r = {.path = path};
    make_id(&r);
    r.e.step = r.e.max_steps = -1;
    r.e.started = r.e.loss = r.e.reward = r.e.tokens_per_s = NAN;
    return r;
}

tp_run_row tp_run_row_copy(const tp_run_row *row)
{
    tp_run_row copy = *row;
    copy.m = NULL;
    for (int i = 0; i < TEXTS; i++)
        *text_of(&copy, i) = tp_strdup(*text_of(&copy, i));
    return copy;
}

/* ---- the data base ---- */

/* NULL: there is no such kind. */
static const char *kind_at(sqlite3_stmt *q, int i)
{
    const char *text = (const char *)sqlite3_column_text(q, i);
    for (int k = TP_RESULT_RUN; text && k <= TP_RESULT_PROFILE; k++)
        if (strcmp(tp_result_kind_name((tp_result_kind)k), text) == 0)
            return tp_result_kind_name((tp_result_kind)k);
    return NULL;
}

static char *text_at(sqlite3_stmt *q, int i)
{
    return tp_strdup((const char *)sqlite3_column_text(q, i));
}

/* Which of the last figures there are: a NaN among them is stored as null. */
enum { KNOWN_LOSS = 1, KNOWN_REWARD = 2, KNOWN_RATE = 4 };

static double number_at(sqlite3_stmt *q, int i)
{
    return sqlite3_column_type(q, i) == SQLITE_NULL ? NAN : sqlite3_column_double(q, i);
}

void tp_run_cache_load(sqlite3 *db, tp_run_rows *rows)
{
    sqlite3_stmt *q;
    if (sqlite3_prepare_v2(db, "SELECT " COLUMNS " FROM run", -1, &q, NULL) != SQLITE_OK)
        return;
    while (sqlite3_step(q) == SQLITE_ROW) {
        tp_run_row *r = TP_VEC_PUSH(rows->v, rows->n, rows->cap);
        int at = 0;
        for (int i = 0; i < STORED_TEXTS; i++)
            *text_of(r, i) = text_at(q, at++);
        r->e.step = sqlite3_column_int64(q, at++);
        r->e.max_steps = sqlite3_column_int64(q, at++);
        for (int i = 0; i < NUMBERS; i++)
            *number_of(r, i) = number_at(q, at++);
        r->e.n_metrics = sqlite3_column_int64(q, at++);
        r->e.n_points = sqlite3_column_int64(q, at++);
        r->e.kind = kind_at(q, at++);
        r->e.bytes = sqlite3_column_int64(q, at++);
        int known = sqlite3_column_int(q, at);
        r->e.has_loss = known & KNOWN_LOSS;
        r->e.has_reward = known & KNOWN_REWARD;
        r->e.has_rate = known & KNOWN_RATE;
        if (!r->path || !r->extent || !r->e.kind) { /* no row of ours */
            tp_run_row_clear(r);
            rows->n--;
            continue;
        }
        make_id(r);
    }
    sqlite3_finalize(q);
}

static void bind(sqlite3_stmt *q, tp_run_row *r)
{
    int at = 1;
    for (int i = 0; i < STORED_TEXTS; i++) /* NULL binds null */
        sqlite3_bind_text(q, at++, *text_of(r, i), -1, SQLITE_STATIC);
    sqlite3_bind_int64(q, at++, r->e.step);
    sqlite3_bind_int64(q, at++, r->e.max_steps);
    for (int i = 0; i < NUMBERS; i++)
        sqlite3_bind_double(q, at++, *number_of(r, i)); /* NaN binds null */
    sqlite3_bind_int64(q, at++, r->e.n_metrics);
    sqlite3_bind_int64(q, at++, r->e.n_points);
    sqlite3_bind_text(q, at++, r->e.kind, -1, SQLITE_STATIC);
    sqlite3_bind_int64(q, at++, r->e.bytes);
    sqlite3_bind_int(q, at,
                     (r->e.has_loss ? KNOWN_LOSS : 0) | (r->e.has_reward ? KNOWN_REWARD : 0) |
                         (r->e.has_rate ? KNOWN_RATE : 0));
}

bool tp_run_cache_save(sqlite3 *db, const tp_run_rows *rows)
{
    sqlite3_stmt *q = NULL;
    bool ok = sqlite3_exec(db, "BEGIN IMMEDIATE; DELETE FROM run", NULL, NULL, NULL) == SQLITE_OK;
    ok = ok && sqlite3_prepare_v2(db,
                                  "INSERT INTO run(" COLUMNS ") VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,"
                                  "?,?,?,?,?)",
                                  -1, &q, NULL) == SQLITE_OK;
    for (size_t i = 0; i < rows->n && ok; i++) {
        bind(q, &rows->v[i]);
        ok = sqlite3_step(q) == SQLITE_DONE;
        sqlite3_reset(q);
    }
    sqlite3_finalize(q);
    return sqlite3_exec(db, ok ? "COMMIT" : "ROLLBACK", NULL, NULL, NULL) == SQLITE_OK && ok;
}

/* Where the file is, or becomes, an index of this version; else NULL. */
static sqlite3 *open_file(const char *path)
{
    static const char make[] =
        "PRAGMA journal_mode=MEMORY; PRAGMA synchronous=OFF; CREATE TABLE IF NOT EXISTS run(path "
        "TEXT "
        "PRIMARY KEY, extent TEXT, format TEXT, state TEXT, algorithm TEXT, model TEXT, problem "
        "TEXT, step INTEGER, max_steps INTEGER, started REAL, updated REAL, loss REAL, reward "
        "REAL, "
        "tokens_per_s REAL, n_metrics INTEGER, n_points INTEGER, kind TEXT, bytes INTEGER, "
        "known INTEGER)";
    sqlite3 *db = NULL;
    sqlite3_stmt *q = NULL;
    char number[48];
    int version = -1;
    snprintf(number, sizeof number, "PRAGMA user_version=%d", SCHEMA_VERSION);
    if (sqlite3_open(path, &db) == SQLITE_OK &&
        sqlite3_prepare_v2(db, "PRAGMA user_version", -1, &q, NULL) == SQLITE_OK &&
        sqlite3_step(q) == SQLITE_ROW)
        version = sqlite3_column_int(q, 0);
    sqlite3_finalize(q);
    sqlite3_busy_timeout(db, BUSY_MS);
    if ((version == 0 || version == SCHEMA_VERSION) &&
        sqlite3_exec(db, make, NULL, NULL, NULL) == SQLITE_OK &&
        sqlite3_exec(db, number, NULL, NULL, NULL) == SQLITE_OK)
        return db;
    sqlite3_close(db);
    return NULL;
}

sqlite3 *tp_run_cache_open(const char *folder, const tp_run_index_options *options, tp_buf *note)
{
    char path[1024], name[64], real[4096];
    tp_error why = {0};
    sqlite3 *db = NULL;
    bool has_path = !options->without_cache;
    if (options->cache) {
        snprintf(path, sizeof path, "%s", options->cache);
    } else if (has_path) {
        folder = realpath(folder, real) ? real : folder;
        snprintf(name, sizeof name, "%s-%016llx.sqlite", options->all_kinds ? "all" : "runs",
                 (unsigned long long)XXH3_64bits(folder, strlen(folder)));
        has_path = tp_cache_path(name, true, path, sizeof path, &why) == TP_OK;
    }
    if (has_path && !(db = open_file(path))) {
        (void)unlink(path); /* damaged, or of another version: it is a cache */
        db = open_file(path);
        if (!db)
            tp_buf_addf(note, "the index '%s' cannot be used: every run is read anew", path);
    } else if (why.message[0]) {
        tp_buf_addf(note, "no index is kept: %s", why.message);
    }
    if (!db)
        db = open_file(":memory:");
    if (!db)
        TP_ASSERT(false && "SQLite has no memory");
    return db;
}
