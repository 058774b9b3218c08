/* piped.c - "-" and FIFOs for readers of runs.  These look at the first bytes, choose a reader, and
 * read again when more has come, so what a pipe brings is kept in memory under a name in /proc. */
#include "instrument/ingest/runs/piped.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"

enum { CHUNK = 1 << 16, MOST = 1 << 30 };

bool tp_piped_is(const char *path)
{
    struct stat st;
    return strcmp(path, "-") == 0 || (stat(path, &st) == 0 && S_ISFIFO(st.st_mode));
}

static tp_status write_all(int fd, const char *data, size_t n, tp_error *err)
{
    while (n > 0) {
        ssize_t done = write(fd, data, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return tp_fail(err, TP_ERR_NOMEM, "cannot keep what the pipe brings: %s",
                           strerror(errno));
        data += done;
        n -= (size_t)done;
    }
    return TP_OK;
}

static tp_status copy(int from, const tp_piped *to, tp_error *err)
{
    char chunk[CHUNK];
    size_t all = 0;
    for (;;) {
        ssize_t n = read(from, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return tp_fail(err, TP_ERR_IO, "cannot read %s: %s", to->name, strerror(errno));
        if (n == 0)
            return TP_OK;
        all += (size_t)n;
        if (all > MOST)
            return tp_fail(err, TP_ERR_UNSUPPORTED,
                           "%s brings more than 1 GiB; write it to a file and name that", to->name);
        TP_TRY(write_all(to->fd, chunk, (size_t)n, err));
    }
}

tp_status tp_piped_keep(const char *path, tp_piped *ret, tp_error *err)
{
    int from;
    int64_t size;
    TP_TRY(tp_input_open(path, TP_INPUT_STREAM, &from, &size, err));
    *ret = (tp_piped){.name = tp_input_name(path, TP_INPUT_STREAM),
                      .fd = memfd_create("temper", MFD_CLOEXEC)};
    tp_status status =
        ret->fd < 0 ? tp_fail(err, TP_ERR_IO, "cannot keep %s: %s", ret->name, strerror(errno))
                    : copy(from, ret, err);
    close(from);
    if (status == TP_OK)
        snprintf(ret->path, sizeof ret->path, "/proc/self/fd/%d", ret->fd);
    else if (ret->fd >= 0)
        close(ret->fd);
    if (status != TP_OK)
        *ret = (tp_piped){0};
    return status;
}

void tp_piped_release(tp_piped *p)
{
    if (*p->path)
        close(p->fd);
    *p = (tp_piped){0};
}
