/* files.c - files, pipes and standard input read whole, within a size; folders. */
#include "base/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/files_internal.h"
#include "base/platform.h"
#include "base/working.h"

enum { CHUNK = 1 << 20, MAX_FOLDER_DEPTH = 64 };

static tp_status files_fail(tp_error *err, const char *verb, const char *path, int error)
{
    return tp_fail(err, error == ENOMEM ? TP_ERR_NOMEM : TP_ERR_IO, "cannot %s %s: %s%s", verb,
                   path, strerror(error), tp_files_remedy(error));
}

/* A pipe without a name: one end belongs to whoever started us, as in `temper plan <(recipe)`. */
static bool is_anonymous_pipe(int fd)
{
    enum { PIPE_FILE_SYSTEM = 0x50495045 }; /* PIPEFS_MAGIC of linux/magic.h */
    struct statfs fs;
    return fstatfs(fd, &fs) == 0 && fs.f_type == PIPE_FILE_SYSTEM;
}

static _Thread_local const char *bound;

const char *tp_input_bound(const char *real_folder)
{
    const char *before = bound;
    bound = real_folder;
    return before;
}

bool tp_input_is_inside(const char *path)
{
    char real[PATH_MAX];
    size_t n = bound ? strlen(bound) : 0;
    if (n <= 1) /* nothing is outside of "/" */
        return true;
    if (!realpath(path, real))
        return errno == ENOENT;
    return strncmp(real, bound, n) == 0 && (real[n] == '/' || !real[n]);
}

/* What a thing that is no file is called, or NULL when it may be read. */
static const char *not_for(tp_input_kind kind, int fd, mode_t mode)
{
    if (S_ISREG(mode))
        return NULL;
    if (S_ISCHR(mode) || S_ISBLK(mode))
        return "a device";
    if (!S_ISFIFO(mode))
        return "a socket";
    if (kind == TP_INPUT_FILE)
        return "a pipe";
    /* Without its writer a named pipe would be waited for, maybe for ever. */
    return kind == TP_INPUT_STREAM || is_anonymous_pipe(fd) ? NULL : "a named pipe";
}

static tp_status check_kind(const char *path, tp_input_kind kind, int fd, const struct stat *st,
                            tp_error *err)
{
    if (S_ISDIR(st->st_mode))
        return files_fail(err, "read", path, EISDIR);
    const char *what = not_for(kind, fd, st->st_mode);
    return what ? tp_fail(err, TP_ERR_IO, "cannot read %s: it is %s, a file is expected here", path,
                          what)
                : TP_OK;
}

/* Reading waits from here on, and before that for somebody who writes: until then a pipe that was
 * opened without waiting looks empty. */
static tp_status let_wait(const char *path, int fd, bool is_pipe, tp_error *err)
{
    struct pollfd writer = {.fd = fd, .events = POLLIN};
    if (fcntl(fd, F_SETFL, 0) != 0 || (is_pipe && poll(&writer, 1, -1) < 0))
        return files_fail(err, "read", path, errno);
    return TP_OK;
}

/* Standard input is whatever we were started with, a terminal included. */
static tp_status open_standard_input(int *ret_fd, int64_t *ret_size, tp_error *err)
{
    static atomic_bool is_taken;
    struct stat st;
    if (atomic_exchange(&is_taken, true))
        return tp_fail(err, TP_ERR_ARG, "standard input (-) can be read once only");
    int fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
    if (fd < 0 || fstat(fd, &st) != 0 || S_ISDIR(st.st_mode)) {
        int error = fd < 0 ? errno : EISDIR;
        if (fd >= 0)
            close(fd);
        return files_fail(err, "read", "standard input", error);
    }
    *ret_fd = fd;
    *ret_size = S_ISREG(st.st_mode) ? (int64_t)st.st_size : -1;
    return TP_OK;
}

const char *tp_input_name(const char *path, tp_input_kind kind)
{
    return kind != TP_INPUT_FILE && strcmp(path, "-") == 0 ? "standard input" : path;
}

tp_status tp_input_open(const char *path, tp_input_kind kind, int *ret_fd, int64_t *ret_size,
                        tp_error *err)
{
    struct stat st;
    if (kind != TP_INPUT_FILE && strcmp(path, "-") == 0)
        return open_standard_input(ret_fd, ret_size, err);
    if (!tp_input_is_inside(path))
        return tp_fail(err, TP_ERR_IO, "cannot read %s: it leads out of %s", path, bound);
    /* Not to wait for the writer of a named pipe before it is known whether one is wanted. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && errno == ENXIO)
        return tp_fail(err, TP_ERR_IO,
                       "cannot read %s: it is a socket or a device, a file is expected here", path);
    if (fd < 0)
        return files_fail(err, "open", path, errno);
    if (fstat(fd, &st) != 0) {
        int error = errno;
        close(fd);
        return files_fail(err, "read", path, error);
    }
    tp_status status = check_kind(path, kind, fd, &st, err);
    if (status == TP_OK)
        status = let_wait(path, fd, S_ISFIFO(st.st_mode), err);
    if (status != TP_OK) {
        close(fd);
        return status;
    }
    tp_files_note(&st, TP_FILE_READ);
    *ret_fd = fd;
    *ret_size = S_ISFIFO(st.st_mode) ? -1 : (int64_t)st.st_size;
    return TP_OK;
}

/* Up to n bytes; fewer only at the end of the file.  -1 with errno on failure. */
static ssize_t read_full(int fd, char *out, size_t n)
{
    size_t done = 0;
    while (done < n) {
        ssize_t got = read(fd, out + done, n - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        done += (size_t)got;
    }
    return (ssize_t)done;
}

static tp_status too_large(const char *path, size_t max_bytes, tp_error *err)
{
    return tp_fail(err, TP_ERR_FORMAT, "%s is larger than the %s allowed for this kind of file",
                   path, tp_human_bytes((double)max_bytes, TP_ROOM));
}

static tp_status read_all(int fd, const char *path, size_t expected, size_t max_bytes, tp_buf *buf,
                          tp_error *err)
{
    tp_buf_clear(buf);
    /* One byte more than expected, so that the end shows without growing. */
    size_t step = TP_MAX(expected + 1, (size_t)4096);
    for (;;) {
        tp_buf_reserve(buf, step);
        ssize_t got = read_full(fd, buf->data + buf->len, step);
        if (got < 0)
            return files_fail(err, "read", path, errno);
        buf->len += (size_t)got;
        buf->data[buf->len] = 0;
        if (max_bytes && buf->len > max_bytes)
            return too_large(path, max_bytes, err);
        if ((size_t)got < step)
            return TP_OK;
        step = CHUNK;
    }
}

tp_status tp_input_read(const char *path, tp_input_kind kind, size_t max_bytes, tp_buf *ret,
                        tp_error *err)
{
    int fd;
    int64_t known;
    TP_TRY(tp_input_open(path, kind, &fd, &known, err));
    const char *name = tp_input_name(path, kind);
    size_t size = known > 0 ? (size_t)known : 0;
    tp_status status = max_bytes && size > max_bytes
                           ? too_large(name, max_bytes, err)
                           : read_all(fd, name, size, max_bytes, ret, err);
    close(fd);
    return status;
}

tp_status tp_file_read(const char *path, size_t max_bytes, tp_buf *ret, tp_error *err)
{
    return tp_input_read(path, TP_INPUT_TEXT, max_bytes, ret, err);
}

tp_file_path tp_path_of(const char *fmt, ...)
{
    tp_file_path path;
    va_list ap;
    va_start(ap, fmt);
    if ((size_t)vsnprintf(path.text, sizeof path.text, fmt, ap) >= sizeof path.text)
        path.text[0] = 0;
    va_end(ap);
    return path;
}

bool tp_file_exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && !S_ISDIR(st.st_mode) && tp_input_is_inside(path);
}

bool tp_dir_exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode) && tp_input_is_inside(path);
}

int tp_dir_count(const char *path, const char *ending, tp_buf *ret_first)
{
    TP_FREED struct dirent **entries = NULL;
    int n = scandir(path, &entries, NULL, alphasort), count = 0;
    for (int i = 0; i < n; i++) {
        const char *name = entries[i]->d_name;
        if (tp_str_ends(name, ending) && count++ == 0)
            tp_buf_addf(ret_first, "%s%s%s", path, tp_str_ends(path, "/") ? "" : "/", name);
        free(entries[i]);
    }
    return count;
}

bool tp_files_are_same(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

int64_t tp_file_size(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) ? (int64_t)st.st_size : -1;
}

static tp_status refuse_file(const char *path, tp_error *err)
{
    return tp_fail(err, TP_ERR_IO,
                   "cannot create folder %s: a file of that name is in the way; remove it or "
                   "choose another name",
                   path);
}

static tp_status make_one(const char *path, tp_error *err)
{
    if (tp_dir_exists(path))
        return TP_OK;
    if (tp_files_fault(ENOSPC) || mkdir(path, 0777) != 0) {
        int error = errno;
        if (error != EEXIST)
            return tp_files_fail_output(err, "create folder", path, error);
        if (!tp_dir_exists(path))
            return refuse_file(path, err);
    }
    return TP_OK;
}

tp_status tp_dir_check_name(const char *path, tp_error *err)
{
    if (!*path)
        return tp_fail(err, TP_ERR_ARG, "cannot create a folder without a name");
    return strcmp(path, "-") ? TP_OK
                             : tp_fail(err, TP_ERR_ARG,
                                       "'-' is a stream, and a folder is written here; name one");
}

tp_status tp_dir_make(const char *path, tp_error *err)
{
    size_t n = strlen(path);
    TP_TRY(tp_dir_check_name(path, err));
    TP_OWN(tp_buf) partial = {0};
    tp_buf_adds(&partial, path);
    for (size_t i = 1; i < n; i++) {
        if (path[i] != '/' || path[i - 1] == '/')
            continue;
        partial.data[i] = 0;
        TP_TRY(make_one(partial.data, err));
        partial.data[i] = '/';
    }
    return make_one(path, err);
}

tp_status tp_cache_path(const char *name, bool make, char *out, size_t size, tp_error *err)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    bool has_cache = cache && cache[0] == '/'; /* the specification ignores relative ones */
    if (!has_cache && !(home && home[0] == '/'))
        return tp_fail(err, TP_ERR_CONFIG, "neither XDG_CACHE_HOME nor HOME names a folder");
    int folder =
        snprintf(out, size, "%s%s/temper", has_cache ? cache : home, has_cache ? "" : "/.cache");
    if (folder < 0 || (size_t)folder + strlen(name) + 2 > size)
        return tp_fail(err, TP_ERR_CONFIG, "the name of the cache folder is too long");
    if (make)
        TP_TRY(tp_dir_make(out, err));
    snprintf(out + folder, size - (size_t)folder, "/%s", name);
    return TP_OK;
}

/* The kernel's own folders say that anybody may write there. */
int tp_dir_refusal(const char *path)
{
    struct statfs fs;
    if (access(path, W_OK | X_OK) != 0)
        return errno;
    bool is_kernels =
        statfs(path, &fs) == 0 && (fs.f_type == PROC_SUPER_MAGIC || fs.f_type == SYSFS_MAGIC);
    return is_kernels ? EPERM : 0;
}

tp_status tp_dir_check(const char *path, tp_error *err)
{
    TP_OWN(tp_buf) nearest = {0};
    TP_TRY(tp_dir_check_name(path, err));
    tp_buf_adds(&nearest, path);
    while (nearest.len > 1 && nearest.data[nearest.len - 1] == '/')
        nearest.data[--nearest.len] = 0;
    /* The nearest folder that is there has to take the first of those that are not. */
    while (!tp_dir_exists(tp_buf_str(&nearest)) && !tp_file_exists(tp_buf_str(&nearest))) {
        char *slash = nearest.len ? strrchr(nearest.data, '/') : NULL;
        if (!slash || slash == nearest.data) {
            tp_buf_clear(&nearest);
            tp_buf_adds(&nearest, slash ? "/" : ".");
            break;
        }
        nearest.len = (size_t)(slash - nearest.data);
        *slash = 0;
    }
    if (!tp_dir_exists(tp_buf_str(&nearest)))
        TP_TRY(refuse_file(tp_buf_str(&nearest), err));
    else if (tp_dir_refusal(tp_buf_str(&nearest)) != 0)
        TP_TRY(files_fail(err, "write into folder", tp_buf_str(&nearest),
                          tp_dir_refusal(tp_buf_str(&nearest))));
    return TP_OK;
}

/* Removal walks down with one open folder per level; each entry is opened
 * relative to its parent and never through a link, so nobody can redirect the
 * walk to another place by exchanging a folder for a link. */
typedef struct {
    DIR *dir[MAX_FOLDER_DEPTH];
    char name[MAX_FOLDER_DEPTH][256];
    int depth;
} removal;

static int descend(removal *walk, int parent, const char *name)
{
    if (walk->depth == MAX_FOLDER_DEPTH)
        return ENAMETOOLONG;
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno;
    DIR *dir = fdopendir(fd);
    if (!dir) {
        int error = errno;
        close(fd);
        return error;
    }
    walk->dir[walk->depth] = dir;
    snprintf(walk->name[walk->depth++], sizeof walk->name[0], "%s", name);
    return 0;
}

static int unlink_one(int parent, const char *name, int flags)
{
    return tp_files_fault(EIO) || unlinkat(parent, name, flags) != 0 ? errno : 0;
}

/* One entry of the innermost folder, or the folder itself once it is empty. */
static int remove_step(removal *walk)
{
    DIR *top = walk->dir[walk->depth - 1];
    errno = 0;
    struct dirent *entry = readdir(top);
    if (!entry && errno)
        return errno;
    if (!entry) {
        closedir(top);
        walk->depth--;
        if (walk->depth == 0)
            return 0;
        DIR *parent = walk->dir[walk->depth - 1];
        return unlink_one(dirfd(parent), walk->name[walk->depth], AT_REMOVEDIR);
    }
    const char *name = entry->d_name;
    if (!strcmp(name, ".") || !strcmp(name, ".."))
        return 0;
    struct stat st;
    if (fstatat(dirfd(top), name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return errno;
    if (S_ISDIR(st.st_mode))
        return descend(walk, dirfd(top), name);
    return unlink_one(dirfd(top), name, 0);
}

tp_status tp_dir_remove(const char *path, tp_error *err)
{
    struct stat st;
    if (lstat(path, &st) != 0)
        return errno == ENOENT ? TP_OK : tp_files_fail_output(err, "remove", path, errno);
    if (!S_ISDIR(st.st_mode))
        return tp_fail(err, TP_ERR_OUTPUT, "cannot remove folder %s: it is a %s", path,
                       S_ISLNK(st.st_mode) ? "link" : "file");
    removal *walk = calloc(1, sizeof *walk);
    if (!walk)
        return tp_fail(err, TP_ERR_NOMEM, "cannot remove %s: out of memory", path);
    int error = descend(walk, AT_FDCWD, path);
    while (!error && walk->depth)
        error = remove_step(walk);
    while (walk->depth)
        closedir(walk->dir[--walk->depth]);
    free(walk);
    if (!error)
        error = unlink_one(AT_FDCWD, path, AT_REMOVEDIR);
    return error ? tp_files_fail_output(err, "remove", path, error) : TP_OK;
}

/* --- mappings --- */

/* The names of what is mapped, for a handler of SIGBUS: slots that are taken and given back with
 * one store each, so that a signal finds each either whole or empty.  A file beyond the last slot
 * is mapped all the same, and then has no name. */
enum { MAPS = 512, MAP_NAME = 512 };
typedef struct {
    char name[MAP_NAME]; /* written before `data`, and not while that is set */
    size_t len;
    _Atomic(const char *) data;
    atomic_flag taken;
} map_slot;
static map_slot maps[MAPS];

static void remember_map(const char *path, const tp_map_file *map)
{
    for (size_t i = 0; i < MAPS; i++) {
        if (atomic_flag_test_and_set(&maps[i].taken))
            continue;
        snprintf(maps[i].name, sizeof maps[i].name, "%s", path);
        maps[i].len = map->len;
        atomic_store(&maps[i].data, map->data);
        return;
    }
}

static void forget_map(const tp_map_file *map)
{
    for (size_t i = 0; i < MAPS; i++) {
        if (atomic_load(&maps[i].data) != map->data)
            continue;
        atomic_store(&maps[i].data, NULL);
        atomic_flag_clear(&maps[i].taken);
        return;
    }
}

const char *tp_map_name_at(const void *address)
{
    uintptr_t at = (uintptr_t)address;
    for (size_t i = 0; i < MAPS; i++) {
        uintptr_t begin = (uintptr_t)atomic_load(&maps[i].data);
        if (begin && at >= begin && at - begin < maps[i].len)
            return maps[i].name;
    }
    return NULL;
}

tp_status tp_map_open(tp_map_file *map, const char *path, tp_error *err)
{
    int fd;
    int64_t size;
    TP_TRY(tp_input_open(path, TP_INPUT_FILE, &fd, &size, err));
    if (size == 0) {
        close(fd);
        *map = (tp_map_file){.data = ""};
        return TP_OK;
    }
    size_t len = (size_t)size;
    void *data = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
    int error = errno;
    close(fd);
    if (data == MAP_FAILED)
        return files_fail(err, "map", path, error);
    *map = (tp_map_file){.data = data, .len = len};
    remember_map(path, map);
    return TP_OK;
}

void tp_map_close(tp_map_file *map)
{
    if (!map)
        return;
    if (map->len) {
        forget_map(map);
        munmap((void *)(uintptr_t)map->data, map->len);
    }
    *map = (tp_map_file){0};
}

tp_status tp_files_each_chunk(const char *path, uint64_t at, uint64_t bytes,
                              tp_files_take_chunk take, void *context, tp_error *err)
{
    int fd;
    int64_t size;
    TP_TRY(tp_input_open(path, TP_INPUT_FILE, &fd, &size, err));
    TP_FREED char *chunk = malloc(CHUNK);
    tp_status status = TP_OK;
    if (!chunk)
        status = tp_fail(err, TP_ERR_NOMEM, "cannot read %s: out of memory", path);
    else if (lseek(fd, (off_t)at, SEEK_SET) < 0)
        status = files_fail(err, "read", path, errno);
    while (status == TP_OK && bytes) {
        ssize_t got = read_full(fd, chunk, TP_MIN(bytes, (uint64_t)CHUNK));
        if (got < 0)
            status = files_fail(err, "read", path, errno);
        else if (got == 0)
            break;
        else
            status = take(context, chunk, (size_t)got, err);
        bytes -= (uint64_t)(got > 0 ? got : 0);
    }
    close(fd);
    return status;
}

static tp_status copy_chunk(void *context, const char *data, size_t n, tp_error *err)
{
    return tp_writer_write(context, data, n, err);
}

tp_status tp_file_copy(const char *from, const char *to, tp_error *err)
{
    if (!tp_file_exists(from))
        return files_fail(err, "copy", from, tp_dir_exists(from) ? EISDIR : ENOENT);
    tp_writer *w;
    TP_TRY(tp_writer_open(&w, to, err));
    tp_status status = tp_files_each_chunk(from, 0, UINT64_MAX, copy_chunk, w, err);
    if (status != TP_OK) {
        tp_writer_abandon(w);
        return status;
    }
    return tp_writer_close(w, NULL, err);
}
