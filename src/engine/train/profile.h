/* profile.h - recording chosen steps of a run.
 *
 * Steps come from profile.steps, or from NRL_NSYS_PROFILE_STEP_RANGE together with
 * NRL_NSYS_WORKER_PATTERNS, start:stop, from 1, stop excluded.  Patterns are shell wildcards,
 * separated by commas, over the names of the run's workers: the parts of the run that NeMo RL
 * would give a process each.  While a worker works that no pattern names, nothing is recorded. */
#ifndef TP_ENGINE_TRAIN_PROFILE_H
#define TP_ENGINE_TRAIN_PROFILE_H

#include "config/config.h"
#include "engine/comm/comm.h"
#include "engine/train/options.h"
#include "engine/train/phases.h"
#include "trace/trace.h"

#define TP_PROFILE_RANGE_VARIABLE "NRL_NSYS_PROFILE_STEP_RANGE"
#define TP_PROFILE_PATTERNS_VARIABLE "NRL_NSYS_WORKER_PATTERNS"
const char *tp_profile_environment(const char *name); /* NULL: not set, or empty */

/* The next one of patterns that commas separate; false: there is none left. */
bool tp_profile_next_pattern(const char **patterns, tp_slice *ret);

typedef enum { TP_WORKER_POLICY, TP_WORKER_GENERATION, TP_WORKERS } tp_worker;

/* A run's profile, while and after it is recorded. */
typedef struct {
    int64_t start, stop; /* steps, stop excluded; both 0: none */
    int64_t first;       /* the first one recorded: a resumed run may come in late */
    bool matches[TP_WORKERS];
    bool is_on, is_done, is_whole; /* whole: the traces of all ranks are there */
    tp_clock_offset clock_start;
    int64_t steps;   /* recorded */
    char path[4300]; /* of the trace */
    double wall_s, phase_s[TP_TIME_COUNT];
    tp_zone step; /* the one under way */
} tp_profile;

/* Fill the range from the configuration or the environment: part of binding the options. */
TP_CHECKED tp_status tp_profile_bind(const tp_config *config, tp_train_options *options,
                                     tp_error *err);

#endif
