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

/* Letters that are variables rather than units when they touch a number: "2x", "3i". */
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

/* \text{ km}, \mathrm{kg}, \,, \ ,^\circ: mark-up that leaves a number a number; its length. */
static size_t markup_at(tp_slice text, size_t at)
{
    static const char *const known[] = {"\\text", "\\mathrm", "\\mathbf", "\\textbf",  "\\mbox",
                                        "\\left", "\\right",  "\\,",      "\\;",       "\\!",
                                        "\\:",    "\\ ",      "^\\circ",  "^{\\circ}", "\\%",
                                        "\\$",    "{",        "}",        "**",        "\\(",
                                        "\\)",    "\\[",      "\\]",      "\\approx"};
    for (size_t i = 0; i < TP_COUNTOF(known); i++) {
        size_t n = strlen(known[i]);
        if (text.len - at >= n && memcmp(text.data + at, known[i], n) == 0)
            return n;
    }
    return 0;
}

/* An exclamation mark; not the factorial of what it touches. */
static bool is_exclamation(tp_slice text, size_t at)
{
    char before = at ? text.data[at - 1] : 0;
    return text.data[at] == '!' && !is_digit(before) && !(before && strchr(")]}!", before));
}

/* Hyphens, slashes and brackets within prose: "20-year", "miles/hour", "42 (all of them)". */
static bool is_prose(tp_slice text, size_t at)
{
    char before = at ? text.data[at - 1] : ' ', after = byte_at(text, at + 1);
    switch (text.data[at]) {
    case '-':
    case '/':
        return (is_letter(before) || is_digit(before)) && is_letter(after) &&
               is_letter(byte_at(text, at + 2));
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
    size_t n = markup_at(text, at);
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
    while (end < text.len && text.data[end] == ' ')
        end++;
    return text.len - end >= 2 && strncasecmp(text.data + end, "pi", 2) == 0 &&
           !is_letter(byte_at(text, end + 2));
}

/* Part of a name or a term: x2, H2O, 2x, 2 pi. */
static bool is_joined(tp_slice text, const tp_number *v)
{
    return (v->begin && is_letter(text.data[v->begin - 1])) ||
           (is_variable(byte_at(text, v->end)) && !is_letter(byte_at(text, v->end + 1))) ||
           is_computed(text, v);
}

/* What one pair of brackets around the whole text holds: "(-5)". */
static tp_slice unbracket(tp_slice text)
{
    tp_slice inner = tp_answer_trim(text);
    if (inner.len < 2 || inner.data[0] != '(' || inner.data[inner.len - 1] != ')')
        return text;
    inner = (tp_slice){inner.data + 1, inner.len - 2};
    return memchr(inner.data, '(', inner.len) || memchr(inner.data, ')', inner.len) ? text : inner;
}

bool tp_number_only(tp_slice whole, tp_number *ret)
{
    tp_number v, other;
    tp_slice text = unbracket(whole);
    if (!tp_number_next(text, 0, &v) || tp_number_next(text, v.end, &other) ||
        is_joined(text, &v) || !is_plain(text, 0, v.begin, false) ||
        !is_plain(text, v.end, text.len, false))
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

bool tp_number_in_words(tp_slice text, tp_number *ret)
{
    tp_number v;
    size_t end = 0, n = 0;
    for (; tp_number_next(text, end, &v); end = v.end, n++) {
        if (is_joined(text, &v) || !is_plain(text, end, v.begin, true) ||
            (n && count_words(text, end, v.begin) < 2))
            return false;
        if (n == 0)
            *ret = v;
    }
    return n && is_plain(text, end, text.len, true);
}
