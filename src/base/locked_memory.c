/* locked_memory.c - mlock(2), within what RLIMIT_MEMLOCK allows. */
#include "base/locked_memory.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

static atomic_bool is_used;
static atomic_size_t locked;
static atomic_int refusal; /* errno of the last mlock() that failed */

void tp_locked_memory_use(bool yes)
{
    is_used = yes;
    refusal = 0;
}

bool tp_locked_memory_ask(void *address, size_t bytes)
{
    if (!is_used)
        return false;
    if (mlock(address, bytes) != 0) {
        refusal = errno;
        return false;
    }
    atomic_fetch_add(&locked, bytes);
    return true;
}

void tp_locked_memory_end(size_t bytes) { atomic_fetch_sub(&locked, bytes); }

static void say_why(int reason, char *why, size_t size)
{
    struct rlimit r;
    bool has_limit = getrlimit(RLIMIT_MEMLOCK, &r) == 0 && r.rlim_cur != RLIM_INFINITY;
    if (has_limit)
        snprintf(why, size, "mlock: %s (ulimit -l: %llu KiB)", strerror(reason),
                 (unsigned long long)r.rlim_cur / 1024);
    else
        snprintf(why, size, "mlock: %s", strerror(reason));
}

/* By trying: who may lock more than the limit is not said anywhere. */
static int try_to_lock(size_t bytes)
{
    void *m = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (m == MAP_FAILED)
        return 0;
    int reason = mlock(m, bytes) == 0 ? 0 : errno;
    munmap(m, bytes);
    return reason;
}

bool tp_locked_memory_refused(size_t bytes, char *why, size_t size)
{
    size_t have = atomic_load(&locked);
    int reason = refusal ? refusal : bytes > have ? try_to_lock(bytes - have) : 0;
    if (reason)
        say_why(reason, why, size);
    return reason != 0;
}

double tp_locked_memory_in_use(void) { return (double)atomic_load(&locked); }
