/* jinja_str.h - operations on strings that methods and filters share. */
#ifndef TP_TEXT_TEMPLATE_JINJA_STR_H
#define TP_TEXT_TEMPLATE_JINJA_STR_H

#include "text/template/jinja_run.h"

tp_any tp_jinja_change_case(tp_jinja_run *run, tp_python_case to, tp_slice s);
/* At most `count` replacements; < 0: all. */
tp_any tp_jinja_replace(tp_jinja_run *run, tp_slice s, tp_slice from, tp_slice to, int64_t count);
/* The lines of a text as a list, with their ends when `keep_ends`. */
tp_any tp_jinja_splitlines(tp_jinja_run *run, tp_slice s, bool keep_ends);
void tp_jinja_reverse(struct tp_any_items *list);
/* "...".format() */
tp_any tp_jinja_str_format(tp_jinja_run *run, const tp_jinja_invocation *c);

#endif
