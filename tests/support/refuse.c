/* refuse.c - preloaded into runs to which the system is to refuse something: TEMPER_TEST_REFUSE
 * names calls, "mlock madvise", that fail; "tsc": Linux has struck the time stamp counter from its
 * list of clocks. */
#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SEEN __attribute__((visibility("default")))

static int is_refused(const char *call)
{
    const char *calls = getenv("TEMPER_TEST_REFUSE");
    return calls && strstr(calls, call);
}

SEEN int mlock(const void *address, size_t bytes)
{
    if (!is_refused("mlock"))
        return (int)syscall(SYS_mlock, address, bytes);
    errno = ENOMEM;
    return -1;
}

SEEN int sched_setaffinity(pid_t thread, size_t bytes, const cpu_set_t *set)
{
    if (!is_refused("sched_setaffinity"))
        return (int)syscall(SYS_sched_setaffinity, thread, bytes, set);
    errno = EPERM;
    return -1;
}

SEEN int madvise(void *address, size_t bytes, int advice)
{
    if (!is_refused("madvise"))
        return (int)syscall(SYS_madvise, address, bytes, advice);
    errno = EINVAL;
    return -1;
}

SEEN FILE *fopen(const char *path, const char *mode)
{
    static char clocks[] = "hpet acpi_pm\n";
    if (is_refused("tsc") && strstr(path, "available_clocksource"))
        return fmemopen(clocks, sizeof clocks - 1, "r");
    FILE *(*real)(const char *, const char *) =
        (FILE * (*)(const char *, const char *)) dlsym(RTLD_NEXT, "fopen");
    return real(path, mode);
}
