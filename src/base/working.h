/* working.h - what a long computation is at, told to whoever listens in its thread.
 *
 *     TP_OWN(tp_job) job = {0};
 *     tp_job_begin(&job, bytes, "writing %s", folder);
 *     ...
 *     tp_job_add(n);    in the loops below, which need not know what they are a part of
 *
 * Whatever writes or hashes files adds their bytes (files.h).  Who listens decides when to speak of
 * it; the public side is in temper/text.h. */
#ifndef TP_BASE_WORKING_H
#define TP_BASE_WORKING_H

#include "base/error.h"
#include "temper/text.h"

/* Seconds in which nothing is said of a work. */
enum { TP_WORK_SILENT_S = 10 };

typedef struct {
    tp_working *hear; /* NULL: nobody */
    void *user;
} tp_work_listener;

/* From here on in this thread; returns who listened before, to be put back. */
tp_work_listener tp_work_listen(tp_work_listener listener);
/* `done` of `total` parts of it; total 0: unknown. */
void tp_work_tell(const char *what, uint64_t done, uint64_t total);

typedef struct {
    char what[160];
    uint64_t done, total;
} tp_job;

/* Inside of another work it is a part of that, and nothing is told of it. */
void tp_job_begin(tp_job *w, uint64_t total, const char *fmt, ...) TP_PRINTF(3, 4);
void tp_job_release(tp_job *w);
/* So many parts more of the work that was begun in this thread; without one a no-op. */
void tp_job_add(uint64_t n);

/* Where a call is left at once for want of memory, and with it what listens and works. */
void tp_work_forget(void);

#endif
