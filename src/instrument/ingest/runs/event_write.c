/* event_write.c - Event messages with one file_version, session_log or summary, framed. */
#include "instrument/ingest/runs/event_write.h"

#include <string.h>

#include "instrument/ingest/runs/event_record.h"

enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 }; /* wire types */

static void put_varint(tp_buf *out, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        tp_buf_addc(out, (char)(v | 0x80));
    tp_buf_addc(out, (char)v);
}

static size_t varint_bytes(uint64_t v)
{
    size_t n = 1;
    while (v >>= 7)
        n++;
    return n;
}

static void put_key(tp_buf *out, uint32_t field, uint32_t wire)
{
    put_varint(out, field << 3 | wire);
}

/* Fields here have numbers below 16: a key is one byte. */
static size_t bytes_field(size_t n) { return 1 + varint_bytes(n) + n; }

static void put_bytes(tp_buf *out, uint32_t field, const void *data, size_t n)
{
    put_key(out, field, BYTES);
    put_varint(out, n);
    tp_buf_add(out, data, n);
}

/* ---- records ---- */

static void put_u32(char *at, uint32_t v) { memcpy(at, &v, sizeof v); }

static size_t begin_record(tp_buf *out, double wall, int64_t step)
{
    size_t start = out->len;
    static const char header[TP_EVENT_HEADER];
    tp_buf_add(out, header, sizeof header);
    put_key(out, 1, FIXED64);
    tp_buf_add(out, &wall, sizeof wall);
    if (step) { /* 0 is what an absent number means */
        put_key(out, 2, VARINT);
        put_varint(out, (uint64_t)step);
    }
    return start;
}

static void end_record(tp_buf *out, size_t start)
{
    char footer[TP_EVENT_FOOTER], *header = out->data + start;
    uint64_t length = out->len - start - TP_EVENT_HEADER;
    memcpy(header, &length, sizeof length);
    put_u32(header + 8, tp_event_checksum(header, 8));
    put_u32(footer, tp_event_checksum(header + TP_EVENT_HEADER, length));
    tp_buf_add(out, footer, sizeof footer);
}

void tp_event_put_version(tp_buf *out, double wall)
{
    static const char version[] = "brain.Event:2";
    size_t start = begin_record(out, wall, 0);
    put_bytes(out, 3, version, sizeof version - 1);
    end_record(out, start);
}

void tp_event_put_start(tp_buf *out, double wall, int64_t step)
{
    static const char started[] = {1 << 3, 1}; /* status: START */
    size_t start = begin_record(out, wall, step);
    put_bytes(out, 7, started, sizeof started);
    end_record(out, start);
}

void tp_event_put_summary(tp_buf *out, double wall, int64_t step, const tp_buf *summary)
{
    size_t start = begin_record(out, wall, step);
    put_bytes(out, 5, summary->data, summary->len);
    end_record(out, start);
}

/* ---- values ---- */

/* SummaryMetadata: plugin_data{plugin_name}, summary_description, data_class SCALAR. */
static const char plugin[] = {1 << 3 | BYTES, 7, 's', 'c', 'a', 'l', 'a', 'r', 's'};

static size_t metadata_bytes(const char *description)
{
    return bytes_field(sizeof plugin) + bytes_field(strlen(description)) + 2;
}

static void put_metadata(tp_buf *out, const char *description)
{
    put_key(out, 9, BYTES);
    put_varint(out, metadata_bytes(description));
    put_bytes(out, 1, plugin, sizeof plugin);
    put_bytes(out, 3, description, strlen(description));
    put_key(out, 4, VARINT);
    put_varint(out, 1);
}

void tp_event_add_scalar(tp_buf *summary, const char *tag, float value, const char *description)
{
    size_t n = bytes_field(strlen(tag)) + 1 + sizeof value;
    if (description)
        n += bytes_field(metadata_bytes(description));
    put_key(summary, 1, BYTES);
    put_varint(summary, n);
    put_bytes(summary, 1, tag, strlen(tag));
    put_key(summary, 2, FIXED32);
    tp_buf_add(summary, &value, sizeof value);
    if (description)
        put_metadata(summary, description);
}
