/* Perfetto's trace format, written by hand: a file is a repetition of field 1, a
 * TracePacket.  Field numbers are those of protos/perfetto/trace in Perfetto's source.
 *
 * A span is two packets, TYPE_SLICE_BEGIN and TYPE_SLICE_END, on a track.  Tracks nest
 * slices strictly, so a row of the trace becomes as many tracks ("lanes") as its spans
 * need to nest in each. */
#include <stdlib.h>
#include <string.h>

#include "base/platform.h"
#include "base/vec.h"
#include "instrument/analyze/export.h"
#include "instrument/analyze/nesting.h"

enum {
    PACKET_TIMESTAMP = 8,
    PACKET_SEQUENCE = 10,
    PACKET_TRACK_EVENT = 11,
    PACKET_INTERNED = 12,
    PACKET_FLAGS = 13,
    PACKET_DESCRIPTOR = 60,
    INTERNED_CATEGORIES = 1,
    INTERNED_NAMES = 2,
    EVENT_CATEGORY_IIDS = 3,
    EVENT_DEBUG = 4,
    EVENT_TYPE = 9,
    EVENT_NAME_IID = 10,
    EVENT_TRACK = 11,
    EVENT_COUNTER = 30,
    EVENT_FLOW_IDS = 47,
    EVENT_TERMINATING_FLOW_IDS = 48,
    TRACK_UUID = 1,
    TRACK_NAME = 2,
    TRACK_PROCESS = 3,
    TRACK_THREAD = 4,
    TRACK_PARENT = 5,
    TRACK_COUNTER = 8,
    SLICE_BEGIN = 1,
    SLICE_END = 2,
    INSTANT = 3,
    COUNTER = 4,
    FLAG_CLEARED = 1,
    FLAG_NEEDED = 2,
    UNIT_BYTES = 3,
    SEQUENCE = 1
};

/* ---- the wire format ---- */

static void put_varint(tp_buf *out, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        tp_buf_addc(out, (char)(v | 0x80));
    tp_buf_addc(out, (char)v);
}

static void put_uint(tp_buf *out, unsigned field, uint64_t v)
{
    put_varint(out, field << 3);
    put_varint(out, v);
}

static void put_fixed64(tp_buf *out, unsigned field, uint64_t v)
{
    put_varint(out, field << 3 | 1);
    for (int i = 0; i < 8; i++)
        tp_buf_addc(out, (char)(v >> (8 * i)));
}

static void put_bytes(tp_buf *out, unsigned field, const void *data, size_t n)
{
    put_varint(out, field << 3 | 2);
    put_varint(out, n);
    tp_buf_add(out, data, n);
}

static void put_message(tp_buf *out, unsigned field, const tp_buf *message)
{
    put_bytes(out, field, tp_buf_str(message), message->len);
}

/* ---- the writer ---- */

typedef struct {
    const tp_events *e;
    tp_export_sink *sink;
    tp_buf packet, part, inner;
    uint8_t *known_names; /* bit 0: as a name, bit 1: as a category */
    int64_t base;         /* taken off times, which cannot be negative */
    uint64_t next_track;
    uint64_t *processes; /* per track of the trace: uuid of its process */
    bool is_first;
    tp_error *err;
} writer;

static tp_status end_packet(writer *w)
{
    put_uint(&w->packet, PACKET_SEQUENCE, SEQUENCE);
    put_uint(&w->packet, PACKET_FLAGS, w->is_first ? FLAG_CLEARED : FLAG_NEEDED);
    w->is_first = false;
    put_message(&w->sink->pending, 1, &w->packet);
    tp_buf_clear(&w->packet);
    return tp_export_flush(w->sink, false, w->err);
}

/* Names are sent once; ids are the numbers of the trace's strings plus one. */
static void intern(writer *w, uint32_t name, uint32_t category, tp_buf *out)
{
    tp_buf_clear(&w->part);
    const struct {
        uint32_t id;
        unsigned field;
        uint8_t bit;
    } rows[] = {{name, INTERNED_NAMES, 1}, {category, INTERNED_CATEGORIES, 2}};
    for (int i = 0; i < 2; i++) {
        if (w->known_names[rows[i].id] & rows[i].bit)
            continue;
        w->known_names[rows[i].id] |= rows[i].bit;
        tp_slice text = tp_events_name_text(w->e, rows[i].id);
        tp_buf_clear(&w->inner);
        put_uint(&w->inner, 1, (uint64_t)rows[i].id + 1);
        put_bytes(&w->inner, 2, text.data, text.len);
        put_message(&w->part, rows[i].field, &w->inner);
    }
    if (w->part.len)
        put_message(out, PACKET_INTERNED, &w->part);
}

static uint64_t time_of(const writer *w, int64_t ns) { return (uint64_t)ns - (uint64_t)w->base; }

static void put_debug(writer *w, const char *name, int64_t v)
{
    if (v == TP_UNKNOWN)
        return;
    tp_buf_clear(&w->inner);
    put_bytes(&w->inner, 10, name, strlen(name));
    put_uint(&w->inner, 4, (uint64_t)v);
    put_message(&w->part, EVENT_DEBUG, &w->inner);
}

static tp_status put_begin(writer *w, uint64_t track, const tp_time_span *span)
{
    const tp_events *e = w->e;
    size_t i = span->event;
    uint32_t category = e->counts.category[e->category[i]].name;
    bool is_gpu = tp_event_is_gpu(e->kind[i]);
    bool is_call = e->kind[i] == TP_EVENT_RUNTIME || e->kind[i] == TP_EVENT_DRIVER;
    put_uint(&w->packet, PACKET_TIMESTAMP, time_of(w, span->start));
    intern(w, e->name[i], category, &w->packet);
    tp_buf_clear(&w->part);
    put_uint(&w->part, EVENT_TYPE, e->phase[i] == 'X' ? SLICE_BEGIN : INSTANT);
    put_uint(&w->part, EVENT_TRACK, track);
    put_uint(&w->part, EVENT_NAME_IID, (uint64_t)e->name[i] + 1);
    put_uint(&w->part, EVENT_CATEGORY_IIDS, (uint64_t)category + 1);
    if (e->correlation[i] > 0 && (is_gpu || is_call))
        put_fixed64(&w->part, is_gpu ? EVENT_TERMINATING_FLOW_IDS : EVENT_FLOW_IDS,
                    (uint64_t)e->correlation[i]);
    put_debug(w, "correlation", e->correlation[i]);
    put_debug(w, "External id", e->external[i]);
    const tp_event_copy *copy = tp_events_copy(e, i);
    put_debug(w, "bytes", copy ? copy->bytes : TP_UNKNOWN);
    put_message(&w->packet, PACKET_TRACK_EVENT, &w->part);
    w->sink->n_written++;
    return end_packet(w);
}

static tp_status put_end(writer *w, uint64_t track, int64_t at)
{
    put_uint(&w->packet, PACKET_TIMESTAMP, time_of(w, at));
    tp_buf_clear(&w->part);
    put_uint(&w->part, EVENT_TYPE, SLICE_END);
    put_uint(&w->part, EVENT_TRACK, track);
    put_message(&w->packet, PACKET_TRACK_EVENT, &w->part);
    return end_packet(w);
}

/* ---- tracks ---- */

static const char *id_text(const tp_events *e, int64_t number, uint32_t text, char out[32])
{
    if (number == TP_UNKNOWN)
        return tp_events_str(e, text);
    snprintf(out, 32, "%lld", (long long)number);
    return out;
}

static tp_status put_process(writer *w, size_t t, uint64_t uuid)
{
    const tp_event_track *row = &w->e->tracks[t];
    char number[32], name[160];
    const char *given = tp_events_str(w->e, row->process_name);
    snprintf(name, sizeof name, "%s%s%s", given, *given ? " " : "",
             id_text(w->e, row->pid, row->pid_text, number));
    tp_buf_clear(&w->inner);
    put_uint(&w->inner, 1, uuid); /* pids may be text, or those of a device: a number of ours */
    put_bytes(&w->inner, 6, name, strlen(name));
    tp_buf_clear(&w->part);
    put_uint(&w->part, TRACK_UUID, uuid);
    put_message(&w->part, TRACK_PROCESS, &w->inner);
    put_message(&w->packet, PACKET_DESCRIPTOR, &w->part);
    return end_packet(w);
}

static bool same_process(const tp_event_track *a, const tp_event_track *b)
{
    return a->pid == b->pid && a->pid_text == b->pid_text;
}

static tp_status put_processes(writer *w)
{
    const tp_events *e = w->e;
    TP_OWN(tp_number_map) seen = {0};
    for (size_t t = 0; t < e->n_tracks; t++) {
        uint64_t key = (uint64_t)e->tracks[t].pid * 31 + e->tracks[t].pid_text;
        uint32_t at = tp_number_map_get(&seen, key);
        if (at != TP_NO_ROW && same_process(&e->tracks[at], &e->tracks[t])) {
            w->processes[t] = w->processes[at];
            continue;
        }
        tp_number_map_add(&seen, key, (uint32_t)t);
        w->processes[t] = w->next_track++;
        TP_TRY(put_process(w, t, w->processes[t]));
    }
    return TP_OK;
}

static tp_status put_lane(writer *w, uint32_t track, size_t lane, uint64_t *ret)
{
    const tp_event_track *row = &w->e->tracks[track];
    char number[32], name[200];
    const char *given = tp_events_str(w->e, row->thread_name);
    int n =
        snprintf(name, sizeof name, "%s%s", row->stream != TP_UNKNOWN && !*given ? "stream " : "",
                 *given ? given : id_text(w->e, row->tid, row->tid_text, number));
    if (lane && n > 0 && n < 150)
        snprintf(name + n, sizeof name - (size_t)n, " (overlapping %zu)", lane);
    *ret = w->next_track++;
    tp_buf_clear(&w->part);
    put_uint(&w->part, TRACK_UUID, *ret);
    put_uint(&w->part, TRACK_PARENT, w->processes[track]);
    put_bytes(&w->part, TRACK_NAME, name, strlen(name));
    put_message(&w->packet, PACKET_DESCRIPTOR, &w->part);
    return end_packet(w);
}

/* ---- the spans of one row ---- */

typedef struct {
    uint64_t track;
    int64_t *ends; /* of the open slices, outermost first */
    size_t n, cap;
} lane;

typedef struct {
    lane *v;
    size_t n, cap;
} lanes;

static tp_status close_until(writer *w, lane *l, int64_t at)
{
    while (l->n > 0 && l->ends[l->n - 1] <= at)
        TP_TRY(put_end(w, l->track, l->ends[--l->n]));
    return TP_OK;
}

/* The first lane in which the span nests; slices that ended are closed on the way. */
static tp_status find_lane(writer *w, lanes *all, const tp_time_span *span, lane **ret)
{
    for (size_t k = 0;; k++) {
        if (k == all->n) {
            all->v = tp_vec_room(all->v, &all->cap, all->n + 1, sizeof *all->v);
            all->v[all->n] = (lane){0};
            TP_TRY(put_lane(w, span->thread, k, &all->v[all->n].track));
            all->n++;
        }
        lane *l = &all->v[k];
        TP_TRY(close_until(w, l, span->start));
        if (l->n == 0 || l->ends[l->n - 1] >= span->end) {
            *ret = l;
            return TP_OK;
        }
    }
}

static tp_status put_span(writer *w, lanes *all, const tp_time_span *span)
{
    lane *l;
    TP_TRY(find_lane(w, all, span, &l));
    TP_TRY(put_begin(w, l->track, span));
    if (w->e->phase[span->event] != 'X')
        return TP_OK;
    l->ends = tp_vec_room(l->ends, &l->cap, l->n + 1, sizeof *l->ends);
    l->ends[l->n++] = span->end;
    return TP_OK;
}

static tp_status put_rows(writer *w, const tp_time_span *v, size_t n)
{
    for (size_t from = 0, to; from < n; from = to) {
        tp_status status = TP_OK;
        lanes all = {0};
        for (to = from; to < n && v[to].thread == v[from].thread && status == TP_OK; to++)
            status = put_span(w, &all, &v[to]);
        for (size_t k = 0; k < all.n; k++) {
            if (status == TP_OK)
                status = close_until(w, &all.v[k], INT64_MAX);
            free(all.v[k].ends);
        }
        free(all.v);
        TP_TRY(status);
    }
    return TP_OK;
}

/* ---- memory as a counter ---- */

static tp_status put_memory(writer *w)
{
    const tp_events *e = w->e;
    TP_OWN(tp_number_map) tracks = {0}; /* device -> the low half of its track's uuid */
    tp_status status = TP_OK;
    for (size_t i = 0; i < e->n_memory && status == TP_OK; i++) {
        const tp_memory_instant *m = &e->memory[i];
        uint64_t key = (uint64_t)(uint16_t)m->device_type << 32 | (uint32_t)m->device;
        uint32_t track = tp_number_map_get(&tracks, key);
        if (m->allocated == TP_UNKNOWN)
            continue;
        if (track == TP_NO_ROW) {
            char name[64] = "memory allocated";
            if (m->device != TP_NO_DEVICE)
                snprintf(name, sizeof name, "memory allocated, device %d", m->device);
            track = (uint32_t)w->next_track++;
            tp_number_map_add(&tracks, key, track);
            tp_buf_clear(&w->inner);
            put_uint(&w->inner, 3, UNIT_BYTES);
            tp_buf_clear(&w->part);
            put_uint(&w->part, TRACK_UUID, track);
            put_bytes(&w->part, TRACK_NAME, name, strlen(name));
            put_message(&w->part, TRACK_COUNTER, &w->inner);
            put_message(&w->packet, PACKET_DESCRIPTOR, &w->part);
            status = end_packet(w);
        }
        put_uint(&w->packet, PACKET_TIMESTAMP, time_of(w, m->ts));
        tp_buf_clear(&w->part);
        put_uint(&w->part, EVENT_TYPE, COUNTER);
        put_uint(&w->part, EVENT_TRACK, track);
        put_uint(&w->part, EVENT_COUNTER, (uint64_t)m->allocated);
        put_message(&w->packet, PACKET_TRACK_EVENT, &w->part);
        w->sink->n_written++;
        if (status == TP_OK)
            status = end_packet(w);
    }
    return status;
}

/* *ret_first: the first time of all, where that is below 0. */
static size_t collect(const tp_events *e, tp_time_span **ret, int64_t *ret_first)
{
    tp_time_span *v = tp_vec_new(e->n, sizeof *v);
    for (size_t i = 0; i < e->n; i++) {
        v[i] = (tp_time_span){e->start[i], tp_event_end(e, i), (uint32_t)i, e->track[i]};
        *ret_first = TP_MIN(*ret_first, v[i].start);
    }
    for (size_t i = 0; i < e->n_memory; i++)
        *ret_first = TP_MIN(*ret_first, e->memory[i].ts);
    tp_spans_sort(v, e->n);
    *ret = v;
    return e->n;
}

tp_status tp_export_perfetto(const tp_events *e, tp_export_sink *sink, tp_error *err)
{
    TP_FREED tp_time_span *spans = NULL;
    int64_t first = 0;
    size_t n = collect(e, &spans, &first);
    writer w = {.e = e,
                .sink = sink,
                .known_names = tp_vec_new(e->strings.n + 1, 1),
                .base = first,
                .next_track = 1,
                .processes = tp_vec_new(e->n_tracks, sizeof *w.processes),
                .is_first = true,
                .err = err};
    tp_status status = put_processes(&w);
    if (status == TP_OK)
        status = put_rows(&w, spans, n);
    if (status == TP_OK)
        status = put_memory(&w);
    if (status == TP_OK)
        status = tp_export_flush(sink, true, err);
    free(w.known_names);
    free(w.processes);
    tp_buf_release(&w.packet);
    tp_buf_release(&w.part);
    tp_buf_release(&w.inner);
    return status;
}
