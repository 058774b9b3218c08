/* synthetic.h - a subject whose time is made up, on a clock that is made up with it.
 *
 * Running it advances the clock by what a noisy machine would take: ln of the time is
 *     a drift shared by everything that runs (AR(1), phi 0.97, stationary sd 2 %)
 *   + independent noise (sd 1 %)
 *   + now and then a stall (6 % of runs, exponential with mean 15 %)
 *   + the delay that a test injects: `slowdown`.
 * Nothing sleeps and nothing depends on the machine, so a test of the gate has one answer
 * per seed.  The delay exists in tests only: no subject of the product has one. */
#ifndef TP_TESTS_SYNTHETIC_H
#define TP_TESTS_SYNTHETIC_H

#include "base/rng.h"
#include "instrument/bench/runner.h"

typedef struct {
    tp_rng rng;
    double drift; /* of ln t, now */
    uint64_t now_ns;
    double drift_sd, noise_sd, stall_share, stall_mean;
} synthetic_machine;

typedef struct {
    tp_subject subject;
    synthetic_machine *machine;
    double seconds;        /* of one unit of work, undisturbed */
    double slowdown;       /* injected: 0.08 is 8 % slower */
    double memory, blocks; /* bytes and allocations it reports */
    long fail_in_run;      /* > 0: that run returns an error */
    long nan_in_run;       /* > 0: that run reports NaN */
    double fixed_time;     /* > 0: this many seconds, whatever the machine says */
    long n_runs, n_set_ups;
} synthetic_subject;

/* The machine of the simulation. */
synthetic_machine synthetic_machine_make(uint64_t seed);
uint64_t synthetic_now(void *machine);
/* ln of what a run takes now, beyond the undisturbed; moves the drift on. */
double synthetic_disturbance(synthetic_machine *machine);

/* Metrics: time (noisy), memory and blocks (exact). */
void synthetic_subject_init(synthetic_subject *s, synthetic_machine *machine, double slowdown);

#endif
