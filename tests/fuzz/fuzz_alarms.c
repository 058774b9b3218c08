/* fuzz_alarms.c - any bytes as a rule; one that is read hears a few figures, and reads the same
 * again from its own text. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "instrument/monitor/alarm.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[512];
    tp_alarm_rule rule, again;
    tp_alarm_set set = {0};
    tp_error err = {0};
    if (size >= sizeof text)
        return 0;
    memcpy(text, data, size);
    text[size] = 0;
    if (tp_alarm_rule_parse(text, &rule, &err) != TP_OK) {
        if (!err.message[0])
            abort();
        return 0;
    }
    if (rule.n < 1 || rule.n > TP_ALARM_CONDITIONS ||
        tp_alarm_rule_parse(rule.text, &again, &err) != TP_OK || again.n != rule.n)
        abort();
    if (tp_alarm_set_add(&set, text, NULL, &err) != TP_OK)
        abort();
    for (int i = 0; i < 120; i++) {
        double value = i == 60 ? (double)NAN : i % 7 + (i > 90 ? i : 0);
        tp_alarm_set_see(&set, "train/loss", i, 1e9 + i, value);
        tp_alarm_set_see(&set, rule.conditions[0].subject, i % 50, (double)NAN, value);
    }
    tp_alarm_set_release(&set);
    return 0;
}
