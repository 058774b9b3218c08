/* alarm_rule.h - what an alarm listens for, as one line of text.
 *
 *     rule      = condition { "and" condition }
 *     condition = subject predicate [ "over" window ] [ "for" window ]
 *     subject   = a quantity: loss, reward, entropy, KL, memory, throughput, clip fraction, ...
 *               | a metric: train/loss, 'lm loss'
 *     predicate = "above" amount | "below" amount
 *               | "rises" [ "by" ] amount | "falls" [ "by" ] amount
 *               | "flat" [ "within" amount ]
 *               | "collapses" [ "to" amount ]
 *               | "is" "not" "finite"
 *               | "repeats"
 *     amount    = number [ "%" | "sigma" | a unit of bytes or of time ]
 *     window    = number ( "steps" | "s" | "min" | "h" ) | "the" "run"
 *
 * What each predicate means: alarm_series.h. */
#ifndef TP_INSTRUMENT_MONITOR_ALARM_RULE_H
#define TP_INSTRUMENT_MONITOR_ALARM_RULE_H

#include "instrument/analyze/runs/curve.h"

typedef enum {
    TP_ALARM_ABOVE,
    TP_ALARM_BELOW,
    TP_ALARM_RISES,
    TP_ALARM_FALLS,
    TP_ALARM_FLAT,
    TP_ALARM_COLLAPSES,
    TP_ALARM_NOT_FINITE,
    TP_ALARM_REPEATS
} tp_alarm_predicate;

typedef enum { TP_ALARM_PLAIN, TP_ALARM_PERCENT, TP_ALARM_SIGMA } tp_alarm_unit;

enum { TP_ALARM_SUBJECT = 96, TP_ALARM_CONDITIONS = 4, TP_ALARM_TEXT = 240 };

/* Of steps, or of seconds; 0: none was given; infinite: the run. */
typedef struct {
    double length;
    bool is_time;
} tp_alarm_window;

typedef struct {
    char subject[TP_ALARM_SUBJECT]; /* as it was written, without quotes */
    int role;                       /* tp_run_role; -1: the subject is the name of a metric */
    tp_alarm_predicate predicate;
    double amount; /* NaN: none was given */
    tp_alarm_unit unit;
    tp_alarm_window over, hold;
} tp_alarm_condition;

typedef struct {
    char text[TP_ALARM_TEXT];
    tp_alarm_condition conditions[TP_ALARM_CONDITIONS];
    size_t n;
} tp_alarm_rule;

/* TP_ERR_CONFIG: "'TEXT', column N: what is wrong; what there is". */
TP_CHECKED tp_status tp_alarm_rule_parse(const char *text, tp_alarm_rule *ret, tp_error *err);

/* Whether the tag is what the condition listens to: 0 is its first choice, -1: it is not. */
int tp_alarm_rank(const tp_alarm_condition *c, const char *tag);

#endif
