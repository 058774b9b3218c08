/* stability.c - what stands between gradients and weights: the loss scale, numbers that are not
 * finite, spikes of the loss, clipping; and the clock of a step. */
#include <math.h>

#include "base/log.h"
#include "base/platform.h"
#include "engine/train/guards.h"
#include "engine/train/trainer_internal.h"
#include "stats/descriptive.h"

enum { NORM_WINDOW = 100, WATCHED_LEAST = 5 };

/* ---- loss scale ---- */

static double unscale_of(const trainer *t)
{
    return tp_trainer_has_scaler(t) ? (double)tp_loss_unscale(&t->scaler) : 1;
}

/* ---- bad steps ---- */

static const char *action_words(const trainer *t, bool stop)
{
    return stop              ? "stopping"
           : t->must_restore ? "going back to the last checkpoint before"
                             : "the update is skipped";
}

static tp_status refuse_to_go_on(trainer *t, const step_result *r, const bad_step *b, tp_error *err)
{
    char loss[32], norm[32], spike[64] = "";
    const char *key = isnan(b->spike) ? "nonfinite_policy" : "spike_policy";
    tp_human_value(r->loss, 6, loss);
    tp_human_value(r->grad_norm, 6, norm);
    if (!isnan(b->spike))
        snprintf(spike, sizeof spike, ", %.1f robust deviations above the median", b->spike);
    return tp_fail(err, TP_ERR_NUMERIC,
                   "step %lld is %s (loss %s, gradient norm %s%s)%s%s. train.%s=skip passes over "
                   "up to train.max_skipped=%lld in a row",
                   (long long)t->state.step + 1, b->why, loss, norm, spike, b->first[0] ? "; " : "",
                   b->first, key, (long long)t->o->train.max_skipped);
}

static tp_status pass_over(trainer *t, step_result *r, bad_step *b, tp_bad_policy policy,
                           uint32_t n_micro, tp_error *err)
{
    char loss[32], norm[32];
    tp_human_value(r->loss, 6, loss);
    tp_human_value(r->grad_norm, 6, norm);
    r->skipped = true;
    t->state.skipped++;
    t->state.skipped_in_row++;
    bool is_too_much = t->state.skipped_in_row > t->o->train.max_skipped;
    bool stop = policy == TP_BAD_STOP || (policy == TP_BAD_SKIP && is_too_much);
    t->must_restore |= policy == TP_BAD_RESTORE && is_too_much;
    b->action = action_words(t, stop);
    TP_TRY(tp_bad_step_look(t, n_micro, b, err));
    tp_trainer_notice(t, "step %lld: loss %s, gradient norm %s: %s; %s%s%s",
                      (long long)t->state.step + 1, loss, norm, b->why, b->first,
                      b->first[0] ? "; " : "", b->action);
    tp_bad_step_record(t, r, b);
    return stop ? refuse_to_go_on(t, r, b, err) : TP_OK;
}

/* ---- an update ---- */

/* What a fault would do, where the configuration asks for it. */
static tp_status inject(trainer *t, tp_error *err)
{
    const tp_f64_list *steps = &t->o->train.inject_nan;
    const tp_states *states = tp_session_states(t->session);
    const float nan = NAN;
    for (size_t i = 0; i < steps->n && i < 64; i++) {
        if (steps->v[i] != (double)(t->state.step + 1) || t->injected >> i & 1)
            continue;
        t->injected |= UINT64_C(1) << i;
        for (size_t k = 0; k < states->n; k++)
            if (states->items[k].role == TP_ROLE_GRADIENT && states->items[k].of)
                return tp_tensor_write(&states->items[k], 0, &nan, sizeof nan, err);
    }
    return TP_OK;
}

/* Clips by the global norm, of those before as well as by what is set. */
static double clip_coefficient(trainer *t, double norm)
{
    double most = t->o->policy.max_grad_norm, percentile = t->o->policy.percentile_clipping;
    if (isfinite(percentile)) {
        tp_step_history_add(&t->state.norms, norm);
        most = fmin(isfinite(most) ? most : INFINITY,
                    tp_step_history_percentile(&t->state.norms, NORM_WINDOW, percentile));
    }
    return isfinite(most) && norm > most ? most / (norm + 1e-6) : 1.0;
}

/* Gradients clipped one by one are unscaled then, and have another norm. */
static tp_status grad_factor(trainer *t, const step_result *r, double *ret, tp_error *err)
{
    double value = t->o->policy.clip_grad_value, adaptive = t->o->policy.adaptive_clip_factor;
    double norm = r->grad_norm, unscale = unscale_of(t);
    if (isfinite(value) || isfinite(adaptive)) {
        TP_TRY(tp_session_clip(t->session, unscale, isfinite(value) ? value : INFINITY, adaptive,
                               err));
        TP_TRY(tp_session_grad_norm(t->session, &norm, err));
        unscale = 1;
    }
    *ret = clip_coefficient(t, norm) * unscale;
    return TP_OK;
}

double tp_trainer_lr(const trainer *t, double base)
{
    return tp_schedule_lr(&t->schedule, base, t->state.step - t->state.unscheduled) *
           t->state.lr_factor;
}

static tp_status apply(trainer *t, step_result *r, tp_error *err)
{
    const tp_optimizer_settings *o = &t->o->policy.optimizer;
    tp_optimizer_step step = {
        .lr = r->lr, .rest_lr = tp_trainer_lr(t, o->rest_lr), .t = t->state.updates + 1};
    tp_optimizer_scalars scalars;
    TP_TRY(grad_factor(t, r, &step.grad_factor, err));
    o->kind->scalars(o, &step, &scalars);
    tp_phases_enter(&t->phases, TP_TIME_OPTIMIZER);
    TP_TRY(tp_session_update(t->session, &scalars, err));
    if (t->o->train.spike_policy)
        tp_step_history_add(&t->state.losses, r->loss);
    t->state.updates++;
    t->state.skipped_in_row = 0;
    r->updates++;
    return tp_trainer_rescale(t, false, err);
}

/* Once, behind an update: the gradients are not needed any more.  All micro-batches are gone
 * through, so that the next one is what it would be. */
static tp_status measure_gradient_error(trainer *t, uint32_t n_micro, tp_error *err)
{
    if (t->o->policy.activation_compression == TP_COMPRESSION_NONE || t->has_gradient_error)
        return TP_OK;
    t->has_gradient_error = true;
    for (uint32_t i = 0; i < n_micro; i++) {
        tp_batch_view view;
        TP_TRY(t->a->replay(t, i, &view, err));
        if (i == 0)
            TP_TRY(tp_session_gradient_error(t->session, &view, &t->gradient_error, err));
    }
    if (!isnan(t->gradient_error))
        tp_trainer_notice(t,
                          "activations in 8 bits: gradients are off by %.2g %% (the norm of the "
                          "difference over the norm, first quarter of a micro-batch)",
                          100 * t->gradient_error);
    return TP_OK;
}

static tp_status leave_out(trainer *t, step_result *r, tp_error *err)
{
    double before = (double)t->scaler.scale;
    r->skipped = r->overflowed = true;
    t->state.overflows++;
    TP_TRY(tp_trainer_rescale(t, true, err));
    tp_trainer_notice(t,
                      "step %lld: gradients overflow float16 at loss scale %g; the update is left "
                      "out, the scale is %g now",
                      (long long)t->state.step + 1, before, (double)t->scaler.scale);
    return TP_OK;
}

tp_status tp_trainer_update(trainer *t, step_result *r, uint32_t n_micro, tp_error *err)
{
    TP_ZONE("optimizer");
    tp_phases_enter(&t->phases, TP_TIME_GRAD_NORM);
    TP_TRY(inject(t, err));
    TP_TRY(tp_session_grad_norm(t->session, &r->grad_norm, err));
    r->grad_norm *= unscale_of(t);
    r->loss_scale = tp_trainer_has_scaler(t) ? (double)t->scaler.scale : 0;
    r->lr = tp_trainer_lr(t, t->o->policy.optimizer.lr);
    if (!isfinite(r->loss) || !isfinite(r->grad_norm)) {
        if (tp_trainer_has_scaler(t) && isfinite(r->loss))
            return leave_out(t, r, err);
        bad_step bad = {.why = "not finite", .spike = NAN};
        tp_bad_policy policy = (tp_bad_policy)t->o->train.nonfinite_policy;
        TP_TRY(pass_over(t, r, &bad, policy, n_micro, err));
        return tp_trainer_rescale(t, true, err);
    }
    double spike = t->o->train.spike_policy
                       ? tp_step_history_spike(&t->state.losses, t->o->train.spike_window, r->loss)
                       : NAN;
    if (spike > t->o->train.spike_threshold) {
        bad_step bad = {.why = "a spike of the loss", .spike = spike};
        tp_bad_policy policy = (tp_bad_policy)(t->o->train.spike_policy - 1);
        return pass_over(t, r, &bad, policy, n_micro, err);
    }
    TP_TRY(apply(t, r, err));
    return measure_gradient_error(t, n_micro, err);
}

/* ---- the clock of a step ---- */

/* By the watchdog's own thread. */
static void say_late(void *user, int64_t step, double limit_s)
{
    trainer *t = user;
    atomic_store(&t->is_late, true);
    tp_log(TP_LOG_WARNING, "train",
           "step %lld has taken more than %.3g s, train.watchdog_factor=%g times the median%s",
           (long long)step, limit_s, t->o->train.watchdog_factor,
           t->o->train.watchdog_action == TP_WATCHDOG_STOP
               ? ": the run ends as soon as the step can be left"
               : "");
}

tp_status tp_trainer_guard(trainer *t, tp_error *err)
{
    tp_trainer_take_scale(t);
    TP_TRY(tp_memory_watch_resume(t, err));
    return isfinite(t->o->train.watchdog_factor) ? tp_watchdog_start(say_late, t, &t->watchdog, err)
                                                 : TP_OK;
}

double tp_trainer_watch(trainer *t)
{
    double median = NAN, limit = NAN;
    size_t n = (size_t)TP_MIN(t->n_recent, RECENT_STEPS);
    atomic_store(&t->is_late, false);
    if (t->watchdog && n >= WATCHED_LEAST && tp_median(t->recent_step_s, n, &median, NULL) == TP_OK)
        limit = fmax(t->o->train.watchdog_least, t->o->train.watchdog_factor * median);
    tp_watchdog_begin(t->watchdog, t->state.step + 1, limit);
    return limit;
}

void tp_trainer_watched(trainer *t, double seconds, double limit_s)
{
    tp_watchdog_end(t->watchdog);
    if (seconds > limit_s)
        tp_trainer_notice(t, "step %lld took %.3g s, longer than %.3g s: train.watchdog_factor=%g",
                          (long long)t->state.step + 1, seconds, limit_s,
                          t->o->train.watchdog_factor);
}
