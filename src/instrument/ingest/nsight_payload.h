/* nsight_payload.h - what NVTX ranges carry besides their name.
 *
 * A library may attach a C structure to a range and describe its layout: Nsight stores the
 * bytes in NVTX_EVENTS.binaryData and the layouts in NVTX_PAYLOAD_SCHEMAS and
 * NVTX_PAYLOAD_SCHEMA_ENTRIES.  NCCL does so for every call: communicator, message size,
 * ranks, peer.  Fields are found by the names and the layout that the file declares; a
 * version that moves or adds fields reads as well, one that renames them reads as unknown.
 *
 *     binaryData, words of 8 bytes, little endian:
 *         ... | schema id | size | offset or end | payload of `size` bytes
 *
 * The words are found by the id and the size standing beside each other as declared. */
#ifndef TP_INSTRUMENT_INGEST_NSIGHT_PAYLOAD_H
#define TP_INSTRUMENT_INGEST_NSIGHT_PAYLOAD_H

#include "instrument/ingest/nsight.h"

typedef enum {
    TP_PAYLOAD_COMMUNICATOR,
    TP_PAYLOAD_BYTES,
    TP_PAYLOAD_RANKS,
    TP_PAYLOAD_RANK,
    TP_PAYLOAD_DEVICE,
    TP_PAYLOAD_FIELDS
} tp_payload_field;

typedef struct {
    int64_t v[TP_PAYLOAD_FIELDS];
    bool has[TP_PAYLOAD_FIELDS];
} tp_nsight_payload;

/* Where a field lies; size 0: the schema has no such field. */
typedef struct {
    uint32_t offset;
    uint8_t size;
    bool is_signed;
} tp_payload_place;

typedef struct {
    int64_t domain, id, size;
    tp_payload_place places[TP_PAYLOAD_FIELDS];
    /* while reading: where the next field begins when the file does not say; -1: unknown */
    int64_t next;
    int64_t n_entries;
    bool is_odd; /* declared twice and differently, or with fields outside: not used */
} tp_payload_schema;

struct tp_nsight_schemas {
    tp_payload_schema *v;
    size_t n, cap;
};

void tp_nsight_schemas_read(tp_nsight *n, tp_nsight_schemas *ret);
void tp_nsight_schemas_release(tp_nsight_schemas *schemas);

/* False when the bytes are not what any schema of the domain declares. */
bool tp_nsight_payload_decode(const tp_nsight_schemas *schemas, int64_t domain,
                              const unsigned char *bytes, size_t size, tp_nsight_payload *ret);

#endif
