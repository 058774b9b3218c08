/* steps.h - the steps of a run, as the trace marks them.
 *
 * A step is a host annotation whose name ends in a number after "ProfilerStep#", "step" or
 * "iteration" (any case; "step 7", "train_step_7", "Iteration: 7"); in a trace that has any
 * "ProfilerStep#", those alone.  Steps of several threads or processes with the same number are
 * one, and one inside another is a part of it. */
#ifndef TP_INSTRUMENT_ANALYZE_STEPS_H
#define TP_INSTRUMENT_ANALYZE_STEPS_H

#include "instrument/ingest/events.h"

typedef struct {
    int64_t number;
    int64_t start, end;
    int64_t host_ns; /* of the process that takes longest: their clocks and starts differ */
    int64_t pid;
} tp_step;

typedef struct {
    tp_step *v; /* by start */
    size_t n;
} tp_steps;

/* The number in the name of a step; false when it is not one. */
bool tp_step_number(const char *name, size_t len, int64_t *ret);

void tp_steps_find(const tp_events *events, tp_steps *ret);
void tp_steps_release(tp_steps *steps);

/* The step that covers `at`, or -1. */
int64_t tp_steps_at(const tp_steps *steps, int64_t at);

#endif
