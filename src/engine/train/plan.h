/* plan.h - what a run will take and how long its steps are, before it runs.
 *
 * `temper plan`, the library, `temper doctor` and the run itself ask here; the run's closing
 * table compares what was measured with it.  Bytes are exact: all large buffers of the run.
 * Times are estimates: the work of the graphs at the machine's measured ceilings. */
#ifndef TP_ENGINE_TRAIN_PLAN_H
#define TP_ENGINE_TRAIN_PLAN_H

#include "base/strings.h"
#include "engine/exec/machine.h"
#include "engine/train/graphs.h"
#include "temper/plan.h"

/* How much of the machine's memory a run may take. */
typedef struct {
    double bytes;
    double fraction, of; /* engine.memory_fraction of so many bytes ... */
    char source[200];    /* ... which are "physical memory", "cgroup memory.max of /a"; or 0 of
                            them, and "engine.memory_limit" */
} tp_memory_allowance;

typedef struct {
    int64_t parameters, micro_tokens;

    size_t bytes[TP_MEM_KINDS], peak_bytes;  /* all kinds together */
    size_t generator_bytes, reference_bytes; /* what the peak would be less without them */
    /* What each phase works with: the run has all of its memory from beginning to end, and
     * graphs share theirs.  All zero: there is no such phase. */
    size_t phases[TP_PLAN_PHASES][TP_MEM_KINDS];
    tp_session_plan session; /* the part that trains */
    tp_memory_allowance allowance;
    bool fits;

    /* Of one step, when every sequence is full and every answer as long as it may be. */
    double updates, micro_batches; /* micro_batches: of all updates together */
    double flops, moved_bytes;     /* contractions; between memory and processor */
    /* Seconds at least; NaN: this machine was not measured; 0: there is no such part. */
    double micro_s; /* one full micro-batch, forward and backward */
    double training_s, update_s, logprob_s, reference_s, generation_s, step_s;
    double generation_steps; /* of the generator, in a step of the run */
} tp_run_plan;

/* All kinds together. */
size_t tp_plan_phase_bytes(const tp_run_plan *plan, tp_plan_phase phase);

/* Here, of a process like this one. */
tp_memory_allowance tp_memory_allowed(const tp_train_options *o);

/* A launch on this machine; NaN without one. */
double tp_launch_seconds(const tp_machine *machine, tp_dtype dtype, const tp_launch_info *launch);

/* From graphs that are there.  `machine` may be NULL. */
TP_CHECKED tp_status tp_run_plan_make(const tp_train_options *o, const tp_model *model,
                                      const tp_run_graphs *graphs, const tp_machine *machine,
                                      tp_run_plan *ret, tp_error *err);
/* The same from the options: builds the graphs and frees them again. */
TP_CHECKED tp_status tp_run_plan_compute(const tp_train_options *o, const tp_model *model,
                                         bool resumes, const tp_machine *machine, tp_run_plan *ret,
                                         tp_error *err);

#endif
