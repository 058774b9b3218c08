/* train.c - a training run, its events as the plain struct of temper/train.h. */
#include "temper/train.h"

#include <math.h>
#include <string.h>

#include "api/training.h"
#include "base/sized.h"
#include "engine/train/recipe.h"
#include "engine/train/trainer.h"

static const tp_training_event events[] = {
    [TP_EVENT_EXAMPLE] = TP_TRAINING_EXAMPLE,       [TP_EVENT_PLAN] = TP_TRAINING_PLAN,
    [TP_EVENT_START] = TP_TRAINING_START,           [TP_EVENT_STEP] = TP_TRAINING_STEP,
    [TP_EVENT_VALIDATION] = TP_TRAINING_VALIDATION, [TP_EVENT_CHECKPOINT] = TP_TRAINING_CHECKPOINT,
    [TP_EVENT_NOTICE] = TP_TRAINING_NOTICE,         [TP_EVENT_FINISHED] = TP_TRAINING_FINISHED};

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
                                     .last_checkpoint_step = -1};
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
    tp_status status = tp_train_with_sinks(recipe->config, &recipe->options, &hooks, &result, err);
    tp_training_result_write(ret, &result);
    return status;
}

tp_status tp_training_run(const char *config, const char *const *overrides, size_t n_overrides,
                          const tp_training_options *options, tp_training_result *ret,
                          tp_error *err)
{
    TP_MEMORY_GUARD(err);
    tp_training_options o;
    tp_recipe recipe;
    TP_TRY(tp_sized_read(&o, sizeof o, options, "tp_training_options", err));
    TP_TRY(tp_sized_check(ret, "tp_training_result", err));
    TP_TRY(tp_recipe_open(config, overrides, n_overrides, &recipe, err));
    tp_status status = run(&recipe, &o, ret, err);
    tp_recipe_close(&recipe);
    return status;
}
