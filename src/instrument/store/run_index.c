/* run_index.c - temper/runs.h: what lies below a folder, kept in SQLite between scans.
 *
 * The index is a cache: one row a run, with the extent of its files when it was read.  A scan walks
 * the folder, reads the runs whose extent is another one, and forgets what is gone, in one
 * transaction; a file that is no index of this version is made anew. */
#include "instrument/store/run_index.h"

#include <math.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/sized.h"
#include "base/vec.h"
#include "instrument/analyze/runs/curve.h"
#include "instrument/ingest/result_kind.h"
#include "instrument/ingest/runs/find.h"
#include "text/json/json.h"

enum { SCHEMA_VERSION = 3, BUSY_MS = 2000, ID_BYTES = 13 };

/* Columns of the table, in this order: what SELECT gives and INSERT takes. */
#define COLUMNS                                                                                  \
    "path, extent, format, state, algorithm, model, problem, step, max_steps, started, updated," \
    " loss, reward, tokens_per_s, n_metrics, n_points, kind, bytes"

typedef struct {
    tp_run_entry e; /* its kind is a constant */
    char id[ID_BYTES];
    char *path, *extent, *format, *state, *algorithm, *model, *tags, *problem;
    tp_metrics *m; /* of a run that grows: it is read on, not again */
    bool is_seen;
    bool is_dead; /* says "running" and nobody holds it: not kept, for it changes without a byte */
} row;

struct tp_run_index {
    char *folder;
    sqlite3 *db;
    row *rows;
    size_t n, cap, n_known;
    tp_buf note;
    bool has_changed, has_all_kinds;
};

/* ---- rows ---- */

enum { STORED_TEXTS = 7, TEXTS, NUMBERS = 5 };

/* Those that the data base has come first, in its order. */
static char **text_of(row *r, int i)
{
    char **texts[TEXTS] = {&r->path,      &r->extent, &r->format,  &r->state,
                           &r->algorithm, &r->model,  &r->problem, &r->tags};
    return texts[i];
}

static double *number_of(row *r, int i)
{
    double *numbers[NUMBERS] = {&r->e.started, &r->e.updated, &r->e.loss, &r->e.reward,
                                &r->e.tokens_per_s};
    return numbers[i];
}

static void clear_row(row *r)
{
    tp_metrics_close(r->m);
    r->m = NULL;
    for (int i = 0; i < TEXTS; i++) {
        free(*text_of(r, i));
        *text_of(r, i) = NULL;
    }
}

static void make_id(row *r)
{
    snprintf(r->id, sizeof r->id, "%012llx",
             (unsigned long long)XXH3_64bits(r->path, strlen(r->path)) & 0xffffffffffff);
}

/* The view of a row that users see. */
static void show(row *r)
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

static int by_path(const void *a, const void *b)
{
    return strcmp(((const row *)a)->path, ((const row *)b)->path);
}

/* Of those that were known before this scan, which are sorted by path. */
static row *find_row(const tp_run_index *x, char *path)
{
    const row key = {.path = path};
    return x->n_known ? bsearch(&key, x->rows, x->n_known, sizeof key, by_path) : NULL;
}

static int newest_first(const void *a, const void *b)
{
    const row *x = a, *y = b;
    if (x->e.updated != y->e.updated)
        return x->e.updated > y->e.updated ? -1 : 1;
    return strcmp(x->path, y->path);
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

static double number_at(sqlite3_stmt *q, int i)
{
    return sqlite3_column_type(q, i) == SQLITE_NULL ? NAN : sqlite3_column_double(q, i);
}

static void load(tp_run_index *x)
{
    sqlite3_stmt *q;
    if (sqlite3_prepare_v2(x->db, "SELECT " COLUMNS " FROM run", -1, &q, NULL) != SQLITE_OK)
        return;
    while (sqlite3_step(q) == SQLITE_ROW) {
        row *r = TP_VEC_PUSH(x->rows, x->n, x->cap);
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
        r->e.bytes = sqlite3_column_int64(q, at);
        if (!r->path || !r->extent || !r->e.kind) { /* no row of ours */
            clear_row(r);
            x->n--;
            continue;
        }
        make_id(r);
    }
    sqlite3_finalize(q);
}

static void bind(sqlite3_stmt *q, row *r)
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
    sqlite3_bind_int64(q, at, r->e.bytes);
}

/* Write every row anew: a scan of thousands of runs is one short transaction. */
static bool save(tp_run_index *x)
{
    sqlite3_stmt *q = NULL;
    bool ok =
        sqlite3_exec(x->db, "BEGIN IMMEDIATE; DELETE FROM run", NULL, NULL, NULL) == SQLITE_OK;
    ok = ok && sqlite3_prepare_v2(x->db,
                                  "INSERT INTO run(" COLUMNS ") VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,"
                                  "?,?,?,?)",
                                  -1, &q, NULL) == SQLITE_OK;
    for (size_t i = 0; i < x->n && ok; i++) {
        bind(q, &x->rows[i]);
        ok = sqlite3_step(q) == SQLITE_DONE;
        sqlite3_reset(q);
    }
    sqlite3_finalize(q);
    return sqlite3_exec(x->db, ok ? "COMMIT" : "ROLLBACK", NULL, NULL, NULL) == SQLITE_OK && ok;
}

/* True where the file is, or becomes, an index of this version. */
static bool open_cache(tp_run_index *x, const char *path)
{
    static const char make[] =
        "PRAGMA journal_mode=MEMORY; PRAGMA synchronous=OFF; CREATE TABLE IF NOT EXISTS run(path "
        "TEXT "
        "PRIMARY KEY, extent TEXT, format TEXT, state TEXT, algorithm TEXT, model TEXT, problem "
        "TEXT, step INTEGER, max_steps INTEGER, started REAL, updated REAL, loss REAL, reward "
        "REAL, "
        "tokens_per_s REAL, n_metrics INTEGER, n_points INTEGER, kind TEXT, bytes INTEGER)";
    sqlite3_stmt *q = NULL;
    char number[48];
    int version = -1;
    snprintf(number, sizeof number, "PRAGMA user_version=%d", SCHEMA_VERSION);
    if (sqlite3_open(path, &x->db) == SQLITE_OK &&
        sqlite3_prepare_v2(x->db, "PRAGMA user_version", -1, &q, NULL) == SQLITE_OK &&
        sqlite3_step(q) == SQLITE_ROW)
        version = sqlite3_column_int(q, 0);
    sqlite3_finalize(q);
    sqlite3_busy_timeout(x->db, BUSY_MS);
    if ((version == 0 || version == SCHEMA_VERSION) &&
        sqlite3_exec(x->db, make, NULL, NULL, NULL) == SQLITE_OK &&
        sqlite3_exec(x->db, number, NULL, NULL, NULL) == SQLITE_OK)
        return true;
    sqlite3_close(x->db);
    x->db = NULL;
    return false;
}

static void open_database(tp_run_index *x, const tp_run_index_options *options)
{
    char path[1024], name[64], real[4096];
    tp_error why = {0};
    bool has_path = !options->without_cache;
    if (options->cache) {
        snprintf(path, sizeof path, "%s", options->cache);
    } else if (has_path) {
        const char *folder = realpath(x->folder, real) ? real : x->folder;
        snprintf(name, sizeof name, "%s-%016llx.sqlite", x->has_all_kinds ? "all" : "runs",
                 (unsigned long long)XXH3_64bits(folder, strlen(folder)));
        has_path = tp_cache_path(name, true, path, sizeof path, &why) == TP_OK;
    }
    if (has_path && !open_cache(x, path)) {
        (void)unlink(path); /* damaged, or of another version: it is a cache */
        if (!open_cache(x, path)) {
            tp_buf_addf(&x->note, "the index '%s' cannot be used: every run is read anew", path);
            has_path = false;
        }
    } else if (why.message[0]) {
        tp_buf_addf(&x->note, "no index is kept: %s", why.message);
    }
    if (!has_path && !open_cache(x, ":memory:"))
        TP_ASSERT(!"SQLite has no memory");
}

tp_status tp_run_index_open(const char *folder, const tp_run_index_options *options,
                            tp_run_index **ret, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    tp_run_index_options o = {0};
    TP_NEED(folder && ret, err);
    TP_TRY(tp_sized_read(&o, sizeof o, options, "tp_run_index_options", err));
    if (!tp_dir_exists(folder))
        return tp_fail(err, TP_ERR_IO, "'%s' is no folder; give the one that holds your runs",
                       folder);
    tp_run_index *x = tp_vec_new(1, sizeof *x);
    x->folder = tp_strdup(folder);
    x->has_all_kinds = o.all_kinds;
    open_database(x, &o);
    load(x);
    for (size_t i = 0; i < x->n; i++)
        show(&x->rows[i]);
    *ret = x;
    return TP_OK;
}

void tp_run_index_close(tp_run_index *x)
{
    if (!x)
        return;
    for (size_t i = 0; i < x->n; i++)
        clear_row(&x->rows[i]);
    free(x->rows);
    sqlite3_close(x->db);
    tp_buf_release(&x->note);
    free(x->folder);
    free(x);
}

/* ---- what a run says of itself ---- */

static char *string_of(const tp_json *object, const char *key)
{
    return tp_strdup(tp_json_str(tp_json_get(object, key)));
}

/* Is the folder's .lock held?  Asked of the kernel without taking it, so that no run that begins is
 * refused.  Locks of other containers are not listed. */
static bool is_locked(const char *folder)
{
    struct stat st;
    char line[256], wanted[64];
    bool is_held = false;
    TP_FREED char *path = tp_place_join(folder, ".lock");
    FILE *locks = stat(path, &st) == 0 ? fopen("/proc/locks", "re") : NULL;
    if (!locks)
        return false;
    snprintf(wanted, sizeof wanted, " %02x:%02x:%llu ", major(st.st_dev), minor(st.st_dev),
             (unsigned long long)st.st_ino);
    while (!is_held && fgets(line, sizeof line, locks))
        is_held = strstr(line, "FLOCK") && strstr(line, wanted);
    fclose(locks);
    return is_held;
}

static bool is_dead(const row *r, const char *folder)
{
    enum { FRESH_S = 60 };
    return r->state && strcmp(r->state, "running") == 0 && tp_wall_s() - r->e.updated > FRESH_S &&
           !is_locked(folder);
}

/* Of a run of Temper: run.json. */
static void read_record(row *r, const char *folder)
{
    enum { MOST = 16 << 20 };
    TP_OWN(tp_arena) arena = {0};
    const tp_json *root;
    TP_FREED char *path = tp_place_join(folder, "run.json");
    if (tp_file_exists(path) && tp_json_read(&arena, path, MOST, NULL, &root, NULL) == TP_OK) {
        r->state = string_of(root, "state");
        r->algorithm = string_of(root, "algorithm");
        r->model = string_of(root, "model");
        (void)tp_json_i64(tp_json_get(root, "step"), &r->e.step);
        (void)tp_json_i64(tp_json_get(root, "max_steps"), &r->e.max_steps);
    }
}

static double last_of(tp_metrics *m, tp_run_role role, double *step)
{
    TP_OWN(tp_curve) c = tp_curve_of(m, role);
    double v = c.n ? c.value[c.n - 1] : NAN;
    *step = c.n ? fmax(*step, c.step[c.n - 1]) : *step;
    return v;
}

static void read_figures(row *r, tp_metrics *m)
{
    double step = -1, last = NAN;
    r->e.n_metrics = (int64_t)tp_metrics_count(m);
    r->e.loss = last_of(m, TP_ROLE_LOSS, &step);
    r->e.reward = last_of(m, TP_ROLE_REWARD, &step);
    r->e.tokens_per_s = last_of(m, TP_ROLE_TRAIN_RATE, &step);
    for (size_t i = 0; i < tp_metrics_count(m); i++) {
        const tp_metric_point *p;
        size_t n = tp_metrics_points(m, i, TP_POINTS_LATEST, &p);
        r->e.n_points += (int64_t)n;
        if (n) {
            r->e.started = fmin(r->e.started, p[0].wall_time);
            last = fmax(last, p[n - 1].wall_time);
        }
    }
    if (isfinite(last)) /* files may have been copied since */
        r->e.updated = last;
    if (r->e.step < 0 && step >= 0)
        r->e.step = (int64_t)step;
}

/* A run that changed before grows: it stays open. */
static void read_run(row *r, const char *path, const char *format, tp_metrics *open, bool keep)
{
    tp_metrics *m = open;
    tp_error why = {0};
    r->format = tp_strdup(format);
    if (strcmp(format, "temper") == 0)
        read_record(r, path);
    if (m && tp_metrics_refresh(m, NULL, NULL) != TP_OK) {
        tp_metrics_close(m);
        m = NULL;
    }
    if (m || tp_metrics_open(path, NULL, &m, &why) == TP_OK)
        read_figures(r, m);
    else
        r->problem = tp_strdup(why.message);
    if (keep && !r->problem)
        r->m = m;
    else if (!r->problem)
        tp_metrics_close(m);
}

/* ---- scanning ---- */

/* A run is killed, and goes on, without a byte written. */
static void check_state(tp_run_index *x, row *r, const char *folder)
{
    bool was_dead = r->is_dead;
    r->is_dead = is_dead(r, folder);
    x->has_changed |= r->is_dead != was_dead;
}

static const char *below(const tp_run_index *x, const char *path)
{
    path += strlen(x->folder);
    while (*path == '/')
        path++;
    return *path ? path : ".";
}

/* The row of the path (taken), as it was; a new one where there is none or its files have changed:
 * *ret_open is then what was open of it. */
static row *row_of(tp_run_index *x, char *path, const tp_run_extent *e, bool *ret_is_known,
                   bool *ret_is_fresh, tp_metrics **ret_open)
{
    char extent[96];
    snprintf(extent, sizeof extent, "%llu/%llu/%lld", (unsigned long long)e->bytes,
             (unsigned long long)e->files, (long long)e->newest_ns);
    row *r = find_row(x, path);
    *ret_is_known = r != NULL;
    *ret_is_fresh = !r || strcmp(r->extent, extent) != 0;
    *ret_open = NULL;
    if (!*ret_is_fresh) {
        free(path);
        return r;
    }
    if (!r)
        r = TP_VEC_PUSH(x->rows, x->n, x->cap);
    *ret_open = r->m;
    r->m = NULL;
    clear_row(r);
    *r = (row){.path = path, .extent = tp_strdup(extent)};
    make_id(r);
    r->e.kind = tp_result_kind_name(TP_RESULT_RUN);
    r->e.bytes = (int64_t)e->bytes;
    r->e.updated = (double)e->newest_ns * 1e-9;
    r->e.step = r->e.max_steps = -1;
    r->e.started = r->e.loss = r->e.reward = r->e.tokens_per_s = NAN;
    x->has_changed = true;
    return r;
}

static void end_row(row *r, const char *full)
{
    free(r->tags);
    r->tags = tp_run_tags(full);
    r->is_seen = true;
}

static bool see(void *user, const tp_run_place *place, const tp_run_reader *reader, const char *run)
{
    tp_run_index *x = user;
    TP_OWN(tp_buf) full = {0};
    tp_buf path = {0};
    bool is_known, is_fresh;
    tp_metrics *open;
    tp_buf_addf(&path, "%s%s%s", below(x, place->path), run ? "#" : "", run ? run : "");
    tp_buf_addf(&full, "%s%s%s", place->path, run ? "#" : "", run ? run : "");
    tp_run_extent e = tp_run_extent_of(place->path);
    row *r = row_of(x, path.data, &e, &is_known, &is_fresh, &open);
    if (is_fresh) {
        read_run(r, full.data, reader->name, open, is_known);
    } else {
        tp_metrics_close(r->m);
        r->m = NULL;
    }
    check_state(x, r, full.data);
    end_row(r, full.data);
    return true;
}

/* A file that may be something else; it is looked into when it is new. */
static bool see_file(void *user, const char *full)
{
    tp_run_index *x = user;
    char *path = tp_strdup(below(x, full));
    const char *format;
    bool is_known, is_fresh;
    tp_metrics *open;
    tp_run_extent e = tp_run_extent_of(full);
    row *r = find_row(x, path);
    if (r && r->is_seen) { /* a run */
        free(path);
        return true;
    }
    tp_result_kind kind = r ? TP_RESULT_RUN : tp_result_look(full, &format);
    if (!r && kind == TP_RESULT_RUN) {
        free(path);
        return true;
    }
    r = row_of(x, path, &e, &is_known, &is_fresh, &open);
    tp_metrics_close(open);
    if (is_fresh) {
        kind = tp_result_look(full, &format);
        r->e.kind = tp_result_kind_name(kind);
        r->format = tp_strdup(format);
    }
    if (r->format)
        end_row(r, full);
    return true;
}

static void forget_unseen(tp_run_index *x)
{
    size_t kept = 0;
    for (size_t i = 0; i < x->n; i++) {
        if (x->rows[i].is_seen) {
            x->rows[kept++] = x->rows[i];
        } else {
            clear_row(&x->rows[i]);
            x->has_changed = true;
        }
    }
    x->n = kept;
}

tp_status tp_run_index_scan(tp_run_index *x, bool *ret_changed, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    tp_runs_found found = {0};
    TP_NEED(x, err);
    x->has_changed = false;
    for (size_t i = 0; i < x->n; i++)
        x->rows[i].is_seen = false;
    if (x->n)
        qsort(x->rows, x->n, sizeof *x->rows, by_path);
    x->n_known = x->n;
    TP_TRY(tp_runs_find(x->folder, see, x, &found, err));
    if (x->has_all_kinds) {
        tp_runs_found files = {0};
        TP_TRY(tp_files_find(x->folder, tp_result_name_fits, see_file, x, &files, err));
        found.is_cut |= files.is_cut;
    }
    forget_unseen(x);
    if (x->n)
        qsort(x->rows, x->n, sizeof *x->rows, newest_first);
    for (size_t i = 0; i < x->n; i++)
        show(&x->rows[i]);
    tp_buf_clear(&x->note);
    if (x->has_changed && !save(x))
        tp_buf_addf(&x->note, "the index could not be written: %s", sqlite3_errmsg(x->db));
    else if (found.is_cut)
        tp_buf_addf(&x->note, "'%s' holds more than is looked at: %d runs, %d places, %d levels",
                    x->folder, TP_FIND_MOST_RUNS, TP_FIND_MOST_PLACES, TP_FIND_DEPTH);
    if (ret_changed)
        *ret_changed = x->has_changed;
    return TP_OK;
}

tp_run_index *tp_run_index_copy(const tp_run_index *x)
{
    tp_run_index *copy = tp_vec_new(1, sizeof *copy);
    copy->folder = tp_strdup(x->folder);
    tp_buf_adds(&copy->note, tp_buf_str(&x->note));
    copy->rows = x->n ? tp_vec_new(x->n, sizeof *copy->rows) : NULL;
    copy->n = copy->cap = x->n;
    for (size_t i = 0; i < x->n; i++) {
        row *to = &copy->rows[i];
        *to = x->rows[i];
        to->m = NULL;
        for (int k = 0; k < TEXTS; k++)
            *text_of(to, k) = tp_strdup(*text_of(to, k));
        show(to);
    }
    return copy;
}

/* ---- asking ---- */

const char *tp_run_index_note(const tp_run_index *x)
{
    return x && x->note.len ? x->note.data : NULL;
}

size_t tp_run_index_count(const tp_run_index *x) { return x ? x->n : 0; }

const tp_run_entry *tp_run_index_entry(const tp_run_index *x, size_t i)
{
    return x && i < x->n ? &x->rows[i].e : NULL;
}

const tp_run_entry *tp_run_index_find(const tp_run_index *x, const char *id)
{
    for (size_t i = 0; x && id && i < x->n; i++)
        if (strcmp(x->rows[i].id, id) == 0)
            return &x->rows[i].e;
    return NULL;
}

char *tp_run_index_path(const tp_run_index *x, const tp_run_entry *entry)
{
    if (!x || !entry)
        return NULL;
    return strcmp(entry->path, ".") == 0 ? tp_strdup(x->folder)
                                         : tp_place_join(x->folder, entry->path);
}

/* ---- as JSON ---- */

char *tp_run_index_json(const tp_run_index *x, const char *filter)
{
    tp_buf out = {0};
    if (!x)
        return NULL;
    tp_json_w w = tp_json_w_open(&out, 2, '{');
    tp_json_w_put_str(&w, "folder", x->folder);
    tp_json_w_put_begin(&w, "runs", '[');
    for (size_t i = 0; i < x->n; i++)
        if (tp_run_entry_fits(&x->rows[i].e, filter))
            tp_run_entry_put(&x->rows[i].e, &w);
    tp_json_w_end(&w, ']');
    tp_json_w_put_str(&w, "note", tp_run_index_note(x));
    tp_json_w_close(&w, '}');
    return out.data;
}
