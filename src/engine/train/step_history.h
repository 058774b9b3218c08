/* step_history.h - the last steps of a run, and what is unusual beside them.
 *
 * Part of what a checkpoint saves: a resumed run decides as the uninterrupted one. */
#ifndef TP_ENGINE_TRAIN_STEP_HISTORY_H
#define TP_ENGINE_TRAIN_STEP_HISTORY_H

#include "engine/checkpoint/checkpoint_folder.h"

void tp_step_history_add(tp_step_history *h, double x);
int64_t tp_step_history_length(const tp_step_history *h, int64_t window); /* at most the window */
/* The i-th of the last `length`, the oldest first. */
double tp_step_history_at(const tp_step_history *h, int64_t length, int64_t i);

/* Of the last `window` in ascending order, the one that `percent` of them lie below; NaN: none. */
double tp_step_history_percentile(const tp_step_history *h, int64_t window, double percent);

/* How many robust standard deviations x lies above the median of the last `window`: (x - median) /
 * max(1.4826 * MAD, 1 % of |median|), MAD the median distance from the median.  NaN while there
 * are fewer than TP_SPIKE_LEAST. */
enum { TP_SPIKE_LEAST = 10 };
double tp_step_history_spike(const tp_step_history *h, int64_t window, double x);

#endif
