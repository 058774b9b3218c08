/* subject.h - what can be measured, and what a measurement consists of.
 *
 * A subject does a given amount of work when asked to, as often as asked:
 *
 *     set_up -> run(work) -> run(work) -> ... -> tear_down
 *
 * Each run yields one value per metric.  A metric says which way is better and whether
 * it is noisy (times, resident memory: many rounds, an interval) or exact (allocated
 * bytes, tokens, FLOPs: one run tells, and two runs that differ are an error).
 * Subjects exist for functions of this program, for other processes that speak a line
 * protocol (worker.h) and for any command (command.h).  bench/ knows none of them:
 * the runner sees this table only. */
#ifndef TP_INSTRUMENT_BENCH_SUBJECT_H
#define TP_INSTRUMENT_BENCH_SUBJECT_H

#include "base/error.h"

enum { TP_BENCH_MAX_METRICS = 12 };

typedef enum { TP_LOWER_IS_BETTER, TP_HIGHER_IS_BETTER } tp_direction;
typedef enum { TP_METRIC_NOISY, TP_METRIC_EXACT } tp_metric_class;

/* Where the value of a run comes from. */
typedef enum {
    TP_METRIC_GIVEN,    /* the subject fills it in */
    TP_METRIC_DURATION, /* seconds per unit of work, from the clock around the run */
    TP_METRIC_RATE      /* sample.amount[i] per second */
} tp_metric_source;

typedef struct {
    const char *name; /* "throughput": unique within a subject */
    const char *unit; /* "tokens/s", "s", "bytes" */
    tp_direction direction;
    tp_metric_class kind;
    tp_metric_source source;
    bool is_informative; /* shown and stored, never judged */
    bool is_count;       /* of stored files: 0 is a value, and rounds may differ while noisy */
    double floor;        /* a difference below this (in `unit`) is never a regression */
} tp_metric;

typedef struct {
    uint64_t elapsed_ns;                 /* of the run; 0: the runner's clock counts */
    double values[TP_BENCH_MAX_METRICS]; /* by metric */
    double amount[TP_BENCH_MAX_METRICS]; /* TP_METRIC_RATE: what was processed in the run */
    bool has_switches;
    int64_t switches; /* involuntary context switches of what was measured, in the run */
    bool has_checksum;
    uint64_t checksum; /* of the result: equal work gives equal sums */
} tp_bench_sample;

typedef struct tp_subject tp_subject;

typedef struct {
    /* (optional) everything that is not to be timed */
    tp_status (*set_up)(tp_subject *s, tp_error *err);
    tp_status (*run)(tp_subject *s, uint64_t work, tp_bench_sample *ret, tp_error *err);
    /* (optional) in any state; set_up may follow again */
    void (*tear_down)(tp_subject *s);
} tp_subject_class;

/* First member of what a subject is.  Metrics may be filled in by the first set_up.
 * The first metric is the one that decides how many rounds are needed. */
struct tp_subject {
    const tp_subject_class *class;
    const tp_metric *metrics;
    size_t n_metrics;
    const char *work_unit; /* "steps": what `work` counts */
    uint64_t work;         /* units of a run; 0: as many as the round needs (calibrated) */
};

/* Fill in the values that come from the clock. */
void tp_bench_sample_finish(const tp_subject *s, uint64_t work, uint64_t elapsed_ns,
                            tp_bench_sample *sample);

const char *tp_direction_name(tp_direction direction); /* "lower", "higher" */
bool tp_direction_parse(const char *name, tp_direction *ret);
const char *tp_metric_class_name(tp_metric_class kind);             /* "noisy", "exact" */
bool tp_metric_class_parse(const char *name, tp_metric_class *ret); /* noisy, exact */

#endif
