/* python_case.c - upper, lower and title case as Python maps them.
 *
 * Simple mappings come from utf8proc.  A character whose capital is more than one (Unicode's
 * SpecialCasing without conditions) is one whose full folding is: the capitals of what it folds
 * to are its own.  The one condition that Python knows is the final sigma. */
#include <utf8proc.h>

#include "base/platform.h"
#include "text/template/python_text.h"

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

static bool is_cased(uint32_t cp)
{
    return tp_python_is_lower(cp) || tp_python_is_upper(cp) || tp_python_is_title(cp);
}

/* Characters that the search for a cased neighbour passes over. */
static bool is_case_ignorable(uint32_t cp)
{
    static const uint32_t others[] = {0x27,   0x2e,   0x3a,   0xb7,   0x387,  0x55f,
                                      0x5f4,  0x2018, 0x2019, 0x2024, 0x2027, 0xfe13,
                                      0xfe52, 0xfe55, 0xff07, 0xff0e, 0xff1a};
    for (size_t i = 0; i < TP_COUNTOF(others); i++)
        if (others[i] == cp)
            return true;
    switch (utf8proc_category((utf8proc_int32_t)cp)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
        return true;
    default:
        return false;
    }
}

/* Is a sigma at `at` the last letter of a word: a cased letter before it, none after? */
static bool is_final_sigma(const char *s, size_t n, size_t at)
{
    uint32_t cp = 0;
    size_t i = at;
    for (;;) {
        if (i == 0)
            return false;
        do
            i--;
        while (i > 0 && ((uint8_t)s[i] & 0xc0) == 0x80);
        tp_utf8_decode(s + i, n - i, &cp);
        if (!is_case_ignorable(cp))
            break;
    }
    if (!is_cased(cp))
        return false;
    for (i = at + 2; i < n; i += tp_utf8_length(s + i, n - i)) {
        tp_utf8_decode(s + i, n - i, &cp);
        if (!is_case_ignorable(cp))
            return !is_cased(cp);
    }
    return true;
}

static size_t map_lower(uint32_t cp, const char *s, size_t n, size_t at, uint32_t out[MOST])
{
    if (cp == 0x130) {
        out[0] = 'i';
        out[1] = 0x307;
        return 2;
    }
    bool final = cp == 0x3a3 && is_final_sigma(s, n, at);
    out[0] = final ? 0x3c2 : (uint32_t)utf8proc_tolower((utf8proc_int32_t)cp);
    return 1;
}

size_t tp_python_change_case(tp_python_case to, const char *s, size_t n, char *out)
{
    size_t len = 0;
    bool after_cased = false;
    for (size_t at = 0, step; at < n; at += step) {
        uint32_t cp = 0, mapped[MOST];
        step = tp_utf8_length(s + at, n - at);
        tp_utf8_decode(s + at, n - at, &cp);
        bool upper = to == TP_CASE_UPPER || (to == TP_CASE_TITLE && !after_cased) ||
                     (to == TP_CASE_CAPITAL && at == 0) ||
                     (to == TP_CASE_SWAP && tp_python_is_lower(cp));
        bool keep = to == TP_CASE_SWAP && !tp_python_is_lower(cp) && !tp_python_is_upper(cp);
        bool title = to == TP_CASE_TITLE || to == TP_CASE_CAPITAL;
        size_t n_mapped = 1;
        if (keep)
            mapped[0] = cp;
        else
            n_mapped = upper ? map_upper(cp, title, mapped) : map_lower(cp, s, n, at, mapped);
        for (size_t i = 0; i < n_mapped; i++)
            len += tp_utf8_encode(mapped[i], out + len);
        after_cased = is_cased(cp);
    }
    return len;
}
