/* Names, devices, versions; how many rows each table has. */
#include <string.h>
#include <strings.h>

#include "base/platform.h"
#include "instrument/ingest/nsight.h"

static void read_names(tp_nsight *n)
{
    static const char *const processes[] = {"globalPid", "pid", "name"};
    static const char *const threads[] = {"globalTid", "nameId"};
    tp_nsight_query q;
    if (tp_nsight_begin(&q, n, "PROCESSES", processes, TP_COUNTOF(processes), 1)) {
        while (tp_nsight_next(&q)) {
            tp_event_track of = {.pid = tp_nsight_pid(tp_nsight_i64(&q, 0))};
            tp_builder_name(&n->builder, TP_NAME_PROCESS, &of, tp_nsight_text(&q, 2));
        }
        tp_nsight_end(&q);
    }
    if (tp_nsight_begin(&q, n, "ThreadNames", threads, TP_COUNTOF(threads), 2)) {
        while (tp_nsight_next(&q)) {
            int64_t global = tp_nsight_i64(&q, 0);
            tp_event_track of = {.pid = tp_nsight_pid(global), .tid = tp_nsight_tid(global)};
            tp_builder_name(&n->builder, TP_NAME_THREAD, &of, tp_nsight_name(&q, 1));
        }
        tp_nsight_end(&q);
    }
}

static void read_devices(tp_nsight *n)
{
    static const char *const columns[] = {"id", "name", "totalMemory", "smCount"};
    tp_trace_info *info = &n->events->info;
    tp_nsight_query q;
    size_t cap = 0;
    if (!tp_nsight_begin(&q, n, "TARGET_INFO_GPU", columns, TP_COUNTOF(columns), 1))
        return;
    while (tp_nsight_next(&q) && info->n_devices < 4096) {
        tp_trace_device *d = TP_VEC_PUSH(info->devices, info->n_devices, cap);
        d->id = tp_nsight_i64(&q, 0);
        d->name = tp_nsight_text(&q, 1);
        d->memory_bytes = tp_nsight_i64(&q, 2);
        d->sms = tp_nsight_i64(&q, 3);
    }
    tp_nsight_end(&q);
}

static uint64_t device_key(int64_t pid, int64_t device)
{
    return (uint64_t)pid << 32 | (uint32_t)device;
}

/* CUDA_VISIBLE_DEVICES makes every process's first device number 0. */
static void read_numbering(tp_nsight *n)
{
    static const char *const columns[] = {"pid", "cudaId", "gpuId"};
    tp_nsight_query q;
    if (!tp_nsight_begin(&q, n, "TARGET_INFO_CUDA_DEVICE", columns, TP_COUNTOF(columns), 3))
        return;
    while (tp_nsight_next(&q)) {
        int64_t pid = tp_nsight_i64(&q, 0), device = tp_nsight_i64(&q, 1);
        int64_t gpu = tp_nsight_i64(&q, 2);
        if (pid >= 0 && device >= 0 && gpu >= 0 && gpu < TP_NO_ROW)
            tp_number_map_set(&n->devices, device_key(pid, device), (uint32_t)gpu);
    }
    tp_nsight_end(&q);
}

int64_t tp_nsight_device(const tp_nsight *n, int64_t pid, int64_t device)
{
    uint32_t gpu = n->devices.n && pid >= 0 && device >= 0
                       ? tp_number_map_get(&n->devices, device_key(pid, device))
                       : TP_NO_ROW;
    return gpu == TP_NO_ROW ? device : gpu;
}

/* Name and value pairs; what the reader does not ask for stays in the file. */
static void read_pairs(tp_nsight *n, const char *table)
{
    static const char *const columns[] = {"name", "value"};
    tp_trace_info *info = &n->events->info;
    tp_nsight_query q;
    if (!tp_nsight_begin(&q, n, table, columns, TP_COUNTOF(columns), 2))
        return;
    while (tp_nsight_next(&q)) {
        const char *name = (const char *)sqlite3_column_text(q.statement, 0);
        if (!name)
            continue;
        if (strcmp(name, "CUDA_GRAPH_TRACE_OPTIONS:MODE") == 0) {
            const char *mode = (const char *)sqlite3_column_text(q.statement, 1);
            info->graphs_hide_kernels = mode && strcasecmp(mode, "graph") == 0;
        }
    }
    tp_nsight_end(&q);
}

static void read_start(tp_nsight *n)
{
    static const char *const columns[] = {"utcEpochNs"};
    tp_nsight_query q;
    if (!tp_nsight_begin(&q, n, "TARGET_INFO_SESSION_START_TIME", columns, 1, 1))
        return;
    if (tp_nsight_next(&q))
        n->events->info.base_ns = tp_nsight_i64(&q, 0);
    tp_nsight_end(&q);
}

static void count_tables(tp_nsight *n)
{
    tp_trace_info *info = &n->events->info;
    sqlite3_stmt *s;
    size_t cap = 0;
    if (sqlite3_prepare_v2(n->db,
                           "SELECT name FROM sqlite_master WHERE type = 'table' AND (name GLOB "
                           "'CUPTI*' OR name GLOB 'NVTX_EV*' OR name GLOB 'CUDA_*' OR name = "
                           "'OSRT_API') AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY name",
                           -1, &s, NULL) != SQLITE_OK) {
        tp_nsight_damaged(n);
        return;
    }
    while (sqlite3_step(s) == SQLITE_ROW && info->n_tables < 1024) {
        const char *name = (const char *)sqlite3_column_text(s, 0);
        int64_t rows = name ? tp_nsight_count(n, name) : -1;
        if (rows < 0)
            continue;
        tp_trace_table *table = TP_VEC_PUSH(info->tables, info->n_tables, cap);
        table->name = tp_string_add(&n->events->strings, name, strlen(name));
        table->rows = rows;
    }
    sqlite3_finalize(s);
}

void tp_nsight_read_about(tp_nsight *n)
{
    tp_trace_info *info = &n->events->info;
    info->time_form = TP_TIME_NANOSECONDS;
    info->producer = tp_string_add(&n->events->strings, "NVIDIA Nsight Systems", 21);
    read_names(n);
    read_devices(n);
    read_numbering(n);
    read_pairs(n, "META_DATA_CAPTURE");
    read_start(n);
    count_tables(n);
}
