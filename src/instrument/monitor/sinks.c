/* sinks.c - the sinks there are, and what happens when one fails. */
#include "instrument/monitor/sinks.h"

#include "base/log.h"

static const tp_sink_kind *const kinds[TP_SINKS] = {
    [TP_SINK_TENSORBOARD] = &tp_sink_tensorboard,
    [TP_SINK_PROMETHEUS] = &tp_sink_prometheus,
};

static void announce(const tp_sink_kind *kind, const tp_error *why)
{
    tp_log(TP_LOG_WARNING, kind->name,
           "%s; it is left out, the run goes on and metrics.jsonl has every figure", why->message);
}

static void leave_out(struct tp_sink *s)
{
    tp_error ignored;
    (void)!s->kind->close(s->sink, &ignored);
    s->sink = NULL;
}

static void see(void *user, const tp_metric_record *record)
{
    struct tp_sink *s = user;
    tp_error why;
    if (!s->sink || s->kind->see(s->sink, record, &why) == TP_OK)
        return;
    announce(s->kind, &why);
    leave_out(s);
}

void tp_sinks_open(tp_sinks *sinks, const char *const paths[TP_SINKS], const tp_sink_run *run,
                   tp_metric_bus *bus)
{
    for (int i = 0; i < TP_SINKS; i++) {
        struct tp_sink *s = &sinks->each[i];
        tp_error why;
        *s = (struct tp_sink){.kind = kinds[i]};
        if (!paths[i])
            continue;
        if (s->kind->open(paths[i], run, &s->sink, &why) == TP_OK)
            tp_metric_subscribe(bus, see, s);
        else
            announce(s->kind, &why);
    }
}

void tp_sinks_close(tp_sinks *sinks)
{
    for (int i = 0; i < TP_SINKS; i++) {
        struct tp_sink *s = &sinks->each[i];
        tp_error why;
        if (s->sink && s->kind->close(s->sink, &why) != TP_OK)
            announce(s->kind, &why);
        s->sink = NULL;
    }
}
