/* event_builder.c - tracks, names and rows of a store as a reader finds them. */
#include "instrument/ingest/event_builder.h"

#include <stdlib.h>
#include <string.h>

#include "base/platform.h"

enum { MAX_CATEGORIES = 60000 };

void tp_builder_init(tp_event_builder *b, tp_events *events, unsigned keep)
{
    *b = (tp_event_builder){.events = events};
    *events = (tp_events){.kept = keep ? keep : TP_KEEP_ALL};
    tp_string_table_init(&events->strings);
    tp_string_table_init(&b->name_keys);
    tp_trace_info *info = &events->info;
    info->base_ns = info->schema_version = info->rank = info->world_size = TP_UNKNOWN;
    info->clock_offset_ns = info->clock_error_ns = TP_UNKNOWN;
    info->runtime_total_ns = info->memcpy_bytes = info->memcpy_ns = TP_UNKNOWN;
    tp_builder_category(b, "", 0);
}

uint16_t tp_builder_category(tp_event_builder *b, const char *text, size_t len)
{
    tp_event_counts *counts = &b->events->counts;
    uint32_t name = tp_string_add(&b->events->strings, text, len);
    for (size_t i = 0; i < counts->n_categories; i++)
        if (counts->category[i].name == name)
            return (uint16_t)i;
    if (counts->n_categories == MAX_CATEGORIES)
        return MAX_CATEGORIES - 1;
    size_t at = counts->n_categories;
    tp_category_count *category =
        TP_VEC_PUSH(counts->category, counts->n_categories, b->category_cap);
    category->name = name;
    b->category_kind = tp_vec_room(b->category_kind, &b->category_kind_cap, at + 1, 1);
    b->category_kind[at] = (uint8_t)tp_event_kind_of(text, len);
    return (uint16_t)at;
}

static bool same_track(const tp_event_track *a, const tp_event_track *b)
{
    return a->pid == b->pid && a->tid == b->tid && a->device == b->device &&
           a->stream == b->stream && a->pid_text == b->pid_text && a->tid_text == b->tid_text;
}

static size_t track_hash(const tp_event_track *t)
{
    uint64_t h = (uint64_t)t->pid * UINT64_C(0x9e3779b97f4a7c15);
    h = (h ^ h >> 29 ^ (uint64_t)t->tid) * UINT64_C(0xbf58476d1ce4e5b9);
    h = (h ^ h >> 32 ^ (uint64_t)t->device) * UINT64_C(0x94d049bb133111eb);
    h = (h ^ h >> 31 ^ (uint64_t)t->stream) * UINT64_C(0x9e3779b97f4a7c15);
    h = (h ^ t->pid_text ^ (uint64_t)t->tid_text << 32) * UINT64_C(0xbf58476d1ce4e5b9);
    return (size_t)(h >> 32);
}

static void put_track(tp_event_builder *b, uint32_t number)
{
    size_t mask = b->n_track_slots - 1, at = track_hash(&b->events->tracks[number]) & mask;
    while (b->track_slots[at])
        at = (at + 1) & mask;
    b->track_slots[at] = number + 1;
}

static void grow_track_slots(tp_event_builder *b)
{
    free(b->track_slots);
    b->n_track_slots = b->n_track_slots ? b->n_track_slots * 2 : 64;
    b->track_slots = tp_new(b->n_track_slots, sizeof *b->track_slots);
    for (size_t i = 0; i < b->events->n_tracks; i++)
        put_track(b, (uint32_t)i);
}

uint32_t tp_builder_track(tp_event_builder *b, const tp_event_track *track)
{
    tp_events *events = b->events;
    if (b->last_track < events->n_tracks && same_track(track, &events->tracks[b->last_track]))
        return b->last_track;
    if (events->n_tracks * 2 >= b->n_track_slots)
        grow_track_slots(b);
    size_t mask = b->n_track_slots - 1, at = track_hash(track) & mask;
    for (; b->track_slots[at]; at = (at + 1) & mask)
        if (same_track(track, &events->tracks[b->track_slots[at] - 1]))
            return b->last_track = b->track_slots[at] - 1;
    *TP_VEC_PUSH(events->tracks, events->n_tracks, b->track_cap) = *track;
    b->track_slots[at] = (uint32_t)events->n_tracks;
    return b->last_track = (uint32_t)events->n_tracks - 1;
}

/* False: there are no more numbers for rows. */
static bool make_room(tp_event_builder *b, size_t need)
{
    tp_events *e = b->events;
    if (need <= b->row_cap)
        return true;
    b->is_full |= need > TP_EVENTS_MOST;
    if (b->is_full)
        return false;
    /* One capacity in rows for all columns, whatever the size of their items. */
    size_t cap = tp_vec_next(b->row_cap, need, sizeof *e->start);
    b->row_cap = cap = TP_MIN(cap, TP_EVENTS_MOST);
#define GROW(column) e->column = tp_vec_resize(e->column, cap, sizeof *e->column)
    GROW(start);
    GROW(dur);
    GROW(correlation);
    GROW(external);
    GROW(name);
    GROW(track);
    GROW(detail);
    GROW(category);
    GROW(kind);
    GROW(phase);
#undef GROW
    return true;
}

void tp_builder_expect(tp_event_builder *b, uint64_t text_bytes)
{
    enum { ROW_BYTES = 384, MOST = 1 << 24 }; /* what is not touched takes no memory */
    uint64_t rows = text_bytes / ROW_BYTES;
    (void)make_room(b, (size_t)TP_MIN(rows, MOST));
}

void tp_builder_row(tp_event_builder *b, const tp_event_row *row)
{
    tp_events *e = b->events;
    if (TP_UNLIKELY(e->n == b->row_cap) && !make_room(b, e->n + 1))
        return;
    size_t i = e->n++;
    e->start[i] = row->start;
    e->dur[i] = row->dur;
    e->correlation[i] = row->correlation;
    e->external[i] = row->external;
    e->name[i] = row->name;
    e->track[i] = row->track;
    e->detail[i] = row->detail;
    e->category[i] = row->category;
    e->kind[i] = row->kind;
    e->phase[i] = row->phase;
    if (e->kept & TP_KEEP_ARGS) {
        e->args = tp_vec_room(e->args, &b->args_cap, e->n + 1, sizeof *e->args);
        e->args[i] = e->args[i + 1] = b->args_used;
    }
}

tp_status tp_builder_check(const tp_event_builder *b, const char *name, tp_error *err)
{
    if (!b->is_full)
        return TP_OK;
    return tp_fail(err, TP_ERR_FORMAT,
                   "'%s' holds more than %zu events, the most that one trace may have; record "
                   "fewer steps",
                   name, TP_EVENTS_MOST);
}

void tp_builder_args(tp_event_builder *b, const char *text, size_t len)
{
    tp_events *e = b->events;
    if (!(e->kept & TP_KEEP_ARGS) || !len)
        return;
    e->args_text = tp_vec_room(e->args_text, &b->args_text_cap, b->args_used + len, 1);
    memcpy(e->args_text + b->args_used, text, len);
    b->args_used += len;
    e->args[e->n] = b->args_used;
}

/* --- names of processes and threads --- */

typedef struct {
    int64_t kind, pid, tid, pid_text, tid_text;
} name_key;

static name_key key_of(tp_name_kind kind, const tp_event_track *of)
{
    bool is_thread = kind == TP_NAME_THREAD;
    return (name_key){.kind = kind,
                      .pid = of->pid,
                      .tid = is_thread ? of->tid : 0,
                      .pid_text = of->pid_text,
                      .tid_text = is_thread ? of->tid_text : 0};
}

void tp_builder_name(tp_event_builder *b, tp_name_kind kind, const tp_event_track *of,
                     uint32_t name)
{
    name_key key = key_of(kind, of);
    uint32_t id = tp_string_add(&b->name_keys, (const char *)&key, sizeof key);
    b->names = tp_vec_room(b->names, &b->name_cap, (size_t)id + 1, sizeof *b->names);
    b->names[id] = name;
}

static uint32_t name_of(const tp_event_builder *b, tp_name_kind kind, const tp_event_track *of)
{
    name_key key = key_of(kind, of);
    uint32_t id;
    return tp_string_find(&b->name_keys, (const char *)&key, sizeof key, &id) ? b->names[id] : 0;
}

void tp_builder_finish(tp_event_builder *b)
{
    tp_events *e = b->events;
    for (size_t i = 0; i < e->n_tracks; i++) {
        tp_event_track *track = &e->tracks[i];
        track->process_name = name_of(b, TP_NAME_PROCESS, track);
        track->process_labels = name_of(b, TP_NAME_LABELS, track);
        track->thread_name = name_of(b, TP_NAME_THREAD, track);
    }
    for (uint32_t i = 0; i < e->strings.n; i++)
        if (!tp_utf8_valid(tp_string_get(&e->strings, i), tp_string_len(&e->strings, i)))
            e->counts.invalid_utf8++;
    tp_string_table_release(&b->name_keys);
    free(b->names);
    free(b->track_slots);
    free(b->category_kind);
    *b = (tp_event_builder){0};
}
