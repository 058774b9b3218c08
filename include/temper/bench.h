/* bench.h - measure speed and memory, compare versions and commands, keep what was measured.
 *
 * What `temper bench` does: a suite of benchmarks (docs/guide/benchmarks.md), each in a process of
 * its own, alone or interleaved with another version; a decision rule with intervals; a gate.
 *
 *     tp_bench_options o = {.size = sizeof o, .budget_s = 60, .print = print};
 *     status = tp_bench_run(patterns, 1, &o, &exit_status, &err);
 *
 * A program that measures itself answers "PROGRAM bench worker" with tp_bench_serve().
 *
 * Threads: one measurement at a time in a process (tp_bench_run(), tp_bench_commands(),
 * tp_bench_serve()), as others would disturb it; tp_bench_interrupt() from any thread and from a
 * handler of signals; everything else from any thread at any time. */
#ifndef TEMPER_BENCH_H
#define TEMPER_BENCH_H

#include "temper/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All texts may be NULL; members that are zero have the default. */
typedef struct {
    size_t size; /* sizeof(tp_bench_options) */

    /* What is said: lines as they come; a line that is drawn anew (NULL: it goes); remarks about
     * the measurement.  NULL: not said. */
    void (*print)(void *user, const char *text);
    void (*progress)(void *user, const char *line);
    void (*note)(void *user, const char *text);
    void *user;
    bool json, verbose, colour;
    int width; /* columns of `progress`; 0: 100 */

    /* How long, and how exactly. */
    double budget_s;            /* for everything; 0: 10 s a benchmark alone, 30 s compared */
    int64_t rounds, max_rounds; /* exactly so many; at most */
    double interval_width;      /* alone: stop at this relative width; 0: 0.01 */
    int64_t fresh;              /* start programs anew every N rounds; 0: 2, -1: never */
    bool has_seed;
    int64_t seed;     /* of the order of the rounds; else 1 */
    double timeout_s; /* of one run; 0: 600 */
    bool keep_disturbed;

    /* What it is compared with: at most one. */
    const char *against;  /* a git revision (built first) or a program */
    const char *baseline; /* baselines.json or any results file */
    bool aa;              /* this version with itself */
    bool update_baseline; /* of `baseline`, else baselines.json */

    /* When it is worse. */
    double alpha; /* chance of any false alarm over the suite; 0: 0.05 */
    bool has_tolerance;
    double tolerance;       /* a fraction; else 0.05 */
    double exact_tolerance; /* of exact figures */
    bool by_point;          /* the plain tolerance rule decides */
    bool strict, allow_missing;

    /* Which benchmarks: those that match, with these changed; or one made of them. */
    const char *cases; /* more of them: a YAML file or a folder; NULL: bench/cases if it is there */
    const char *name, *kind, *model, *backend, *device, *precision;
    int64_t batch_size, sequence_length, steps, threads;
    bool has_warm_up;
    int64_t warm_up;

    /* Of commands. */
    bool ignore_failure, instructions;

    /* What is kept. */
    const char *save;           /* "FORMAT:FILE,...": tp_bench_format_table() */
    const char *benchmark_json; /* the same as pytest-benchmark:FILE */
    const char *history;        /* NULL: $XDG_DATA_HOME/temper/bench.sqlite */
    bool no_history;
} tp_bench_options;

/* Measure what matches one of the n patterns (none: all).  *ret_exit is an exit status, also when
 * it fails: 0 nothing is worse, 1 a regression or something is missing, 3 not measured.
 * TP_ERR_CONFIG, TP_ERR_IO, TP_ERR_FORMAT, TP_ERR_OUTPUT, TP_ERR_INTERRUPTED ... */
TP_API TP_CHECKED tp_status tp_bench_run(const char *const *patterns, size_t n,
                                         const tp_bench_options *options, int *ret_exit,
                                         tp_error *err);
/* The benchmarks that match; *ret: tp_free(). */
TP_API TP_CHECKED tp_status tp_bench_list(const char *const *patterns, size_t n,
                                          const tp_bench_options *options, char **ret,
                                          tp_error *err);
/* Two commands against each other; one word is a command line, several are taken as they are. */
TP_API TP_CHECKED tp_status tp_bench_commands(const char *const *a, size_t n_a,
                                              const char *const *b, size_t n_b,
                                              const tp_bench_options *options, int *ret_exit,
                                              tp_error *err);
/* Two results files, of any tool. */
TP_API TP_CHECKED tp_status tp_bench_compare(const char *before, const char *after,
                                             const tp_bench_options *options, int *ret_exit,
                                             tp_error *err);

typedef struct {
    size_t size; /* sizeof(tp_bench_history_options) */
    bool json, all_hosts, all_metrics;
    const char *history, *metric, *svg; /* the file; only this metric; a folder for pictures */
    double alpha;                       /* of a change point; 0: 0.01 */
} tp_bench_history_options;

/* What was measured over time, and where it changed.  *ret is NULL when nothing matches, else:
 * tp_free(). */
TP_API TP_CHECKED tp_status tp_bench_history(const char *const *patterns, size_t n,
                                             const tp_bench_history_options *options, char **ret,
                                             tp_error *err);

/* The formats that are written and read, as a table: tp_free(). */
TP_API char *tp_bench_format_table(void);

/* Be the worker: answer on standard output what standard input asks for, to its end. */
TP_API TP_CHECKED tp_status tp_bench_serve(tp_error *err);

/* End what is being measured or built with TP_ERR_INTERRUPTED.  Safe in a handler of signals. */
TP_API void tp_bench_interrupt(void);

#ifdef __cplusplus
}
#endif

#endif
