/* profile_data.h - what `temper profile` measures, and what it concludes.
 *
 *     warm-up steps | timed steps, nothing recorded | recorded steps
 *
 * Times and their intervals are of the timed steps; operators come from the launches' own
 * clocks, which always run; ranges and memory by operator from the recorded steps. */
#ifndef TP_CLI_PROFILE_DATA_H
#define TP_CLI_PROFILE_DATA_H

#include "engine/exec/machine.h"
#include "engine/train/trainer.h"
#include "instrument/analyze/severity.h"
#include "stats/common.h"
#include "text/json/json.h"
#include "trace/summary.h"

enum { TP_PROFILE_OPS = 256, TP_PROFILE_STEPS = 10000 };

typedef struct {
    char name[48];       /* of the op; "(again)" when it recomputes */
    const char *part;    /* what it ran for: "train", "generation", ...; NULL: not told */
    double launches;     /* per step */
    double flops, bytes; /* per step; NaN: not known, its rows vary from launch to launch */
    double *s;           /* seconds, per timed step */
} tp_profile_op;

typedef struct {
    int64_t warmup, n, recorded; /* steps */
    int64_t n_done;              /* timed so far */
    double *step_s, *used_tokens, *trained_tokens, *padded_tokens, *wait_s;
    double *memory_bytes, *rss_bytes; /* after each timed step */
    double *kind_bytes[TP_MEM_KINDS];
    double *phase_s[TP_TIME_COUNT]; /* of each timed step and what follows it */
    tp_profile_op ops[TP_PROFILE_OPS];
    int n_ops;
    double cpu_s, wall_s; /* of all timed steps */
    int threads;
    double mfu; /* mean; NaN: machine unknown */
    size_t peak_bytes, planned_bytes;
    size_t live_activation_bytes, activation_bytes;
    double recompute_share; /* of the arithmetic */
    int64_t parameters;
    bool is_bf16;
} tp_profile_data;

void tp_profile_data_init(tp_profile_data *d, int64_t warmup, int64_t n, int64_t recorded);
void tp_profile_data_release(tp_profile_data *d);
/* Call at every step of the run, `step` counted from 1 in this run. */
void tp_profile_data_step(tp_profile_data *d, const tp_train_event *e, int64_t step);
void tp_profile_data_finish(tp_profile_data *d, const tp_train_event *e);
/* Least seconds of the op's work per step on this machine; NaN when unknown. */
double tp_profile_op_limit(const tp_profile_data *d, const tp_machine *m, const tp_profile_op *op);
/* The same over `seconds` per step. */
tp_share tp_profile_op_share(const tp_profile_data *d, const tp_machine *m, const tp_profile_op *op,
                             double seconds);

typedef struct {
    tp_severity severity;
    char what[80], evidence[240], remedy[200];
    double cost_s; /* per step; NaN: cannot be put in seconds */
} tp_bottleneck;

/* Most costly first; at most `cap`. */
int tp_profile_bottlenecks(const tp_profile_data *d, const tp_machine *m, tp_bottleneck *ret,
                           int cap);

/* Does memory grow from step to step? */
typedef struct {
    bool is_known; /* at least ten timed steps */
    bool grows;
    double slope, lo, hi, p; /* bytes per step, 99 % one-sided */
    const char *owner;       /* kind that grew most, or "outside the accounts" */
    double owner_slope;
    const char *why; /* not known: the reason */
} tp_memory_trend;
tp_memory_trend tp_profile_leak(const tp_profile_data *d);

#endif
