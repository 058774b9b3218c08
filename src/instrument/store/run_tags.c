/* run_tags.c - names that people give to runs, in a file beside each. */
#include <string.h>

#include "base/files.h"
#include "instrument/ingest/result_kind.h"
#include "instrument/ingest/runs/reader.h"
#include "instrument/store/run_index.h"

enum { MAX_TAGS_BYTES = 1 << 16, MOST_TAG_BYTES = 64 };

/* Where the tags of a run are: of DATABASE#RUN, DATABASE#RUN.temper-tags without what is no name.
 */
static char *tags_path(const char *path)
{
    tp_buf out = {0};
    const char *hash = strrchr(path, '#');
    if (tp_dir_exists(path)) {
        tp_buf_addf(&out, "%s/temper-tags", path);
        return out.data;
    }
    tp_buf_adds(&out, path);
    for (char *c = out.data + (hash ? hash - path : (ptrdiff_t)out.len); *c; c++)
        *c = *c == '/' ? '_' : *c;
    tp_buf_adds(&out, ".temper-tags");
    return out.data;
}

static bool is_tag_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("._-+:", c));
}

/* Of the word of such characters that `text` begins with. */
static size_t tag_length(const char *text)
{
    size_t n = 0;
    while (is_tag_char(text[n]))
        n++;
    return n;
}

char *tp_run_tags(const char *path)
{
    TP_OWN(tp_buf) text = {0};
    tp_buf out = {0};
    TP_FREED char *file = tags_path(path);
    if (tp_file_exists(file) && tp_file_read(file, MAX_TAGS_BYTES, &text, NULL) == TP_OK) {
        for (const char *p = tp_buf_str(&text); *p;) {
            size_t n = tag_length(p);
            if (n > 0 && n <= MOST_TAG_BYTES)
                tp_buf_addf(&out, "%s%.*s", out.len ? " " : "", (int)n, p);
            p += n ? n : 1;
        }
    }
    return out.data;
}

static bool is_word_of(const char *tags, const char *tag)
{
    size_t n = strlen(tag);
    for (const char *p = tags; p && (p = strstr(p, tag)); p += n)
        if ((p == tags || p[-1] == ' ') && (p[n] == ' ' || !p[n]))
            return true;
    return false;
}

/* Tags that are there and cannot be read would be lost. */
static tp_status check_tags(const char *file, tp_error *err)
{
    TP_OWN(tp_buf) text = {0};
    tp_status status =
        tp_file_exists(file) ? tp_file_read(file, MAX_TAGS_BYTES, &text, err) : TP_OK;
    return status;
}

static tp_status change(const char *path, const char *tag, bool is_set, tp_error *err)
{
    char *file = tags_path(path), *tags = tp_run_tags(path);
    TP_OWN(tp_buf) out = {0};
    for (const char *p = tags; p && *p;) {
        size_t n = strcspn(p, " ");
        if (n != strlen(tag) || strncmp(p, tag, n) != 0)
            tp_buf_addf(&out, "%.*s\n", (int)n, p);
        p += n + (p[n] == ' ');
    }
    if (is_set)
        tp_buf_addf(&out, "%s\n", tag);
    tp_status status = check_tags(file, err);
    if (status == TP_OK && is_word_of(tags, tag) != is_set)
        status = tp_file_write_atomic(file, tp_buf_str(&out), out.len, err);
    free(tags);
    free(file);
    return status;
}

static bool reads(const tp_run_reader *reader, const tp_run_place *folder, const char *path)
{
    TP_CLEANUP(tp_place_release) tp_run_place file = {0};
    TP_FREED char *its_own = reader->file_of ? reader->file_of(folder) : NULL;
    return reader->file_of
               ? its_own && tp_files_are_same(its_own, path)
               : tp_place_look(&file, path, NULL) == TP_OK && tp_run_reader_here(&file) == reader;
}

/* What a list shows a file's run as: its folder, where that is the run; free() it. */
static char *listed_as(const char *path)
{
    TP_CLEANUP(tp_place_release) tp_run_place folder = {0};
    const char *slash = strrchr(path, '/');
    TP_FREED char *parent = slash ? tp_strndup(path, (size_t)(slash - path) + 1) : tp_strdup(".");
    if (!tp_file_exists(path) || tp_place_look(&folder, parent, NULL) != TP_OK)
        return tp_strdup(path);
    const tp_run_reader *reader = tp_run_reader_here(&folder);
    bool is_folder = reader && !reader->each && reads(reader, &folder, path);
    return tp_strdup(is_folder ? parent : path);
}

tp_status tp_run_set_tag(const char *path, const char *tag, bool is_set, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    tp_metrics *m;
    TP_NEED(path && tag, err);
    size_t n_tag = tag_length(tag);
    if (n_tag == 0 || n_tag > MOST_TAG_BYTES || tag[n_tag])
        return tp_fail(err, TP_ERR_ARG,
                       "'%.70s' is no tag: 1 to %d letters, digits and '._-+:' are one", tag,
                       MOST_TAG_BYTES);
    if (tp_result_kind_of(path) != TP_RESULT_RUN)
        return change(path, tag, is_set, err);
    TP_TRY(tp_metrics_open(path, NULL, &m, err)); /* is it one? the only one below a folder is */
    TP_FREED char *run = listed_as(path);
    tp_status status = change(tp_dir_exists(path) ? tp_metrics_path(m) : run, tag, is_set, err);
    tp_metrics_close(m);
    return status;
}
