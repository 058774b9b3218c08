/* Activities into events. */
#include <stdlib.h>
#include <string.h>

#include "base/platform.h"
#include "instrument/ingest/nsight.h"

/* Columns that every activity of a device begins with. */
#define DEVICE_COLUMNS "start", "end", "deviceId", "streamId", "correlationId", "globalPid"
enum { START, END, DEVICE, STREAM, CORRELATION, GLOBAL_PID, FIRST_OWN };

static const int64_t absurd_ns = INT64_C(7) * 86400 * 1000000000;

static int64_t correlation_of(int64_t number, int64_t pid)
{
    if (number == TP_UNKNOWN)
        return TP_UNKNOWN;
    return (int64_t)((uint64_t)(pid == TP_UNKNOWN ? 0 : pid) << 32 |
                     ((uint64_t)number & UINT32_MAX));
}

static int64_t span_of(tp_nsight *n, int64_t start, int64_t end)
{
    int64_t dur;
    if (__builtin_sub_overflow(end, start, &dur) || start == INT64_MIN) {
        n->events->counts.clamped_times++;
        return 0;
    }
    n->events->counts.negative_durations += dur < 0;
    n->events->counts.absurd_durations += dur > absurd_ns;
    return dur;
}

/* False, and counted, when one is missing: no row. */
static bool set_times(tp_nsight *n, int64_t start, int64_t end, tp_event_row *row)
{
    n->events->counts.missing_time += start == TP_UNKNOWN;
    n->events->counts.missing_duration += start != TP_UNKNOWN && end == TP_UNKNOWN;
    if (start == TP_UNKNOWN || end == TP_UNKNOWN)
        return false;
    row->start = start;
    row->dur = span_of(n, start, end);
    return true;
}

static uint16_t category_of(tp_nsight *n, const char *name)
{
    return tp_builder_category(&n->builder, name, strlen(name));
}

/* Count the event, and add its row if that kind is kept.  False: no row. */
static bool counted(tp_nsight *n, const tp_event_row *row)
{
    tp_event_counts *c = &n->events->counts;
    c->events++;
    c->ph[row->phase & 127]++;
    if (row->phase == 'X') {
        c->category[row->category].n++;
        c->kind[row->kind]++;
    }
    return n->events->kept & (tp_event_is_gpu(row->kind) ? TP_KEEP_GPU : TP_KEEP_HOST);
}

static uint32_t device_track(tp_nsight *n, const tp_nsight_query *q)
{
    int64_t pid = tp_nsight_pid(tp_nsight_i64(q, GLOBAL_PID));
    tp_event_track track = {.pid = pid,
                            .device = tp_nsight_device(n, pid, tp_nsight_i64(q, DEVICE)),
                            .stream = tp_nsight_i64(q, STREAM)};
    track.tid = track.stream;
    return tp_builder_track(&n->builder, &track);
}

static uint32_t thread_track(tp_nsight *n, int64_t global_tid)
{
    tp_event_track track = {.pid = tp_nsight_pid(global_tid),
                            .tid = tp_nsight_tid(global_tid),
                            .device = TP_UNKNOWN,
                            .stream = TP_UNKNOWN};
    return tp_builder_track(&n->builder, &track);
}

/* The row of a device activity; false when it is only counted. */
static bool device_row(tp_nsight *n, const tp_nsight_query *q, tp_event_kind kind,
                       uint16_t category, tp_event_row *row)
{
    *row = (tp_event_row){
        .external = TP_UNKNOWN, .category = category, .kind = (uint8_t)kind, .phase = 'X'};
    if (!set_times(n, tp_nsight_i64(q, START), tp_nsight_i64(q, END), row))
        return false;
    row->correlation =
        correlation_of(tp_nsight_i64(q, CORRELATION), tp_nsight_pid(tp_nsight_i64(q, GLOBAL_PID)));
    if (!counted(n, row))
        return false;
    row->track = device_track(n, q);
    return true;
}

static void read_kernels(tp_nsight *n)
{
    enum { NAME = FIRST_OWN };
    static const char *const columns[] = {DEVICE_COLUMNS, "shortName|demangledName|mangledName"};
    tp_nsight_query q;
    if (!tp_nsight_begin(&q, n, "CUPTI_ACTIVITY_KIND_KERNEL", columns, TP_COUNTOF(columns), 3))
        return;
    uint16_t category = category_of(n, "kernel");
    while (tp_nsight_next(&q)) {
        tp_event_row row;
        if (!device_row(n, &q, TP_EVENT_KERNEL, category, &row))
            continue;
        row.name = tp_nsight_name(&q, NAME);
        tp_builder_row(&n->builder, &row);
    }
    tp_nsight_end(&q);
}

/* As CUPTI numbers them; the names are those of Kineto. */
static const char *const copy_names[] = {
    "Memcpy (unknown)",    "Memcpy HtoD",        "Memcpy DtoH", "Memcpy HtoA",
    "Memcpy AtoH",         "Memcpy AtoA",        "Memcpy AtoD", "Memcpy DtoA",
    "Memcpy DtoD",         "Memcpy HtoH",        "Memcpy PtoP", "Memcpy unified HtoD",
    "Memcpy unified DtoH", "Memcpy unified DtoD"};
static const char *const memory_names[] = {"Pageable", "Pinned",        "Device",        "Array",
                                           "Managed",  "Device static", "Managed static"};

static int16_t small_of(int64_t v) { return v >= 0 && v < INT16_MAX ? (int16_t)v : -1; }

static uint32_t copy_name(tp_nsight *n, const tp_event_copy *c)
{
    char name[96];
    const char *what = c->copy_kind >= 0 && (size_t)c->copy_kind < TP_COUNTOF(copy_names)
                           ? copy_names[c->copy_kind]
                           : copy_names[0];
    size_t kinds = TP_COUNTOF(memory_names);
    if (c->from_kind >= 0 && (size_t)c->from_kind < kinds && c->to_kind >= 0 &&
        (size_t)c->to_kind < kinds)
        snprintf(name, sizeof name, "%s (%s -> %s)", what, memory_names[c->from_kind],
                 memory_names[c->to_kind]);
    else
        snprintf(name, sizeof name, "%s", what);
    return tp_string_add(&n->events->strings, name, strlen(name));
}

static void add_clamped(tp_nsight *n, int64_t *sum, int64_t v)
{
    if (v == TP_UNKNOWN)
        return;
    if (__builtin_add_overflow(*sum, v, sum)) {
        *sum = INT64_MAX;
        n->events->counts.clamped_times++;
    }
}

static void read_copies(tp_nsight *n)
{
    enum { BYTES = FIRST_OWN, KIND, FROM_KIND, TO_KIND };
    static const char *const columns[] = {DEVICE_COLUMNS, "bytes", "copyKind", "srcKind",
                                          "dstKind"};
    tp_nsight_query q;
    if (!tp_nsight_begin(&q, n, "CUPTI_ACTIVITY_KIND_MEMCPY", columns, TP_COUNTOF(columns), 3))
        return;
    tp_events *e = n->events;
    uint16_t category = category_of(n, "memcpy");
    while (tp_nsight_next(&q)) {
        tp_event_row row;
        bool kept = device_row(n, &q, TP_EVENT_MEMCPY, category, &row);
        add_clamped(n, &e->info.memcpy_bytes, tp_nsight_i64(&q, BYTES));
        add_clamped(n, &e->info.memcpy_ns, row.dur);
        if (!kept)
            continue;
        tp_event_copy *c = TP_VEC_PUSH(e->copies, e->n_copies, n->builder.copy_cap);
        *c = (tp_event_copy){.bytes = tp_nsight_i64(&q, BYTES),
                             .copy_kind = small_of(tp_nsight_i64(&q, KIND)),
                             .from_kind = small_of(tp_nsight_i64(&q, FROM_KIND)),
                             .to_kind = small_of(tp_nsight_i64(&q, TO_KIND))};
        row.detail = (uint32_t)e->n_copies;
        row.name = copy_name(n, c);
        tp_builder_row(&n->builder, &row);
    }
    tp_nsight_end(&q);
}

static void read_fills(tp_nsight *n)
{
    enum { BYTES = FIRST_OWN, KIND };
    static const char *const columns[] = {DEVICE_COLUMNS, "bytes", "memKind"};
    tp_nsight_query q;
    if (!tp_nsight_begin(&q, n, "CUPTI_ACTIVITY_KIND_MEMSET", columns, TP_COUNTOF(columns), 3))
        return;
    tp_events *e = n->events;
    uint16_t category = category_of(n, "memset");
    uint32_t name = tp_string_add(&e->strings, "Memset (Device)", 15);
    while (tp_nsight_next(&q)) {
        tp_event_row row;
        if (!device_row(n, &q, TP_EVENT_MEMSET, category, &row))
            continue;
        tp_event_copy *c = TP_VEC_PUSH(e->copies, e->n_copies, n->builder.copy_cap);
        *c = (tp_event_copy){.bytes = tp_nsight_i64(&q, BYTES),
                             .copy_kind = -1,
                             .from_kind = -1,
                             .to_kind = small_of(tp_nsight_i64(&q, KIND))};
        row.detail = (uint32_t)e->n_copies;
        row.name = name;
        tp_builder_row(&n->builder, &row);
    }
    tp_nsight_end(&q);
}

static void read_graphs(tp_nsight *n)
{
    static const char *const columns[] = {DEVICE_COLUMNS};
    tp_nsight_query q;
    if (!tp_nsight_begin(&q, n, "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", columns, TP_COUNTOF(columns), 3))
        return;
    uint16_t category = category_of(n, "cuda_graph");
    uint32_t name = tp_string_add(&n->events->strings, "CUDA graph", 10);
    while (tp_nsight_next(&q)) {
        tp_event_row row;
        if (!device_row(n, &q, TP_EVENT_GRAPH, category, &row))
            continue;
        row.name = name;
        tp_builder_row(&n->builder, &row);
    }
    tp_nsight_end(&q);
}

static void read_syncs(tp_nsight *n)
{
    enum { TYPE = FIRST_OWN };
    static const char *const columns[] = {DEVICE_COLUMNS, "syncType"};
    static const char *const names[] = {"Sync", "Event Sync", "Stream Wait Event", "Stream Sync",
                                        "Context Sync"};
    tp_nsight_query q;
    if (!tp_nsight_begin(&q, n, "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", columns, TP_COUNTOF(columns),
                         2))
        return;
    tp_events *e = n->events;
    uint16_t category = category_of(n, "sync");
    while (tp_nsight_next(&q)) {
        tp_event_row row;
        if (!device_row(n, &q, TP_EVENT_SYNC, category, &row))
            continue;
        int64_t type = tp_nsight_i64(&q, TYPE);
        const char *name = names[type > 0 && type < (int64_t)TP_COUNTOF(names) ? type : 0];
        row.name = tp_string_add(&e->strings, name, strlen(name));
        if (e->kept & TP_KEEP_SYNCS) {
            tp_event_sync *s = TP_VEC_PUSH(e->syncs, e->n_syncs, n->builder.sync_cap);
            *s = (tp_event_sync){.wait_stream = TP_UNKNOWN, .wait_correlation = TP_UNKNOWN};
            row.detail = (uint32_t)e->n_syncs;
        }
        tp_builder_row(&n->builder, &row);
    }
    tp_nsight_end(&q);
}

/* Calls on a thread: runtime and driver, the operating system, overhead. */
static void read_calls(tp_nsight *n, const char *table, const char *category_name,
                       tp_event_kind kind, int64_t *total)
{
    enum { CALL_START, CALL_END, CALL_TID, CALL_NAME, CALL_CORRELATION };
    static const char *const columns[] = {"start", "end", "globalTid", "nameId", "correlationId"};
    tp_nsight_query q;
    if (!tp_nsight_begin(&q, n, table, columns, TP_COUNTOF(columns), 2))
        return;
    uint16_t category = category_of(n, category_name);
    while (tp_nsight_next(&q)) {
        int64_t tid = tp_nsight_i64(&q, CALL_TID);
        tp_event_row row = {
            .correlation = correlation_of(tp_nsight_i64(&q, CALL_CORRELATION), tp_nsight_pid(tid)),
            .external = TP_UNKNOWN,
            .category = category,
            .kind = (uint8_t)kind,
            .phase = 'X'};
        if (!set_times(n, tp_nsight_i64(&q, CALL_START), tp_nsight_i64(&q, CALL_END), &row))
            continue;
        if (total)
            add_clamped(n, total, row.dur);
        if (!counted(n, &row))
            continue;
        row.name = tp_nsight_name(&q, CALL_NAME);
        row.track = thread_track(n, tid);
        tp_builder_row(&n->builder, &row);
    }
    tp_nsight_end(&q);
}

/* "aten::mm, seq = 5, op_id = 12": PyTorch's emit_nvtx() puts numbers into the name, which
 * would make every range a name of its own. */
static bool split_operator(const char *text, tp_event_row *row, size_t *ret_len)
{
    const char *id = strstr(text, ", op_id = "), *seq = strstr(text, ", seq = ");
    if (!id)
        return false;
    row->external = strtoll(id + 10, NULL, 10);
    *ret_len = (size_t)((seq && seq < id ? seq : id) - text);
    return true;
}

static void name_range(tp_nsight *n, tp_event_row *row, uint32_t text)
{
    tp_events *e = n->events;
    size_t len;
    row->name = text;
    if (!split_operator(tp_events_str(e, text), row, &len))
        return;
    tp_buf name = {0}; /* the table moves when it grows */
    tp_buf_add(&name, tp_events_str(e, text), len);
    row->name = tp_string_add(&e->strings, name.data, name.len);
    tp_buf_release(&name);
    row->kind = TP_EVENT_CPU_OP;
    if (!(e->kept & TP_KEEP_OPS))
        return;
    tp_event_op *op = TP_VEC_PUSH(e->ops, e->n_ops, n->builder.op_cap);
    op->flops = TP_UNKNOWN;
    row->detail = (uint32_t)e->n_ops;
}

static void read_ranges(tp_nsight *n, tp_nsight_calls *calls)
{
    enum { RANGE_START, RANGE_END, TYPE, TEXT, TEXT_ID, TID, DOMAIN, PAYLOAD };
    enum { NVTX_CATEGORY = 33, NVTX_MARK = 34, NVTX_PUSH_POP = 59, NVTX_START_END = 60 };
    static const char *const columns[] = {"start",  "end",       "eventType", "text",
                                          "textId", "globalTid", "domainId",  "binaryData"};
    tp_nsight_query q;
    if (!tp_nsight_begin(&q, n, "NVTX_EVENTS", columns, TP_COUNTOF(columns), 1))
        return;
    uint16_t category = category_of(n, "nvtx");
    while (tp_nsight_next(&q)) {
        int64_t start = tp_nsight_i64(&q, RANGE_START), end = tp_nsight_i64(&q, RANGE_END);
        int64_t type = tp_nsight_i64(&q, TYPE);
        bool is_range = type == NVTX_PUSH_POP || type == NVTX_START_END || type == TP_UNKNOWN;
        if (start == TP_UNKNOWN || (!is_range && type != NVTX_MARK)) {
            n->events->counts.not_kept++;
            continue;
        }
        tp_event_row row = {.start = start,
                            .dur = is_range && end != TP_UNKNOWN ? span_of(n, start, end) : 0,
                            .correlation = TP_UNKNOWN,
                            .external = TP_UNKNOWN,
                            .category = category,
                            .kind = is_range ? TP_EVENT_ANNOTATION : TP_EVENT_INSTANT,
                            .phase = is_range ? 'X' : 'i'};
        n->events->counts.unpaired += is_range && end == TP_UNKNOWN;
        if (!counted(n, &row))
            continue;
        uint32_t text = tp_nsight_text(&q, TEXT);
        name_range(n, &row, text ? text : tp_nsight_name(&q, TEXT_ID));
        row.track = thread_track(n, tp_nsight_i64(&q, TID));
        if (calls && is_range) {
            tp_nsight_range range = {.start = start,
                                     .end = end,
                                     .thread = tp_nsight_i64(&q, TID),
                                     .domain = tp_nsight_i64(&q, DOMAIN),
                                     .name = row.name};
            range.payload = tp_nsight_bytes(&q, PAYLOAD, &range.n_payload);
            tp_nsight_calls_add(calls, &range, tp_events_str(n->events, row.name));
        }
        tp_builder_row(&n->builder, &row);
    }
    tp_nsight_end(&q);
}

static void read_memory(tp_nsight *n)
{
    enum { WHEN, PID, DEVICE_ID, ADDRESS, BYTES, OPERATION };
    static const char *const columns[] = {"start",   "globalPid", "deviceId",
                                          "address", "bytes",     "memoryOperationType"};
    tp_nsight_query q;
    if (!tp_nsight_begin(&q, n, "CUDA_GPU_MEMORY_USAGE_EVENTS", columns, TP_COUNTOF(columns), 1))
        return;
    tp_events *e = n->events;
    for (int64_t index = 0; tp_nsight_next(&q); index++) {
        int64_t bytes = tp_nsight_i64(&q, BYTES), ts = tp_nsight_i64(&q, WHEN);
        bool frees = tp_nsight_i64(&q, OPERATION) == 1;
        e->counts.memory_instants++;
        if (bytes == TP_UNKNOWN || bytes < 0)
            bytes = 0;
        add_clamped(n, frees ? &e->counts.free_bytes : &e->counts.alloc_bytes, bytes);
        if (!(e->kept & TP_KEEP_MEMORY) || ts == TP_UNKNOWN)
            continue;
        int64_t address = tp_nsight_i64(&q, ADDRESS), pid = tp_nsight_pid(tp_nsight_i64(&q, PID));
        int64_t device = tp_nsight_device(n, pid, tp_nsight_i64(&q, DEVICE_ID));
        tp_event_track track = {
            .pid = pid, .tid = TP_UNKNOWN, .device = device, .stream = TP_UNKNOWN};
        *TP_VEC_PUSH(e->memory, e->n_memory, n->builder.memory_cap) = (tp_memory_instant){
            .ts = ts,
            .addr = address == TP_UNKNOWN ? 0 : (uint64_t)address,
            .bytes = frees ? -bytes : bytes,
            .allocated = TP_UNKNOWN,
            .reserved = TP_UNKNOWN,
            .index = index,
            .device = device >= 0 && device <= INT32_MAX ? (int32_t)device : TP_NO_DEVICE,
            .device_type = 1,
            .track = tp_builder_track(&n->builder, &track)};
    }
    tp_nsight_end(&q);
}

void tp_nsight_read_rows(tp_nsight *n)
{
    tp_trace_info *info = &n->events->info;
    info->runtime_total_ns = info->memcpy_bytes = info->memcpy_ns = 0;
    read_kernels(n);
    read_copies(n);
    read_fills(n);
    read_graphs(n);
    read_syncs(n);
    read_calls(n, "CUPTI_ACTIVITY_KIND_RUNTIME", "cuda_api", TP_EVENT_RUNTIME,
               &info->runtime_total_ns);
    read_calls(n, "CUPTI_ACTIVITY_KIND_DRIVER", "cuda_api", TP_EVENT_DRIVER, NULL);
    read_calls(n, "OSRT_API", "osrt", TP_EVENT_OS, NULL);
    read_calls(n, "CUPTI_ACTIVITY_KIND_OVERHEAD", "overhead", TP_EVENT_OVERHEAD, NULL);
    read_calls(n, "PROFILER_OVERHEAD", "overhead", TP_EVENT_OVERHEAD, NULL);
    bool wants_calls = n->events->kept & TP_KEEP_COLLECTIVES;
    tp_nsight_calls *calls = wants_calls ? tp_nsight_calls_new(n) : NULL;
    read_ranges(n, calls);
    if (calls)
        tp_nsight_calls_match(n, calls);
    tp_nsight_calls_free(calls);
    read_memory(n);
}
