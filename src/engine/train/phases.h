/* phases.h - where the wall time of a run went, adding up exactly.
 *
 * One phase is current at any moment (or none); switching charges the time since the
 * last switch to it.  Time with no phase is "unaccounted", a line of its own. */
#ifndef TP_ENGINE_TRAIN_PHASES_H
#define TP_ENGINE_TRAIN_PHASES_H

#include <stdint.h>

typedef enum {
    TP_TIME_SETUP,
    TP_TIME_DATA,
    TP_TIME_GENERATION,
    TP_TIME_REWARD,
    TP_TIME_LOGPROBS,  /* of the policy, before an update */
    TP_TIME_REFERENCE, /* of the reference model */
    TP_TIME_ADVANTAGE,
    TP_TIME_FORWARD,
    TP_TIME_BACKWARD,
    TP_TIME_GRAD_NORM,
    TP_TIME_OPTIMIZER,
    TP_TIME_VALIDATION,
    TP_TIME_CHECKPOINT,
    TP_TIME_LOGGING,
    TP_TIME_UNACCOUNTED,
    TP_TIME_COUNT
} tp_time_phase;

const char *tp_time_name(tp_time_phase phase); /* "setup", "data", ... */

typedef struct {
    uint64_t start_ns, last_ns;
    tp_time_phase current;
    uint64_t ns[TP_TIME_COUNT];
    int64_t step; /* at work; set by the caller */
    /* Where the process was largest: asked of the kernel whenever the phase changes, which keeps
     * the peak, so that none is missed between two samples. */
    uint64_t peak_bytes; /* 0: unknown */
    tp_time_phase peak_phase;
    int64_t peak_step;
} tp_phases;

void tp_phases_start(tp_phases *p, tp_time_phase first);
/* Returns the phase that was current, so a block can put it back. */
tp_time_phase tp_phases_enter(tp_phases *p, tp_time_phase phase);
/* Part of `from` turns out to belong to `to` (at most what `from` has). */
void tp_phases_move(tp_phases *p, tp_time_phase from, tp_time_phase to, uint64_t ns);
/* Charges up to now; the sum of ns[] is the wall time since start. */
uint64_t tp_phases_wall(tp_phases *p);

#endif
