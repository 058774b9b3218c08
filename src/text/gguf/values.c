/* values.c - what a key holds, asked for by the type that is needed. */
#include <math.h>
#include <string.h>

#include "base/platform.h"
#include "text/gguf/gguf.h"

tp_status tp_gguf_fail(const tp_gguf *g, const tp_gguf_value *v, tp_status status, tp_error *err,
                       const char *fmt, ...)
{
    char text[512];
    TP_FORMAT(text, fmt);
    return tp_fail(err, status, "%s: byte %zu: '%.*s' %s", tp_gguf_name(g), v->at,
                   (int)TP_MIN(v->key.len, 100), v->key.data, text);
}

static const char *name_of(uint32_t type)
{
    static const char *const names[] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                        "bool", "string", "array", "u64", "i64", "f64"};
    return type < TP_COUNTOF(names) ? names[type] : "of an unknown type";
}

static tp_status wrong_type(const tp_gguf *g, const tp_gguf_value *v, const char *wanted,
                            tp_error *err)
{
    return tp_gguf_fail(g, v, TP_ERR_FORMAT, err, "is %s; expected %s", name_of(v->type), wanted);
}

/* u64 beyond 2^63 becomes negative, which no caller accepts. */
static bool integer(uint32_t type, const char *data, int64_t *ret)
{
    switch (type) {
#define READ(name, c_type)                  \
    case TP_GGUF_##name: {                  \
        c_type value;                       \
        memcpy(&value, data, sizeof value); \
        *ret = (int64_t)value;              \
        return true;                        \
    }
        READ(U8, uint8_t)
        READ(I8, int8_t)
        READ(U16, uint16_t)
        READ(I16, int16_t)
        READ(U32, uint32_t)
        READ(I32, int32_t)
        READ(U64, uint64_t)
        READ(I64, int64_t)
        READ(BOOL, uint8_t)
#undef READ
    default:
        return false;
    }
}

tp_status tp_gguf_get_int(const tp_gguf *g, const char *key, int64_t low, int64_t high,
                          int64_t *ret, tp_error *err)
{
    const tp_gguf_value *v = tp_gguf_find(g, key);
    int64_t value = 0;
    if (!v)
        return TP_OK;
    if (v->type == TP_GGUF_BOOL || !integer(v->type, v->data, &value))
        return wrong_type(g, v, "an integer", err);
    if (value < low || value > high)
        return tp_gguf_fail(g, v, TP_ERR_FORMAT, err, "is %lld; expected %lld to %lld",
                            (long long)value, (long long)low, (long long)high);
    *ret = value;
    return TP_OK;
}

tp_status tp_gguf_get_number(const tp_gguf *g, const char *key, double *ret, tp_error *err)
{
    const tp_gguf_value *v = tp_gguf_find(g, key);
    if (!v)
        return TP_OK;
    float narrow;
    if (v->type == TP_GGUF_F32) {
        memcpy(&narrow, v->data, sizeof narrow);
        *ret = (double)narrow;
    } else if (v->type == TP_GGUF_F64)
        memcpy(ret, v->data, sizeof *ret);
    else
        return wrong_type(g, v, "f32", err);
    if (!isfinite(*ret))
        return tp_gguf_fail(g, v, TP_ERR_FORMAT, err, "is not a finite number");
    return TP_OK;
}

tp_status tp_gguf_get_bool(const tp_gguf *g, const char *key, bool *ret, tp_error *err)
{
    const tp_gguf_value *v = tp_gguf_find(g, key);
    if (!v)
        return TP_OK;
    if (v->type != TP_GGUF_BOOL)
        return wrong_type(g, v, "bool", err);
    *ret = *v->data != 0;
    return TP_OK;
}

static tp_slice string_at(const char *data)
{
    uint64_t n;
    memcpy(&n, data, sizeof n);
    return (tp_slice){data + sizeof n, (size_t)n};
}

tp_status tp_gguf_get_string(const tp_gguf *g, const char *key, tp_slice *ret, tp_error *err)
{
    const tp_gguf_value *v = tp_gguf_find(g, key);
    if (!v)
        return TP_OK;
    if (v->type != TP_GGUF_STRING)
        return wrong_type(g, v, "a string", err);
    tp_slice s = string_at(v->data);
    if (!tp_utf8_valid(s.data, s.len) || memchr(s.data, 0, s.len))
        return tp_gguf_fail(g, v, TP_ERR_FORMAT, err, "is no UTF-8 text");
    *ret = s;
    return TP_OK;
}

tp_status tp_gguf_get_array(const tp_gguf *g, const char *key, tp_gguf_type item,
                            const tp_gguf_value **ret, tp_error *err)
{
    const tp_gguf_value *v = tp_gguf_find(g, key);
    *ret = v;
    if (v && (v->type != TP_GGUF_ARRAY || v->item != item))
        return tp_gguf_fail(g, v, TP_ERR_FORMAT, err, "is %s%s; expected an array of %s",
                            v->type == TP_GGUF_ARRAY ? "an array of " : "", name_of(v->item),
                            name_of(item));
    return TP_OK;
}

tp_slice tp_gguf_next_string(const tp_gguf_value *array, size_t *at)
{
    tp_slice s = string_at(array->data + *at);
    *at += sizeof(uint64_t) + s.len;
    return s;
}

int64_t tp_gguf_int_at(const tp_gguf_value *array, uint64_t i)
{
    static const uint8_t sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    int64_t value = 0;
    integer(array->item, array->data + i * sizes[array->item], &value);
    return value;
}
