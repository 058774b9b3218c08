/* json_write.c - JSON written piece by piece, indented or on one line. */
#include "text/json/json.h"

#include <math.h>
#include <string.h>

#include "base/platform.h"
#include "base/terminal.h"
#include "text/json/shortest.h"

void tp_json_w_init(tp_json_w *w, tp_buf *out, int indent)
{
    *w = (tp_json_w){.out = out, .indent = indent};
}

static void new_line(tp_json_w *w)
{
    if (!w->indent)
        return;
    size_t n = (size_t)w->indent * (size_t)w->depth;
    tp_buf_reserve(w->out, n + 1);
    tp_buf_addc(w->out, '\n');
    while (n--)
        tp_buf_addc(w->out, ' ');
}

/* The separator in front of a key or an element. */
static void before_item(tp_json_w *w)
{
    if (w->after_key) {
        w->after_key = false;
        return;
    }
    if (w->need_comma)
        tp_buf_addc(w->out, ',');
    if (w->depth)
        new_line(w);
}

void tp_json_w_begin(tp_json_w *w, char bracket)
{
    TP_ASSERT(bracket == '{' || bracket == '[');
    before_item(w);
    tp_buf_addc(w->out, bracket);
    w->depth++;
    w->need_comma = false;
}

void tp_json_w_end(tp_json_w *w, char bracket)
{
    TP_ASSERT(w->depth > 0 && !w->after_key && (bracket == '}' || bracket == ']'));
    w->depth--;
    if (w->need_comma)
        new_line(w);
    tp_buf_addc(w->out, bracket);
    w->need_comma = true;
}

void tp_json_w_key(tp_json_w *w, const char *key)
{
    TP_ASSERT(!w->after_key);
    before_item(w);
    tp_json_quote(w->out, key, strlen(key));
    tp_buf_adds(w->out, w->indent ? ": " : ":");
    w->after_key = true;
}

void tp_json_w_raw(tp_json_w *w, const char *s)
{
    before_item(w);
    tp_buf_adds(w->out, s);
    w->need_comma = true;
}

void tp_json_w_strn(tp_json_w *w, const char *s, size_t n)
{
    before_item(w);
    tp_json_quote(w->out, s, n);
    w->need_comma = true;
}

void tp_json_w_str(tp_json_w *w, const char *s)
{
    if (s)
        tp_json_w_strn(w, s, strlen(s));
    else
        tp_json_w_null(w);
}

/* Room for a number at the end of the text. */
static char *begin_number(tp_json_w *w)
{
    before_item(w);
    w->need_comma = true;
    tp_buf_reserve(w->out, TP_JSON_NUMBER_ROOM);
    return w->out->data + w->out->len;
}

static void end_number(tp_json_w *w, char *end)
{
    *end = 0;
    w->out->len = (size_t)(end - w->out->data);
}

void tp_json_w_i64(tp_json_w *w, int64_t v) { end_number(w, tp_json_put_i64(begin_number(w), v)); }

void tp_json_w_f64(tp_json_w *w, double v) { end_number(w, tp_json_put_f64(begin_number(w), v)); }

void tp_json_w_bool(tp_json_w *w, bool v) { tp_json_w_raw(w, v ? "true" : "false"); }

void tp_json_w_null(tp_json_w *w) { tp_json_w_raw(w, "null"); }

void tp_json_w_put_str(tp_json_w *w, const char *key, const char *s)
{
    tp_json_w_key(w, key);
    tp_json_w_str(w, s);
}

void tp_json_w_put_i64(tp_json_w *w, const char *key, int64_t v)
{
    tp_json_w_key(w, key);
    tp_json_w_i64(w, v);
}

void tp_json_w_put_f64(tp_json_w *w, const char *key, double v)
{
    tp_json_w_key(w, key);
    tp_json_w_f64(w, v);
}

void tp_json_w_put_bool(tp_json_w *w, const char *key, bool v)
{
    tp_json_w_key(w, key);
    tp_json_w_bool(w, v);
}

void tp_json_w_put_begin(tp_json_w *w, const char *key, char bracket)
{
    tp_json_w_key(w, key);
    tp_json_w_begin(w, bracket);
}

void tp_json_w_put_strn(tp_json_w *w, const char *key, const char *s, size_t n)
{
    tp_json_w_key(w, key);
    tp_json_w_strn(w, s, n);
}

void tp_json_w_put_null(tp_json_w *w, const char *key) { tp_json_w_put_str(w, key, NULL); }

void tp_json_w_put_value(tp_json_w *w, const char *key, const tp_json *v)
{
    tp_json_w_key(w, key);
    if (v)
        tp_json_w_value(w, v);
    else
        tp_json_w_null(w);
}

void tp_json_w_put_raw(tp_json_w *w, const char *key, const char *s)
{
    tp_json_w_key(w, key);
    tp_json_w_raw(w, s);
}

void tp_json_w_put_i64_if(tp_json_w *w, const char *key, bool is_known, int64_t v)
{
    if (is_known)
        tp_json_w_put_i64(w, key, v);
    else
        tp_json_w_put_null(w, key);
}

void tp_json_w_put_finite(tp_json_w *w, const char *key, double v)
{
    tp_json_w_put_known(w, key, isfinite(v) ? v : NAN);
}

void tp_json_w_put_interval(tp_json_w *w, const char *key, double lo, double hi)
{
    if (isnan(lo) || isnan(hi))
        tp_json_w_put_null(w, key);
    else
        tp_json_w_put_f64s(w, key, (const double[]){lo, hi}, 2);
}

void tp_json_w_put_f64s(tp_json_w *w, const char *key, const double *v, size_t n)
{
    if (key)
        tp_json_w_key(w, key);
    tp_json_w_begin(w, '[');
    for (size_t i = 0; i < n; i++)
        tp_json_w_f64(w, v[i]);
    tp_json_w_end(w, ']');
}

void tp_json_w_put_f64_line(tp_json_w *w, const char *key, const double *v, size_t n)
{
    int indent = w->indent;
    tp_json_w_key(w, key);
    w->indent = 0;
    tp_json_w_put_f64s(w, NULL, v, n);
    w->indent = indent;
}

tp_json_w tp_json_w_open(tp_buf *out, int indent, char bracket)
{
    tp_json_w w;
    tp_json_w_init(&w, out, indent);
    tp_json_w_begin(&w, bracket);
    return w;
}

void tp_json_w_close(tp_json_w *w, char bracket)
{
    tp_json_w_end(w, bracket);
    tp_buf_addc(w->out, '\n');
}

void tp_json_w_put_known(tp_json_w *w, const char *key, double v)
{
    if (isnan(v))
        tp_json_w_put_str(w, key, NULL);
    else
        tp_json_w_put_f64(w, key, v);
}

static void write_number(tp_json_w *w, const tp_json *v)
{
    bool is_finite = v->text.data[v->text.len - 1] <= '9';
    if (is_finite || w->keeps_words)
        tp_json_w_raw(w, v->text.data);
    else
        tp_json_w_str(w, v->text.data);
}

static void write_leaf(tp_json_w *w, const tp_json *v)
{
    switch (v->type) {
    case TP_JSON_NUMBER:
        write_number(w, v);
        break;
    case TP_JSON_STRING:
        tp_json_w_strn(w, v->text.data, v->text.len);
        break;
    case TP_JSON_TRUE:
    case TP_JSON_FALSE:
        tp_json_w_bool(w, v->type == TP_JSON_TRUE);
        break;
    default:
        tp_json_w_null(w);
    }
}

/* Calls nest as deep as the tree does: TP_JSON_MAX_DEPTH at most. */
void tp_json_w_value(tp_json_w *w, const tp_json *v)
{
    bool is_object = v && v->type == TP_JSON_OBJECT;
    if (!v) {
        tp_json_w_null(w);
    } else if (is_object || v->type == TP_JSON_ARRAY) {
        tp_json_w_begin(w, is_object ? '{' : '[');
        for (const tp_json *child = v->child; child; child = child->next) {
            if (is_object) {
                before_item(w);
                tp_json_quote(w->out, child->key.data, child->key.len);
                tp_buf_adds(w->out, w->indent ? ": " : ":");
                w->after_key = true;
            }
            tp_json_w_value(w, child);
        }
        tp_json_w_end(w, is_object ? '}' : ']');
    } else {
        write_leaf(w, v);
    }
}

static void write_text(const tp_json *v, bool keeps_words, tp_buf *out)
{
    tp_json_w w = {.out = out, .keeps_words = keeps_words};
    if (v)
        tp_json_w_value(&w, v);
}

void tp_json_text(const tp_json *v, tp_buf *out) { write_text(v, false, out); }

void tp_json_text_tolerant(const tp_json *v, tp_buf *out) { write_text(v, true, out); }

static void quote_byte(tp_buf *out, unsigned char c)
{
    static const char *const short_forms[128] = {
        ['"'] = "\\\"", ['\\'] = "\\\\", ['\b'] = "\\b", ['\f'] = "\\f",
        ['\n'] = "\\n", ['\r'] = "\\r",  ['\t'] = "\\t"};
    if (short_forms[c])
        tp_buf_adds(out, short_forms[c]);
    else
        tp_buf_addf(out, "\\u%04x", c);
}

static bool is_plain(unsigned char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; }

void tp_json_quote(tp_buf *out, const char *s, size_t n)
{
    tp_buf_reserve(out, n + 2);
    tp_buf_addc(out, '"');
    for (size_t i = 0; i < n;) {
        size_t start = i;
        while (i < n && is_plain((unsigned char)s[i]))
            i++;
        tp_buf_add(out, s + start, i - start);
        if (i == n)
            break;
        if ((unsigned char)s[i] < 0x80) {
            quote_byte(out, (unsigned char)s[i++]);
            continue;
        }
        uint32_t cp;
        size_t len = tp_utf8_decode(s + i, n - i, &cp);
        if (len && tp_is_unsafe(cp)) /* the same text, and no terminal obeys it */
            tp_buf_addf(out, "\\u%04x", (unsigned)cp);
        else if (len)
            tp_buf_add(out, s + i, len);
        else
            tp_buf_adds(out, "\xef\xbf\xbd");
        i += len ? len : 1;
    }
    tp_buf_addc(out, '"');
}

/* ---- numbers ---- */

/* "00000037": eight digits of v < 10^8, by halves, quarters and eighths of a word at once; as bytes
 * of a number, the first the lowest. */
static inline uint64_t put_eight(char *out, uint32_t v)
{
    uint64_t fours = v / 10000 | (uint64_t)(v % 10000) << 32;
    uint64_t hundreds = fours * 10486 >> 20 & 0x7f0000007f; /* / 100 */
    uint64_t twos = ((fours - 100 * hundreds) << 16) + hundreds;
    uint64_t tens = twos * 103 >> 10 & 0xf000f000f000f; /* / 10 */
    uint64_t digits = ((twos - 10 * tens) << 8) + tens, text = digits + 0x3030303030303030;
    memcpy(out, &text, sizeof text);
    return digits;
}

/* Seventeen digits of v < 10^17, which is not 0, with zeros in front: how many. */
static int put_seventeen(char *out, uint64_t v)
{
    uint32_t high = (uint32_t)(v / 100000000), first = high / 100000000;
    out[0] = (char)('0' + first);
    uint64_t eight = put_eight(out + 1, high % 100000000);
    uint64_t last = put_eight(out + 9, (uint32_t)(v % 100000000));
    int zeros = eight ? 1 + __builtin_ctzll(eight) / 8 : 9 + __builtin_ctzll(last) / 8;
    return first ? 0 : zeros;
}

char *tp_json_put_i64(char *out, int64_t v)
{
    char text[40], *const end = text + 20, *at = end;
    uint64_t rest = v < 0 ? -(uint64_t)v : (uint64_t)v;
    do
        *--at = (char)('0' + rest % 10);
    while (rest /= 10);
    if (v < 0)
        *--at = '-';
    memcpy(out, at, 20); /* a fixed length is quicker, and what is too much is not looked at */
    return out + (end - at);
}

/* Decimal digits and exponent: v = 0.d1d2d3... * 10^point. */
typedef struct {
    char text[40]; /* digits begin at `first`; behind them is room for copies of fixed length */
    int first, n, point;
} decimal;

static decimal to_decimal(double v, int precision)
{
    char text[40];
    snprintf(text, sizeof text, "%.*e", precision - 1, v);
    decimal d = {.n = 0};
    char *p = text;
    for (; *p != 'e'; p++) {
        if (*p != '.')
            d.text[d.n++] = *p;
    }
    d.point = atoi(p + 1) + 1;
    return d;
}

static bool reads_back(const decimal *d, double v)
{
    char text[40];
    snprintf(text, sizeof text, "0.%.*se%d", d->n, d->text, d->point);
    return strtod(text, NULL) == v;
}

/* Above a power of two doubles lie twice as far apart as below it, so the nearest
 * decimal may fall short on the near side while its upper neighbour reads back. */
static bool try_upper_neighbour(decimal *d, double v)
{
    decimal up = *d;
    int i = up.n - 1;
    while (i >= 0 && up.text[i] == '9')
        i--;
    if (i < 0)
        return false;
    up.text[i]++;
    up.n = i + 1;
    if (!reads_back(&up, v))
        return false;
    *d = up;
    return true;
}

static decimal strip_zeros(decimal d)
{
    while (d.n > 1 && d.text[d.n - 1] == '0')
        d.n--;
    return d;
}

static decimal shortest_decimal(double v)
{
    decimal d = {.n = 0};
    uint64_t digits;
    int exponent;
    if (tp_shortest_digits(v, &digits, &exponent)) {
        d.first = put_seventeen(d.text, digits);
        d.n = 17 - d.first;
        d.point = exponent + d.n;
        return d;
    }
    /* A normal double whose shortest form has at most 15 digits is found by
     * rounding to 15 digits; subnormals have fewer significant bits. */
    int precision = v < 0x1p-1022 ? 1 : 15;
    int unused;
    bool is_power = frexp(v, &unused) == 0.5;
    for (; precision < 17; precision++) {
        d = to_decimal(v, precision);
        if (reads_back(&d, v) || (is_power && try_upper_neighbour(&d, v)))
            return strip_zeros(d);
    }
    return strip_zeros(to_decimal(v, 17));
}

/* As many bytes as there may be are copied, whatever there are: no call, no branch. */
static char *put_fixed(char *out, const decimal *d)
{
    enum { MOST = 17 };
    const char *digits = d->text + d->first;
    if (d->point <= 0) { /* > -4 */
        memcpy(out, "0.000", 5);
        memcpy(out + 2 - d->point, digits, MOST);
        return out + 2 - d->point + d->n;
    }
    memcpy(out, digits, MOST);
    if (d->point >= d->n) {
        memset(out + d->n, '0', MOST);
        return out + d->point;
    }
    memcpy(out + d->point + 1, digits + d->point, MOST);
    out[d->point] = '.';
    return out + d->n + 1;
}

static char *put_scientific(char *out, const decimal *d)
{
    const char *digits = d->text + d->first;
    *out++ = *digits;
    if (d->n > 1)
        out += snprintf(out, 20, ".%.*s", d->n - 1, digits + 1);
    return out + snprintf(out, 6, "e%d", d->point - 1);
}

char *tp_json_put_f64(char *out, double v)
{
    if (!isfinite(v))
        return stpcpy(out, isnan(v) ? "\"NaN\"" : v > 0 ? "\"Infinity\"" : "\"-Infinity\"");
    if (v == 0) /* "-0" would read as the integer 0 */
        return stpcpy(out, signbit(v) ? "-0.0" : "0");
    if (v < 0)
        *out++ = '-';
    decimal d = shortest_decimal(fabs(v));
    return d.point > -4 && d.point <= 16 ? put_fixed(out, &d) : put_scientific(out, &d);
}

size_t tp_json_f64_text(double v, char out[32])
{
    TP_ASSERT(isfinite(v));
    char text[TP_JSON_NUMBER_ROOM];
    size_t n = (size_t)(tp_json_put_f64(text, v) - text);
    memcpy(out, text, n);
    out[n] = 0;
    return n;
}
