/* export_chrome.c - writing the columns of a trace as Chrome trace JSON. */
#include <math.h>
#include <string.h>

#include "instrument/analyze/export.h"
#include "text/json/json.h"

/* Nanoseconds as microseconds with three decimals. */
static void put_us(tp_buf *out, int64_t ns)
{
    uint64_t v = ns < 0 ? (uint64_t)0 - (uint64_t)ns : (uint64_t)ns;
    tp_buf_addf(out, "%s%llu.%03llu", ns < 0 ? "-" : "", (unsigned long long)(v / 1000),
                (unsigned long long)(v % 1000));
}

static void put_string(tp_buf *out, const tp_events *e, uint32_t id)
{
    tp_json_quote(out, tp_events_str(e, id), tp_string_len(&e->strings, id));
}

static void put_id(tp_buf *out, const tp_events *e, int64_t number, uint32_t text)
{
    if (number != TP_UNKNOWN)
        tp_buf_addf(out, "%lld", (long long)number);
    else
        put_string(out, e, text);
}

static void put_row(tp_buf *out, const tp_events *e, uint32_t track)
{
    const tp_event_track *t = &e->tracks[track];
    tp_buf_adds(out, ",\"pid\":");
    put_id(out, e, t->pid, t->pid_text);
    tp_buf_adds(out, ",\"tid\":");
    put_id(out, e, t->tid, t->tid_text);
}

typedef struct {
    const char *key;
    int64_t value;
} argument;

/* What the columns know, for files whose own arguments are not text (Nsight). */
static void put_known_args(tp_buf *out, const tp_events *e, size_t i)
{
    const tp_event_track *t = &e->tracks[e->track[i]];
    const tp_event_copy *copy = tp_events_copy(e, i);
    const argument list[] = {{"correlation", e->correlation[i]},
                             {"External id", e->external[i]},
                             {"device", t->device},
                             {"stream", t->stream},
                             {"bytes", copy ? copy->bytes : TP_UNKNOWN}};
    bool is_first = true;
    for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
        if (list[k].value == TP_UNKNOWN)
            continue;
        tp_buf_addf(out, "%s\"%s\":%lld", is_first ? ",\"args\":{" : ",", list[k].key,
                    (long long)list[k].value);
        is_first = false;
    }
    if (!is_first)
        tp_buf_addc(out, '}');
}

/* Its own, or Kineto's for its kind: those of other sources mean nothing to who reads Kineto's. */
static const char *category_of(const tp_events *e, size_t i)
{
    const char *own = tp_events_category(e, i);
    const char *kinetos = tp_event_kind_category(e->kind[i]);
    return !kinetos || tp_event_kind_of(own, strlen(own)) == e->kind[i] ? own : kinetos;
}

static void put_event(tp_buf *out, const tp_events *e, size_t i)
{
    tp_slice args = tp_events_args(e, i);
    tp_buf_addf(out, ",\n{\"ph\":\"%c\",\"name\":", e->phase[i]);
    put_string(out, e, e->name[i]);
    tp_buf_adds(out, ",\"cat\":");
    const char *category = category_of(e, i);
    tp_json_quote(out, category, strlen(category));
    put_row(out, e, e->track[i]);
    tp_buf_adds(out, ",\"ts\":");
    put_us(out, e->start[i]);
    if (e->phase[i] == 'X') {
        tp_buf_adds(out, ",\"dur\":");
        put_us(out, e->dur[i]);
    } else {
        tp_buf_adds(out, ",\"s\":\"t\"");
    }
    if (args.len) {
        tp_buf_adds(out, ",\"args\":");
        tp_buf_add(out, args.data, args.len);
    } else {
        put_known_args(out, e, i);
    }
    tp_buf_addc(out, '}');
}

static void put_metadata(tp_buf *out, const tp_events *e, uint32_t track)
{
    const tp_event_track *t = &e->tracks[track];
    const struct {
        const char *what, *key;
        uint32_t text;
    } rows[] = {{"process_name", "name", t->process_name},
                {"process_labels", "labels", t->process_labels},
                {"thread_name", "name", t->thread_name}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!rows[i].text)
            continue;
        tp_buf_addf(out, ",\n{\"ph\":\"M\",\"name\":\"%s\",\"ts\":0", rows[i].what);
        put_row(out, e, track);
        tp_buf_addf(out, ",\"args\":{\"%s\":", rows[i].key);
        put_string(out, e, rows[i].text);
        tp_buf_adds(out, "}}");
    }
}

static void put_memory(tp_buf *out, const tp_events *e, const tp_memory_instant *m)
{
    tp_buf_adds(out,
                ",\n{\"ph\":\"i\",\"s\":\"t\",\"name\":\"[memory]\",\"cat\":\"cpu_instant_event\"");
    put_row(out, e, m->track);
    tp_buf_adds(out, ",\"ts\":");
    put_us(out, m->ts);
    tp_buf_addf(out, ",\"args\":{\"Addr\":%llu,\"Bytes\":%lld", (unsigned long long)m->addr,
                (long long)m->bytes);
    if (m->device != TP_NO_DEVICE)
        tp_buf_addf(out, ",\"Device Id\":%d", m->device);
    if (m->device_type >= 0)
        tp_buf_addf(out, ",\"Device Type\":%d", m->device_type);
    if (m->allocated != TP_UNKNOWN)
        tp_buf_addf(out, ",\"Total Allocated\":%lld", (long long)m->allocated);
    if (m->reserved != TP_UNKNOWN)
        tp_buf_addf(out, ",\"Total Reserved\":%lld", (long long)m->reserved);
    if (m->index != TP_UNKNOWN)
        tp_buf_addf(out, ",\"Ev Idx\":%lld", (long long)m->index);
    tp_buf_adds(out, "}}");
}

static void put_flow(tp_buf *out, const tp_events *e, const tp_flow *f)
{
    tp_buf_addf(out, ",\n{\"ph\":\"%c\",\"id\":%lld,\"name\":", f->phase, (long long)f->id);
    put_string(out, e, f->name);
    tp_buf_adds(out, ",\"cat\":");
    put_string(out, e, f->name);
    put_row(out, e, f->track);
    tp_buf_adds(out, ",\"ts\":");
    put_us(out, f->ts);
    tp_buf_adds(out, f->phase == 'f' ? ",\"bp\":\"e\"}" : "}");
}

static void put_counter(tp_buf *out, const tp_events *e, const tp_counter_sample *c)
{
    char number[32];
    tp_buf_adds(out, ",\n{\"ph\":\"C\",\"name\":");
    put_string(out, e, c->name);
    put_row(out, e, c->track);
    tp_buf_adds(out, ",\"ts\":");
    put_us(out, c->ts);
    tp_buf_adds(out, ",\"args\":{");
    put_string(out, e, c->series);
    if (isfinite(c->value))
        tp_json_f64_text(c->value, number);
    else /* as Temper's own traces */
        snprintf(number, sizeof number, "\"%sInfinity\"", c->value < 0 ? "-" : "");
    tp_buf_addf(out, ":%s}}", isnan(c->value) ? "\"NaN\"" : number);
}

static void put_head(tp_buf *out, const tp_events *e)
{
    tp_buf_adds(out, "{\"schemaVersion\":1,\"displayTimeUnit\":\"ms\"");
    if (e->info.base_ns != TP_UNKNOWN)
        tp_buf_addf(out, ",\"baseTimeNanoseconds\":%lld", (long long)e->info.base_ns);
    if (e->info.rank != TP_UNKNOWN) {
        tp_buf_addf(out, ",\"distributedInfo\":{\"rank\":%lld", (long long)e->info.rank);
        if (e->info.world_size != TP_UNKNOWN)
            tp_buf_addf(out, ",\"world_size\":%lld", (long long)e->info.world_size);
        tp_buf_addc(out, '}');
    }
    for (size_t i = 0; i < e->info.n_devices; i++) {
        const tp_trace_device *d = &e->info.devices[i];
        tp_buf_addf(out, "%s{\"id\":%lld,\"name\":", i ? "," : ",\"deviceProperties\":[",
                    (long long)d->id);
        put_string(out, e, d->name);
        if (d->memory_bytes != TP_UNKNOWN)
            tp_buf_addf(out, ",\"totalGlobalMem\":%lld", (long long)d->memory_bytes);
        if (d->sms != TP_UNKNOWN)
            tp_buf_addf(out, ",\"numSms\":%lld", (long long)d->sms);
        tp_buf_adds(out, i + 1 == e->info.n_devices ? "}]" : "}");
    }
    tp_buf_adds(out, ",\"traceEvents\":[\n");
}

tp_status tp_export_chrome(const tp_events *e, tp_export_sink *sink, tp_error *err)
{
    tp_buf *out = &sink->pending;
    put_head(out, e);
    tp_buf_adds(out, "{\"ph\":\"M\",\"name\":\"exported\",\"ts\":0");
    if (e->n_tracks) /* a process of its own would be an empty row */
        put_row(out, e, 0);
    tp_buf_adds(out, ",\"args\":{\"by\":\"temper " TEMPER_VERSION "\"}}");
    for (size_t t = 0; t < e->n_tracks; t++)
        put_metadata(out, e, (uint32_t)t);
    for (size_t i = 0; i < e->n; i++) {
        put_event(out, e, i);
        TP_TRY(tp_export_written(sink, err));
    }
    for (size_t i = 0; i < e->n_memory; i++) {
        put_memory(out, e, &e->memory[i]);
        TP_TRY(tp_export_written(sink, err));
    }
    for (size_t i = 0; i < e->n_flows; i++) {
        put_flow(out, e, &e->flows[i]);
        TP_TRY(tp_export_written(sink, err));
    }
    for (size_t i = 0; i < e->n_counters; i++) {
        put_counter(out, e, &e->counters[i]);
        TP_TRY(tp_export_written(sink, err));
    }
    tp_buf_adds(out, "\n]}\n");
    return tp_export_flush(sink, true, err);
}
