/* profile_collect.h - the figures of a profile, from the events of a training. */
#ifndef TP_API_PROFILE_COLLECT_H
#define TP_API_PROFILE_COLLECT_H

#include "engine/train/trainer.h"
#include "instrument/profile/profile.h"

/* With the phases of a run and the kinds of its memory; tp_profile_data_release(). */
void tp_profile_collect_begin(tp_profile_data *d, int64_t warmup, int64_t n, int64_t recorded);
/* Call at every step of the run, `step` counted from 1 in this run. */
void tp_profile_collect(tp_profile_data *d, const tp_train_event *e, int64_t step);
/* `machine` may be NULL: then no limits are known. */
void tp_profile_collect_end(tp_profile_data *d, const tp_train_event *e, const tp_machine *machine);

#endif
