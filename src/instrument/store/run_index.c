/* run_index.c - temper/runs.h: what lies below a folder, kept in SQLite between scans.
 *
 * The index is a cache: one row a run, with the extent of its files when it was read.  A scan walks
 * the folder, reads the runs whose extent is another one, and forgets what is gone, in one
 * transaction; a file that is no index of this version is made anew. */
#include "instrument/store/run_index.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/order.h"
#include "base/platform.h"
#include "base/sized.h"
#include "base/vec.h"
#include "instrument/analyze/runs/curve.h"
#include "instrument/ingest/result_kind.h"
#include "instrument/ingest/runs/find.h"
#include "instrument/ingest/runs/views.h"
#include "instrument/store/run_cache.h"
#include "text/json/json.h"

struct tp_run_index {
    char *folder;
    char *real; /* the folder; nothing outside of it is read */
    sqlite3 *db;
    tp_run_rows rows;
    size_t n_known;
    tp_buf note;
    bool has_changed, has_all_kinds;
};

/* ---- rows ---- */

TP_ORDER(by_path, tp_run_row, strcmp(x->path, y->path))

/* Of those that were known before this scan, which are sorted by path. */
static tp_run_row *find_row(const tp_run_index *x, char *path)
{
    const tp_run_row key = {.path = path};
    return x->n_known ? bsearch(&key, x->rows.v, x->n_known, sizeof key, by_path) : NULL;
}

/* An entry points into its row: once all rows are where they stay. */
static void show_rows(tp_run_index *x)
{
    for (size_t i = 0; i < x->rows.n; i++)
        tp_run_row_show(&x->rows.v[i]);
}

TP_ORDER(newest_first, tp_run_row,
         TP_COMPARE(fmax(y->e.updated, 0), fmax(x->e.updated, 0)) ?: strcmp(x->path, y->path))

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
    x->real = realpath(folder, NULL);
    x->has_all_kinds = o.all_kinds;
    x->db = tp_run_cache_open(folder, &o, &x->note);
    tp_run_cache_load(x->db, &x->rows);
    show_rows(x);
    *ret = x;
    return TP_OK;
}

void tp_run_index_close(tp_run_index *x)
{
    if (!x)
        return;
    for (size_t i = 0; i < x->rows.n; i++)
        tp_run_row_clear(&x->rows.v[i]);
    free(x->rows.v);
    sqlite3_close(x->db);
    tp_buf_release(&x->note);
    free(x->folder);
    free(x->real);
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

static bool is_dead(const tp_run_row *r, const char *folder)
{
    enum { FRESH_S = 60 };
    return r->state && strcmp(r->state, "running") == 0 && tp_wall_s() - r->e.updated > FRESH_S &&
           !is_locked(folder);
}

/* Of a run of Temper: run.json. */
static void read_record(tp_run_row *r, const char *folder)
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

static bool see_last(tp_metrics *m, tp_run_role role, double *step, double *ret_value)
{
    double at;
    *ret_value = NAN;
    if (!tp_curve_last(m, role, &at, ret_value))
        return false;
    *step = fmax(*step, at);
    return true;
}

void tp_run_entry_see(tp_run_entry *e, tp_metrics *m)
{
    double step = -1, last_step = -1, last = NAN;
    e->n_metrics = (int64_t)tp_metrics_count(m);
    e->n_points = 0;
    e->has_loss = see_last(m, TP_ROLE_LOSS, &step, &e->loss);
    e->has_reward = see_last(m, TP_ROLE_REWARD, &step, &e->reward);
    e->has_rate = see_last(m, TP_ROLE_TRAIN_RATE, &step, &e->tokens_per_s);
    for (size_t i = 0; i < tp_metrics_count(m); i++) {
        tp_metric_point begin, end;
        size_t n = tp_view_ends(m, i, &begin, &end);
        e->n_points += (int64_t)n;
        if (n) {
            e->started = fmin(e->started, begin.wall_time);
            last = fmax(last, end.wall_time);
            last_step = fmax(last_step, (double)end.step);
        }
    }
    if (isfinite(last)) /* files may have been copied since */
        e->updated = last;
    if (step < 0)
        step = last_step;
    /* run.json is written less often */
    if (step >= 0)
        e->step = TP_MAX(e->step, step < 0x1p63 ? (int64_t)step : INT64_MAX);
}

/* A run that changed before grows: it stays open. */
static void read_run(tp_run_row *r, const char *path, const char *format, tp_metrics *open,
                     bool keep)
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
        tp_run_entry_see(&r->e, m);
    else
        r->problem = tp_strdup(why.message);
    if (keep && !r->problem)
        r->m = m;
    else if (!r->problem)
        tp_metrics_close(m);
}

/* ---- scanning ---- */

/* A run is killed, and goes on, without a byte written. */
static void check_state(tp_run_index *x, tp_run_row *r, const char *folder)
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
static tp_run_row *row_of(tp_run_index *x, char *path, const tp_run_extent *e, bool *ret_is_known,
                          bool *ret_is_fresh, tp_metrics **ret_open)
{
    char extent[96];
    snprintf(extent, sizeof extent, "%llu/%llu/%lld", (unsigned long long)e->bytes,
             (unsigned long long)e->files, (long long)e->newest_ns);
    tp_run_row *r = find_row(x, path);
    *ret_is_known = r != NULL;
    *ret_is_fresh = !r || strcmp(r->extent, extent) != 0;
    *ret_open = NULL;
    if (!*ret_is_fresh) {
        free(path);
        return r;
    }
    if (!r)
        r = TP_VEC_PUSH(x->rows.v, x->rows.n, x->rows.cap);
    *ret_open = r->m;
    r->m = NULL;
    tp_run_row_clear(r);
    *r = tp_run_row_of(path);
    r->extent = tp_strdup(extent);
    r->e.kind = tp_result_kind_name(TP_RESULT_RUN);
    r->e.bytes = (int64_t)e->bytes;
    r->e.updated = e->files ? (double)e->newest_ns * 1e-9 : NAN;
    x->has_changed = true;
    return r;
}

static void end_row(tp_run_row *r, const char *full)
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
    tp_run_row *r = row_of(x, path.data, &e, &is_known, &is_fresh, &open);
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
    tp_run_row *r = find_row(x, path);
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
    for (size_t i = 0; i < x->rows.n; i++) {
        if (x->rows.v[i].is_seen) {
            x->rows.v[kept++] = x->rows.v[i];
        } else {
            tp_run_row_clear(&x->rows.v[i]);
            x->has_changed = true;
        }
    }
    x->rows.n = kept;
}

static tp_status look_through(tp_run_index *x, tp_runs_found *ret, tp_error *err)
{
    TP_TRY(tp_runs_find(x->folder, see, x, ret, err));
    if (x->has_all_kinds) {
        tp_runs_found files = {0};
        TP_TRY(tp_files_find(x->folder, tp_result_name_fits, see_file, x, &files, err));
        ret->is_cut |= files.is_cut;
    }
    return TP_OK;
}

tp_status tp_run_index_scan(tp_run_index *x, bool *ret_changed, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    tp_runs_found found = {0};
    TP_NEED(x, err);
    x->has_changed = false;
    for (size_t i = 0; i < x->rows.n; i++)
        x->rows.v[i].is_seen = false;
    if (x->rows.n)
        qsort(x->rows.v, x->rows.n, sizeof *x->rows.v, by_path);
    x->n_known = x->rows.n;
    const char *before = tp_input_bound(x->real);
    tp_status status = look_through(x, &found, err);
    (void)tp_input_bound(before);
    TP_TRY(status);
    forget_unseen(x);
    if (x->rows.n)
        qsort(x->rows.v, x->rows.n, sizeof *x->rows.v, newest_first);
    show_rows(x);
    tp_buf_clear(&x->note);
    if (x->has_changed && !tp_run_cache_save(x->db, &x->rows))
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
    for (size_t i = 0; i < x->rows.n; i++)
        *TP_VEC_PUSH(copy->rows.v, copy->rows.n, copy->rows.cap) = tp_run_row_copy(&x->rows.v[i]);
    show_rows(copy);
    return copy;
}

/* ---- asking ---- */

const char *tp_run_index_note(const tp_run_index *x)
{
    return x && x->note.len ? x->note.data : NULL;
}

size_t tp_run_index_count(const tp_run_index *x) { return x ? x->rows.n : 0; }

const tp_run_entry *tp_run_index_entry(const tp_run_index *x, size_t i)
{
    return x && i < x->rows.n ? &x->rows.v[i].e : NULL;
}

const tp_run_entry *tp_run_index_find(const tp_run_index *x, const char *id)
{
    for (size_t i = 0; x && id && i < x->rows.n; i++)
        if (strcmp(x->rows.v[i].id, id) == 0)
            return &x->rows.v[i].e;
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
    for (size_t i = 0; i < x->rows.n; i++)
        if (tp_run_entry_fits(&x->rows.v[i].e, filter))
            tp_run_entry_put(&x->rows.v[i].e, &w);
    tp_json_w_end(&w, ']');
    tp_json_w_put_str(&w, "note", tp_run_index_note(x));
    tp_json_w_close(&w, '}');
    return out.data;
}
