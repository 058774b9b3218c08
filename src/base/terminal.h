/* terminal.h - text of strangers as it may be shown: behind temper/terminal.h. */
#ifndef TP_BASE_TERMINAL_H
#define TP_BASE_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/strings.h"
#include "temper/terminal.h"

/* A code point that is not to reach a terminal: C0 but newline and tab, DEL, C1 (U+0080-U+009F),
 * the bidirectional controls U+202A-U+202E and U+2066-U+2069. */
bool tp_is_unsafe(uint32_t code_point);

/* Text as it may be shown: what is unsafe becomes \xNN or \uNNNN, bytes that are no UTF-8 \xNN.
 * On one line newline and tab are written out as \n and \t as well. */
void tp_buf_add_shown(tp_buf *out, const char *s, size_t n, bool one_line);

/* Values as a line of blocks, one column each; '!' where one is not finite. */
void tp_buf_add_sparkline(tp_buf *out, const double *v, size_t n);

/* Begins an item of a list in the message of an error: tp_fail_list(). */
#define TP_ERROR_ITEM "\n  "

#endif
