/* event_record.h - records of an event file: framing, checksums, and the few fields that matter.
 *
 *     u64 length | u32 masked CRC-32C of it | data | u32 masked CRC-32C of data     little-endian
 *
 * data is a protobuf message `Event`; docs/formats/runs.md has the fields.  Bounded: nothing is
 * allocated, every length is held against what is there. */
#ifndef TP_INSTRUMENT_INGEST_RUNS_EVENT_RECORD_H
#define TP_INSTRUMENT_INGEST_RUNS_EVENT_RECORD_H

#include "base/strings.h"

enum { TP_EVENT_HEADER = 12, TP_EVENT_FOOTER = 4 };

/* ((crc >> 15) | (crc << 17)) + 0xa282ead8 */
uint32_t tp_event_checksum(const void *bytes, size_t n);
/* Is there a header whose checksum is right?  `at` has 12 bytes. */
bool tp_event_header(const char *at, uint64_t *ret_length);
uint32_t tp_event_u32(const char *at);

typedef struct {
    double wall;
    int64_t step;
    tp_slice version;                    /* of a file_version; data NULL: none */
    bool has_summary, has_session_start; /* at most one of them */
} tp_event;

/* False where the bytes are no message.  Values are handed to tp_event_values() afterwards. */
bool tp_event_parse(tp_slice bytes, tp_event *ret);

typedef enum {
    TP_EVENT_NOTHING,
    TP_EVENT_SIMPLE, /* simple_value */
    TP_EVENT_TENSOR,
    TP_EVENT_MEDIA /* histogram, image, audio */
} tp_event_value_kind;

typedef struct {
    tp_slice tag, node;
    tp_event_value_kind kind;
    bool has_metadata;
    tp_slice plugin, content; /* plugin_name and its content, of the metadata */
    tp_slice text;            /* the first string of a tensor; data NULL: none */
    bool has_number;          /* of simple_value, or the one element of a tensor */
    bool is_float;            /* simple_value, or a tensor DT_FLOAT of rank 0 */
    double number;
} tp_event_value;

/* Every value of the event's summary, in order.  False where they are no messages. */
bool tp_event_values(tp_slice event, void (*see)(void *user, const tp_event_value *value),
                     void *user);

/* One field of any message: its number and, by wire type, the number or the bytes.  False at the
 * end (rest empty) or where it is malformed (rest not empty). */
typedef struct {
    uint32_t number;
    int wire; /* 0 varint, 1 fixed 64, 2 bytes, 5 fixed 32 */
    uint64_t bits;
    tp_slice bytes;
} tp_proto_field;
bool tp_proto_next(tp_slice *rest, tp_proto_field *ret);
double tp_proto_double(const tp_proto_field *f);

#endif
