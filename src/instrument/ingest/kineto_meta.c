/* What the members beside traceEvents mean.  A value that is no JSON (log lines with bare
 * quotes or line breaks, bare words) is mended where that is simple, else left out. */
#include "instrument/ingest/kineto.h"

#include <stdlib.h>

#include "base/platform.h"
#include "text/json/json.h"

enum { MAX_DEVICES = 4096 };

static int64_t i64_in(const tp_json *object, const char *key)
{
    int64_t v;
    return tp_json_i64(tp_json_get(object, key), &v) ? v : TP_UNKNOWN;
}

static uint32_t string_in(tp_kineto *k, const tp_json *value)
{
    if (!value || value->type != TP_JSON_STRING)
        return 0;
    return tp_string_add(&k->events->strings, value->text.data, value->text.len);
}

static void read_device(tp_kineto *k, const tp_json *from, tp_trace_device *to)
{
    to->id = i64_in(from, "id");
    to->name = string_in(k, tp_json_get(from, "name"));
    to->memory_bytes = i64_in(from, "totalGlobalMem");
    to->sms = i64_in(from, "numSms");
}

static void read_devices(tp_kineto *k, const tp_json *list)
{
    tp_trace_info *info = &k->events->info;
    size_t cap = info->n_devices;
    if (list->type != TP_JSON_ARRAY || list->n > MAX_DEVICES)
        return;
    for (const tp_json *d = list->child; d; d = d->next)
        if (d->type == TP_JSON_OBJECT)
            read_device(k, d, TP_VEC_PUSH(info->devices, info->n_devices, cap));
}

static bool read_offset(const tp_json *o, int64_t *ret_offset, int64_t *ret_error)
{
    const int64_t most = INT64_MAX / 8;
    *ret_offset = i64_in(o, "offset_ns");
    *ret_error = i64_in(o, "error_ns");
    return *ret_offset > -most && *ret_offset < most && *ret_error >= 0 && *ret_error < most;
}

/* Measured at the start and at the end of the recording; a clock that went faster or slower was off
 * by half of what it gained in between. */
static void read_clock(const tp_json *clock, tp_trace_info *info)
{
    int64_t start, end, start_error, end_error;
    if (!read_offset(tp_json_get(clock, "start"), &start, &start_error))
        return;
    if (!read_offset(tp_json_get(clock, "end"), &end, &end_error)) {
        end = start;
        end_error = start_error;
    }
    int64_t half = (end - start) / 2;
    info->clock_offset_ns = start + half;
    info->clock_error_ns = TP_MAX(start_error, end_error) + (half < 0 ? -half : half);
}

static void read_distributed(tp_kineto *k, const tp_json *d)
{
    tp_trace_info *info = &k->events->info;
    info->rank = i64_in(d, "rank");
    info->world_size = i64_in(d, "world_size");
    info->backend = string_in(k, tp_json_get(d, "backend"));
    read_clock(tp_json_get(d, "clock"), info);
}

static void read_member(tp_kineto *k, const char *key, const tp_json *value)
{
    tp_trace_info *info = &k->events->info;
    const struct {
        const char *key;
        int64_t *number;
    } numbers[] = {{"schemaVersion", &info->schema_version},
                   {"baseTimeNanoseconds", &info->base_ns}};
    for (size_t i = 0; i < TP_COUNTOF(numbers); i++)
        if (strcmp(key, numbers[i].key) == 0)
            (void)tp_json_i64(value, numbers[i].number);
    if (strcmp(key, "traceName") == 0)
        info->trace_name = string_in(k, value);
    else if (strcmp(key, "deviceProperties") == 0)
        read_devices(k, value);
    else if (strcmp(key, "distributedInfo") == 0)
        read_distributed(k, value);
    else if (strcmp(key, "producer") == 0)
        info->producer = string_in(k, value);
    else if (strcmp(key, "otherData") == 0 && !info->producer)
        info->producer = string_in(k, tp_json_get(value, "producer"));
}

/* Control characters become spaces, backslashes that escape nothing are escaped, bare
 * words become null. */
static void mend(const tp_buf *from, tp_buf *to)
{
    static const char escapes[] = "\"\\/bfnrtu";
    bool in_string = false;
    for (size_t i = 0; i < from->len; i++) {
        char c = from->data[i];
        if ((unsigned char)c < 0x20)
            c = ' ';
        if (!in_string && (c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))) {
            size_t n = 0;
            while (i + n < from->len && !strchr(" ,]}\n\t\r\"", from->data[i + n]))
                n++;
            tp_slice word = {from->data + i, n};
            bool is_json = tp_slice_is(word, "true") || tp_slice_is(word, "false") ||
                           tp_slice_is(word, "NaN") || tp_slice_is(word, "Infinity");
            bool is_exponent = i && from->data[i - 1] >= '0' && from->data[i - 1] <= '9';
            tp_buf_add(to, is_json || is_exponent ? word.data : "null",
                       is_json || is_exponent ? n : 4);
            i += n ? n - 1 : 0;
            continue;
        }
        tp_buf_addc(to, c);
        if (in_string && c == '\\') {
            char next = i + 1 < from->len ? from->data[i + 1] : 0;
            if (!next || !strchr(escapes, next)) {
                tp_buf_addc(to, '\\');
            } else {
                tp_buf_addc(to, next);
                i++;
            }
        } else if (c == '"') {
            in_string = !in_string;
        }
    }
}

static const tp_json *parse_value(tp_arena *arena, const tp_buf *text)
{
    const tp_json *value;
    TP_OWN(tp_buf) mended = {0};
    if (tp_json_parse(arena, "metadata", text->data, text->len, &TP_JSON_TOLERANT, &value, NULL) ==
        TP_OK)
        return value;
    mend(text, &mended);
    tp_status status = tp_json_parse(arena, "metadata", tp_buf_str(&mended), mended.len,
                                     &TP_JSON_TOLERANT, &value, NULL);
    return status == TP_OK ? value : NULL;
}

void tp_kineto_members_read(tp_kineto *k)
{
    TP_OWN(tp_buf) all = {0};
    tp_json_w w = tp_json_w_open(&all, 0, '{');
    for (size_t i = 0; i < k->n_members; i++) {
        const tp_kineto_member *member = &k->members[i];
        TP_OWN(tp_arena) arena = {0};
        if (tp_arena_init(&arena, (member->value.len + 64) * 160, NULL) != TP_OK) {
            k->n_lost_members++;
            continue;
        }
        const tp_json *value = parse_value(&arena, &member->value);
        if (value) {
            read_member(k, member->key.data, value);
            tp_json_w_put_value(
                &w, tp_utf8_valid(member->key.data, member->key.len) ? member->key.data : "?",
                value);
        } else {
            k->n_lost_members++;
        }
    }
    tp_json_w_end(&w, '}');
    k->events->info.metadata = tp_string_add(&k->events->strings, all.data, all.len);
}

void tp_kineto_members_release(tp_kineto *k)
{
    for (size_t i = 0; i < k->n_members; i++) {
        tp_buf_release(&k->members[i].key);
        tp_buf_release(&k->members[i].value);
    }
    free(k->members);
    k->members = NULL;
    k->n_members = 0;
}
