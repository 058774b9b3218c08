/* metric.c - records of declared metrics, handed to subscribers. */
#include "trace/metric.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"

const tp_metric_def tp_metric_defs[TP_METRIC_DEFS] = {
#define METRIC(name, unit, meaning) {name, unit, meaning},
#include "trace/metrics.def"
#undef METRIC
};

static int by_name(const void *name, const void *def)
{
    return strcmp(name, ((const tp_metric_def *)def)->name);
}

static size_t index_of(const char *name)
{
    const tp_metric_def *def =
        bsearch(name, tp_metric_defs, TP_METRIC_DEFS, sizeof *tp_metric_defs, by_name);
    TP_ASSERT(def);
    return (size_t)(def - tp_metric_defs);
}

const tp_metric_def *tp_metric_find(const char *name) { return &tp_metric_defs[index_of(name)]; }

void tp_metric_subscribe(tp_metric_bus *bus, tp_metric_fn *see, void *user)
{
    TP_ASSERT(bus->n_subscribers < TP_METRIC_SUBSCRIBERS);
    bus->subscribers[bus->n_subscribers].see = see;
    bus->subscribers[bus->n_subscribers++].user = user;
}

void tp_metric_begin(tp_metric_bus *bus, const char *axis, int64_t step)
{
    tp_metric_begin_sample(bus, axis, step, tp_wall_s());
    for (size_t i = 0; i < TP_METRIC_DEFS; i++)
        if (bus->latest[i].axis && strcmp(bus->latest[i].axis, axis) == 0)
            bus->latest[i].axis = NULL;
}

void tp_metric_begin_sample(tp_metric_bus *bus, const char *axis, int64_t step, double wall_s)
{
    bus->open = (tp_metric_record){
        .axis = axis, .step = step, .wall_s = wall_s, .points = bus->points};
}

void tp_metric_put(tp_metric_bus *bus, const char *name, double value)
{
    size_t i = index_of(name);
    TP_ASSERT(bus->open.n < TP_METRIC_DEFS);
    bus->points[bus->open.n++] = (tp_metric_figure){&tp_metric_defs[i], value};
    tp_metric_restore(bus, bus->open.axis, name, value);
}

void tp_metric_end(tp_metric_bus *bus)
{
    for (int i = 0; i < bus->n_subscribers; i++)
        bus->subscribers[i].see(bus->subscribers[i].user, &bus->open);
}

double tp_metric_latest(const tp_metric_bus *bus, const char *name)
{
    size_t i = index_of(name);
    return bus && bus->latest[i].axis ? bus->latest[i].value : NAN;
}

void tp_metric_restore(tp_metric_bus *bus, const char *axis, const char *name, double value)
{
    size_t i = index_of(name);
    bus->latest[i].axis = axis;
    bus->latest[i].value = value;
}
