/* python_text.c - the predicates, splitting, stripping and numbers of Python's str, on UTF-8. */
#include "text/template/python_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/platform.h"
#include "text/json/json.h"
#include "text/unicode/unicode_class.h"

#define IN(cp, table) tp_in_code_ranges((cp), (table), TP_COUNTOF(table))

static utf8proc_category_t category(uint32_t cp) { return utf8proc_category((utf8proc_int32_t)cp); }

bool tp_python_is_space(uint32_t cp)
{
    if (cp < 128)
        return cp == ' ' || (cp >= 9 && cp <= 13) || (cp >= 0x1c && cp <= 0x1f);
    return cp == 0x85 || cp == 0xa0 || cp == 0x1680 || (cp >= 0x2000 && cp <= 0x200a) ||
           cp == 0x2028 || cp == 0x2029 || cp == 0x202f || cp == 0x205f || cp == 0x3000;
}

bool tp_python_is_alpha(uint32_t cp)
{
    utf8proc_category_t c = category(cp);
    return c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LO;
}

bool tp_python_is_digit(uint32_t cp)
{
    static const tp_code_range digits[] = {
        {0xb2, 0xb3},       {0xb9, 0xb9},       {0x1369, 0x1371},   {0x19da, 0x19da},
        {0x2070, 0x2070},   {0x2074, 0x2079},   {0x2080, 0x2089},   {0x2460, 0x2468},
        {0x2474, 0x247c},   {0x2488, 0x2490},   {0x24ea, 0x24ea},   {0x24f5, 0x24fd},
        {0x24ff, 0x24ff},   {0x2776, 0x277e},   {0x2780, 0x2788},   {0x278a, 0x2792},
        {0x10a40, 0x10a43}, {0x10e60, 0x10e68}, {0x11052, 0x1105a}, {0x1f100, 0x1f10a}};
    return category(cp) == UTF8PROC_CATEGORY_ND || IN(cp, digits);
}

/* But for the ideographs that are numbers to Python. */
bool tp_python_is_alnum(uint32_t cp)
{
    utf8proc_category_t c = category(cp);
    return tp_python_is_alpha(cp) || (c >= UTF8PROC_CATEGORY_ND && c <= UTF8PROC_CATEGORY_NO);
}

bool tp_python_is_lower(uint32_t cp)
{
    static const tp_code_range others[] = {
        {0xaa, 0xaa},       {0xba, 0xba},       {0x2b0, 0x2b8},     {0x2c0, 0x2c1},
        {0x2e0, 0x2e4},     {0x345, 0x345},     {0x37a, 0x37a},     {0x1d2c, 0x1d6a},
        {0x1d78, 0x1d78},   {0x1d9b, 0x1dbf},   {0x2071, 0x2071},   {0x207f, 0x207f},
        {0x2090, 0x209c},   {0x2170, 0x217f},   {0x24d0, 0x24e9},   {0x2c7c, 0x2c7d},
        {0xa69c, 0xa69d},   {0xa770, 0xa770},   {0xa7f8, 0xa7f9},   {0xab5c, 0xab5f},
        {0x10780, 0x10780}, {0x10783, 0x10785}, {0x10787, 0x107b0}, {0x107b2, 0x107ba}};
    return category(cp) == UTF8PROC_CATEGORY_LL || IN(cp, others);
}

bool tp_python_is_upper(uint32_t cp)
{
    static const tp_code_range others[] = {{0x2160, 0x216f},
                                           {0x24b6, 0x24cf},
                                           {0x1f130, 0x1f149},
                                           {0x1f150, 0x1f169},
                                           {0x1f170, 0x1f189}};
    return category(cp) == UTF8PROC_CATEGORY_LU || IN(cp, others);
}

bool tp_python_is_title(uint32_t cp) { return category(cp) == UTF8PROC_CATEGORY_LT; }

bool tp_python_is_printable(uint32_t cp)
{
    if (cp < 128)
        return cp >= 32 && cp < 127;
    switch (category(cp)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
        return false;
    default:
        return true;
    }
}

size_t tp_utf8_length(const char *s, size_t n)
{
    uint8_t lead = (uint8_t)s[0];
    size_t len = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
    return len < n ? len : n;
}

size_t tp_utf8_count(const char *s, size_t n)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += ((uint8_t)s[i] & 0xc0) != 0x80;
    return count;
}

size_t tp_utf8_offset(const char *s, size_t n, size_t index)
{
    size_t at = 0;
    for (; index && at < n; index--)
        at += tp_utf8_length(s + at, n - at);
    return at;
}

bool tp_python_space_at(const char *s, size_t n, size_t *ret_len)
{
    uint32_t cp = (uint8_t)s[0];
    *ret_len = 1;
    if (cp >= 128) {
        *ret_len = tp_utf8_decode(s, n, &cp);
        if (*ret_len == 0)
            return false;
    }
    return tp_python_is_space(cp);
}

size_t tp_python_rstrip(const char *s, size_t n)
{
    while (n) {
        size_t begin = n - 1, len;
        while (begin > 0 && ((uint8_t)s[begin] & 0xc0) == 0x80)
            begin--;
        if (!tp_python_space_at(s + begin, n - begin, &len))
            break;
        n = begin;
    }
    return n;
}

static size_t python_lstrip(const char *s, size_t n)
{
    size_t at = 0, len;
    while (at < n && tp_python_space_at(s + at, n - at, &len))
        at += len;
    return at;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* \xHH, \uHHHH, \UHHHHHHHH and octal at raw[*at], which is the letter or first
 * digit; moves *at behind it. */
static const char *numeric_escape(tp_slice raw, size_t *at, uint32_t *ret)
{
    char kind = raw.data[*at];
    uint32_t cp = 0;
    if (kind >= '0' && kind <= '7') {
        for (int i = 0; i < 3 && *at < raw.len && raw.data[*at] >= '0' && raw.data[*at] <= '7'; i++)
            cp = cp * 8 + (uint32_t)(raw.data[(*at)++] - '0');
    } else {
        int want = kind == 'x' ? 2 : kind == 'u' ? 4 : 8;
        (*at)++;
        for (int i = 0; i < want; i++, (*at)++) {
            int digit = *at < raw.len ? hex_digit(raw.data[*at]) : -1;
            if (digit < 0)
                return "a truncated \\x, \\u or \\U escape in a string";
            cp = cp << 4 | (uint32_t)digit;
        }
    }
    if (cp > 0x10ffff || (cp >= 0xd800 && cp < 0xe000))
        return "an escape in a string that is not a character";
    *ret = cp;
    return NULL;
}

const char *tp_python_unescape(tp_slice raw, char *out, tp_slice *ret)
{
    static const char letters[] = "\\'\"abfnrtv", bytes[] = "\\'\"\a\b\f\n\r\t\v";
    size_t n = 0;
    for (size_t i = 0; i < raw.len;) {
        char c = raw.data[i++];
        if (c != '\\' || i == raw.len) {
            out[n++] = c;
            continue;
        }
        c = raw.data[i];
        const char *letter = c ? strchr(letters, c) : NULL;
        uint32_t cp = 0;
        if (letter) {
            out[n++] = bytes[letter - letters];
            i++;
        } else if (c == '\n') {
            i++;
        } else if (c == 'x' || c == 'u' || c == 'U' || (c >= '0' && c <= '7')) {
            const char *problem = numeric_escape(raw, &i, &cp);
            if (problem)
                return problem;
            n += tp_utf8_encode(cp, out + n);
        } else if (c == 'N') {
            return "a \\N escape in a string is not supported";
        } else if ((uint8_t)c >= 128) { /* Python escapes it first, and that is what remains */
            i += tp_utf8_decode(raw.data + i, raw.len - i, &cp);
            char escaped[16];
            snprintf(escaped, sizeof escaped,
                     cp < 0x100     ? "\\x%02x"
                     : cp < 0x10000 ? "\\u%04x"
                                    : "\\U%08x",
                     (unsigned)cp);
            memcpy(out + n, escaped, strlen(escaped));
            n += strlen(escaped);
        } else {
            out[n++] = '\\';
        }
    }
    *ret = (tp_slice){out, n};
    return NULL;
}

size_t tp_python_integer(tp_integer value, char out[TP_PYTHON_NUMBER_MAX])
{
    char digits[TP_PYTHON_NUMBER_MAX];
    size_t n = 0, len = 0;
    bool negative = value < 0;
    unsigned __int128 rest = negative ? -(unsigned __int128)value : (unsigned __int128)value;
    do {
        digits[n++] = (char)('0' + (int)(rest % 10));
        rest /= 10;
    } while (rest);
    if (negative)
        out[len++] = '-';
    while (n)
        out[len++] = digits[--n];
    out[len] = 0;
    return len;
}

/* JSON's shortest digits, with the ".0" and the exponent of two digits that repr() has. */
size_t tp_python_float(double value, char out[TP_PYTHON_NUMBER_MAX])
{
    if (isnan(value))
        return (size_t)snprintf(out, TP_PYTHON_NUMBER_MAX, "nan");
    if (isinf(value))
        return (size_t)snprintf(out, TP_PYTHON_NUMBER_MAX, value < 0 ? "-inf" : "inf");
    char text[32];
    tp_json_f64_text(value, text);
    char *e = strchr(text, 'e');
    if (!e)
        return (size_t)snprintf(out, TP_PYTHON_NUMBER_MAX, "%s%s", text,
                                strchr(text, '.') ? "" : ".0");
    return (size_t)snprintf(out, TP_PYTHON_NUMBER_MAX, "%.*se%+03d", (int)(e - text), text,
                            atoi(e + 1));
}

/* A number's text without white space around it and with single underscores between
 * digits removed; false when they are elsewhere or it is too long. */
static bool clean_number(const char *s, size_t n, char *out, size_t cap)
{
    size_t begin = python_lstrip(s, n), len = 0;
    n = tp_python_rstrip(s, n);
    for (size_t i = begin; i < n; i++) {
        if (s[i] == '_') {
            if (i == begin || i + 1 == n || hex_digit(s[i - 1]) < 0 || hex_digit(s[i + 1]) < 0)
                return false;
            continue;
        }
        if (len + 1 >= cap || (uint8_t)s[i] >= 128 || s[i] == 0)
            return false;
        out[len++] = s[i];
    }
    out[len] = 0;
    return len > 0;
}

bool tp_python_parse_float(const char *s, size_t n, double *ret)
{
    char text[400];
    if (!clean_number(s, n, text, sizeof text))
        return false;
    const char *p = text + (text[0] == '-' || text[0] == '+');
    bool is_word =
        strcasecmp(p, "inf") == 0 || strcasecmp(p, "infinity") == 0 || strcasecmp(p, "nan") == 0;
    if (!is_word && p[strspn(p, "0123456789.eE+-")])
        return false; /* strtod() takes hexadecimal, float() does not */
    char *end;
    double value = strtod(text, &end);
    if (*end || end == text)
        return false;
    *ret = value;
    return true;
}

bool tp_python_parse_integer(const char *s, size_t n, int base, tp_integer *ret, bool *ret_overflow)
{
    char text[400];
    *ret_overflow = false;
    if (!clean_number(s, n, text, sizeof text))
        return false;
    const char *p = text;
    bool negative = *p == '-';
    p += *p == '-' || *p == '+';
    static const struct {
        char letter;
        int base;
    } prefixes[] = {{'x', 16}, {'o', 8}, {'b', 2}};
    bool prefixed = false;
    for (size_t i = 0; i < TP_COUNTOF(prefixes); i++)
        if (p[0] == '0' && (p[1] | 0x20) == prefixes[i].letter &&
            (base == 0 || base == prefixes[i].base)) {
            base = prefixes[i].base;
            prefixed = true;
        }
    p += prefixed ? 2 : 0;
    bool leading_zero = base == 0 && p[0] == '0' && p[strspn(p, "0")] != 0;
    base = base ? base : 10;
    if (!*p || leading_zero)
        return false;
    tp_integer value = 0;
    for (; *p; p++) {
        char c = *p;
        int digit = c >= '0' && c <= '9'                     ? c - '0'
                    : (c | 0x20) >= 'a' && (c | 0x20) <= 'z' ? (c | 0x20) - 'a' + 10
                                                             : 99;
        if (digit >= base)
            return false;
        *ret_overflow |= __builtin_mul_overflow(value, base, &value) ||
                         __builtin_add_overflow(value, digit, &value);
    }
    *ret = negative ? -value : value;
    return true;
}
