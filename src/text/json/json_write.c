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

void tp_json_w_i64(tp_json_w *w, int64_t v)
{
    char text[24], *at = text + sizeof text;
    uint64_t rest = v < 0 ? -(uint64_t)v : (uint64_t)v;
    *--at = 0;
    do
        *--at = (char)('0' + rest % 10);
    while (rest /= 10);
    if (v < 0)
        *--at = '-';
    tp_json_w_raw(w, at);
}

void tp_json_w_f64(tp_json_w *w, double v)
{
    if (!isfinite(v)) {
        tp_json_w_str(w, isnan(v) ? "NaN" : v > 0 ? "Infinity" : "-Infinity");
        return;
    }
    char text[32];
    tp_json_f64_text(v, text);
    tp_json_w_raw(w, text);
}

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
    if (is_finite)
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

/* Decimal digits and exponent: v = 0.d1d2d3... * 10^point. */
typedef struct {
    char digits[20];
    int n, point;
} decimal;

static decimal to_decimal(double v, int precision)
{
    char text[40];
    snprintf(text, sizeof text, "%.*e", precision - 1, v);
    decimal d = {.n = 0};
    char *p = text;
    for (; *p != 'e'; p++) {
        if (*p != '.')
            d.digits[d.n++] = *p;
    }
    d.point = atoi(p + 1) + 1;
    return d;
}

static bool reads_back(const decimal *d, double v)
{
    char text[40];
    snprintf(text, sizeof text, "0.%.*se%d", d->n, d->digits, d->point);
    return strtod(text, NULL) == v;
}

/* Above a power of two doubles lie twice as far apart as below it, so the nearest
 * decimal may fall short on the near side while its upper neighbour reads back. */
static bool try_upper_neighbour(decimal *d, double v)
{
    decimal up = *d;
    int i = up.n - 1;
    while (i >= 0 && up.digits[i] == '9')
        i--;
    if (i < 0)
        return false;
    up.digits[i]++;
    up.n = i + 1;
    if (!reads_back(&up, v))
        return false;
    *d = up;
    return true;
}

static decimal strip_zeros(decimal d)
{
    while (d.n > 1 && d.digits[d.n - 1] == '0')
        d.n--;
    return d;
}

static decimal from_digits(uint64_t digits, int exponent)
{
    char reversed[20];
    decimal d = {.n = 0};
    for (; digits; digits /= 10)
        reversed[d.n++] = (char)('0' + digits % 10);
    for (int i = 0; i < d.n; i++)
        d.digits[i] = reversed[d.n - 1 - i];
    d.point = exponent + d.n;
    return d;
}

static decimal shortest_decimal(double v)
{
    uint64_t digits;
    int exponent;
    if (tp_shortest_digits(v, &digits, &exponent))
        return from_digits(digits, exponent);
    /* A normal double whose shortest form has at most 15 digits is found by
     * rounding to 15 digits; subnormals have fewer significant bits. */
    int precision = v < 0x1p-1022 ? 1 : 15;
    int unused;
    bool is_power = frexp(v, &unused) == 0.5;
    for (; precision < 17; precision++) {
        decimal d = to_decimal(v, precision);
        if (reads_back(&d, v) || (is_power && try_upper_neighbour(&d, v)))
            return strip_zeros(d);
    }
    return strip_zeros(to_decimal(v, 17));
}

static char *put(char *out, const char *bytes, int n)
{
    memcpy(out, bytes, (size_t)n);
    return out + n;
}

static char *put_zeros(char *out, int n)
{
    memset(out, '0', (size_t)n);
    return out + n;
}

static char *put_fixed(char *out, const decimal *d)
{
    if (d->point <= 0) {
        out = put_zeros(put(out, "0.", 2), -d->point);
        return put(out, d->digits, d->n);
    }
    if (d->point >= d->n)
        return put_zeros(put(out, d->digits, d->n), d->point - d->n);
    out = put(put(out, d->digits, d->point), ".", 1);
    return put(out, d->digits + d->point, d->n - d->point);
}

static char *put_scientific(char *out, const decimal *d)
{
    out = put(out, d->digits, 1);
    if (d->n > 1)
        out = put(put(out, ".", 1), d->digits + 1, d->n - 1);
    return out + snprintf(out, 6, "e%d", d->point - 1);
}

size_t tp_json_f64_text(double v, char out[32])
{
    TP_ASSERT(isfinite(v));
    char *o = out;
    if (signbit(v))
        o = put(o, "-", 1);
    if (v == 0) {
        /* "-0" would read as the integer 0. */
        o = put(o, "0.0", signbit(v) ? 3 : 1);
    } else {
        decimal d = shortest_decimal(fabs(v));
        bool is_fixed = d.point > -4 && d.point <= 16;
        o = is_fixed ? put_fixed(o, &d) : put_scientific(o, &d);
    }
    *o = 0;
    return (size_t)(o - out);
}
