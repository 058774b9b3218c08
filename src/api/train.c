/* train.c - a training run, its events as the plain struct of temper/train.h. */
#include "temper/train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/training.h"
#include "base/sized.h"
#include "engine/train/recipe.h"
#include "engine/train/trainer.h"

static const tp_training_event events[] = {
    [TP_EVENT_EXAMPLE] = TP_TRAINING_EXAMPLE,       [TP_EVENT_PLAN] = TP_TRAINING_PLAN,
    [TP_EVENT_START] = TP_TRAINING_START,           [TP_EVENT_STEP] = TP_TRAINING_STEP,
    [TP_EVENT_VALIDATION] = TP_TRAINING_VALIDATION, [TP_EVENT_CHECKPOINT] = TP_TRAINING_CHECKPOINT,
    [TP_EVENT_NOTICE] = TP_TRAINING_NOTICE,         [TP_EVENT_FINISHED] = TP_TRAINING_FINISHED,
    [TP_EVENT_WORKING] = TP_TRAINING_WORKING};

double tp_training_value(const tp_training_progress *progress, const char *name)
{
    for (size_t i = 0; i < progress->n_metrics; i++)
        if (strcmp(progress->metrics[i].name, name) == 0)
            return progress->metrics[i].value;
    return NAN;
}

static size_t list_metrics(const tp_metric_bus *bus, tp_training_metric ret[TP_METRIC_DEFS])
{
    size_t n = 0;
    for (size_t i = 0; bus && i < TP_METRIC_DEFS; i++)
        if (bus->latest[i].axis)
            ret[n++] = (tp_training_metric){tp_metric_defs[i].name, tp_metric_defs[i].unit,
                                            bus->latest[i].value};
    return n;
}

static void observe(void *user, const tp_train_event *e)
{
    const tp_training_options *o = user;
    tp_training_metric metrics[TP_METRIC_DEFS];
    tp_training_progress progress = {.event = events[e->kind],
                                     .text = e->text,
                                     .step = e->step,
                                     .metrics = metrics,
                                     .n_metrics = list_metrics(e->metrics, metrics),
                                     .best_metric = NAN,
                                     .elapsed_s = NAN,
                                     .eta_s = NAN,
                                     .last_checkpoint_step = -1,
                                     .work_s = NAN,
                                     .work_share = NAN};
    if (e->kind == TP_EVENT_WORKING) {
        progress.work_s = e->work_s;
        progress.work_share = e->work_share;
    }
    if (e->metrics) { /* else it is a text alone */
        progress.run_dir = e->run_dir && *e->run_dir ? e->run_dir : NULL;
        progress.max_steps = e->max_steps;
        progress.best_metric = e->best_metric;
        progress.elapsed_s = e->elapsed_s;
        progress.eta_s = e->eta_s;
        progress.memory_bytes = e->memory.total_current;
        progress.memory_peak_bytes = e->memory.total_peak;
        progress.memory_planned_bytes = e->plan->peak_bytes;
        progress.last_checkpoint_step = e->last_checkpoint_step;
        progress.skipped_steps = e->skipped;
    }
    if (o->observe)
        o->observe(o->user, &progress);
}

static bool should_stop(void *user)
{
    const tp_training_options *o = user;
    return o->should_stop && o->should_stop(o->user);
}

struct tp_training {
    tp_recipe recipe;
    tp_training_options options;
    tp_machine machine;
    tp_watched *watched;
};

/* Without a measurement on file only MFU is unknown. */
static const tp_machine *find_machine(tp_training *t)
{
    bool is_known = false;
    tp_status status = tp_trainer_machine(&t->recipe.options, &t->machine, &is_known, NULL);
    return status == TP_OK && is_known ? &t->machine : NULL;
}

static tp_status begin(tp_training *t, tp_error *err)
{
    TP_TRY(tp_trainer_force_isa(&t->recipe.options, err));
    const tp_train_hooks hooks = {.observe = observe,
                                  .user = &t->options,
                                  .should_stop = should_stop,
                                  .machine = find_machine(t),
                                  .resume = t->options.resume};
    return tp_watched_begin(t->recipe.config, &t->recipe.options, &hooks, &t->watched, err);
}

static tp_status end(tp_training *t, tp_status status, tp_training_result *ret, tp_error *err)
{
    tp_training_result result;
    if (t->watched) {
        status = tp_watched_end(t->watched, status, &result, err);
        tp_sized_write(ret, &result, sizeof result);
    }
    tp_recipe_close(&t->recipe);
    free(t);
    return status;
}

/* Like tp_watched_begin(): there is one afterwards unless it is NULL. */
static tp_status open_training(const char *config, const char *const *overrides, size_t n_overrides,
                               const tp_training_options *options, tp_training **ret, tp_error *err)
{
    tp_training *t = *ret = tp_new(1, sizeof *t);
    TP_TRY(tp_sized_read(&t->options, sizeof t->options, options, "tp_training_options", err));
    TP_TRY(tp_recipe_open(config, overrides, n_overrides, &t->recipe, err));
    return begin(t, err);
}

tp_status tp_training_open(const char *config, const char *const *overrides, size_t n_overrides,
                           const tp_training_options *options, tp_training **ret, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    tp_training *t;
    if (!ret)
        return tp_fail(err, TP_ERR_ARG, "tp_training_open: ret is NULL");
    tp_status status = open_training(config, overrides, n_overrides, options, &t, err);
    if (status == TP_OK)
        *ret = t;
    else if (t)
        status = end(t, status, NULL, err);
    return status;
}

bool tp_training_is_over(const tp_training *t)
{
    return !t || tp_train_is_over(tp_watched_loop(t->watched));
}

tp_status tp_training_step(tp_training *t, tp_training_step_result *ret, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    tp_training_step_result r;
    if (!t)
        return tp_fail(err, TP_ERR_ARG, "tp_training_step: there is no training");
    TP_TRY(tp_sized_check(ret, "tp_training_step_result", err));
    tp_status status = tp_train_step(tp_watched_loop(t->watched), &r, err);
    tp_sized_write(ret, &r, sizeof r);
    return status;
}

tp_status tp_training_close(tp_training *t, tp_training_result *ret, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    if (!t)
        return tp_fail(err, TP_ERR_ARG, "tp_training_close: there is no training");
    TP_TRY(tp_sized_check(ret, "tp_training_result", err));
    bool has_steps_left = !tp_training_is_over(t);
    tp_status status = end(t, TP_OK, ret, err);
    return status == TP_ERR_INTERRUPTED && has_steps_left ? TP_OK : status;
}

tp_status tp_training_run(const char *config, const char *const *overrides, size_t n_overrides,
                          const tp_training_options *options, tp_training_result *ret,
                          tp_error *err)
{
    TP_MEMORY_GUARD(err);
    tp_training *t;
    TP_TRY(tp_sized_check(ret, "tp_training_result", err));
    tp_status status = open_training(config, overrides, n_overrides, options, &t, err);
    if (status == TP_OK)
        status = tp_train_steps(tp_watched_loop(t->watched), err);
    return t ? end(t, status, ret, err) : status;
}
