/* bench_signals.c - an interruption ends what is being measured or built, and then the command. */
#include <signal.h>

#include "cli/bench.h"
#include "cli/cli.h"
#include "instrument/bench/process.h"

static void on_interrupt(int signal_number)
{
    (void)signal_number;
    tp_process_interrupt();
}

void tp_bench_catch_signals(void)
{
    tp_cli_catch(SIGINT, on_interrupt);
    tp_cli_catch(SIGTERM, on_interrupt);
}
