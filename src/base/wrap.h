/* wrap.h - lines of text and the width of a screen. */
#ifndef TP_BASE_WRAP_H
#define TP_BASE_WRAP_H

#include "base/strings.h"

/* Columns that n bytes take: one per character, none for what styles a terminal. */
size_t tp_columns_of(const char *s, size_t n);
/* Bytes of the first `count` characters. */
size_t tp_columns_skip(const char *s, size_t n, size_t count);

/* Lines that are wider than `room` go on in the next one, at a blank: below the text behind a label
 * ("peak   12 MiB of ..."), else two columns further in.  A word that is wider stays whole. */
void tp_add_wrapped(tp_buf *out, const char *text, size_t n, size_t room);

#endif
