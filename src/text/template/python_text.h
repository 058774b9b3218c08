/* python_text.h - what Python's str and numbers do, on UTF-8.
 *
 * Templates are written for jinja2 and see Python's strings: indexed by code point,
 * with its idea of white space, case and digits.  Input is valid UTF-8. */
#ifndef TP_TEXT_TEMPLATE_PYTHON_TEXT_H
#define TP_TEXT_TEMPLATE_PYTHON_TEXT_H

#include <stdbool.h>

#include "base/strings.h"
#include "text/template/jinja_value.h"

/* Code points: str.isspace() and its sisters. */
bool tp_python_is_space(uint32_t cp);
bool tp_python_is_alpha(uint32_t cp);
bool tp_python_is_digit(uint32_t cp);
bool tp_python_is_alnum(uint32_t cp);
bool tp_python_is_printable(uint32_t cp);
bool tp_python_is_cased(tp_slice s, bool upper); /* isupper(), islower() of a text */

/* The character at *at < s.len, which moves behind it; where the one in front of at > 0 begins. */
uint32_t tp_python_next(tp_slice s, size_t *at);
size_t tp_python_before(tp_slice s, size_t at);
size_t tp_python_count(tp_slice s);                /* code points */
size_t tp_python_offset(tp_slice s, size_t index); /* where one begins in bytes; s.len at the end */
tp_slice tp_python_from(tp_slice s, size_t offset); /* without its first bytes */
/* Without the characters of `chars` (NULL: white space) on the left, on the right. */
tp_slice tp_python_strip(tp_slice s, const tp_slice *chars, bool left, bool right);
/* Which of the words between the blanks of `words` it is, without the "()" they may end in, or -1.
 */
int tp_python_word(const char *words, tp_slice word);

/* Case.  `out` holds 3 * s.len bytes; the length is returned. */
typedef enum {
    TP_CASE_UPPER,
    TP_CASE_LOWER,
    TP_CASE_TITLE,
    TP_CASE_CAPITAL,
    TP_CASE_SWAP
} tp_python_case;
size_t tp_python_change_case(tp_python_case to, tp_slice s, char *out);

int tp_python_digit(char c); /* of all bases to 36; 99 of what is none */
enum { TP_PYTHON_NUMBER_MAX = 48 };
/* \xHH, \uHHHH or \UHHHHHHHH. */
size_t tp_python_escape(uint32_t cp, char out[TP_PYTHON_NUMBER_MAX]);
/* The escapes of a string literal.  `out` holds 2 * raw.len bytes; returns NULL, or
 * what is wrong. */
const char *tp_python_unescape(tp_slice raw, char *out, tp_slice *ret);

/* repr() of a float; decimal digits of an integer.  NUL-terminated; lengths. */
size_t tp_python_float(double value, char out[TP_PYTHON_NUMBER_MAX]);
size_t tp_python_integer(tp_integer value, char out[TP_PYTHON_NUMBER_MAX]);

/* float(text), int(text, base): the whole text but for white space around it. */
bool tp_python_parse_float(tp_slice s, double *ret);
/* *ret_overflow: it is a number, but beyond 127 bits. */
bool tp_python_parse_integer(tp_slice s, int base, tp_integer *ret, bool *ret_overflow);
/* The text if it is decimal digits alone, as a position. */
bool tp_python_parse_index(tp_slice s, tp_integer *ret);

#endif
