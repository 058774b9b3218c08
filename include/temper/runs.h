/* runs.h - all runs below a folder, whoever wrote them, and what was measured beside them (traces,
 * profiles, results of benchmarks and evaluations): found, indexed, filtered, tagged.
 *
 *     tp_run_index *x;
 *     tp_run_index_open("runs", NULL, &x, &err);
 *     tp_run_index_scan(x, NULL, &err);                    // what is new or has changed
 *     for (size_t i = 0; i < tp_run_index_count(x); i++)
 *         puts(tp_run_index_entry(x, i)->path);
 *     tp_run_index_close(x);
 *
 * What was read is kept in a file of SQLite in the user's cache folder, so that only runs that have
 * changed are read again.  It holds nothing that is not in the runs: it may be deleted at any time.
 * Tags are a file `temper-tags` in the folder of the run (FILE.temper-tags of a file).
 *
 * Threads: an index by one at a time, several at once, of several processes too; tp_run_set_tag()
 * and tp_run_entry_fits() any. */
#ifndef TEMPER_RUNS_H
#define TEMPER_RUNS_H

#include "temper/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tp_run_index tp_run_index;

/* A run as it was when it was scanned.  Texts are NULL, numbers NaN, steps negative where nobody
 * knows. */
typedef struct {
    const char *id;     /* 12 hex digits, of the path below the folder: it stays */
    const char *path;   /* below the folder; DATABASE#RUN of several in one */
    const char *format; /* "temper", "tensorboard", ... */
    const char *state;  /* of a run of Temper: "running", "finished", "killed", ... */
    const char *algorithm, *model;
    const char *tags;    /* with spaces between them; NULL: none */
    const char *problem; /* why it could not be read; NULL: it could */
    int64_t step, max_steps;
    double started, updated;           /* seconds since 1970: its first and its last record
                                          (its newest file where records have no time) */
    double loss, reward, tokens_per_s; /* the last ones; a loss may be NaN, and then it is known: */
    int64_t n_metrics, n_points;
    const char *kind; /* "run", "trace", "profile", "benchmark", "evaluation" */
    int64_t bytes;    /* of its files */
    bool has_loss, has_reward, has_rate;
} tp_run_entry;

typedef struct {
    size_t size;        /* sizeof(tp_run_index_options) */
    const char *cache;  /* where the index is kept; NULL: in the user's cache folder */
    bool without_cache; /* in memory alone */
    bool all_kinds;     /* not runs alone */
} tp_run_index_options;

/* `options` may be NULL.  A cache that cannot be used is replaced by memory: the note says why. */
TP_API TP_CHECKED tp_status tp_run_index_open(const char *folder,
                                              const tp_run_index_options *options,
                                              tp_run_index **ret, tp_error *err);
TP_API void tp_run_index_close(tp_run_index *x); /* NULL is a no-op */
/* Find runs, read those that are new or have changed, forget those that are gone.  `ret_changed`
 * may be NULL.  Entries handed out before are no longer valid. */
TP_API TP_CHECKED tp_status tp_run_index_scan(tp_run_index *x, bool *ret_changed, tp_error *err);
/* One line that a user should know about the last scan, or NULL. */
TP_API const char *tp_run_index_note(const tp_run_index *x);

/* The newest first. */
TP_API size_t tp_run_index_count(const tp_run_index *x);
TP_API const tp_run_entry *tp_run_index_entry(const tp_run_index *x, size_t i);
/* NULL when there is none. */
TP_API const tp_run_entry *tp_run_index_find(const tp_run_index *x, const char *id);
/* Where it lies, to open it: the folder and entry->path; tp_free(). */
TP_API char *tp_run_index_path(const tp_run_index *x, const tp_run_entry *entry);

/* Does every word of `filter` fit?  A word is part of path, kind, format, state, algorithm,
 * model or a tag; WHAT:WORD one of these alone ("state:running tag:good sft", "kind:trace"). */
TP_API bool tp_run_entry_fits(const tp_run_entry *entry, const char *filter);
/* Set (or take away) a tag of a run, `path` as tp_metrics_open() takes it, or of another result;
 * letters, digits and
 * ._-+: alone, at most 64. */
TP_API TP_CHECKED tp_status tp_run_set_tag(const char *path, const char *tag, bool is_set,
                                           tp_error *err);

/* {"folder", "runs": [{"id", "path", "format", "state", ...}], "note"}; `filter` may be NULL;
 * tp_free(). */
TP_API char *tp_run_index_json(const tp_run_index *x, const char *filter);
/* A table for a screen of `width` columns; tp_free(). */
TP_API char *tp_run_index_text(const tp_run_index *x, const char *filter, int width);

#ifdef __cplusplus
}
#endif

#endif
