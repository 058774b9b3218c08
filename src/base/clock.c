/* clock.c - the monotonic and the wall clock, by clock_gettime(2). */
#include "base/clock.h"

#include <time.h>

static double seconds_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

uint64_t tp_clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

double tp_clock_s(void) { return (double)tp_clock_ns() * 1e-9; }

double tp_wall_s(void) { return seconds_of(CLOCK_REALTIME); }

double tp_thread_cpu_s(void) { return seconds_of(CLOCK_THREAD_CPUTIME_ID); }

double tp_process_cpu_s(void) { return seconds_of(CLOCK_PROCESS_CPUTIME_ID); }

void tp_wall_iso(double wall_s, char out[32])
{
    time_t t = (time_t)wall_s;
    struct tm tm;
    gmtime_r(&t, &tm);
    strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", &tm);
}
