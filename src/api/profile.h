/* profile.h - the tables of recorded steps: operators, ranges, memory, phases. */
#ifndef TP_API_PROFILE_H
#define TP_API_PROFILE_H

#include "engine/exec/machine.h"
#include "engine/train/trainer.h"
#include "text/json/json.h"
#include "trace/summary.h"
#include "instrument/profile/profile.h"

/* `machine` may be NULL: then there is no share of the roofline. */
void tp_table_profile(const tp_train_event *e, const tp_machine *machine,
                      const tp_trace_summary *summary, int width, tp_buf *out);
/* An object. */
void tp_json_profile(const tp_train_event *e, const tp_machine *machine,
                     const tp_trace_summary *summary, tp_json_w *w);

/* The figures of a profile, from the events of a training. */

/* With the phases of a run and the kinds of its memory; tp_profile_data_release(). */
void tp_profile_collect_begin(tp_profile_data *d, int64_t warmup, int64_t n, int64_t recorded);
/* Call at every step of the run, `step` counted from 1 in this run. */
void tp_profile_collect(tp_profile_data *d, const tp_train_event *e, int64_t step);
/* `machine` may be NULL: then no limits are known. */
void tp_profile_collect_end(tp_profile_data *d, const tp_train_event *e, const tp_machine *machine);

#endif
