/* alarm_plan.h - alarms as a recipe has them: rules, and what each does.
 *
 *     monitor:
 *       alarms:
 *         - train/loss rises by 3 sigma over 50 steps
 *         - when: memory above 80 %
 *           name: memory
 *           do: [say, checkpoint, {run: [notify-send, "memory"]}, {lower_rate: 0.5}]
 *
 * `do` is a list of, or one of:
 *     say          a warning in the log, now
 *     mark         a line in RUN/alarms.jsonl; say and mark are what an alarm does by default
 *     checkpoint   save one after the step
 *     stop         end the run after the step, saved: --resume goes on
 *     lower_rate: F     learning rates times F from the next step on, for the rest of the run
 *     run: [PROGRAM, ARGUMENT...]     start it, without a shell; with TEMPER_ALARM, _RULE, _STEP,
 *                       _TEXT and _RUN in its environment
 * `usual` instead of a rule stands for the rules that most runs want. */
#ifndef TP_INSTRUMENT_MONITOR_ALARM_PLAN_H
#define TP_INSTRUMENT_MONITOR_ALARM_PLAN_H

#include "instrument/monitor/alarm.h"
#include "text/json/json.h"

enum {
    TP_ALARM_SAY = 1,
    TP_ALARM_MARK = 2,
    TP_ALARM_CHECKPOINT = 4,
    TP_ALARM_STOP = 8,
    TP_ALARM_MOST_WORDS = 32
};

typedef struct {
    unsigned does;
    double lower_rate;                   /* 0: it does not */
    char *argv[TP_ALARM_MOST_WORDS + 1]; /* argv[0] NULL: runs nothing */
} tp_alarm_deed;

typedef struct {
    tp_alarm_set set;
    tp_alarm_deed *deeds; /* one for each alarm of the set */
    size_t cap_deeds;
} tp_alarm_plan;

/* A list of alarms, added to the plan; NULL is an empty one.  TP_ERR_CONFIG: `where` is the path
 * below the list, ".0.when" (64 bytes). */
TP_CHECKED tp_status tp_alarm_plan_read(tp_alarm_plan *plan, const tp_json *list, char where[64],
                                        tp_error *err);
/* A YAML file: such a list, or a recipe with monitor.alarms. */
TP_CHECKED tp_status tp_alarm_plan_load(tp_alarm_plan *plan, const char *path, tp_error *err);
/* One rule that says and marks. */
TP_CHECKED tp_status tp_alarm_plan_add(tp_alarm_plan *plan, const char *rule, tp_error *err);
void tp_alarm_plan_release(tp_alarm_plan *plan); /* zeroed is a no-op */

#endif
