/* alarm_feed.h - a recorded run, heard by alarms: all at once, or on from where it was. */
#ifndef TP_INSTRUMENT_MONITOR_ALARM_FEED_H
#define TP_INSTRUMENT_MONITOR_ALARM_FEED_H

#include "instrument/monitor/alarm.h"

typedef struct {
    size_t *n;     /* of each tag: points that were heard */
    int64_t *last; /* its step then */
    size_t n_tags, cap_n, cap_last;
    double until; /* steps after it are passed over; 0: none */
} tp_alarm_feed;

/* Everything that is new in the run, in the order of its steps.  What a restart took back is
 * forgotten, with all that was heard, and the run is heard again. */
void tp_alarm_feed_run(tp_alarm_feed *feed, tp_alarm_set *set, tp_metrics *m);
void tp_alarm_feed_release(tp_alarm_feed *feed); /* zeroed is a no-op */

#endif
