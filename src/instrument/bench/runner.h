/* runner.h - measuring one subject, or two against each other.
 *
 * The work of a round is fixed first (calibrated on A, the same for both sides), then both
 * sides warm up until they are steady, then come the rounds: in each both sides run once,
 * in an order tossed by a seeded generator (order.h).  How many rounds:
 *   - exactly `rounds`, when given;
 *   - two sides: until the e-values decide, at least `min_rounds`, or the budget is spent;
 *   - one side: until the interval of the median is as narrow as `precision`, or the
 *     budget is spent.
 * A round that something else disturbed (disturbance.h) is measured again, both sides of it, in the
 * same order; with too many of these the benchmark has no verdict.
 * A measurement that fails (a crash, NaN, zero, fewer rounds than asked for) is a result
 * with verdict FAILED, not an error of the program. */
#ifndef TP_INSTRUMENT_BENCH_RUNNER_H
#define TP_INSTRUMENT_BENCH_RUNNER_H

#include "instrument/bench/report.h"

/* The clock of the rounds; tests bring their own. */
typedef struct {
    uint64_t (*now_ns)(void *user);
    void *user;
} tp_bench_clock;

typedef struct {
    const char *name;
    bool is_warming_up;
    size_t round, n_planned; /* warming up, 0: it is being set up; n_planned 0: open */
    double elapsed_s;
    double left_s; /* of the rounds: about, when planned, else at most; NaN: not known */
    const tp_bench_comparison *comparison; /* of the first metric so far, or NULL */
    const tp_summary *summary;             /* of side B's first metric so far */
    const tp_metric *metric;
} tp_bench_progress;

typedef struct {
    size_t rounds;
    size_t min_rounds, max_rounds;
    size_t warm_up;      /* rounds at least, discarded */
    size_t warm_up_most; /* ... and at most, while not steady */
    double warm_up_s;    /* and for at most this long, beyond the least */
    double budget_s;     /* of the rounds; 0: none */
    double precision;    /* half-width over median that is narrow enough */
    double min_round_s;  /* a round takes at least this long, when work can be chosen */
    uint64_t seed;
    size_t fresh; /* set both sides up anew every so many rounds; 0: never */
    tp_rule rule;
    tp_bench_clock clock; /* zeroed: the monotonic clock */
    /* (optional) what disturbed rounds are told by, see disturbance.h; NULL: all count */
    void (*read_machine)(void *user, tp_machine_reading *ret);
    void *machine;
    void (*observe)(void *user, const tp_bench_progress *progress);
    void *user;
} tp_bench_plan;

/* What `temper bench` uses when nothing is said. */
tp_bench_plan tp_bench_plan_default(void);

/* Measure B (and A, unless NULL) and add the result to the report.  Only an interruption
 * is an error. */
TP_CHECKED tp_status tp_bench_measure(tp_bench_report *report, const char *name,
                                      const tp_bench_plan *plan, tp_subject *a, tp_subject *b,
                                      tp_error *err);

#endif
