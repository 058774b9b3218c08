/* loss_scaler.h - the scale of a loss whose gradients pass through float16, by the rules of
 * torch.amp.GradScaler.
 *
 * Gradients are those of scale * loss.  Where one of them is not finite the update is left out and
 * the scale becomes smaller; after `growth_interval` updates in a row it grows. */
#ifndef TP_ENGINE_TRAIN_LOSS_SCALER_H
#define TP_ENGINE_TRAIN_LOSS_SCALER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

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
