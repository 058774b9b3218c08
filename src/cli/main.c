#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/commands.h"

/* What was printed must have arrived: `temper plan >/dev/full` is a failure, while a
 * reader that has seen enough (`| head`) is none. */
static int close_output(int status)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    struct stat st;
    bool is_pipe = fstat(STDOUT_FILENO, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode));
    if (errno == EPIPE || (errno == 0 && is_pipe))
        return status;
    fprintf(stderr, "temper: standard output could not be written%s%s\n", errno ? ": " : "",
            errno ? strerror(errno) : "");
    return status == 0 ? 4 : status;
}

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is a failed write, not a death */
    if (argc < 2) {
        char *help[] = {argv[0], NULL};
        tp_cmd_help(1, help);
        return 2;
    }
    const char *word = argv[1];
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        word = "help";
    if (strcmp(word, "--version") == 0)
        word = "version";
    const tp_command *command = tp_command_find(word);
    return command ? close_output(command->run(argc - 1, argv + 1)) : tp_command_unknown(word);
}
