/* answer.c - extraction of an answer: \boxed, a tag, a marker, the last line; and its normal
 * form. */
#include "engine/reward/answer.h"

#include <string.h>
#include <utf8proc.h>

#include "base/platform.h"
#include "engine/reward/number.h"

static const tp_slice none = {NULL, 0};

static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

tp_slice tp_answer_trim(tp_slice text)
{
    while (text.len && is_space(text.data[0])) {
        text.data++;
        text.len--;
    }
    while (text.len && is_space(text.data[text.len - 1]))
        text.len--;
    return text;
}

/* Where `word` stands last before `end`, or SIZE_MAX. */
static size_t find_last(tp_slice text, size_t end, const char *word)
{
    size_t n = strlen(word);
    if (n == 0 || end < n)
        return SIZE_MAX;
    for (size_t at = end - n + 1; at-- > 0;)
        if (memcmp(text.data + at, word, n) == 0)
            return at;
    return SIZE_MAX;
}

static tp_slice range(tp_slice text, size_t from, size_t to)
{
    return (tp_slice){text.data + from, to - from};
}

/* ---- places ---- */

/* `open` is behind the opening brace; the slice up to the brace that closes it. */
static tp_slice balanced(tp_slice text, size_t open)
{
    int depth = 1;
    for (size_t i = open; i < text.len; i++) {
        char c = text.data[i];
        if (c == '\\' && i + 1 < text.len)
            i++; /* \{ and \} are characters */
        else if (c == '{')
            depth++;
        else if (c == '}' && --depth == 0)
            return range(text, open, i);
    }
    return none;
}

static tp_slice boxed_at(tp_slice text, size_t at)
{
    while (at < text.len && text.data[at] == ' ')
        at++;
    if (at < text.len && text.data[at] == '{')
        return tp_answer_trim(balanced(text, at + 1));
    size_t end = at;
    while (end < text.len && !is_space(text.data[end]) && !strchr("$\\,;", text.data[end]))
        end++;
    return end > at ? range(text, at, end) : none;
}

tp_slice tp_answer_boxed(tp_slice text)
{
    static const char *const names[] = {"\\boxed", "\\fbox"};
    enum { TRIES = 16 };
    size_t end = text.len;
    for (int i = 0; i < TRIES; i++) { /* the last one that is complete */
        size_t best = SIZE_MAX, n = 0;
        for (size_t k = 0; k < TP_COUNTOF(names); k++) {
            size_t at = find_last(text, end, names[k]);
            if (at != SIZE_MAX && (best == SIZE_MAX || at > best)) {
                best = at;
                n = strlen(names[k]);
            }
        }
        if (best == SIZE_MAX)
            return none;
        tp_slice found = boxed_at(text, best + n);
        if (found.data)
            return found;
        end = best;
    }
    return none;
}

tp_slice tp_answer_after(tp_slice text, const char *marker)
{
    size_t at = find_last(text, text.len, marker);
    if (at == SIZE_MAX)
        return none;
    at += strlen(marker);
    const char *newline = memchr(text.data + at, '\n', text.len - at);
    size_t end = newline ? (size_t)(newline - text.data) : text.len;
    return tp_answer_trim(range(text, at, end));
}

tp_slice tp_answer_in_tag(tp_slice text, const char *tag)
{
    TP_OWN(tp_buf) open = {0}, close = {0};
    tp_buf_addf(&open, "<%s>", tag);
    tp_buf_addf(&close, "</%s>", tag);
    size_t end = find_last(text, text.len, close.data);
    if (end == SIZE_MAX)
        return none;
    size_t begin = find_last(text, end, open.data);
    return begin == SIZE_MAX ? none : tp_answer_trim(range(text, begin + open.len, end));
}

tp_slice tp_answer_last_line(tp_slice text)
{
    text = tp_answer_trim(text);
    size_t begin = text.len;
    while (begin && text.data[begin - 1] != '\n')
        begin--;
    return text.len ? tp_answer_trim(range(text, begin, text.len)) : none;
}

/* ---- spellings ---- */

typedef struct {
    const char *from, *to;
    bool wraps; /* braces behind it go too */
} rewrite;

/* The longest first where one begins another. */
static const rewrite rewrites[] = {{"\\left", "", false},
                                   {"\\right", "", false},
                                   {"\\displaystyle", "", false},
                                   {"\\textbf", "", true},
                                   {"\\textrm", "", true},
                                   {"\\text", "", true},
                                   {"\\mathrm", "", true},
                                   {"\\mathbf", "", true},
                                   {"\\mbox", "", true},
                                   {"\\dfrac", "\\frac", false},
                                   {"\\tfrac", "\\frac", false},
                                   {"^{\\circ}", " ", false},
                                   {"^\\circ", " ", false},
                                   {"\\!", "", false},
                                   {"\\,", " ", false},
                                   {"\\;", " ", false},
                                   {"\\:", " ", false},
                                   {"\\ ", " ", false},
                                   {"\\%", "%", false},
                                   {"\\$", " ", false},
                                   {"$", " ", false},
                                   {"−", "-", false},
                                   {"\\cdot", "*", false},
                                   {"\\times", "*", false},
                                   {"×", "*", false},
                                   {"·", "*", false},
                                   {"\\(", " ", false},
                                   {"\\)", " ", false},
                                   {"\\[", " ", false},
                                   {"\\]", " ", false},
                                   {"\\leq", "\\le", false},
                                   {"\\geq", "\\ge", false},
                                   {"\\neq", "\\ne", false}};

static const rewrite *match_rewrite(const char *p, size_t n)
{
    for (size_t i = 0; i < TP_COUNTOF(rewrites); i++) {
        size_t len = strlen(rewrites[i].from);
        if (n >= len && memcmp(p, rewrites[i].from, len) == 0)
            return &rewrites[i];
    }
    return NULL;
}

/* Braces are counted so that those of \text{...} can be left out. */
typedef struct {
    int depth;
    uint64_t dropped; /* bit d: the brace that opened level d is not written */
    bool drop_next;
} braces;

static bool is_dropped(braces *b, char c)
{
    bool known = b->depth >= 0 && b->depth < 63;
    if (c == '{') {
        uint64_t bit = known ? UINT64_C(1) << ++b->depth : 0;
        b->dropped = b->drop_next ? b->dropped | bit : b->dropped & ~bit;
        return b->drop_next && known;
    }
    if (c != '}' || b->depth <= 0)
        return false;
    return b->dropped >> b->depth-- & 1;
}

/* A blank is left out unless it parts digits that are no groups of one number. */
typedef struct {
    bool is_apart; /* a blank stands before what comes */
    int n_digits;  /* how many were written last, in this group */
} spacing;

static void write_spaced(spacing *s, tp_slice text, size_t at, tp_buf *out)
{
    char c = text.data[at];
    bool is_digit = c >= '0' && c <= '9', parts = is_digit && s->is_apart && s->n_digits;
    if (parts && (s->n_digits > 3 || !tp_number_group_at(text, at)))
        tp_buf_addc(out, ' ');
    s->n_digits = !is_digit ? 0 : parts ? 1 : s->n_digits + 1;
    s->is_apart = false;
    tp_buf_addc(out, c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c);
}

void tp_answer_normalize(tp_slice text, tp_buf *out)
{
    braces b = {0};
    spacing s = {0};
    text = tp_answer_trim(text);
    while (text.len && (text.data[text.len - 1] == '.' || text.data[text.len - 1] == ','))
        text.len--;
    for (size_t i = 0; i < text.len;) {
        const rewrite *r = match_rewrite(text.data + i, text.len - i);
        if (r) {
            if (r->to[0] == ' ')
                s.is_apart = true;
            else if (r->to[0]) {
                tp_buf_adds(out, r->to);
                s = (spacing){0};
            }
            i += strlen(r->from);
            b.drop_next = r->wraps;
            continue;
        }
        if (is_space(text.data[i]))
            s.is_apart = true;
        else if (!is_dropped(&b, text.data[i]))
            write_spaced(&s, text, i, out);
        i++;
        b.drop_next = false;
    }
}

static bool is_alphanumeric(uint32_t cp)
{
    switch (utf8proc_category((utf8proc_int32_t)cp)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
        return true;
    default:
        return false;
    }
}

void tp_answer_spell(tp_slice text, const tp_answer_spelling *how, tp_buf *out)
{
    text = tp_answer_trim(text);
    bool in_space = false;
    for (size_t i = 0; i < text.len;) {
        uint32_t cp = 0;
        size_t n = tp_utf8_decode(text.data + i, text.len - i, &cp);
        if (n == 0) { /* not UTF-8: the byte stands for itself */
            if (!how->only_alphanumeric)
                tp_buf_addc(out, text.data[i]);
            i++;
            in_space = false;
            continue;
        }
        bool space = n == 1 && is_space(text.data[i]);
        i += n;
        if (how->only_alphanumeric && !is_alphanumeric(cp))
            continue;
        if (space && how->squeeze_spaces) {
            if (!in_space)
                tp_buf_addc(out, ' ');
            in_space = true;
            continue;
        }
        in_space = false;
        char bytes[4];
        if (how->ignore_case)
            cp = (uint32_t)utf8proc_tolower((utf8proc_int32_t)cp);
        tp_buf_add(out, bytes, tp_utf8_encode(cp, bytes));
    }
}
