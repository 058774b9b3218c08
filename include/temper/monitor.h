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
 * Rules are lines of text, "train/loss rises by 3 sigma over 50 steps": docs/guide/monitoring.md. */
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
    size_t size; /* sizeof(tp_monitor_report), set by the caller */
    double elapsed_s, cost_s; /* cost: processor time of the thread */
    size_t samples, lost;     /* lost: not taken in time */
} tp_monitor_report;

TP_API TP_CHECKED tp_status tp_monitor_start(const tp_monitor_options *options, tp_monitor **ret,
                                             tp_error *err);
TP_API void tp_monitor_at(tp_monitor *monitor, int64_t step);
/* The oldest sample that was not taken; false when there is none. */
TP_API bool tp_monitor_take(tp_monitor *monitor, tp_monitor_sample *ret);
TP_API void tp_monitor_read_report(tp_monitor *monitor, tp_monitor_report *ret);
/* A last sample of every group, and no more; they can be taken until the close. */
TP_API void tp_monitor_stop(tp_monitor *monitor);
TP_API void tp_monitor_close(tp_monitor *monitor); /* stops it; NULL is a no-op */

#ifdef __cplusplus
}
#endif

#endif
