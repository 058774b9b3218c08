/* regex_translate.c - rewrites Oniguruma's syntax of tokenizer.json into PCRE2's. */
#include "text/tokenizer/regex_translate.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>
#include <utf8proc.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/platform.h"

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
    size_t atom;     /* where in out the last atom begins, or NO_ATOM */
    bool quantified; /* the last atom has a quantifier already */
    bool ignore_case;
    uint32_t letter; /* the small form of the letter right before this place, or 0 */
    struct {
        size_t start;     /* where in out the group begins */
        bool ignore_case; /* holds again behind it */
        bool is_rest;     /* begun by "(?i)": ends with the group around it */
    } groups[MAX_GROUP_DEPTH];
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

static uint32_t small(uint32_t cp)
{
    int32_t capital = utf8proc_toupper((int32_t)cp); /* long s is an s */
    return (uint32_t)utf8proc_tolower(capital);
}

/* Two letters that some other one, as ligatures are, is equal to when case is ignored. */
static bool fold_together(uint32_t before, uint32_t cp)
{
    utf8proc_category_t category = utf8proc_category((int32_t)cp);
    if (before == 's' || before == 'f')
        return before == 's' ? cp == 's' || cp == 't' : cp == 'f' || cp == 'i' || cp == 'l';
    if (before == 0x2bc) /* the apostrophe before n */
        return true;
    static const uint32_t second[] = {0x2be, 0x3b9, 0x565, 0x56b, 0x56d, 0x576, 0x582};
    for (size_t i = 0; i < TP_COUNTOF(second) && before; i++)
        if (cp == second[i])
            return true;
    return before && category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME;
}

/* Oniguruma ignores the case of several letters at once, PCRE2 of each alone. */
static tp_status check_folding(translation *t, uint32_t cp)
{
    int32_t folded[8];
    int boundclass = 0;
    if (!t->ignore_case) {
        t->letter = 0;
        return TP_OK;
    }
    bool alone = utf8proc_decompose_char((int32_t)cp, folded, TP_COUNTOF(folded), UTF8PROC_CASEFOLD,
                                         &boundclass) == 1;
    if (!alone || fold_together(t->letter, small(cp)))
        return refuse(t, "ignoring case across several letters, as of ss and U+00DF,");
    t->letter = small(cp);
    return TP_OK;
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
    TP_TRY(check_folding(t, (uint32_t)strtoul(t->text + begin, NULL, 16)));
    tp_buf_addf(t->out, "\\x{%.*s}", (int)(end - begin), t->text + begin);
    t->at = end + (braced ? 1 : 0);
    return TP_OK;
}

static bool is_script(tp_slice name)
{
    TP_OWN(tp_buf) text = {0};
    int code = 0;
    PCRE2_SIZE offset = 0;
    tp_buf_addf(&text, "\\p{sc:%.*s}", (int)name.len, name.data);
    pcre2_code *compiled = pcre2_compile((PCRE2_SPTR)tp_buf_str(&text), text.len,
                                         PCRE2_UTF | PCRE2_UCP, &code, &offset, NULL);
    pcre2_code_free(compiled);
    return compiled != NULL;
}

/* Does the name say capital, small or title case, which Oniguruma and versions of PCRE2 take
 * each in their own way where case is ignored? */
static bool is_of_case(tp_slice name)
{
    static const char *const names[] = {"Lu", "Ll", "Lt", "Upper", "Lower", "Title"};
    for (size_t i = 0; i < TP_COUNTOF(names); i++)
        if (name.len >= strlen(names[i]) && strncasecmp(name.data, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

/* \p{...}, \P{...}, \p{^...}: the same in PCRE2, to which a script's bare name means its
 * extensions too since 10.40, and which takes what has neither of two properties to be nothing
 * (\P{L}+\P{N} never goes back) unless they stand in brackets. */
static tp_status property(translation *t, bool in_class)
{
    const char *close = peek(t, 2) == '{' ? memchr(t->text + t->at, '}', t->n - t->at) : NULL;
    if (!close)
        return refuse(t, "a property without braces");
    size_t begin = t->at + (peek(t, 3) == '^' ? 4 : 3);
    tp_slice name = {t->text + begin, (size_t)(close - (t->text + begin))};
    if (t->ignore_case && is_of_case(name))
        return refuse(t, "a property of case where case is ignored");
    bool bare = !in_class && (peek(t, 1) == 'P' || peek(t, 3) == '^');
    tp_buf_adds(t->out, bare ? "[" : "");
    tp_buf_add(t->out, t->text + t->at, begin - t->at);
    tp_buf_addf(t->out, "%s%.*s}%s", is_script(name) ? "sc:" : "", (int)name.len, name.data,
                bare ? "]" : "");
    t->at = begin + name.len + 1;
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
    if (c == 'u' || c == 'x')
        return code_point(t);
    t->letter = 0;
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
    if (c == 'p' || c == 'P')
        return property(t, in_class);
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

/* A character that means itself. */
static tp_status literal(translation *t)
{
    uint32_t cp;
    size_t len = tp_utf8_decode(t->text + t->at, t->n - t->at, &cp);
    if (len == 0 || cp == 0)
        return refuse(t, "a byte that is not text");
    TP_TRY(check_folding(t, cp));
    tp_buf_add(t->out, t->text + t->at, len);
    t->at += len;
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
        t->letter = 0;
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
        TP_TRY(literal(t));
    }
    tp_buf_addc(t->out, ']');
    t->at++;
    return TP_OK;
}

/* The options of "(?im-x:" or "(?i)"; Ruby's m is PCRE2's s.  The latter reaches to the end of the
 * group around it, with all branches there: a group of its own. */
static tp_status group_options(translation *t, bool *ret_is_rest)
{
    for (bool on = true;;) {
        char c = peek(t, 0);
        if (c == ':' || c == ')') {
            *ret_is_rest = c == ')';
            tp_buf_addc(t->out, ':');
            t->at++;
            return TP_OK;
        }
        if (!c || !strchr("imx-", c))
            return refuse(t, "this group");
        on = on && c != '-';
        if (c == 'i')
            t->ignore_case = on;
        tp_buf_addc(t->out, c == 'm' ? 's' : c);
        t->at++;
    }
}

static tp_status open_group(translation *t)
{
    size_t start = t->out->len;
    bool is_rest = false, ignore_case = t->ignore_case;
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
            TP_TRY(group_options(t, &is_rest));
    }
    t->atom = NO_ATOM;
    if (t->depth == MAX_GROUP_DEPTH)
        return refuse(t, "a group nested this deep");
    t->groups[t->depth].start = start;
    t->groups[t->depth].ignore_case = ignore_case;
    t->groups[t->depth++].is_rest = is_rest;
    return TP_OK;
}

static void end_group(translation *t)
{
    tp_buf_addc(t->out, ')');
    t->depth--;
    t->ignore_case = t->groups[t->depth].ignore_case;
}

/* Those that "(?i)" began. */
static void end_rests(translation *t)
{
    while (t->depth && t->groups[t->depth - 1].is_rest)
        end_group(t);
}

static tp_status close_group(translation *t)
{
    end_rests(t);
    if (t->depth == 0)
        return refuse(t, "')' without '('");
    end_group(t);
    t->at++;
    t->atom = t->groups[t->depth].start;
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
    t->letter = 0;
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
        t->letter = 0;
        return TP_OK;
    }
    begin_atom(t);
    if (c == '[')
        return bracket_class(t);
    if (c == '\\')
        return escape(t, false);
    tp_buf_adds(t->out, c == '{' ? "\\" : "");
    return literal(t);
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
    if (status == TP_OK)
        end_rests(&t);
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
