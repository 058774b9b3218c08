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

#ifdef __cplusplus
}
#endif

#endif
