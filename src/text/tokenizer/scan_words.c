/* scan_words.c - the four pre-tokenizers that nearly all byte-level models use.
 *
 * Each function is its regular expression, alternative by alternative, on three
 * classes: letters L, numbers N, white space; everything else is "other".  The
 * expressions cover every text, so each word ends where the next begins. */
#include <string.h>

#include "text/tokenizer/pretokenize.h"
#include "text/unicode/unicode_class.h"

const char tp_regex_gpt2[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+"
                             "|\\s+(?!\\S)|\\s+";
const char tp_regex_llama3[] = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+"
                               "|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+"
                               "|\\s+(?!\\S)|\\s+";
const char tp_regex_qwen2[] = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+"
                              "|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+"
                              "|\\s+(?!\\S)|\\s+";

/* The end of the run of `class` that begins at `at`. */
static size_t run_end(const char *text, size_t n, size_t at, tp_unicode_class class)
{
    size_t len;
    while (at < n && tp_class_at(text + at, n - at, &len) == class)
        at += len;
    return at;
}

/* Length of 's 't 'm 'd 're 've 'll at `at`, or 0; U+017F folds to s. */
static inline size_t contraction(const char *text, size_t n, size_t at, bool any_case)
{
    char fold = any_case ? 0x20 : 0;
    if (text[at] != '\'' || at + 1 == n)
        return 0;
    if (any_case && n - at >= 3 && memcmp(text + at + 1, "\xc5\xbf", 2) == 0)
        return 3;
    char a = (char)(text[at + 1] | fold);
    if (a == 's' || a == 't' || a == 'm' || a == 'd')
        return 2;
    char b = at + 2 < n ? (char)(text[at + 2] | fold) : 0;
    bool two = (a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l');
    return two ? 3 : 0;
}

/* \s+(?!\S)|\s+ on the white space from `at` to `end`, where `bounded` says that
 * something follows: it leaves the last character to what follows, unless that is
 * all there is. */
static size_t space_end(const char *text, size_t at, size_t end, bool bounded)
{
    if (!bounded)
        return end;
    size_t last = end - 1;
    while (last > at && ((unsigned char)text[last] & 0xc0) == 0x80)
        last--;
    return last > at ? last : end;
}

size_t tp_scan_gpt2(const char *text, size_t n, size_t at)
{
    size_t len, word = contraction(text, n, at, false);
    if (word)
        return at + word;
    tp_unicode_class class = tp_class_at(text + at, n - at, &len);
    if (text[at] == ' ' && at + 1 < n) {
        size_t next_len;
        tp_unicode_class next = tp_class_at(text + at + 1, n - at - 1, &next_len);
        if (next != TP_CLASS_SPACE)
            return run_end(text, n, at + 1 + next_len, next);
    }
    size_t end = run_end(text, n, at + len, class);
    return class == TP_CLASS_SPACE ? space_end(text, at, end, end < n) : end;
}

/* As tp_class_at(), with every character that `Digits` isolates a number. */
static tp_unicode_class class_with_digits(const char *text, size_t n, size_t *ret_len)
{
    tp_unicode_class class = tp_class_at(text, n, ret_len);
    uint32_t cp;
    if (class == TP_CLASS_OTHER && *ret_len > 2 && tp_utf8_decode(text, n, &cp) &&
        tp_unicode_is_numeric(cp))
        return TP_CLASS_NUMBER;
    return class;
}

static size_t run_end_with_digits(const char *text, size_t n, size_t at, tp_unicode_class class)
{
    size_t len;
    while (at < n && class_with_digits(text + at, n - at, &len) == class)
        at += len;
    return at;
}

/* A number is a piece of its own, so for its neighbours the text ends there. */
size_t tp_scan_smollm2(const char *text, size_t n, size_t at)
{
    size_t len, word = contraction(text, n, at, false);
    if (word)
        return at + word;
    tp_unicode_class class = class_with_digits(text + at, n - at, &len);
    if (class == TP_CLASS_NUMBER)
        return at + len;
    if (text[at] == ' ' && at + 1 < n) {
        size_t next_len;
        tp_unicode_class next = class_with_digits(text + at + 1, n - at - 1, &next_len);
        if (next != TP_CLASS_SPACE && next != TP_CLASS_NUMBER)
            return run_end_with_digits(text, n, at + 1 + next_len, next);
    }
    size_t end = run_end_with_digits(text, n, at + len, class);
    if (class != TP_CLASS_SPACE)
        return end;
    bool bounded = end < n && class_with_digits(text + end, n - end, &len) != TP_CLASS_NUMBER;
    return space_end(text, at, end, bounded);
}

static bool is_newline(char c) { return c == '\r' || c == '\n'; }

static size_t newlines_end(const char *text, size_t n, size_t at)
{
    while (at < n && is_newline(text[at]))
        at++;
    return at;
}

/* \s*[\r\n]+|\s+(?!\S)|\s+ */
static size_t space_or_lines_end(const char *text, size_t n, size_t at)
{
    size_t end = run_end(text, n, at, TP_CLASS_SPACE);
    for (size_t last = end; last > at; last--)
        if (is_newline(text[last - 1]))
            return last;
    return space_end(text, at, end, end < n);
}

static size_t scan_llama(const char *text, size_t n, size_t at, int max_digits)
{
    size_t len, next_len = 0, word = contraction(text, n, at, true);
    if (word)
        return at + word;
    tp_unicode_class class = tp_class_at(text + at, n - at, &len);
    if (class == TP_CLASS_LETTER)
        return run_end(text, n, at + len, class);
    if (class == TP_CLASS_NUMBER) {
        for (int digits = 0; digits < max_digits && at < n; digits++, at += len)
            if (tp_class_at(text + at, n - at, &len) != TP_CLASS_NUMBER)
                break;
        return at;
    }
    tp_unicode_class next = TP_CLASS_SPACE;
    if (at + len < n)
        next = tp_class_at(text + at + len, n - at - len, &next_len);
    if (next == TP_CLASS_LETTER && !is_newline(text[at]))
        return run_end(text, n, at + len + next_len, next);
    if (class == TP_CLASS_OTHER || (text[at] == ' ' && next == TP_CLASS_OTHER))
        return newlines_end(text, n, run_end(text, n, at + len, TP_CLASS_OTHER));
    return space_or_lines_end(text, n, at);
}

size_t tp_scan_llama3(const char *text, size_t n, size_t at) { return scan_llama(text, n, at, 3); }

size_t tp_scan_qwen2(const char *text, size_t n, size_t at) { return scan_llama(text, n, at, 1); }
