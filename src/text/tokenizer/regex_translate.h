/* regex_translate.h - from the regular expressions of tokenizer.json to PCRE2.
 *
 * The files mean Oniguruma with Ruby's syntax and Unicode throughout.  Most of it
 * is the same in PCRE2; this rewrites what is not:
 *
 *     \s \d \w \b          by Unicode property (PCRE2's \s takes U+180E)
 *     \P{L}                [\P{L}]: two in a row would not go back
 *     \h \H                hexadecimal digit
 *     \p{Han}              \p{sc:Han}, the script without its extensions
 *     \uHHHH \v            code point; vertical tab
 *     (?m:                 "dot matches newline": (?s: in PCRE2
 *     x{n,m}+  x**  x{n}?  repeated repeats, never possessive: (?:x{n,m})+
 *     {,n}                 {0,n}
 *     a(?i)b|c             a(?i:b|c)
 *
 * Character class intersection (&&), nested and POSIX classes, back references,
 * ignoring the case of what folds into several letters (ss) or of a property of case
 * and other constructs that no tokenizer is known to use are refused by name. */
#ifndef TP_TEXT_TOKENIZER_REGEX_TRANSLATE_H
#define TP_TEXT_TOKENIZER_REGEX_TRANSLATE_H

#include "base/error.h"
#include "base/strings.h"

TP_CHECKED tp_status tp_regex_translate(const char *pattern, size_t n, tp_buf *ret, tp_error *err);

#endif
