/* custom_metrics.h - what a run used while it trained, step by step: processor, memory,
 * batch size, learning rate, parameters; with averages and maxima at the end. */
#ifndef TP_ENGINE_TRAIN_CUSTOM_METRICS_H
#define TP_ENGINE_TRAIN_CUSTOM_METRICS_H

#include "base/json.h"

typedef enum {
    TP_CUSTOM_PROCESSOR, /* share of the time of the kernels' threads, 0..1 */
    TP_CUSTOM_RESIDENT,  /* bytes of the process in memory */
    TP_CUSTOM_ALLOCATED, /* bytes of accounted buffers */
    TP_CUSTOM_BATCH,     /* sequences of the step */
    TP_CUSTOM_TOKENS,    /* of the data, padding not counted */
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
    double cpu_s, wall_s; /* when the last step was noted; 0: none was */
} tp_custom_metrics;

const char *tp_custom_name(tp_custom_metric metric); /* "system/processor_utilization", ... */

/* At the end of a step; NaN is unknown. */
void tp_custom_note(tp_custom_metrics *c, tp_custom_metric metric, double value);
/* Notes the processor's share since the last call and the resident memory. */
void tp_custom_note_process(tp_custom_metrics *c, int threads);

/* {"train/lr": {"mean": .., "max": .., "last": .., "n": ..}, ...} */
void tp_custom_write(const tp_custom_metrics *c, tp_json_w *w);

#endif
