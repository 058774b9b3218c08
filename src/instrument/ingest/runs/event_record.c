/* event_record.c - a bounded walk over protobuf's wire format: the fields of Event, Summary.Value
 * and TensorProto that say which number a tag had at which step. */
#include "instrument/ingest/runs/event_record.h"

#include <isa-l/crc.h>
#include <math.h>
#include <string.h>

uint32_t tp_event_u32(const char *at)
{
    uint32_t v;
    memcpy(&v, at, sizeof v);
    return v;
}

uint32_t tp_event_checksum(const void *bytes, size_t n)
{
    /* ISA-L counts in int, and asks for a pointer that is not const. */
    unsigned char *at = (unsigned char *)(uintptr_t)bytes;
    uint32_t crc = 0xffffffff;
    for (size_t step; n; n -= step, at += step) {
        step = n < 1 << 30 ? n : 1 << 30;
        crc = crc32_iscsi(at, (int)step, crc);
    }
    crc ^= 0xffffffff;
    return (crc >> 15 | crc << 17) + 0xa282ead8;
}

bool tp_event_header(const char *at, uint64_t *ret_length)
{
    memcpy(ret_length, at, sizeof *ret_length);
    return tp_event_checksum(at, 8) == tp_event_u32(at + 8);
}

/* ---- the wire format ---- */

/* From `p` on, before `end`; the place behind it, or NULL. */
static inline const char *varint_at(const char *p, const char *end, uint64_t *ret)
{
    uint64_t v = 0;
    if (p < end && (unsigned char)*p < 0x80) {
        *ret = (unsigned char)*p;
        return p + 1;
    }
    for (unsigned shift = 0; p < end && shift < 70; shift += 7) {
        unsigned char byte = (unsigned char)*p++;
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *ret = v;
            return p;
        }
    }
    return NULL;
}

static bool varint(tp_slice *rest, uint64_t *ret)
{
    if (!rest->len)
        return false;
    const char *end = rest->data + rest->len, *p = varint_at(rest->data, end, ret);
    if (p)
        *rest = (tp_slice){p, (size_t)(end - p)};
    return p != NULL;
}

static bool take(tp_slice *rest, uint64_t n, tp_slice *ret)
{
    if (n > rest->len)
        return false;
    *ret = (tp_slice){rest->data, (size_t)n};
    *rest = (tp_slice){rest->data + n, rest->len - (size_t)n};
    return true;
}

/* Groups (wire types 3 and 4) are of an older protobuf; no field here has them. */
bool tp_proto_next(tp_slice *rest, tp_proto_field *ret)
{
    if (!rest->len)
        return false;
    const char *p = rest->data, *end = p + rest->len;
    uint64_t key, n;
    uint32_t half;
    if (!(p = varint_at(p, end, &key)) || key >> 3 == 0 || key >> 3 > 0x1fffffff)
        return false;
    ret->number = (uint32_t)(key >> 3);
    ret->wire = (int)(key & 7);
    switch (ret->wire) {
    case 0:
        if (!(p = varint_at(p, end, &ret->bits)))
            return false;
        break;
    case 1:
        if (end - p < 8)
            return false;
        memcpy(&ret->bits, p, 8);
        p += 8;
        break;
    case 5:
        if (end - p < 4)
            return false;
        memcpy(&half, p, 4);
        ret->bits = half;
        p += 4;
        break;
    case 2:
        if (!(p = varint_at(p, end, &n)) || n > (uint64_t)(end - p))
            return false;
        ret->bytes = (tp_slice){p, (size_t)n};
        p += n;
        break;
    default:
        return false;
    }
    *rest = (tp_slice){p, (size_t)(end - p)};
    return true;
}

double tp_proto_double(const tp_proto_field *f)
{
    double d;
    memcpy(&d, &f->bits, sizeof d);
    return d;
}

static double float_of(uint64_t bits)
{
    uint32_t low = (uint32_t)bits;
    float f;
    memcpy(&f, &low, sizeof f);
    return (double)f;
}

static bool is_field(const tp_proto_field *f, uint32_t number, int wire)
{
    return f->number == number && f->wire == wire;
}

/* ---- Event ---- */

enum { SESSION_START = 1 };

static bool session_starts(tp_slice session)
{
    tp_proto_field f;
    uint64_t status = 0;
    while (tp_proto_next(&session, &f))
        if (is_field(&f, 1, 0))
            status = f.bits;
    return status == SESSION_START;
}

bool tp_event_parse(tp_slice bytes, tp_event *ret)
{
    tp_proto_field f;
    *ret = (tp_event){0};
    while (tp_proto_next(&bytes, &f)) {
        if (is_field(&f, 1, 1))
            ret->wall = tp_proto_double(&f);
        else if (is_field(&f, 2, 0))
            ret->step = (int64_t)f.bits;
        if (f.wire != 2 || f.number < 3 || f.number > 9)
            continue;
        /* one of them only: the last */
        ret->version = f.number == 3 ? f.bytes : (tp_slice){0};
        ret->has_summary = f.number == 5;
        ret->has_session_start = f.number == 7 && session_starts(f.bytes);
    }
    return bytes.len == 0;
}

/* ---- TensorProto ---- */

enum {
    DT_FLOAT = 1,
    DT_DOUBLE = 2,
    DT_INT32 = 3,
    DT_UINT8 = 4,
    DT_INT16 = 5,
    DT_INT8 = 6,
    DT_INT64 = 9,
    DT_BOOL = 10,
    DT_BFLOAT16 = 14,
    DT_UINT16 = 17,
    DT_HALF = 19,
    DT_UINT32 = 22,
    DT_UINT64 = 23
};

static double half_of(uint64_t bits)
{
    int exponent = (int)(bits >> 10 & 31);
    double fraction = (double)(bits & 1023);
    double v = exponent == 0    ? ldexp(fraction, -24)
               : exponent == 31 ? (fraction != 0 ? NAN : INFINITY)
                                : ldexp(1024 + fraction, exponent - 25);
    return bits & 0x8000 ? -v : v;
}

/* An element as its bits, as a type's bits are written in tensor_content. */
static double number_of(uint64_t type, uint64_t bits, bool *ret_known)
{
    *ret_known = true;
    switch (type) {
    case DT_FLOAT:
        return float_of(bits);
    case DT_DOUBLE: {
        double d;
        memcpy(&d, &bits, sizeof d);
        return d;
    }
    case DT_INT32:
        return (double)(int32_t)(uint32_t)bits;
    case DT_INT16:
        return (double)(int16_t)(uint16_t)bits;
    case DT_INT8:
        return (double)(int8_t)(uint8_t)bits;
    case DT_UINT8:
        return (double)(uint8_t)bits;
    case DT_UINT16:
        return (double)(uint16_t)bits;
    case DT_UINT32:
        return (double)(uint32_t)bits;
    case DT_INT64:
        return (double)(int64_t)bits;
    case DT_UINT64:
        return (double)bits;
    case DT_BOOL:
        return (uint8_t)bits != 0;
    case DT_HALF:
        return half_of(bits);
    case DT_BFLOAT16:
        return float_of(bits << 16);
    default:
        *ret_known = false;
        return NAN;
    }
}

/* Bytes of an element in tensor_content; 0: not a type of numbers. */
static size_t size_of(uint64_t type)
{
    switch (type) {
    case DT_FLOAT:
    case DT_INT32:
    case DT_UINT32:
        return 4;
    case DT_DOUBLE:
    case DT_INT64:
    case DT_UINT64:
        return 8;
    case DT_UINT8:
    case DT_INT8:
    case DT_BOOL:
        return 1;
    case DT_INT16:
    case DT_UINT16:
    case DT_HALF:
    case DT_BFLOAT16:
        return 2;
    default:
        return 0;
    }
}

/* The typed list of a type: float_val, double_val, int_val, ... */
static uint32_t list_of(uint64_t type)
{
    switch (type) {
    case DT_FLOAT:
        return 5;
    case DT_DOUBLE:
        return 6;
    case DT_INT64:
        return 10;
    case DT_BOOL:
        return 11;
    case DT_HALF:
    case DT_BFLOAT16:
        return 13;
    case DT_UINT32:
        return 16;
    case DT_UINT64:
        return 17;
    default:
        return 7;
    }
}

/* How many elements the shape has: 0, 1, or 2 for more; dimensions are counted. */
static int elements_of(tp_slice shape, int *ret_rank)
{
    tp_proto_field f, d;
    int n = 1;
    *ret_rank = 0;
    while (tp_proto_next(&shape, &f)) {
        if (!is_field(&f, 2, 2))
            continue;
        uint64_t size = 0;
        while (tp_proto_next(&f.bytes, &d))
            if (is_field(&d, 1, 0))
                size = d.bits;
        ++*ret_rank;
        n = size == 0 ? 0 : size == 1 ? n : n ? 2 : 0;
    }
    return n;
}

typedef struct {
    uint64_t type;
    tp_slice shape, content, text;
    uint64_t first[18]; /* of each typed list, by field number, and how many there are */
    size_t n[18];
} tensor;

static void add_packed(tensor *t, const tp_proto_field *f)
{
    tp_slice rest = f->bytes;
    size_t width = f->number == 5 ? 4 : f->number == 6 ? 8 : 0;
    while (rest.len) {
        uint64_t bits = 0;
        tp_slice element;
        if (width && !take(&rest, width, &element))
            return;
        if (width)
            memcpy(&bits, element.data, width);
        else if (!varint(&rest, &bits))
            return;
        if (t->n[f->number]++ == 0)
            t->first[f->number] = bits;
    }
}

static void read_tensor(tp_slice bytes, tensor *t)
{
    tp_proto_field f;
    while (tp_proto_next(&bytes, &f)) {
        if (is_field(&f, 1, 0))
            t->type = f.bits;
        else if (is_field(&f, 2, 2))
            t->shape = f.bytes;
        else if (is_field(&f, 4, 2))
            t->content = f.bytes;
        else if (is_field(&f, 8, 2))
            t->text = t->text.data ? t->text : f.bytes;
        else if (f.number >= 5 && f.number < 18 && f.wire == 2)
            add_packed(t, &f);
        else if (f.number >= 5 && f.number < 18 && t->n[f.number]++ == 0)
            t->first[f.number] = f.bits;
    }
}

/* The one element, if there is just one.  A list of one value fills any shape. */
static void tensor_number(tp_slice bytes, tp_event_value *v)
{
    tensor t = {0};
    int rank;
    uint64_t bits = 0;
    read_tensor(bytes, &t);
    v->text = t.text;
    int n = elements_of(t.shape, &rank);
    size_t size = size_of(t.type);
    if (n != 1 || size == 0)
        return;
    if (t.content.len) {
        if (t.content.len != size)
            return;
        memcpy(&bits, t.content.data, size);
    } else {
        uint32_t list = list_of(t.type);
        if (t.n[list] != 1)
            return;
        bits = t.first[list];
    }
    v->number = number_of(t.type, bits, &v->has_number);
    v->is_float = t.type == DT_FLOAT && rank == 0;
}

/* ---- Summary.Value ---- */

static void read_metadata(tp_slice metadata, tp_event_value *v)
{
    tp_proto_field f, p;
    v->has_metadata = true;
    while (tp_proto_next(&metadata, &f)) {
        if (!is_field(&f, 1, 2))
            continue;
        while (tp_proto_next(&f.bytes, &p)) {
            if (is_field(&p, 1, 2))
                v->plugin = p.bytes;
            else if (is_field(&p, 2, 2))
                v->content = p.bytes;
        }
    }
}

static bool read_value(tp_slice bytes, tp_event_value *v)
{
    tp_proto_field f;
    tp_slice tensor_bytes = {0};
    *v = (tp_event_value){0};
    while (tp_proto_next(&bytes, &f)) {
        if (is_field(&f, 1, 2)) {
            v->tag = f.bytes;
        } else if (is_field(&f, 7, 2)) {
            v->node = f.bytes;
        } else if (is_field(&f, 9, 2)) {
            read_metadata(f.bytes, v);
        } else if (is_field(&f, 2, 5)) {
            v->kind = TP_EVENT_SIMPLE;
            v->number = float_of(f.bits);
        } else if (is_field(&f, 8, 2)) {
            v->kind = TP_EVENT_TENSOR;
            tensor_bytes = f.bytes;
        } else if (f.wire == 2 && f.number >= 4 && f.number <= 6) {
            v->kind = TP_EVENT_MEDIA;
        }
    }
    if (v->kind == TP_EVENT_SIMPLE)
        v->has_number = v->is_float = true;
    else if (v->kind == TP_EVENT_TENSOR)
        tensor_number(tensor_bytes, v);
    return bytes.len == 0;
}

bool tp_event_values(tp_slice event, void (*see)(void *user, const tp_event_value *value),
                     void *user)
{
    tp_proto_field f, s;
    while (tp_proto_next(&event, &f)) {
        if (!is_field(&f, 5, 2))
            continue;
        while (tp_proto_next(&f.bytes, &s)) {
            tp_event_value v;
            if (!is_field(&s, 1, 2))
                continue;
            if (!read_value(s.bytes, &v))
                return false;
            see(user, &v);
        }
        if (f.bytes.len)
            return false;
    }
    return event.len == 0;
}
