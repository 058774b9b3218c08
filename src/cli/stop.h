/* stop.h - a signal asks a command to end: the first one behind what is at work, so that nothing
 * is left half done; the second ends the process at once. */
#ifndef TP_CLI_STOP_H
#define TP_CLI_STOP_H

#include <stdbool.h>

/* From now on SIGINT and SIGTERM ask. */
void tp_cli_catch_stop(void);
/* The handler, for a further signal that asks (tp_cli_catch). */
void tp_cli_ask_to_stop(int number);

/* Was it asked?  In the form of the library's callbacks. */
bool tp_cli_should_stop(void *user);
/* The exit status: that of the signal where one came. */
int tp_cli_stopped(int status);

#endif
