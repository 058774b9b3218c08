/* trainer.c - the loop of a run. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "base/clock.h"
#include "base/working.h"
#include "engine/train/fit.h"
#include "engine/train/trainer_internal.h"

struct tp_train_loop {
    trainer t;
    tp_train_options own;
    tp_train_hooks own_hooks;
    tp_recipe fitted; /* to several ranks; else empty */
    tp_status status; /* once it is not TP_OK no step is done any more; `failure` says why */
    tp_error failure;
    bool has_begun; /* observers know of it */
};

bool tp_trainer_should_stop(const trainer *t)
{
    if (t->comm) /* between steps, all at once */
        return t->stops;
    if (t->o->train.watchdog_action == TP_WATCHDOG_STOP && atomic_load(&t->is_late))
        return true;
    return t->hooks->should_stop && t->hooks->should_stop(t->hooks->user);
}

static double since_start(const trainer *t) { return tp_clock_s() - t->started_s; }

/* ---- one step ---- */

tp_trainer_stopwatch tp_trainer_begin_graph(trainer *t)
{
    tp_phases_enter(&t->phases, TP_TIME_FORWARD);
    return (tp_trainer_stopwatch){tp_session_phase_ns(t->session, TP_PHASE_BACKWARD)};
}

/* Time inside the training graph is forward or backward by the launches' own clocks. */
void tp_trainer_end_graph(trainer *t, tp_trainer_stopwatch w)
{
    uint64_t backward = tp_session_phase_ns(t->session, TP_PHASE_BACKWARD) - w.backward_ns;
    tp_phases_enter(&t->phases, TP_TIME_FORWARD); /* charge up to now */
    tp_phases_move(&t->phases, TP_TIME_FORWARD, TP_TIME_BACKWARD, backward);
}

void tp_trainer_count(trainer *t, const tp_microbatch *mb, step_result *r)
{
    r->used += mb->n_tokens;
    r->padded += tp_session_rows(t->session, TP_MAX(mb->n_used, 1)) - mb->n_tokens;
    r->trained += mb->n_trained;
    r->sequences += mb->n_sequences;
    r->flops += tp_trainer_step_flops(t->model, mb->n_tokens, (double)mb->sum_of_squares);
    r->data_hash = XXH3_64bits_withSeed(mb->tokens, (size_t)mb->n_used * sizeof *mb->tokens,
                                        r->data_hash + r->n_micro);
    r->n_micro++;
}

/* A failure leaves the state as after the step before; TP_ERR_INTERRUPTED, and the failure of a
 * step that is void, the weights as well. */
static tp_status run_step(trainer *t, step_result *r, tp_error *err)
{
    TP_ZONE("step");
    t->phases.step = t->state.step + 1;
    double least_s = tp_trainer_least_seconds(t);
    double start = tp_clock_s(), limit = tp_trainer_watch(t);
    tp_trainer_count_launches(t, true);
    tp_status status = t->a->step(t, r, err);
    tp_trainer_count_launches(t, false);
    r->seconds = tp_clock_s() - start;
    r->least_s = tp_trainer_least_seconds(t) - least_s;
    tp_trainer_watched(t, r->seconds, limit);
    /* One that is not finite is a step: the record says so before the run ends. */
    if (status == TP_ERR_INTERRUPTED || (status != TP_OK && !r->skipped))
        return status;
    t->state.step++;
    t->counted_steps++;
    t->state.unscheduled += r->skipped && r->updates == 0;
    t->state.tokens += r->trained;
    return status;
}

/* ---- between steps ---- */

static tp_status validate(trainer *t, tp_error *err)
{
    TP_ZONE("validation");
    tp_time_phase before = tp_phases_enter(&t->phases, TP_TIME_VALIDATION);
    tp_status status = t->a->validate(t, err);
    t->validated_step = status == TP_OK ? t->state.step : -1;
    tp_phases_enter(&t->phases, before);
    return status;
}

/* What keep_top_k compares: of the weights that are saved, or nothing. */
static double ranking_metric(const trainer *t)
{
    bool is_validated = t->validated_step == t->state.step;
    switch (t->o->ranking) {
    case TP_RANK_BY_VAL_LOSS:
        return is_validated ? t->val_loss : NAN;
    case TP_RANK_BY_VAL_ACCURACY:
        return is_validated ? t->val_accuracy : NAN;
    case TP_RANK_BY_TRAIN_LOSS:
        return t->last_loss;
    default:
        return NAN;
    }
}

static tp_status save(trainer *t, tp_error *err)
{
    TP_ZONE("checkpointing");
    bool is_saved =
        t->last_checkpoint_step == t->state.step && t->saved_unvalidated <= t->state.is_unvalidated;
    if (!t->o->checkpointing.enabled || is_saved)
        return TP_OK;
    tp_time_phase before = tp_phases_enter(&t->phases, TP_TIME_CHECKPOINT);
    bool higher = t->o->checkpointing.higher_is_better;
    uint64_t bytes = 0;
    t->state.metric = ranking_metric(t);
    t->state.val_loss = t->val_loss;
    t->state.val_accuracy = t->val_accuracy;
    t->state.last_loss = t->last_loss;
    t->state.is_between = t->state.step % t->o->checkpointing.save_period != 0;
    if (!isnan(t->state.metric) &&
        (isnan(t->state.best_metric) || (higher ? t->state.metric > t->state.best_metric
                                                : t->state.metric < t->state.best_metric))) {
        t->state.best_metric = t->state.metric;
        t->state.best_step = t->state.step;
    }
    tp_companions companions = {
        .tokenizer = t->tokenizer_dir[0] ? t->tokenizer_dir : NULL,
        .model = t->model_folder[0] ? t->model_folder : NULL,
        .chat_template = t->uses_template && t->chat_template.len ? t->chat_template.data : NULL};
    tp_checkpoint_options options = {.root = t->checkpoint_dir,
                                     .save_optimizer = t->o->checkpointing.save_optimizer,
                                     .model_dtype = t->file_dtype,
                                     .companions = companions,
                                     .first_writes_all = t->first_writes_all};
    int64_t keep = t->o->checkpointing.keep_top_k;
    tp_status status = tp_checkpoint_save(&options, t->session, &t->state, &bytes, err);
    if (status == TP_OK && tp_trainer_is_first(t))
        status = tp_checkpoint_prune(t->checkpoint_dir, t->state.run_id,
                                     keep == TP_OPT_UNSET_INT ? 0 : keep, higher, err);
    TP_TRY(tp_comm_agree(t->comm, status, err));
    t->last_checkpoint_step = t->state.step;
    t->saved_unvalidated = t->state.is_unvalidated;
    t->checkpoint_bytes = bytes ? bytes : t->checkpoint_bytes;
    tp_phases_enter(&t->phases, before);
    tp_train_event event = tp_trainer_event(t, TP_EVENT_CHECKPOINT);
    tp_trainer_send(t, &event);
    return TP_OK;
}

/* What listeners ask for, alarms above all.  Rates are lowered before anything is saved that has
 * heard the alarm: a resumed run knows it as done. */
static tp_status take_requests(trainer *t, tp_error *err)
{
    tp_train_request r = {0};
    bool any = t->hooks->request && t->hooks->request(t->hooks->listener, &r);
    TP_TRY(tp_comm_broadcast(t->comm, &any, sizeof any, 0, err)); /* what rank 0 has heard */
    if (!any)
        return TP_OK;
    TP_TRY(tp_comm_broadcast(t->comm, &r, sizeof r, 0, err));
    if (r.lr_factor > 0) {
        t->state.lr_factor *= r.lr_factor;
        tp_trainer_notice(t,
                          "step %lld: learning rates are %.6g of the schedule's from here on: %s",
                          (long long)t->state.step, t->state.lr_factor, r.why);
    }
    if (!t->asked.stop)
        memcpy(t->asked.why, r.why, sizeof r.why);
    t->asked.checkpoint |= r.checkpoint;
    t->asked.stop |= r.stop;
    return TP_OK;
}

static tp_status obey(trainer *t, tp_error *err)
{
    const tp_train_request asked = t->asked;
    t->asked = (tp_train_request){0};
    if (asked.checkpoint || asked.stop)
        TP_TRY(save(t, err));
    if (!asked.stop)
        return TP_OK;
    memcpy(t->stop_reason, asked.why, sizeof t->stop_reason);
    return TP_ERR_INTERRUPTED;
}

static bool is_due(int64_t step, int64_t period) { return period > 0 && step % period == 0; }

/* One that is interrupted leaves its validation to the attempt that resumes. */
static tp_status after_step(trainer *t, tp_error *err)
{
    int64_t step = t->state.step;
    bool last = tp_trainer_is_done(t);
    bool due = step >= t->o->loop.val_start_at && is_due(step, t->o->loop.val_period);
    t->state.is_unvalidated = due || (last && t->o->loop.val_at_end);
    if (t->state.is_unvalidated) {
        TP_TRY(validate(t, err));
        TP_TRY(take_requests(t, err)); /* by what it measured */
    }
    t->state.is_unvalidated = false;
    last |= t->reached_goal;
    if (is_due(step, t->o->checkpointing.save_period) || last)
        TP_TRY(save(t, err));
    double limit = t->o->checkpointing.must_save_by_s;
    bool is_late = !last && isfinite(limit) && since_start(t) >= limit;
    TP_TRY(tp_ranks_agree_to_stop(t, &is_late, err));
    if (is_late) {
        tp_trainer_notice(t, "checkpointing.checkpoint_must_save_by is reached at step %lld",
                          (long long)step);
        return TP_ERR_INTERRUPTED;
    }
    return TP_OK;
}

static tp_status step(trainer *t, step_result *r, tp_error *err)
{
    if (t->stops)
        return TP_ERR_INTERRUPTED;
    TP_TRY(tp_profile_begin_step(t, err));
    tp_session_begin_step(t->session, (uint64_t)t->o->seed, t->state.step);
    tp_status status = run_step(t, r, err);
    if (status != TP_OK && !r->skipped)
        return status;
    tp_phases_enter(&t->phases, TP_TIME_LOGGING);
    t->last_loss = r->loss;
    tp_comm_set_step(t->comm, t->state.step);
    tp_trainer_record_step(t, r);
    TP_TRY(status);
    TP_TRY(take_requests(t, err));
    /* Before what is saved, so that a resumed run has the setting; while steps are recorded behind
     * the last of them. */
    bool is_recorded = t->profile.is_on;
    if (!is_recorded)
        TP_TRY(tp_memory_watch_look(t, err));
    if (t->must_restore)
        TP_TRY(tp_attempt_restore(t, err));
    else
        TP_TRY(after_step(t, err));
    TP_TRY(obey(t, err));
    TP_TRY(tp_profile_end_step(t, err));
    return is_recorded ? tp_memory_watch_look(t, err) : TP_OK;
}

/* What the run leaves is not whole: it has failed, unless it had before. */
static tp_status fail_late(trainer *t, tp_status status, const tp_error *why, tp_error *err)
{
    if (status == TP_OK || status == TP_ERR_INTERRUPTED)
        return tp_fail(err, why->status, "%s", why->message);
    tp_trainer_notice(t, "%s", why->message);
    return status;
}

static tp_status finish(trainer *t, tp_status status, tp_error *err)
{
    static const char *const words[] = {[TP_OK] = "finished",
                                        [TP_ERR_INTERRUPTED] = "interrupted",
                                        [TP_ERR_NUMERIC] = "stopped: not finite"};
    tp_error why = {0};
    tp_phases_enter(&t->phases, TP_TIME_LOGGING);
    tp_watchdog_stop(t->watchdog);
    t->watchdog = NULL;
    /* What failed on one rank only leaves the others elsewhere. */
    tp_profile_close(t, status == TP_OK || (status == TP_ERR_INTERRUPTED && t->stops));
    if (t->hooks->stop_listening)
        t->hooks->stop_listening(t->hooks->listener);
    tp_levers_look_again(t->config, t->o, &t->levers); /* what fell back under way */
    if (tp_run_end(t->run, &why) != TP_OK)
        status = fail_late(t, status, &why, err);
    const char *word =
        (size_t)status < TP_COUNTOF(words) && words[status] ? words[status] : "failed";
    if (tp_trainer_write_run_json(t, word, &why) != TP_OK)
        status = fail_late(t, status, &why, err);
    tp_phases_enter(&t->phases, TP_TIME_UNACCOUNTED);
    tp_train_event event = tp_trainer_event(t, TP_EVENT_FINISHED);
    event.text = status == TP_OK || status == TP_ERR_INTERRUPTED ? word : err->message;
    tp_trainer_send(t, &event);
    return status;
}

/* A judge that is lost, or data that cannot be read, cost no step before. */
static void save_before(trainer *t, tp_error *err)
{
    tp_error why = {0};
    int64_t saved = t->last_checkpoint_step, before = t->state.step;
    if (before == 0 || saved == before || !t->o->checkpointing.enabled || t->comm)
        return;
    if (save(t, &why) != TP_OK)
        tp_trainer_notice(t, "step %lld could not be saved: %s", (long long)before, why.message);
    else if (err)
        tp_fail(err, err->status, "%s; step %lld is saved, go on with --resume", err->message,
                (long long)before);
}

static tp_status begin(tp_train_loop *l, tp_error *err)
{
    trainer *t = &l->t;
    tp_phases_start(&t->phases, TP_TIME_SETUP);
    t->started_s = tp_clock_s();
    t->started_wall = tp_wall_s();
    TP_TRY(tp_trainer_open(t, err));
    TP_TRY(tp_ranks_compare(t, err));
    tp_metric_subscribe(&t->metrics, tp_run_write_metrics, t->run);
    tp_metric_subscribe(&t->metrics, tp_profile_see_metrics, t);
    if (t->has_nothing_to_do) {
        tp_trainer_notice(t, "run '%s' is finished, all %lld steps are done: nothing is left to do",
                          tp_run_name(t->run), (long long)t->state.step);
        return TP_OK;
    }
    TP_TRY(tp_run_begin(t->run, err));
    TP_TRY(tp_trainer_write_run_json(t, "running", err));
    /* One that generates is two workers. */
    tp_profile_open(t, t->a->generates ? TP_WORKERS : 1);
    tp_train_event event = tp_trainer_event(t, TP_EVENT_START);
    if (t->hooks->listen)
        t->hooks->listen(t->hooks->listener, &t->metrics, &event);
    tp_trainer_send(t, &event);
    tp_phases_enter(&t->phases, TP_TIME_UNACCOUNTED);
    l->has_begun = true;
    TP_TRY(tp_trainer_guard(t, err));
    if (t->state.is_unvalidated) {
        TP_TRY(after_step(t, err));
        return obey(t, err);
    }
    return t->o->loop.val_at_start && t->state.step == 0 ? validate(t, err) : TP_OK;
}

static tp_status conclude(trainer *t, tp_status status, tp_error *err)
{
    if (status == TP_ERR_INTERRUPTED) {
        tp_status saved = save(t, err);
        if (saved == TP_OK)
            tp_fail(err, TP_ERR_INTERRUPTED, "stopped at step %lld%s%s; %s",
                    (long long)t->state.step, t->stop_reason[0] ? " by an alarm: " : "",
                    t->stop_reason,
                    t->o->checkpointing.enabled ? "go on with --resume"
                                                : "nothing is saved (checkpointing.enabled)");
        else
            status = saved;
    } else if (t->step_is_void &&
               (status == TP_ERR_IO || status == TP_ERR_CONFIG || status == TP_ERR_FORMAT)) {
        save_before(t, err);
    }
    return finish(t, status, err);
}

trainer tp_trainer_of(tp_config *config, const tp_train_options *options,
                      const tp_train_hooks *hooks)
{
    return (trainer){
        .config = config,
        .o = options,
        .hooks = hooks,
        .a = options->algorithm,
        .val_loss = NAN,
        .val_accuracy = NAN,
        .last_loss = NAN,
        .gradient_error = NAN,
        .last_checkpoint_step = -1,
        .validated_step = -1,
        .restored_step = -1,
        .checkpoint_lock = -1,
        .memory_before = tp_mem_get_stats(),
        .state = {.metric = NAN, .best_metric = NAN, .best_reward = NAN, .lr_factor = 1}};
}

/* ---- from outside ---- */

static void hear(void *user, const char *what, uint64_t done, uint64_t total)
{
    tp_trainer_working(user, what, done, total);
}

/* While a call is in the trainer what takes long is told to the run's observer. */
static void hear_no_more(const tp_work_listener *before) { (void)tp_work_listen(*before); }
#define HEAR(t)              \
    TP_CLEANUP(hear_no_more) \
    __attribute__((unused)) tp_work_listener before = tp_work_listen((tp_work_listener){hear, t})

/* Zero configuration for the ranks that have met. */
static tp_status fit_to_ranks(tp_train_loop *l, tp_error *err)
{
    trainer *t = &l->t;
    if (!t->comm)
        return TP_OK;
    l->fitted.options = l->own;
    TP_TRY(tp_config_copy(t->config, &l->fitted.config, err));
    TP_TRY(tp_comm_agree(t->comm, tp_recipe_fit(&l->fitted, false, err), err));
    l->own = l->fitted.options;
    t->config = l->fitted.config;
    return TP_OK;
}

tp_status tp_train_begin(tp_config *config, const tp_train_options *options,
                         const tp_train_hooks *hooks, tp_train_loop **ret, tp_error *err)
{
    tp_train_loop *l = *ret = tp_new(1, sizeof *l);
    tp_mem_reset_peak(); /* what was measured before is not of this run */
    l->own = *options;
    l->own_hooks = *hooks;
    l->t = tp_trainer_of(config, &l->own, &l->own_hooks);
    HEAR(&l->t);
    l->status = tp_ranks_open(&l->t, &l->own, &l->own_hooks, &l->failure);
    if (l->status == TP_OK)
        l->status = fit_to_ranks(l, &l->failure);
    if (l->status == TP_OK)
        l->status = begin(l, &l->failure);
    if (l->status != TP_OK && err)
        *err = l->failure;
    return l->status;
}

bool tp_train_is_over(const tp_train_loop *l)
{
    return l->status != TP_OK || !l->has_begun || tp_trainer_is_done(&l->t);
}

tp_status tp_train_step(tp_train_loop *l, tp_training_step_result *ret, tp_error *err)
{
    trainer *t = &l->t;
    step_result r = {0};
    int64_t restores = t->state.restores;
    *ret = (tp_training_step_result){.step = t->state.step,
                                     .max_steps = t->max_steps,
                                     .loss = NAN,
                                     .grad_norm = NAN,
                                     .lr = NAN,
                                     .seconds = NAN,
                                     .is_last = true};
    if (l->status != TP_OK) {
        if (err)
            *err = l->failure;
        return l->status;
    }
    if (tp_train_is_over(l))
        return tp_fail(err, TP_ERR_ARG, "all %lld steps of the run are done",
                       (long long)t->state.step);
    /* Where memory runs out nobody comes back here. */
    l->status = TP_ERR_NOMEM;
    (void)!tp_fail(&l->failure, l->status, "memory ran out in step %lld",
                   (long long)t->state.step + 1);
    HEAR(t);
    l->status = step(t, &r, &l->failure);
    tp_phases_enter(&t->phases, TP_TIME_UNACCOUNTED);
    if (l->status == TP_ERR_INTERRUPTED)
        (void)!tp_fail(&l->failure, l->status, "stopped at step %lld", (long long)t->state.step);
    if (l->status != TP_OK && err)
        *err = l->failure;
    *ret = (tp_training_step_result){.step = t->state.step,
                                     .max_steps = t->max_steps,
                                     .loss = r.loss,
                                     .grad_norm = r.grad_norm,
                                     .lr = r.lr,
                                     .loss_scale = r.loss_scale,
                                     .seconds = r.seconds,
                                     .trained_tokens = r.trained,
                                     .updates = r.updates,
                                     .skipped = r.skipped,
                                     .overflowed = r.overflowed,
                                     .restored = t->state.restores > restores,
                                     .is_last = tp_train_is_over(l)};
    return l->status;
}

tp_status tp_train_steps(tp_train_loop *l, tp_error *err)
{
    tp_training_step_result ignored;
    while (!tp_train_is_over(l))
        TP_TRY(tp_train_step(l, &ignored, err));
    return TP_OK;
}

tp_status tp_train_end(tp_train_loop *l, tp_training_result *ret, tp_error *err)
{
    trainer *t = &l->t;
    HEAR(t);
    if (l->status == TP_OK && !tp_train_is_over(l))
        l->status = TP_ERR_INTERRUPTED;
    if (l->has_begun)
        l->status = conclude(t, l->status, &l->failure);
    tp_status status = l->status;
    if (status != TP_OK && status != TP_ERR_INTERRUPTED)
        tp_comm_fail(t->comm, &l->failure);
    if (status != TP_OK && err)
        *err = l->failure;
    *ret = (tp_training_result){.steps = t->state.step,
                                .final_loss = t->last_loss,
                                .val_loss = t->val_loss,
                                .was_asked_to = t->stop_reason[0] != 0,
                                .is_silent = !tp_trainer_is_first(t) && !tp_comm_is_torn(t->comm)};
    tp_trainer_close(t);
    tp_comm_close(t->comm, status);
    tp_recipe_close(&l->fitted);
    free(l);
    return status;
}

tp_status tp_train_run(tp_config *config, const tp_train_options *options,
                       const tp_train_hooks *hooks, tp_error *err)
{
    tp_train_loop *loop;
    tp_training_result ignored;
    tp_status status = tp_train_begin(config, options, hooks, &loop, err);
    if (status == TP_OK)
        status = tp_train_steps(loop, err);
    return loop ? tp_train_end(loop, &ignored, err) : status;
}
