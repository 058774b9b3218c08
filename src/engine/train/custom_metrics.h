/* custom_metrics.h - what a run used while it trained, step by step: processor,
 * accelerator, memory, batch size, learning rate, parameters; with averages and maxima at the
 * end. */
#ifndef TP_ENGINE_TRAIN_CUSTOM_METRICS_H
#define TP_ENGINE_TRAIN_CUSTOM_METRICS_H

#include <stddef.h>

#include "text/json/json.h"

typedef enum {
    TP_CUSTOM_PROCESSOR,          /* share of the time of the kernels' threads, 0..1 */
    TP_CUSTOM_ACCELERATOR,        /* share of time that a kernel ran, mean of all devices, 0..1 */
    TP_CUSTOM_ACCELERATOR_MEMORY, /* bytes in use on all devices, whoever uses them */
    TP_CUSTOM_RESIDENT,           /* bytes of the process in memory */
    TP_CUSTOM_ALLOCATED,          /* bytes of accounted buffers */
    TP_CUSTOM_BATCH,              /* sequences of the step */
    TP_CUSTOM_TOKENS,             /* of the data, padding not counted */
    TP_CUSTOM_PADDING,            /* share of the computed tokens, 0..1 */
    TP_CUSTOM_LR,
    TP_CUSTOM_PARAMETERS,
    TP_CUSTOM_METRICS
} tp_custom_metric;

typedef struct {
    uint64_t n; /* values; those that are not known are not counted */
    double last, sum, most;
} tp_custom_stat;

typedef struct {
    tp_custom_stat stats[TP_CUSTOM_METRICS];
    double cpu_s, wall_s;        /* when the last step was noted; 0: none was */
    double waited_s;             /* for a processor, all threads of the process; NaN: unknown */
    double own_share;            /* of the time since the step before: others took the rest; NaN */
    const char *accelerator_why; /* why nothing is known of accelerators; NULL else */
} tp_custom_metrics;

const char *tp_custom_name(tp_custom_metric metric); /* "system/processor_utilization", ... */

/* At the end of a step; NaN is unknown. */
void tp_custom_note(tp_custom_metrics *c, tp_custom_metric metric, double value);
/* Notes the processor's share since the last call, the resident memory and the accelerators. */
void tp_custom_note_process(tp_custom_metrics *c, int threads);
/* Why a metric without a value is unknown; NULL: it has one, or is not told about. */
const char *tp_custom_why(const tp_custom_metrics *c, tp_custom_metric metric);

/* {"train/lr": {"mean": .., "max": .., "last": .., "n": ..}, ...}; unknown: nulls, n 0 and
 * "why" */
void tp_custom_write(const tp_custom_metrics *c, tp_json_w *w);

/* ---- accelerators ----
 *
 * How busy they are, asked of NVML at run time: nothing is linked, libnvidia-ml.so.1 is loaded when
 * it is there.  Where it is not, or does not answer, the figures are unknown and `why` says so;
 * they are never 0 instead. */

typedef struct {
    int n;              /* devices; 0: unknown */
    double utilization; /* 0..1, mean of the devices that answered; NaN: unknown */
    double used_bytes;  /* of their memory, summed; NaN: unknown */
    double total_bytes;
    const char *why; /* unknown: the reason, "no NVML"; NULL when both are known */
} tp_accelerator_state;

/* Costs tens of microseconds per device.  From one thread at a time. */
tp_accelerator_state tp_accelerator_read(void);

#endif
