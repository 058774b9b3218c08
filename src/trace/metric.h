/* metric.h - the metric bus: a publisher says a number once, whoever subscribed hears it.
 *
 *     tp_metric_subscribe(bus, write_line, file);
 *
 *     tp_metric_begin(bus, "train", step);
 *     tp_metric_put(bus, "train/loss", loss);
 *     tp_metric_end(bus);                         // write_line(file, record)
 *
 * Every metric is declared once, with its unit and what it means, in metrics.def.  A bus belongs
 * to one thread. */
#ifndef TP_TRACE_METRIC_H
#define TP_TRACE_METRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    const char *name, *unit, *meaning; /* unit "": a plain number */
} tp_metric_def;

#define METRIC(name, unit, meaning) +1
enum {
    TP_METRIC_DEFS = 0
#include "trace/metrics.def"
};
#undef METRIC
enum { TP_METRIC_SUBSCRIBERS = 8 };
extern const tp_metric_def tp_metric_defs[TP_METRIC_DEFS]; /* by name */

const tp_metric_def *tp_metric_find(const char *name); /* a declared name */

typedef struct {
    const tp_metric_def *def;
    double value; /* NaN is a result */
} tp_metric_figure;

/* What was measured at one step under one axis, "train", "validation" or "time", in order. */
typedef struct {
    const char *axis;
    int64_t step;
    double wall_s; /* when, since 1970 */
    const tp_metric_figure *points;
    size_t n;
} tp_metric_record;

/* The record is valid during the call. */
typedef void tp_metric_fn(void *user, const tp_metric_record *record);

/* Zeroed is empty. */
typedef struct {
    struct {
        tp_metric_fn *see;
        void *user;
    } subscribers[TP_METRIC_SUBSCRIBERS];
    int n_subscribers;
    tp_metric_record open;
    tp_metric_figure points[TP_METRIC_DEFS];
    struct {
        const char *axis; /* of the record it was in; NULL: none */
        double value;
    } latest[TP_METRIC_DEFS];
} tp_metric_bus;

void tp_metric_subscribe(tp_metric_bus *bus, tp_metric_fn *see, void *user);
void tp_metric_begin(tp_metric_bus *bus, const char *axis, int64_t step); /* static text */
/* The same for what is sampled beside the steps: it was measured at `wall_s`, and what this record
 * does not bring stays the latest. */
void tp_metric_begin_sample(tp_metric_bus *bus, const char *axis, int64_t step, double wall_s);
void tp_metric_put(tp_metric_bus *bus, const char *name, double value);   /* a declared name */
void tp_metric_end(tp_metric_bus *bus);

/* The value in the newest record of its axis; NaN where it has none, or `bus` is NULL. */
double tp_metric_latest(const tp_metric_bus *bus, const char *name);
/* That of a record before this process; nobody is told. */
void tp_metric_restore(tp_metric_bus *bus, const char *axis, const char *name, double value);

#endif
