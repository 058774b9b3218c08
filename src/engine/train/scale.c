/* scale.c - the loss scale of a training in float16: taken from options or state, kept in both. */
#include "engine/train/trainer_internal.h"

#include <math.h>

#include "engine/train/guards.h"

bool tp_trainer_has_scaler(const trainer *t)
{
    return t->o->policy.precision == TP_PRECISION_FLOAT16 && t->o->policy.grad_scaler.enabled;
}

static void keep_scale(trainer *t)
{
    t->state.loss_scale = (double)t->scaler.scale;
    t->state.growth_tracker = t->scaler.growth_tracker;
    tp_session_set_loss_scale(t->session, t->scaler.scale);
}

tp_status tp_trainer_rescale(trainer *t, bool overflowed, tp_error *err)
{
    if (!tp_trainer_has_scaler(t))
        return TP_OK;
    tp_loss_scaler_update(&t->scaler, overflowed);
    keep_scale(t);
    return tp_loss_scaler_check(&t->scaler, err);
}

void tp_trainer_take_scale(trainer *t)
{
    if (!tp_trainer_has_scaler(t))
        return;
    bool is_saved = t->state.loss_scale != 0;
    t->scaler = (tp_loss_scaler){
        .scale = (float)(is_saved ? t->state.loss_scale : t->o->policy.grad_scaler.init_scale),
        .growth_factor = t->o->policy.grad_scaler.growth_factor,
        .backoff_factor = t->o->policy.grad_scaler.backoff_factor,
        .growth_interval = t->o->policy.grad_scaler.growth_interval,
        .growth_tracker = is_saved ? t->state.growth_tracker : 0};
    keep_scale(t);
}

/* ---- the rules ---- */

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
