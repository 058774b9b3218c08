/* signal_at_step.c - loaded by LD_PRELOAD: a training run gets a signal at a step, not at a time.
 *
 * TEMPER_TEST_SIGNAL is NUMBER:STEP.  The thread that has written the record of that training
 * step to metrics.jsonl raises the signal, so that where a run is interrupted does not depend on
 * how fast the machine is.  NUMBER:sync:TEXT is a signal before a file whose path has TEXT is
 * synced. */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef ssize_t write_function(int, const void *, size_t);

static int wanted_signal;
static char record[64];
static const char *synced;

__attribute__((constructor)) static void read_wish(void)
{
    const char *wish = getenv("TEMPER_TEST_SIGNAL");
    int step;
    int at = 0;
    if (wish && sscanf(wish, "%d:sync:%n", &wanted_signal, &at) == 1 && at)
        synced = wish + at;
    else if (wish && sscanf(wish, "%d:%d", &wanted_signal, &step) == 2)
        snprintf(record, sizeof record, "\"step\":%d,\"axis\":\"train\"", step);
}

__attribute__((visibility("default"))) ssize_t write(int fd, const void *data, size_t n)
{
    static write_function *next;
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "write");
    ssize_t written = next(fd, data, n);
    if (record[0] && written == (ssize_t)n && memmem(data, n, record, strlen(record))) {
        record[0] = 0;
        raise(wanted_signal);
    }
    return written;
}

__attribute__((visibility("default"))) int fsync(int fd)
{
    char link[64], path[4096] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (synced && readlink(link, path, sizeof path - 1) > 0 && strstr(path, synced))
        raise(wanted_signal);
    return fdatasync(fd);
}
