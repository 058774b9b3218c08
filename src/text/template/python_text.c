/* python_text.c - the predicates, cases, stripping and numbers of Python's str, on UTF-8. */
#include "text/template/python_text.h"

#include <ctype.h>
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

static bool is_lower(uint32_t cp)
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

static bool is_upper(uint32_t cp)
{
    static const tp_code_range others[] = {{0x2160, 0x216f},
                                           {0x24b6, 0x24cf},
                                           {0x1f130, 0x1f149},
                                           {0x1f150, 0x1f169},
                                           {0x1f170, 0x1f189}};
    return category(cp) == UTF8PROC_CATEGORY_LU || IN(cp, others);
}

static bool is_title(uint32_t cp) { return category(cp) == UTF8PROC_CATEGORY_LT; }

/* Neither a separator but the blank, nor a control character, nor unassigned. */
bool tp_python_is_printable(uint32_t cp)
{
    utf8proc_category_t c = category(cp);
    return cp == ' ' || (c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_SO);
}

uint32_t tp_python_next(tp_slice s, size_t *at)
{
    uint32_t cp = (uint8_t)s.data[*at];
    size_t len = tp_utf8_decode(s.data + *at, s.len - *at, &cp);
    *at += len ? len : 1;
    return cp;
}

size_t tp_python_before(tp_slice s, size_t at)
{
    do
        at--;
    while (at > 0 && ((uint8_t)s.data[at] & 0xc0) == 0x80);
    return at;
}

size_t tp_python_count(tp_slice s)
{
    size_t count = 0;
    for (size_t i = 0; i < s.len; i++)
        count += ((uint8_t)s.data[i] & 0xc0) != 0x80;
    return count;
}

size_t tp_python_offset(tp_slice s, size_t index)
{
    size_t at = 0;
    for (; index && at < s.len; index--)
        tp_python_next(s, &at);
    return at;
}

tp_slice tp_python_from(tp_slice s, size_t offset)
{
    return (tp_slice){s.data + offset, s.len - offset};
}

/* Is the character at s[at..end) to be stripped? */
static bool is_stripped(tp_slice s, size_t at, size_t end, const tp_slice *chars)
{
    if (chars)
        return chars->len && memmem(chars->data, chars->len, s.data + at, end - at);
    return tp_python_is_space(tp_python_next(s, &at));
}

tp_slice tp_python_strip(tp_slice s, const tp_slice *chars, bool left, bool right)
{
    for (size_t at; left && s.len; s = tp_python_from(s, at)) {
        at = tp_python_offset(s, 1);
        if (!is_stripped(s, 0, at, chars))
            break;
    }
    for (size_t at; right && s.len; s.len = at) {
        at = tp_python_before(s, s.len);
        if (!is_stripped(s, at, s.len, chars))
            break;
    }
    return s;
}

int tp_python_word(const char *words, tp_slice word)
{
    for (int i = 0;; i++) {
        bool may_be = word.len && *words == *word.data;
        if (may_be && strncmp(words, word.data, word.len) == 0 && strcspn(words, " (") == word.len)
            return i;
        while (*words && *words != ' ')
            words++;
        if (!*words++)
            return -1;
    }
}

bool tp_python_is_cased(tp_slice s, bool upper)
{
    bool any = false;
    for (size_t at = 0; at < s.len;) {
        uint32_t cp = tp_python_next(s, &at);
        if (is_title(cp) || (upper ? is_lower(cp) : is_upper(cp)))
            return false;
        any |= upper ? is_upper(cp) : is_lower(cp);
    }
    return any;
}

/* --- case ---
 *
 * Simple mappings come from utf8proc.  A character whose capital is more than one (Unicode's
 * SpecialCasing without conditions) is one whose full folding is: the capitals of what it folds
 * to are its own.  The one condition that Python knows is the final sigma. */

enum { MOST = 3 }; /* code points that one can become */

/* What becomes more than one character: "ss" to "SS" or "Ss"; 0 for all others. */
static size_t map_special(uint32_t cp, bool title, uint32_t out[MOST])
{
    enum { IOTA = 0x3b9, IOTA_BELOW = 0x345, N_AFTER_APOSTROPHE = 0x149 };
    utf8proc_int32_t folded[8], c = (utf8proc_int32_t)cp;
    int boundary = UTF8PROC_BOUNDCLASS_START;
    utf8proc_ssize_t n =
        utf8proc_decompose_char(c, folded, TP_COUNTOF(folded), UTF8PROC_CASEFOLD, &boundary);
    bool is_single = n < 2 || n > MOST || utf8proc_category(c) == UTF8PROC_CATEGORY_LU ||
                     (title && utf8proc_category(utf8proc_totitle(c)) == UTF8PROC_CATEGORY_LT);
    if (is_single)
        return 0;
    for (utf8proc_ssize_t i = 0; i < n; i++) {
        bool is_small = title && i > 0 && cp != N_AFTER_APOSTROPHE;
        utf8proc_int32_t to = is_small ? folded[i] : utf8proc_toupper(folded[i]);
        out[i] = (uint32_t)(is_small && to == IOTA ? IOTA_BELOW : to);
    }
    return (size_t)n;
}

static size_t map_upper(uint32_t cp, bool title, uint32_t out[MOST])
{
    size_t n = cp < 128 ? 0 : map_special(cp, title, out);
    if (n)
        return n;
    utf8proc_int32_t c = (utf8proc_int32_t)cp;
    out[0] = (uint32_t)(title ? utf8proc_totitle(c) : utf8proc_toupper(c));
    return 1;
}

static bool is_cased(uint32_t cp) { return is_lower(cp) || is_upper(cp) || is_title(cp); }

/* Characters that the search for a cased neighbour passes over. */
static bool is_case_ignorable(uint32_t cp)
{
    static const uint32_t others[] = {0x27,   0x2e,   0x3a,   0xb7,   0x387,  0x55f,
                                      0x5f4,  0x2018, 0x2019, 0x2024, 0x2027, 0xfe13,
                                      0xfe52, 0xfe55, 0xff07, 0xff0e, 0xff1a};
    for (size_t i = 0; i < TP_COUNTOF(others); i++)
        if (others[i] == cp)
            return true;
    unsigned kinds = 1u << UTF8PROC_CATEGORY_MN | 1u << UTF8PROC_CATEGORY_ME |
                     1u << UTF8PROC_CATEGORY_CF | 1u << UTF8PROC_CATEGORY_LM |
                     1u << UTF8PROC_CATEGORY_SK;
    return kinds >> category(cp) & 1;
}

/* Is the sigma before `end` the last letter of a word: a cased letter before it, none after? */
static bool is_final_sigma(tp_slice s, size_t end)
{
    bool after_cased = false;
    for (size_t at = tp_python_before(s, end); at > 0;) {
        size_t next = at = tp_python_before(s, at);
        uint32_t cp = tp_python_next(s, &next);
        after_cased = is_cased(cp);
        if (!is_case_ignorable(cp))
            break;
        after_cased = false;
    }
    while (after_cased && end < s.len) {
        uint32_t cp = tp_python_next(s, &end);
        if (!is_case_ignorable(cp))
            return !is_cased(cp);
    }
    return after_cased;
}

/* `end`: where the character ends in s. */
static size_t map_lower(uint32_t cp, tp_slice s, size_t end, uint32_t out[MOST])
{
    bool is_dotted = cp == 0x130, is_final = cp == 0x3a3 && is_final_sigma(s, end);
    out[0] = is_dotted ? 'i' : is_final ? 0x3c2 : (uint32_t)utf8proc_tolower((utf8proc_int32_t)cp);
    out[1] = 0x307;
    return is_dotted ? 2 : 1;
}

size_t tp_python_change_case(tp_python_case to, tp_slice s, char *out)
{
    size_t len = 0;
    bool after_cased = false;
    for (size_t at = 0; at < s.len;) {
        bool title = to == TP_CASE_TITLE || to == TP_CASE_CAPITAL, first = at == 0;
        uint32_t cp = tp_python_next(s, &at), mapped[MOST] = {cp};
        bool upper = to == TP_CASE_UPPER || (to == TP_CASE_TITLE && !after_cased) ||
                     (to == TP_CASE_CAPITAL && first) || (to == TP_CASE_SWAP && is_lower(cp));
        size_t n_mapped = 1;
        if (to != TP_CASE_SWAP || is_lower(cp) || is_upper(cp))
            n_mapped = upper ? map_upper(cp, title, mapped) : map_lower(cp, s, at, mapped);
        for (size_t i = 0; i < n_mapped; i++)
            len += tp_utf8_encode(mapped[i], out + len);
        after_cased = is_cased(cp);
    }
    return len;
}

/* --- escapes --- */

int tp_python_digit(char c)
{
    int letter = c | 0x20;
    return c >= '0' && c <= '9' ? c - '0' : letter >= 'a' && letter <= 'z' ? letter - 'a' + 10 : 99;
}

size_t tp_python_escape(uint32_t cp, char out[TP_PYTHON_NUMBER_MAX])
{
    const char *format = cp < 0x100 ? "\\x%02x" : cp < 0x10000 ? "\\u%04x" : "\\U%08x";
    return (size_t)snprintf(out, TP_PYTHON_NUMBER_MAX, format, (unsigned)cp);
}

/* \xHH, \uHHHH, \UHHHHHHHH and octal at raw[*at], which is the letter or first
 * digit; moves *at behind it. */
static const char *numeric_escape(tp_slice raw, size_t *at, uint32_t *ret)
{
    char kind = raw.data[*at];
    bool is_octal = tp_python_digit(kind) < 8;
    int base = is_octal ? 8 : 16, n = 0;
    int most = is_octal ? 3 : kind == 'x' ? 2 : kind == 'u' ? 4 : 8;
    uint32_t cp = 0;
    *at += !is_octal;
    for (; n < most && *at < raw.len && tp_python_digit(raw.data[*at]) < base; n++)
        cp = cp * (uint32_t)base + (uint32_t)tp_python_digit(raw.data[(*at)++]);
    if (n < most && !is_octal)
        return "a truncated \\x, \\u or \\U escape in a string";
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
            char escaped[TP_PYTHON_NUMBER_MAX];
            size_t len = tp_python_escape(tp_python_next(raw, &i), escaped);
            memcpy(out + n, escaped, len);
            n += len;
        } else {
            out[n++] = '\\';
        }
    }
    *ret = (tp_slice){out, n};
    return NULL;
}

/* --- numbers --- */

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
static bool clean_number(tp_slice s, char *out, size_t cap)
{
    size_t len = 0;
    s = tp_python_strip(s, NULL, true, true);
    for (size_t i = 0; i < s.len; i++) {
        char c = s.data[i];
        if (c == '_' && i > 0 && i + 1 < s.len && isalnum((uint8_t)s.data[i - 1]) &&
            isalnum((uint8_t)s.data[i + 1]))
            continue;
        if (c == '_' || len + 1 >= cap || (uint8_t)c >= 128 || c == 0)
            return false;
        out[len++] = c;
    }
    out[len] = 0;
    return len > 0;
}

bool tp_python_parse_float(tp_slice s, double *ret)
{
    char text[400];
    if (!clean_number(s, text, sizeof text))
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

bool tp_python_parse_integer(tp_slice s, int base, tp_integer *ret, bool *ret_overflow)
{
    static const char letters[] = "xob";
    static const int bases[] = {16, 8, 2};
    char text[400];
    *ret_overflow = false;
    if (!clean_number(s, text, sizeof text))
        return false;
    const char *p = text + (text[0] == '-' || text[0] == '+');
    const char *letter = p[0] == '0' && p[1] ? strchr(letters, p[1] | 0x20) : NULL;
    if (letter && *letter && (base == 0 || base == bases[letter - letters])) {
        base = bases[letter - letters];
        p += 2;
    }
    if (!*p || (base == 0 && p[0] == '0' && p[strspn(p, "0")] != 0))
        return false;
    tp_integer value = 0;
    base = base ? base : 10;
    for (; *p; p++) {
        if (tp_python_digit(*p) >= base)
            return false;
        *ret_overflow |= __builtin_mul_overflow(value, base, &value) ||
                         __builtin_add_overflow(value, tp_python_digit(*p), &value);
    }
    *ret = text[0] == '-' ? -value : value;
    return true;
}

bool tp_python_parse_index(tp_slice s, tp_integer *ret)
{
    bool overflow;
    for (size_t i = 0; i < s.len; i++)
        if (tp_python_digit(s.data[i]) > 9)
            return false;
    return tp_python_parse_integer(s, 10, ret, &overflow) && !overflow;
}
