/* sinks.h - where else a run's metrics go, while it goes.
 *
 *     tp_sinks sinks;
 *     tp_sinks_open(&sinks, paths, &run, bus);
 *     ...                                          // the bus tells them every record
 *     tp_sinks_close(&sinks);
 *
 * A sink that cannot write is named once in the log and left out; the run goes on without it, and
 * metrics.jsonl has every figure. */
#ifndef TP_INSTRUMENT_MONITOR_SINKS_H
#define TP_INSTRUMENT_MONITOR_SINKS_H

#include "base/error.h"
#include "base/strings.h"
#include "trace/metric.h"

typedef struct {
    const char *name, *id;        /* id: the run's for good, 32 hex digits */
    int attempt;                  /* from 1 */
    int64_t step, max_steps;      /* step: done before this attempt */
    const tp_metric_bus *metrics; /* lives as long as the sinks */
} tp_sink_run;

/* A kind of sink: a row of sinks.c. */
typedef struct {
    const char *name; /* in messages */
    TP_CHECKED tp_status (*open)(const char *path, const tp_sink_run *run, void **ret,
                                 tp_error *err);
    TP_CHECKED tp_status (*see)(void *sink, const tp_metric_record *record, tp_error *err);
    /* `sink` is freed whatever happens. */
    TP_CHECKED tp_status (*close)(void *sink, tp_error *err);
} tp_sink_kind;

extern const tp_sink_kind tp_sink_tensorboard; /* path: a folder, for event files */
extern const tp_sink_kind tp_sink_prometheus;  /* path: a file of node_exporter's textfile format */

enum { TP_SINK_TENSORBOARD, TP_SINK_PROMETHEUS, TP_SINKS };

typedef struct {
    struct tp_sink {
        const tp_sink_kind *kind;
        void *sink; /* NULL: not asked for, or left out */
    } each[TP_SINKS];
} tp_sinks;

/* One path for each kind, NULL where it is not asked for.  `sinks` stays where it is. */
void tp_sinks_open(tp_sinks *sinks, const char *const paths[TP_SINKS], const tp_sink_run *run,
                   tp_metric_bus *bus);
void tp_sinks_close(tp_sinks *sinks); /* zeroed is a no-op */

/* The name of a metric for Prometheus: "temper_train_loss_nats"; `out` has 128 bytes. */
enum { TP_PROMETHEUS_NAME = 128 };
void tp_prometheus_name(const tp_metric_def *def, char out[TP_PROMETHEUS_NAME]);
/* Any text as the value of a label, or in HELP. */
void tp_prometheus_escape(tp_buf *out, const char *text, bool is_label);

#endif
