/* regex_translate.c - rewrites Oniguruma's syntax of tokenizer.json into PCRE2's. */
#include "text/tokenizer/regex_translate.h"

#include <ctype.h>
#include <string.h>

enum { MAX_GROUP_DEPTH = 64, MAX_PATTERN = 16 * 1024 };

#define SPACES                                                                         \
    "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}" \
    "\\x{202f}\\x{205f}\\x{3000}"
#define NOT_SPACES                                                                 \
    "\\x{0}-\\x{8}\\x{e}-\\x{1f}\\x{21}-\\x{84}\\x{86}-\\x{9f}\\x{a1}-\\x{167f}"   \
    "\\x{1681}-\\x{1fff}\\x{200b}-\\x{2027}\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}" \
    "\\x{2060}-\\x{2fff}\\x{3001}-\\x{10ffff}"
/* Oniguruma's \w takes the superscripts and fractions of Latin-1 alone, but not
 * within brackets. */
#define WORDS_IN_CLASS                                     \
    "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{24b6}-\\x{24e9}" \
    "\\x{1f130}-\\x{1f149}\\x{1f150}-\\x{1f169}\\x{1f170}-\\x{1f189}"
#define WORDS WORDS_IN_CLASS "\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}"

#define WORD_BOUNDARY "(?:(?<=[" WORDS "])(?![" WORDS "])|(?<![" WORDS "])(?=[" WORDS "]))"
#define NO_BOUNDARY "(?:(?<=[" WORDS "])(?=[" WORDS "])|(?<![" WORDS "])(?![" WORDS "]))"

typedef struct {
    const char *text;
    size_t n, at;
    tp_buf *out;
    size_t atom;                         /* where in out the last atom begins, or NO_ATOM */
    bool quantified;                     /* the last atom has a quantifier already */
    size_t group_start[MAX_GROUP_DEPTH]; /* where in out each open group begins */
    size_t depth;
    tp_error *err;
} translation;

#define NO_ATOM SIZE_MAX

static tp_status refuse(const translation *t, const char *what)
{
    return tp_fail(t->err, TP_ERR_UNSUPPORTED,
                   "regular expression '%.*s': %s at offset %zu is not supported",
                   (int)(t->n < 200 ? t->n : 200), t->text, what, t->at);
}

static char peek(const translation *t, size_t ahead)
{
    return t->at + ahead < t->n ? t->text[t->at + ahead] : 0;
}

static void begin_atom(translation *t)
{
    t->atom = t->out->len;
    t->quantified = false;
}

/* \uHHHH, \xHH (ASCII only) and \x{...}: as a PCRE2 escape. */
static tp_status code_point(translation *t)
{
    bool is_u = peek(t, 1) == 'u';
    bool braced = peek(t, 2) == '{';
    size_t begin = t->at + (braced ? 3 : 2), end = begin;
    size_t most = braced ? 6 : is_u ? 4 : 2;
    while (end < t->n && end - begin < most && isxdigit((unsigned char)t->text[end]))
        end++;
    if (end == begin || (is_u && (braced || end - begin != 4)) ||
        (braced && (end == t->n || t->text[end] != '}')))
        return refuse(t, "this escape");
    if (!is_u && !braced && (end - begin == 2) && t->text[begin] > '7')
        return refuse(t, "a single byte above 7F");
    tp_buf_addf(t->out, "\\x{%.*s}", (int)(end - begin), t->text + begin);
    t->at = end + (braced ? 1 : 0);
    return TP_OK;
}

/* \p{...}, \P{...}, \p{^...}: the same in PCRE2. */
static tp_status property(translation *t)
{
    const char *close = peek(t, 2) == '{' ? memchr(t->text + t->at, '}', t->n - t->at) : NULL;
    if (!close)
        return refuse(t, "a property without braces");
    size_t len = (size_t)(close - (t->text + t->at)) + 1;
    tp_buf_add(t->out, t->text + t->at, len);
    t->at += len;
    return TP_OK;
}

/* The members of a class escape, for use between brackets; NULL when it has none. */
static const char *class_members(char letter, bool in_class)
{
    switch (letter) {
    case 's':
        return SPACES;
    case 'S':
        return NOT_SPACES;
    case 'd':
        return "\\p{Nd}";
    case 'D':
        return "\\P{Nd}";
    case 'w':
        return in_class ? WORDS_IN_CLASS : WORDS;
    case 'h':
        return "0-9A-Fa-f";
    default:
        return NULL;
    }
}

static tp_status escape(translation *t, bool in_class)
{
    char c = peek(t, 1);
    const char *members = class_members(c, in_class);
    if (members) {
        tp_buf_addf(t->out, in_class ? "%s" : "[%s]", members);
        t->at += 2;
        return TP_OK;
    }
    if (!in_class && (c == 'W' || c == 'H')) {
        tp_buf_addf(t->out, "[^%s]", class_members(c == 'W' ? 'w' : 'h', false));
        t->at += 2;
        return TP_OK;
    }
    if (c == 'u' || c == 'x')
        return code_point(t);
    if (c == 'p' || c == 'P')
        return property(t);
    if (c == 'v') {
        tp_buf_adds(t->out, "\\x{b}");
        t->at += 2;
        return TP_OK;
    }
    if (!in_class && (c == 'b' || c == 'B')) {
        tp_buf_adds(t->out, c == 'b' ? WORD_BOUNDARY : NO_BOUNDARY);
        t->at += 2;
        return TP_OK;
    }
    bool is_anchor = !in_class && c && strchr("AzZG", c);
    bool is_control = c && strchr(in_class ? "nrtfaeb" : "nrtfae", c);
    if (c == 0 || (isalnum((unsigned char)c) && !is_anchor && !is_control))
        return refuse(t, "this escape");
    if ((unsigned char)c < 128)
        tp_buf_addc(t->out, '\\');
    tp_buf_addc(t->out, c);
    t->at += 2;
    return TP_OK;
}

static tp_status bracket_class(translation *t)
{
    tp_buf_addc(t->out, '[');
    t->at++;
    if (peek(t, 0) == '^') {
        tp_buf_addc(t->out, '^');
        t->at++;
    }
    for (bool first = true;; first = false) {
        char c = peek(t, 0);
        if (t->at >= t->n)
            return refuse(t, "a character class without end");
        if (c == ']' && !first)
            break;
        if (c == '[')
            return refuse(t, "a class within a class");
        if (c == '&' && peek(t, 1) == '&')
            return refuse(t, "class intersection");
        if (c == '\\') {
            TP_TRY(escape(t, true));
            continue;
        }
        tp_buf_adds(t->out, first && c == ']' ? "\\" : "");
        tp_buf_addc(t->out, c);
        t->at++;
    }
    tp_buf_addc(t->out, ']');
    t->at++;
    return TP_OK;
}

/* The options of "(?im-x:" or "(?i)"; Ruby's m is PCRE2's s. */
static tp_status group_options(translation *t, bool *ret_is_group)
{
    for (;;) {
        char c = peek(t, 0);
        if (c == ':' || c == ')') {
            *ret_is_group = c == ':';
            tp_buf_addc(t->out, c);
            t->at++;
            return TP_OK;
        }
        if (!c || !strchr("imx-", c))
            return refuse(t, "this group");
        tp_buf_addc(t->out, c == 'm' ? 's' : c);
        t->at++;
    }
}

static tp_status open_group(translation *t)
{
    size_t start = t->out->len;
    bool is_group = true;
    if (peek(t, 1) != '?') {
        tp_buf_adds(t->out, "(?:"); /* captures are not used */
        t->at++;
    } else {
        static const char *const kinds[] = {"(?:", "(?=", "(?!", "(?>", "(?<=", "(?<!"};
        const char *kind = NULL;
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds && !kind; i++)
            if (t->n - t->at >= strlen(kinds[i]) &&
                memcmp(t->text + t->at, kinds[i], strlen(kinds[i])) == 0)
                kind = kinds[i];
        tp_buf_adds(t->out, kind ? kind : "(?");
        t->at += kind ? strlen(kind) : 2;
        if (!kind)
            TP_TRY(group_options(t, &is_group));
    }
    t->atom = NO_ATOM;
    if (!is_group)
        return TP_OK;
    if (t->depth == MAX_GROUP_DEPTH)
        return refuse(t, "a group nested this deep");
    t->group_start[t->depth++] = start;
    return TP_OK;
}

static tp_status close_group(translation *t)
{
    if (t->depth == 0)
        return refuse(t, "')' without '('");
    tp_buf_addc(t->out, ')');
    t->at++;
    t->atom = t->group_start[--t->depth];
    t->quantified = false;
    return TP_OK;
}

/* Length of "{n}", "{n,}", "{,m}" or "{n,m}" at the current place; 0 when '{' is
 * an ordinary character there. */
static size_t interval_length(const translation *t, bool *ret_exact, bool *ret_open_low)
{
    size_t i = 1, low = 0, high = 0;
    bool comma = false;
    for (; isdigit((unsigned char)peek(t, i)); i++)
        low++;
    if (peek(t, i) == ',') {
        comma = true;
        for (i++; isdigit((unsigned char)peek(t, i)); i++)
            high++;
    }
    if (peek(t, i) != '}' || low + high == 0)
        return 0;
    *ret_exact = !comma;
    *ret_open_low = low == 0;
    return i + 1;
}

static void wrap_atom(translation *t)
{
    static const char open[] = "(?:";
    size_t n = t->out->len - t->atom;
    tp_buf_adds(t->out, open);
    memmove(t->out->data + t->atom + 3, t->out->data + t->atom, n);
    memcpy(t->out->data + t->atom, open, 3);
    tp_buf_addc(t->out, ')');
}

static tp_status quantifier(translation *t, size_t interval, bool exact, bool open_low)
{
    if (t->atom == NO_ATOM)
        return refuse(t, "a quantifier without target");
    if (t->quantified)
        wrap_atom(t);
    t->quantified = true;
    if (interval) {
        tp_buf_adds(t->out, open_low ? "{0" : "{");
        tp_buf_add(t->out, t->text + t->at + 1, interval - 1);
        t->at += interval;
        if (peek(t, 0) == '?' && !exact) { /* lazy */
            tp_buf_addc(t->out, '?');
            t->at++;
        }
        return TP_OK;
    }
    tp_buf_addc(t->out, peek(t, 0));
    t->at++;
    if (peek(t, 0) == '?' || peek(t, 0) == '+') { /* lazy, possessive */
        tp_buf_addc(t->out, peek(t, 0));
        t->at++;
    }
    return TP_OK;
}

static tp_status translate_one(translation *t)
{
    char c = peek(t, 0);
    bool exact = false, open_low = false;
    size_t interval = c == '{' ? interval_length(t, &exact, &open_low) : 0;
    if (c == '*' || c == '+' || c == '?' || interval)
        return quantifier(t, interval, exact, open_low);
    if (c == '(')
        return open_group(t);
    if (c == ')')
        return close_group(t);
    if (c == '|') {
        tp_buf_addc(t->out, c);
        t->at++;
        t->atom = NO_ATOM;
        return TP_OK;
    }
    begin_atom(t);
    if (c == '[')
        return bracket_class(t);
    if (c == '\\')
        return escape(t, false);
    uint32_t cp;
    size_t len = tp_utf8_decode(t->text + t->at, t->n - t->at, &cp);
    if (len == 0 || cp == 0)
        return refuse(t, "a byte that is not text");
    tp_buf_adds(t->out, c == '{' ? "\\" : "");
    tp_buf_add(t->out, t->text + t->at, len);
    t->at += len;
    return TP_OK;
}

tp_status tp_regex_translate(const char *pattern, size_t n, tp_buf *ret, tp_error *err)
{
    if (n > MAX_PATTERN)
        return tp_fail(err, TP_ERR_UNSUPPORTED, "regular expression of %zu bytes: %d is the limit",
                       n, MAX_PATTERN);
    tp_buf out = {0};
    translation t = {.text = pattern, .n = n, .out = &out, .atom = NO_ATOM, .err = err};
    tp_status status = TP_OK;
    while (status == TP_OK && t.at < n)
        status = translate_one(&t);
    if (status == TP_OK && t.depth)
        status = refuse(&t, "'(' without ')'");
    if (status != TP_OK) {
        tp_buf_release(&out);
        return status;
    }
    tp_buf_release(ret);
    *ret = out;
    return TP_OK;
}
