/* loss_scaler.c - see the header. */
#include "engine/train/loss_scaler.h"

#include <math.h>

static void grow(tp_loss_scaler *s)
{
    float larger = (float)((double)s->scale * s->growth_factor);
    if (isfinite(larger))
        s->scale = larger;
    s->growth_tracker = 0;
}

void tp_loss_scaler_update(tp_loss_scaler *s, bool overflowed)
{
    if (overflowed) {
        s->scale = (float)((double)s->scale * s->backoff_factor);
        s->growth_tracker = 0;
    } else if (s->growth_tracker + 1 == s->growth_interval) {
        grow(s);
    } else {
        s->growth_tracker++;
    }
}

tp_status tp_loss_scaler_check(const tp_loss_scaler *s, tp_error *err)
{
    if (isfinite(tp_loss_unscale(s)))
        return TP_OK;
    return tp_fail(err, TP_ERR_NUMERIC,
                   "gradients overflow float16 at every loss scale, down to %.3g: no step can be "
                   "made any more; train with policy.precision=bfloat16",
                   (double)s->scale);
}
