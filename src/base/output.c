/* output.c - what may be written where: kinds of files, links, owners, inputs of this process. */
#include "base/output.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/files_internal.h"
#include "base/platform.h"

enum { MAX_LINKS = 40 };

struct tp_output {
    tp_writer *writer;
    tp_buf target, beside; /* beside is empty: written in place */
    bool is_stdout;
    bool is_terminal; /* the stream then, which cleans what it is given (base/terminal.h) */
    bool is_closed;   /* standard output: the reader has seen enough */
    bool is_unsynced;
};

/* ---- what is there ---- */

typedef enum { PLACE_FILE, PLACE_STREAM, PLACE_DESCRIPTOR } place_kind;

typedef struct {
    place_kind kind;
    int fd;         /* PLACE_DESCRIPTOR */
    tp_buf path;    /* PLACE_FILE: no link */
    bool exists;    /* PLACE_FILE */
    struct stat st; /* of what exists */
} place;

/* "/dev/fd/3", "/proc/self/fd/3": a descriptor, which opening anew would write from its start. */
static bool is_descriptor(const char *path, int *ret_fd)
{
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    int64_t fd;
    for (size_t i = 0; i < TP_COUNTOF(folders); i++) {
        if (!tp_str_starts(path, folders[i]) || !tp_str_to_i64(path + strlen(folders[i]), &fd) ||
            fd < 0 || fd > INT32_MAX)
            continue;
        *ret_fd = (int)fd;
        return true;
    }
    return false;
}

/* The length of the folder part, with its slash. */
static size_t folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

/* One link further: false with errno when it cannot be read. */
static bool follow(tp_buf *path)
{
    char target[4096];
    ssize_t n = readlink(path->data, target, sizeof target - 1);
    if (n < 0)
        return false;
    target[n] = 0;
    tp_buf next = {0};
    if (target[0] != '/')
        tp_buf_add(&next, path->data, folder_length(path->data));
    tp_buf_adds(&next, target);
    tp_buf_release(path);
    *path = next;
    return true;
}

static tp_status refuse(const char *path, const char *why, tp_error *err)
{
    return tp_fail(err, TP_ERR_ARG, "cannot write to '%s': %s", path, why);
}

/* The folder has to be there, and to take a new file. */
static tp_status check_folder(const char *path, const char *target, tp_error *err)
{
    size_t folder = folder_length(target);
    if (folder == strlen(target))
        return refuse(path, "that names a folder; name a file", err);
    TP_OWN(tp_buf) parent = {0};
    tp_buf_add(&parent, target, folder);
    const char *name = folder ? parent.data : ".";
    int error = tp_dir_exists(name) ? tp_dir_refusal(name) : ENOENT;
    if (error == ENOENT)
        return refuse(path, "its folder does not exist; create it or choose another name", err);
    return error ? tp_files_fail_output(err, "write", path, error) : TP_OK;
}

static tp_status look(const char *path, place *p, tp_error *err)
{
    struct stat *st = &p->st;
    if (!*path)
        return refuse(path, "the name is empty", err);
    if (strcmp(path, "-") == 0) {
        p->kind = PLACE_DESCRIPTOR;
        p->fd = STDOUT_FILENO;
        return TP_OK;
    }
    tp_buf_adds(&p->path, path);
    for (int links = 0;; links++) {
        if (is_descriptor(p->path.data, &p->fd)) {
            p->kind = PLACE_DESCRIPTOR;
            return TP_OK;
        }
        if (lstat(p->path.data, st) != 0)
            break;
        p->exists = !S_ISLNK(st->st_mode);
        if (p->exists)
            break;
        if (links == MAX_LINKS || !follow(&p->path))
            return tp_files_fail_output(err, "write", path, links == MAX_LINKS ? ELOOP : errno);
    }
    if (!p->exists)
        return errno == ENOENT ? check_folder(path, p->path.data, err)
                               : tp_files_fail_output(err, "write", path, errno);
    if (S_ISDIR(st->st_mode))
        return refuse(path, "it is a folder; name a file", err);
    if (S_ISBLK(st->st_mode) || S_ISSOCK(st->st_mode))
        return refuse(path, S_ISBLK(st->st_mode) ? "it is a disk" : "it is a socket", err);
    if (!S_ISREG(st->st_mode))
        p->kind = PLACE_STREAM;
    if (access(p->path.data, W_OK) != 0)
        return tp_files_fail_output(err, "write", path, errno);
    return p->kind == PLACE_FILE ? check_folder(path, p->path.data, err) : TP_OK;
}

/* Another name for the same file is the same file. */
static tp_status check_use(const char *path, const place *p, tp_error *err)
{
    struct stat st = p->st;
    if (p->kind == PLACE_DESCRIPTOR ? fstat(p->fd, &st) != 0 : !p->exists)
        return TP_OK;
    switch (S_ISREG(st.st_mode) ? tp_files_noted(&st) : TP_FILE_UNKNOWN) {
    case TP_FILE_READ:
        return refuse(path, "this command reads it, and it would be lost; choose another name",
                      err);
    case TP_FILE_WRITTEN:
        return refuse(path, "this command writes another result to it; choose another name", err);
    case TP_FILE_UNKNOWN:
        break;
    }
    return TP_OK;
}

/* ---- opening ---- */

/* A named pipe waits for its reader; a signal that somebody handles ends that, as open() alone,
 * which goes on by itself (SA_RESTART), would not. */
static int open_in_place(const place *p)
{
    const int flags = O_WRONLY | O_NOCTTY | O_CLOEXEC;
    const struct timespec nap = {.tv_nsec = 20000000};
    int fd = open(p->path.data, S_ISFIFO(p->st.st_mode) ? flags | O_NONBLOCK : flags);
    while (fd < 0 && errno == ENXIO && S_ISFIFO(p->st.st_mode) && nanosleep(&nap, NULL) == 0)
        fd = open(p->path.data, flags | O_NONBLOCK);
    if (fd >= 0 && S_ISFIFO(p->st.st_mode) && fcntl(fd, F_SETFL, O_WRONLY) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static tp_status open_stream(tp_output *o, const place *p, const char *path, tp_error *err)
{
    int fd = -1;
    if (p->kind == PLACE_DESCRIPTOR)
        fflush(p->fd == STDERR_FILENO ? stderr : stdout);
    o->is_stdout = p->kind == PLACE_DESCRIPTOR && p->fd == STDOUT_FILENO;
    o->is_terminal = o->is_stdout && isatty(STDOUT_FILENO) == 1;
    if (o->is_terminal)
        return TP_OK;
    if (!tp_files_fault(ENOSPC))
        fd = p->kind == PLACE_DESCRIPTOR ? fcntl(p->fd, F_DUPFD_CLOEXEC, 3) : open_in_place(p);
    return fd < 0 ? tp_files_fail_output(err, "open", path, errno)
                  : tp_writer_take(&o->writer, fd, path, err);
}

/* A name of ours: hidden, with the process in it, so that nobody else's is taken. */
static void name_beside(const char *target, tp_buf *out)
{
    size_t folder = folder_length(target);
    tp_buf_add(out, target, folder);
    tp_buf_addf(out, ".%.200s.tmp-%d", target + folder, getpid());
}

static bool is_left_over(const char *name)
{
    const char *end = strrchr(name, '-');
    int64_t process;
    char proc[64];
    if (name[0] != '.' || !end || end - name < 6 || memcmp(end - 4, ".tmp", 4) != 0 ||
        !tp_str_to_i64(end + 1, &process) || process <= 0)
        return false;
    snprintf(proc, sizeof proc, "/proc/%lld", (long long)process);
    return access(proc, F_OK) != 0;
}

void tp_outputs_clean(const char *folder)
{
    DIR *dir = opendir(folder);
    struct stat st;
    for (struct dirent *e; dir && (e = readdir(dir));)
        if (is_left_over(e->d_name) &&
            fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
            unlinkat(dirfd(dir), e->d_name, 0);
    if (dir)
        closedir(dir);
}

/* Who may read a file is the user's choice; a new owner's file is a new owner's. */
static void keep_mode(int fd, const struct stat *old)
{
    struct stat now;
    bool has_owner = fstat(fd, &now) == 0 && now.st_uid == old->st_uid && now.st_gid == old->st_gid;
    if (!has_owner && fchown(fd, old->st_uid, old->st_gid) != 0)
        (void)!fchown(fd, (uid_t)-1, old->st_gid); /* not permitted: as for any new file */
    (void)!fchmod(fd, old->st_mode & 0777);
}

static tp_status open_beside(tp_output *o, const place *p, const char *path, tp_error *err)
{
    int fd = -1;
    tp_buf_adds(&o->target, p->path.data);
    name_beside(p->path.data, &o->beside);
    /* Left by a process of this number that is gone. */
    if (unlink(o->beside.data) != 0 && errno != ENOENT)
        return tp_files_fail_output(err, "write", path, errno);
    if (!tp_files_fault(ENOSPC))
        fd = open(o->beside.data, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0) {
        int error = errno;
        tp_buf_clear(&o->beside);
        return tp_files_fail_output(err, "write", path, error);
    }
    if (p->exists)
        keep_mode(fd, &p->st);
    return tp_writer_take(&o->writer, fd, path, err);
}

static tp_status open_output(tp_output **ret, const char *path, bool is_result, tp_error *err)
{
    place p = {0};
    tp_output *o = tp_new(1, sizeof *o);
    tp_status status = look(path, &p, err);
    if (status == TP_OK && is_result)
        status = check_use(path, &p, err);
    if (status == TP_OK)
        status =
            p.kind == PLACE_FILE ? open_beside(o, &p, path, err) : open_stream(o, &p, path, err);
    tp_buf_release(&p.path);
    TP_HAND_OVER(status, ret, o, tp_output_abandon(o));
}

tp_status tp_output_open(tp_output **ret, const char *path, tp_error *err)
{
    return open_output(ret, path, true, err);
}

tp_status tp_output_check(const char *path, tp_error *err)
{
    place p = {0};
    if (!path)
        return TP_OK;
    tp_status status = look(path, &p, err);
    if (status == TP_OK)
        status = check_use(path, &p, err);
    tp_buf_release(&p.path);
    return status;
}

/* ---- writing ---- */

static void free_output(tp_output *o)
{
    tp_writer_abandon(o->writer);
    tp_buf_release(&o->target);
    tp_buf_release(&o->beside);
    free(o);
}

void tp_output_abandon(tp_output *o)
{
    if (!o)
        return;
    if (o->beside.len)
        unlink(o->beside.data);
    free_output(o);
}

/* `| head`: a reader that has seen enough is no failure. */
static bool has_seen_enough(tp_output *o, tp_status status, int error)
{
    o->is_closed |= status == TP_ERR_OUTPUT && o->is_stdout && error == EPIPE;
    return o->is_closed;
}

tp_status tp_output_write(tp_output *o, const void *data, size_t n, tp_error *err)
{
    if (o->is_closed)
        return TP_OK;
    if (o->is_terminal) {
        fwrite(data, 1, n, stdout);
        return TP_OK;
    }
    errno = 0;
    tp_status status = tp_writer_write(o->writer, data, n, err);
    return has_seen_enough(o, status, errno) ? TP_OK : status;
}

static void note_written(const char *path)
{
    struct stat st;
    if (stat(path, &st) == 0)
        tp_files_note(&st, TP_FILE_WRITTEN);
}

static tp_status finish(tp_output *o, uint64_t *ret_bytes, tp_error *err)
{
    tp_writer *writer = o->writer;
    o->writer = NULL;
    if (o->is_terminal) {
        fflush(stdout);
        return TP_OK;
    }
    errno = 0;
    tp_status status = tp_writer_close(writer, ret_bytes, err);
    if (has_seen_enough(o, status, errno))
        return TP_OK;
    if (status != TP_OK || !o->beside.len)
        return status;
    TP_TRY((o->is_unsynced ? tp_rename_unsynced : tp_rename_synced)(o->beside.data, o->target.data,
                                                                    err));
    tp_buf_clear(&o->beside);
    return TP_OK;
}

static tp_status close_output(tp_output *o, bool is_result, uint64_t *ret_bytes, tp_error *err)
{
    tp_status status = finish(o, ret_bytes, err);
    if (status == TP_OK && is_result && o->target.len)
        note_written(o->target.data);
    if (status != TP_OK) {
        tp_output_abandon(o);
        return status;
    }
    free_output(o);
    return TP_OK;
}

tp_status tp_output_close(tp_output *o, uint64_t *ret_bytes, tp_error *err)
{
    return close_output(o, true, ret_bytes, err);
}

static tp_status put_into(tp_output *o, const void *data, size_t n, bool is_result, tp_error *err)
{
    tp_status status = tp_output_write(o, data, n, err);
    if (status == TP_OK)
        return close_output(o, is_result, NULL, err);
    tp_output_abandon(o);
    return status;
}

tp_status tp_output_put(const char *path, const void *data, size_t n, tp_error *err)
{
    tp_output *o;
    TP_TRY(open_output(&o, path, true, err));
    return put_into(o, data, n, true, err);
}

tp_status tp_file_write_atomic(const char *path, const void *data, size_t n, tp_error *err)
{
    tp_output *o;
    TP_TRY(open_output(&o, path, false, err));
    return put_into(o, data, n, false, err);
}

tp_status tp_file_refresh(const char *path, const void *data, size_t n, tp_error *err)
{
    tp_output *o;
    TP_TRY(open_output(&o, path, false, err));
    o->is_unsynced = true;
    if (o->writer)
        tp_writer_skip_sync(o->writer);
    return put_into(o, data, n, false, err);
}
