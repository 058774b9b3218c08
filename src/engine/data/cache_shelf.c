/* cache_shelf.c - caches by the time of their last use, and which of them go. */
#include "engine/data/cache_shelf.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/order.h"
#include "base/strings.h"

void tp_cache_touch(const char *path)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_OMIT}};
    (void)!utimensat(AT_FDCWD, path, times, 0);
}

/* Files that Temper wrote there, and no others. */
static bool is_cache(const char *name, bool *is_unfinished)
{
    enum { DIGITS = 32 };
    if (strspn(name, "0123456789abcdef") != DIGITS)
        return false;
    *is_unfinished = strcmp(name + DIGITS, ".tokens.tmp") == 0;
    return *is_unfinished || strcmp(name + DIGITS, ".tokens") == 0 ||
           strcmp(name + DIGITS, ".reference") == 0;
}

/* A writer holds a lock on what it has not finished. */
static bool has_writer(int folder, const char *name)
{
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    bool is_locked = fd < 0 || flock(fd, LOCK_EX | LOCK_NB) != 0;
    if (fd >= 0)
        close(fd);
    return is_locked;
}

static void add_file(int folder, const char *name, tp_cache_shelf *shelf)
{
    struct stat st;
    bool is_unfinished;
    if (!is_cache(name, &is_unfinished) || fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(st.st_mode) || (is_unfinished && has_writer(folder, name)))
        return;
    shelf->v = tp_grow(shelf->v, shelf->n + 1, sizeof *shelf->v);
    tp_cache_file *f = &shelf->v[shelf->n++];
    *f = (tp_cache_file){.bytes = (uint64_t)st.st_size,
                         .used = (double)st.st_atim.tv_sec + 1e-9 * (double)st.st_atim.tv_nsec,
                         .is_rest = is_unfinished};
    snprintf(f->name, sizeof f->name, "%s", name);
    shelf->bytes += f->bytes;
}

TP_ORDER(newest_first, tp_cache_file, TP_COMPARE(y->used, x->used) ?: strcmp(x->name, y->name))

tp_status tp_cache_shelf_read(const char *folder, tp_cache_shelf *ret, tp_error *err)
{
    tp_cache_shelf shelf = {0};
    DIR *dir = opendir(folder);
    if (!dir && errno == ENOENT) {
        *ret = shelf;
        return TP_OK;
    }
    if (!dir)
        return tp_fail(err, TP_ERR_IO, "cannot read the folder %s: %s", folder, strerror(errno));
    for (const struct dirent *e; (e = readdir(dir));)
        add_file(dirfd(dir), e->d_name, &shelf);
    closedir(dir);
    if (shelf.n)
        qsort(shelf.v, shelf.n, sizeof *shelf.v, newest_first);
    *ret = shelf;
    return TP_OK;
}

void tp_cache_shelf_release(tp_cache_shelf *shelf)
{
    free(shelf->v);
    *shelf = (tp_cache_shelf){0};
}

static bool is_kept(const char *name, const char *const *keep, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(name, keep[i]) == 0)
            return true;
    return false;
}

static tp_status delete (const char *folder, const tp_cache_file *f, tp_cache_freed *freed,
                         tp_error *err)
{
    TP_OWN(tp_buf) path = {0};
    tp_buf_addf(&path, "%s/%s", folder, f->name);
    bool is_gone = unlink(path.data) == 0 || errno == ENOENT;
    tp_status status =
        is_gone ? TP_OK
                : tp_fail(err, TP_ERR_OUTPUT, "cannot delete %s: %s", path.data, strerror(errno));
    freed->n += is_gone;
    freed->bytes += is_gone ? f->bytes : 0;
    return status;
}

tp_status tp_cache_shelf_trim(const char *folder, double limit, const char *const *keep,
                              size_t n_keep, tp_cache_freed *ret, tp_error *err)
{
    TP_OWN(tp_cache_shelf) shelf = {0};
    double kept = 0;
    *ret = (tp_cache_freed){0};
    TP_TRY(tp_cache_shelf_read(folder, &shelf, err));
    for (size_t i = 0; i < shelf.n; i++)
        if (is_kept(shelf.v[i].name, keep, n_keep))
            kept += (double)shelf.v[i].bytes;
    for (size_t i = 0; i < shelf.n; i++) {
        const tp_cache_file *f = &shelf.v[i];
        if (is_kept(f->name, keep, n_keep))
            continue;
        if (!f->is_rest)
            kept += (double)f->bytes; /* whatever is older than the first too many goes, too */
        if (f->is_rest || kept > limit)
            TP_TRY(delete (folder, f, ret, err));
    }
    return TP_OK;
}
