/* watching.h - the monitor and the alarms of a run while it goes.
 *
 *     tp_watching w = {0};
 *     TP_TRY(tp_watching_read(&w, config, options, err));    // the rules, before anything starts
 *     tp_watching_begin(&w, bus, start);
 *     ... tp_watching_note(&w, event) at every event, tp_watching_request() after every step ...
 *     tp_watching_end(&w);
 *     tp_watching_release(&w); */
#ifndef TP_API_WATCHING_H
#define TP_API_WATCHING_H

#include <sys/types.h>

#include "engine/train/trainer.h"
#include "instrument/monitor/alarm_plan.h"
#include "temper/monitor.h"

enum { TP_WATCHING_COMMANDS = 4 };

typedef struct {
    const tp_train_options *o;
    tp_alarm_plan plan;
    tp_metric_bus *bus;
    tp_monitor *monitor;
    char run_dir[2048];
    int attempt;
    size_t n_done; /* events of the plan's set that were acted on */
    double cost_s; /* on the trainer's thread: hearing and publishing */
    double started_s;
    struct {
        pid_t pid; /* 0: none */
        double started_s;
    } commands[TP_WATCHING_COMMANDS];
} tp_watching;

TP_CHECKED tp_status tp_watching_read(tp_watching *w, const tp_config *config,
                                      const tp_train_options *options, tp_error *err);
void tp_watching_begin(tp_watching *w, tp_metric_bus *bus, const tp_train_event *start);
void tp_watching_note(tp_watching *w, const tp_train_event *event);
bool tp_watching_request(tp_watching *w, tp_train_request *ret);
void tp_watching_end(tp_watching *w); /* while the bus is there still */
void tp_watching_release(tp_watching *w);

#endif
