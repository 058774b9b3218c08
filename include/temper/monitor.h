/* monitor.h - a run watched: alarms over what it records, live or long over, and the machine that
 * it runs on.
 *
 *     tp_alarms *alarms;
 *     tp_alarms_open(NULL, 0, NULL, &alarms, &err);        // the usual rules
 *     tp_alarms_hear(alarms, metrics);                     // again after tp_metrics_refresh()
 *     for (size_t i = 0; i < tp_alarms_count(alarms); i++)
 *         puts(tp_alarms_at(alarms, i)->text);
 *     tp_alarms_close(alarms);
 *
 * Rules are lines of text, "train/loss rises by 3 sigma over 50 steps": docs/guide/monitoring.md.
 *
 * Threads: alarms, a follower and a watch by one at a time. Of a tp_monitor tp_monitor_at() is
 * called by the thread that works, tp_monitor_take() by any one other; tp_monitor_stop() and
 * tp_monitor_close() when neither is inside. */
#ifndef TEMPER_MONITOR_H
#define TEMPER_MONITOR_H

#include "temper/analysis.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- alarms ---- */

typedef struct tp_alarms tp_alarms;

/* What a rule had to say. */
typedef struct {
    const char *name, *rule; /* name: the rule itself where it was given none */
    const char *tag, *text;  /* the metric; "train/loss rose by 4.2 sigma within 50 steps (...)" */
    int64_t step;            /* TP_STEP_NONE: the record has none */
    double wall_time, value; /* wall_time NaN: not recorded */
} tp_alarm_said;

/* `rules`: lines of text; `file`: a recipe or a list of alarms in YAML, or NULL.  Neither: the
 * usual rules. */
TP_API TP_CHECKED tp_status tp_alarms_open(const char *const *rules, size_t n_rules,
                                           const char *file, tp_alarms **ret, tp_error *err);
TP_API void tp_alarms_close(tp_alarms *alarms); /* NULL is a no-op */
/* What the run has recorded since the last call; always of the same run. */
TP_API void tp_alarms_hear(tp_alarms *alarms, tp_metrics *m);
TP_API size_t tp_alarms_count(const tp_alarms *alarms);
/* In the order of the run.  Valid until the next tp_alarms_hear(). */
TP_API const tp_alarm_said *tp_alarms_at(tp_alarms *alarms, size_t index);
/* {"alarms": [{"name", "rule", "tag", "step", "wall_time", "value", "text"}],
 *  "rules": [{"name", "rule", "fired", "why_unjudged"}]}, and the same for people; tp_free(). */
TP_API char *tp_alarms_json(tp_alarms *alarms);
TP_API char *tp_alarms_text(tp_alarms *alarms, int width);

/* ---- figures as they come ---- */

typedef struct tp_follower tp_follower;

/* `m` and `tags` (patterns; n_tags 0: all) stay the caller's and must live as long. */
TP_API tp_follower *tp_follower_new(tp_metrics *m, tp_points_view view, const char *const *tags,
                                    size_t n_tags, bool as_json);
TP_API void tp_follower_free(tp_follower *f); /* NULL is a no-op */
/* A line for each figure since the last call, "TAG STEP VALUE" or {"tag", "step", "wall_time",
 * "value"}; call tp_metrics_refresh() before it.  tp_free(). */
TP_API char *tp_follower_lines(tp_follower *f);

/* ---- a screen ----
 *
 *     tp_watch *w;
 *     tp_watch_open(paths, n, NULL, &w, &err);
 *     do {
 *         frame = tp_watch_frame(w, columns, rows, has_colour);
 *         ...
 *         tp_watch_refresh(w);
 *     } while (!tp_watch_is_over(w));
 *     tp_watch_close(w); */

typedef struct tp_watch tp_watch;

/* Any number of runs, whoever writes them; nothing is ever written into one.  `alarms`: as `file`
 * of tp_alarms_open(), NULL: those of the run's own configuration, else the usual ones. */
TP_API TP_CHECKED tp_status tp_watch_open(const char *const *paths, size_t n, const char *alarms,
                                          tp_watch **ret, tp_error *err);
TP_API void tp_watch_close(tp_watch *w); /* NULL is a no-op */
/* Read what was written since.  A run that cannot be read says why on its line. */
TP_API void tp_watch_refresh(tp_watch *w);
/* Every run is over, as far as it says so: those of Temper do. */
TP_API bool tp_watch_is_over(const tp_watch *w);
/* Where the runs are: progress, curves, values, speed, memory, time to go, alarms; lines of less
 * than `width` columns, `height` of them at most (0: all); tp_free(). */
TP_API char *tp_watch_frame(tp_watch *w, int width, int height, bool has_colour);
/* A line for each run that went on since the last call, and for each alarm; "" when none;
 * tp_free(). */
TP_API char *tp_watch_lines(tp_watch *w);

/* ---- in the background ----
 *
 *     tp_monitor *m;
 *     tp_monitor_start(NULL, &m, &err);
 *     ...                                          // tp_monitor_at(m, step) now and then
 *     while (tp_monitor_take(m, &sample)) ...      // from any one thread
 *     tp_monitor_close(m);
 *
 * A thread samples the process and its machine.  What the kernel does not tell is left out of a
 * sample: it is unknown, not 0. */

typedef struct tp_monitor tp_monitor;

typedef struct {
    size_t size; /* sizeof(tp_monitor_options) */
    /* Seconds between samples of processors, generation and memory; 0: 10, 5 and 15; infinite:
     * none. */
    double training_s, inference_s, memory_s;
} tp_monitor_options;

enum { TP_MONITOR_FIGURES = 24 };

typedef struct {
    const char *group; /* "training", "inference" or "memory" */
    int64_t step;      /* that tp_monitor_at() said last */
    double wall_time;  /* seconds since 1970 */
    struct {
        const char *name, *unit; /* docs/guide/metrics.md */
        double value;
    } figures[TP_MONITOR_FIGURES];
    size_t n;
} tp_monitor_sample;

typedef struct {
    size_t size;              /* sizeof(tp_monitor_report), set by the caller */
    double elapsed_s, cost_s; /* cost: processor time of the thread */
    size_t samples, lost;     /* lost: not taken in time */
} tp_monitor_report;

TP_API TP_CHECKED tp_status tp_monitor_start(const tp_monitor_options *options, tp_monitor **ret,
                                             tp_error *err);
TP_API void tp_monitor_at(tp_monitor *monitor, int64_t step);
/* The oldest sample that was not taken; false when there is none. */
TP_API bool tp_monitor_take(tp_monitor *monitor, tp_monitor_sample *ret);
TP_API void tp_monitor_read_report(tp_monitor *monitor, tp_monitor_report *ret);
/* A last sample of those groups that are nearly due, and no more; they can be taken until the
 * close. */
TP_API void tp_monitor_stop(tp_monitor *monitor);
TP_API void tp_monitor_close(tp_monitor *monitor); /* stops it; NULL is a no-op */

#ifdef __cplusplus
}
#endif

#endif
