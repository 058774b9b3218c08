/* tune.h - which of the kernels that accept a launch is the fastest here, by measuring.
 *
 * What was found is kept for the process, and in kernels.txt of the cache folder by processor,
 * build, threads and shape, so that a program is measured once.  A plan looks up what is known and
 * measures nothing, so that it has the kernels, and their workspace, of the run.
 *
 * Only launches whose operands are all numbers (no ids, no starts of sequences) are measured: what
 * others take depends on what is in them. */
#ifndef TP_ENGINE_EXEC_TUNE_H
#define TP_ENGINE_EXEC_TUNE_H

#include "engine/backend/backend.h"

typedef enum {
    TP_TUNE_OFF,    /* the first kernel that accepts it */
    TP_TUNE_KNOWN,  /* what is known, else the first */
    TP_TUNE_MEASURE /* what is known, else what is measured now */
} tp_kernel_tuning;

/* The kernel for the launch instead of `usual`, which is the first that accepts it. */
const tp_kernel *tp_tuned_kernel(tp_device *device, const tp_launch *launch,
                                 tp_kernel_tuning tuning, const tp_kernel *usual);

typedef struct {
    int shapes, measured; /* looked at with several kernels; of them measured now */
    int changed;          /* run by another kernel than the first */
    char why[96];         /* something could not be measured, or not be kept; "" */
} tp_tune_report;
/* Since tp_tune_begin(), with which a run begins: what is known stays, what went wrong in another
 * run of the process is forgotten. */
tp_tune_report tp_tune_get_report(void);
void tp_tune_begin(void);
/* Write what this process has measured into the cache; what fails is in the report. */
void tp_tune_keep(void);

/* For tests.  Seconds of a launch with a kernel, NaN: cannot be told (why[96] says so); NULL: a
 * clock. */
typedef double tp_tune_clock(tp_device *device, const tp_launch *launch, const tp_kernel *kernel,
                             char why[96]);
void tp_tune_set_clock(tp_tune_clock *clock);
void tp_tune_forget(void); /* all that is known in this process */

#endif
