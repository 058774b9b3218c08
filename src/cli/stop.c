/* stop.c - a signal asks a command to end. */

#include <signal.h>
#include <unistd.h>

#include "cli/cli.h"

static volatile sig_atomic_t stop_signal;

void tp_cli_ask_to_stop(int number)
{
    if (stop_signal)
        _exit(TP_EXIT_SIGNAL + number);
    stop_signal = number;
}

void tp_cli_catch_stop(void)
{
    tp_cli_catch(SIGINT, tp_cli_ask_to_stop);
    tp_cli_catch(SIGTERM, tp_cli_ask_to_stop);
}

bool tp_cli_should_stop(void *user)
{
    (void)user;
    return stop_signal != 0;
}

int tp_cli_stopped(int status) { return stop_signal ? TP_EXIT_SIGNAL + stop_signal : status; }
