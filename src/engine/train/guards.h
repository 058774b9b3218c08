/* guards.h - what watches a step: its time, what is unusual beside the steps before, and the scale
 * of a loss in float16. */
#ifndef TP_ENGINE_TRAIN_GUARDS_H
#define TP_ENGINE_TRAIN_GUARDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "engine/checkpoint/checkpoint_folder.h"

/* ---- the time: a thread that looks at the clock while the work is under way ---- */

typedef struct tp_watchdog tp_watchdog;

/* Called by the watchdog's own thread, once for what is late. */
typedef void tp_watchdog_late(void *user, int64_t what, double limit_s);

TP_CHECKED tp_status tp_watchdog_start(tp_watchdog_late *late, void *user, tp_watchdog **ret,
                                       tp_error *err);
void tp_watchdog_stop(tp_watchdog *w); /* NULL is a no-op */

/* `what` is under way and should be done within limit_s seconds (NaN: it is not watched). */
void tp_watchdog_begin(tp_watchdog *w, int64_t what, double limit_s);
void tp_watchdog_end(tp_watchdog *w);

/* ---- the last steps of a run, and what is unusual beside them ----
 *
 * Part of what a checkpoint saves: a resumed run decides as the uninterrupted one. */

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

/* ---- the scale of a loss whose gradients pass through float16, by torch.amp.GradScaler ----
 *
 * Gradients are those of scale * loss.  Where one of them is not finite the update is left out and
 * the scale becomes smaller; after `growth_interval` updates in a row it grows. */

typedef struct {
    float scale;
    double growth_factor, backoff_factor;
    int64_t growth_interval;
    int64_t growth_tracker; /* updates since the scale changed or an overflow */
} tp_loss_scaler;

/* What gradients are multiplied by. */
static inline float tp_loss_unscale(const tp_loss_scaler *s)
{
    return (float)(1.0 / (double)s->scale);
}

/* After a step: did its gradients hold infinity or NaN? */
void tp_loss_scaler_update(tp_loss_scaler *s, bool overflowed);

/* A scale so small that 1 / scale is infinite: every step from here on would be left out. */
TP_CHECKED tp_status tp_loss_scaler_check(const tp_loss_scaler *s, tp_error *err);

#endif
