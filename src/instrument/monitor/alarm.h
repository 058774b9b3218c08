/* alarm.h - rules that listen to the figures of a run, and what they heard.
 *
 *     tp_alarm_set set = {0};
 *     tp_alarm_set_add(&set, "train/loss rises by 3 sigma over 50 steps", NULL, err);
 *     tp_alarm_set_see(&set, "train/loss", step, wall, value);    // as they are recorded
 *     for (; next < set.n_events; next++)
 *         ... set.events[next] ...
 *
 * A rule says something once when it comes true, and again only after it was not true for as long
 * as its window.  The same set hears a run while it goes and one that is over. */
#ifndef TP_INSTRUMENT_MONITOR_ALARM_H
#define TP_INSTRUMENT_MONITOR_ALARM_H

#include "instrument/ingest/string_table.h"
#include "instrument/monitor/alarm_series.h"

enum { TP_ALARM_NAME = 64, TP_ALARM_SAID = 400, TP_ALARM_RULES = 64, TP_ALARM_EVENTS = 10000 };

/* A condition has one for every tag that is its best name: each GPU, each task of a pattern. */
typedef struct {
    size_t condition;
    uint32_t tag; /* of the set's tags */
    int rank;
    tp_alarm_series series;
    bool holds;
    char text[TP_ALARM_SAID];
} tp_alarm_ear;

typedef struct {
    char name[TP_ALARM_NAME];
    tp_alarm_rule rule;
    tp_alarm_ear *ears;
    size_t n_ears, cap_ears;
    bool is_on;
    size_t quiet; /* values of a condition's first ear since it was true last */
} tp_alarm;

typedef struct {
    size_t alarm; /* which of the set */
    double step, wall, value;
    char tag[TP_ALARM_SUBJECT];
    char text[TP_ALARM_SAID]; /* "train/loss rose by 4.2 sigma within 50 steps (2.1 to 2.8)" */
} tp_alarm_event;

typedef struct {
    tp_alarm *alarms;
    size_t n, cap;
    tp_alarm_event *events;
    size_t n_events, cap_events; /* at most TP_ALARM_EVENTS are kept ... */
    size_t n_more;               /* ... and so many came behind them */
    tp_string_table tags;        /* that were seen; 0 is the empty text */
    int8_t *ranks;               /* of a tag for every condition: -1, it is not for this one */
    size_t n_ranked, cap_ranks;
} tp_alarm_set;

/* `name` NULL: the rule's own text. */
TP_CHECKED tp_status tp_alarm_set_add(tp_alarm_set *set, const char *rule, const char *name,
                                      tp_error *err);
/* The rules that most runs want; docs/guide/monitoring.md lists them. */
void tp_alarm_set_add_usual(tp_alarm_set *set);
void tp_alarm_set_release(tp_alarm_set *set); /* zeroed is a no-op */

/* `step` or `wall` NaN: not recorded. */
void tp_alarm_set_see(tp_alarm_set *set, const char *tag, double step, double wall, double value);
/* Is the figure asked for by any rule? */
bool tp_alarm_set_wants(const tp_alarm_set *set, const char *tag);
/* Forget what was heard, keep the rules. */
void tp_alarm_set_forget(tp_alarm_set *set);
/* Why a rule was never judged so far; NULL when it was. */
const char *tp_alarm_unjudged(const tp_alarm_set *set, size_t alarm, char *out, size_t size);

#endif
