/* report.h - the results of a session: every raw sample, and what was concluded.
 *
 * One report has many benchmarks, a benchmark has metrics, a metric has the values of
 * side A (what is compared with; may be absent) and of side B (what was measured), in
 * the order of the rounds.  All of it lives in the report's arena.  Files of other tools
 * become reports as well (formats.h), so that everything can be compared, printed and
 * kept the same way. */
#ifndef TP_INSTRUMENT_BENCH_REPORT_H
#define TP_INSTRUMENT_BENCH_REPORT_H

#include "base/arena.h"
#include "instrument/bench/disturbance.h"
#include "instrument/bench/host.h"
#include "instrument/bench/rule.h"

#define TP_BENCH_SCHEMA "temper-bench-1"

/* Limits of what is read from files. */
enum { TP_BENCH_MAX_RESULTS = 5000, TP_BENCH_MAX_SAMPLES = 1 << 20 };

typedef struct {
    size_t n;
    double median, mean, sd, min, max;
    double lower, upper; /* 95 % order-statistic interval of the median */
} tp_summary;

typedef struct {
    tp_metric metric;
    const double *a, *b;
    size_t n_a, n_b;
    tp_summary side_a, side_b; /* NaN where undefined */
    bool is_compared;
    bool is_undirected; /* its file does not say which way is better: shown, not judged */
    bool is_median;     /* its file has the median of the rounds alone: one value */
    tp_bench_comparison comparison;
    const char *note; /* NULL, or what a reader must know ("not resolved below ...") */
} tp_bench_metric;

typedef struct {
    const char *name;
    /* Of a file of Go, else NULL: its first word and its "key:value", a line each, all and those
     * that its name was made of, where "key:" stands for none. */
    const char *keys, *named;
    const char *message;   /* why it failed, or NULL */
    const char *note;      /* NULL, or a remark */
    const char *work_unit; /* may be NULL */
    uint64_t work;         /* units of a round; 0: unknown */
    const char *order;     /* 'A' or 'B' first, per round; NULL: not interleaved */
    size_t rounds, warm_up;
    uint64_t seed;
    /* Every round that was begun, in order of time; those with a reason were measured again.
     * NULL: nobody looked. */
    const tp_round_conditions *attempts;
    size_t n_attempts, n_disturbed;
    double seconds; /* spent on it */
    bool is_sequential;
    bool has_bad_exit;        /* read: has failed only since a command did not return 0 */
    tp_bench_verdict verdict; /* the gravest of the metrics */
    tp_bench_metric *metrics;
    size_t n_metrics;
} tp_bench_result;

typedef struct {
    tp_arena arena;
    const char *tool, *version; /* who wrote it */
    const char *started;        /* "2026-11-21T05:00:00Z" or "" */
    tp_host host;
    bool has_commit;
    tp_commit commit;
    const char *side_a, *side_b; /* what the sides are, for people; NULL: one side */
    tp_rule rule;
    uint64_t seed;
    tp_bench_result *results;
    size_t n_results, capacity;
    bool is_host_known;
    int exit_status; /* of the gate; -1: not concluded */
} tp_bench_report;

/* Room for `capacity` results; grows when needed. */
TP_CHECKED tp_status tp_bench_report_init(tp_bench_report *r, tp_error *err);
void tp_bench_report_release(tp_bench_report *r); /* zeroed is a no-op */

/* A new result with room for n_metrics metrics, all zero.  Valid until the next add. */
tp_bench_result *tp_bench_report_add(tp_bench_report *r, const char *name, size_t n_metrics);
tp_bench_result *tp_bench_report_find(const tp_bench_report *r, const char *name); /* NULL: none */

/* That of the name of `other`, which is one of `others`, or else the one that is the same by its
 * keys: "Sort" of a file of one architecture is "Sort goarch:arm64" of a file of two.  NULL: none.
 */
const tp_bench_result *tp_bench_report_match(const tp_bench_report *r,
                                             const tp_bench_report *others,
                                             const tp_bench_result *other);
/* Results, gravest first and in order among equals: the one behind `x` (NULL: the first), or NULL.
 */
const tp_bench_result *tp_bench_report_worst(const tp_bench_report *r, const tp_bench_result *x);
tp_bench_metric *tp_result_metric(const tp_bench_result *result, const char *name);
/* The unit is the same, or not known of one of them; and so is the direction, where both are
 * judged. */
bool tp_metrics_agree(const tp_metric *a, const tp_metric *b);
const char *tp_bench_report_printf(tp_bench_report *r, const char *fmt, ...) TP_PRINTF(2, 3);
/* A copy of values in the arena. */
const double *tp_bench_report_values(tp_bench_report *r, const double *values, size_t n);

tp_summary tp_summarise(const double *values, size_t n);

/* The metric of its baseline, with which it agrees; else the result is MISSING and NULL comes
 * back. */
tp_bench_metric *tp_result_need(tp_bench_report *r, tp_bench_result *result,
                                const tp_metric *before);

/* Mark a result as failed. */
void tp_result_fail(tp_bench_report *r, tp_bench_result *result, const char *fmt, ...)
    TP_PRINTF(3, 4);

#endif
