/* clock.h - time for measuring (monotonic) and for people (wall). */
#ifndef TP_BASE_CLOCK_H
#define TP_BASE_CLOCK_H

#include <stdint.h>

uint64_t tp_clock_ns(void);    /* CLOCK_MONOTONIC */
double tp_clock_s(void);       /* the same in seconds */
double tp_wall_s(void);        /* seconds since 1970, UTC */
double tp_thread_cpu_s(void);  /* processor time of the calling thread */
double tp_process_cpu_s(void); /* of all threads of this process, those that ended too */

/* "2026-11-21T05:00:00Z" */
void tp_wall_iso(double wall_s, char out[32]);

#endif
