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
bool tp_python_is_lower(uint32_t cp);
bool tp_python_is_upper(uint32_t cp);
bool tp_python_is_title(uint32_t cp);
bool tp_python_is_printable(uint32_t cp);

/* Is the character at s (n > 0 bytes left) white space?  Its length too. */
bool tp_python_space_at(const char *s, size_t n, size_t *ret_len);
/* Length without the white space at the end; of the white space at the start. */
size_t tp_python_rstrip(const char *s, size_t n);

/* Code points, and where in bytes code point `index` begins (n at the end). */
size_t tp_utf8_count(const char *s, size_t n);
size_t tp_utf8_offset(const char *s, size_t n, size_t index);
size_t tp_utf8_length(const char *s, size_t n); /* of the character at s, n > 0; at least 1 */

/* Case.  `out` holds 3 * n bytes; the length is returned. */
typedef enum {
    TP_CASE_UPPER,
    TP_CASE_LOWER,
    TP_CASE_TITLE,
    TP_CASE_CAPITAL,
    TP_CASE_SWAP
} tp_python_case;
size_t tp_python_change_case(tp_python_case to, const char *s, size_t n, char *out);

/* The escapes of a string literal.  `out` holds 2 * raw.len bytes; returns NULL, or
 * what is wrong. */
const char *tp_python_unescape(tp_slice raw, char *out, tp_slice *ret);

enum { TP_PYTHON_NUMBER_MAX = 48 };
/* repr() of a float; decimal digits of an integer.  NUL-terminated; lengths. */
size_t tp_python_float(double value, char out[TP_PYTHON_NUMBER_MAX]);
size_t tp_python_integer(tp_integer value, char out[TP_PYTHON_NUMBER_MAX]);

/* float(text), int(text, base): the whole text but for white space around it. */
bool tp_python_parse_float(const char *s, size_t n, double *ret);
/* *ret_overflow: it is a number, but beyond 127 bits. */
bool tp_python_parse_integer(const char *s, size_t n, int base, tp_integer *ret,
                             bool *ret_overflow);

#endif
