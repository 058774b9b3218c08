/* waiting.h - a line on the terminal while one long computation says nothing.
 *
 * After ten seconds, and only where standard error is a terminal, a line with the seconds so
 * far is redrawn every second.  It is gone before anything else is printed. */
#ifndef TP_CLI_WAITING_H
#define TP_CLI_WAITING_H

/* One at a time.  `what` must live until the end: "temper stats: looking for the trend". */
void tp_waiting_begin(const char *what);
void tp_waiting_end(void); /* without a beginning a no-op */

#endif
