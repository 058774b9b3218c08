/* waiting.h - what a command is at, on standard error, while it says nothing else.
 *
 * On a terminal one line, redrawn every second and gone before anything else is printed; elsewhere,
 * as lines stay there, one after 10, 20, 40, 80, 140 ... seconds.  A computation is spoken of after
 * ten seconds, with what the library tells of it (tp_working_listen()); what measures for minutes
 * says what it is at from the beginning on. */
#ifndef TP_CLI_WAITING_H
#define TP_CLI_WAITING_H

/* One at a time.  `what` is "temper stats: looking for the trend". */
void tp_waiting_begin(const char *what);
/* This is the line from now on, without seconds; `text` NULL or "": none. */
void tp_waiting_say(const char *text);
void tp_waiting_end(void); /* without a beginning a no-op */

/* "note: text" on standard error, wherever the line is.  Matches the library's callbacks. */
void tp_cli_note(void *user, const char *text);

#endif
