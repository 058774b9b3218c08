/* find.c - a walk over folders that asks every reader whether it knows what lies there. */
#include "instrument/ingest/runs/find.h"

#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

#include "base/files.h"
#include "base/platform.h"

typedef struct {
    tp_run_seen see;
    void *user;
    tp_runs_found found;
    bool stops;
} walk;

/* Where no result lies, and much else does. */
static bool is_closed(const char *name)
{
    static const char *const names[] = {"checkpoints", "samples",   "tensorboard",
                                        "dump",        "tokenizer", "node_modules"};
    for (size_t i = 0; i < TP_COUNTOF(names); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return tp_str_starts(name, TP_TRAINER_CHECKPOINT);
}

/* Parts of a run folder of Temper, and what no run lies in. */
static bool is_part(const char *name)
{
    return is_closed(name) || strcmp(name, "trace") == 0 || strcmp(name, "report") == 0 ||
           strcmp(name, "profiles") == 0;
}

/* A data set is CSV or JSONL too: names of logs are opened, and of other tables those that have
 * steps are logs. */
static bool is_log_name(const char *name)
{
    static const char *const names[] = {"metrics.csv", "metrics.jsonl", "progress.csv", "log.csv",
                                        TP_TRAINER_STATE};
    for (size_t i = 0; i < TP_COUNTOF(names); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return tp_str_ends(name, ".db");
}

static bool is_link(const char *path)
{
    struct stat st;
    return lstat(path, &st) != 0 || S_ISLNK(st.st_mode);
}

typedef struct {
    walk *w;
    const tp_run_place *place;
    const tp_run_reader *reader;
} one_place;

static bool see_one(void *user, const char *run)
{
    one_place *p = user;
    walk *w = p->w;
    if (w->found.n_runs == TP_FIND_MOST_RUNS) {
        w->found.is_cut = w->stops = true;
        return false;
    }
    w->found.n_runs++;
    w->stops = !w->see(w->user, p->place, p->reader, run);
    return !w->stops;
}

static void see_place(walk *w, const tp_run_place *place, const tp_run_reader *reader)
{
    one_place p = {w, place, reader};
    if (!reader->each || reader->each(place, see_one, &p, NULL) != TP_OK)
        (void)see_one(&p, NULL);
}

/* Several tables in a folder are a run each, where they have steps: one alone is that of the
 * folder, and metrics.jsonl goes before all. */
static bool has_own_tables(const tp_run_place *place, const tp_run_reader *reader)
{
    return !reader ||
           (reader == &tp_run_reader_jsonl && !tp_place_has_file(place, "metrics.jsonl"));
}

static void look(walk *w, const char *path, int depth, bool is_table);

static void look_into(walk *w, const tp_run_place *place, const tp_run_reader *reader, int depth)
{
    for (size_t i = 0; i < place->n_entries && !w->stops; i++) {
        const tp_place_entry *e = &place->entries[i];
        bool is_log = !reader && is_log_name(e->name);
        bool is_table = !is_log && tp_str_ends(e->name, ".csv") && has_own_tables(place, reader);
        bool is_wanted = e->is_dir ? !(reader && is_part(e->name)) : is_log || is_table;
        if (e->name[0] == '.' || !is_wanted)
            continue;
        TP_FREED char *path = tp_place_join(place->path, e->name);
        if (!is_link(path))
            look(w, path, depth - 1, !e->is_dir && is_table);
    }
}

static void look(walk *w, const char *path, int depth, bool is_table)
{
    TP_CLEANUP(tp_place_release) tp_run_place place = {0};
    if (++w->found.n_places > TP_FIND_MOST_PLACES) {
        w->found.is_cut = w->stops = true;
        return;
    }
    if (tp_place_look(&place, path, NULL) != TP_OK || (is_table && !tp_csv_has_steps(&place)))
        return;
    const tp_run_reader *reader = tp_run_reader_here(&place);
    if (reader && reader->each && place.is_dir)
        reader = NULL; /* of the data base in it: its runs have its name */
    if (reader)
        see_place(w, &place, reader);
    if (place.is_dir && depth > 0 && !w->stops)
        look_into(w, &place, reader, depth);
    else if (place.is_dir && depth == 0)
        w->found.is_cut |= place.n_entries > 0 && !reader;
}

tp_status tp_runs_find(const char *folder, tp_run_seen see, void *user, tp_runs_found *ret,
                       tp_error *err)
{
    walk w = {.see = see, .user = user};
    TP_CLEANUP(tp_place_release) tp_run_place place = {0};
    TP_TRY(tp_place_look(&place, folder, err)); /* says what is wrong with it */
    look(&w, folder, TP_FIND_DEPTH, false);
    *ret = w.found;
    return TP_OK;
}

/* ---- files ---- */

typedef struct {
    bool (*name_fits)(const char *name);
    tp_file_seen see;
    void *user;
    tp_runs_found found;
    bool stops;
} file_walk;

static void look_for_files(file_walk *w, const char *path, int depth)
{
    tp_run_place place;
    if (++w->found.n_places > TP_FIND_MOST_PLACES) {
        w->found.is_cut = w->stops = true;
        return;
    }
    if (tp_place_look(&place, path, NULL) != TP_OK)
        return;
    for (size_t i = 0; i < place.n_entries && !w->stops; i++) {
        const tp_place_entry *e = &place.entries[i];
        bool is_wanted = e->is_dir ? depth > 0 && !is_closed(e->name) : w->name_fits(e->name);
        if (e->name[0] == '.' || !is_wanted)
            continue;
        TP_FREED char *inner = tp_place_join(path, e->name);
        if (!is_link(inner) && e->is_dir)
            look_for_files(w, inner, depth - 1);
        else if (!is_link(inner))
            w->stops = !w->see(w->user, inner);
    }
    tp_place_release(&place);
}

tp_status tp_files_find(const char *folder, bool (*name_fits)(const char *name), tp_file_seen see,
                        void *user, tp_runs_found *ret, tp_error *err)
{
    file_walk w = {.name_fits = name_fits, .see = see, .user = user};
    TP_CLEANUP(tp_place_release) tp_run_place place = {0};
    TP_TRY(tp_place_look(&place, folder, err));
    look_for_files(&w, folder, TP_FIND_DEPTH);
    *ret = w.found;
    return TP_OK;
}

/* ---- has it changed? ---- */

static void measure(tp_run_extent *x, const char *path, int depth);

/* What lies in a folder that is no run's own place: of a checkpoint the record that is read. */
static void measure_part(tp_run_extent *x, const char *path, const char *name)
{
    if (!tp_str_starts(name, TP_TRAINER_CHECKPOINT))
        return;
    TP_FREED char *state = tp_place_join(path, TP_TRAINER_STATE);
    measure(x, state, 0);
}

static void measure(tp_run_extent *x, const char *path, int depth)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return;
    if (!S_ISDIR(st.st_mode)) {
        int64_t ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
        x->bytes += (uint64_t)st.st_size;
        x->files++;
        x->newest_ns = TP_MAX(x->newest_ns, ns);
        return;
    }
    DIR *dir = depth > 0 ? opendir(path) : NULL;
    for (struct dirent *e; dir && (e = readdir(dir));) {
        if (e->d_name[0] == '.')
            continue;
        TP_FREED char *inner = tp_place_join(path, e->d_name);
        if (is_part(e->d_name) && strcmp(e->d_name, "tensorboard") != 0 && tp_dir_exists(inner))
            measure_part(x, inner, e->d_name);
        else if (e->d_type != DT_LNK || tp_input_is_inside(inner))
            measure(x, inner, depth - 1);
    }
    if (dir)
        closedir(dir);
}

tp_run_extent tp_run_extent_of(const char *path)
{
    tp_run_extent x = {0};
    measure(&x, path, 2);
    if (tp_str_ends(path, ".db")) { /* what SQLite has not moved into the file yet */
        TP_FREED char *log = NULL;
        if (asprintf(&log, "%s-wal", path) > 0)
            measure(&x, log, 0);
    }
    return x;
}
