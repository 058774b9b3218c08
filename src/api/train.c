/* train.c - a training run, its events as the plain struct of temper/train.h. */
#include "temper/train.h"

#include <math.h>

#include "api/sized.h"
#include "engine/train/recipe.h"
#include "engine/train/trainer.h"

static const tp_training_event events[] = {
    [TP_EVENT_EXAMPLE] = TP_TRAINING_EXAMPLE,       [TP_EVENT_PLAN] = TP_TRAINING_PLAN,
    [TP_EVENT_START] = TP_TRAINING_START,           [TP_EVENT_STEP] = TP_TRAINING_STEP,
    [TP_EVENT_VALIDATION] = TP_TRAINING_VALIDATION, [TP_EVENT_CHECKPOINT] = TP_TRAINING_CHECKPOINT,
    [TP_EVENT_NOTICE] = TP_TRAINING_NOTICE,         [TP_EVENT_FINISHED] = TP_TRAINING_FINISHED};

/* These two are sent with a text alone. */
static tp_training_progress text_only(const tp_train_event *e)
{
    return (tp_training_progress){.event = events[e->kind],
                                  .text = e->text,
                                  .step = e->step,
                                  .epoch = NAN,
                                  .loss = NAN,
                                  .val_loss = NAN,
                                  .best_val_loss = NAN,
                                  .lr = NAN,
                                  .grad_norm = NAN,
                                  .step_s = NAN,
                                  .trained_tokens_per_s = NAN,
                                  .mfu = NAN,
                                  .elapsed_s = NAN,
                                  .eta_s = NAN,
                                  .last_checkpoint_step = -1};
}

static tp_training_progress progress_of(const tp_train_event *e)
{
    if (e->kind == TP_EVENT_NOTICE || e->kind == TP_EVENT_EXAMPLE)
        return text_only(e);
    return (tp_training_progress){.event = events[e->kind],
                                  .text = e->text,
                                  .run_dir = e->run_dir && *e->run_dir ? e->run_dir : NULL,
                                  .step = e->step,
                                  .max_steps = e->max_steps,
                                  .epoch = e->epoch,
                                  .loss = e->loss,
                                  .val_loss = e->val_loss,
                                  .best_val_loss = e->best_val_loss,
                                  .lr = e->lr,
                                  .grad_norm = e->grad_norm,
                                  .trained_tokens = e->trained_tokens,
                                  .step_s = e->step_s,
                                  .trained_tokens_per_s = e->trained_tokens_per_s,
                                  .mfu = e->mfu,
                                  .elapsed_s = e->elapsed_s,
                                  .eta_s = e->eta_s,
                                  .memory_bytes = e->memory.total_current,
                                  .memory_peak_bytes = e->memory.total_peak,
                                  .memory_planned_bytes = e->plan ? e->plan->peak_bytes : 0,
                                  .last_checkpoint_step = e->last_checkpoint_step,
                                  .skipped_steps = e->skipped};
}

static void observe(void *user, const tp_train_event *event)
{
    const tp_training_options *o = user;
    tp_training_progress progress = progress_of(event);
    if (o->observe)
        o->observe(o->user, &progress);
}

static bool should_stop(void *user)
{
    const tp_training_options *o = user;
    return o->should_stop && o->should_stop(o->user);
}

static tp_status run(const tp_recipe *recipe, tp_training_options *o, tp_training_result *ret,
                     tp_error *err)
{
    tp_machine machine;
    bool has_machine = false;
    tp_train_result result;
    TP_TRY(tp_trainer_force_isa(&recipe->options, err));
    /* Without a measurement on file only MFU is unknown. */
    if (tp_machine_load(&tp_backend_cpu, tp_trainer_threads(&recipe->options), &machine,
                        &has_machine, NULL) != TP_OK)
        has_machine = false;
    tp_train_hooks hooks = {.observe = observe,
                            .user = o,
                            .should_stop = should_stop,
                            .machine = has_machine ? &machine : NULL,
                            .resume = o->resume};
    tp_status status = tp_train_run(recipe->config, &recipe->options, &hooks, &result, err);
    tp_training_result own = {
        .steps = result.steps, .final_loss = result.final_loss, .val_loss = result.val_loss};
    tp_sized_write(ret, &own, sizeof own);
    return status;
}

tp_status tp_training_run(const char *config, const char *const *overrides, size_t n_overrides,
                          const tp_training_options *options, tp_training_result *ret,
                          tp_error *err)
{
    tp_training_options o;
    tp_recipe recipe;
    TP_TRY(tp_sized_read(&o, sizeof o, options, "tp_training_options", err));
    TP_TRY(tp_sized_check(ret, "tp_training_result", err));
    TP_TRY(tp_recipe_open(config, overrides, n_overrides, &recipe, err));
    tp_status status = run(&recipe, &o, ret, err);
    tp_recipe_close(&recipe);
    return status;
}
