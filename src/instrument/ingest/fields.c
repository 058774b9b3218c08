/* fields.c - numbers and strings of an event from their text: decimal microseconds to exact
 * nanoseconds. */
#include "instrument/ingest/fields.h"

#include <math.h>
#include <stdlib.h>

#include "base/platform.h"

/* The value of eight digits, the first in the lowest byte, each 0 to 9. */
static inline uint64_t eight_digits(uint64_t v)
{
    v = v * 10 + (v >> 8); /* pairs, in every other byte */
    return ((v & UINT64_C(0x000000ff000000ff)) * UINT64_C(0x000f424000000064) +
            (v >> 16 & UINT64_C(0x000000ff000000ff)) * UINT64_C(0x0000271000000001)) >>
               32 &
           UINT32_MAX;
}

/* The eight digits at `text`, or the first `n`, as their values in bytes, led by zeros; false
 * if one is no digit. */
static inline bool load_digits(const char *text, size_t n, uint64_t *ret)
{
    uint64_t chunk;
    memcpy(&chunk, text, sizeof chunk);
    chunk = (chunk ^ UINT64_C(0x3030303030303030)) << (64 - 8 * n);
    *ret = chunk;
    return !(((chunk + UINT64_C(0x7676767676767676)) | chunk) & UINT64_C(0x8080808080808080));
}

/* Nothing but 1 to 16 digits, which is what numbers of traces are. */
static inline bool plain_digits(const char *text, size_t len, uint64_t *ret)
{
    uint64_t high, low;
    if (len - 1 < 8) {
        if (!load_digits(text, len, &low))
            return false;
        *ret = eight_digits(low);
        return true;
    }
    if (len - 1 >= 16 || !load_digits(text, len - 8, &high) ||
        !load_digits(text + len - 8, 8, &low))
        return false;
    *ret = eight_digits(high) * 100000000 + eight_digits(low);
    return true;
}

/* Digits from *p on, at most to the end, however many; false on overflow. */
static bool digits(const char **p, const char *end, uint64_t *ret)
{
    uint64_t v = 0;
    bool fits = true;
    const char *q = *p;
    for (; q < end && *q >= '0' && *q <= '9'; q++)
        fits = fits && !__builtin_mul_overflow(v, 10, &v) &&
               !__builtin_add_overflow(v, (uint64_t)(*q - '0'), &v);
    *p = q;
    *ret = v;
    return fits;
}

static tp_field_result signed_of(bool negative, uint64_t v, bool fits, int64_t *ret)
{
    uint64_t limit = (uint64_t)INT64_MAX;
    if (!fits || v > limit) {
        *ret = negative ? -INT64_MAX : INT64_MAX;
        return TP_FIELD_CLAMPED;
    }
    *ret = negative ? -(int64_t)v : (int64_t)v;
    return TP_FIELD_OK;
}

/* Exponents are rare (a rewritten file): the decimal point moves in a copy. */
static tp_field_result ns_with_exponent(const char *text, size_t len, int64_t *ret)
{
    char plain[400], copy[64];
    size_t n = 0, point = 0;
    bool has_point = false;
    const char *p = text, *end = text + len;
    bool negative = p < end && *p == '-';
    for (p += negative; p < end && ((*p >= '0' && *p <= '9') || *p == '.') && n < 64; p++) {
        if (*p == '.')
            has_point = true;
        else {
            plain[n++] = *p;
            point += !has_point;
        }
    }
    if (p == end || (*p != 'e' && *p != 'E') || n == 0 || len >= sizeof copy)
        return TP_FIELD_NONE;
    memcpy(copy, p + 1, (size_t)(end - p) - 1);
    copy[end - p - 1] = 0;
    char *rest;
    long exponent = strtol(copy, &rest, 10);
    if (*rest || rest == copy)
        return TP_FIELD_NONE;
    long places = (long)point + exponent + 3; /* digits before the point of nanoseconds */
    uint64_t v = 0;
    bool fits = true;
    for (long i = 0; i < places && fits; i++) {
        uint64_t digit = i < (long)n ? (uint64_t)(plain[i] - '0') : 0;
        if (i >= (long)n && v == 0)
            break;
        fits = !__builtin_mul_overflow(v, 10, &v) && !__builtin_add_overflow(v, digit, &v);
    }
    return signed_of(negative, v, fits, ret);
}

tp_field_result tp_field_ns(const char *text, size_t len, int64_t *ret, bool *ret_decimals)
{
    uint64_t whole, thousandths = 0;
    bool has_thousandths = len > 4 && text[len - 4] == '.';
    if (TP_LIKELY(plain_digits(text, has_thousandths ? len - 4 : len, &whole) &&
                  (!has_thousandths || plain_digits(text + len - 3, 3, &thousandths)) &&
                  whole < INT64_MAX / 1000)) {
        *ret_decimals |= has_thousandths;
        *ret = (int64_t)(whole * 1000 + thousandths);
        return TP_FIELD_OK;
    }
    const char *p = text, *end = text + len;
    uint64_t us, ns;
    bool negative = len && *p == '-';
    p += negative;
    const char *first = p;
    bool fits = digits(&p, end, &us);
    if (p == first)
        return TP_FIELD_NONE;
    unsigned fraction = 0;
    if (p < end && *p == '.') {
        unsigned scale = 100;
        *ret_decimals = true;
        for (p++; p < end && *p >= '0' && *p <= '9'; p++, scale /= 10)
            fraction += scale * (unsigned)(*p - '0');
    }
    if (p < end) {
        if (*p == 'e' || *p == 'E') {
            *ret_decimals = true;
            return ns_with_exponent(text, len, ret);
        }
        return TP_FIELD_NONE;
    }
    fits = fits && !__builtin_mul_overflow(us, 1000, &ns) &&
           !__builtin_add_overflow(ns, fraction, &ns);
    return signed_of(negative, fits ? ns : 0, fits, ret);
}

static tp_field_result hexadecimal(const char *p, const char *end, int64_t *ret)
{
    uint64_t v = 0;
    if (p == end || end - p > 16)
        return TP_FIELD_NONE;
    for (; p < end; p++) {
        int c = *p | 0x20;
        if (c >= '0' && c <= '9')
            v = v << 4 | (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            v = v << 4 | (uint64_t)(c - 'a' + 10);
        else
            return TP_FIELD_NONE;
    }
    *ret = (int64_t)v;
    return TP_FIELD_OK;
}

tp_field_result tp_field_i64(const char *text, size_t len, int64_t *ret)
{
    const char *p = text, *end = text + len;
    uint64_t v;
    if (TP_LIKELY(plain_digits(text, len, &v))) {
        *ret = (int64_t)v;
        return TP_FIELD_OK;
    }
    if (len > 2 && p[0] == '0' && (p[1] | 0x20) == 'x')
        return hexadecimal(p + 2, end, ret);
    bool negative = len && *p == '-';
    p += negative;
    const char *first = p;
    bool fits = digits(&p, end, &v);
    if (p == first)
        return TP_FIELD_NONE;
    if (p < end && *p == '.') {
        for (p++; p < end && *p >= '0' && *p <= '9'; p++)
            continue;
    }
    if (p < end) {
        double approximate = *p == 'e' || *p == 'E' ? tp_field_f64(text, len) : NAN;
        if (!(fabs(approximate) < 9e15))
            return TP_FIELD_NONE;
        *ret = (int64_t)approximate;
        return TP_FIELD_OK;
    }
    if (fits && !negative) {
        *ret = (int64_t)v;
        return TP_FIELD_OK;
    }
    return signed_of(negative, v, fits, ret);
}

double tp_field_f64(const char *text, size_t len)
{
    char copy[64], *end;
    if (len == 0 || len >= sizeof copy)
        return NAN;
    memcpy(copy, text, len);
    copy[len] = 0;
    double v = strtod(copy, &end);
    return *end ? NAN : v;
}

static bool hex4(const char *p, const char *end, uint32_t *ret)
{
    int64_t v;
    if (end - p < 4 || hexadecimal(p, p + 4, &v) != TP_FIELD_OK)
        return false;
    *ret = (uint32_t)v;
    return true;
}

/* p behind "\u": a code point, with the other half of a pair. */
static const char *unicode(const char *p, const char *end, uint32_t *ret)
{
    uint32_t low;
    if (!hex4(p, end, ret))
        return NULL;
    p += 4;
    if (*ret >= 0xd800 && *ret < 0xdc00 && end - p >= 6 && p[0] == '\\' && p[1] == 'u' &&
        hex4(p + 2, end, &low) && low >= 0xdc00 && low < 0xe000) {
        *ret = 0x10000 + ((*ret - 0xd800) << 10) + (low - 0xdc00);
        p += 6;
    }
    if (*ret >= 0xd800 && *ret < 0xe000)
        *ret = 0xfffd;
    return p;
}

size_t tp_field_unescape(tp_slice raw, char *out, uint64_t *odd)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char *p = raw.data, *end = p + raw.len;
    char *o = out;
    while (p < end) {
        if (*p != '\\' || p + 1 == end) {
            *o++ = *p++;
            continue;
        }
        const char *known = p[1] ? strchr(from, p[1]) : NULL;
        uint32_t code;
        const char *behind = p[1] == 'u' ? unicode(p + 2, end, &code) : NULL;
        if (known) {
            *o++ = to[known - from];
            p += 2;
        } else if (behind) {
            o += tp_utf8_encode(code, o);
            p = behind;
        } else {
            (*odd)++;
            *o++ = *p++;
            *o++ = *p++;
        }
    }
    return (size_t)(o - out);
}

size_t tp_field_compact(tp_slice raw, char *out)
{
    bool in_string = false;
    size_t n = 0;
    for (size_t i = 0; i < raw.len; i++) {
        char c = raw.data[i];
        if (!in_string && (c == ' ' || c == '\n' || c == '\r' || c == '\t'))
            continue;
        out[n++] = c;
        if (in_string && c == '\\' && i + 1 < raw.len)
            out[n++] = raw.data[++i];
        else if (c == '"')
            in_string = !in_string;
    }
    return n;
}
