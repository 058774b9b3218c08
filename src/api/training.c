/* training.c - where the metrics of the engine reach the sinks of the instrument. */
#include "api/training.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/judging.h"
#include "api/watching.h"
#include "base/sized.h"
#include "engine/data/token_ids.h"
#include "engine/train/algorithm.h"
#include "engine/train/graphs.h"
#include "instrument/monitor/sinks.h"

/* A listener of its loop. */
struct tp_watched {
    const tp_train_options *o;
    tp_train_hooks hooks; /* the caller's */
    tp_sinks sinks;
    tp_watching watching;
    tp_train_loop *loop;
};
typedef struct tp_watched listener;

static void listen(void *user, tp_metric_bus *bus, const tp_train_event *start)
{
    listener *l = user;
    const char *const paths[TP_SINKS] = {
        [TP_SINK_TENSORBOARD] =
            l->o->logger.tensorboard_enabled ? l->o->logger.tensorboard_dir : NULL,
        [TP_SINK_PROMETHEUS] = l->o->logger.prometheus_path,
    };
    const tp_sink_run run = {.name = start->run_name,
                             .id = start->run_id,
                             .attempt = start->attempt,
                             .step = start->step,
                             .max_steps = start->max_steps,
                             .metrics = bus};
    tp_sinks_open(&l->sinks, paths, &run, bus);
    tp_watching_begin(&l->watching, bus, start);
}

/* While the bus is there still. */
static void stop_listening(void *user)
{
    listener *l = user;
    tp_watching_end(&l->watching);
    tp_sinks_close(&l->sinks);
}

static void observe(void *user, const tp_train_event *event)
{
    listener *l = user;
    if (l->hooks.observe)
        l->hooks.observe(l->hooks.user, event);
    tp_watching_note(&l->watching, event);
}

static bool should_stop(void *user)
{
    const listener *l = user;
    return l->hooks.should_stop && l->hooks.should_stop(l->hooks.user);
}

static void dump(void *user, const char *graph, const char *stage, const char *text)
{
    const listener *l = user;
    l->hooks.dump(l->hooks.user, graph, stage, text);
}

static bool request(void *user, tp_train_request *ret)
{
    listener *l = user;
    return tp_watching_request(&l->watching, ret);
}

tp_status tp_training_check_stops(const tp_config *config, const char *key, const tp_f64_list *ids,
                                  const char *tokenizer, tp_error *err)
{
    TP_OWN(tp_buf) folder = {0};
    if (ids->n == 0 || !tokenizer ||
        tp_trainer_find_folder(tokenizer, "tokenizer.json", &folder, NULL) != TP_OK)
        return TP_OK;
    return tp_token_ids_check(config, key, ids, folder.data, err);
}

tp_status tp_training_check_rules(const tp_config *config, const tp_train_options *options,
                                  tp_error *err)
{
    TP_OWN(tp_watching) w = {0};
    if (options->algorithm->generates &&
        options->policy.tokenizer_train_vocab_size == TP_OPT_UNSET_INT)
        TP_TRY(tp_training_check_stops(config, "policy.generation.stop_token_ids",
                                       &options->generation.stop_token_ids,
                                       options->policy.tokenizer_name, err));
    TP_TRY(tp_judging_check(config, options, err));
    TP_TRY(tp_watching_read(&w, config, options, err));
    return TP_OK;
}

static tp_status begin(listener *l, tp_config *config, tp_error *err)
{
    TP_TRY(tp_judging_check(config, l->o, err));
    TP_TRY(tp_watching_read(&l->watching, config, l->o, err));
    const tp_train_hooks own = {.observe = observe,
                                .should_stop = should_stop,
                                .dump = l->hooks.dump ? dump : NULL,
                                .user = l,
                                .machine = l->hooks.machine,
                                .resume = l->hooks.resume,
                                .listen = listen,
                                .stop_listening = stop_listening,
                                .request = request,
                                .listener = l};
    return tp_train_begin(config, l->o, &own, &l->loop, err);
}

tp_status tp_watched_begin(tp_config *config, const tp_train_options *options,
                           const tp_train_hooks *hooks, tp_watched **ret, tp_error *err)
{
    listener *l = *ret = tp_new(1, sizeof *l);
    l->o = options;
    l->hooks = *hooks;
    return begin(l, config, err);
}

tp_train_loop *tp_watched_loop(const tp_watched *l) { return l->loop; }

tp_status tp_watched_end(tp_watched *l, tp_status status, tp_training_result *ret, tp_error *err)
{
    *ret = (tp_training_result){.final_loss = NAN, .val_loss = NAN};
    if (l->loop)
        status = tp_train_end(l->loop, ret, err);
    tp_watching_release(&l->watching);
    if (status == TP_OK && !ret->is_silent) /* of several processes, one judges */
        status = tp_judging_run(l->o, &ret->is_below_threshold, err);
    free(l);
    return status;
}

tp_status tp_train_with_sinks(tp_config *config, const tp_train_options *options,
                              const tp_train_hooks *hooks, tp_training_result *ret, tp_error *err)
{
    tp_watched *l;
    tp_status status = tp_watched_begin(config, options, hooks, &l, err);
    if (status == TP_OK)
        status = tp_train_steps(l->loop, err);
    return l ? tp_watched_end(l, status, ret, err) : status;
}

tp_status tp_recipe_check_again(const char *config, tp_error *err)
{
    return config && strcmp(config, "-") == 0
               ? tp_fail(err, TP_ERR_ARG,
                         "a recipe from standard input (-) can be read once, and this reads it "
                         "several times; write it to a file")
               : TP_OK;
}
