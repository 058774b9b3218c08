/* jinja_format.h - numbers and text in a field: shared by "%" and str.format(). */
#ifndef TP_TEXT_TEMPLATE_JINJA_FORMAT_H
#define TP_TEXT_TEMPLATE_JINJA_FORMAT_H

#include "text/template/jinja_run.h"

typedef struct {
    char fill[4]; /* one code point */
    size_t fill_len;
    char align; /* '<', '>', '^', '=' (sign first, then fill), or 0 */
    char sign;  /* '+', ' ', or 0 */
    bool alternate, zero;
    char grouping;            /* ',', '_', or 0 */
    int64_t width, precision; /* -1: none */
    char type;                /* 0: none */
} tp_jinja_spec;

enum { TP_JINJA_MAX_WIDTH = 1 << 20, TP_JINJA_MAX_PRECISION = 300 };

/* Text of `chars` characters, padded; `is_number` says that a sign may lead it. */
TP_CHECKED tp_status tp_jinja_pad(tp_jinja_text *out, const tp_jinja_spec *spec, tp_slice s,
                                  char default_align);
TP_CHECKED tp_status tp_jinja_format_integer(tp_jinja_text *out, const tp_jinja_spec *spec,
                                             tp_integer value);
TP_CHECKED tp_status tp_jinja_format_float(tp_jinja_text *out, const tp_jinja_spec *spec,
                                           double value);
TP_CHECKED tp_status tp_jinja_str_format(tp_jinja_run *run, const tp_jinja_invocation *c,
                                         tp_any *ret);

#endif
