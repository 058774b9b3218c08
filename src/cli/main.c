#include <signal.h>
#include <string.h>

#include "cli/cli.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} commands[] = {
#define COMMAND(name, arguments, summary) {#name, tp_cmd_##name},
#include "cli/commands.def"
#undef COMMAND
};

enum { N_COMMANDS = sizeof commands / sizeof *commands };

static const char *nearest(const char *word)
{
    const char *best = NULL;
    size_t least = 4;
    for (int i = 0; i < N_COMMANDS; i++) {
        size_t d = tp_str_distance(word, commands[i].name);
        if (d < least) {
            least = d;
            best = commands[i].name;
        }
    }
    return best;
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
    for (int i = 0; i < N_COMMANDS; i++)
        if (strcmp(commands[i].name, word) == 0)
            return commands[i].run(argc - 1, argv + 1);
    const char *near = nearest(word);
    fprintf(stderr, "temper: there is no command '%s'%s%s%s; see 'temper help'\n", word,
            near ? "; did you mean '" : "", near ? near : "", near ? "'" : "");
    return 2;
}
