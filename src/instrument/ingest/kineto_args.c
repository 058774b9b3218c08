/* What the arguments of an event say beyond the main table. */
#include "instrument/ingest/kineto.h"

#include <math.h>
#include <string.h>

#include "instrument/ingest/fields.h"

static bool has(const tp_kineto *k, tp_event_key key) { return tp_scan_has(&k->scan, key); }

static uint32_t collective(tp_kineto *k)
{
    tp_events *e = k->events;
    if (!(e->kept & TP_KEEP_COLLECTIVES) ||
        !(has(k, TP_KEY_COLLECTIVE) || has(k, TP_KEY_IN_ELEMENTS) || has(k, TP_KEY_GROUP)))
        return 0;
    tp_event_collective *c =
        TP_VEC_PUSH(e->collectives, e->n_collectives, k->builder.collective_cap);
    c->name = tp_kineto_string(k, TP_KEY_COLLECTIVE);
    c->dtype = tp_kineto_string(k, TP_KEY_DTYPE);
    c->group = tp_kineto_text(k, TP_KEY_GROUP);
    c->in_elements = tp_kineto_i64(k, TP_KEY_IN_ELEMENTS);
    c->out_elements = tp_kineto_i64(k, TP_KEY_OUT_ELEMENTS);
    c->group_size = tp_kineto_i64(k, TP_KEY_GROUP_SIZE);
    c->sequence = tp_kineto_i64(k, TP_KEY_COLLECTIVE_SEQUENCE);
    c->rank = tp_kineto_i64(k, TP_KEY_RANK);
    c->source = tp_kineto_i64(k, TP_KEY_SOURCE_RANK);
    c->target = tp_kineto_i64(k, TP_KEY_TARGET_RANK);
    c->comms_id = tp_kineto_i64(k, TP_KEY_COMMS_ID);
    return (uint32_t)e->n_collectives;
}

static uint32_t copy(tp_kineto *k)
{
    tp_events *e = k->events;
    tp_event_copy *c = TP_VEC_PUSH(e->copies, e->n_copies, k->builder.copy_cap);
    c->bytes = tp_kineto_i64(k, TP_KEY_BYTES_COPIED);
    c->copy_kind = c->from_kind = c->to_kind = -1;
    return (uint32_t)e->n_copies;
}

static uint32_t operator_row(tp_kineto *k)
{
    tp_events *e = k->events;
    uint32_t group = collective(k);
    if (!group && !(e->kept & TP_KEEP_OPS))
        return 0;
    tp_event_op *row = TP_VEC_PUSH(e->ops, e->n_ops, k->builder.op_cap);
    row->collective = group;
    if (e->kept & TP_KEEP_OPS) {
        row->dims = tp_kineto_text(k, TP_KEY_DIMS);
        row->types = tp_kineto_text(k, TP_KEY_TYPES);
        row->modules = tp_kineto_text(k, TP_KEY_MODULES);
        row->phase = tp_kineto_text(k, TP_KEY_PHASE);
    }
    row->flops = tp_kineto_i64(k, TP_KEY_FLOPS);
    return (uint32_t)e->n_ops;
}

static uint32_t sync_row(tp_kineto *k)
{
    tp_events *e = k->events;
    tp_event_sync *row = TP_VEC_PUSH(e->syncs, e->n_syncs, k->builder.sync_cap);
    row->wait_stream = tp_kineto_i64(k, TP_KEY_WAIT_STREAM);
    row->wait_correlation = tp_kineto_i64(k, TP_KEY_WAIT_CORRELATION);
    return (uint32_t)e->n_syncs;
}

uint32_t tp_kineto_detail(tp_kineto *k, uint8_t kind)
{
    unsigned kept = k->events->kept;
    switch (kind) {
    case TP_EVENT_MEMCPY:
    case TP_EVENT_MEMSET:
        return copy(k);
    case TP_EVENT_KERNEL:
    case TP_EVENT_COLLECTIVE:
    case TP_EVENT_DEVICE:
        return collective(k);
    case TP_EVENT_CPU_OP:
    case TP_EVENT_ANNOTATION:
        return operator_row(k);
    case TP_EVENT_SYNC:
    case TP_EVENT_CUDA_EVENT:
        return kept & TP_KEEP_SYNCS ? sync_row(k) : 0;
    default:
        return 0;
    }
}

void tp_kineto_memory(tp_kineto *k, int64_t ts, uint32_t track)
{
    tp_events *e = k->events;
    int64_t bytes = tp_kineto_i64(k, TP_KEY_BYTES);
    e->counts.memory_instants++;
    if (bytes == TP_UNKNOWN)
        bytes = 0;
    int64_t *sum = bytes > 0 ? &e->counts.alloc_bytes : &e->counts.free_bytes;
    if (__builtin_add_overflow(*sum, bytes > 0 ? bytes : -bytes, sum)) {
        *sum = INT64_MAX;
        e->counts.clamped_times++;
    }
    if (!(e->kept & TP_KEEP_MEMORY))
        return;
    tp_memory_instant *m = TP_VEC_PUSH(e->memory, e->n_memory, k->builder.memory_cap);
    int64_t addr = tp_kineto_i64(k, TP_KEY_ADDR), device = tp_kineto_i64(k, TP_KEY_DEVICE_ID);
    int64_t type = tp_kineto_i64(k, TP_KEY_DEVICE_TYPE);
    m->ts = ts;
    m->track = track;
    m->bytes = bytes;
    m->addr = addr == TP_UNKNOWN ? 0 : (uint64_t)addr;
    m->allocated = tp_kineto_i64(k, TP_KEY_TOTAL_ALLOCATED);
    m->reserved = tp_kineto_i64(k, TP_KEY_TOTAL_RESERVED);
    m->index = tp_kineto_i64(k, TP_KEY_INDEX);
    m->device = device >= INT32_MIN && device <= INT32_MAX ? (int32_t)device : TP_NO_DEVICE;
    m->device_type = type >= 0 && type <= INT16_MAX ? (int16_t)type : -1;
}

/* --- counters: every number among the arguments is a series, "NaN" and "Infinity" too --- */

static const char *skip_string(const char *p, const char *end)
{
    for (; p < end && *p != '"'; p++)
        p += *p == '\\';
    return p < end ? p : end;
}

/* Behind an array or object, or at the end. */
static const char *skip_nested(const char *p, const char *end)
{
    for (int depth = 0; p < end; p++) {
        if (*p == '"')
            p = skip_string(p + 1, end);
        else if (*p == '[' || *p == '{')
            depth++;
        else if ((*p == ']' || *p == '}') && --depth == 0)
            return p + 1;
    }
    return end;
}

static bool is_text(tp_slice s, const char *text)
{
    return s.len == strlen(text) && memcmp(s.data, text, s.len) == 0;
}

/* A number, or one of the texts that stand for what JSON has no number for. */
static bool read_number(tp_slice value, double *ret)
{
    bool is_quoted = value.len >= 2 && *value.data == '"';
    if (is_quoted)
        value = (tp_slice){value.data + 1, value.len - 2};
    bool is_nan = is_text(value, "NaN") || is_text(value, "nan");
    bool is_infinite = is_text(value, "Infinity") || is_text(value, "-Infinity");
    if (is_quoted && !is_nan && !is_infinite)
        return false;
    *ret = tp_field_f64(value.data, value.len);
    return is_nan || !isnan(*ret);
}

static void sample(tp_kineto *k, const tp_counter_sample *proto, tp_slice series, tp_slice value)
{
    double v;
    if (!read_number(value, &v))
        return;
    tp_counter_sample *s =
        TP_VEC_PUSH(k->events->counters, k->events->n_counters, k->builder.counter_cap);
    *s = *proto;
    s->value = v;
    s->series = tp_string_add(&k->events->strings, series.data, series.len);
}

void tp_kineto_counter(tp_kineto *k, int64_t ts, uint32_t name, uint32_t track)
{
    const tp_counter_sample proto = {.ts = ts, .name = name, .track = track};
    const char *p = k->scan.args, *end = k->scan.args_end;
    if (!p || !end)
        return;
    for (p++; p < end;) {
        if (*p++ != '"')
            continue;
        const char *series = p, *behind = skip_string(p, end);
        tp_slice key = {series, (size_t)(behind - series)};
        p = behind < end ? behind + 1 : end;
        while (p < end && (*p == ' ' || *p == ':' || *p == '\n' || *p == '\t' || *p == '\r'))
            p++;
        const char *value = p;
        if (p < end && *p == '"') {
            p = skip_string(p + 1, end);
            p += p < end;
            sample(k, &proto, key, (tp_slice){value, (size_t)(p - value)});
        } else if (p < end && (*p == '[' || *p == '{')) {
            p = skip_nested(p, end);
        } else {
            while (p < end && *p != ',' && *p != '}' && *p != ' ' && *p != '\n' && *p != '\r')
                p++;
            sample(k, &proto, key, (tp_slice){value, (size_t)(p - value)});
        }
    }
}
