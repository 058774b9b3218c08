/* One event, from the scanner's slots into the store. */
#include "instrument/ingest/kineto.h"

#include "base/platform.h"
#include "instrument/ingest/fields.h"
#include "instrument/ingest/number_map.h"

static const int64_t absurd_ns = INT64_C(7) * 86400 * 1000000000;

/* --- times --- */

static bool time_of(tp_kineto *k, tp_event_key key, int64_t *ret)
{
    const tp_slot *slot = tp_kineto_slot(k, key);
    bool decimals = false;
    if (!slot)
        return false;
    tp_field_result result = tp_field_ns(slot->text, slot->len, ret, &decimals);
    if (result == TP_FIELD_NONE)
        return false;
    k->events->counts.clamped_times += result == TP_FIELD_CLAMPED;
    k->with_decimals += decimals;
    k->without_decimals += !decimals;
    return true;
}

static bool start_of(tp_kineto *k, int64_t *ret)
{
    if (!time_of(k, TP_KEY_TS, ret)) {
        k->events->counts.missing_time++;
        return false;
    }
    if (*ret > k->max_start)
        k->max_start = *ret;
    return true;
}

/* The end has to fit too, so that nobody's sums overflow. */
static bool dur_of(tp_kineto *k, int64_t *start, int64_t *ret)
{
    tp_event_counts *counts = &k->events->counts;
    int64_t dur, end;
    if (!time_of(k, TP_KEY_DUR, &dur)) {
        counts->missing_duration++;
        return false;
    }
    counts->negative_durations += dur < 0;
    counts->absurd_durations += dur > absurd_ns;
    if (__builtin_add_overflow(*start, dur, &end)) {
        counts->clamped_times++;
        if (*start > INT64_MAX / 2 || *start < INT64_MIN / 2)
            *start /= 2;
        dur = dur > 0 ? INT64_MAX / 4 : -(INT64_MAX / 4);
    }
    *ret = dur;
    return true;
}

/* --- whose it is --- */

/* The number at the end of "stream 7". */
static int64_t number_at_end(const tp_slot *slot)
{
    size_t n = slot->len;
    int64_t v;
    while (n && slot->text[n - 1] == ' ')
        n--;
    size_t first = n;
    while (first && slot->text[first - 1] >= '0' && slot->text[first - 1] <= '9')
        first--;
    return n > first && tp_field_i64(slot->text + first, n - first, &v) == TP_FIELD_OK ? v
                                                                                       : TP_UNKNOWN;
}

/* Text that is a whole number as one is written: PyTorch 1.8 and 1.9 write the thread of an
 * operator so, and that of its memory events as a number. */
static bool is_number(const tp_slot *slot, int64_t *ret)
{
    size_t sign = slot->len && slot->text[0] == '-';
    if (slot->len == sign || (slot->text[sign] == '0' && slot->len > 1))
        return false;
    for (size_t i = sign; i < slot->len; i++)
        if (slot->text[i] < '0' || slot->text[i] > '9')
            return false;
    return tp_field_i64(slot->text, slot->len, ret) == TP_FIELD_OK;
}

static void id_of(tp_kineto *k, tp_event_key key, int64_t *ret_number, uint32_t *ret_text)
{
    const tp_slot *slot = tp_kineto_slot(k, key);
    int64_t v;
    *ret_number = TP_UNKNOWN;
    *ret_text = 0;
    if (!slot)
        return;
    bool is_text = slot->tag & TP_VALUE_STRING;
    if (is_text ? is_number(slot, &v) : tp_field_i64(slot->text, slot->len, &v) != TP_FIELD_NONE)
        *ret_number = v;
    else if (is_text)
        *ret_text = tp_kineto_intern(k, slot);
}

static bool is_on_stream(uint8_t kind)
{
    return tp_event_is_gpu(kind) || kind == TP_EVENT_GPU_ANNOTATION || kind == TP_EVENT_SYNC ||
           kind == TP_EVENT_CUDA_EVENT || kind == TP_EVENT_DEVICE || kind == TP_EVENT_COLLECTIVE ||
           kind == TP_EVENT_RANGE;
}

static uint32_t track_of(tp_kineto *k, uint8_t kind)
{
    tp_event_track track = {.device = TP_UNKNOWN, .stream = TP_UNKNOWN};
    id_of(k, TP_KEY_PID, &track.pid, &track.pid_text);
    id_of(k, TP_KEY_TID, &track.tid, &track.tid_text);
    if (is_on_stream(kind)) {
        track.device = tp_kineto_i64(k, TP_KEY_DEVICE);
        track.stream = tp_kineto_i64(k, TP_KEY_STREAM);
        if (track.device == TP_UNKNOWN)
            track.device = track.pid;
        if (track.stream == TP_UNKNOWN)
            track.stream = track.tid_text ? number_at_end(&k->scan.slots[TP_KEY_TID]) : track.tid;
    }
    return tp_builder_track(&k->builder, &track);
}

static uint16_t category_of(tp_kineto *k)
{
    const tp_slot *slot = tp_kineto_slot(k, TP_KEY_CAT);
    uint64_t head;
    if (!slot || !(slot->tag & TP_VALUE_STRING))
        return 0;
    memcpy(&head, slot->text, sizeof head);
    if (slot->len < 8)
        head &= (UINT64_C(1) << 8 * slot->len) - 1;
    size_t at = (head ^ slot->len) * UINT64_C(0x9e3779b97f4a7c15) >> 58;
    if (slot->len <= 8 && k->category_cache[at].index && k->category_cache[at].head == head &&
        k->category_cache[at].len == slot->len)
        return (uint16_t)(k->category_cache[at].index - 1);
    /* Longer ones share their first bytes: the cache only says where to look first. */
    if (slot->len > 8 && k->category_cache[at].index && k->category_cache[at].len == slot->len) {
        uint16_t index = (uint16_t)(k->category_cache[at].index - 1);
        uint32_t name = k->events->counts.category[index].name;
        if (tp_string_len(&k->events->strings, name) == slot->len &&
            memcmp(tp_events_str(k->events, name), slot->text, slot->len) == 0)
            return index;
    }
    uint32_t name = tp_kineto_intern(k, slot);
    uint16_t index = tp_builder_category(&k->builder, tp_events_str(k->events, name),
                                         tp_string_len(&k->events->strings, name));
    k->category_cache[at].head = head;
    k->category_cache[at].len = slot->len;
    k->category_cache[at].index = (uint32_t)index + 1;
    return index;
}

/* The step that PyTorch marks is no operator: in 2021 its category says so. */
static uint8_t kind_of(const tp_kineto *k, uint16_t category)
{
    static const char mark[] = TP_PROFILER_STEP;
    uint8_t kind = k->builder.category_kind[category];
    const tp_slot *name = tp_kineto_slot(k, TP_KEY_NAME);
    bool is_step = kind == TP_EVENT_CPU_OP && name && name->len >= sizeof mark &&
                   memcmp(name->text, mark, sizeof mark - 1) == 0;
    return is_step ? TP_EVENT_ANNOTATION : kind;
}

/* --- the phases --- */

static bool is_memory(const tp_kineto *k)
{
    const tp_slot *slot = tp_kineto_slot(k, TP_KEY_NAME);
    return slot && slot->len == 8 && memcmp(slot->text, "[memory]", 8) == 0;
}

static void fill_row(tp_kineto *k, tp_event_row *row)
{
    row->name = tp_kineto_string(k, TP_KEY_NAME);
    row->track = track_of(k, row->kind);
    row->correlation = tp_kineto_i64(k, TP_KEY_CORRELATION);
    row->external = tp_kineto_i64(k, TP_KEY_EXTERNAL);
    row->detail = tp_kineto_detail(k, row->kind);
    tp_builder_row(&k->builder, row);
    if (k->scan.args && k->scan.args_end)
        tp_builder_args(&k->builder, k->scan.args, (size_t)(k->scan.args_end - k->scan.args));
}

static bool is_kept(const tp_kineto *k, uint8_t kind)
{
    return k->events->kept & (tp_event_is_gpu(kind) ? TP_KEEP_GPU : TP_KEEP_HOST);
}

static void complete(tp_kineto *k)
{
    uint16_t category = category_of(k);
    uint8_t kind = kind_of(k, category);
    tp_event_row row = {.category = category, .kind = kind, .phase = 'X'};
    k->events->counts.category[category].n++;
    k->events->counts.kind[kind]++;
    if (start_of(k, &row.start) && dur_of(k, &row.start, &row.dur) && is_kept(k, kind))
        fill_row(k, &row);
}

static void instant(tp_kineto *k)
{
    tp_event_row row = {.kind = TP_EVENT_INSTANT, .phase = 'i'};
    if (!start_of(k, &row.start) || !is_kept(k, row.kind))
        return;
    row.category = category_of(k);
    fill_row(k, &row);
}

static void flow(tp_kineto *k, char phase)
{
    tp_flow row = {.phase = phase};
    if (!start_of(k, &row.ts) || !(k->events->kept & TP_KEEP_FLOWS))
        return;
    row.id = tp_kineto_i64(k, TP_KEY_ID);
    row.name = tp_kineto_string(k, TP_KEY_NAME);
    row.track = track_of(k, TP_EVENT_OTHER);
    *TP_VEC_PUSH(k->events->flows, k->events->n_flows, k->builder.flow_cap) = row;
}

static void counter(tp_kineto *k)
{
    int64_t ts;
    if (start_of(k, &ts) && (k->events->kept & TP_KEEP_COUNTERS))
        tp_kineto_counter(k, ts, tp_kineto_string(k, TP_KEY_NAME), track_of(k, TP_EVENT_OTHER));
}

static void metadata(tp_kineto *k)
{
    const tp_slot *name = tp_kineto_slot(k, TP_KEY_NAME);
    tp_event_track of = {0};
    if (!name)
        return;
    bool is_process = name->len == 12 && !memcmp(name->text, "process_name", 12);
    bool is_labels = name->len == 14 && !memcmp(name->text, "process_labels", 14);
    bool is_thread = name->len == 11 && !memcmp(name->text, "thread_name", 11);
    if (!is_process && !is_labels && !is_thread)
        return;
    id_of(k, TP_KEY_PID, &of.pid, &of.pid_text);
    id_of(k, TP_KEY_TID, &of.tid, &of.tid_text);
    tp_builder_name(&k->builder,
                    is_process  ? TP_NAME_PROCESS
                    : is_labels ? TP_NAME_LABELS
                                : TP_NAME_THREAD,
                    &of, tp_kineto_string(k, is_labels ? TP_KEY_LABELS : TP_KEY_LABEL));
}

/* --- spans in two halves: of a thread, the last that began ends first --- */

static uint32_t *top_of(tp_kineto *k, uint32_t track)
{
    if (track >= k->n_open_top) {
        size_t old = k->n_open_top;
        k->open_top =
            tp_vec_room(k->open_top, &k->open_top_cap, (size_t)track + 1, sizeof *k->open_top);
        k->n_open_top = k->open_top_cap;
        memset(k->open_top + old, 0, (k->n_open_top - old) * sizeof *k->open_top);
    }
    return &k->open_top[track];
}

static void begin_span(tp_kineto *k)
{
    uint16_t category = category_of(k);
    tp_event_row row = {.category = category, .kind = kind_of(k, category), .phase = 'X'};
    if (!start_of(k, &row.start))
        return;
    bool has_row = is_kept(k, row.kind);
    if (has_row)
        fill_row(k, &row);
    uint32_t *top = top_of(k, track_of(k, TP_EVENT_OTHER));
    tp_open_span *span = TP_VEC_PUSH(k->open, k->n_open, k->open_cap);
    span->row = has_row ? (uint32_t)(k->events->n - 1) : TP_NO_ROW;
    span->below = *top;
    *top = (uint32_t)k->n_open;
    k->events->counts.unpaired++;
}

static void end_span(tp_kineto *k)
{
    int64_t end;
    if (!start_of(k, &end))
        return;
    uint32_t *top = top_of(k, track_of(k, TP_EVENT_OTHER));
    if (!*top) {
        k->events->counts.unpaired++;
        return;
    }
    const tp_open_span *span = &k->open[*top - 1];
    if (span->row != TP_NO_ROW &&
        __builtin_sub_overflow(end, k->events->start[span->row], &k->events->dur[span->row]))
        k->events->dur[span->row] = 0;
    *top = span->below;
    k->events->counts.unpaired--;
}

/* Its one letter, or 0. */
static unsigned char phase_of(tp_kineto *k)
{
    const tp_slot *ph = tp_kineto_slot(k, TP_KEY_PH);
    if (!ph || !(ph->tag & TP_VALUE_STRING))
        return 0;
    const char *text = ph->text;
    size_t len = ph->len;
    if (TP_UNLIKELY(tp_slot_flags(ph) & TP_VALUE_ESCAPED)) {
        uint32_t plain = tp_kineto_intern(k, ph);
        text = tp_events_str(k->events, plain);
        len = tp_string_len(&k->events->strings, plain);
    }
    return len == 1 && (unsigned char)*text < 128 ? (unsigned char)*text : 0;
}

/* "{}", with which TensorFlow and JAX close the list. */
static bool is_empty(const tp_event_scan *scan)
{
    return tp_scan_space(scan->event + 1, scan->event_end) == scan->event_end - 1;
}

bool tp_kineto_event(tp_event_scan *scan)
{
    tp_kineto *k = scan->context;
    tp_event_counts *counts = &k->events->counts;
    unsigned char phase = phase_of(k);
    k->has_phases |= tp_scan_has(scan, TP_KEY_PH);
    if (k->resyncing) {
        k->rejected = !phase;
        if (k->rejected)
            return false;
        k->resyncing = false;
    }
    if (!phase && is_empty(scan))
        return true;
    counts->events++;
    counts->ph[phase]++;
    counts->odd_numbers += scan->odd_values;
    counts->odd_commas += scan->odd_commas;
    counts->repaired_strings += scan->repaired_strings;
    if ((phase == 'i' || phase == 'I' || phase == 'X') && is_memory(k)) {
        int64_t ts = 0;
        if (phase == 'X')
            complete(k);
        if (start_of(k, &ts))
            tp_kineto_memory(k, ts, track_of(k, TP_EVENT_OTHER));
        return true;
    }
    switch (phase) {
    case 'X':
        complete(k);
        break;
    case 'i':
    case 'I':
    case 'R':
        instant(k);
        break;
    case 'M':
        metadata(k);
        break;
    case 's':
    case 't':
    case 'f':
        flow(k, (char)phase);
        break;
    case 'C':
        counter(k);
        break;
    case 'B':
        begin_span(k);
        break;
    case 'E':
        end_span(k);
        break;
    default:
        counts->not_kept += phase != 0;
    }
    return true;
}
