/* jinja_str.h - operations on strings that methods and filters share. */
#ifndef TP_TEXT_TEMPLATE_JINJA_STR_H
#define TP_TEXT_TEMPLATE_JINJA_STR_H

#include "text/template/jinja_run.h"
#include "text/template/python_text.h"

TP_CHECKED tp_status tp_jinja_change_case(tp_jinja_run *run, tp_python_case to, tp_slice s,
                                          tp_any *ret);
/* Without the characters of `chars` (NULL: white space) on the left, on the right. */
tp_slice tp_jinja_strip(tp_slice s, const tp_slice *chars, bool left, bool right);
/* At most `count` replacements; < 0: all. */
TP_CHECKED tp_status tp_jinja_replace(tp_jinja_run *run, tp_slice s, tp_slice from, tp_slice to,
                                      int64_t count, tp_any *ret);
/* Where `part` is in s from byte `at` on, or last; SIZE_MAX when it is not. */
size_t tp_jinja_find(tp_slice s, tp_slice part, size_t at);
size_t tp_jinja_find_last(tp_slice s, tp_slice part);
enum { TP_JINJA_MAX_WIDTH = 1 << 20 }; /* of a padded text */
/* `fill` is one character; counts below 0 are 0. */
TP_CHECKED tp_status tp_jinja_pad_text(tp_jinja_run *run, tp_slice s, int64_t before, int64_t after,
                                       tp_slice fill, tp_any *ret);
TP_CHECKED tp_status tp_jinja_center(tp_jinja_run *run, tp_slice s, int64_t width, tp_slice fill,
                                     tp_any *ret);
/* The lines of a text as a list, with their ends when `keep_ends`. */
TP_CHECKED tp_status tp_jinja_splitlines(tp_jinja_run *run, tp_slice s, bool keep_ends,
                                         tp_any *ret);
bool tp_jinja_is_cased(tp_slice s, bool upper); /* isupper(), islower() */

/* A list under construction. */
typedef struct {
    tp_jinja_run *run;
    tp_any *values;
    size_t n, cap;
} tp_jinja_builder;
TP_CHECKED tp_status tp_jinja_append(tp_jinja_builder *builder, const tp_any *value);
TP_CHECKED tp_status tp_jinja_append_text(tp_jinja_builder *builder, const char *s, size_t n);
TP_CHECKED tp_status tp_jinja_build(tp_jinja_builder *builder, tp_any_type type, tp_any *ret);

TP_CHECKED tp_status tp_jinja_str_format(tp_jinja_run *run, const tp_jinja_invocation *c,
                                         tp_any *ret);

/* Methods, one table for each file. */
extern const tp_jinja_function tp_jinja_search_methods[];
extern const tp_jinja_function tp_jinja_shape_methods[];

#endif
