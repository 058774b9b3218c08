/* files_write.c - writing beside the target, syncing, renaming; faults that tests arm. */
#include "base/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files_internal.h"
#include "base/working.h"

enum { BUFFER = 1 << 20 };

const char *tp_files_remedy(int error)
{
    switch (error) {
    case ENOENT:
        return "; check the path";
    case EACCES:
    case EPERM:
        return "; check its permissions";
    case EROFS:
        return "; choose another folder";
    case ENOSPC:
    case EDQUOT:
        return "; free some space or choose another folder";
    case EFBIG:
        return "; raise the limit of a file's size (ulimit -f)";
    case EMFILE:
    case ENFILE:
        return "; raise the limit of open files (ulimit -n)";
    case EISDIR:
        return "; a file is expected here";
    case ENOTDIR:
        return "; a part of the path is not a folder";
    default:
        return "";
    }
}

tp_status tp_files_fail_output(tp_error *err, const char *verb, const char *path, int error)
{
    return tp_fail(err, TP_ERR_OUTPUT, "cannot %s %s: %s%s", verb, path, strerror(error),
                   tp_files_remedy(error));
}

tp_status tp_dir_sync(const char *path, tp_error *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return tp_files_fail_output(err, "open folder", path, errno);
    /* Some file systems cannot sync a folder and say EINVAL: nothing to lose. */
    bool failed = tp_files_fault(EIO) || (fsync(fd) != 0 && errno != EINVAL);
    int error = errno;
    close(fd);
    return failed ? tp_files_fail_output(err, "sync folder", path, error) : TP_OK;
}

struct tp_writer {
    int fd;
    char *path;
    char *buffer;
    size_t used;
    uint64_t n_bytes, at; /* written; where the next byte goes */
    bool failed;          /* a write was lost: close must not claim success */
    bool is_unsynced;
};

static struct {
    _Atomic uint64_t left; /* calls until the one that fails; 0 = off */
    _Atomic uint64_t seen;
    atomic_bool kill;
} fault;

void tp_fault_arm(uint64_t n, bool kill)
{
    atomic_store(&fault.left, n);
    atomic_store(&fault.seen, 0);
    atomic_store(&fault.kill, kill);
}

uint64_t tp_fault_count(void) { return atomic_load(&fault.seen); }

static bool fault_is_due(void)
{
    atomic_fetch_add(&fault.seen, 1);
    uint64_t left = atomic_load(&fault.left);
    while (left && !atomic_compare_exchange_weak(&fault.left, &left, left - 1))
        ;
    return left == 1;
}

static void die_if_asked(void)
{
    if (atomic_load(&fault.kill))
        _exit(99);
}

bool tp_files_fault(int error)
{
    if (!fault_is_due())
        return false;
    die_if_asked();
    errno = error;
    return true;
}

static int write_full(int fd, const char *data, size_t n)
{
    while (n) {
        ssize_t put = write(fd, data, n);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return errno;
        data += put;
        n -= (size_t)put;
    }
    return 0;
}

/* A failing write leaves half of its bytes behind, as a full disk does. */
static int write_or_fault(int fd, const char *data, size_t n)
{
    if (!fault_is_due())
        return write_full(fd, data, n);
    (void)write_full(fd, data, n / 2);
    die_if_asked();
    return ENOSPC;
}

static void writer_free(tp_writer *w)
{
    if (w->fd >= 0)
        close(w->fd);
    free(w->buffer);
    free(w->path);
    free(w);
}

tp_status tp_writer_take(tp_writer **ret, int fd, const char *path, tp_error *err)
{
    tp_writer *w = calloc(1, sizeof *w);
    if (!w) {
        close(fd);
        return tp_fail(err, TP_ERR_NOMEM, "cannot write %s: out of memory", path);
    }
    w->fd = fd;
    w->path = strdup(path);
    w->buffer = malloc(BUFFER);
    if (!w->path || !w->buffer) {
        writer_free(w);
        return tp_fail(err, TP_ERR_NOMEM, "cannot write %s: out of memory", path);
    }
    *ret = w;
    return TP_OK;
}

void tp_writer_skip_sync(tp_writer *w) { w->is_unsynced = true; }

tp_status tp_writer_open(tp_writer **ret, const char *path, tp_error *err)
{
    int fd = -1;
    if (!tp_files_fault(ENOSPC))
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    tp_files_replaced(path);
    return fd < 0 ? tp_files_fail_output(err, "create", path, errno)
                  : tp_writer_take(ret, fd, path, err);
}

static tp_status put(tp_writer *w, const char *data, size_t n, tp_error *err)
{
    int error = write_or_fault(w->fd, data, n);
    tp_job_add(n);
    if (!error)
        return TP_OK;
    w->failed = true;
    return tp_files_fail_output(err, "write", w->path, error);
}

static tp_status flush(tp_writer *w, tp_error *err)
{
    if (!w->used)
        return TP_OK;
    size_t n = w->used;
    w->used = 0;
    return put(w, w->buffer, n, err);
}

tp_status tp_writer_write(tp_writer *w, const void *data, size_t n, tp_error *err)
{
    if (w->failed)
        return tp_fail(err, TP_ERR_OUTPUT, "cannot write %s: an earlier write failed", w->path);
    if (n == 0)
        return TP_OK;
    tp_files_written(w->path, w->at, data, n);
    w->n_bytes += n;
    w->at += n;
    if (n > BUFFER - w->used)
        TP_TRY(flush(w, err));
    if (n >= BUFFER)
        return put(w, data, n, err);
    memcpy(w->buffer + w->used, data, n);
    w->used += n;
    return TP_OK;
}

tp_status tp_writer_extend(tp_writer *w, uint64_t bytes, tp_error *err)
{
    TP_TRY(flush(w, err));
    if (tp_files_fault(ENOSPC) || ftruncate(w->fd, (off_t)bytes) != 0) {
        w->failed = true;
        return tp_files_fail_output(err, "write", w->path, errno);
    }
    return TP_OK;
}

tp_status tp_writer_open_inside(tp_writer **ret, const char *path, tp_error *err)
{
    int fd = -1;
    if (!tp_files_fault(EIO))
        fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd < 0 ? tp_files_fail_output(err, "open", path, errno)
                  : tp_writer_take(ret, fd, path, err);
}

tp_status tp_writer_go_to(tp_writer *w, uint64_t at, tp_error *err)
{
    if (at == w->at)
        return TP_OK;
    TP_TRY(flush(w, err));
    if (lseek(w->fd, (off_t)at, SEEK_SET) < 0) {
        w->failed = true;
        return tp_files_fail_output(err, "write", w->path, errno);
    }
    w->at = at;
    return TP_OK;
}

/* fsync() of a large file takes long and says nothing meanwhile: what is on its way to the disk is
 * waited for piece by piece before. */
static int sync_pieces(const tp_writer *w)
{
    struct stat st;
    off_t size = fstat(w->fd, &st) == 0 && S_ISREG(st.st_mode) ? st.st_size : 0;
    if (size > TP_FILE_PIECE && sync_file_range(w->fd, 0, 0, SYNC_FILE_RANGE_WRITE) != 0)
        return errno;
    for (off_t at = 0; size > TP_FILE_PIECE && at < size; at += TP_FILE_PIECE) {
        if (sync_file_range(w->fd, at, TP_FILE_PIECE,
                            SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
                                SYNC_FILE_RANGE_WAIT_AFTER) != 0)
            return errno;
        tp_job_add(0);
    }
    return 0;
}

/* Pipes and devices have nothing to sync. */
static int unless_it_cannot(int error)
{
    return error == EINVAL || error == ENOTSUP || error == ESPIPE || error == ENOSYS ? 0 : error;
}

static tp_status sync_file(const tp_writer *w, tp_error *err)
{
    int error = unless_it_cannot(sync_pieces(w));
    if (tp_files_fault(EIO))
        error = EIO;
    else if (!error && fsync(w->fd) != 0)
        error = unless_it_cannot(errno);
    return error ? tp_files_fail_output(err, "sync", w->path, error) : TP_OK;
}

static tp_status finish(tp_writer *w, tp_error *err)
{
    if (w->failed)
        return tp_fail(err, TP_ERR_OUTPUT, "cannot finish %s: an earlier write failed", w->path);
    TP_TRY(flush(w, err));
    if (!w->is_unsynced)
        TP_TRY(sync_file(w, err));
    int fd = w->fd;
    w->fd = -1;
    return close(fd) == 0 ? TP_OK : tp_files_fail_output(err, "close", w->path, errno);
}

tp_status tp_writer_close(tp_writer *w, uint64_t *ret_bytes, tp_error *err)
{
    tp_status status = finish(w, err);
    if (status == TP_OK && ret_bytes)
        *ret_bytes = w->n_bytes;
    writer_free(w);
    return status;
}

tp_status tp_writer_end(tp_writer *w, tp_status status, tp_error *err)
{
    if (status == TP_OK)
        return tp_writer_close(w, NULL, err);
    tp_writer_abandon(w);
    return status;
}

void tp_writer_abandon(tp_writer *w)
{
    if (w)
        writer_free(w);
}

/* The folder that holds `path`: "a/b/" and "a/b" are in "a", "b" is in ".". */
static char *folder_of(const char *path)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    while (n && path[n - 1] != '/')
        n--;
    while (n > 1 && path[n - 1] == '/')
        n--;
    return n ? strndup(path, n) : strdup(".");
}

/* Of the folder: a lock on the file itself would go with the file that is replaced. */
int tp_file_turn(const char *path)
{
    TP_FREED char *folder = folder_of(path);
    int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    while (fd >= 0 && flock(fd, LOCK_EX) != 0)
        if (errno != EINTR) {
            close(fd);
            return -1;
        }
    return fd;
}

static tp_status sync_folders(const char *from, const char *to, tp_error *err)
{
    char *source = folder_of(from), *target = folder_of(to);
    tp_status status = TP_ERR_NOMEM;
    if (source && target) {
        status = tp_dir_sync(target, err);
        if (status == TP_OK && strcmp(source, target) != 0)
            status = tp_dir_sync(source, err);
    } else {
        tp_fail(err, status, "cannot rename %s: out of memory", from);
    }
    free(source);
    free(target);
    return status;
}

tp_status tp_rename_unsynced(const char *from, const char *to, tp_error *err)
{
    if (tp_files_fault(EIO) || rename(from, to) != 0) {
        int error = errno;
        return tp_fail(err, TP_ERR_OUTPUT, "cannot rename %s to %s: %s", from, to, strerror(error));
    }
    tp_files_replaced(to);
    return TP_OK;
}

tp_status tp_exchange_synced(const char *a, const char *b, bool *ret_done, tp_error *err)
{
    *ret_done = !tp_files_fault(EIO) && renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE) == 0;
    if (!*ret_done && (errno == EINVAL || errno == ENOSYS))
        return TP_OK;
    if (!*ret_done) {
        int error = errno;
        return tp_fail(err, TP_ERR_OUTPUT, "cannot exchange %s and %s: %s", a, b, strerror(error));
    }
    tp_files_replaced(b);
    return sync_folders(a, b, err);
}

tp_status tp_rename_synced(const char *from, const char *to, tp_error *err)
{
    TP_TRY(tp_rename_unsynced(from, to, err));
    return sync_folders(from, to, err);
}
