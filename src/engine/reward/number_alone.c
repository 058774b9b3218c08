/* number_alone.c - is a text a number and nothing else, or words around a number?  What computes
 * makes it an expression, which has no value here. */
#include <string.h>
#include <strings.h>
#include <utf8proc.h>

#include "base/platform.h"
#include "engine/reward/answer.h"
#include "engine/reward/number.h"

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/* The byte at `at`, or 0 outside the text. */
static char byte_at(tp_slice text, size_t at) { return at < text.len ? text.data[at] : 0; }

/* The length of the first of the words that stands at `at`; 0: none of them does. */
static size_t word_at(tp_slice text, size_t at, const char *const *words)
{
    for (; *words; words++) {
        size_t n = strlen(*words);
        if (text.len - at >= n && memcmp(text.data + at, *words, n) == 0)
            return n;
    }
    return 0;
}

/* Letters that are variables rather than units where they stand alone: "2x", "3 i". */
static bool is_variable(char c) { return is_letter(c) && !strchr("mgshlLJNWVAKCF", c); }

static bool is_harmless(char c) { return is_letter(c) || (c && strchr(" \t\r\n.,;:?'\"`~=$%", c)); }

/* Above ASCII: words, units, quotes, what decorates; not what computes (2π, √2, ±2, 2², 2‰). */
static bool is_harmless_code(uint32_t code)
{
    enum { APPROXIMATELY = 0x2248, PER_MILLE = 0x2030, PER_TEN_THOUSAND = 0x2031 };
    utf8proc_category_t kind = utf8proc_category((utf8proc_int32_t)code);
    bool is_arrow = code >= 0x2190 && code <= 0x21ff;
    bool is_greek = code >= 0x0370 && code <= 0x03ff;
    bool is_styled = code >= 0x1d400 && code <= 0x1d7ff; /* letters of formulas */
    if (is_greek || is_styled || code == PER_MILLE || code == PER_TEN_THOUSAND)
        return false;
    return is_arrow || code == APPROXIMATELY ||
           (kind != UTF8PROC_CATEGORY_SM && kind != UTF8PROC_CATEGORY_NO &&
            kind != UTF8PROC_CATEGORY_ND && kind != UTF8PROC_CATEGORY_NL);
}

/* A letter above ASCII, its accent or an apostrophe; not Chinese, which has no words in blanks. */
static bool continues_word(uint32_t code)
{
    enum { APOSTROPHE = 0x2019 };
    utf8proc_category_t kind = utf8proc_category((utf8proc_int32_t)code);
    return code == APOSTROPHE || kind == UTF8PROC_CATEGORY_LU || kind == UTF8PROC_CATEGORY_LL ||
           kind == UTF8PROC_CATEGORY_MN;
}

/* \text{ km}, \mathrm{kg}, \,, \ ,^\circ: mark-up that leaves a number a number; its length. */
static size_t markup_at(tp_slice text, size_t at)
{
    static const char *const known[] = {"\\text", "\\mathrm", "\\mathbf", "\\textbf",  "\\mbox",
                                        "\\left", "\\right",  "\\,",      "\\;",       "\\!",
                                        "\\:",    "\\ ",      "^\\circ",  "^{\\circ}", "\\%",
                                        "\\$",    "{",        "}",        "**",        "\\(",
                                        "\\)",    "\\[",      "\\]",      "\\approx",  NULL};
    return word_at(text, at, known);
}

static size_t letters_before(tp_slice text, size_t at)
{
    size_t n = 0;
    while (n < at && is_letter(text.data[at - n - 1]))
        n++;
    return n;
}

/* What stands in \\text{ km/h}: a unit or words, without what computes. */
static bool is_unit_text(char c) { return is_letter(c) || (c && strchr(" /.,-~", c)); }

/* The length of a \\text{...} that holds a unit or words. */
static size_t text_at(tp_slice text, size_t at)
{
    static const char *const known[] = {"\\text{", "\\mathrm{", "\\textrm{", "\\mbox{", NULL};
    size_t n = word_at(text, at, known);
    if (n == 0)
        return 0;
    while (is_unit_text(byte_at(text, at + n)))
        n++;
    return byte_at(text, at + n) == '}' ? n + 1 : 0;
}

/* Does a \\text{...} end at `at`? */
static bool ends_text(tp_slice text, size_t at)
{
    size_t from = at ? at - 1 : 0;
    if (at == 0 || text.data[from] != '}')
        return false;
    while (from && is_unit_text(text.data[from - 1]))
        from--;
    if (from == 0 || text.data[--from] != '{')
        return false;
    from -= letters_before(text, from);
    return from && text_at(text, from - 1) == at - from + 1;
}

/* Does a unit end at `at` that may have a power: "cm", \\text{...}, the s of "m/s"? */
static bool ends_unit(tp_slice text, size_t at)
{
    static const char *const units[] = {"m", "cm", "mm", "km", "dm", "ft", "in", "yd", "mi"};
    size_t n = letters_before(text, at);
    if (n == 1 && at > 1 && memcmp(text.data + at - 2, "/s", 2) == 0)
        return true;
    for (size_t i = 0; i < TP_COUNTOF(units); i++)
        if (strlen(units[i]) == n && strncmp(text.data + at - n, units[i], n) == 0)
            return true;
    return ends_text(text, at);
}

/* The length of a square or a cube of a unit: ^2, ^{3}, ². */
static size_t power_at(tp_slice text, size_t at)
{
    static const char *const powers[] = {"^2", "^3", "^{2}", "^{3}", "\xc2\xb2", "\xc2\xb3", NULL};
    size_t n = word_at(text, at, powers);
    return n && ends_unit(text, at) && !is_digit(byte_at(text, at + n)) ? n : 0;
}

/* The length of "μ" before the letters of a unit. */
static size_t micro_at(tp_slice text, size_t at)
{
    bool is_mu = text.len - at > 2 && memcmp(text.data + at, "\xce\xbc", 2) == 0;
    return is_mu && is_letter(text.data[at + 2]) ? 2 : 0;
}

/* An exclamation mark; not the factorial of what it touches. */
static bool is_exclamation(tp_slice text, size_t at)
{
    char before = at ? text.data[at - 1] : 0;
    return text.data[at] == '!' && !is_digit(before) && !(before && strchr(")]}!", before));
}

/* A word of two letters or more begins at `at`, behind one space at most. */
static bool has_word(tp_slice text, size_t at)
{
    at += byte_at(text, at) == ' ';
    return is_letter(byte_at(text, at)) && is_letter(byte_at(text, at + 1));
}

/* The length of a unit in brackets: "9 (apples)", "9 (t-shirts)", "5 (g)"; not "5 (x)". */
static size_t bracketed_at(tp_slice text, size_t at)
{
    size_t n = 1;
    if (text.data[at] != '(' || at == 0 || text.data[at - 1] != ' ')
        return 0;
    char letter = byte_at(text, at + 1), next = byte_at(text, at + 2);
    bool is_unit = is_letter(letter) && !is_variable(letter) && next == ')';
    if (!is_unit && !has_word(text, at + (next == '-' ? 3 : 1)))
        return 0;
    while (is_unit_text(byte_at(text, at + n)))
        n++;
    return byte_at(text, at + n) == ')' ? n + 1 : 0;
}

/* Hyphens, slashes and brackets within prose: "20-year", "miles/hour", "km/h", "$4 / hour",
 * "42 (all of them)", "42 - done". */
static bool is_prose(tp_slice text, size_t at)
{
    char before = at ? text.data[at - 1] : ' ', after = byte_at(text, at + 1);
    switch (text.data[at]) {
    case '/':
        if (is_letter(before) && is_letter(after) && !is_digit(byte_at(text, at + 2)))
            return true;
        return has_word(text, at + 1);
    case '-':
    case '&':
        return before == ' ' ? after == ' ' && has_word(text, at + 1)
                             : (is_letter(before) || is_digit(before)) && has_word(text, at + 1);
    case '[':
        return before == ' ' && is_letter(after);
    case ']':
        return is_letter(before);
    case '(':
        return before == ' ';
    case ')':
        return !is_letter(after) && !is_digit(after);
    default:
        return false;
    }
}

/* The length of what stands at `at` if a number beside it stays one, else 0. */
static size_t plain_at(tp_slice text, size_t at, bool in_prose)
{
    uint32_t code = 0;
    size_t n = text_at(text, at) ?: power_at(text, at) ?: micro_at(text, at);
    n = n ?: bracketed_at(text, at) ?: markup_at(text, at);
    if (n)
        return n;
    n = tp_utf8_decode(text.data + at, text.len - at, &code);
    if (n > 1)
        return is_harmless_code(code) ? n : 0;
    return is_harmless(text.data[at]) || is_exclamation(text, at) ||
           (in_prose && is_prose(text, at));
}

static bool is_plain(tp_slice text, size_t from, size_t to, bool in_prose)
{
    size_t n;
    for (; from < to; from += n)
        if ((n = plain_at(text, from, in_prose)) == 0)
            return false;
    return true;
}

/* "minus 2", "2pi": words that compute. */
static bool is_computed(tp_slice text, const tp_number *v)
{
    static const char *const before[] = {"minus", "negative"};
    size_t begin = v->begin, end = v->end;
    while (begin > 0 && text.data[begin - 1] == ' ')
        begin--;
    for (size_t i = 0; i < TP_COUNTOF(before); i++) {
        size_t n = strlen(before[i]);
        if (begin >= n && strncasecmp(text.data + begin - n, before[i], n) == 0)
            return true;
    }
    while (end < text.len && (text.data[end] == ' ' || text.data[end] == '('))
        end++;
    return text.len - end >= 2 && strncasecmp(text.data + end, "pi", 2) == 0 &&
           !is_letter(byte_at(text, end + 2));
}

/* Does a word follow behind blanks, mark-up, a quote, a bracket or a slash: a **day**, a/day? */
static bool leads_to_word(tp_slice text, size_t at)
{
    static const char *const gaps[] = {" ",  "~",  "\\,", "\\ ",          "\xc2\xa0",
                                       "**", "\"", "(",   "\xe2\x80\x9c", NULL};
    size_t from = at, n;
    at += byte_at(text, at) == '/';
    while ((n = word_at(text, at, gaps)))
        at += n;
    return at > from && has_word(text, at);
}

/* Does a word or an abbreviation begin with the letter at `at`, which no letter of ASCII follows:
 * "a day", "T-shirts", "D batteries", "o'clock", "p.m.", "pêches"? */
static bool begins_word(tp_slice text, size_t at)
{
    static const char *const hyphens[] = {"-", "'", ".", "\xe2\x80\x90", "\xe2\x80\x91", NULL};
    char c = text.data[at];
    size_t n = word_at(text, at + 1, hyphens);
    uint32_t code = 0;
    if ((c == 'a' || (c >= 'A' && c <= 'Z')) && leads_to_word(text, at + 1))
        return true;
    if (n)
        return is_letter(byte_at(text, at + 1 + n));
    return tp_utf8_decode(text.data + at + 1, text.len - at - 1, &code) > 1 && continues_word(code);
}

/* Does a variable follow the number that ends at `end`: "2x", "7 i", "12 m^2 n"?  Not "5 m". */
static bool has_variable(tp_slice text, size_t end)
{
    static const char *const gaps[] = {" ",   "~",   "{",   "}",        "\\,", "\\ ",
                                       "\\;", "\\:", "\\!", "\\mathbf", NULL};
    static const char *const constants[] = {"\\mathrm{i}", "\\mathrm{e}", NULL};
    for (size_t at = end, n; at < text.len; at += 1 + power_at(text, at + 1)) {
        while ((n = word_at(text, at, gaps)))
            at += n;
        if (word_at(text, at, constants))
            return true;
        if (!is_letter(byte_at(text, at)) || is_letter(byte_at(text, at + 1)) ||
            (at > end && begins_word(text, at)))
            return false;
        if (is_variable(text.data[at]))
            return true;
    }
    return false;
}

/* Part of a name or a term: x2, H2O, 2x, 2 pi. */
static bool is_joined(tp_slice text, const tp_number *v)
{
    return (v->begin && is_letter(text.data[v->begin - 1])) || has_variable(text, v->end) ||
           is_computed(text, v);
}

/* What one pair of brackets around the whole text holds: "(-5)", "\\left(-5\\right)". */
static tp_slice unbracket(tp_slice text)
{
    static const char *const pairs[][2] = {{"\\left(", "\\right)"}, {"(", ")"}};
    tp_slice whole = tp_answer_trim(text);
    for (size_t i = 0; i < TP_COUNTOF(pairs); i++) {
        size_t open = strlen(pairs[i][0]), close = strlen(pairs[i][1]);
        if (whole.len < open + close || memcmp(whole.data, pairs[i][0], open) != 0 ||
            memcmp(whole.data + whole.len - close, pairs[i][1], close) != 0)
            continue;
        tp_slice inner = {whole.data + open, whole.len - open - close};
        bool has_more = memchr(inner.data, '(', inner.len) || memchr(inner.data, ')', inner.len);
        return has_more ? text : inner;
    }
    return text;
}

/* The next number behind `end` that is no power of a unit; false: there is none. */
static bool next_number(tp_slice text, size_t end, tp_number *ret)
{
    while (tp_number_next(text, end, ret)) {
        size_t at = ret->begin;
        while (at > end && (text.data[at - 1] == '{' || text.data[at - 1] == '^'))
            at--;
        if (at == ret->begin || power_at(text, at) == 0)
            return true;
        end = ret->end;
    }
    return false;
}

static bool is_of_list(char c) { return is_digit(c) || c == ',' || c == ' ' || c == '-'; }

/* "(2,100)" is a pair: where nothing but digits, blanks and commas stands in brackets, these part
 * it.  Not "($2,100)", "(1,234 dollars)". */
static bool is_of_tuple(tp_slice text, const tp_number *v)
{
    static const char wide[] = "\xef\xbc\x88"; /* an opening bracket of Chinese text */
    static const char *const closing[] = {")", "\\right)", "\xef\xbc\x89", NULL};
    size_t from = v->begin;
    bool has_comma = false;
    while (from && is_of_list(text.data[from - 1]))
        from--;
    size_t to = from;
    for (; is_of_list(byte_at(text, to)); to++)
        has_comma |= to > from && text.data[to - 1] == ',';
    bool opens = (from > 0 && text.data[from - 1] == '(') ||
                 (from > 2 && memcmp(text.data + from - 3, wide, 3) == 0);
    return has_comma && opens && word_at(text, to, closing);
}

bool tp_number_only(tp_slice whole, tp_number *ret)
{
    tp_number v, other;
    tp_slice text = unbracket(whole);
    if (next_number(whole, 0, &v) && is_of_tuple(whole, &v))
        return false;
    if (!next_number(text, 0, &v) || next_number(text, v.end, &other) || is_joined(text, &v) ||
        !is_plain(text, 0, v.begin, false) || !is_plain(text, v.end, text.len, false))
        return false;
    v.begin += (size_t)(text.data - whole.data);
    v.end += (size_t)(text.data - whole.data);
    *ret = v;
    return true;
}

/* Runs of letters; above ASCII a letter may be a word. */
static size_t count_words(tp_slice text, size_t from, size_t to)
{
    size_t n = 0;
    for (size_t at = from; at < to; at++) {
        unsigned char c = (unsigned char)text.data[at];
        n += c >= 0xc2 || (is_letter((char)c) && (at == from || !is_letter(text.data[at - 1])));
    }
    return n;
}

/* Is what stands between two numbers prose?  Two words, one that says where or when ("60 in 2024"),
 * or one and a bracket ("60 minutes (1 hour)"); not "5 or 7". */
static bool parts_numbers(tp_slice text, size_t from, size_t to)
{
    static const char *const words[] = {" in ", " at ", " on ", " by ", " after ", " before "};
    size_t n = count_words(text, from, to);
    if (n >= 2)
        return true;
    for (size_t i = 0; i < TP_COUNTOF(words); i++)
        if (to - from == strlen(words[i]) && memcmp(text.data + from, words[i], to - from) == 0)
            return true;
    return n == 1 && memmem(text.data + from, to - from, " (", 2);
}

bool tp_number_in_words(tp_slice text, tp_number *ret)
{
    tp_number v;
    size_t end = 0, n = 0;
    for (size_t from = 0; next_number(text, from, &v); from = v.end) {
        if (n && letters_before(text, v.begin) > 1 && is_plain(text, end, v.begin, true)) {
            end = v.end; /* of a name: CO2 */
            continue;
        }
        if (is_joined(text, &v) || (!n && is_of_tuple(text, &v)) ||
            !is_plain(text, end, v.begin, true) || (n && !parts_numbers(text, end, v.begin)))
            return false;
        if (n++ == 0)
            *ret = v;
        end = v.end;
    }
    return n && is_plain(text, end, text.len, true);
}
