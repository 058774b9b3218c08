/* bench.h - the parts of `temper bench`.
 *
 *     cmd_bench.c       the command line, and which of the following is meant
 *     bench_session.c   running a suite: alone, against another version, or with a baseline
 *     bench_commands.c  any two commands against each other
 *     bench_revision.c  building another revision of the sources
 *     bench_show.c      what the terminal shows
 *     bench_save.c      files in every format, the step summary, the history
 *     bench_history.c   what the history tells
 *     bench_case.c      the suite; bench_subjects.c and bench_<kind>.c the engine's side */
#ifndef TP_CLI_BENCH_H
#define TP_CLI_BENCH_H

#include "cli/bench_case.h"
#include "instrument/bench/baselines.h"
#include "instrument/bench/formats.h"
#include "instrument/bench/runner.h"

typedef struct {
    /* as given; NULL, 0 or NaN when not */
    bool list, formats, json, verbose, strict, allow_missing, aa, update_baseline, no_history,
        ignore_failure, instructions, keep_disturbed;
    const char *budget, *tolerance, *exact_tolerance, *width, *rule;
    const char *name, *kind, *model, *backend, *device, *precision;
    const char *against, *baseline, *save, *benchmark_json, *benchmark_compare;
    const char *command, *vs, *cases, *history;
    int64_t rounds, max_rounds, fresh, batch_size, sequence_length, steps, warm_up, threads, seed;
    double alpha, timeout_s;

    /* made of them */
    double budget_s; /* 0: the default */
    tp_rule tp_rule;
    tp_gate_options gate;
    double precision_width;
    char **patterns;
    int n_patterns;
    char **command_words, **vs_words; /* --cmd and --vs, or words around --vs */
    int n_command_words, n_vs_words;
} tp_bench_flags;

/* ---- what the command can be asked to do; each returns an exit status ---- */
int tp_bench_run_suite(const tp_bench_flags *f);
int tp_bench_run_commands(const tp_bench_flags *f);
int tp_bench_compare_files(const tp_bench_flags *f, char **words, int n);
int tp_bench_show_history(int argc, char **argv);

/* ---- shared ---- */

/* The plan of a measurement; `n_family` comparisons are judged together. */
tp_bench_plan tp_bench_make_plan(const tp_bench_flags *f, bool compares, size_t n_family,
                                 double budget_s);
/* From now on SIGINT and SIGTERM end what is being measured, and then the command. */
void tp_bench_catch_signals(void);
/* Who, where and when; settings. */
void tp_bench_describe(tp_bench_report *r, const tp_bench_flags *f);

/* Read a results file of any format ("FORMAT:FILE" names one). */
TP_CHECKED tp_status tp_bench_load(const char *path, tp_bench_report *ret, tp_error *err);

/* The binary of another version: an existing program, or a revision that is built into the
 * cache first.  `out` holds 4096 bytes, `label` 128. */
TP_CHECKED tp_status tp_bench_other_version(const char *against, char *out, char *label,
                                            tp_error *err);

/* The formats of --save, before anything is measured. */
TP_CHECKED tp_status tp_bench_check_save(const tp_bench_flags *f, tp_error *err);
/* --save, --benchmark-json, $GITHUB_STEP_SUMMARY; then the history unless switched off. */
TP_CHECKED tp_status tp_bench_save(const tp_bench_flags *f, const tp_bench_report *r,
                                   bool with_history, tp_error *err);
/* Where the history is kept: --history, else $XDG_DATA_HOME/temper/bench.sqlite; false when
 * no place is known.  `out` holds 4096 bytes. */
bool tp_bench_history_path(const char *given, char *out);

/* ---- the display ---- */

typedef struct {
    bool json, verbose, live, colour, compares;
    int width, name_width;
    size_t done, total;
    bool has_line;
    double last_draw_s;
    const char *phase;
} tp_bench_show;

void tp_bench_show_init(tp_bench_show *show, const tp_bench_flags *f, bool compares, size_t total,
                        int name_width);
/* Matches tp_bench_plan.observe. */
void tp_bench_show_progress(void *user, const tp_bench_progress *progress);
void tp_bench_show_heading(tp_bench_show *show, const tp_bench_report *r);
/* A finished benchmark; its verdicts may still change when the suite is settled. */
void tp_bench_show_result(tp_bench_show *show, const tp_bench_result *result);
/* Everything at once, after settling: the judged table, the totals, the host. */
void tp_bench_show_verdicts(tp_bench_show *show, const tp_bench_report *r,
                            const tp_gate_options *gate);
void tp_bench_show_clear(tp_bench_show *show);
/* "412.1 ms", "41.2 k tokens/s", "3.1 MiB": `out` holds 48 bytes and is returned. */
char *tp_bench_value(double v, const char *unit, char *out);

#endif
