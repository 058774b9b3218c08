/* jinja_path.h - the `attribute` argument of filters: "a.b.0" of an element. */
#ifndef TP_TEXT_TEMPLATE_JINJA_PATH_H
#define TP_TEXT_TEMPLATE_JINJA_PATH_H

#include "text/template/jinja_run.h"

typedef struct {
    tp_any *keys;
    size_t n;
    tp_any fallback;  /* for undefined parts; MISSING or none: they stay undefined */
    bool ignore_case; /* text is compared in lower case */
} tp_jinja_path;

/* MISSING and none are the element itself. */
TP_CHECKED tp_status tp_jinja_path_of(tp_jinja_run *run, const tp_any *attribute,
                                      tp_jinja_path *ret);
TP_CHECKED tp_status tp_jinja_path_get(tp_jinja_run *run, const tp_jinja_path *path,
                                       const tp_any *element, tp_any *ret);

#endif
