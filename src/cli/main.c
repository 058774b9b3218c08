/* main.c - the command: choose a subcommand, end with its status. */
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "temper/program.h"

/* What was printed must have arrived: `temper plan >/dev/full` is a failure, while a
 * reader that has seen enough (`| head`) is none.  A verdict that nobody could read is none. */
static int close_output(int status)
{
    if (tp_cli_flush()) {
        tp_terminal_end();
        return status;
    }
    if (errno == EPIPE || (errno == 0 && tp_cli_is_pipe()))
        return status;
    fprintf(stderr, "temper: standard output could not be written%s%s\n", errno ? ": " : "",
            errno ? strerror(errno) : "");
    return status == TP_EXIT_OK || status == TP_EXIT_WORSE ? TP_EXIT_OUTPUT : status;
}

/* A file that is mapped was made shorter by somebody: what it held is gone.  Only what a handler
 * of signals may call. */
static void on_lost_page(int number, siginfo_t *info, void *context)
{
    (void)context;
    const char *name = tp_map_name_at(info->si_addr);
    const char *parts[] = {"temper: ", name,
                           " was made shorter, or its disk failed, while it was in use; give "
                           "programs that read a file the time to end, then start again\n"};
    if (!name) { /* not ours: die of it */
        signal(number, SIG_DFL);
        raise(number);
        return;
    }
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (write(STDERR_FILENO, parts[i], strlen(parts[i])) < 0)
            break;
    _exit(2);
}

static void catch_lost_pages(void)
{
    struct sigaction action = {.sa_sigaction = on_lost_page, .sa_flags = SA_SIGINFO};
    sigaction(SIGBUS, &action, NULL);
}

/* The C library moves its two thresholds as blocks come and go, so that how often the same work
 * faults its pages in depends on what went before (the second read of a trace up to 3 times as
 * often).  Here they stand still: smaller blocks stay in the heap, larger ones are mapped and
 * remapped, and up to 32 MiB at the heap's end are kept. */
static void keep_memory(void)
{
    mallopt(M_MMAP_THRESHOLD, 8 << 20);
    mallopt(M_TRIM_THRESHOLD, 32 << 20);
}

int main(int argc, char **argv)
{
    keep_memory();
    signal(SIGCHLD, SIG_DFL);  /* ignored by who started us, children would go without a word */
    (void)tp_terminal_guard(); /* without it, messages and tables are cleaned all the same */
    catch_lost_pages();
    tp_outputs_watch();
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is a failed write, not a death */
    signal(SIGXFSZ, SIG_IGN); /* and so is the limit of a file's size */
    if (argc < 2) {
        char *help[] = {argv[0], NULL};
        tp_cli_run(&tp_usage_help, 1, help);
        return 2;
    }
    const char *word = argv[1];
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        word = "help";
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0)
        word = "version";
    const tp_command *command = tp_command_find(word);
    return command ? close_output(tp_command_run(command, argc - 1, argv + 1))
                   : tp_command_unknown(word);
}
