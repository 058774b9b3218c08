/* trace_paths.c - which files of a folder are traces, in order of their names. */
#include "instrument/ingest/trace_paths.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/log.h"
#include "base/strings.h"
#include "instrument/ingest/text_source.h"

enum { FILES_MAX = 4096 };

static void add(tp_trace_paths *p, const char *path)
{
    p->v = tp_grow(p->v, p->n + 2, sizeof *p->v);
    p->v[p->n++] = tp_strdup(path);
    p->v[p->n] = NULL;
}

static bool looks_like_a_trace(const char *name)
{
    static const char *const endings[] = {".json", ".json.gz", ".sqlite", ".pickle"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (name[0] != '.' && tp_str_ends(name, endings[i]))
            return true;
    return false;
}

/* A list without events, or a small object, as an index or a configuration that lies beside
 * traces: the first megabyte tells.  A list of lists is a memory timeline. */
static bool is_something_else(const char *path)
{
    enum { MOST = 1 << 20 };
    static const char space[] = " \t\r\n";
    const tp_ingest_options options = {.one_thread = true};
    TP_CLEANUP(tp_source_close) tp_source s = {0};
    bool is_json = tp_str_ends(path, ".json") || tp_str_ends(path, ".json.gz");
    if (!is_json || tp_source_open(&s, path, NULL, 0, &options, NULL) != TP_OK)
        return false;
    while (!s.is_final && s.end - s.begin < MOST)
        if (tp_source_next(&s, s.begin, NULL) != TP_OK)
            return false;
    if (tp_source_is_truncated(&s) || tp_source_damage(&s))
        return false;
    const char *at = s.begin + tp_utf8_mark(s.begin, (size_t)(s.end - s.begin));
    at += strspn(at, space);
    if (*at == '{')
        return s.is_final && !strstr(at, "\"traceEvents\"");
    return *at == '[' && at[1 + strspn(at + 1, space)] != '[' && !strstr(at, "\"ph\"");
}

/* Without those from `first` on that are something else, as long as one is left. */
static void leave_out_others(tp_trace_paths *p, size_t first)
{
    size_t n = first;
    TP_FREED bool *others = calloc(p->n - first + 1, sizeof *others);
    for (size_t i = first; i < p->n && others; i++)
        others[i - first] = is_something_else(p->v[i]);
    if (!others || (p->n > first && !memchr(others, false, p->n - first)))
        return;
    for (size_t i = first; i < p->n; i++) {
        if (!others[i - first]) {
            p->v[n++] = p->v[i];
            continue;
        }
        tp_log(TP_LOG_WARNING, "trace", "'%s' is no trace: left out", p->v[i]);
        free((char *)(uintptr_t)p->v[i]);
    }
    p->n = n;
    if (p->v)
        p->v[n] = NULL;
}

/* How many were there. */
static tp_status add_folder(tp_trace_paths *p, const char *folder, size_t *ret_n, tp_error *err)
{
    size_t first = p->n;
    DIR *d = opendir(folder);
    TP_OWN(tp_buf) path = {0};
    if (!d)
        return tp_fail(err, TP_ERR_IO, "cannot read '%s': %s", folder, strerror(errno));
    for (struct dirent *e; (e = readdir(d)) && p->n - first < FILES_MAX;) {
        if (!looks_like_a_trace(e->d_name))
            continue;
        tp_buf_clear(&path);
        tp_buf_addf(&path, "%s/%s", folder, e->d_name);
        if (!tp_dir_exists(tp_buf_str(&path)))
            add(p, tp_buf_str(&path));
    }
    closedir(d);
    if (p->n > first)
        qsort(p->v + first, p->n - first, sizeof *p->v, tp_str_order);
    leave_out_others(p, first);
    *ret_n = p->n - first;
    return TP_OK;
}

static tp_status add_traces_of(tp_trace_paths *p, const char *folder, tp_error *err)
{
    TP_OWN(tp_buf) inner = {0};
    size_t n = 0;
    tp_buf_addf(&inner, "%s/run.json", folder);
    bool is_run = tp_file_exists(tp_buf_str(&inner));
    tp_buf_clear(&inner);
    tp_buf_addf(&inner, "%s/trace", folder);
    bool has_traces = tp_dir_exists(tp_buf_str(&inner));
    if (is_run && !has_traces)
        return tp_fail(err, TP_ERR_ARG,
                       "the run '%s' recorded no trace; train with profile.steps=START:STOP",
                       folder);
    TP_TRY(add_folder(p, is_run ? tp_buf_str(&inner) : folder, &n, err));
    if (n == 0)
        return tp_fail(err, TP_ERR_ARG,
                       "there is no trace in the folder '%s': no file that ends in .json, "
                       ".json.gz, .sqlite or .pickle",
                       folder);
    return TP_OK;
}

tp_status tp_trace_paths_make(const char *const *words, size_t n, tp_trace_paths *ret,
                              tp_error *err)
{
    tp_trace_paths paths = {0};
    tp_status status = TP_OK;
    for (size_t i = 0; i < n && status == TP_OK; i++) {
        if (tp_dir_exists(words[i]))
            status = add_traces_of(&paths, words[i], err);
        else
            add(&paths, words[i]);
    }
    if (status != TP_OK) {
        tp_trace_paths_release(&paths);
        return status;
    }
    *ret = paths;
    return TP_OK;
}

tp_status tp_trace_paths_one(const char *word, tp_trace_paths *ret, tp_error *err)
{
    tp_trace_paths paths = {0};
    TP_TRY(tp_trace_paths_make(&word, 1, &paths, err));
    if (paths.n != 1) {
        tp_status status =
            tp_fail(err, TP_ERR_ARG, "the folder '%s' holds %zu traces; name one, as '%s'", word,
                    paths.n, paths.v[0]);
        tp_trace_paths_release(&paths);
        return status;
    }
    *ret = paths;
    return TP_OK;
}

void tp_trace_paths_release(tp_trace_paths *paths)
{
    for (size_t i = 0; i < paths->n; i++)
        free((char *)(uintptr_t)paths->v[i]);
    free(paths->v);
    *paths = (tp_trace_paths){0};
}
