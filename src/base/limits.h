/* limits.h - what of the machine this process may use: memory and processors.
 *
 * A container, a batch system or `ulimit` may allow less than the machine has.  Every limit in
 * force is listed with what set it; the least one counts.
 *
 * Read when asked: /proc/self/cgroup, the files memory.max, memory.high, cpu.max (version 2) or
 * memory.limit_in_bytes, cpu.cfs_quota_us (version 1) of every cgroup from the process's own up
 * to the root, RLIMIT_AS, RLIMIT_DATA, sched_getaffinity(), sysinfo(); for what is in use
 * memory.current and memory.stat beside them, /proc/meminfo and /proc/self/status.
 * TEMPER_SYSTEM_ROOT=DIR puts DIR before the paths, for tests. */
#ifndef TP_BASE_LIMITS_H
#define TP_BASE_LIMITS_H

#include <stddef.h>
#include <stdio.h>

enum { TP_LIMITS_MAX = 32 };

typedef struct {
    double value;     /* bytes, or processors */
    double used;      /* bytes of it that cannot be had back by dropping files; NaN: unknown */
    char source[200]; /* "physical memory", "cgroup memory.max of /pod/run" */
} tp_limit;

typedef struct {
    tp_limit v[TP_LIMITS_MAX]; /* the first one is the machine's own size */
    int n;
} tp_limits;

/* Bytes.  Of the address space (RLIMIT_AS, RLIMIT_DATA) what is left of it. */
void tp_limits_memory(tp_limits *ret);
/* Bytes of this process alone that no file holds; NaN: unknown. */
double tp_limits_own_memory(void);
/* Bytes of this process that are in memory, files among them; NaN: unknown. */
double tp_limits_resident(void);
/* Processors; a quota may be a fraction of one. */
void tp_limits_processors(tp_limits *ret);

/* A file of /proc or /sys for reading, below TEMPER_SYSTEM_ROOT; NULL when it is not there. */
FILE *tp_system_open(const char *path);
/* The number behind `name`, and a colon where there is one, at the beginning of a line of such a
 * file; NaN where there is none. */
double tp_system_number(const char *path, const char *name);

/* The least; of equals the first. */
const tp_limit *tp_limits_least(const tp_limits *limits);

#endif
