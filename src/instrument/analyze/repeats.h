/* repeats.h - several recordings of the same work: what is stable, what varies, what differs.
 *
 * The unit is the file.  Steps and launches inside one file share its host, its clock, its
 * memory layout and its luck; only other runs show what another run would show, so n is the
 * number of files in which a figure is known.  A kernel that some files lack has as many
 * values as there are files with it: missing is not 0.
 *
 *     interval   95 % of the mean over files: t; BCa bootstrap from 8 files on
 *     outlier    the file farthest from the mean of the others when that distance is beyond
 *                their t prediction interval: p times the number of files (Grubbs), and
 *                adjusted over the rows (totals: Holm; names: Benjamini-Hochberg) < 0.05
 *
 * With a second group of files the rows of both are compared, after / before:
 *     ratio      of geometric means with its 95 % interval: Welch on logarithms; of constant
 *                groups the ratio alone
 *     p          of the same Welch test (of the plain values where one is not positive),
 *                adjusted over the rows as above
 *     better     p < 0.05, the interval below 1 and Mann-Whitney agrees at 0.05, which takes
 *                4 files a side; smaller is better in every row
 *     worse      the same above 1
 *     same       the whole interval within 1 % of 1
 *     not shown  anything else */
#ifndef TP_INSTRUMENT_ANALYZE_REPEATS_H
#define TP_INSTRUMENT_ANALYZE_REPEATS_H

#include "instrument/analyze/figures.h"
#include "stats/common.h"
#include "stats/verdict.h"

enum { TP_REPEATS_MIN_BOOTSTRAP = 8, TP_REPEATS_MIN_VERDICT = 4 };

/* Over the files of one group.  What is undefined is NaN and `why` says why. */
typedef struct {
    size_t n;
    double mean, sd, cv, median, min, max;
    tp_interval t_ci, bca;
    const char *why; /* of sd, cv and t_ci */
} tp_repeat_summary;

enum { TP_NO_FILE = -1 };

typedef struct {
    uint32_t name;                             /* in tp_repeats.names */
    uint8_t unit;                              /* tp_figure_unit */
    double *values, *calls;                    /* per file; NaN where the file does not tell */
    tp_repeat_summary of[2];                   /* per group */
    tp_repeat_summary calls_of[2], mean_of[2]; /* calls, and time per call; n = 0 for totals */
    int outlier[2];                            /* file, or TP_NO_FILE */
    double outlier_p[2];                       /* adjusted */
    double ratio, lo, hi, p, p_ranks;          /* of two groups; p adjusted */
    const char *why;                           /* of the interval of the ratio */
    tp_change verdict;
} tp_repeat_row;

typedef struct {
    tp_repeat_row *rows; /* totals in their own order, names by time */
    size_t n, cap;
    uint32_t *row_of; /* name -> row + 1 */
    size_t n_row_of, cap_row_of;
} tp_repeat_table;

typedef struct {
    char *path;
    int group;
    size_t n_devices; /* that have work: their times are added up */
    int64_t rank;
    size_t steps;
    double step_mean_ns, step_sd_ns;
    int twin; /* an earlier file with the same totals to the last digit, or TP_NO_FILE */
} tp_repeat_file;

typedef struct {
    tp_repeat_file *files;
    size_t n_files, room;
    size_t n_group[2];
    bool per_step;
    size_t n_stepless; /* device work that per_step leaves out, and its time */
    int64_t stepless_ns;
    tp_repeat_table tables[TP_FIGURE_TABLES];
    tp_string_table names;
} tp_repeats;

/* Room for `n_files` files, which are added one after another (so that only one lies in
 * memory) and concluded once. */
void tp_repeats_init(tp_repeats *repeats, size_t n_files, bool per_step);
TP_CHECKED tp_status tp_repeats_add(tp_repeats *repeats, const tp_trace_file *file, int group,
                                    const tp_select_options *options, tp_error *err);
TP_CHECKED tp_status tp_repeats_conclude(tp_repeats *repeats, tp_error *err);
void tp_repeats_release(tp_repeats *repeats);

/* The file of n values that is farthest from the others, and its p: n times the two-sided
 * t of its distance from the mean of the others.  TP_NO_FILE with fewer than 3 values or when
 * all are equal. */
int tp_find_outlier(const double *values, size_t n, double *ret_p);

#endif
