/* folder_lock.c - a lock on a folder, and who holds it. */
#include "engine/checkpoint/folder_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* Who has it: the holder wrote its number, unless it is about to. */
static tp_status tell_holder(int fd, const char *folder, const char *remedy, tp_error *err)
{
    char who[64] = "";
    ssize_t n = pread(fd, who, sizeof who - 1, 0);
    return tp_fail(err, TP_ERR_CONFIG, "'%s' is being written by %s%s; %s", folder,
                   n > 0 ? "process " : "another process", n > 0 ? who : "", remedy);
}

static tp_status lock(int fd, const char *folder, const char *path, const char *remedy,
                      tp_error *err)
{
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno == EWOULDBLOCK)
            return tell_holder(fd, folder, remedy, err);
        return tp_fail(err, TP_ERR_OUTPUT, "cannot lock '%s': %s", path, strerror(errno));
    }
    char who[64];
    int n = snprintf(who, sizeof who, "%d", getpid());
    if (ftruncate(fd, 0) != 0 || pwrite(fd, who, (size_t)n, 0) != n)
        return tp_fail(err, TP_ERR_OUTPUT, "cannot write '%s': %s", path, strerror(errno));
    return TP_OK;
}

tp_status tp_folder_lock(const char *folder, const char *remedy, int *ret_fd, tp_error *err)
{
    char path[4096];
    if (snprintf(path, sizeof path, "%s/.lock", folder) >= (int)sizeof path)
        return tp_fail(err, TP_ERR_CONFIG, "the path of folder '%.100s...' is too long", folder);
    int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0)
        return tp_fail(err, TP_ERR_OUTPUT, "cannot create '%s': %s", path, strerror(errno));
    TP_HAND_OVER(lock(fd, folder, path, remedy, err), ret_fd, fd, close(fd));
}

tp_status tp_folder_lock_check(const char *folder, const char *remedy, tp_error *err)
{
    char path[4096];
    if (snprintf(path, sizeof path, "%s/.lock", folder) >= (int)sizeof path)
        return TP_OK;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return TP_OK;
    tp_status status = flock(fd, LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK
                           ? TP_OK
                           : tell_holder(fd, folder, remedy, err);
    close(fd);
    return status;
}
