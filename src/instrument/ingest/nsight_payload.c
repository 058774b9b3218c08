/* nsight_payload.c - decodes NVTX payloads by the layouts that the export declares. */
#include "instrument/ingest/nsight_payload.h"

#include <stdlib.h>
#include <string.h>

#include "base/platform.h"

enum { SCHEMAS_MAX = 512, PAYLOAD_MAX = 1 << 20, HEADER_WORDS = 3, WORD = 8 };

/* ---- layouts ---- */

static tp_payload_schema *find_schema(const tp_nsight_schemas *s, int64_t domain, int64_t id)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->v[i].domain == domain && s->v[i].id == id)
            return &s->v[i];
    return NULL;
}

/* Bytes of NVTX's predefined types (nvToolsExtPayload.h) on 64-bit Linux, negative when
 * signed; 0 for the rest.  Ids of enumerations are the file's own: C makes them an int. */
static int size_of_type(int64_t type)
{
    static const int8_t sizes[] = {0, -1, 1, -2, 2, -4, 4, -8, 8, -8, 8, -1,
                                   1, -2, 2, -4, 4, -8, 8, 4,  8, 16, 8, 8};
    enum { FLOAT32 = 19, LONG_DOUBLE = 21, FIRST_OWN_ID = 1 << 24 };
    if (type >= 0 && type < (int64_t)TP_COUNTOF(sizes))
        return sizes[type];
    return type >= FIRST_OWN_ID ? -4 : 0;
}

static bool is_number(int64_t type)
{
    enum { FLOAT32 = 19, FLOAT64 = 20, LONG_DOUBLE = 21 };
    return size_of_type(type) && type != FLOAT32 && type != FLOAT64 && type != LONG_DOUBLE;
}

/* By the names that NCCL gives its fields. */
static tp_payload_field field_of(const char *name)
{
    static const char *const names[TP_PAYLOAD_FIELDS] = {[TP_PAYLOAD_COMMUNICATOR] =
                                                             "NCCL communicator ID",
                                                         [TP_PAYLOAD_BYTES] = "Message size",
                                                         [TP_PAYLOAD_RANKS] = "No. of ranks",
                                                         [TP_PAYLOAD_RANK] = "Rank",
                                                         [TP_PAYLOAD_DEVICE] = "CUDA device"};
    for (int i = 0; i < TP_PAYLOAD_FIELDS; i++) {
        size_t len = strlen(names[i]);
        /* "Message size [bytes]": the unit does not count */
        if (strncmp(name, names[i], len) == 0 &&
            (!name[len] || strcmp(name + len, " [bytes]") == 0))
            return (tp_payload_field)i;
    }
    return TP_PAYLOAD_FIELDS;
}

/* Each process declares its schemas anew: equal ones are one. */
static void read_sizes(tp_nsight *n, tp_nsight_schemas *s)
{
    enum { DOMAIN, ID, SIZE };
    static const char *const columns[] = {"domainId", "schemaId", "payloadSize"};
    tp_nsight_query q;
    if (!tp_nsight_begin(&q, n, "NVTX_PAYLOAD_SCHEMAS", columns, TP_COUNTOF(columns), 3))
        return;
    while (tp_nsight_next(&q) && s->n < SCHEMAS_MAX) {
        int64_t domain = tp_nsight_i64(&q, DOMAIN), id = tp_nsight_i64(&q, ID);
        int64_t size = tp_nsight_i64(&q, SIZE);
        if (id == TP_UNKNOWN || size <= 0 || size > PAYLOAD_MAX)
            continue; /* of a size that changes: none of NCCL's */
        tp_payload_schema *same = find_schema(s, domain, id);
        if (same) {
            same->is_odd |= same->size != size;
            continue;
        }
        tp_payload_schema *schema = TP_VEC_PUSH(s->v, s->n, s->cap);
        schema->domain = domain;
        schema->id = id;
        schema->size = size;
    }
    tp_nsight_end(&q);
}

static void add_field(tp_payload_schema *schema, tp_payload_field field, tp_payload_place place)
{
    tp_payload_place *old = &schema->places[field];
    if ((int64_t)place.offset + place.size > schema->size ||
        (old->size && (old->offset != place.offset || old->size != place.size))) {
        schema->is_odd = true;
        return;
    }
    *old = place;
}

/* The first entry of a structure is often written without an offset, as are all of one that
 * is laid out by the rules of C. */
static int64_t offset_of(tp_payload_schema *schema, int64_t index, int64_t given, int size)
{
    int64_t at = given;
    if (index == 0)
        schema->next = 0;
    if (at == TP_UNKNOWN || (at == 0 && index > 0))
        at = schema->next < 0 || !size ? -1 : (schema->next + size - 1) / size * size;
    schema->next = at < 0 || !size ? -1 : at + size;
    return at;
}

static void read_entries(tp_nsight *n, tp_nsight_schemas *s)
{
    enum { DOMAIN, ID, INDEX, TYPE, NAME, OFFSET, FLAGS };
    /* NVTX_PAYLOAD_ENTRY_FLAG_POINTER and the kinds of arrays: the value is elsewhere */
    enum { INDIRECT = 0x7e };
    static const char *const columns[] = {"domainId", "schemaId", "idx",  "type",
                                          "name",     "offset",   "flags"};
    tp_nsight_query q;
    if (!tp_nsight_begin(&q, n, "NVTX_PAYLOAD_SCHEMA_ENTRIES", columns, TP_COUNTOF(columns), 5))
        return;
    while (tp_nsight_next(&q)) {
        int64_t index = tp_nsight_i64(&q, INDEX), type = tp_nsight_i64(&q, TYPE);
        int64_t flags = tp_nsight_i64(&q, FLAGS);
        tp_payload_schema *schema =
            find_schema(s, tp_nsight_i64(&q, DOMAIN), tp_nsight_i64(&q, ID));
        if (!schema || index == TP_UNKNOWN)
            continue;
        bool is_plain = flags == TP_UNKNOWN || !(flags & INDIRECT);
        int signed_size = is_plain ? size_of_type(type) : 0, size = abs(signed_size);
        int64_t given = tp_nsight_i64(&q, OFFSET);
        if (given != TP_UNKNOWN && (given < 0 || given > PAYLOAD_MAX)) {
            schema->is_odd = true;
            continue;
        }
        int64_t at = offset_of(schema, index, given, size);
        tp_payload_field field = field_of(tp_nsight_chars(&q, NAME));
        if (field == TP_PAYLOAD_FIELDS || at < 0 || !is_plain || !is_number(type))
            continue;
        add_field(schema, field, (tp_payload_place){(uint32_t)at, (uint8_t)size, signed_size < 0});
    }
    tp_nsight_end(&q);
}

void tp_nsight_schemas_read(tp_nsight *n, tp_nsight_schemas *ret)
{
    *ret = (tp_nsight_schemas){0};
    read_sizes(n, ret);
    if (ret->n)
        read_entries(n, ret);
}

void tp_nsight_schemas_release(tp_nsight_schemas *s)
{
    free(s->v);
    *s = (tp_nsight_schemas){0};
}

/* ---- values ---- */

static uint64_t number_at(const unsigned char *p, int size)
{
    uint64_t v = 0;
    for (int i = size - 1; i >= 0; i--)
        v = v << 8 | p[i];
    return v;
}

static int64_t value_at(const unsigned char *payload, const tp_payload_place *place)
{
    uint64_t v = number_at(payload + place->offset, place->size);
    int unused = 64 - place->size * 8;
    if (!place->is_signed || !unused)
        return (int64_t)v;
    return (int64_t)(v << unused) >> unused;
}

/* The third word is the payload's offset, or where it ends: then it follows the header. */
static size_t payload_start(size_t header, uint64_t third, size_t size, size_t total)
{
    size_t after = header + HEADER_WORDS * WORD;
    return third >= after && third <= total && total - third >= size ? (size_t)third : after;
}

bool tp_nsight_payload_decode(const tp_nsight_schemas *s, int64_t domain,
                              const unsigned char *bytes, size_t total, tp_nsight_payload *ret)
{
    enum { HEADER_LAST = 8 * WORD };
    for (size_t at = 0; at <= HEADER_LAST && at + HEADER_WORDS * WORD <= total; at += WORD) {
        /* ids are 64 bits wide, or 32 with flags above */
        uint64_t id = number_at(bytes + at, WORD), size = number_at(bytes + at + WORD, WORD);
        const tp_payload_schema *schema = find_schema(s, domain, (int64_t)(id & UINT32_MAX));
        if (!schema)
            schema = find_schema(s, domain, (int64_t)id);
        if (!schema || schema->is_odd || size != (uint64_t)schema->size)
            continue;
        size_t start = payload_start(at, number_at(bytes + at + 2 * WORD, WORD), size, total);
        if (start > total || total - start < size)
            return false; /* cut short */
        *ret = (tp_nsight_payload){0};
        for (int i = 0; i < TP_PAYLOAD_FIELDS; i++) {
            const tp_payload_place *place = &schema->places[i];
            if (!place->size)
                continue;
            ret->has[i] = true;
            ret->v[i] = value_at(bytes + start, place);
        }
        return true;
    }
    return false;
}
