/* events.c - the columns of a trace: access to the side tables by binary search, and release. */
#include "instrument/ingest/events.h"

#include <inttypes.h>
#include <stdlib.h>

const char *tp_events_category(const tp_events *events, size_t i)
{
    return tp_events_str(events, events->counts.category[events->category[i]].name);
}

const tp_event_copy *tp_events_copy(const tp_events *events, size_t i)
{
    uint8_t kind = events->kind[i];
    bool has = events->detail[i] && (kind == TP_EVENT_MEMCPY || kind == TP_EVENT_MEMSET);
    return has ? &events->copies[events->detail[i] - 1] : NULL;
}

const tp_event_op *tp_events_op(const tp_events *events, size_t i)
{
    uint8_t kind = events->kind[i];
    bool has = events->detail[i] && (kind == TP_EVENT_CPU_OP || kind == TP_EVENT_ANNOTATION);
    return has ? &events->ops[events->detail[i] - 1] : NULL;
}

const tp_event_sync *tp_events_sync(const tp_events *events, size_t i)
{
    uint8_t kind = events->kind[i];
    bool has = events->detail[i] && (kind == TP_EVENT_SYNC || kind == TP_EVENT_CUDA_EVENT);
    return has ? &events->syncs[events->detail[i] - 1] : NULL;
}

const tp_event_collective *tp_events_collective(const tp_events *events, size_t i)
{
    uint8_t kind = events->kind[i];
    bool is_kernel =
        kind == TP_EVENT_KERNEL || kind == TP_EVENT_COLLECTIVE || kind == TP_EVENT_DEVICE;
    const tp_event_op *op = tp_events_op(events, i);
    uint32_t row = is_kernel ? events->detail[i] : op ? op->collective : 0;
    return row ? &events->collectives[row - 1] : NULL;
}

tp_slice tp_events_args(const tp_events *events, size_t i)
{
    if (!events->args || !events->args_text)
        return (tp_slice){0};
    return (tp_slice){events->args_text + events->args[i],
                      (size_t)(events->args[i + 1] - events->args[i])};
}

void tp_events_device_name(const tp_events *events, size_t i, char *out, size_t size)
{
    const tp_event_track *track = &events->tracks[events->track[i]];
    int64_t number = track->device != TP_UNKNOWN ? track->device : track->pid;
    if (number != TP_UNKNOWN)
        snprintf(out, size, "%" PRId64, number);
    else
        snprintf(out, size, "%s", tp_events_str(events, track->pid_text));
}

void tp_events_release(tp_events *events)
{
    void *const blocks[] = {
        events->start,        events->dur,         events->correlation,
        events->external,     events->name,        events->track,
        events->detail,       events->category,    events->kind,
        events->phase,        events->args,        events->args_text,
        events->tracks,       events->copies,      events->ops,
        events->syncs,        events->collectives, events->memory,
        events->flows,        events->counters,    events->counts.category,
        events->info.devices, events->info.tables,
    };
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        free(blocks[i]);
    tp_string_table_release(&events->strings);
    *events = (tp_events){0};
}
