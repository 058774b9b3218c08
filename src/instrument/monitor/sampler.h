/* sampler.h - figures of two readings: one row of sampler.c each. */
#ifndef TP_INSTRUMENT_MONITOR_SAMPLER_H
#define TP_INSTRUMENT_MONITOR_SAMPLER_H

#include <stddef.h>

#include "instrument/monitor/reading.h"
#include "trace/metric.h"

enum { TP_SAMPLER_GROUPS = 3, TP_SAMPLER_MOST = 24 };

typedef struct {
    const char *name; /* "training" */
    tp_reading_part part;
    double period_s; /* by default */
} tp_sampler_group;
extern const tp_sampler_group tp_sampler_groups[TP_SAMPLER_GROUPS];

/* The figures of a group from the reading before and this one; what is unknown is left out.
 * `processors` and `limit_bytes`: what the process may use. */
size_t tp_sampler_figures(int group, const tp_reading *before, const tp_reading *now,
                          double processors, double limit_bytes,
                          tp_metric_figure ret[TP_SAMPLER_MOST]);
/* When the next sample is due, of which the last was and is taken now.  Behind a pause it is a
 * whole period away: a sample of no time says nothing. */
double tp_sampler_next(double due_s, double period_s, double now_s);

#endif
