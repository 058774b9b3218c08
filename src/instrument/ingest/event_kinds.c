/* event_kinds.c - the kinds of events by the category strings of Kineto and others. */
#include <string.h>

#include "base/platform.h"
#include "instrument/ingest/events.h"

/* Names of Kineto's activity types, and those of 2021. */
static const struct {
    const char *category;
    tp_event_kind kind;
} kinds[] = {
    {"cpu_op", TP_EVENT_CPU_OP},
    {"Operator", TP_EVENT_CPU_OP},
    {"user_annotation", TP_EVENT_ANNOTATION},
    {"gpu_user_annotation", TP_EVENT_GPU_ANNOTATION},
    {"kernel", TP_EVENT_KERNEL},
    {"Kernel", TP_EVENT_KERNEL},
    {"gpu_memcpy", TP_EVENT_MEMCPY},
    {"Memcpy", TP_EVENT_MEMCPY},
    {"gpu_memset", TP_EVENT_MEMSET},
    {"Memset", TP_EVENT_MEMSET},
    {"collective_comm", TP_EVENT_COLLECTIVE},
    {"mtia_ccp_events", TP_EVENT_DEVICE},
    {"hpu_op", TP_EVENT_DEVICE},
    {"cuda_runtime", TP_EVENT_RUNTIME},
    {"Runtime", TP_EVENT_RUNTIME},
    {"hip_runtime", TP_EVENT_RUNTIME},
    {"xpu_runtime", TP_EVENT_RUNTIME},
    {"mtia_runtime", TP_EVENT_RUNTIME},
    {"glow_runtime", TP_EVENT_RUNTIME},
    {"privateuse1_runtime", TP_EVENT_RUNTIME},
    {"cuda_driver", TP_EVENT_DRIVER},
    {"xpu_driver", TP_EVENT_DRIVER},
    {"privateuse1_driver", TP_EVENT_DRIVER},
    {"cuda_sync", TP_EVENT_SYNC},
    {"xpu_sync", TP_EVENT_SYNC},
    {"cuda_event", TP_EVENT_CUDA_EVENT},
    {"python_function", TP_EVENT_PYTHON},
    {"Python", TP_EVENT_PYTHON},
    {"overhead", TP_EVENT_OVERHEAD},
    {"cuda_profiler_range", TP_EVENT_RANGE},
    {"Trace", TP_EVENT_TRACE},
    {"cuda_graph", TP_EVENT_GRAPH}, /* of our own exports, as the next */
    {"osrt", TP_EVENT_OS},
};

tp_event_kind tp_event_kind_of(const char *category, size_t len)
{
    for (size_t i = 0; i < TP_COUNTOF(kinds); i++)
        if (strlen(kinds[i].category) == len && memcmp(kinds[i].category, category, len) == 0)
            return kinds[i].kind;
    return TP_EVENT_OTHER;
}

const char *tp_event_kind_category(tp_event_kind kind)
{
    for (size_t i = 0; i < TP_COUNTOF(kinds); i++)
        if (kinds[i].kind == kind)
            return kinds[i].category;
    return NULL;
}

const char *tp_event_kind_name(tp_event_kind kind)
{
    static const char *const names[TP_EVENT_KINDS] = {
        [TP_EVENT_OTHER] = "other",
        [TP_EVENT_CPU_OP] = "operator",
        [TP_EVENT_ANNOTATION] = "annotation",
        [TP_EVENT_GPU_ANNOTATION] = "gpu annotation",
        [TP_EVENT_KERNEL] = "kernel",
        [TP_EVENT_MEMCPY] = "memcpy",
        [TP_EVENT_MEMSET] = "memset",
        [TP_EVENT_GRAPH] = "graph",
        [TP_EVENT_COLLECTIVE] = "collective",
        [TP_EVENT_DEVICE] = "device",
        [TP_EVENT_RUNTIME] = "runtime",
        [TP_EVENT_DRIVER] = "driver",
        [TP_EVENT_SYNC] = "sync",
        [TP_EVENT_CUDA_EVENT] = "cuda event",
        [TP_EVENT_PYTHON] = "python",
        [TP_EVENT_OVERHEAD] = "overhead",
        [TP_EVENT_INSTANT] = "instant",
        [TP_EVENT_RANGE] = "range",
        [TP_EVENT_TRACE] = "trace",
        [TP_EVENT_OS] = "os",
    };
    return kind < TP_EVENT_KINDS ? names[kind] : "other";
}
