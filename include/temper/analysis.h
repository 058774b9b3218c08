/* analysis.h - what a training run recorded, whoever ran it: read, judged and compared.
 *
 *     tp_metrics *m;
 *     tp_metrics_open("runs/first", NULL, &m, &err);       // or an event file, a data base, ...
 *     for (size_t i = 0; i < tp_metrics_count(m); i++) {
 *         const tp_metric_point *p;
 *         size_t n = tp_metrics_points(m, i, TP_POINTS_NATIVE, &p);
 *         printf("%s: %zu points\n", tp_metrics_tag(m, i), n);
 *     }
 *     tp_metrics_refresh(m, &changed, &err);               // what was written since
 *     tp_metrics_close(m);
 *
 * A run is a folder, a file, or one of several in a data base ("project.db#name").  Which
 * formats are known, and what each gives: docs/formats/runs.md.
 *
 * Damage is no failure: what can be read is read, and a note names the file, the place and what
 * it means.  A failure is a run that cannot be opened or is of no known kind.
 *
 * Threads: an object (tp_metrics, tp_run_comparison, tp_analysis) by one thread at a time, several
 * objects at once. tp_metrics_points(), tp_metrics_curve*() and tp_metrics_write_json() sort what
 * was read, so that they too need the object to themselves. What takes none, any thread at any
 * time. */
#ifndef TEMPER_ANALYSIS_H
#define TEMPER_ANALYSIS_H

#include "temper/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tp_metrics tp_metrics;

typedef struct {
    int64_t step;     /* TP_STEP_NONE: the record has none */
    double wall_time; /* seconds since 1970; NaN: not recorded */
    double value;     /* may be NaN or infinite: that is what was recorded */
} tp_metric_point;

#define TP_STEP_NONE INT64_MIN

/* Which points count.  Readers of event files disagree about restarts and damage, so it is asked
 * for by name; for other formats the last three are the same as `all`. */
typedef enum {
    TP_POINTS_NATIVE, /* as the format's own program shows them: TensorBoard's Python backend
                         (--load_fast=false); of a run of Temper the latest; else all */
    TP_POINTS_LATEST, /* each step once: what a restart wrote again is left out.  For analysis */
    TP_POINTS_ALL,    /* everything that can be read, also behind damage */
    TP_POINTS_ACCUMULATOR, /* as event_accumulator.EventAccumulator has them in Scalars() */
    TP_POINTS_FAST         /* as TensorBoard's default data server (rustboard) shows them */
} tp_points_view;

/* False when there is no view of this name ("native", "latest", "all", "accumulator", "fast"). */
TP_API bool tp_points_view_named(const char *name, tp_points_view *ret);

typedef struct {
    size_t size;     /* sizeof(tp_metrics_options) */
    const char *run; /* of several in one data base: its name or id; NULL: what follows '#' in the
                        path, else the only one */
    bool follows;    /* it will be refreshed: a last line without its newline waits for it */
} tp_metrics_options;

/* `options` may be NULL.  A path with several runs below is an error that lists them.  "-" is
 * standard input, read to its end, once in a process; a FIFO's path likewise. */
TP_API TP_CHECKED tp_status tp_metrics_open(const char *path, const tp_metrics_options *options,
                                            tp_metrics **ret, tp_error *err);
/* Read what was written since: files that grew, new files.  A file that was replaced or cut is
 * read again from its beginning.  Pointers handed out before are no longer valid.  `ret_changed`
 * may be NULL. */
TP_API TP_CHECKED tp_status tp_metrics_refresh(tp_metrics *m, bool *ret_changed, tp_error *err);
TP_API void tp_metrics_close(tp_metrics *m); /* NULL is a no-op */

TP_API const char *tp_metrics_path(const tp_metrics *m); /* where it was found */
TP_API const char *tp_metrics_name(const tp_metrics *m); /* that, and "#NAME" as it was asked for */
TP_API const char *tp_metrics_format(const tp_metrics *m); /* "tensorboard", "trackio", ... */
TP_API const char *tp_metrics_about(const tp_metrics *m);  /* the same for people */

/* Tags that hold numbers, in order of appearance. */
TP_API size_t tp_metrics_count(const tp_metrics *m);
TP_API const char *tp_metrics_tag(const tp_metrics *m, size_t index);
/* SIZE_MAX when there is none. */
TP_API size_t tp_metrics_find(const tp_metrics *m, const char *tag);
/* In the order in which they were recorded.  *ret belongs to `m` and is valid until its next
 * call with it. */
TP_API size_t tp_metrics_points(tp_metrics *m, size_t index, tp_points_view view,
                                const tp_metric_point **ret);
/* The same, sorted by step, one point per step (the last one recorded), and steps that are the
 * training's where the record has another axis too.  For analysis. */
TP_API size_t tp_metrics_curve(tp_metrics *m, size_t index, const tp_metric_point **ret);
/* How many points that has, how many of them are finite, and the one that was recorded last, which
 * may be NaN, where there is one: of a run that only went on, without a look at the others. */
TP_API size_t tp_metrics_curve_end(tp_metrics *m, size_t index, size_t *ret_finite,
                                   tp_metric_point *ret_last);

/* What is to be known about the files: damage, restarts, further runs below.  A warning says that
 * figures may be incomplete. */
TP_API size_t tp_metrics_notes(const tp_metrics *m);
TP_API const char *tp_metrics_note(const tp_metrics *m, size_t index, bool *ret_is_warning);

/* What the run was started with, as far as it was recorded. */
TP_API size_t tp_metrics_settings(const tp_metrics *m);
TP_API const char *tp_metrics_setting(const tp_metrics *m, size_t index, const char **ret_value);

/* Every pattern names or matches a metric; else an error that lists those that there are. */
TP_API TP_CHECKED tp_status tp_metrics_check_tags(const tp_metrics *m, const char *const *tags,
                                                  size_t n_tags, tp_error *err);
/* One of the patterns names or matches the tag, or there is none. */
TP_API bool tp_metrics_wanted(const char *tag, const char *const *tags, size_t n_tags);

/* {"TAG": [[step, wall_time, value], ...]} in pieces to `write`, which returns false to stop.
 * `tags` NULL: all; shell patterns, `n_tags` of them: those that one of them matches.  A step or a
 * time that was not recorded is null, a value that is no number is "NaN", "Infinity" or
 * "-Infinity". */
TP_API TP_CHECKED tp_status tp_metrics_write_json(
    tp_metrics *m, tp_points_view view, const char *const *tags, size_t n_tags,
    bool (*write)(void *user, const char *text, size_t n), void *user, tp_error *err);

/* ---- two runs, or two groups of them ---- */

/* A metric that every run has, by A's name: "loss" of one program is "train/loss" of another.
 * `effect` is B minus A in the metric's unit: over the steps that all
 * have, aligned by step. */
typedef struct {
    const char *name;
    size_t n; /* steps in common; of groups: runs */
    double mean_a, mean_b;
    double effect, ci_lo, ci_hi; /* NaN where it cannot be known: `why` */
    double p, p_adjusted;        /* two-sided; after Holm over all metrics */
    int direction;               /* 1: more is better, -1: less is, 0: nobody knows */
    const char *verdict;         /* "better", "worse", "changed", "same", "not shown" */
    size_t odd_a, odd_b;         /* values that are NaN or infinite; left out of the means */
    char method[80], why[120];
    const char *name_b; /* what B calls it; NULL: the same */
} tp_compared_metric;

/* At what values are set side by side: at the same steps, after as many tokens, after as long. The
 * last two are interpolated at A's. */
typedef enum { TP_ALIGN_STEPS, TP_ALIGN_TOKENS, TP_ALIGN_TIME } tp_align;

typedef struct {
    size_t size;   /* sizeof(tp_compare_options) */
    double level;  /* of intervals; 0: 0.95 */
    double margin; /* "same" within this share of A's mean; 0: 0.01 */
    tp_align align;
} tp_compare_options;

/* What a path holds, by its name and its first bytes: each kind has a comparison of its own, with
 * the same words for verdicts. */
typedef enum {
    TP_RESULT_RUN, /* or nothing that is known: tp_metrics_open() says why */
    TP_RESULT_EVALUATION,
    TP_RESULT_TRACE,
    TP_RESULT_BENCHMARK,
    TP_RESULT_PROFILE /* profile.json of `temper profile`, or the folder that has it */
} tp_result_kind;
TP_API tp_result_kind tp_result_kind_of(const char *path);

typedef struct tp_run_comparison tp_run_comparison;

/* One run on each side: paired steps.  More: runs are the observations. */
TP_API TP_CHECKED tp_status tp_runs_compare(tp_metrics *const *a, size_t n_a, tp_metrics *const *b,
                                            size_t n_b, const tp_compare_options *options,
                                            tp_run_comparison **ret, tp_error *err);
TP_API void tp_run_comparison_free(tp_run_comparison *c); /* NULL is a no-op */
TP_API size_t tp_run_comparison_count(const tp_run_comparison *c);
TP_API const tp_compared_metric *tp_run_comparison_metric(const tp_run_comparison *c, size_t index);
/* Settings that differ between the first runs of both sides; NULL: not set there. */
TP_API size_t tp_run_comparison_settings(const tp_run_comparison *c);
TP_API const char *tp_run_comparison_setting(const tp_run_comparison *c, size_t index,
                                             const char **ret_a, const char **ret_b);

typedef struct {
    size_t size;             /* sizeof(tp_compare_picture_options) */
    const char *path;        /* .svg, .png (300 dpi) or .pdf, as its name ends */
    const char *const *tags; /* shell patterns; n_tags 0: all.  The first twelve are drawn */
    size_t n_tags;
} tp_compare_picture_options;

/* The curves of both sides as a picture: a group's mean with the interval of it over its runs, at
 * the level of `c`.  The runs are those that were compared.
 * TP_ERR_ARG, TP_ERR_CONFIG: no such metric; TP_ERR_UNSUPPORTED: PNG and PDF need librsvg. */
TP_API TP_CHECKED tp_status tp_run_comparison_picture(const tp_run_comparison *c,
                                                      tp_metrics *const *a, size_t n_a,
                                                      tp_metrics *const *b, size_t n_b,
                                                      const tp_compare_picture_options *options,
                                                      tp_error *err);
/* {"metrics": [{"name", "effect", "ci95", "p_adjusted", "verdict", ...}], ...}; tp_free(). */
TP_API char *tp_run_comparison_json(const tp_run_comparison *c);

/* ---- runs judged ---- */

/* The answer of one dimension.  Formulas and references: docs/formats/analysis.md. */
typedef struct {
    const char *name, *about, *unit;
    double value, ci_lo, ci_hi; /* NaN: unknown */
    size_t n;
    double threshold;    /* NaN: none */
    int direction;       /* 1: a value above the threshold is good, -1: below */
    const char *verdict; /* "pass", "fail", "not shown" (the interval holds the threshold), "not
                            judged" (no threshold), "unknown" (too little to go by), "error" (it
                            broke down); these two have no value, nor
                            has the "fail" of a run that ends without a finite one */
    const char *method, *advice; /* NULL: none */
    const char *error;           /* why there is no value; NULL: there is one */
} tp_analysis_dimension;

typedef struct {
    size_t size;                   /* sizeof(tp_analysis_options) */
    const char *const *dimensions; /* those that are asked, each once; n_dimensions 0: all */
    size_t n_dimensions;
    const char *const *threshold_names; /* thresholds other than the default ones: one for a
                                           dimension, and only of those that are asked */
    const double *thresholds;
    size_t n_thresholds;
    const double *sizes; /* per run: threads, ranks or devices; NULL: from its settings */
    double level;        /* of intervals; 0: 0.95 */
    bool has_target;     /* convergence says when the reward, else the loss, is at `target` */
    double target;
} tp_analysis_options;

typedef struct {
    size_t ran, succeeded, failed, below_threshold; /* ran = succeeded + failed */
    size_t unknown;                                 /* of those that failed: too little to go by */
} tp_analysis_summary;

typedef struct tp_analysis tp_analysis;

/* The dimensions there are; NULL behind the last. */
TP_API const char *tp_analysis_dimension_name(size_t index);
/* The first run is judged; robustness and scalability ask all.  An unknown dimension is an error;
 * one that cannot answer says why, and stops no other. */
TP_API TP_CHECKED tp_status tp_runs_analyze(tp_metrics *const *runs, size_t n,
                                            const tp_analysis_options *options, tp_analysis **ret,
                                            tp_error *err);
TP_API void tp_analysis_free(tp_analysis *a); /* NULL is a no-op */
/* The runs that were asked, by name; NULL behind the last. */
TP_API const char *tp_analysis_run(const tp_analysis *a, size_t index);
TP_API size_t tp_analysis_count(const tp_analysis *a);
TP_API const tp_analysis_dimension *tp_analysis_result(const tp_analysis *a, size_t index);
/* What the value was made of; *ret_text NULL: it is *ret_value.  NULL behind the last. */
TP_API const char *tp_analysis_input(const tp_analysis *a, size_t index, size_t input,
                                     double *ret_value, const char **ret_text);
TP_API tp_analysis_summary tp_analysis_summarize(const tp_analysis *a);
/* {"dimensions": [...], "summary": {...}}, and a report; tp_free(). */
TP_API char *tp_analysis_json(const tp_analysis *a);
TP_API char *tp_analysis_markdown(const tp_analysis *a, const char *title);

/* ---- for people ---- */

/* Tables for a screen of `width` columns; tp_free(). */
TP_API TP_CHECKED tp_status tp_metrics_text(tp_metrics *m, tp_points_view view,
                                            const char *const *tags, size_t n_tags, int width,
                                            char **ret, tp_error *err);
TP_API char *tp_run_comparison_text(const tp_run_comparison *c, int width);
TP_API char *tp_analysis_text(const tp_analysis *a, int width);
typedef struct {
    size_t size;        /* sizeof(tp_report_options) */
    const char *folder; /* NULL: `report` in the folder of a run of Temper, for others in the
                           current folder */
    const char *const *formats; /* of the dashboard: svg, html, png, pdf; n_formats 0: all */
    size_t n_formats;
} tp_report_options;

/* A folder with report.md, dashboard.svg and .html, and dashboard.png (300 dpi) and .pdf where
 * librsvg is installed.  `m` is the run that was judged, `options` may be NULL.  *ret_path: the
 * folder; *ret_note: what was left out and why, or NULL; tp_free() both. */
TP_API TP_CHECKED tp_status tp_analysis_write_report(const tp_analysis *a, tp_metrics *m,
                                                     const tp_report_options *options,
                                                     char **ret_path, char **ret_note,
                                                     tp_error *err);

#ifdef __cplusplus
}
#endif

#endif
