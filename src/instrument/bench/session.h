/* session.h - a session of measurements, as temper/bench.h describes it.
 *
 *     suite.c         the benchmarks: suite.def, YAML files
 *     session.c       running a suite: alone, against another version, or with a baseline
 *     two_commands.c  any two commands against each other
 *     revision.c      building another revision of the sources
 *     show.c          what is said about it, as text
 *     save.c          files in every format, the step summary, the history
 *     trends.c        what the history tells */
#ifndef TP_INSTRUMENT_BENCH_SESSION_H
#define TP_INSTRUMENT_BENCH_SESSION_H

#include "instrument/bench/baselines.h"
#include "instrument/bench/formats.h"
#include "instrument/bench/runner.h"
#include "instrument/bench/suite.h"
#include "temper/bench.h"

/* Options with their defaults in place, and what follows from them. */
typedef struct {
    tp_bench_options o;
    tp_rule rule;
    tp_gate_options gate;
    const char *const *patterns;
    size_t n_patterns;
} tp_bench_setup;

tp_bench_setup tp_bench_setup_make(const tp_bench_options *options, const char *const *patterns,
                                   size_t n);
/* Say a remark of printf's form. */
void tp_bench_note(const tp_bench_setup *setup, const char *fmt, ...) TP_PRINTF(2, 3);

/* ---- what can be asked for; *ret_exit as in temper/bench.h ---- */
TP_CHECKED tp_status tp_session_bench(const tp_bench_setup *setup, int *ret_exit, tp_error *err);
TP_CHECKED tp_status tp_session_list(const tp_bench_setup *setup, tp_buf *out, tp_error *err);
TP_CHECKED tp_status tp_session_commands(const tp_bench_setup *setup, const char *const *a,
                                         size_t n_a, const char *const *b, size_t n_b,
                                         int *ret_exit, tp_error *err);
TP_CHECKED tp_status tp_session_compare(const tp_bench_setup *setup, const char *before,
                                        const char *after, int *ret_exit, tp_error *err);
/* Adds nothing when nothing matches. */
TP_CHECKED tp_status tp_trends_write(const tp_bench_history_options *options,
                                     const char *const *patterns, size_t n, tp_buf *out,
                                     tp_error *err);

/* ---- shared ---- */

/* The plan of a measurement; `n_family` comparisons are judged together. */
tp_bench_plan tp_bench_make_plan(const tp_bench_setup *setup, bool compares, size_t n_family,
                                 double budget_s);
/* Say that a fixed number of rounds can show nothing among so many comparisons, if so. */
void tp_bench_note_rounds(const tp_bench_setup *setup, size_t n_family);
/* Who, where and when; settings. */
void tp_bench_describe(tp_bench_report *r, const tp_bench_setup *setup);

/* Read a results file of any format ("FORMAT:FILE" names one). */
TP_CHECKED tp_status tp_bench_load(const tp_bench_setup *f, const char *path, tp_bench_report *ret,
                                   tp_error *err);

/* The binary of another version: an existing program, or a revision that is built into the
 * cache first.  `out` holds 4096 bytes, `label` 128. */
TP_CHECKED tp_status tp_bench_other_version(const tp_bench_setup *setup, char *out, char *label,
                                            tp_error *err);

/* The formats of `save`, before anything is measured. */
TP_CHECKED tp_status tp_bench_check_save(const tp_bench_setup *setup, tp_error *err);
/* `save`, `benchmark_json`, $GITHUB_STEP_SUMMARY; then the history unless switched off. */
TP_CHECKED tp_status tp_bench_save(const tp_bench_setup *setup, const tp_bench_report *r,
                                   bool with_history, tp_error *err);
/* Where the history is kept: the given file, else $XDG_DATA_HOME/temper/bench.sqlite; false when
 * no place is known.  `out` holds 4096 bytes. */
bool tp_bench_history_path(const char *given, char *out);

/* ---- what is said ---- */

typedef struct {
    const tp_bench_options *o;
    bool compares;
    int name_width;
    size_t done, total;
    double each_s; /* a benchmark takes at most; NaN: not known */
    bool has_line;
    double last_draw_s;
    tp_buf out; /* what is not yet said */
} tp_bench_show;

void tp_bench_show_init(tp_bench_show *show, const tp_bench_setup *setup, bool compares,
                        size_t total, int name_width);
void tp_bench_show_release(tp_bench_show *show);
/* Matches tp_bench_plan.observe. */
void tp_bench_show_progress(void *user, const tp_bench_progress *progress);
void tp_bench_show_heading(tp_bench_show *show, const tp_bench_report *r);
/* A finished benchmark; its verdicts may still change when the suite is settled. */
void tp_bench_show_result(tp_bench_show *show, const tp_bench_result *result);
/* Everything at once, after settling: the judged table, the totals, the host. */
void tp_bench_show_verdicts(tp_bench_show *show, const tp_bench_report *r,
                            const tp_gate_options *gate);
/* With `json`: the report. */
void tp_bench_show_json(tp_bench_show *show, const tp_bench_report *r);
/* Say what stands in show->out. */
void tp_bench_show_clear(tp_bench_show *show);
/* "412.1 ms", "41.2 k tokens/s", "3.1 MiB": `out` holds 48 bytes and is returned. */
char *tp_bench_value(double v, const char *unit, char *out);

#endif
