/* unicode_class.h - which code points are letters, numbers, white space.
 *
 * Pre-tokenizers cut text by these classes, so they must agree with the library
 * that trained the tokenizer.  General categories come from utf8proc; letters
 * and numbers that Unicode assigned after utf8proc's tables (15.1 and 16.0) are
 * listed beside them.  White space is the Unicode property White_Space, which
 * leaves out U+180E and the separators U+001C to U+001F. */
#ifndef TP_TEXT_UNICODE_UNICODE_CLASS_H
#define TP_TEXT_UNICODE_UNICODE_CLASS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strings.h"

typedef enum {
    TP_CLASS_OTHER,  /* also a byte that is not UTF-8 */
    TP_CLASS_LETTER, /* L* */
    TP_CLASS_NUMBER, /* Nd, Nl, No */
    TP_CLASS_SPACE   /* White_Space */
} tp_unicode_class;

/* Ranges of code points in ascending order, and whether one of n holds `cp`. */
typedef struct {
    uint32_t first, last;
} tp_code_range;
bool tp_in_code_ranges(uint32_t cp, const tp_code_range *ranges, size_t n);

extern const uint8_t tp_ascii_class[128];

/* The class of a code point from 128 on. */
tp_unicode_class tp_unicode_class_wide(uint32_t cp);

/* The class of the character at s (n > 0 bytes left) and its length in bytes.  A
 * byte that does not start valid UTF-8 is one character of class OTHER. */
static inline tp_unicode_class tp_class_at(const char *s, size_t n, size_t *ret_len)
{
    uint8_t byte = (uint8_t)s[0];
    if (byte < 128) {
        *ret_len = 1;
        return (tp_unicode_class)tp_ascii_class[byte];
    }
    uint32_t cp;
    size_t len = tp_utf8_decode(s, n, &cp);
    *ret_len = len ? len : 1;
    return len ? tp_unicode_class_wide(cp) : TP_CLASS_OTHER;
}

/* Numeric in the sense of the `Digits` pre-tokenizer: the numbers, and a few
 * digits that are newer than the letters' tables. */
bool tp_unicode_is_numeric(uint32_t cp);
/* ASCII punctuation and symbols, or category P, as of Unicode 8.0. */
bool tp_unicode_is_punctuation(uint32_t cp);
/* \w: letters, marks, decimal digits, connectors, letter-like numbers, joiners. */
bool tp_unicode_is_word(uint32_t cp);

#endif
