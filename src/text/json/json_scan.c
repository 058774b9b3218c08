/* json_scan.c - the pull parser: one token at a time, strict or tolerant, without allocation. */
#include "text/json/json.h"

#include <string.h>

#include "base/platform.h"

/* What the grammar allows next.  The scanner has no stack but the `objects` bits:
 * depth is limited to 64, so one word remembers every open bracket. */
enum {
    EXPECT_VALUE,        /* after '[' ',' or at the start */
    EXPECT_FIRST_VALUE,  /* after '[': a value or ']' */
    EXPECT_KEY,          /* after '{' ',' */
    EXPECT_FIRST_KEY,    /* after '{': a key or '}' */
    EXPECT_COLON,        /* after a key */
    EXPECT_MEMBER_VALUE, /* after ':' */
    EXPECT_COMMA,        /* after a value inside brackets */
    EXPECT_DONE          /* after the value at the top */
};

_Static_assert(TP_JSON_MAX_DEPTH == 64, "the open brackets are kept in one uint64_t");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "first_hit() counts from the low byte");

/* How scanning of one token ended. */
typedef enum { SCAN_OK, SCAN_FAILED, SCAN_OUT_OF_TEXT } scan_result;

typedef unsigned char bytes16 __attribute__((vector_size(16)));
typedef signed char mask16 __attribute__((vector_size(16)));

static inline bytes16 load16(const char *p)
{
    bytes16 v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* Index of the first set byte of a comparison, or 16. */
static inline unsigned first_hit(mask16 mask)
{
    uint64_t half[2];
    memcpy(half, &mask, sizeof half);
    if (half[0])
        return (unsigned)__builtin_ctzll(half[0]) / 8;
    if (half[1])
        return 8 + (unsigned)__builtin_ctzll(half[1]) / 8;
    return 16;
}

/* The first byte that is not plain ASCII text of a string: a quote, a backslash,
 * a control character or the start of a longer UTF-8 sequence. */
static inline const char *skip_plain(const char *p, const char *end)
{
    while (end - p >= 16) {
        bytes16 v = load16(p);
        /* As signed bytes, controls and non-ASCII are both below 0x20. */
        unsigned hit = first_hit((v == '"') | (v == '\\') | ((mask16)v < 0x20));
        p += hit;
        if (hit < 16)
            return p;
    }
    while (p < end && (signed char)*p >= 0x20 && *p != '"' && *p != '\\')
        p++;
    return p;
}

/* Line breaks outside strings are the only ones there are, so counting them here
 * is enough. */
static inline void skip_space(tp_json_reader *r)
{
    const char *p = r->at, *end = r->end;
    while (p < end) {
        char c = *p;
        if (c == '\n') {
            r->line++;
            r->line_start = p + 1;
        } else if (c != ' ' && c != '\t' && c != '\r') {
            break;
        }
        p++;
        /* Indentation: long runs of blanks. */
        while (end - p >= 16) {
            unsigned hit = first_hit(load16(p) != ' ');
            p += hit;
            if (hit < 16)
                break;
        }
    }
    r->at = p;
}

/* In characters, from 1. */
static uint64_t column_of(const tp_json_reader *r, const char *at)
{
    uint64_t column = 1;
    for (const char *p = r->line_start; p < at; p++)
        column += ((unsigned char)*p & 0xc0) != 0x80;
    return column;
}

static tp_status fail_at(const tp_json_reader *r, const char *at, tp_error *err,
                         const char *message)
{
    return tp_fail(err, TP_ERR_FORMAT, "%s:%llu:%llu: %s", r->name, (unsigned long long)r->line,
                   (unsigned long long)column_of(r, at), message);
}

tp_status tp_json_reader_fail(const tp_json_reader *r, const tp_json_token *at, tp_error *err,
                              const char *fmt, ...)
{
    char message[sizeof err->message / 2];
    TP_FORMAT(message, fmt);
    if (at->line == r->line)
        return fail_at(r, r->begin + at->offset, err, message);
    return tp_fail(err, TP_ERR_FORMAT, "%s:%llu: %s", r->name, (unsigned long long)at->line,
                   message);
}

void tp_json_reader_init(tp_json_reader *r, const char *name, const char *text, size_t n,
                         const tp_json_options *options)
{
    static const char nothing[1];
    text = text ? text : nothing;
    *r = (tp_json_reader){.name = name, .begin = text, .at = text, .end = text + n};
    r->line_start = text;
    r->expect = EXPECT_VALUE;
    if (options)
        r->options = *options;
    r->line = r->options.first_line ? r->options.first_line : 1;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Four hexadecimal digits at p, or -1. */
static int32_t hex4(const char *p)
{
    int32_t v = 0;
    for (int i = 0; i < 4; i++) {
        int d = hex_digit(p[i]);
        if (d < 0)
            return -1;
        v = v << 4 | d;
    }
    return v;
}

static bool is_high_surrogate(int32_t v) { return v >= 0xd800 && v < 0xdc00; }
static bool is_low_surrogate(int32_t v) { return v >= 0xdc00 && v < 0xe000; }

/* A backslash at *p: check it and move behind it. */
static scan_result scan_escape(tp_json_reader *r, const char **p, tp_error *err)
{
    const char *s = *p, *end = r->end;
    if (end - s < 2)
        return SCAN_OUT_OF_TEXT;
    if (s[1] != 'u') {
        if (s[1] == 0 || !strchr("\"\\/bfnrt", s[1])) {
            fail_at(r, s, err, "unknown escape in a string; a backslash is written \\\\");
            return SCAN_FAILED;
        }
        *p = s + 2;
        return SCAN_OK;
    }
    if (end - s < 6)
        return SCAN_OUT_OF_TEXT;
    int32_t unit = hex4(s + 2);
    if (unit < 0) {
        fail_at(r, s, err, "\\u needs four hexadecimal digits");
        return SCAN_FAILED;
    }
    *p = s + 6;
    if (is_high_surrogate(unit) && end - *p >= 6 && (*p)[0] == '\\' && (*p)[1] == 'u' &&
        is_low_surrogate(hex4(*p + 2))) {
        *p += 6;
        return SCAN_OK;
    }
    if ((is_high_surrogate(unit) || is_low_surrogate(unit)) && !r->options.allow_surrogate) {
        fail_at(r, s, err, "half of a surrogate pair; write the character itself or both halves");
        return SCAN_FAILED;
    }
    return SCAN_OK;
}

/* A quote at r->at: its contents into `token`, r->at behind the closing quote. */
static scan_result scan_string(tp_json_reader *r, tp_json_token *token, tp_error *err)
{
    const char *start = r->at + 1, *p = start, *end = r->end;
    for (;;) {
        p = skip_plain(p, end);
        if (p == end)
            return SCAN_OUT_OF_TEXT;
        if (*p == '"')
            break;
        if (*p == '\\') {
            token->has_escapes = true;
            scan_result result = scan_escape(r, &p, err);
            if (result != SCAN_OK)
                return result;
        } else if ((unsigned char)*p >= 0x80) {
            uint32_t cp;
            size_t n = tp_utf8_decode(p, (size_t)(end - p), &cp);
            if (!n) {
                fail_at(r, p, err, "invalid UTF-8 in a string; convert the file to UTF-8");
                return SCAN_FAILED;
            }
            p += n;
        } else {
            fail_at(r, p, err,
                    *p == '\n' ? "a string ends at the end of its line; close it, or write \\n"
                               : "control character in a string; write it as \\u00XX");
            return SCAN_FAILED;
        }
    }
    token->text = (tp_slice){start, (size_t)(p - start)};
    r->at = p + 1;
    return SCAN_OK;
}

static const char *skip_digits(const char *p, const char *end)
{
    while (p < end && (unsigned char)(*p - '0') < 10)
        p++;
    return p;
}

static bool is_word_byte(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '.' || c == '+' || c == '-';
}

/* -? (0 | [1-9][0-9]*) ("." [0-9]+)? ([eE] [+-]? [0-9]+)?; NULL when it is not one. */
static const char *number_end(const char *p, const char *end)
{
    if (p < end && *p == '-')
        p++;
    const char *digits = p;
    p = skip_digits(p, end);
    if (p == digits || (*digits == '0' && p - digits > 1))
        return NULL;
    if (p < end && *p == '.') {
        digits = ++p;
        p = skip_digits(p, end);
        if (p == digits)
            return NULL;
    }
    if (p < end && (*p == 'e' || *p == 'E')) {
        p++;
        if (p < end && (*p == '+' || *p == '-'))
            p++;
        digits = p;
        p = skip_digits(p, end);
        if (p == digits)
            return NULL;
    }
    return p;
}

static const char *word_end(const char *p, const char *end)
{
    while (p < end && is_word_byte(*p))
        p++;
    return p;
}

/* A number, a literal, or something that is neither. */
static scan_result scan_word(tp_json_reader *r, tp_json_token *token, tp_error *err)
{
    static const struct {
        const char *text;
        tp_json_token_type type;
        bool is_nan;
    } words[] = {
        {"true", TP_JSON_TOKEN_TRUE, false},       {"false", TP_JSON_TOKEN_FALSE, false},
        {"null", TP_JSON_TOKEN_NULL, false},       {"NaN", TP_JSON_TOKEN_NUMBER, true},
        {"Infinity", TP_JSON_TOKEN_NUMBER, true},  {"-Infinity", TP_JSON_TOKEN_NUMBER, true},
        {"+Infinity", TP_JSON_TOKEN_NUMBER, true}, {"nan", TP_JSON_TOKEN_NUMBER, true}};
    enum { N_KNOWN_NAN = 6 }; /* the rows after it are only recognised in errors */

    const char *start = r->at, *end = r->end;
    const char *stop = number_end(start, end);
    if (stop && (stop == end || !is_word_byte(*stop))) {
        token->type = TP_JSON_TOKEN_NUMBER;
        token->text = (tp_slice){start, (size_t)(stop - start)};
        r->at = stop;
        return SCAN_OK;
    }
    stop = word_end(start, end);
    tp_slice word = {start, (size_t)(stop - start)};
    for (size_t i = 0; i < TP_COUNTOF(words); i++) {
        if (!tp_slice_is(word, words[i].text))
            continue;
        if (words[i].is_nan && (!r->options.allow_nan || i >= N_KNOWN_NAN)) {
            fail_at(r, start, err, "not a finite number; JSON has none, write null or a string");
            return SCAN_FAILED;
        }
        token->type = words[i].type;
        token->text = word;
        r->at = stop;
        return SCAN_OK;
    }
    bool is_numeric =
        *start == '-' || *start == '+' || *start == '.' || (*start >= '0' && *start <= '9');
    fail_at(r, start, err,
            is_numeric       ? "malformed number; expected digits as in -12, 0.5 or 1e-3"
            : *start == '\'' ? "strings are written in double quotes"
            : word.len       ? "unknown word; expected true, false, null or a quoted string"
                             : "expected a value");
    return SCAN_FAILED;
}

static tp_status out_of_text(tp_json_reader *r, const char *at, tp_error *err)
{
    if (at < r->end && *at == '"')
        return fail_at(r, at, err, "this string is never closed; the text is cut off");
    return fail_at(r, at, err,
                   r->depth ? "the text ends before its brackets are closed; it is cut off"
                            : "expected a value, found the end of the text");
}

static int after_value(const tp_json_reader *r)
{
    if (r->depth)
        return EXPECT_COMMA;
    return r->options.allow_many ? EXPECT_VALUE : EXPECT_DONE;
}

static tp_status open_bracket(tp_json_reader *r, tp_json_token *token, tp_error *err)
{
    if (r->depth == TP_JSON_MAX_DEPTH)
        return fail_at(r, r->at, err, "nested more than 64 levels deep");
    bool is_object = *r->at == '{';
    uint64_t bit = UINT64_C(1) << r->depth++;
    r->objects = is_object ? r->objects | bit : r->objects & ~bit;
    r->expect = is_object ? EXPECT_FIRST_KEY : EXPECT_FIRST_VALUE;
    r->at++;
    token->type = is_object ? TP_JSON_TOKEN_BEGIN_OBJECT : TP_JSON_TOKEN_BEGIN_ARRAY;
    return TP_OK;
}

static void close_bracket(tp_json_reader *r, tp_json_token *token)
{
    r->depth--;
    token->type = *r->at == '}' ? TP_JSON_TOKEN_END_OBJECT : TP_JSON_TOKEN_END_ARRAY;
    r->at++;
    r->expect = after_value(r);
}

static bool inside_object(const tp_json_reader *r)
{
    return r->depth && (r->objects >> (r->depth - 1) & 1);
}

static tp_status read_key(tp_json_reader *r, tp_json_token *token, tp_error *err)
{
    if (*r->at != '"')
        return fail_at(r, r->at, err,
                       *r->at == '}' ? "a comma before '}' has nothing after it; remove it"
                                     : "expected a key in double quotes");
    const char *start = r->at;
    token->type = TP_JSON_TOKEN_KEY;
    switch (scan_string(r, token, err)) {
    case SCAN_OUT_OF_TEXT:
        return out_of_text(r, start, err);
    case SCAN_FAILED:
        return TP_ERR_FORMAT;
    case SCAN_OK:
        break;
    }
    r->expect = EXPECT_COLON;
    return TP_OK;
}

static tp_status read_value(tp_json_reader *r, tp_json_token *token, tp_error *err)
{
    const char *start = r->at;
    if (*start == '{' || *start == '[')
        return open_bracket(r, token, err);
    if (*start == ']' && r->expect == EXPECT_VALUE && r->depth)
        return fail_at(r, start, err, "a comma before ']' has nothing after it; remove it");
    scan_result result;
    if (*start == '"') {
        token->type = TP_JSON_TOKEN_STRING;
        result = scan_string(r, token, err);
    } else {
        result = scan_word(r, token, err);
    }
    if (result == SCAN_OUT_OF_TEXT)
        return out_of_text(r, start, err);
    if (result == SCAN_FAILED)
        return TP_ERR_FORMAT;
    r->expect = after_value(r);
    return TP_OK;
}

/* The punctuation after a value inside brackets.  *ret_closed: it was a bracket. */
static tp_status read_comma(tp_json_reader *r, tp_json_token *token, bool *ret_closed,
                            tp_error *err)
{
    bool is_object = inside_object(r);
    char c = *r->at;
    *ret_closed = c == (is_object ? '}' : ']');
    if (*ret_closed) {
        close_bracket(r, token);
        return TP_OK;
    }
    if (c != ',')
        return fail_at(r, r->at, err,
                       is_object ? "expected ',' or '}' after a member"
                                 : "expected ',' or ']' after an element");
    r->at++;
    r->expect = is_object ? EXPECT_KEY : EXPECT_VALUE;
    return TP_OK;
}

tp_status tp_json_reader_next(tp_json_reader *r, tp_json_token *ret, tp_error *err)
{
    for (;;) {
        skip_space(r);
        uint64_t offset = (uint64_t)(r->at - r->begin);
        *ret = (tp_json_token){.offset = offset, .line = r->line};
        if (r->at == r->end) {
            bool may_end = r->expect == EXPECT_DONE ||
                           (r->options.allow_many && !r->depth && r->expect == EXPECT_VALUE);
            if (may_end)
                return TP_OK; /* TP_JSON_TOKEN_END is zero */
            return out_of_text(r, r->at, err);
        }
        switch (r->expect) {
        case EXPECT_FIRST_KEY:
            if (*r->at == '}') {
                close_bracket(r, ret);
                return TP_OK;
            }
            return read_key(r, ret, err);
        case EXPECT_KEY:
            return read_key(r, ret, err);
        case EXPECT_COLON:
            if (*r->at != ':')
                return fail_at(r, r->at, err, "expected ':' after a key");
            r->at++;
            r->expect = EXPECT_MEMBER_VALUE;
            break;
        case EXPECT_COMMA: {
            bool closed;
            TP_TRY(read_comma(r, ret, &closed, err));
            if (closed)
                return TP_OK;
            break;
        }
        case EXPECT_DONE:
            return fail_at(r, r->at, err, "text after the end of the value; remove it");
        case EXPECT_FIRST_VALUE:
            if (*r->at == ']') {
                close_bracket(r, ret);
                return TP_OK;
            }
            return read_value(r, ret, err);
        default:
            if (offset == 0 && tp_utf8_mark(r->at, (size_t)(r->end - r->at)))
                return fail_at(r, r->at, err,
                               "byte order mark; save the file as UTF-8 without one");
            return read_value(r, ret, err);
        }
    }
}

tp_status tp_json_reader_skip(tp_json_reader *r, tp_error *err)
{
    int outside = r->depth - 1;
    tp_json_token token;
    while (r->depth > outside)
        TP_TRY(tp_json_reader_next(r, &token, err));
    return TP_OK;
}

size_t tp_json_unescape(tp_slice raw, char *out)
{
    const char *p = raw.data, *end = p + raw.len;
    char *o = out;
    while (p < end) {
        if (*p != '\\') {
            *o++ = *p++;
            continue;
        }
        char c = p[1];
        p += 2;
        switch (c) {
        case 'b':
            *o++ = '\b';
            break;
        case 'f':
            *o++ = '\f';
            break;
        case 'n':
            *o++ = '\n';
            break;
        case 'r':
            *o++ = '\r';
            break;
        case 't':
            *o++ = '\t';
            break;
        case 'u': {
            int32_t unit = hex4(p);
            p += 4;
            if (is_high_surrogate(unit) && end - p >= 6 && p[0] == '\\' && p[1] == 'u' &&
                is_low_surrogate(hex4(p + 2))) {
                unit = 0x10000 + ((unit - 0xd800) << 10) + (hex4(p + 2) - 0xdc00);
                p += 6;
            } else if (is_high_surrogate(unit) || is_low_surrogate(unit)) {
                unit = 0xfffd;
            }
            o += tp_utf8_encode((uint32_t)unit, o);
            break;
        }
        default: /* quote, backslash, slash */
            *o++ = c;
        }
    }
    return (size_t)(o - out);
}
