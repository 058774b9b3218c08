/* profile.h - figures of profiled steps: what bottlenecks, growth and comparisons are found in.
 *
 *     warm-up steps | timed steps, nothing recorded | recorded steps
 *
 * Times and their intervals are of the timed steps; operators come from the launches' own
 * clocks, which always run; ranges and memory by operator from the recorded steps.  Whoever
 * measures names the parts, phases and kinds of memory; nothing here knows what is trained. */
#ifndef TP_INSTRUMENT_PROFILE_PROFILE_H
#define TP_INSTRUMENT_PROFILE_PROFILE_H

#include "instrument/analyze/finding.h"
#include "instrument/analyze/leak.h"

enum {
    TP_PROFILE_OPS = 256,
    TP_PROFILE_STEPS = 10000,
    TP_PROFILE_PHASES = 24,
    TP_PROFILE_KINDS = 16
};

typedef struct {
    char name[48];       /* of the op; "(again)" when it recomputes */
    bool is_again;       /* it does */
    const char *part;    /* what it ran for: "train", "generation", ...; NULL: not told */
    double launches;     /* per step */
    double flops, bytes; /* per step; NaN: not known, its rows vary from launch to launch */
    double *s;           /* seconds, per timed step */
    /* Least seconds per step on this machine, and those of the arithmetic alone; NaN: unknown. */
    double limit_s, arithmetic_s;
} tp_profile_op;

typedef struct {
    const char *name;
    double *s;            /* of each timed step and what follows it */
    const char *overhead; /* time in it is not the step's work: what to try; NULL: it is */
} tp_profile_phase;

typedef struct {
    const char *name, *title; /* in JSON, and for people */
    double *bytes;            /* after each timed step */
} tp_profile_kind;

typedef struct {
    int64_t warmup, n, recorded; /* steps */
    int64_t n_done;              /* timed so far */
    double *step_s, *used_tokens, *trained_tokens, *padded_tokens, *wait_s;
    double *samples;                  /* sequences of the step's batch */
    double *memory_bytes, *rss_bytes; /* after each timed step */
    tp_profile_kind kinds[TP_PROFILE_KINDS];
    int n_kinds;
    tp_profile_phase phases[TP_PROFILE_PHASES];
    int n_phases;
    tp_profile_op ops[TP_PROFILE_OPS];
    int n_ops;
    const char *machine;  /* fingerprint; NULL: its ceilings are unknown */
    double cpu_s, wall_s; /* of all timed steps */
    int threads;
    double mfu; /* mean; NaN: machine unknown */
    size_t peak_bytes, planned_bytes;
    size_t live_activation_bytes, activation_bytes;
    double recompute_share; /* of the arithmetic */
    /* Levers as they are: what is on already is no remedy. */
    bool keeps_padding; /* places without a token are computed */
    bool is_packed;     /* sequences share micro-batches by their tokens */
    bool has_best_isa, has_all_threads, recomputes_selectively;
    int64_t parameters;
} tp_profile_data;

void tp_profile_data_init(tp_profile_data *d, int64_t warmup, int64_t n, int64_t recorded);
void tp_profile_data_release(tp_profile_data *d);
/* A phase or a kind of memory more; the name must outlive the data. */
void tp_profile_add_phase(tp_profile_data *d, const char *name, const char *overhead);
void tp_profile_add_kind(tp_profile_data *d, const char *name, const char *title);
/* The op of this name and part, a new one where there is none. */
tp_profile_op *tp_profile_find_op(tp_profile_data *d, const char *name, const char *part);

/* Seconds from one timed step to the next, on average: all phases. */
double tp_profile_wall_s(const tp_profile_data *d);

/* Costs are of one step. */
void tp_profile_bottlenecks(const tp_profile_data *d, tp_findings *ret);

/* Does resident memory, which is all that the process holds, grow from step to step? */
typedef struct {
    tp_leak leak;
    const char *why;              /* there is no verdict: the reason */
    const tp_profile_kind *owner; /* that grew most, or "outside the accounts" */
} tp_profile_growth;
tp_profile_growth tp_profile_leak(const tp_profile_data *d);

#endif
