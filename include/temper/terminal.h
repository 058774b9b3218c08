/* terminal.h - text of strangers, and a terminal.
 *
 * Names in files, rows of data, answers of models and quoted input may hold bytes that a terminal
 * obeys: escape sequences, C1 controls, bidirectional overrides.  Two things keep them from it:
 *
 * - tp_text_shown() gives such text as people are to see it, "\x1b" for an escape;
 * - tp_terminal_guard(), which a program calls once, puts a filter in front of a stream that does
 *   the same for whatever is printed there, wherever it came from.  What the program itself wants
 *   of the terminal it says with tp_style(), which no text from outside can spell.
 *
 * Threads: tp_style(), tp_text_shown() and tp_error_shown() any, at once. Guard and colour are the
 * process's: tp_terminal_guard(), tp_terminal_pass_data(), tp_terminal_wrap() and
 * tp_terminal_end() by one thread, while no other prints. */
#ifndef TEMPER_TERMINAL_H
#define TEMPER_TERMINAL_H

#include "temper/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a program may ask of a terminal.  Without a guard these are the escape sequences. */
typedef enum {
    TP_STYLE_PLAIN,
    TP_STYLE_BOLD,
    TP_STYLE_DIM,
    TP_STYLE_GREEN,
    TP_STYLE_BOLD_GREEN,
    TP_STYLE_BOLD_RED,
    TP_STYLE_YELLOW,
    TP_LINE_BEGIN, /* to the beginning of the line */
    TP_LINE_ERASE, /* what is right of the cursor */
    TP_LINE_UP,
    TP_BELOW_ERASE /* what is right of the cursor and below */
} tp_terminal_code;
TP_API const char *tp_style(tp_terminal_code code);

/* Verdicts in tables that are made from here on have a style: green is better, red is worse, yellow
 * is not shown.  For a program that prints them to a terminal. */
TP_API void tp_terminal_colour(bool on);
TP_API bool tp_terminal_has_colour(void);

/* Put the filter in front of standard output and standard error; once, before anything is
 * printed.  False, and nothing changed, when that is not possible. */
TP_API bool tp_terminal_guard(void);

/* What standard output gets from here on is data for another program: bytes pass as they are,
 * unless it is a terminal that they go to. */
TP_API void tp_terminal_pass_data(void);

/* From here on lines of standard output that are wider than `width` columns go on in the next one,
 * at a blank.  Not for text that is redrawn; needs the guard. */
TP_API void tp_terminal_wrap(int width);

/* Write out what was held back since the end of a character was missing. */
TP_API void tp_terminal_end(void);

/* Text of n bytes as it may be shown: what is unsafe becomes \xNN or \uNNNN, bytes that are no
 * UTF-8 \xNN.  On one line newline and tab are written out as \n and \t as well.  tp_free(). */
TP_API char *tp_text_shown(const char *text, size_t n, bool one_line);

/* The message of an error as it may be shown: what it quotes stays on its line, as does each item
 * of a list.  tp_free(). */
TP_API char *tp_error_shown(const tp_error *err);

#ifdef __cplusplus
}
#endif

#endif
