/* place.c - folders listed and first bytes read, to tell which format lies there. */
#include "instrument/ingest/runs/place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/order.h"
#include "base/platform.h"
#include "base/vec.h"

TP_ORDER(by_name, tp_place_entry, strcmp(x->name, y->name))

char *tp_place_join(const char *folder, const char *name)
{
    tp_buf path = {0};
    size_t n = strlen(folder);
    tp_buf_addf(&path, "%s%s%s", folder, n && folder[n - 1] == '/' ? "" : "/", name);
    return path.data;
}

/* A link out of the folder that may be read leads nowhere. */
static bool is_reached(const char *folder, const struct dirent *e)
{
    if (e->d_type != DT_LNK && e->d_type != DT_UNKNOWN)
        return true;
    TP_FREED char *path = tp_place_join(folder, e->d_name);
    return tp_input_is_inside(path);
}

/* A link counts as what it leads to. */
static bool entry_is_dir(const char *folder, int dir, const struct dirent *e, bool *ret_is_file)
{
    struct stat st;
    if (fstatat(dir, e->d_name, &st, 0) != 0 || !is_reached(folder, e)) {
        *ret_is_file = false;
        return false;
    }
    *ret_is_file = S_ISREG(st.st_mode);
    return S_ISDIR(st.st_mode);
}

static tp_status list_folder(tp_run_place *p, tp_error *err)
{
    size_t cap = 0;
    DIR *dir = opendir(p->path);
    if (!dir)
        return tp_fail(err, TP_ERR_IO, "cannot open the folder '%s': %s", p->path, strerror(errno));
    for (struct dirent *e; (e = readdir(dir));) {
        bool is_file;
        if (e->d_name[0] == '.')
            continue;
        bool is_dir = entry_is_dir(p->path, dirfd(dir), e, &is_file);
        if (!is_dir && !is_file)
            continue;
        if (p->n_entries == TP_PLACE_MAX_NAMES) {
            closedir(dir);
            return tp_fail(err, TP_ERR_UNSUPPORTED,
                           "the folder '%s' has more than %d entries; name the run in it", p->path,
                           TP_PLACE_MAX_NAMES);
        }
        tp_place_entry *entry = TP_VEC_PUSH(p->entries, p->n_entries, cap);
        entry->name = tp_strdup(e->d_name);
        entry->is_dir = is_dir;
    }
    closedir(dir);
    if (p->n_entries)
        qsort(p->entries, p->n_entries, sizeof *p->entries, by_name);
    return TP_OK;
}

static tp_status read_head(tp_run_place *p, tp_error *err)
{
    int fd;
    int64_t size;
    TP_TRY(tp_input_open(p->path, TP_INPUT_FILE, &fd, &size, err));
    for (ssize_t n = 1; n > 0 && p->n_head < sizeof p->head; p->n_head += (size_t)n) {
        n = read(fd, p->head + p->n_head, sizeof p->head - p->n_head);
        if (n < 0) {
            close(fd);
            return tp_fail(err, TP_ERR_IO, "cannot read '%s': %s", p->path, strerror(errno));
        }
    }
    close(fd);
    size_t mark = tp_utf8_mark(p->head, p->n_head);
    p->n_head -= mark;
    memmove(p->head, p->head + mark, p->n_head);
    return TP_OK;
}

tp_status tp_place_look(tp_run_place *p, const char *path, tp_error *err)
{
    *p = (tp_run_place){.path = tp_strdup(path), .is_dir = tp_dir_exists(path)};
    for (size_t n = strlen(path); n > 1 && p->path[n - 1] == '/'; n--)
        p->path[n - 1] = 0;
    const char *slash = strrchr(p->path, '/');
    p->base = slash && slash[1] ? slash + 1 : p->path;
    tp_status status = p->is_dir ? list_folder(p, err) : read_head(p, err);
    if (status != TP_OK)
        tp_place_release(p);
    return status;
}

void tp_place_release(tp_run_place *p)
{
    for (size_t i = 0; i < p->n_entries; i++)
        free(p->entries[i].name);
    free(p->entries);
    free(p->path);
    *p = (tp_run_place){0};
}

static const tp_place_entry *find(const tp_run_place *p, const char *name)
{
    const tp_place_entry key = {.name = (char *)(uintptr_t)name};
    return p->n_entries ? bsearch(&key, p->entries, p->n_entries, sizeof key, by_name) : NULL;
}

bool tp_place_is_trace(const tp_run_place *p)
{
    static const char *const keys[] = {"\"traceEvents\"", "\"deviceProperties\""};
    for (size_t i = 0; i < TP_COUNTOF(keys) && !p->is_dir; i++)
        if (memmem(p->head, p->n_head, keys[i], strlen(keys[i])))
            return true;
    return false;
}

bool tp_place_has_file(const tp_run_place *p, const char *name)
{
    const tp_place_entry *e = find(p, name);
    return e && !e->is_dir;
}

bool tp_place_has_dir(const tp_run_place *p, const char *name)
{
    const tp_place_entry *e = find(p, name);
    return e && e->is_dir;
}

char *tp_place_only(const tp_run_place *p, const char *ending)
{
    const char *only = NULL;
    for (size_t i = 0; i < p->n_entries; i++) {
        if (p->entries[i].is_dir || !tp_str_ends(p->entries[i].name, ending))
            continue;
        if (only)
            return NULL;
        only = p->entries[i].name;
    }
    return only ? tp_place_join(p->path, only) : NULL;
}
