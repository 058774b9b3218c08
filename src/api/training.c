/* training.c - where the metrics of the engine reach the sinks of the instrument. */
#include "api/training.h"

#include "instrument/monitor/sinks.h"

typedef struct {
    const tp_train_options *o;
    tp_sinks sinks;
} listener;

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
}

/* While the bus is there still. */
static void stop_listening(void *user)
{
    listener *l = user;
    tp_sinks_close(&l->sinks);
}

tp_status tp_train_with_sinks(const tp_config *config, const tp_train_options *options,
                              const tp_train_hooks *hooks, tp_train_result *ret, tp_error *err)
{
    listener l = {.o = options};
    tp_train_hooks own = *hooks;
    own.listen = listen;
    own.stop_listening = stop_listening;
    own.listener = &l;
    return tp_train_run(config, options, &own, ret, err);
}
